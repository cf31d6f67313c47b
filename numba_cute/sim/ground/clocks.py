# SPDX-License-Identifier: Apache-2.0
"""Vector clocks: what each thread knows to have happened, by what the knowledge is good for.

An agent is whoever accesses memory: a thread, or what completes asynchronous work (an mbarrier, a thread's bulk
groups, a warpgroup's wgmma groups). Each counts its own epochs. A clock holds, for every agent, the latest epoch that
is ordered before now, in eight rows: an order may be good for one purpose and not for another (PTX ISA, "Memory
Consistency Model": "Proxies", "Scope"). Threads that have synchronised alike share one clock, so that joins are few.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

READS, FULL, SMEM, GMEM, INIT, TENSOR, FENCED, FENCED_FOR_ALL = range(8)
"""Rows. READS: what has been read may be overwritten. FULL: what was written may be read (generic proxy). SMEM, GMEM:
a fence.proxy.async lies between, so that the async proxy sees it too. INIT: fence.mbarrier_init lies between. TENSOR:
tcgen05.fence::before_thread_sync lies between, or tcgen05.commit. FENCED: a fence of GPU scope lies between, so that a
relaxed atomic publishes it. FENCED_FOR_ALL: one of system scope, so that it does to other GPUs too."""
_ROWS = 8


Others = dict[Any, NDArray[np.int32]]


class Clock:
    """An immutable clock of one cluster. others: what is known of the agents of other clusters, by cluster."""

    __slots__ = ("v", "others", "cluster", "_derived")

    def __init__(self, v: NDArray[np.int32], others: Others, cluster: Any) -> None:
        self.v, self.others, self.cluster = v, others, cluster
        self._derived: dict[Any, tuple[Any, Clock]] = {}

    @classmethod
    def zero(cls, cluster: Any, agents: int, others: Others | None = None) -> Clock:
        return cls(np.zeros((_ROWS, -(-agents // 64) * 64), np.int32), others or {}, cluster)

    def at(self, row: int, agent: int) -> int:
        return int(self.v[row, agent]) if agent < self.v.shape[1] else 0

    def join(self, o: Clock) -> Clock:
        """The least clock that knows what both know."""
        if o is self:
            return self
        hit = self._derived.get(id(o))
        if hit is None or hit[0] is not o:
            hit = self._derived[id(o)] = (o, self._joined(o))
        return hit[1]

    def _joined(self, o: Clock) -> Clock:
        mine: NDArray[np.int32] | None
        if o.cluster is self.cluster:
            mine, theirs = o.v, o.others
        else:
            mine = o.others.get(self.cluster)
            theirs = {c: v for c, v in {**o.others, o.cluster: o.v}.items() if c is not self.cluster}
        others = _merged(self.others, theirs)
        v = self.v if mine is None else _greater(self.v, mine)
        if others is self.others and v is self.v:
            return self
        return o if others is o.others and v is o.v and o.cluster is self.cluster else Clock(v, others, self.cluster)

    def derived(self, key: Any, change: Any, everywhere: bool) -> Clock:
        """`change(v)` of a copy (and, if `everywhere`, of what is known of other clusters), made once for all who ask
        with the same key."""
        hit = self._derived.get(key)
        if hit is None:
            others = {c: change(v.copy()) for c, v in self.others.items()} if everywhere else self.others
            hit = self._derived[key] = (None, Clock(change(self.v.copy()), others, self.cluster))
        return hit[1]

    def only(self, rows: tuple[int, ...]) -> Clock:
        def change(v: Any) -> Any:
            keep = np.zeros(_ROWS, bool)
            keep[list(rows)] = True
            v[~keep] = 0
            return v

        return self.derived(("only", rows), change, True)

    def fenced(self, row: int) -> Clock:
        """The clock after a fence that makes `row` as good as FULL."""

        def change(v: Any) -> Any:
            np.maximum(v[row], v[FULL], out=v[row])
            return v

        return self.derived(("fenced", row), change, True)

    def published(self, row: int) -> Clock:
        """Give what fences have published of it, of GPU or of system scope as `row` says. A thread's own fence counts
        for what it did, and after a barrier also for those who let others know of it: PTX promises that only of the
        thread that fences last, but every GPU keeps it, and CUDA code counts on it (all threads fence, the block meets,
        one raises the flag)."""
        return self.derived(("published", row), lambda v: np.minimum(v, v[row]), True)

    def knowing(self, agent: int, epoch: int, rows: tuple[int, ...] = (READS, FULL, SMEM, GMEM)) -> Clock:
        """The clock that also knows this epoch of an agent."""
        if all(self.at(r, agent) >= epoch for r in rows):
            return self

        def change(v: Any) -> Any:
            v = _widen(v, agent + 1)
            for r in rows:
                v[r, agent] = max(v[r, agent], epoch)
            return v

        return self.derived((agent, epoch, rows), change, False)


def all_of(clusters: Iterable[Any]) -> Others:
    """Return what is known where clusters have ended: all that they did, and all that they knew."""
    found: Others = {}
    for c in clusters:
        for base in {t.clock.base for t in c.threads}:
            found = _merged(found, {other: v for other, v in base.others.items()})
    most = np.iinfo(np.int32).max
    return {**found, **{c: np.full((_ROWS, -(-c.agents // 64) * 64), most, np.int32) for c in clusters}}


def _greater(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int32]:
    """The greater of each two elements; one of the two arrays itself, if that is it."""
    a_wide, b_wide = _widen(a, b.shape[1]), _widen(b, a.shape[1])  # of one width: both are multiples of 64
    v = np.maximum(a_wide, b_wide)
    if (v == a_wide).all():
        return a
    return b if (v == b_wide).all() else v


def _merged(a: Others, b: Others) -> Others:
    """Join what both know of other clusters; `a` itself, if `b` knows no more, or `b`, if `a` is empty."""
    if not a:
        return b or a
    found = a
    for cluster, theirs in b.items():
        mine = a.get(cluster)
        v = theirs if mine is None else mine if mine is theirs else _greater(mine, theirs)
        if v is not mine:
            found = {**a} if found is a else found
            found[cluster] = v
    return found


def _widen(v: NDArray[np.int32], agents: int) -> NDArray[np.int32]:
    have = v.shape[1]
    return v if have >= agents else np.pad(v, ((0, 0), (0, -(-agents // 64) * 64 - have)))


_BEGIN: tuple[int, ...] = (0, 0, 0, 0, 1, 0, 0, 0)
_CHANGES = itertools.count(1)


class ThreadClock:
    """One thread's knowledge: a shared clock, and its own epoch, which is ahead of what the others have seen."""

    __slots__ = ("agent", "_base", "_epoch", "own", "pending", "published", "heard", "after", "until")

    changed = 0
    """The number of the latest change of any thread's base or epoch. (No number comes twice, whichever simulations run
    beside each other.)"""

    def __init__(self, agent: int, base: Clock) -> None:
        self.agent, self._base = agent, base
        self._epoch = 2  # epoch 1 is to have started
        self.own = _BEGIN  # rows SMEM and on of its own epochs
        self.after: Clock = base  # what it knew at its last tcgen05.fence::after_thread_sync
        self.until: int | None = None  # the last of its own epochs that came before; None: all of them

    def __getattr__(self, name: str) -> Any:
        """Make a field that few threads have when it is first asked for. pending: by reach (see `ordering`), what
        atomics read, to acquire by a fence. published: by reach, what narrower fences published, for atomics. heard:
        locations that its latest atomics read (see `ordering.unheard`)."""
        if name not in ("pending", "published", "heard"):
            raise AttributeError(name)
        made: dict[Any, Any] = {}
        setattr(self, name, made)
        return made

    @property
    def base(self) -> Clock:
        return self._base

    @base.setter
    def base(self, base: Clock) -> None:
        self._base = base
        ThreadClock.changed = next(_CHANGES)

    @property
    def epoch(self) -> int:
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch = epoch
        ThreadClock.changed = next(_CHANGES)

    def knows(self, row: int, agent: int, epoch: int) -> bool:
        if agent == self.agent:
            return (self.until is None or epoch <= self.until) and (row < SMEM or self.own[row] >= epoch)
        return self._base.at(row, agent) >= epoch

    def fence(self, *rows: int) -> None:
        """A proxy fence, that of mbarrier_init, or one of memory: what `rows` say."""
        for row in rows:
            self.own = (*self.own[:row], self.epoch, *self.own[row + 1 :])
        self.epoch += 1
        for row in rows:
            if row != INIT:
                self.base = self.base.fenced(row)

    def frozen(self) -> ThreadClock:
        """Copy what the thread knows now, for an access that is made later; a new epoch begins."""
        copy = ThreadClock(self.agent, self.base)
        copy.until = self.epoch
        self.epoch += 1
        copy.epoch, copy.own, copy.after = copy.until, self.own, self.after
        return copy

    def fenced(self, of: int) -> Clock | None:
        """Give what a relaxed atomic of this thread publishes to the grid, or to all GPUs, as the row `of` says; None
        if that is nothing."""
        clock = self.base.published(of)
        own = self.own[of]
        if own:
            clock = clock.knowing(self.agent, own, (READS, FULL, of))
            for row in (SMEM, GMEM, INIT, TENSOR, FENCED, FENCED_FOR_ALL):
                clock = clock.knowing(self.agent, min(own, self.own[row]), (row,))
        return clock if own or clock.v.any() or clock.others else None

    def snapshot(self) -> Clock:
        """All that the thread knows and has done, as others may come to know it; a new epoch begins."""
        gather = Gather(self.base)
        gather.add((self,))
        return gather.freeze()


