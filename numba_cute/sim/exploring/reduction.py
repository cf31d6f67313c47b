# SPDX-License-Identifier: Apache-2.0
"""Which other orders of a run's events may differ from it: dynamic partial-order reduction on the phases of barriers.

Two events commute unless one decides what the other meets: arrivals of one phase do, those of two phases do not; a wait
and the end of a phase do not; atomics at one place do not, unless both only read. All orders of commuting events are one
(Mazurkiewicz), so it is enough to run one of each, and from each run on to exchange the pairs that do not commute and
that nothing orders (Flanagan and Godefroid, "Dynamic Partial-Order Reduction for Model Checking Software", 2005; with
the sequences of Abdulla et al., "Optimal Dynamic Partial Order Reduction", 2014).

The end of a phase is an event of the barrier's own, after all signals of the phase and all waits that passed during it:
which signal came last decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

ARRIVES, ANNOUNCES, DELIVERS = "arrives", "announces", "delivers"
WAITS, LEAVES, COMPLETES, READS, WRITES, ISSUES = "waits", "leaves", "completes", "reads", "writes", "issues"
SIGNALS = frozenset((ARRIVES, ANNOUNCES, DELIVERS))


class Effect(NamedTuple):
    """What an event does. how: one of the names above. on: a barrier, or a place in memory; the process that ISSUES
    begins. phase: of the barrier as it was then: that of a signal, the one under way as a wait passes, that which
    COMPLETES, the use that a thread LEAVES. An end stands behind the signal that brought it."""

    how: str
    on: Hashable
    phase: int = 0


class Event(NamedTuple):
    """A step of a process that others may notice. process: a thread, or something that it issued."""

    process: Hashable
    effects: tuple[Effect, ...]


class Alternative(NamedTuple):
    """An order to try. schedule: the processes of its first events. first, second: the events of the run that it
    exchanges. key: the same for orders that do not differ."""

    schedule: tuple[Hashable, ...]
    first: int
    second: int
    key: Hashable


class Run:
    """The events of one run, and what comes before what.

    past: of each event those that come before it in all orders that do not differ from this one, as bits. own: of each
    event what its process knew before it."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self._ordered: set[tuple[Hashable, int]] = set()
        """Phases whose signals do not commute: bytes may be announced after the last arrival."""
        while True:
            self._relate()
            unsafe = set(self._unsafe()) - self._ordered
            if not unsafe:
                break
            self._ordered |= unsafe
        self._hashes = self._named()

    @property
    def key(self) -> Hashable:
        """The same for all orders that do not differ."""
        return frozenset(self._hashes)

    def _relate(self) -> None:
        self.past: list[int] = []
        self.own: list[int] = []
        self.pairs: list[tuple[int, int]] = []
        """Events that do not commute, and the second of which knew nothing of the first."""
        self._signals: dict[Any, list[int]] = defaultdict(list)
        self._waits: dict[Any, list[int]] = defaultdict(list)
        self._ends: dict[Any, int] = defaultdict(int)
        reads: dict[Any, list[int]] = defaultdict(list)
        writes: dict[Any, list[int]] = defaultdict(list)
        last: dict[Hashable, int] = {}
        for j, event in enumerate(self.events):
            past = own = last.get(event.process, 0)
            self.own.append(own)
            for how, on, phase in event.effects:
                at = on, phase
                if how in SIGNALS:
                    past |= self._ends[on, phase - 1]
                    self._exchange(self._signals[on, phase - 1], j, own)
                    if at in self._ordered:
                        self._exchange(self._signals[at], j, own)
                        past |= self._all(self._signals[at])
                    self._signals[at].append(j)
                elif how == WAITS:
                    past |= self._ends[on, phase - 1]
                    self._exchange(self._signals[on, phase - 2], j, own)
                    self._waits[at].append(j)
                elif how in (READS, WRITES):
                    past |= self._all(writes[on])
                    self._exchange(writes[on], j, own)
                    if how == WRITES:
                        past |= self._all(reads[on])
                        self._exchange(reads[on], j, own)
                    (writes if how == WRITES else reads)[on].append(j)
            self.past.append(past)
            for how, on, phase in event.effects:
                if how == COMPLETES:
                    self._complete(on, phase, j)
                elif how == LEAVES:
                    past = self.past[j] = (past | self._ends[on, phase]) & ~(1 << j)
                elif how == ISSUES:
                    last[on] = past | 1 << j
            last[event.process] = past | 1 << j

    def _complete(self, on: Hashable, phase: int, j: int) -> None:
        """The end of a phase: a wait that passed before may come after it, unless some signal knows of the wait."""
        signals = self._all(self._signals[on, phase])
        waits = self._waits[on, phase]
        self.pairs += [(w, j) for w in waits if not signals >> w & 1]
        self._ends[on, phase] = self._ends[on, phase - 1] | signals | self._all(waits)

    def _all(self, some: list[int]) -> int:
        found = 0
        for k in some:
            found |= self.past[k] | 1 << k if k < len(self.past) else 0
        return found

    def _exchange(self, some: list[int], j: int, own: int) -> None:
        self.pairs += [(i, j) for i in some if i != j and not own >> i & 1]

    def _unsafe(self) -> Iterator[tuple[Hashable, int]]:
        """Phases with an announcement of which no arrival knows, so that they may be over before it."""
        for at, signals in self._signals.items():
            does = {k: {e.how for e in self.events[k].effects if (e.on, e.phase) == at} for k in signals}
            arrivals = [k for k in signals if ARRIVES in does[k]]
            known = self._all(arrivals)
            if any(ANNOUNCES in does[k] and not known >> k & 1 for k in signals):
                yield at

    def _named(self) -> list[int]:
        """A number for each event, with all that comes before it."""
        counts: dict[Hashable, int] = defaultdict(int)
        found: list[int] = []
        for event, past in zip(self.events, self.past):
            counts[event.process] += 1
            effects = tuple(e for e in event.effects if e.how != COMPLETES)
            before = frozenset(h for k, h in enumerate(found) if past >> k & 1)
            found.append(hash((event.process, counts[event.process], effects, before)))
        return found

    def alternatives(self) -> Iterator[Alternative]:
        """The orders that this run gives rise to: in each, of two events the second comes before the first."""
        for i, j in sorted(set(self.pairs)):
            kept = [*range(i), *(k for k in range(i + 1, j) if not self.past[k] >> i & 1)]
            schedule = tuple(self.events[k].process for k in (*kept, j))
            yield Alternative(schedule, i, j, (frozenset(self._hashes[k] for k in kept), self.events[j].process))


def search(run: Callable[[tuple[Hashable, ...]], list[Event]], most: int) -> tuple[int, int, bool]:
    """Run one order of each class, the first as it comes; what `run` raises passes.

    run: runs the order that begins with the given processes, and gives its events. Gives how many orders that differ
    there were, how many runs, and whether these are all."""
    todo: list[tuple[Hashable, ...]] = [()]
    queued: set[Hashable] = set()
    known: set[Hashable] = set()
    runs = 0
    while todo and runs < most:
        done = Run(run(todo.pop()))
        runs += 1
        if done.key in known:
            continue
        known.add(done.key)
        for alternative in done.alternatives():
            if alternative.key not in queued:
                queued.add(alternative.key)
                todo.append(alternative.schedule)
    return len(known), runs, not todo
