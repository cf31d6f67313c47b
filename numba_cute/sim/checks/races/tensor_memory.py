# SPDX-License-Identifier: Apache-2.0
"""The order of accesses to tensor memory (PTX ISA, "TensorCore 5th Generation": memory consistency model).

All accesses are asynchronous. What one has to do with the next must be complete: loads and stores of a warp by
tcgen05.wait::ld and ::st, multiplies, copies and shifts by tcgen05.commit and its mbarrier. Between threads, the first
executes tcgen05.fence::before_thread_sync (a commit implies it) ahead of what synchronises them, and the second
tcgen05.fence::after_thread_sync behind it; it also waits behind the mbarrier of its own commit.

Some pairs of the matrix unit's operations run in the order in which they were issued, with no wait ("Pipelined tcgen05
Instructions"; what each of a multiply's operands keeps, a later edition of it says):

| first | then | in order |
| --- | --- | --- |
| multiply | multiply | with the same accumulator, shape and kind; its reads of a or scale factors, ahead of d |
| multiply | copy | its reads of these |
| multiply | shift | yes |
| copy | multiply | yes |
| shift | multiply, copy of 4x256b | yes |

Two operations are also in order if an operation between them is in order with both.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....isa.form.instr import TCGEN05_GROUP, TCGEN05_LOADS as LOAD, TCGEN05_STORES as STORE
from ...ground.clocks import FULL, READS, TENSOR
from ...ground.report import RaceError, who
from ...hardware.tmem import COLUMNS, GRAIN, LANES, Patch, Pipe, memory_of
from .shadow import distinct

PIPE = "tcgen05 multiply"
_NUMBERS = itertools.count()


class Access:
    """One access. agent, epoch: what counts its completion, and its number there; lo, hi, at: its issuers, and their
    own epochs; pipe: what the matrix unit does; number: in the order in which accesses came."""

    __slots__ = ("kind", "row", "threads", "place", "unit", "agent", "epoch", "lo", "hi", "at", "pipe", "number")

    def __init__(self, m: Any, kind: str, agent: int, epoch: int, pipe: Pipe | None = None) -> None:
        self.kind, self.row, self.threads, self.place, self.unit = kind, m.row, m.threads, m.place, m.unit
        self.agent, self.epoch, self.pipe = agent, epoch, pipe
        self.number = next(_NUMBERS)
        first = m.threads[0].clock
        self.lo, self.hi = first.agent, first.agent + len(m.threads)
        self.at = np.array([t.clock.epoch for t in m.threads], np.int32)

    @property
    def name(self) -> str:
        return str(self.row.name) if self.row is not None else self.kind

    def completed(self, t: Any, fences: bool = True) -> bool:
        """Tell whether the thread may rely on the access being complete. fences: with tcgen05's between them."""
        if self.kind != PIPE and self._mine(t):
            return bool(t.base.at(FULL, self.agent) >= self.epoch)
        clock, row = (t.after, TENSOR) if fences else (t.base, FULL)
        if clock.at(row, self.agent) < self.epoch:
            return False
        return self.kind == PIPE or self.known(clock, row)

    def known(self, clock: Any, row: int) -> bool:
        """Tell whether the clock knows what all issuers have done since they issued it."""
        return bool((clock.v[row, self.lo : self.hi] >= self.at).all())

    def before(self, t: Any, fences: bool) -> bool:
        """Tell whether the access was issued before what the thread issues now to the same pipe."""
        return self._mine(t) or (self.known(t.after, TENSOR) if fences else self.known(t.base, FULL))

    def _mine(self, t: Any) -> bool:
        return bool(self.lo <= t.agent < self.hi)


class Waits:
    """Counts a warp's loads (or stores): each tcgen05.wait ends an epoch of its agent."""

    __slots__ = ("agent", "epoch")

    def __init__(self, agent: int) -> None:
        self.agent, self.epoch = agent, 1


