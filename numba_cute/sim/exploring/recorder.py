# SPDX-License-Identifier: Apache-2.0
"""A run in a given order, and its events: a `Check` that lets the others have their turn before each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

from ..ground.report import who
from ..hardware.schedule import InOrder
from ..hardware.watch import Check
from . import reduction as r

Schedule = tuple[Hashable, ...]
_WIDEST = 16
"""Bytes of the widest atomic: those nearer to each other count as at one place."""


class Plan:
    """The order of a run. schedule: the processes of its first events. choices: instead of that, by the number of an
    event the process (in words) that is not the one that comes as usual. left: whether the schedule could not be
    kept. taken: what `choices` of this run would be. events, told: what happened, and each event in words."""

    def __init__(self, schedule: Schedule = (), choices: dict[int, str] | None = None) -> None:
        self.schedule, self.choices = schedule, choices or {}
        self.left = False
        self.taken: dict[int, str] = {}
        self.events: list[_Event] = []
        self.clusters: dict[Any, Any] = {}
        """The cluster of each CTA."""
        self.count = 0
        """The number of events that are not free."""

    def queue(self, threads: Iterable[Any]) -> Directed:
        """The ready threads of a cluster."""
        return Directed(threads, self)

    def finished(self) -> list[r.Event]:
        """The events, once the run has ended."""
        return [r.Event(e.process, tuple(e.effects), e.others, e.free, e.told) for e in self.events]


class _Event:
    """An event while it is being recorded."""

    __slots__ = ("process", "effects", "others", "free", "told")

    def __init__(self, process: Hashable, others: Iterable[Hashable], free: bool, told: Any) -> None:
        self.process, self.others, self.free, self.told = process, tuple(others), free, told
        self.effects: list[r.Effect] = []


def name_of(process: Any) -> str:
    """A process in words: CTA, thread, and number of what it issued."""
    place, *issued = process
    cta, thread = place
    return f"{'.'.join(map(str, cta))}:{thread}" + "".join(f"+{n}" for n in issued)


class Directed(InOrder):
    """The ready threads of a cluster, those that stand before an event by their processes."""

    def __init__(self, threads: Iterable[Any], plan: Plan) -> None:
        super().__init__(threads)
        self.plan = plan
        self.cluster: Any = None
        self.issued: dict[Hashable, Any] = {}
        """Work that was issued and is under way, by its process: the machine."""
        self.standing: dict[Any, Hashable] = {}
        self.last: Any = None
        self._asked = -1

    def __bool__(self) -> bool:
        return bool(self.ready) or self._planned() in self.issued

    def again(self) -> bool:
        return False

    def next(self) -> Any:
        for t in self.ready:
            if t not in self.standing:
                self.ready.remove(t)
                return t
        planned = self._planned()
        if planned in self.issued and self._completes(planned):
            return None
        by = {process: t for t, process in self.standing.items()}
        usual = self.last if self.last in by else next(iter(by), None)
        chosen = usual if planned is None else planned
        if planned is not None and planned not in by:
            if (
                self.cluster is not None and self.cluster.pollers and self._asked < self.plan.count
            ):  # they ask again, and so stand before an event
                self.ready.extend(self.cluster.pollers)
                self.cluster.pollers, self._asked = [], self.plan.count
                return None
            self.plan.left, self.plan.schedule, chosen = True, (), usual
        if chosen is None:
            return None
        if chosen != usual or self._asked == self.plan.count:
            self.plan.taken[self.plan.count] = name_of(chosen)
        t = by[chosen]
        self.last = chosen
        del self.standing[t]
        self.ready.remove(t)
        return t

    def _planned(self) -> Hashable:
        """The process whose event is to be next; None: as usual."""
        at = self.plan.count
        if at < len(self.plan.schedule):
            return self.plan.schedule[at]
        name = self.plan.choices.get(at)
        return next((p for p in (*self.standing.values(), *self.issued) if name_of(p) == name), name)

    def _completes(self, process: Hashable) -> bool:
        machine, copies = self.issued[process], self.cluster.inflight.copies
        op = next((op for op in copies if op.machine is machine), None)
        if op is None:
            return False
        self.plan.taken[self.plan.count] = name_of(process)
        copies.remove(op)
        op.complete()
        return True


class Recorder(Check):
    """Records the events of a run, and lets other threads have their turn before each."""

    name = "explore"
    summary = "other orders"
    clocks = True

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._at: dict[Any, Any] = {}
        """By thread: the issue of an instruction for which it has had its turn."""
        self._processes: dict[Any, Hashable] = {}
        """The processes of issues under way that will signal a barrier."""
        self._count: dict[Hashable, int] = defaultdict(int)
        self._uses: dict[Any, list[Any]] = defaultdict(list)
        """By named barrier: its uses, and the event of the last arrival at each."""
        self._last: dict[Any, _Event] = {}
        self._born: dict[Any, int] = defaultdict(int)
        self._open: _Event | None = None
        """The event to which the next effect of its process belongs."""

    @property
    def plan(self) -> Plan:
        return self.run.plan  # type: ignore[no-any-return]

    # turns
    def _turn(self, m: Any, again: bool = False) -> None:
        thread = self.run.thread
        if m.deferred or (self._at.get(thread) is m and not again):
            return
        self._at[thread] = m
        ready = m.cta.cluster.ready
        ready.cluster = m.cta.cluster
        ready.standing[thread] = _process(m.threads[0])
        ready.append(thread)
        thread.suspend("its turn", None, m)
        self._open = None

    def _effect(self, m: Any, effect: r.Effect, free: bool = False) -> _Event:
        process = self._processes[m] if m.deferred else _process(m.threads[0])
        self.plan.clusters[m.cta.index] = m.cta.cluster.coord
        event = self._open
        if event is None or event.process != process or not (event.free == free or _leaves(event, effect)):
            others = () if m.deferred else map(_process, m.threads[1:])
            event = self._new(_Event(process, others, free, (who(m.threads), m.place)))
        event.effects.append(effect)
        return event

    def _new(self, event: _Event) -> _Event:
        self.plan.events.append(event)
        self.plan.count += not event.free
        self._open = event
        return event

    # mbarriers
    def begins_barrier(self, m: Any, bar: Any) -> None:
        self._born[bar] += 1

    def uses_barrier(self, m: Any, bar: Any, what: str, asynchronous: bool) -> None:
        self._turn(m, what == "waits")

    def _bar(self, bar: Any) -> Hashable:
        return bar.cta.index, bar.address, self._born[bar]

    def promises(self, m: Any, bar: Any) -> None:
        if m in self._processes:
            return
        process = _process(m.threads[0])
        self._count[process] += 1
        issued = self._processes[m] = (process[0], self._count[process])
        m.cta.cluster.ready.issued[issued] = m
        self._effect(m, r.Effect(r.ISSUES, issued))

    def announces(self, m: Any, bar: Any) -> None:
        self._effect(m, r.Effect(r.ANNOUNCES, self._bar(bar), bar.phase))

    def arrives(self, m: Any, bar: Any) -> None:
        self._effect(m, r.Effect(r.ARRIVES, self._bar(bar), bar.phase))

    def delivers(self, m: Any, bar: Any) -> None:
        self._effect(m, r.Effect(r.DELIVERS, self._bar(bar), bar.phase))

    def completes_phase(self, bar: Any, by: str) -> None:
        if self._open is not None:
            self._open.effects.append(r.Effect(r.COMPLETES, self._bar(bar), bar.phase))

    def sees_phase(self, m: Any, bar: Any) -> None:
        self._effect(m, r.Effect(r.WAITS, self._bar(bar), bar.phase))

    # other meetings
    def comes_to_named(self, m: Any) -> None:
        self._turn(m)

    def arrives_named(self, m: Any, barriers: Any, rally: Any, waits: bool) -> None:
        self._arrive(m, (m.cta.index, rally.id), rally, False)

    def leaves_named(self, m: Any, barriers: Any, rally: Any) -> None:
        self._leave(m, (m.cta.index, rally.id), rally)

    def arrives_cluster(self, m: Any, phase: int) -> None:
        self._arrive(m, m.cta.cluster.coord, phase, True)

    def leaves_cluster(self, m: Any, phase: int) -> None:
        self._leave(m, m.cta.cluster.coord, phase)

    def _arrive(self, m: Any, on: Hashable, use: Any, free: bool) -> None:
        uses = self._uses[on]
        if not uses or uses[-1] != use:
            self._ended(on, len(uses) - 1)
            uses.append(use)
        self._last[on, len(uses) - 1] = self._effect(m, r.Effect(r.ARRIVES, on, len(uses) - 1), free)

    def _leave(self, m: Any, on: Hashable, use: Any) -> None:
        at = self._uses[on].index(use)
        self._ended(on, at)
        self._effect(m, r.Effect(r.LEAVES, on, at), True)

    def _ended(self, on: Hashable, at: int) -> None:
        """A use of a barrier has ended, with the last arrival at it."""
        event = self._last.pop((on, at), None)
        if event is not None:
            event.effects.append(r.Effect(r.COMPLETES, on, at))

    def meets(self, threads: Any) -> None:
        if len(threads) > 1:
            first, *others = map(_process, threads)
            told = (who(threads), None)
            self._new(_Event(first, others, True, told))
            self._open = None

    # memory
    def accesses(
        self, m: Any, memory: Any, region: Any, write: bool, atomic: str | None = None, asynchronous: bool = False,
        remember: bool = True,
    ) -> None:  # fmt: skip
        if atomic is None or asynchronous:
            return
        self._turn(m)
        place = memory.cta.index if hasattr(memory, "cta") else memory.address
        on = place, getattr(region, "start", 0) // _WIDEST
        self._effect(m, r.Effect(r.WRITES if write else r.READS, on))


def _leaves(event: _Event, effect: r.Effect) -> bool:
    """Tell whether an effect is that a thread goes on, as its arrival, this event, was the last."""
    return effect.how == r.LEAVES and any(e.on == effect.on and e.phase == effect.phase for e in event.effects)


def _process(t: Any) -> tuple[Any, ...]:
    return ((t.cta.index, t.index),)


def told(event: r.Event) -> str:
    """An event in words, for a report."""
    thread, place = event.told
    how = " and ".join(dict.fromkeys(e.how for e in event.effects if e.how != r.COMPLETES))
    issued = "what was issued by " if len(event.process) > 1 else ""  # type: ignore[arg-type]
    return f"{issued}{thread} {how}" + ("" if place is None else f" at {place}")
