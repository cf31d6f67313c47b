# SPDX-License-Identifier: Apache-2.0
"""The check `dependents`: memory that a launch accesses though an earlier one of its sequence need not have done with
it (programmatic dependent launch).

PTX ISA, "griddepcontrol": a dependent launch may begin once all CTAs of the one before have called launch_dependents or
ended; its wait waits until that one has ended, and makes the memory of that one visible. What a launch has not waited
for itself has ended for those after it only if that is known of its own beginning."""

from __future__ import annotations

from contextvars import ContextVar
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..ground.access import Access
from ..ground.clocks import FULL, READS, all_of, distinct_bases
from ..ground.report import Place, RaceError, of_block, who
from ..hardware.watch import Check
from .races import Races
from .races.explain import place_text
from .races.shadow import distinct

Numbers = frozenset[int]


class Touched(NamedTuple):
    """The accesses of a launch to a buffer: the numbers of its accesses, and of their sets, in the buffer's history."""

    address: int
    writers: Any
    readers: Any
    history: Any


class Launch:
    """A launch of a sequence. before: the launches that have ended when it begins. ended: those that have when it has,
    with itself. dependent: launched with pdl=True. triggers: whether it has called launch_dependents."""

    def __init__(self, number: int, kernel: str, dependent: bool, before: Numbers) -> None:
        self.number, self.kernel, self.dependent, self.before = number, kernel, dependent, before
        self.ended: Numbers = before | {number}
        self.waited = False
        self.triggered: Place | None = None
        self.next_before: Numbers = frozenset()  # that have ended when a dependent of it begins
        self.touched: list[Touched] = []

    def __str__(self) -> str:
        return f"kernel {self.kernel} (launch {self.number + 1})"


class Sequence:
    """Launches of one stream, of each rank's GPU. `cute.simulate.sequence()` makes one.

    known: what each of several ranks knows of what all did, when it has ended the launches until now: its own stream
    tells it of its own alone. left: what releases have left in memory."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.current: Launch | None = None
        self.known: dict[int, Any] = {}
        self.left: dict[Any, Any] = {}

    def begin(self, kernel: str, dependent: bool) -> None:
        """Begin a launch. dependent: by programmatic dependent launch."""
        number = len(self.launches)
        last = self.launches[-1] if self.launches else None
        before = frozenset(range(number)) if last is None or not dependent else last.next_before
        self.current = Launch(number, kernel, dependent and last is not None, before)
        for launch in self.launches:
            if launch.number in before and not self.known:
                launch.touched.clear()

    def end(self, run: Any) -> None:
        """Remember the launch that has run."""
        launch = self.current
        found = [c for c in run.watch.checks if type(c) is Dependents]
        if launch is None or not found:
            return
        found[0].tell(launch, self.launches[-1] if self.launches else None)
        if run.remembers:
            self.known = {gpu.rank: all_of(gpu.clusters) for gpu in run.gpus}
            self.left = {key: left for key, left in run.left.items() if key[0] is None}
        self.launches.append(launch)
        self.current = None


SEQUENCE: ContextVar[Sequence | None] = ContextVar("SEQUENCE", default=None)
"""The sequence of which launches are part."""


def carried(run: Any) -> None:
    """Let a launch of several ranks begin with what the ranks know of earlier ones of its sequence."""
    s = SEQUENCE.get()
    run.remembers = s is not None and len(run.gpus) > 1 and any(type(c) is Dependents for c in run.watch.checks)
    if s is not None and run.remembers:
        run.known, run.left = s.known, {key: left.copy() for key, left in s.left.items()}


class Dependents(Check):
    """Asks of each access to global memory whether the launches before it have done with the bytes: those that have
    ended when this one begins, and, where a thread comes after a wait, those that have then."""

    name = "dependents"
    summary = (
        "memory that an earlier launch of a sequence still uses, or has not written yet, for nothing waits for its end "
        "(programmatic dependent launch)"
    )
    needs = (Races,)
    clocks = True
    sequences = True

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._sequence = SEQUENCE.get()
        self._waits: list[Access] = []
        self._triggers: dict[Any, tuple[Place, bool]] = {}  # by CTA the first: where, and whether after a wait
        self._open: dict[Any, list[tuple[Launch, Touched]]] = {}  # by buffer

    def waits_for_grids(self, m: Any) -> None:
        for t in m.threads:
            c = t.clock
            self._waits.append(Access(m, c.agent, c.agent + 1, c.epoch, None, None))
            c.epoch += 1

    def launches_dependents(self, m: Any) -> None:
        rank = m.cta.cluster.rank
        self._triggers.setdefault((rank, m.cta.index), (m.place, self._after_wait(m, rank)))

    def accesses(
        self, m: Any, memory: Any, region: Any, write: bool, atomic: str | None = None, asynchronous: bool = False,
        remember: bool = True,
    ) -> None:  # fmt: skip
        s = self._sequence
        if memory.space != "global memory" or s is None or s.current is None:
            return
        for launch, touched in self._others(memory):
            ended = None  # is asked once, and of most accesses never
            for ids, of_writers in ((touched.writers, True), (touched.readers, False)):
                if not write and not of_writers:
                    continue
                found = region.get(ids)
                for number in distinct(found) - {0} if found.any() else ():
                    members = [number] if of_writers else touched.history.members(number)
                    for a in map(touched.history.access, members):
                        if a.one_step(atomic, m) if self.run.remembers else atomic and a.atomic:
                            continue
                        if a.cluster.rank != m.cta.cluster.rank:
                            row = FULL if of_writers else READS
                            known = all(a.within(base, row) for base in distinct_bases(m.clocks()))
                        elif launch.number in s.current.before:
                            continue
                        else:
                            ended = self._has_ended(launch, m) if ended is None else ended
                            known = ended
                        if not known:
                            address = region.address(int(np.flatnonzero(found == number)[0]))
                            raise self._race(m, memory, address, write, launch, a, of_writers)

    def _others(self, memory: Any) -> list[tuple[Launch, Touched]]:
        """Return the accesses to a buffer by launches that may still run when this one begins."""
        found = self._open.get(memory)
        if found is None:
            found = self._open[memory] = []
            s = self._sequence
            for launch in s.launches if s is not None and s.current is not None else ():
                found += [(launch, part) for t in launch.touched if (part := _within(t, memory)) is not None]
        return found

    def _has_ended(self, launch: Launch, m: Any) -> bool:
        """Tell whether a launch has ended for the threads of `m`."""
        s = self._sequence
        assert s is not None
        return launch.number in s.launches[-1].ended and self._after_wait(m, m.cta.cluster.rank)

    def _after_wait(self, m: Any, rank: int) -> bool:
        """Tell whether all threads of `m` come after some wait of this launch on a rank's GPU."""
        waits = [w for w in self._waits if w.cluster.rank == rank]
        return all(
            any(w.known(t, READS) if w.cluster is m.cta.cluster else w.within(t.base, READS) for w in waits)
            for t in m.clocks()
        )

    def tell(self, launch: Launch, last: Launch | None) -> None:
        """Say of the launch that has run what those after it need to know."""
        launch.waited = bool(self._waits)
        if launch.dependent and launch.waited and last is not None:
            launch.ended |= last.ended
        launch.next_before = launch.ended
        if self._triggers:
            launch.triggered = next((p for p, after in self._triggers.values() if not after), None) or next(
                p for p, _ in self._triggers.values()
            )
            launch.next_before = launch.before
            blocks = prod(self.run.grid) * len(self.run.gpus)
            after_wait = len(self._triggers) == blocks and all(a for _, a in self._triggers.values())
            if launch.dependent and after_wait and last is not None:
                launch.next_before |= last.ended
        history = next(c for c in self.run.watch.checks if type(c) is Races).history
        launch.touched = [
            Touched(a.address, a.shadow.writers, a.shadow.readers, history)
            for a in self.run.memory.buffers if a.shadow is not None
        ]  # fmt: skip

    def _race(self, m: Any, memory: Any, address: int, write: bool, launch: Launch, a: Any, wrote: bool) -> RaceError:
        s = self._sequence
        assert s is not None and s.current is not None
        issue = f"{m.row.name} of " if m.row is not None else ""
        apart = a.cluster.rank != m.cta.cluster.rank
        return RaceError(
            f"race between launches: {place_text(memory, address)} is {'written' if write else 'read'} by {issue}"
            f"{m.describe()}{of_block(m.cta)} at {m.place}, in {s.current}\n"
            f"  but {launch}, which {'writes' if wrote else 'reads'} it at {a.place} ("
            f"{who(a.threads)}{of_block(a.threads[0].cta)}), need not have ended: "
            f"{_of_another(m, a) if apart else _why(s, launch)}"
        )