class Allocation:
    """Columns that a warp has allocated, as the `nth` of its CTA. partner: that of the other CTA of a pair: the first
    of the two to come takes the columns for both."""

    __slots__ = ("nth", "threads", "place", "lo", "at", "partner")

    def __init__(self, m: Any, nth: int, partner: Allocation | None) -> None:
        self.nth, self.threads, self.place, self.partner = nth, m.threads, m.place, partner
        self.lo = m.threads[0].clock.agent
        self.at = np.array([t.clock.epoch for t in m.threads], np.int32)

    def usable(self, m: Any) -> bool:
        """Tell whether all who issue `m` may use the columns."""
        return self.known(m) or (self.partner is not None and self.partner.known(m))

    def known(self, m: Any) -> bool:
        """Tell whether all who issue `m` come after it: they know of one of its lanes, which allocate together."""
        hi = self.lo + len(self.at)
        each = {id(t.base): t for t in m.clocks() if not self.lo <= t.agent < hi}.values()
        return all(bool((t.base.v[READS, self.lo : hi] >= self.at).any()) for t in each)


def in_pipe(m: Any, pipe: Pipe) -> Access:
    """The access of a multiply, copy or shift of the matrix unit that has just been issued."""
    groups = m.groups(TCGEN05_GROUP)
    return Access(m, PIPE, groups.agents[1], groups.epoch, pipe)


class Cell(NamedTuple):
    """The history of an element: its last writer, and its readers since."""

    writer: Access | None
    readers: frozenset[Access]


