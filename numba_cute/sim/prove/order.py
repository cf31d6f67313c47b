# SPDX-License-Identifier: Apache-2.0
"""The partial order that synchronisation alone makes of one cluster's steps, and where another order could differ.

A phase of a barrier is a set of steps: arrivals, announcements of bytes, copies and commits. If each step of a phase
comes after all of the phase before, and each wait for a phase comes after the one before it and before the next one can
complete, then no order of the threads and of the copies puts a step into another phase, or lets a wait mistake one
phase for another: all orders perform the same partial order (a marked graph). What one run does then holds for all.

The clocks are those of `ground.clocks`, of which row READS says that something has happened. They know nothing of
atomics and polled memory, whose order a run decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..ground.clocks import READS, Clock, Gather, ThreadClock


class Step(NamedTuple):
    """A thread's step on a barrier, for reports. how: "arrives", "announces bytes", "issues a copy", "waits"."""

    thread: Any
    place: Any
    how: str


class Conflict(NamedTuple):
    """Two steps that another order could exchange, and so change what a barrier does. rule: a name of `RULES`. phase:
    of the first step."""

    rule: str
    barrier: str
    phase: int
    first: Step
    second: Step


RULES = {
    "phases": "both count for the barrier, and nothing orders the one of the later phase after the other",
    "early": "nothing orders the wait after the end of the phase before, for which the parity may take it",
    "late": "nothing orders the wait before the end of the next phase: coming later, it waits for one more",
    "bytes": "nothing orders the announcement before an arrival of its phase, which may be over before it",
    "uses": "nothing orders the later use of the barrier after the end of the other, so that both may become one",
}


class Phase:
    """The steps of one phase of a barrier. clock: what they knew. arrivals: what its arrivals alone knew. deferred:
    whether some step is done later than it is issued, so that only a wait for the phase tells that it is over."""

    __slots__ = ("gather", "arrivals", "deferred", "steps", "announced", "clock", "number")

    def __init__(self, zero: Clock, number: int) -> None:
        self.gather, self.arrivals, self.number = Gather(zero), Gather(zero), number
        self.deferred = False
        self.steps: dict[int, Step] = {}
        """By agent: the last step of each."""
        self.announced: list[tuple[int, int, Step]] = []
        """Agent and epoch of each announcement."""
        self.clock: Any = None


class Barrier:
    """The phase of an mbarrier that is under way, the two before it, and the waits for the last."""

    __slots__ = ("name", "agent", "now", "last", "older", "waits")

    def __init__(self, name: str, agent: int, zero: Clock) -> None:
        self.name, self.agent = name, agent
        self.now = Phase(zero, 0)
        self.older: Phase | None = None
        self.last = Phase(zero, -1)  # the initialisation
        self.waits: dict[int, tuple[int, Step]] = {}


