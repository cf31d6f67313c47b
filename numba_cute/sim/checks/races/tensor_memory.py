# SPDX-License-Identifier: Apache-2.0
"""The order of accesses to tensor memory (PTX ISA, "TensorCore 5th Generation": memory consistency model).

All accesses are asynchronous. Multiplies and copies of one thread run in order, one after the other; all others must
be complete: loads and stores of a warp by tcgen05.wait::ld and ::st, multiplies by tcgen05.commit and its mbarrier.
Between threads, the first executes tcgen05.fence::before_thread_sync (a commit implies it) ahead of what synchronises
them, and the second tcgen05.fence::after_thread_sync behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....isa.form.instr import TCGEN05_GROUP, TCGEN05_LOADS as LOAD, TCGEN05_STORES as STORE
from ...ground.clocks import FULL, TENSOR
from ...ground.report import RaceError, who
from ...hardware.tmem import COLUMNS, LANES, Patch

PIPE = "tcgen05 multiply"


class Access:
    """One access. agent, epoch: what counts its completion, and its number there; lo, hi, at: its issuers, and their
    own epochs."""

    __slots__ = ("kind", "row", "threads", "place", "unit", "agent", "epoch", "lo", "hi", "at")

    def __init__(self, m: Any, kind: str, agent: int, epoch: int) -> None:
        self.kind, self.row, self.threads, self.place, self.unit = kind, m.row, m.threads, m.place, m.unit
        self.agent, self.epoch = agent, epoch
        first = m.threads[0].clock
        self.lo, self.hi = first.agent, first.agent + len(m.threads)
        self.at = np.array([t.clock.epoch for t in m.threads], np.int32)

    @property
    def name(self) -> str:
        return str(self.row.name) if self.row is not None else self.kind

    def completed(self, t: Any) -> bool:
        """Tell whether the thread may rely on the access being complete."""
        if self._mine(t):
            return bool(t.base.at(FULL, self.agent) >= self.epoch)
        if t.after.at(TENSOR, self.agent) < self.epoch:
            return False
        return self.kind == PIPE or self.known(t.after, TENSOR)

    def known(self, clock: Any, row: int) -> bool:
        """Tell whether the clock knows what all issuers have done since they issued it."""
        return bool((clock.v[row, self.lo : self.hi] >= self.at).all())

    def before(self, t: Any) -> bool:
        """Tell whether the access was issued before what the thread issues now to the same pipe."""
        return self._mine(t) or self.known(t.after, TENSOR)

    def _mine(self, t: Any) -> bool:
        return bool(self.lo <= t.agent < self.hi)


class Waits:
    """Counts a warp's loads (or stores): each tcgen05.wait ends an epoch of its agent."""

    __slots__ = ("agent", "epoch")

    def __init__(self, agent: int) -> None:
        self.agent, self.epoch = agent, 1


def in_pipe(m: Any) -> Access:
    """The access of a multiply or copy of the matrix unit that has just been issued."""
    groups = m.groups(TCGEN05_GROUP)
    return Access(m, PIPE, groups.agents[1], groups.epoch)


