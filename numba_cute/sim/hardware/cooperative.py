# SPDX-License-Identifier: Apache-2.0
"""Cooperative grids: clusters that wait for the whole grid stand still while the others run up to the same point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import greenlet

from ..ground.clocks import Clock, Gather
from ..ground.report import DeadlockError, SimError, block, count, of_block, who
from .retired import forget
from .stuck_ranks import RankWaits
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


def execute(run: Any, make: Callable[[Any], Any], start: Any, begun: Callable[[], None]) -> None:
    """Run all clusters of a launch, one after the other, but all of a GPU up to each sync of its grid first, and those
    that poll when no other can begin. make: gives the cluster that begins next on a GPU. begun: is told of each."""
    gone: set[Any] = set()  # that have ended, and are not forgotten
    try:
        while True:
            to_start = [g for g in run.gpus if g.to_start]
            free = [g for g in to_start if not g.full]
            here = next((g for g in run.gpus if g.standing and not g.to_start and not g.parked), None)
            if not free and here is not None:
                _go_on(here)
            elif not free and any(g.parked for g in run.gpus):
                _resume(run)
            elif to_start:
                _begin(run.next_gpu(free or to_start), make, start, gone)
                begun()
            else:
                return
    finally:
        for gpu in run.gpus:
            for _, runner in gpu.standing:
                runner.throw()


def _begin(gpu: Any, make: Callable[[Any], Any], start: Any, gone: set[Any]) -> None:
    """Let the next cluster run on a GPU until it ends or waits for others."""
    cluster = make(gpu)
    cluster.company = True
    if gpu.run.remembers:
        gpu.clusters.append(cluster)
    runner = greenlet(cluster.execute)
    runner.switch(start)
    if not runner.dead:
        gpu.standing.append((cluster, runner))
        return
    gpu.ended += 1
    gone.add(cluster)
    if cluster.run.shared and not gpu.run.remembers and not any(g.standing for g in cluster.run.gpus):
        forget(cluster.run, gone)


def _go_on(gpu: Any) -> None:
    """Let the clusters of a GPU go on, which all wait for its whole grid. An error if some never come."""
    if gpu.ended:
        waits = gpu.standing[0][0]
        raise DeadlockError(
            f"deadlock in kernel {waits.run.kernel}{gpu.of_rank}: {count(len(gpu.standing), 'cluster')} wait for the "
            f"grid (cg.this_grid().sync) at {waits.at_grid[0].place}, but {gpu.ended} of the grid have ended without; "
            f"all threads must call it equally often"
        )
    for cluster, _ in gpu.standing:
        left = [t for t in cluster.threads if t not in cluster.live]
        if left:
            raise DeadlockError(
                f"deadlock in kernel {cluster.run.kernel}: {who(left)}{of_block(left[0].cta)} ended without the sync "
                f"of the grid (cg.this_grid().sync) at {cluster.at_grid[0].place}, where the others wait; all threads "
                f"of the grid must call it equally often"
            )
    _meet([cluster for cluster, _ in gpu.standing])
    for _, runner in gpu.standing:
        runner.switch()
    gpu.ended = sum(runner.dead for _, runner in gpu.standing)
    gpu.standing = [s for s in gpu.standing if not s[1].dead]


def _resume(run: Any) -> None:
    """Let the clusters go on that poll for what others do. An error if nothing comes of it."""
    for _ in range(_ROUNDS):
        parked = [(gpu, s) for gpu in run.gpus for s in gpu.standing if s[0].parked]
        before = run.events, run.steps
        for gpu, s in parked:
            s[1].switch()
            if s[1].dead:
                gpu.standing.remove(s)
                gpu.ended += 1
        still = [cluster for _, (cluster, _) in parked if cluster.parked]
        if len(still) < len(parked) or (run.events, run.steps) != before:
            return
    raise _stuck(still, [gpu.full for gpu in run.gpus if gpu.to_start])


def _stuck(clusters: list[Any], full: list[str]) -> SimError:
    """No cluster goes on: what the first waits for, and then what others do. full: why no other can start."""
    ranks = RankWaits(clusters) if len(clusters[0].run.gpus) > 1 else None
    clusters = clusters if ranks is None else ranks.first(clusters)
    error: Any = clusters[0].dead_end()
    rest = ["\n".join(str(c.dead_end()).splitlines()[1:]) for c in clusters[1:_MOST]]
    said = [f"  {block(c.ctas[0])} likewise:\n{text}" for c, text in zip(clusters[1:], rest)]
    if len(clusters) > _MOST:
        said.append(f"  and {count(len(clusters) - _MOST, 'cluster')} more")
    said += [f"  {why}" for why in dict.fromkeys(full) if why]
    head, *more = error.args[0].splitlines()
    error.args = ("\n".join([head, *(ranks.lines() if ranks is not None else ()), *more, *said]),)
    error.graph = error.graph if ranks is None else ranks.graph()
    return error  # type: ignore[no-any-return]


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