class Order:
    """The order between the steps of one cluster's threads: what each thread knows of the others.

    threads: any hashable things, in order. conflicts: all that was found. events: how many steps there were."""

    def __init__(self, threads: Iterable[Hashable]) -> None:
        self.threads = list(threads)
        self._zero = Clock.zero(self, len(self.threads) + 64)
        self._of = {t: ThreadClock(agent, self._zero) for agent, t in enumerate(self.threads)}
        self._agents = len(self.threads)
        self._barriers: dict[Any, Barrier] = {}
        self._uses: dict[Any, list[tuple[Any, Phase]]] = {}
        """By named barrier: its use under way, and the one before."""
        self._met: dict[int, tuple[list[ThreadClock], list[tuple[Clock, int]]]] = {}
        """By the first of them: threads that have met, and what they knew then."""
        self.conflicts: list[Conflict] = []
        self.events = 0

    def _new_agent(self) -> int:
        self._agents += 1
        return self._agents - 1

    # mbarriers
    def begins(self, bar: Any, name: str, step: Step) -> None:
        """A thread initialises a barrier, and so its first phase may begin."""
        found = self._barriers[bar] = Barrier(name, self._new_agent(), self._zero)
        self._add(found.last, step, self._of[step.thread])
        found.last.clock = found.last.gather.freeze()

    def promised(self, step: Step) -> tuple[Step, ThreadClock]:
        """A thread issues what will signal a barrier; gives what `signals` takes when it does."""
        return step, self._of[step.thread].frozen()

    def arrives(self, bar: Any, step: Step) -> None:
        """A thread arrives at a barrier itself."""
        self._signals(bar, step, self._of[step.thread], arrival=True)

    def delivers(self, bar: Any, step: Step) -> None:
        """A thread counts bytes as delivered itself."""
        self._signals(bar, step, self._of[step.thread], arrival=False)

    def signals(self, bar: Any, promise: tuple[Step, ThreadClock], arrival: bool) -> None:
        """Signal a barrier with work that was issued before. arrival: False if it delivers bytes instead."""
        self._barriers[bar].now.deferred = True
        self._signals(bar, *promise, arrival)

    def _signals(self, bar: Any, step: Step, clock: ThreadClock, arrival: bool) -> None:
        found = self._barriers[bar]
        self._after("phases", found, found.name, found.last, step, clock, found.now.number)
        if arrival:
            found.now.arrivals.clock = found.now.arrivals.clock.join(self._known(clock))
        self._add(found.now, step, clock)

    def announces(self, bar: Any, step: Step) -> None:
        """A thread adds to what the phase waits for, without an arrival of its own."""
        found, clock = self._barriers[bar], self._of[step.thread]
        self._after("phases", found, found.name, found.last, step, clock, found.now.number)
        found.now.announced.append((clock.agent, clock.epoch, step))
        self._add(found.now, step, clock)

    def completes(self, bar: Any) -> None:
        """The phase of a barrier that is under way completes."""
        found = self._barriers[bar]
        now = found.now
        reached, known = now.gather.freeze(), now.arrivals.freeze()
        last = next(reversed(now.steps.values()))
        for agent, epoch, step in now.announced:
            if known.at(READS, agent) < epoch:
                self._conflict("bytes", found.name, now.number, step, last)
        for agent, (epoch, step) in found.waits.items():
            if reached.at(READS, agent) < epoch:
                self._conflict("late", found.name, now.number, step, last)
        now.clock = reached.knowing(found.agent, now.number + 1, (READS,))
        now.gather = now.arrivals = None  # type: ignore[assignment]
        found.older, found.last, found.now = found.last, now, Phase(self._zero, now.number + 1)
        found.waits = {}

    def waits(self, bar: Any, step: Step) -> None:
        """A thread has seen that the last phase of a barrier is complete: one before the first, too."""
        found, clock = self._barriers[bar], self._of[step.thread]
        if found.older is not None:
            self._after("early", found, found.name, found.older, step, clock, found.last.number)
            clock.base = clock.base.join(found.last.clock)
        found.waits[clock.agent] = clock.epoch, step
        clock.epoch += 1
        self.events += 1

    def knows_last(self, bar: Any, thread: Any) -> bool:
        """Tell whether a thread knows that the last phase is complete, without asking for it."""
        found, clock = self._barriers[bar], self._of[thread]
        return found.older is None or clock.base.at(READS, found.agent) > found.last.number

    # other meetings
    def arrives_named(self, key: Any, use: Any, name: str, step: Step) -> None:
        """A thread arrives at a use of a named barrier, and may go on."""
        uses = self._uses.setdefault(key, [])
        if not uses or uses[-1][0] is not use:
            if uses:
                uses[-1][1].clock = uses[-1][1].gather.freeze()
            uses.append((use, Phase(self._zero, len(uses) and uses[-1][1].number + 1)))
            del uses[:-2]
        now, clock = uses[-1][1], self._of[step.thread]
        if len(uses) > 1:
            self._after("uses", None, name, uses[0][1], step, clock, now.number)
        self._add(now, step, clock)

    def leaves_named(self, key: Any, use: Any, thread: Any) -> None:
        """A thread that has arrived goes on, as all have come."""
        clock = self._of[thread]
        for held, phase in self._uses[key]:
            if held is use:
                clock.base = clock.base.join(phase.gather.freeze())

    def meet(self, threads: Iterable[Any]) -> None:
        """Threads wait for each other: all that each has done comes before all that any does next."""
        clocks = [self._of[t] for t in threads]
        held = self._met.get(clocks[0].agent)
        if held is not None and held[0] == clocks and held[1] == [(c.base, c.epoch) for c in clocks]:
            return  # they have met, and nothing has happened since
        gather = Gather(clocks[0].base)
        gather.add(clocks)
        known = gather.freeze()
        for c in clocks:
            c.base = c.base.join(known)
        self._met[clocks[0].agent] = clocks, [(c.base, c.epoch) for c in clocks]

    # what follows
    def _add(self, phase: Phase, step: Step, clock: ThreadClock) -> None:
        phase.steps.pop(clock.agent, None)
        phase.steps[clock.agent] = step
        phase.gather.add((clock,))
        self.events += 1

    @staticmethod
    def _known(clock: ThreadClock) -> Clock:
        return clock.base.knowing(clock.agent, clock.epoch, (READS,))

    def _after(
        self, rule: str, found: Barrier | None, name: str, phase: Phase, step: Step, clock: ThreadClock, number: int
    ) -> None:  # fmt: skip
        """Note a conflict if a step of phase `number` does not come after all of another phase. found: the mbarrier,
        if it is one: of steps that are done later than they are issued only a wait for their phase tells."""
        theirs, mine = phase.clock.v[READS, : len(self.threads)], clock.base.v[READS]
        unknown = [a for a in np.flatnonzero(theirs > mine[: len(theirs)]).tolist() if not _own(clock, a, theirs[a])]
        over = found is None or not phase.deferred or clock.base.at(READS, found.agent) > phase.number
        if unknown or not over:
            first = phase.steps.get(unknown[0]) if unknown else None
            self._conflict(rule, name, number, first or next(reversed(phase.steps.values())), step)

    def _conflict(self, rule: str, name: str, phase: int, first: Step, second: Step) -> None:
        self.conflicts.append(Conflict(rule, name, phase, first, second))


def _own(clock: ThreadClock, agent: int, epoch: int) -> bool:
    """Tell whether an epoch is one of the thread's own that came before."""
    return agent == clock.agent and (clock.until is None or epoch <= clock.until)
