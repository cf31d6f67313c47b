# SPDX-License-Identifier: Apache-2.0
"""The shadow's check of one access by several lanes that run together, each at its own address: done for all at once
where everything is in order, which is all that it says. What is not is checked lane by lane, as if each ran alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....isa.form.instr import CP_ASYNC_GROUP
from ...ground.access import Access, Pieces, Rows, all_true
from ...ground.clocks import FULL, READS, Standing
from ...hardware.machine import Machine
from ...hardware.together import InTurn, of_threads, standing_of
from .shadow import Bundle, History, Shadow, distinct, shadow_of

Column = NDArray[np.int32]
FEW = 8
"""The most accesses of other kinds (a copy's, a warp's) to the lanes' bytes that are looked at one by one."""


class Warps:
    """Checks accesses of lanes that run together; InTurn where they write and are to do so one by one.

    Of accesses and of sets of readers, by number, it knows in arrays those that lanes made so."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._agents = np.full(1024, -1, np.int32)  # by number of an access: -1 where it is of another kind
        self._epochs = np.zeros(1024, np.int32)
        self._clusters = np.zeros(1024, np.int32)  # the number of its cluster, from 1 on
        self._alone = np.zeros(1024, np.int32)  # by number of a set: the only access in it, or 0
        self._numbers: dict[Any, int] = {}  # of clusters
        self._bundles: dict[Any, Bundle] = {}
        self._wholes: dict[Any, int] = {}
        self._of_units: dict[Any, tuple[list[Any], Any]] = {}

    def check(self, m: Any, memory: Any, region: Any, write: bool) -> None:
        """Check an access of all of `m`'s threads, and remember it. region: their pieces, or one place for all."""
        h = self.history
        if not isinstance(region, Pieces):
            region = Pieces(np.full(m.lanes, region.start, np.int64), region.nbytes)
        h.settle()
        if write and not region.apart:
            raise InTurn("lanes write to one place")
        for some, part in _by_knowledge(m, region):
            self._grow(some.lanes)
            if shadow_of(memory).updated or not self._at_once(some, memory, part, write):
                if write:
                    raise InTurn("lanes write where one by one is to look")
                for i in range(some.lanes):
                    h.check(some.alone(i), memory, part.one(i), False)

    def _at_once(self, m: Any, memory: Any, region: Pieces, write: bool) -> bool:
        """Do it for all lanes, which know the same of others, if nothing is out of order as far as can be seen so; else
        nothing is done."""
        known, shadow = standing_of(m.threads), shadow_of(memory)
        clocks, agents = known, of_threads(m.threads, _agents)
        mine = agents[:, None], self._number(m.cta.cluster), known.bases[0].v
        writers = _narrow(region.rows(shadow.writers))
        if memory.poisoned and not write and np.count_nonzero(writers) < writers.size:
            return False  # nobody has written some of it
        if not self._follows(m, clocks, mine, writers, write):
            return False
        if write:
            self.history.settle_tiles(shadow, region)
        readers = _narrow(region.rows(shadow.readers))
        if write:
            if shadow.before is not None and np.count_nonzero(region.rows(shadow.before)):
                return False
            if np.count_nonzero(readers) and not self._overwrites(m, clocks, mine, readers):
                return False
            shadow.overwritten(region)
            region.put(shadow.writers, self._bundle(m, known).column)
        elif region.apart:
            self._read(m, known, mine, shadow, region, readers)
        elif known.side_by_side:
            self.history.add_reader(m, shadow, region, self._whole(m, known), clocks)
        else:
            return False
        return True

    def _follows(self, m: Any, clocks: Any, mine: Any, writers: Column, write: bool) -> bool:
        """Tell whether every lane comes after what was written last."""
        if not np.count_nonzero(writers):
            return True
        known = (writers == 0) | self._known(writers, mine, FULL)
        if all_true(known):
            return True
        others = set(writers[~known].tolist())
        if len(others) > FEW:
            return False
        for a in map(self.history.access, others):
            if a.group is None and a.on is not None:  # an mbarrier
                return False
            row = FULL if a.group in (None, CP_ASYNC_GROUP) or not write else READS
            if not self.history.ordered(a, m, clocks, row):
                return False
        return True

    def _overwrites(self, m: Any, clocks: Any, mine: Any, readers: Column) -> bool:
        """Tell whether every lane comes after those that have read."""
        rest = set(readers[~self._knows_readers(readers, mine)].tolist())
        if len(rest) > FEW:
            return False
        accesses = map(self.history.access, {i for s in rest for i in self.history.members(s)})
        return all(not a.constant and self.history.ordered(a, m, clocks, READS) for a in accesses)

    def _read(self, m: Any, known: Standing, mine: Any, shadow: Shadow, region: Pieces, readers: Column) -> None:
        """Remember that each lane has read its own piece. Those before, of whom it knows, need no more be known."""
        me = self._bundle(m, known)
        if np.count_nonzero(readers) and not all_true(self._knows_readers(readers, mine)):
            for i, clock in enumerate(known):
                self.history.add_reader(m.alone(i), shadow, region.one(i), me.number + i, [clock])
            return
        region.put(shadow.readers, me.sets)

    def _knows_readers(self, readers: Column, mine: Any) -> Any:
        alone = self._alone[np.maximum(readers, 0)]
        return (readers == 0) | ((alone > 0) & (readers > 0) & self._known(alone, mine, READS))

    def _known(self, accesses: Column, mine: Any, row: int) -> Any:
        """Tell of accesses, each in its lane's row, whether the lane made it or knows of it. Of other kinds: no."""
        agents, cluster, v = mine
        of, epochs = self._agents.take(accesses), self._epochs.take(accesses)
        known = (v[row].take(of) >= epochs) & (self._clusters.take(accesses) == cluster)
        return known if all_true(known) else (known | (of == agents)) & (self._clusters.take(accesses) == cluster)

    # whole warps
    def check_units(self, m: Any, memory: Any, region: Any, write: bool) -> None:
        """Check an access by several warps, each as one, to as many rows, and remember it."""
        self.history.settle()
        if shadow_of(memory).updated or not self._units_at_once(m, memory, region, write):
            for unit, rows in m.by_units(region):
                self.history.check(unit, memory, rows, write)

    def _units_at_once(self, m: Any, memory: Any, region: Rows, write: bool) -> bool:
        """Do it for all of them, if all their lanes know of what is there, and no two write to one row; else nothing is
        done."""
        h, known, shadow = self.history, standing_of(m.threads), shadow_of(memory)
        if write:
            h.settle_tiles(shadow, region)
        written, read = (distinct(region.get(ids)) for ids in (shadow.writers, shadow.readers))
        apart = region.apart
        if write and (not apart or shadow.before is not None) or 0 in written and memory.poisoned and not write:
            return False
        asked = [(h.access(i), FULL) for i in written - {0}]
        asked += [(h.access(i), READS) for s in read for i in h.members(s)] if write else []
        for a, row in asked:
            if a.on is not None and a.group is None or a.constant:  # an mbarrier; what is never to be written
                return False
            if not h.ordered(a, m, known, READS if write and a.group not in (None, CP_ASYNC_GROUP) else row):
                return False
        if write:
            shadow.overwritten(region)
            region.put(shadow.writers, np.repeat(self._units(m, known), len(region.rows) // len(m.units)))
        elif known.side_by_side:
            h.add_reader(m, shadow, region, self._whole(m, known), known)
        else:
            return False
        return True

    def _units(self, m: Any, known: Standing) -> Any:
        """Note the accesses of `m`'s units, at their current epochs."""
        key = id(m.threads), m.key, known.stamp  # what is kept keeps the threads
        found = self._of_units.get(key)
        if found is None:
            made = [Machine(m.run, m.row, unit.threads, unit, m.case) for unit in m.units]
            numbers = np.array([self.history.by_threads(u) for u in made], np.int32)
            found = self._of_units[key] = m.threads, numbers
        return found[1]

    # what is remembered
    def _number(self, cluster: Any) -> int:
        return self._numbers.setdefault(cluster, len(self._numbers) + 1)

    def _bundle(self, m: Any, known: Standing) -> Bundle:
        """The access of each lane at its current epoch."""
        key = id(m.threads), m.key, known.stamp  # what is kept keeps the threads
        found = self._bundles.get(key)
        if found is None:
            found = self._bundles[key] = self.history.bundle(m, known.epochs)
            own = slice(found.number, found.number + m.lanes)
            self._agents[own], self._epochs[own] = of_threads(m.threads, _agents), found.epochs
            self._clusters[own] = self._number(m.cta.cluster)
            self._alone[found.sets[0, 0] : found.sets[-1, 0] + 1] = found.column[:, 0]
        return found

    def _whole(self, m: Any, known: Standing) -> int:
        """The access of all lanes as one, of whom each is to be known: for places that several read."""
        key = id(m.threads), m.key, known.stamp
        found = self._wholes.get(key)
        if found is None:
            lo, epochs = known[0].agent, np.array(known.epochs, np.int32)
            found = self._wholes[key] = self.history.add(Access(m, lo, lo + m.lanes, epochs, None, None))
        return found

    def forget(self, accesses: int, sets: int) -> None:
        """Forget those from these numbers on, and all clusters."""
        self._agents[accesses:], self._epochs[accesses:], self._clusters[accesses:] = -1, 0, 0
        self._alone[sets:] = 0
        for known in (self._numbers, self._bundles, self._wholes, self._of_units):
            known.clear()

    def _grow(self, more: int) -> None:
        """Have room for so many new accesses and sets."""
        while self.history.numbers + more > len(self._agents):
            n = len(self._agents)
            self._agents = np.concatenate([self._agents, np.full(n, -1, np.int32)])
            none = np.zeros(n, np.int32)
            self._epochs, self._clusters = (np.concatenate([a, none]) for a in (self._epochs, self._clusters))
        while self.history.sets + more > len(self._alone):
            self._alone = np.concatenate([self._alone, np.zeros(len(self._alone), np.int32)])


def _by_knowledge(m: Any, region: Pieces) -> list[tuple[Any, Pieces]]:
    """The access by lanes side by side that know the same of others."""
    known = standing_of(m.threads)
    if known.alike:
        return [(m, region)]
    bases = known.bases
    begins = [i for i in range(len(bases)) if i == 0 or bases[i] is not bases[i - 1]]
    return [(m.some(a, b), region.some(a, b)) for a, b in zip(begins, [*begins[1:], len(bases)])]


def _agents(threads: list[Any]) -> Any:
    return np.array([t.clock.agent for t in threads], np.int32)


def _narrow(rows: Column) -> Column:
    """One number for each lane, if it is the same for all of the lane's bytes; a copy, or the rows themselves."""
    first = rows[:, :1]
    return first if rows.shape[1] == 1 or all_true(rows == first) else rows