def alike(values: list[Any]) -> bool:
    """Tell whether all are the same."""
    return values.count(values[0]) == len(values)


def distinct_bases(threads: Sequence[ThreadClock]) -> Iterable[Clock]:
    """Return what threads know except for their own steps, once for those that know the same."""
    if type(threads) is Standing:
        now = threads.now()
        return now.bases[:1] if now.alike else set(now.bases)
    bases = [t._base for t in threads]
    return bases[:1] if alike(bases) else set(bases)


def acquire(threads: Sequence[ThreadClock], clock: Clock) -> None:
    """Let threads know all that a clock knows."""
    _learn(threads, lambda base: base.join(clock))


def know(threads: Sequence[ThreadClock], agent: int, epoch: int, rows: tuple[int, ...]) -> None:
    """Let threads know an epoch of an agent."""
    _learn(threads, lambda base: base.knowing(agent, epoch, rows))


def _learn(threads: Sequence[ThreadClock], more: Callable[[Clock], Clock]) -> None:
    base: Any = None
    changed = False
    for t in threads:
        if t._base is not base:
            base, learned = t._base, more(t._base)
            changed |= learned is not base
        t._base = learned
    if changed:
        ThreadClock.changed = next(_CHANGES)


def fence_each(threads: Sequence[ThreadClock], row: int) -> None:
    """A proxy fence, or that of mbarrier_init, of each of some threads; those that were alike stay so."""
    own: Any = None
    base, epoch, then = own, 0, (own, own)
    for t in threads:
        if t._base is base and t._epoch == epoch and t.own == own:
            t.own, t._base = then
            t._epoch += 1
            continue
        own, base, epoch = t.own, t._base, t._epoch
        t.fence(row)
        then = t.own, t._base
    ThreadClock.changed = next(_CHANGES)


