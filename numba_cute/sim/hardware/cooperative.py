# SPDX-License-Identifier: Apache-2.0
"""Cooperative grids: clusters that wait for the whole grid stand still while the others run up to the same point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from greenlet import greenlet

from ...isa.form.limits import ctas_at_once
from ..ground.clocks import Clock, Gather
from ..ground.report import DeadlockError, SimError, count, who
from .retired import forget
from .together import who_waits

_MOST = 3  # clusters described in one report
_ROUNDS = 20  # in which nothing at all happens, before clusters that poll for each other count as stuck


class GridGroup:
    """The group that `cuda.cg.this_grid()` gives."""

    def __init__(self, run: Any) -> None:
        self.run = run

    def sync(self) -> int:
        """Wait for all threads of the grid; orders their memory accesses."""
        t = who_waits(self.run)
        t.cta.cluster.at_grid.append(t)
        t.suspend("grid sync", self, None)
        return 0


class CooperativeGroups:
    """`numba.cuda.cg`."""

    def __init__(self, run: Any) -> None:
        self._group = GridGroup(run)

    def this_grid(self) -> GridGroup:
        """As in compiled code, who asks for the group has the launch be a cooperative one."""
        run = self._group.run
        run.cooperative = True
        run.check_resident(run.thread.cta.smem.taken)
        return self._group


def execute(clusters: Iterable[Callable[[], Any]], start: Any) -> None:
    """Run clusters one after the other, but all of them up to each sync of the grid first. clusters: each gives the
    next cluster that is to run, or None."""
    standing: list[tuple[Any, Any]] = []
    gone: set[Any] = set()  # that have ended, and are not forgotten
    ended = 0
    try:
        for make in clusters:
            while _full(standing) and any(c.parked for c, _ in standing):
                ended += _resume(standing)
            cluster = make()
            if cluster is None:
                continue
            cluster.company = True
            runner = greenlet(cluster.execute)
            runner.switch(start)
            if runner.dead:
                ended += 1
                gone.add(cluster)
                if not standing and cluster.run.shared:
                    forget(cluster.run, gone)
            else:
                standing.append((cluster, runner))
        while standing:
            if any(cluster.parked for cluster, _ in standing):
                ended += _resume(standing)
                continue
            if ended:
                waits = standing[0][0]
                raise DeadlockError(
                    f"deadlock in kernel {waits.run.kernel}: {count(len(standing), 'cluster')} wait for the grid "
                    f"(cg.this_grid().sync) at {waits.at_grid[0].place}, but {ended} of the grid have ended without; "
                    f"all threads must call it equally often"
                )
            for cluster, _ in standing:
                left = [t for t in cluster.threads if t not in cluster.live]
                if left:
                    raise DeadlockError(
                        f"deadlock in kernel {cluster.run.kernel}: {who(left)} of block {left[0].cta.index} ended "
                        f"without the sync of the grid (cg.this_grid().sync) at {cluster.at_grid[0].place}, where the "
                        f"others wait; all threads of the grid must call it equally often"
                    )
            _meet([cluster for cluster, _ in standing])
            for _, runner in standing:
                runner.switch()
            ended = sum(runner.dead for _, runner in standing)
            standing = [s for s in standing if not s[1].dead]
    finally:
        for _, runner in standing:
            runner.throw()


def _full(standing: list[tuple[Any, Any]]) -> str:
    """Say why no further cluster can start beside those that stand; "" if one can."""
    if not standing:
        return ""
    run, cta = standing[0][0].run, standing[0][0].ctas[0]
    room = ctas_at_once(run.target, len(cta.threads), cta.smem.taken)
    if room is None or sum(c.size for c, _ in standing) + standing[0][0].size <= room[0]:
        return ""
    return (
        f"no known GPU of {run.target.name} holds more than {room[0]} CTAs of this kernel at once: {room[1]}; the "
        f"others start when one of these ends. Launch as many as fit, each of which does the work of several, or let "
        f"none wait for one that starts later"
    )


def _resume(standing: list[tuple[Any, Any]]) -> int:
    """Let the clusters go on that poll for what others do; gives how many end. An error if nothing comes of it."""
    for _ in range(_ROUNDS):
        parked = [s for s in standing if s[0].parked]
        run = parked[0][0].run
        before = run.events, run.steps
        for cluster, runner in parked:
            runner.switch()
            if runner.dead:
                standing.remove((cluster, runner))
        ended: int = sum(runner.dead for _, runner in parked)
        still = [cluster for cluster, _ in parked if cluster.parked]
        if ended or not still or (run.events, run.steps) != before:
            return ended
    raise _stuck(still, _full(standing) if run.to_start else "")


def _stuck(clusters: list[Any], full: str) -> SimError:
    """No cluster goes on: what the first waits for, and then what others do. full: why no other can start."""
    error: SimError = clusters[0].dead_end()
    rest = ["\n".join(str(c.dead_end()).splitlines()[1:]) for c in clusters[1:_MOST]]
    said = [f"  block {c.ctas[0].index} likewise:\n{text}" for c, text in zip(clusters[1:], rest)]
    if len(clusters) > _MOST:
        said.append(f"  and {count(len(clusters) - _MOST, 'cluster')} more")
    if full:
        said.append(f"  {full}")
    error.args = ("\n".join([error.args[0], *said]),)
    return error


def _meet(clusters: list[Any]) -> None:
    """All threads of the grid have come: each knows what all did, and may go on."""
    known: Clock | None = None
    for c in clusters if clusters[0].run.clocks else ():
        gather = Gather(c.clock0)
        gather.add([t.clock for t in c.threads])
        known = gather.freeze() if known is None else known.join(gather.freeze())
    for c in clusters:
        for tell in c.run.watch.meets:
            tell(c.threads)
        for t in c.threads if known is not None else ():
            t.clock.base = t.clock.base.join(known)
        c.ready.extend(c.at_grid)
        c.at_grid = []
