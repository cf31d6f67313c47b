# SPDX-License-Identifier: Apache-2.0
"""Find other orders of a run's events that may differ from it: dynamic partial-order reduction on the phases of
barriers.

Two events commute unless one decides what the other meets: arrivals of one phase do, those of two phases do not; a
wait and the end of a phase do not; atomics at one place do not, unless both only read. All orders of commuting events
are one (Mazurkiewicz), so it is enough to run one of each, and from each run on to exchange the pairs that do not
commute and that nothing orders (Flanagan and Godefroid, "Dynamic Partial-Order Reduction for Model Checking Software",
2005; with the sequences of Abdulla et al., "Optimal Dynamic Partial Order Reduction", 2014).

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
    """The effect of an event. how: one of the names above. on: a barrier, or a place in memory; the process that ISSUES
    begins. phase: the barrier's at that time: that of a signal, the one under way as a wait passes, the one that
    COMPLETES, the use that a thread LEAVES. An end comes after the signal that brought it."""

    how: str
    on: Hashable
    phase: int = 0


class Event(NamedTuple):
    """A step of a process that others may notice. process: a thread, or something that it issued. effects: in order.
    others: threads that do it together with that one. free: whether it happens as soon as it can, since it commutes
    with all others. told: for reports."""

    process: Hashable
    effects: tuple[Effect, ...]
    others: tuple[Hashable, ...] = ()
    free: bool = False
    told: Any = None


class Alternative(NamedTuple):
    """An order to try. schedule: the processes of its first events. first, second: the events of the run that it
    exchanges. key: the same for orders that do not differ."""

    schedule: tuple[Hashable, ...]
    first: int
    second: int
    key: Hashable


class Set(NamedTuple):
    """Events, as bits, with all that comes before them, and what names them in all orders that do not differ."""

    bits: int = 0
    name: Hashable = 0


class Run:
    """The events of one run, and what comes before what.

    past: of each event those that come before it in all orders that do not differ from this one, as bits. own: of each
    event what its process knew before it. key: the same for all orders that do not differ."""

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
        self.key: Hashable = frozenset(self._names)

    def _relate(self) -> None:
        self.past: list[int] = []
        self.own: list[int] = []
        self._names: list[int] = []
        self.pairs: list[tuple[int, int]] = []
        """Events that do not commute, and the second of which knew nothing of the first."""
        self._signals: dict[Any, list[int]] = defaultdict(list)
        self._waits: dict[Any, list[int]] = defaultdict(list)
        self._ends: dict[Any, Set] = defaultdict(Set)
        self._last: dict[Hashable, Set] = defaultdict(Set)
        self._accesses: dict[Any, list[int]] = defaultdict(list)
        for j, event in enumerate(self.events):
            before = [self._last[p] for p in (event.process, *event.others)]
            own = 0
            for found in before:
                own |= found.bits
            self.own.append(own)
            for effect in event.effects:
                before += self._met(effect, j, own)
            self._put(j, before)
            for how, on, phase in event.effects:
                if how == COMPLETES:
                    self._complete(on, phase, j)
            ends = [self._ends[on, phase] for how, on, phase in event.effects if how == LEAVES]
            if ends:
                self._put(j, [*before, *ends])
            done = self._set([j])
            for p in (event.process, *event.others, *(e.on for e in event.effects if e.how == ISSUES)):
                self._last[p] = done

    def _put(self, j: int, before: list[Set]) -> None:
        """Event `j` comes after some sets."""
        past = 0
        for found in before:
            past |= found.bits
        effects = tuple(e for e in self.events[j].effects if e.how != COMPLETES)
        name = hash((self.events[j].process, effects, tuple(s.name for s in before)))
        self.past[j:], self._names[j:] = [past & ~(1 << j)], [name]

    def _set(self, some: list[int]) -> Set:
        bits = 0
        for k in some:
            bits |= self.past[k] | 1 << k
        return Set(bits, frozenset(self._names[k] for k in some))

    def _met(self, effect: Effect, j: int, own: int) -> list[Set]:
        """Return the sets of events that an effect of event `j` comes after, besides those that its process knows."""
        how, on, phase = effect
        if how in SIGNALS:
            self._exchange(self._signals[on, phase - 1], j, own)
            found = [self._ends[on, phase - 1]]
            signals = self._signals[on, phase]
            if (on, phase) in self._ordered:
                self._exchange(signals, j, own)
                found.append(self._set([k for k in signals if k != j]))
            if not signals or signals[-1] != j:
                signals.append(j)
            return found
        if how == WAITS:
            self._exchange(self._signals[on, phase - 2], j, own)
            self._waits[on, phase].append(j)
            return [self._ends[on, phase - 1]]
        if how not in (READS, WRITES):
            return []
        some = self._accesses[on]
        met = [k for k in some if how == WRITES or any(e.how == WRITES and e.on == on for e in self.events[k].effects)]
        self._exchange(met, j, own)
        some.append(j)
        return [self._set([k for k in met if k != j])]

    def _complete(self, on: Hashable, phase: int, j: int) -> None:
        """The end of a phase: a wait that passed before may come after it, unless some signal knows of the wait."""
        signals, waits = self._signals[on, phase], self._waits[on, phase]
        known = self._set(signals).bits
        self.pairs += [(w, j) for w in waits if not known >> w & 1]
        both, before = self._set([*signals, *waits]), self._ends[on, phase - 1]
        self._ends[on, phase] = Set(both.bits | before.bits, (both.name, before.name))

    def _exchange(self, some: list[int], j: int, own: int) -> None:
        self.pairs += [(i, j) for i in some if i != j and not own >> i & 1]

    def _unsafe(self) -> Iterator[tuple[Hashable, int]]:
        """Phases with an announcement of which no arrival knows, so that they may be over before it."""
        for at, signals in self._signals.items():
            does = {k: {e.how for e in self.events[k].effects if (e.on, e.phase) == at} for k in signals}
            announced = [k for k in signals if ANNOUNCES in does[k]]
            known = self._set([k for k in signals if ARRIVES in does[k]]).bits if announced else 0
            if any(not known >> k & 1 for k in announced):
                yield at

    def alternatives(self) -> Iterator[Alternative]:
        """The orders that this run gives rise to: in each, of two events the second comes before the first."""
        for i, j in sorted(set(self.pairs)):
            kept = [*range(i), *(k for k in range(i + 1, j) if not self.past[k] >> i & 1)]
            schedule = tuple(self.events[k].process for k in (*kept, j) if not self.events[k].free)
            yield Alternative(schedule, i, j, (frozenset(self._names[k] for k in kept), self.events[j].process))


class Found(NamedTuple):
    """The result of a search. differ: orders that differ. runs: the number that ran. all: True if no other order
    differs."""

    differ: int
    runs: int
    all: bool


def search(
    run: Callable[[tuple[Hashable, ...], Any], list[Event]], most: int, may: Callable[[Any, Any], bool]
) -> Found:
    """Run one order of each class, the first as it comes; what `run` raises passes.

    run: runs the order that begins with the given processes, and gives its events; also given the events of the run
    that it comes of, and the numbers of the two that it exchanges, or None. may: whether two processes can be
    exchanged."""
    todo: list[tuple[tuple[Hashable, ...], Any]] = [((), None)]
    queued: set[Hashable] = set()
    known: set[Hashable] = set()
    runs, left = 0, False
    while todo and runs < most:
        done = Run(run(*todo.pop()))
        runs += 1
        if done.key in known:
            continue
        known.add(done.key)
        for alternative in done.alternatives():
            i, j = alternative.first, alternative.second
            if not may(done.events[i].process, done.events[j].process):
                left = True
            elif alternative.key not in queued:
                queued.add(alternative.key)
                todo.append((alternative.schedule, (done.events, i, j)))
    return Found(len(known), runs, not todo and not left)