class Standing(list[ThreadClock]):
    """Some threads' clocks, and what they know at a time: their bases and epochs. stamp: the epochs' sum, which tells
    of each, for they only grow. alike: whether all have one base. side_by_side: whether their agents' numbers follow
    each other."""

    __slots__ = ("bases", "epochs", "stamp", "alike", "_changes")

    def __init__(self, clocks: Iterable[ThreadClock]) -> None:
        super().__init__(clocks)
        self._changes = -1

    @property
    def side_by_side(self) -> bool:
        return self[-1].agent - self[0].agent + 1 == len(self)

    def now(self) -> Standing:
        """The same, as it is now."""
        if self._changes != ThreadClock.changed:
            self._changes = ThreadClock.changed
            self.bases, self.epochs = [t._base for t in self], [t._epoch for t in self]
            self.stamp, self.alike = sum(self.epochs), alike(self.bases)
        return self


class Gather:
    """Collects what several threads publish to those who wait."""

    __slots__ = ("clock", "_points", "_many")

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._points: list[tuple[int, list[int]]] = []
        self._many: list[tuple[Any, list[int], list[int]]] = []
        """Groups of threads that are alike: their agents and epochs, and what they own of each row (of FULL and READS:
        1)."""

    def add(self, threads: Iterable[ThreadClock], rows: tuple[int, ...] | None = None) -> None:
        """Each thread's clock, or only some rows of it; a new epoch of each begins."""
        first: ThreadClock | None = None
        some: list[ThreadClock] = []  # threads that are alike
        for t in threads:
            if first is None or t._base is not first._base or t.own != first.own:
                if some:
                    self._add(some, rows)
                first, some = t, []
            some.append(t)
        if some:
            self._add(some, rows)
            ThreadClock.changed = next(_CHANGES)

    def _add(self, threads: list[ThreadClock], rows: tuple[int, ...] | None) -> None:
        """Do the same for threads that are alike."""
        base, own = threads[0]._base, threads[0].own
        self.clock = self.clock.join(base if rows is None else base.only(rows))
        if len(threads) == 1:
            (t,) = threads
            self._points.append((t.agent, _only([t._epoch, t._epoch, *own[SMEM:]], rows)))
            t._epoch += 1
            return
        agents, epochs = [t.agent for t in threads], [t._epoch for t in threads]
        together = agents[-1] - agents[0] + 1 == len(agents)
        at = slice(agents[0], agents[-1] + 1) if together else agents
        self._many.append((at, epochs, _only([1, 1, *own[SMEM:]], rows)))
        for t in threads:
            t._epoch += 1

    def know(self, agent: int, epoch: int, rows: tuple[int, ...]) -> None:
        """An epoch of what completes asynchronous work."""
        self.clock = self.clock.knowing(agent, epoch, rows)

    def freeze(self) -> Clock:
        """All that was published until now."""
        if not self._points and not self._many:
            return self.clock
        agents = [a for a, _ in self._points]
        last = max([*agents, *(at.stop - 1 if isinstance(at, slice) else max(at) for at, _, _ in self._many)])
        v = _widen(self.clock.v, last + 1).copy()
        if agents:
            own = np.array([o for _, o in self._points], np.int32).T
            if len(set(agents)) == len(agents):
                v[:, agents] = np.maximum(v[:, agents], own)
            else:
                for at, agent in enumerate(agents):
                    np.maximum(v[:, agent], own[:, at], out=v[:, agent])
        for at, epochs, of_rows in self._many:
            counted = np.array(epochs, np.int32)
            for row, value in enumerate(of_rows):
                if value:
                    v[row, at] = np.maximum(v[row, at], counted if row < SMEM else value)
        self.clock = Clock(v, self.clock.others, self.clock.cluster)
        self._points, self._many = [], []
        return self.clock


def _only(own: list[int], rows: tuple[int, ...] | None) -> list[int]:
    return own if rows is None else [e if r in rows else 0 for r, e in enumerate(own)]