def _of_another(m: Any, a: Any) -> str:
    """Say why a launch of another rank need not have ended, and the fix."""
    here, there = m.cta.cluster.rank, a.cluster.rank
    return (
        f"a stream orders the launches of one GPU, and nothing tells rank {here} what rank {there} has done\n"
        f"  fix: let rank {there} raise a flag of rank {here} (release, scope sys) when it has done with that, and let "
        f"rank {here} wait for it (acquire, scope sys) before this line; cute.utils.distributed.Signals does both"
    )


def _why(s: Sequence, launch: Launch) -> str:
    """Say why a launch need not have ended, and the fix."""
    last, here = s.launches[-1], s.current
    if launch.number in last.ended:
        return (
            f"{here} is launched with pdl=True, and may begin once all blocks of {last} have called "
            f"griddepcontrol_launch_dependents ({_at(last)}) or ended\n"
            f"  fix: call cute.arch.griddepcontrol_wait() in kernel {getattr(here, 'kernel', '')} before this line: "
            f"in each thread that accesses what others wrote, or in one before a barrier"
        )
    between = next(x for x in s.launches[launch.number + 1 :] if not x.waited or launch.number not in x.ended)
    return (
        f"{between}, which was launched with pdl=True after it, never waits for it, so that its end tells nothing of "
        f"earlier launches\n"
        f"  fix: call cute.arch.griddepcontrol_wait() in kernel {between.kernel}, before it ends, also where it reads "
        f"nothing of theirs; or launch it without pdl=True"
    )


def _at(launch: Launch) -> str:
    return launch.triggered.short if launch.triggered is not None else "as it ended"


def _within(t: Touched, memory: Any) -> Touched | None:
    """Return the accesses to the part of it that a later launch's buffer covers."""
    start, stop = max(t.address, memory.address), min(t.address + t.writers.size, memory.end)
    if start >= stop:
        return None
    if start == t.address == memory.address and t.writers.size == memory.nbytes:
        return t
    writers, readers = np.zeros((2, memory.nbytes), np.int32)
    for part, ids in ((writers, t.writers), (readers, t.readers)):
        part[start - memory.address : stop - memory.address] = ids[start - t.address : stop - t.address]
    return Touched(memory.address, writers, readers, t.history)
