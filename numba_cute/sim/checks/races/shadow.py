# SPDX-License-Identifier: Apache-2.0
"""Shadow memory: who wrote each byte last, and who has read it since; and whether the next access is ordered.

A write must be known (see `clocks`) to whoever accesses the byte next, and a read to whoever overwrites it. What the
async proxy accesses must, if the generic proxy wrote it, also have a fence.proxy.async on the way (PTX ISA, "Proxies"
and "Causality order"); from the async to the generic proxy the wait itself is enough, and so it is, in practice, for
overwriting what the generic proxy has read (CUTLASS's pipelines rely on it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ....isa.form.instr import ASYNC, CP_ASYNC_GROUP
from ...ground.access import Access, Box, Brought, Ids, Region, Rows, all_true
from ...ground.clocks import FULL, READS, ThreadClock, distinct_bases
from ...hardware.together import NotTogether
from .explain import Conflict, constant_written, over_barrier, race, ranges
from .tiles import LEAST, MOST, Tiles

WIDEST_ATOMIC = 16
"""Bytes of the widest atomic of a thread; a reduction of more by TMA stands for all before it."""
KEPT_ATOMICS = 4
"""The number of blocks, and of warps, whose accesses before the last atomic are kept: time stays linear."""


class Shadow:
    """The shadow of one memory, which names its addresses: a CTA's, or an allocation of global memory."""

    __slots__ = ("memory", "writers", "readers", "updated", "before", "tiles")

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.writers: Ids = np.zeros(memory.data.nbytes, np.int32)  # an access
        self.readers: Ids = np.zeros(memory.data.nbytes, np.int32)  # a set: reads, and atomics before the last one
        self.updated = False  # whether such atomics may be among the readers
        self.before: Any = None  # which bytes clusters have read that are forgotten (see `retired`), if there are any
        self.tiles: Tiles | None = None  # what is looked at as a whole (see `History.tiles_of`)

    def overwritten(self, region: Any) -> None:
        """Nobody has read a region since it was written, which is now, not as a whole."""
        region.set(self.readers, 0)
        if self.tiles is not None:
            self.tiles.wrote(*region.hull)


def distinct(ids: Ids) -> set[int]:
    if ids.size <= 32:
        return set(ids.tolist())
    if ids[0] == ids[-1] and all_true(ids == ids[0]):
        return {int(ids[0])}
    at = np.flatnonzero(ids[1:] != ids[:-1])
    return {int(ids[0]), *ids[at + 1].tolist()}


def shadow_of(memory: Any) -> Shadow:
    """The shadow of a memory, made when it is first asked for."""
    if memory.shadow is None:
        memory.shadow = Shadow(memory)
    return memory.shadow  # type: ignore[no-any-return]


class Bundle:
    """An access of each of some lanes that ran together: their numbers from `number` on are made accesses where one is
    looked at. column: the numbers. sets: those of the sets of readers that hold one each."""

    __slots__ = ("machine", "epochs", "number", "column", "sets")

    def __init__(self, m: Any, epochs: list[int], number: int, sets: int) -> None:
        m.fix_place()
        self.machine, self.epochs, self.number = m, epochs, number
        self.column = np.arange(number, number + m.lanes, dtype=np.int32)[:, None]
        self.sets = np.arange(sets, sets + m.lanes, dtype=np.int32)[:, None]

    def access(self, number: int) -> Access:
        """The access of one lane."""
        at = number - self.number
        agent = self.machine.threads[at].clock.agent
        found = Access(self.machine.alone(at), agent, agent + 1, self.epochs[at], None, None)
        found.number = number
        return found


