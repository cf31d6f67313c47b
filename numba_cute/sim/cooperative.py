# SPDX-License-Identifier: Apache-2.0
"""Cooperative grids: clusters that wait for the whole grid stand still while the others run up to the same point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from greenlet import greenlet

from .clocks import Clock, Gather
from .report import DeadlockError, count


class GridGroup:
    """What `cuda.cg.this_grid()` gives."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def sync(self) -> int:
        """Wait for all threads of the grid; orders their memory accesses."""
        t = self._run.thread
        t.cta.cluster.at_grid.append(t)
        t.suspend("grid sync", self, None)
        return 0


class CooperativeGroups:
    """`numba.cuda.cg`."""

    def __init__(self, run: Any) -> None:
        self._group = GridGroup(run)

    def this_grid(self) -> GridGroup:
        return self._group


def execute(clusters: Iterable[Callable[[], Any]], start: Any) -> None:
    """Run clusters one after the other, but all of them up to each sync of the grid first. clusters: each gives the
    next cluster that is to run, or None."""
    standing: list[tuple[Any, Any]] = []
    ended = 0
    try:
        for make in clusters:
            cluster = make()
            if cluster is None:
                continue
            runner = greenlet(cluster.execute)
            runner.switch(start)
            if runner.dead:
                ended += 1
            else:
                standing.append((cluster, runner))
        while standing:
            if ended:
                waits = standing[0][0]
                raise DeadlockError(
                    f"deadlock in kernel {waits.run.kernel}: {count(len(standing), 'cluster')} wait for the grid "
                    f"(cg.this_grid().sync) at {waits.at_grid[0].place}, but {ended} of the grid have ended without; "
                    f"all threads must call it equally often"
                )
            _meet([cluster for cluster, _ in standing])
            for _, runner in standing:
                runner.switch()
            ended = sum(runner.dead for _, runner in standing)
            standing = [s for s in standing if not s[1].dead]
    finally:
        for _, runner in standing:
            runner.throw()


def _meet(clusters: list[Any]) -> None:
    """All threads of the grid have come: each knows what all did, and may go on."""
    every = frozenset(clusters)
    for c in clusters:
        if c.run.races is not None:
            gather = Gather(c.clock0)
            gather.add([t.clock for t in c.threads])
            known = gather.freeze()
            known = Clock(known.v, known.others | (every - {c}), c)
            for t in c.threads:
                t.clock.base = t.clock.base.join(known)
        c.ready.extend(c.at_grid)
        c.at_grid = []