class TensorRaces:
    """The shadow of one CTA's tensor memory: the number of each element's cell."""

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.cells = [Cell(None, frozenset())]
        self.at: NDArray[np.int32] = np.zeros((LANES, COLUMNS), np.int32)
        self.allocations: list[Allocation] = []
        self.owners: list[Allocation | None] = [None] * (COLUMNS // GRAIN)

    # allocation
    def allocated(self, m: Any, patch: Patch, peer: TensorRaces | None) -> None:
        nth = len(self.allocations)
        partner = peer.allocations[nth] if peer is not None and nth < len(peer.allocations) else None
        made = Allocation(m, nth, partner)
        self.allocations.append(made)
        if partner is not None:
            partner.partner = made
        for races in (self, *(() if peer is None or partner is not None else (peer,))):
            races._own(patch, made)
            if partner is None:
                races.at[patch.index] = 0

    def _own(self, patch: Patch, owner: Allocation | None) -> None:
        at = patch.column // GRAIN
        self.owners[at : at + patch.columns // GRAIN] = [owner] * (patch.columns // GRAIN)

    def freed(self, m: Any, patch: Patch, peer: TensorRaces | None) -> None:
        """All accesses must be complete; a barrier alone tells who frees that they are. With a pair's allocation the
        same goes for the peer's part of it, which both free together."""
        mine = self.owners[patch.column // GRAIN]
        for races in (self, *(() if peer is None else (peer,))):
            if races is not self and mine is not None:
                races.taken(m, mine.nth)
            owner = races.owners[patch.column // GRAIN]
            if owner is None or mine is None or owner.nth != mine.nth:
                continue  # the peer has freed its part already
            for a in races._users(patch):
                if not all(t.base.at(FULL, a.agent) >= a.epoch for t in m.clocks()):
                    for tell in m.run.watch.frees_in_use:
                        tell(m, races._race(m, a, patch, "freed"))
                    memory_of(races.cta).in_use.add(patch.column)
        self._own(patch, None)

    def taken(self, m: Any, nth: int) -> None:
        """The peer's warp must have finished the allocation before this CTA's gives it back."""
        made = self.allocations[nth] if nth < len(self.allocations) else None
        if made is None or not made.known(m):
            raise _peer_still_allocates(m, self.cta, made)

    def _users(self, patch: Patch) -> list[Access]:
        cells = [self.cells[i] for i in distinct(self.at[patch.index].ravel())]
        found = {a for c in cells for a in (c.writer, *c.readers) if a is not None}
        return sorted(found, key=lambda a: a.number)

    # accesses
    def load(self, m: Any, patch: Patch) -> None:
        self._check(m, self._of_warp(m, LOAD), patch, True, False)

    def store(self, m: Any, patch: Patch) -> None:
        self._check(m, self._of_warp(m, STORE), patch, False, True)

    def pipe(self, m: Any, access: Access, patch: Patch, *, reads: bool, writes: bool) -> None:
        self._check(m, access, patch, reads, writes)

    def _of_warp(self, m: Any, kind: str) -> Access:
        waits = m.unit.groups.get(kind)
        if waits is None:
            waits = m.unit.groups[kind] = Waits(m.cta.cluster.new_agent())
        return Access(m, kind, waits.agent, waits.epoch)

    def _check(self, m: Any, me: Access, patch: Patch, reads: bool, writes: bool) -> None:
        for owner in dict.fromkeys(self.owners[patch.column // GRAIN : -(-(patch.column + patch.columns) // GRAIN)]):
            if owner is not None and not owner.usable(m):
                raise _not_yet_allocated(m, self.cta, patch, owner, "written" if writes else "read")
        part = self.at[patch.index]
        found = sorted(distinct(part.ravel()))
        if reads and any(self.cells[i].writer is None for i in found):
            self._unwritten(m, me, patch, part)
        for i in found:
            a = _unordered(self.cells[i], me, m, writes, True)
            if a is not None:
                verb = "written" if writes and not reads else "read"
                for tell in m.run.watch.lacks_tensor_fence:
                    tell(m, self._race(m, a, patch, verb, me))
                a = _unordered(self.cells[i], me, m, writes, False)
                if a is not None:
                    raise self._race(m, a, patch, verb, me)
        if writes:
            part[...] = self._cell(Cell(me, frozenset()))
            return
        for i in found:
            old = self.cells[i]
            stay = (r for r in old.readers if not _ordered(r, me, m, False, False, True))
            new = self._cell(Cell(old.writer, frozenset((*stay, me))))
            if len(found) == 1:
                part[...] = new
            else:
                part[part == i] = new

    def _cell(self, cell: Cell) -> int:
        self.cells.append(cell)
        return len(self.cells) - 1

    def _unwritten(self, m: Any, me: Access, patch: Patch, part: NDArray[np.int32]) -> None:
        """A load takes whole columns of the warp's lanes, also where a multiply of 64 rows left some of them out: what
        it gives for these is undefined."""
        written = np.array([c.writer is not None for c in self.cells])[part]
        if me.kind == LOAD and written.any(axis=0).all():
            for lanes in m.run.watch.reads_unwritten_lanes:
                lanes(m, patch, written)
            return
        for tell in m.run.watch.reads_unwritten_tensor_memory:
            tell(m, patch)

    def _race(self, m: Any, a: Access, patch: Patch, verb: str, me: Access | None = None) -> RaceError:
        wrote = any(self.cells[i].writer is a for i in distinct(self.at[patch.index].ravel()))
        name = m.row.name if m.row is not None else ""
        where = f" of CTA {self.cta.rank}" if self.cta.cluster.size > 1 else ""
        lacks, fix, done = _missing(m, a, me)
        did = ("wrote it" if wrote else "read it") if done else ("still writes it" if wrote else "still reads it")
        return RaceError(
            f"race: tensor memory{where}, {patch}, is {verb} by {name} of {m.describe()} at {m.place}\n"
            f"  but {a.name} issued by {who(a.threads)} at {a.place} {did}: {lacks}\n"
            f"  fix: {fix}"
        )


# ---------------------------------------------------------------- order


def _unordered(cell: Cell, me: Access, m: Any, writes: bool, fences: bool) -> Access | None:
    """An earlier access of an element that must come before this one, and need not; fences: or that nothing but a
    missing fence keeps from it."""
    after = False  # whether this comes after a read of what was written, and so after the write
    for r in sorted(cell.readers, key=lambda a: a.number) if writes else ():
        if r is not me and not _ordered(r, me, m, False, True, fences):
            return r
        after = True
    w = cell.writer
    return w if w is not None and w is not me and not after and not _ordered(w, me, m, True, writes, fences) else None


def _ordered(a: Access, me: Access, m: Any, wrote: bool, writes: bool, fences: bool) -> bool:
    """Tell whether what `a` did to an element (wrote it, or only read it) comes before what `me` does there."""
    if a.kind == LOAD == me.kind:
        return a.unit is me.unit
    if a.pipe is not None and me.pipe is not None and keeps_order(a.pipe, me.pipe, wrote, writes):
        return all(a.before(t, fences) or a.completed(t, fences) for t in m.clocks())
    return all(a.completed(t, fences) for t in m.clocks())


def keeps_order(a: Pipe, b: Pipe, wrote: bool, writes: bool) -> bool:
    """Tell whether two operations of the matrix unit run in the order in which they were issued (see above), for what
    the first wrote (or read) of an element that the second writes (or reads)."""
    if b.what == "mma":
        if a.what == "mma":
            return (a.accumulator == b.accumulator and wrote == writes) or (writes and not wrote)
        return True
    if a.what == "mma":
        return b.what == "shift" or not wrote
    return a.what == "shift" and b.what == "cp" and b.after_shift


# ---------------------------------------------------------------- reports


def _missing(m: Any, a: Access, me: Access | None) -> tuple[str, str, bool]:
    """Give what is missing between the two, the fix, and whether the first was known to be complete: for the first
    thread for which something is missing."""
    t = next((c for c in m.clocks() if not a.completed(c)), m.clocks()[0])
    mine = a.lo <= t.agent < a.hi
    wait = {LOAD: "tcgen05.wait::ld", STORE: "tcgen05.wait::st"}.get(a.kind, "tcgen05.commit to an mbarrier and a wait")
    complete = t.base.at(FULL, a.agent) >= a.epoch
    if mine and not complete:
        pipeline = "" if me is None or a.pipe is None or me.pipe is None else f", and {_no_pipeline(a.pipe, me.pipe)}"
        return f"nothing waited for that: missing {wait}{pipeline}", f"{wait} after it and before this line", False
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


_CALLED = {"mma": "multiply", "cp": "copy", "shift": "shift"}


def _no_pipeline(a: Pipe, b: Pipe) -> str:
    """Say why two operations of the matrix unit need not run in order."""
    if a.what == b.what == "mma":
        return (
            "multiplies run in order only into the same accumulator, of the same shape and kind, or where the second's "
            "accumulator is what the first reads"
        )
    return f"a {_CALLED[b.what]} need not run after an earlier {_CALLED[a.what]} of the same thread"


def _where(cta: Any) -> str:
    return f" of CTA {cta.rank}" if cta.cluster.size > 1 else ""


def _not_yet_allocated(m: Any, cta: Any, patch: Patch, owner: Allocation, verb: str) -> RaceError:
    meet = "cuda.syncthreads()" if m.cta is cta else "cluster_arrive and cluster_wait"
    return RaceError(
        f"race: tensor memory{_where(cta)}, {patch}, is {verb} by {m.row.name} of {m.describe()} at {m.place}\n"
        f"  but nothing orders that after tcgen05.alloc by {who(owner.threads)} at {owner.place}, which gave these "
        f"columns\n"
        f"  fix: let all that use them meet after the allocation ({meet}), and then read the address that it wrote"
    )


def _peer_still_allocates(m: Any, peer: Any, made: Allocation | None) -> RaceError:
    there = f", by {who(made.threads)} at {made.place}" if made is not None else ", which has not come to it"
    return RaceError(
        f"race: tcgen05.dealloc of {m.describe()} at {m.place} with cta_group 2, but nothing orders that after the "
        f"tcgen05.alloc of its peer, CTA {peer.rank}{there}\n"
        f"  a GPU ends the kernel (unspecified launch failure)\n"
        f"  fix: the two CTAs meet between tcgen05.alloc and tcgen05.dealloc (cluster_arrive and cluster_wait, or an "
        f"mbarrier of each that the other's warp arrives at before it frees)"
    )