class TensorRaces:
    """The shadow of one CTA's tensor memory: who wrote each element last, and who has read it since."""

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.accesses: list[Access | None] = [None]
        self.writers: NDArray[np.int32] = np.zeros((LANES, COLUMNS), np.int32)
        self.readers: NDArray[np.int32] = np.zeros((LANES, COLUMNS), np.int32)  # sets of accesses
        self._sets: list[frozenset[int]] = [frozenset()]

    def forget(self, patch: Patch) -> None:
        self.writers[patch.index] = 0
        self.readers[patch.index] = 0

    def load(self, m: Any, patch: Patch) -> None:
        self._check(m, self._of_warp(m, LOAD), patch, True, False)

    def store(self, m: Any, patch: Patch) -> None:
        self._check(m, self._of_warp(m, STORE), patch, False, True)

    def pipe(self, m: Any, access: Access, patch: Patch, *, reads: bool, writes: bool) -> None:
        self._check(m, access, patch, reads, writes)

    def freed(self, m: Any, patch: Patch) -> None:
        """All accesses must be complete; a barrier alone tells who frees that they are."""
        for i in self._found(patch):
            a = self.accesses[i]
            if a is not None and not all(t.base.at(FULL, a.agent) >= a.epoch for t in m.clocks()):
                raise self._race(m, a, patch, "freed", i)

    def _of_warp(self, m: Any, kind: str) -> Access:
        waits = m.unit.groups.get(kind)
        if waits is None:
            waits = m.unit.groups[kind] = Waits(m.cta.cluster.new_agent())
        return Access(m, kind, waits.agent, waits.epoch)

    def _found(self, patch: Patch) -> list[int]:
        found = set(np.unique(self.writers[patch.index]).tolist()) - {0}
        for s in np.unique(self.readers[patch.index]).tolist():
            found |= self._sets[s]
        return sorted(found)

    def _check(self, m: Any, me: Access, patch: Patch, reads: bool, writes: bool) -> None:
        written = self.writers[patch.index]
        # a load takes whole columns of the warp's lanes, also where a multiply of 64 rows left some of them out
        if reads and not (written.any(axis=0) if me.kind == LOAD else written).all():
            for tell in m.run.watch.reads_unwritten_tensor_memory:
                tell(m, patch)
        others = set(np.unique(written).tolist()) - {0}
        if writes:
            for s in np.unique(self.readers[patch.index]).tolist():
                others |= self._sets[s]
        for i in sorted(others):
            a = self.accesses[i]
            assert a is not None
            if not self._ordered(a, me, m):
                raise self._race(m, a, patch, "written" if writes and not reads else "read", i)
        self.accesses.append(me)
        mine = len(self.accesses) - 1
        if writes:
            self.writers[patch.index] = mine
            self.readers[patch.index] = 0
        else:
            for s in np.unique(self.readers[patch.index]).tolist():
                part = self.readers[patch.index]
                part[part == s] = self._with(s, mine, m, me)

    def _with(self, s: int, mine: int, m: Any, me: Access) -> int:
        old = frozenset(i for i in self._sets[s] if not self._ordered(self.accesses[i], me, m))  # type: ignore[arg-type]
        self._sets.append(old | {mine})
        return len(self._sets) - 1

    @staticmethod
    def _ordered(a: Access, me: Access, m: Any) -> bool:
        if a.kind == PIPE == me.kind:
            return all(a.before(t) or a.completed(t) for t in m.clocks())
        if a.kind == LOAD == me.kind:
            return a.unit is me.unit
        return all(a.completed(t) for t in m.clocks())

    def _race(self, m: Any, a: Access, patch: Patch, verb: str, i: int) -> RaceError:
        wrote = bool((self.writers[patch.index] == i).any())
        name = m.row.name if m.row is not None else ""
        where = f" of CTA {self.cta.rank}" if self.cta.cluster.size > 1 else ""
        lacks, fix, done = _missing(m, a)
        did = ("wrote it" if wrote else "read it") if done else ("still writes it" if wrote else "still reads it")
        return RaceError(
            f"race: tensor memory{where}, {patch}, is {verb} by {name} of {m.describe()} at {m.place}\n"
            f"  but {a.name} issued by {who(a.threads)} at {a.place} {did}: {lacks}\n"
            f"  fix: {fix}"
        )


def _missing(m: Any, a: Access) -> tuple[str, str, bool]:
    """Give what is missing between the two, the fix, and whether the first was known to be complete: for the first
    thread for which something is missing."""
    t = next((c for c in m.clocks() if not a.completed(c)), m.clocks()[0])
    mine = a.lo <= t.agent < a.hi
    wait = {LOAD: "tcgen05.wait::ld", STORE: "tcgen05.wait::st"}.get(a.kind, "tcgen05.commit to an mbarrier and a wait")
    if mine:
        return f"nothing waited for that: missing {wait}", f"{wait} after it and before this line", False
    complete = t.base.at(FULL, a.agent) >= a.epoch
    synchronised = a.known(t.base, FULL) or (complete and a.kind == PIPE)
    if not synchronised:
        fix = (
            f"there {wait}{'' if a.kind == PIPE else ', tcgen05.fence::before_thread_sync'}, then a barrier, and here "
        )
        return "nothing orders the two", fix + "tcgen05.fence::after_thread_sync before this line", False
    if not complete:
        lacks = f"it need not be complete when the two synchronise: missing {wait}"
        return lacks, f"{wait} there, before the barrier", False
    if t.base.at(TENSOR, a.agent) < a.epoch or (a.kind != PIPE and not a.known(t.base, TENSOR)):
        fix = f"after {wait} there and before the barrier, execute tcgen05.fence::before_thread_sync"
        return "missing tcgen05.fence::before_thread_sync", fix, True
    fix = (
        "each thread executes tcgen05.fence::after_thread_sync after the barrier that orders the two, before this line"
    )
    return "missing tcgen05.fence::after_thread_sync", fix, True