class History:
    """All accesses of one launch, and the check of each new one."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self.accesses: list[Any] = [None]
        """By number; a `Bundle` stands for those of its lanes at which nobody has looked."""
        self._sets: list[Any] = [frozenset()]
        """By number the sets of accesses of one cluster; one of several is -n for the nth of `_unions`. A number is
        that of the only access in it."""
        self._set_ids: dict[frozenset[int], int] = {frozenset(): 0}
        self._unions: list[tuple[int, ...]] = [()]
        self._union_ids: dict[tuple[int, ...], int] = {}
        self._added: dict[tuple[int, int], int] = {}
        self._recent: dict[Any, int] = {}
        self._to_be_same: list[tuple[Any, Region, Any, Exception]] = []
        """Writes whose values must be those that were there: they are written when the next access is checked."""
        self._to_bring_the_same: list[tuple[Brought, Brought, Exception]] = []
        """Pairs of cp.async that must bring the same."""

    def by_threads(self, m: Any, atomic: str | None = None) -> int:
        """The access of the issuing threads at their current epochs."""
        first = m.threads[0].clock
        key = (first.agent, len(m.threads), first.epoch, m.key, atomic, m.cta.cluster)
        found = self._recent.get(key)
        if found is None:
            lo, n = first.agent, len(m.threads)
            epoch = first.epoch if n == 1 else np.array([t.clock.epoch for t in m.threads], np.int32)
            found = self._recent[key] = self.add(Access(m, lo, lo + n, epoch, None, None, atomic))
        return found

    @property
    def numbers(self) -> int:
        """Count the accesses that have a number, 0 among them."""
        return len(self.accesses)

    @property
    def sets(self) -> int:
        """Count the sets that have a number, 0 among them."""
        return len(self._sets)

    @property
    def unions(self) -> int:
        """Count the unions, the empty one among them."""
        return len(self._unions)

    def single_accesses(self, first: int) -> list[Any]:
        """The sets from a number on: of each made by a bundle its only access, of the others what is not a number."""
        return self._sets[first:]

    def truncate(self, accesses: int, sets: int, unions: int) -> None:
        """Forget all from these numbers on."""
        del self.accesses[accesses:], self._sets[sets:], self._unions[unions:]
        self._set_ids = {s: n for s, n in self._set_ids.items() if n < sets}
        self._union_ids = {u: n for u, n in self._union_ids.items() if n < unions}
        self._added.clear()
        self._recent.clear()

    def access(self, number: int) -> Access:
        """The access of a number."""
        found = self.accesses[number]
        if type(found) is Bundle:
            found = self.accesses[number] = found.access(number)
        return found  # type: ignore[no-any-return]

    def bundle(self, m: Any, epochs: list[int]) -> Bundle:
        """An access of each of `m`'s threads, at these epochs."""
        made = Bundle(m, epochs, len(self.accesses), len(self._sets))
        self.accesses += [made] * m.lanes
        self._sets += made.column[:, 0].tolist()
        self.run.noted = len(self.accesses)
        return made

    def _set_of(self, number: int) -> frozenset[int]:
        """The set of a number, of accesses of one cluster."""
        found = self._sets[number]
        if type(found) is int:
            found = self._sets[number] = frozenset((found,))
        return found  # type: ignore[no-any-return]

    def add(self, access: Access) -> int:
        access.number = len(self.accesses)
        self.accesses.append(access)
        self.run.noted = len(self.accesses)
        return access.number

    def check(
        self, m: Any, memory: Any, region: Region, write: bool, *, by: Access | None = None, atomic: str | None = None,
        remember: bool = True,
    ) -> None:  # fmt: skip
        """Check one access, and remember it. by: the asynchronous access that it is; else the threads' own. atomic: the
        scope of one."""
        self.settle()
        shadow, clocks = shadow_of(memory), m.clocks()
        me = self.by_threads(m, atomic) if by is None else by.number
        is_async = m.row is not None and m.row.proxy == ASYNC
        need = memory.fence_row if is_async else FULL
        if self._as_tiles(m, shadow, region, me, need, write, atomic, remember):
            return
        if write:
            self.settle_tiles(shadow, region)
        writers = region.get(shadow.writers)
        for i in distinct(writers):
            if i == 0:
                told = self.run.watch.reads_unwritten if (not write or atomic) and memory.poisoned else ()
                missing = memory.missing(region, writers) if told else None
                if missing is not None:
                    for tell in told:
                        tell(m, memory, region.address(missing))
                continue
            a = self.access(i)
            row = need if a.group in (None, CP_ASYNC_GROUP) else READS if write else FULL
            if a.group is None and a.on is not None and a.on.live and i != me:
                raise over_barrier(m, a.on, write)
            if i != me and not a.one_step(atomic, m) and not self.ordered(a, m, clocks, row):
                at = region.address(int(np.flatnonzero(writers == i)[0]))
                why = self._why(a, m, clocks, is_async)
                both = ranges(memory, region, shadow.writers == i)
                found = Conflict(True, write, why, self._late(m, i), self._scopes(a, atomic), both)
                error = race(m, memory, at, a, found)
                if by is not None and a.copies is not None and by.copies is not None:
                    self._copy_the_same(m, a.copies, by.copies, error)
                elif write and not (atomic or a.atomic or by or a.group is not None or isinstance(region, Box)):
                    self._write_the_same(m, memory, region, error)
                else:
                    raise error
        if write or shadow.updated:
            self._check_others(m, shadow, region, me, write, atomic, clocks)
        if write:
            self._overwrite(shadow, region, me, atomic)
        elif remember:
            self.add_reader(m, shadow, region, me, clocks)

    def _as_tiles(
        self, m: Any, shadow: Shadow, region: Region, me: int, need: int, write: bool, atomic: Any, remember: bool
    ) -> bool:
        """Check an access to much of shared memory by whole ranges, and remember it, if all is in order as far as can
        be seen so; else nothing is done."""
        if self.run.reports or atomic is not None or not remember or not shadow.memory.tiled or shadow.updated:
            return False
        plain = type(region) is Region
        if region.nbytes < LEAST or not plain and (write or not isinstance(region, Rows) or not region.lasting):
            return False
        shadow.tiles = tiles = shadow.tiles or Tiles()
        start, stop = region.hull
        found = tiles.writers(start, stop)
        if found is None and (not write or np.count_nonzero(shadow.writers[start:stop])):
            return False
        over = [*tiles.within(start, stop)] if write else []
        if write and (np.count_nonzero(shadow.readers[start:stop]) or any(p.around(start, stop) for p in over)):
            return False
        before = [self.access(i) for i in found or () if i != me]
        asked = [(a, need if a.group in (None, CP_ASYNC_GROUP) else READS if write else FULL) for a in before]
        asked += [(self.access(i), READS) for p in over for i in self.members(p.readers) if i != me]
        clocks = m.clocks()
        if not all(self._surely(a, m, clocks, row) for a, row in asked):
            return False
        if write:
            tiles.overwritten(start, stop)
            tiles.wrote(start, stop, me)
            shadow.writers[start:stop] = me
        else:
            pattern = tiles.pattern((start, stop) if plain else region, region)
            pattern.readers = self._with(pattern.readers, me, m, clocks)
            if len(tiles.patterns) > MOST:
                self.settle_tiles(shadow, Region(0, shadow.readers.size))
        return True

    def _surely(self, a: Access, m: Any, clocks: Any, row: int) -> bool:
        """Tell whether an access, of no mbarrier and not of what is never written, is known to who issues `m`."""
        return not a.constant and (a.on is None or a.group is not None) and self.ordered(a, m, clocks, row)

    def settle_tiles(self, shadow: Shadow, region: Region) -> None:
        """Let the bytes of a region say who has read them."""
        if shadow.tiles is None or not shadow.tiles.patterns:
            return
        for key, p in [*shadow.tiles.patterns.items()]:
            if p.meets(*region.hull):
                del shadow.tiles.patterns[key]
                part = p.part()
                readers = part.get(shadow.readers).copy()
                for s in distinct(readers):
                    readers[readers == s] = self.set_of({*self.members(s), *self.members(p.readers)})
                part.set(shadow.readers, readers)

    def _write_the_same(self, m: Any, memory: Any, region: Region, error: Exception) -> None:
        """Take a plain write after an unordered one for none if its values are those that are there."""
        for tell in self.run.watch.writes_unordered:
            tell(m, error)
        self._to_be_same.append((memory, region, region.get(memory.data).copy(), error))

    def _copy_the_same(self, m: Any, before: Brought, now: Brought, error: Exception) -> None:
        """Take a cp.async over the bytes of an unordered one for none if both bring the same values, once they have."""
        for tell in self.run.watch.writes_unordered:
            tell(m, error)
        self._to_bring_the_same.append((before, now, error))

    def settle(self) -> None:
        """Raise the error of a write whose values are others."""
        for pair in [p for p in self._to_bring_the_same if p[0] and p[1]]:
            self._to_bring_the_same.remove(pair)
            if pair[0] != pair[1]:
                raise pair[2]
        while self._to_be_same:
            memory, region, before, error = self._to_be_same.pop()
            if (region.get(memory.data) != before).any():
                raise error

    def never_written(self, m: Any, memory: Any, region: Region) -> None:
        """Check a read through the read-only cache: nobody has written there, whatever orders the two."""
        writers = region.get(shadow_of(memory).writers)
        for i in distinct(writers) - {0}:
            raise constant_written(m, memory, region.address(int(np.flatnonzero(writers == i)[0])), self.access(i), m)
        self.access(self.by_threads(m)).constant = True

    def reads(self, m: Any, memory: Any, region: Region, by: Access) -> None:
        """Remember the asynchronous read `by`, whose order after what was written is checked elsewhere."""
        self.add_reader(m, shadow_of(memory), region, by.number, m.clocks())

    def _check_others(
        self, m: Any, shadow: Shadow, region: Region, me: int, write: bool, atomic: str | None, clocks: Any
    ) -> None:
        """Check a write against what was read, and any access against atomics before the last one."""
        if write and shadow.before is not None and region.get(shadow.before).any():
            raise NotTogether("what a block has read that has ended is written")
        readers = region.get(shadow.readers)
        for s in distinct(readers):
            for i in self.members(s):
                a = self.access(i)
                if a.constant and write:
                    at = region.address(int(np.flatnonzero(readers == s)[0]))
                    raise constant_written(m, shadow.memory, at, m, a)
                if i == me or not (write or (a.atomic and a.wrote)) or a.one_step(atomic, m):
                    continue
                if not self.ordered(a, m, clocks, READS if write else FULL):
                    at = region.address(int(np.flatnonzero(readers == s)[0]))
                    late, read = self._late(m, i), [n for n in distinct(shadow.readers) if i in self.members(n)]
                    both = ranges(shadow.memory, region, np.isin(shadow.readers, read))
                    found = Conflict(a.wrote, write, "", late, self._scopes(a, atomic), both)
                    raise race(m, shadow.memory, at, a, found)

    def _overwrite(self, shadow: Shadow, region: Region, me: int, atomic: str | None) -> None:
        """Remember a write. An atomic need not come after all atomics before it, so that some are kept; plain accesses
        before it are too, for another atomic that comes after this one need not come after them."""
        if atomic is not None and region.nbytes <= WIDEST_ATOMIC:
            wrote = distinct(region.get(shadow.writers)) - {0}
            for i in (me, *wrote):
                self.access(i).wrote = True
            before = {i for s in distinct(region.get(shadow.readers)) for i in self.members(s)}
            kept = self._latest(before | wrote)
            shadow.updated |= bool(kept)
            shadow.overwritten(region)
            region.set(shadow.readers, self.set_of(kept))
        else:
            shadow.overwritten(region)
        region.set(shadow.writers, me)

    def _latest(self, accesses: set[int]) -> frozenset[int]:
        """Return the last accesses of some blocks and warps, of atomics and of plain accesses."""
        kept: set[int] = set()
        known = [(i, self.access(i)) for i in sorted(accesses)]
        for some in ([(i, a) for i, a in known if a.atomic], [(i, a) for i, a in known if not a.atomic]):
            kept.update(list({a.threads[0].cta: i for i, a in some}.values())[-KEPT_ATOMICS:])
            kept.update(list({a.threads[0].warp: i for i, a in some}.values())[-KEPT_ATOMICS:])
        return frozenset(kept)

    @staticmethod
    def _scopes(a: Access, atomic: str | None) -> tuple[str, str] | None:
        """The scopes of two atomics, if they are."""
        return (atomic, a.atomic) if atomic and a.atomic else None

    def add_reader(self, m: Any, shadow: Shadow, region: Region, me: int, clocks: Any) -> None:
        """Remember that the access `me` has read a region."""
        readers = region.get(shadow.readers)
        found = distinct(readers)
        if len(found) == 1:
            region.set(shadow.readers, self._with(found.pop(), me, m, clocks))
            return
        new = readers.copy()
        for s in found:
            new[readers == s] = self._with(s, me, m, clocks)
        region.set(shadow.readers, new)

    def _with(self, s: int, me: int, m: Any, clocks: Any) -> int:
        """The set of readers `s` and `me`, without those of its cluster that `me` comes after: who knows `me` knows
        them. The other clusters' stay, so that many blocks that read the same take linear time."""
        found = self._added.get((s, me))
        if found is None:
            parts = self._parts(s)
            mine = next((p for p in parts if self._cluster(p) is m.cta.cluster), 0)
            old = self._set_of(mine)
            if self.access(me).group != "mbarrier":  # whoever waits for a copy need not know what its issuer knew
                old = frozenset(i for i in old if self._stays(self.access(i), me, m, clocks))
            new = self._part(old | {me})
            found = self._added[s, me] = self._union([*(p for p in parts if p != mine), new])
        return found

    def _stays(self, a: Access, me: int, m: Any, clocks: Any) -> bool:
        """Tell whether a reader is still to be remembered after `me`."""
        return not self.access(me).constant if a.constant else not self.ordered(a, m, clocks, READS)

    def _parts(self, s: int) -> tuple[int, ...]:
        """A set's parts, each of one cluster."""
        return self._unions[-s] if s < 0 else (s,) if s else ()

    def _cluster(self, part: int) -> Any:
        return self.access(next(iter(self._set_of(part)))).cluster

    def members(self, s: int) -> Iterable[int]:
        """All accesses of a set."""
        return self._set_of(s) if s >= 0 else chain.from_iterable(map(self._set_of, self._unions[-s]))

    def set_of(self, accesses: Iterable[int]) -> int:
        """The number of the set of these accesses."""
        made: dict[Any, set[int]] = {}
        for i in accesses:
            made.setdefault(self.access(i).cluster, set()).add(i)
        return self._union([self._part(frozenset(part)) for part in made.values()])

    def _part(self, accesses: frozenset[int]) -> int:
        """The number of the set of these accesses of one cluster."""
        found = self._set_ids.setdefault(accesses, len(self._sets))
        if found == len(self._sets):
            self._sets.append(accesses)
        return found

    def _union(self, parts: list[int]) -> int:
        """The number of the set that has these parts."""
        if len(parts) < 2:
            return parts[0] if parts else 0
        key = tuple(sorted(parts))
        found = self._union_ids.setdefault(key, len(self._unions))
        if found == len(self._unions):
            self._unions.append(key)
        return -found

    def ordered(self, a: Access, m: Any, clocks: Sequence[ThreadClock], row: int) -> bool:
        """Tell whether all who issue `m` know of the access, for the purpose of `row`."""
        if a.cluster is not m.cta.cluster:
            return all(a.within(base, row) for base in distinct_bases(clocks))
        if a.unit is not None and a.unit is m.unit and row < FULL + 1:
            return True  # the same warp or warpgroup together, in program order
        return a.known_by(clocks, row)

    @staticmethod
    def _late(m: Any, i: int) -> bool:
        """Tell whether `m` is an asynchronous operation that was issued before access number `i`."""
        return m.deferred and m.op is not None and m.op.access is not None and i > m.op.access.number

    def _why(self, a: Access, m: Any, clocks: Any, is_async: bool) -> str:
        """Name what is missing: an order at all ("order"), a wider scope ("scope"), or a proxy fence ("proxy")."""
        if a.group not in (None, CP_ASYNC_GROUP):
            return "order"
        if is_async and self.ordered(a, m, clocks, FULL):
            return "proxy"
        return "scope" if self.ordered(a, m, clocks, READS) else "order"
