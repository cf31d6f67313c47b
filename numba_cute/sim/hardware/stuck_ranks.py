# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait for each other for ever: which rank waits for which flag, and who has not set it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..ground.report import who
from ..ground.wait_graph import Awaited, Waiter, WaitGraph

_MOST = 8  # waits that one report lists


class RankWait(NamedTuple):
    """Threads of one rank that poll a flag. flag: it, in words. wants: the rank that is to set it; None: not known."""

    rank: int
    cluster: Any
    threads: tuple[Any, ...]
    flag: str
    wants: int | None


class RankWaits:
    """The waits of clusters of several ranks that poll."""

    def __init__(self, clusters: list[Any]) -> None:
        self.gpus = clusters[0].run.gpus
        self.waits = [w for c in clusters for w in _waits(c)]
        self.wants: dict[int, set[int]] = {}
        for w in self.waits:
            if w.wants is not None:
                self.wants.setdefault(w.rank, set()).add(w.wants)

    def first(self, clusters: list[Any]) -> list[Any]:
        """Sort clusters: those first that wait for a rank that has ended, or for ranks that wait for them."""
        cycle = set(self.cycle())

        def order(c: Any) -> int:
            wanted = [w.wants for w in self.waits if w.cluster is c and w.wants is not None]
            if any(self._state(r) == "has ended" for r in wanted):
                return 0
            return 1 if c.rank in cycle else 2

        return sorted(clusters, key=order)

    def cycle(self) -> list[int]:
        """Return ranks that wait for one another in a circle; none if there is no such."""
        for start in sorted(self.wants):
            path = [start]
            while path[-1] not in path[:-1] and path[-1] in self.wants:
                path.append(min(self.wants[path[-1]]))
            if path[-1] in path[:-1]:
                return path[path.index(path[-1]) : -1]
        return []

    def _state(self, rank: int) -> str:
        gpu = self.gpus[rank]
        if gpu.standing:
            return "waits too"
        return "has blocks that have not started" if gpu.to_start else "has ended"

    def lines(self) -> list[str]:
        """Say of each rank what it waits for, and who has not done it."""
        found = []
        for w in self.waits[:_MOST]:
            if w.wants is not None:
                why = f"that rank {w.wants} has not set: rank {w.wants} {self._state(w.wants)}"
            else:
                others = ", ".join(f"rank {g.rank} {self._state(g.rank)}" for g in self.gpus if g.rank != w.rank)
                why = f"that no rank sets any more: {others}"
            found.append(f"  rank {w.rank} waits for {w.flag} {why}")
        if len(self.waits) > _MOST:
            found.append(f"  and {len(self.waits) - _MOST} more wait")
        cycle = self.cycle()
        if cycle:
            found.append("  cycle: " + " waits for ".join(f"rank {r}" for r in [*cycle, cycle[0]]))
        return found

    def graph(self) -> WaitGraph:
        """Return who waits for whom, of all ranks."""
        waiters = [Waiter(who(w.threads), w.threads[0].place.short) for w in self.waits]
        ended = sorted({w.wants for w in self.waits if w.wants is not None} - {w.rank for w in self.waits})
        waiters += [Waiter(f"rank {r}", "") for r in ended]
        at = {r: len(self.waits) + i for i, r in enumerate(ended)}
        awaited = [
            Awaited(
                w.flag, "" if w.wants is None else f"rank {w.wants} has not set it",
                () if w.wants is None else (at[w.wants],) if w.wants in at
                else tuple(i for i, o in enumerate(self.waits) if o.rank == w.wants),
            )
            for w in self.waits
        ]  # fmt: skip
        ranks = self.cycle()
        cycle = tuple(next(i for i, w in enumerate(self.waits) if w.rank == r) for r in ranks)
        return WaitGraph(tuple(waiters), (*range(len(self.waits)), *(None for _ in ended)), tuple(awaited), cycle)


def _waits(cluster: Any) -> list[RankWait]:
    """Return what the threads of a cluster poll, those together that poll one place."""
    found: dict[Any, list[Any]] = {}
    for t in sorted(cluster.live, key=lambda t: (t.cta.rank, t.index)):
        if t.polled is not None and t.wait is not None and t.wait.on is None and "again and again" in t.wait.why:
            found.setdefault((t.polled[1], t.awaits), []).append(t)
    return [RankWait(cluster.rank, cluster, tuple(some), _flag(some[0]), wanted(some[0])) for some in found.values()]


def _flag(t: Any) -> str:
    memory, address = t.polled
    return str(memory.name(address - getattr(memory, "address", 0)))


def wanted(t: Any) -> int | None:
    """Return the rank that is to set what a thread polls: the one that it says, the one that has set it before, or the
    only other one."""
    cluster = t.cta.cluster
    gpus = cluster.run.gpus
    setter = t.awaits if t.awaits is not None else cluster.run.set_by.get(t.polled[1])
    if setter is not None and (setter != cluster.rank or t.awaits is not None):
        return int(setter)
    return 1 - cluster.rank if len(gpus) == 2 else None
