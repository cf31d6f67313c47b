# SPDX-License-Identifier: Apache-2.0
"""Convoys: threads of a CTA that run the kernel's code together, once, as long as they go the same way.

What differs between them is `Lanes`. Where the code needs one number of what differs, the convoy parts: the most
numerous go on, and each of the other parts runs the kernel's function again from its start on a greenlet of its own.
It computes what the convoy computed, for all the lanes that there were, and parts where it parted; but each step (an
instruction, an access to memory or registers) gives what it gave, from the log, and happens no more. So it arrives
where the lanes parted, and goes on from there for its own lanes. Any Python code may run so that leaves no trace but
by steps (see `replayable`), and what a block does alike costs a thread's time. "Lanes" are threads here, whose warps
count where an instruction is a warp's: then each whole warp does it in turn (`by_units`).

An error in a launch that runs so is no report yet: the launch is run again lane by lane (see `launch`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from greenlet import getcurrent

from ...dtypes import DType
from ...isa.form.instr import Instr
from ...isa.form.kinds import Operand
from ...seam import Regs
from ..hardware.machine import Machine
from ..hardware.together import NotTogether
from ..python.arithmetic.lanes import Apart, Lanes, LaneVector
from ..python.arithmetic.number import CLASSES, elements, from_python, leaf_type, plain
from .operands import lane_results, scalars, vectors

WORTH, WARM_UP = 8, 2500
"""Lanes that part run again what has been computed. If that is more than so many times what was computed the first
time (and some to begin with), sharing is given up."""


class Log:
    """A convoy's past. steps: what each gave. forks: the lanes that stayed where the code parted them.
    None: the others waited for those that were chosen. narrowed: those that stayed where a step did, by its number."""

    __slots__ = ("steps", "forks", "narrowed")

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.forks: list[tuple[int, ...] | None] = []
        self.narrowed: dict[int, tuple[int, ...]] = {}

    def copy(self) -> Log:
        new = Log()
        new.steps, new.forks, new.narrowed = list(self.steps), list(self.forks), dict(self.narrowed)
        return new

    def until(self, mask: Mask) -> Log:
        """Return the part of the log before a mask."""
        new = Log()
        new.steps, new.forks = self.steps[: mask.step], self.forks[: mask.fork]
        new.narrowed = {at: stays for at, stays in self.narrowed.items() if at < mask.step}
        return new


class Crew:
    """Threads, and what depends on them alone. lanes: their numbers in the block."""

    __slots__ = ("threads", "lanes", "memory", "moves")

    def __init__(self, threads: list[Any]) -> None:
        self.threads = threads
        self.lanes = tuple([t.index for t in threads])
        self.memory: dict[Any, Any] = {}
        self.moves: dict[Any, Any] = {}

    def some(self, chosen: list[bool]) -> Crew:
        """Those that are chosen: the same object for the same ones."""
        key = "some", tuple(chosen)
        found: Crew | None = self.memory.get(key)
        if found is None:
            found = self.memory[key] = Crew([t for t, c in zip(self.threads, chosen) if c])
        return found


class Mask:
    """The work of some lanes of a convoy while the others wait for them, as at an `if`. crew: all of them. chosen: the
    lanes that do it, with those that have left them since. fork, step: the fork in the log, and the number of the next
    step, where it began."""

    __slots__ = ("crew", "fork", "step", "chosen")

    def __init__(self, crew: Crew, fork: int, step: int) -> None:
        self.crew, self.fork, self.step = crew, fork, step
        self.chosen: tuple[int, ...] = ()


class Convoy:
    """Lanes of one CTA on one greenlet, which is their first thread's: the only one that the scheduler sees.

    members: the threads that it is for. threads: those that it computes for, which are more while it catches up, and
    fewer while units of them do something in turn (then `apart` is set) or some of them do what the others do not
    (`masks`)."""

    __slots__ = ("cluster", "members", "threads", "lanes", "log", "memory", "by_turns", "work", "apart", "masks",
                 "exits", "partial", "_crew", "_at", "_fork", "_behind", "_stepping", "_all")  # fmt: skip

    def __init__(self, cluster: Any, members: list[Any], all_threads: list[Any], log: Log) -> None:
        self.cluster, self.members, self._all, self.log = cluster, members, all_threads, log
        self._at = self._fork = 0
        self._behind = len(members) < len(all_threads)
        self._stepping = self.apart = False
        self.partial = False  # whether it computes for some of its lanes only for a while
        self.masks: list[Mask] = []
        self.exits: list[Callable[[], None]] = []  # what it does at the end; a part that runs again has its own
        self.work = 0  # values computed since the last account of it
        self.by_turns: list[str] | None = None  # while the lanes do a step one by one: why some want to pause
        self._compute_for(Crew(all_threads))

    def _compute_for(self, crew: Crew) -> None:
        self._crew, self.threads, self.lanes, self.memory = crew, crew.threads, crew.lanes, crew.memory

    def forget(self) -> None:
        """Take apart what refers to itself, once the lanes have ended."""
        self.members, self._all, self.log = [], [], Log()
        self._compute_for(Crew([]))

    # values
    def of(self, dtype: DType | None, values: list[Any]) -> Any:
        """A value of a type for each lane; one number where all are the same. dtype: see `Lanes`."""
        self.work += 1
        first = values[0]
        if values.count(first) < len(values):
            return Lanes(self, dtype, values)
        if first == 0 and not isinstance(first, int):  # 0.0 equals -0.0
            signs = [math.copysign(1.0, x) for x in values]
            if signs.count(signs[0]) < len(signs):
                return Lanes(self, dtype, values)
        return first if dtype is None else CLASSES[dtype].make(first)

    def of_array(self, dtype: DType, array: Any) -> Any:
        """The same of an array of elements of a type."""
        held = leaf_type(dtype)
        if array.dtype.kind not in "fiub" or len(array) == 1:
            return self.of(held, elements(array))
        if array.dtype.kind != "f":
            self.work += 1
            if array[0] == array[-1] and (array == array[0]).all():
                return CLASSES[held].make(array[0].item())
        return Lanes(self, held, None, array)

    def positions(self, lanes: tuple[int, ...]) -> Any:
        """Return the positions of this convoy's lanes among `lanes`: a slice, if they are adjacent there."""
        found = self._crew.moves.get(lanes)
        if found is None:
            found = np.searchsorted(np.array(lanes), np.array(self.lanes)).tolist()  # both ascend
            if found[-1] - found[0] + 1 == len(found):
                found = slice(found[0], found[-1] + 1)
            self._crew.moves[lanes] = found
        return found

    def lists(self, value: Any) -> list[Any]:
        """A value for each lane, as Python's numbers."""
        return value.values if type(value) is Lanes else [plain(value)] * len(self.threads)

    # steps
    def step(self, live: Callable[..., Any], *args: Any) -> Any:
        """Give what `live(*args)` gives: it is called once, and its result is remembered for those who part later."""
        log, at = self.log, self._at
        self._at = at + 1
        if at < len(log.steps):
            stays = log.narrowed.get(at)
            if stays is not None:
                self._narrow(stays)
            return self._restored(log.steps[at])
        self._stepping = True
        result = live(*args)
        self._stepping = False
        if len(self.members) > 1:  # one lane parts no more
            log.steps.append(_held(result) if result is not None else None)
        return result

    def _restored(self, entry: Any) -> Any:
        """Give what a step gave, as this convoy's own."""
        kind = type(entry)
        if kind is Lanes:
            return Lanes(self, entry.dtype, entry._list, entry._array, entry.lanes)
        if kind is LaneVector:
            return LaneVector(self, entry._array, entry.lanes)
        return tuple(map(self._restored, entry)) if kind is tuple else entry

    def each(self, f: Callable[..., Any], *args: Any) -> Any:
        """`f(*args)` for each lane in turn, each with its own of what differs."""
        run, threads = self.cluster.run, self.threads
        columns = [column(a, threads) for a in args]
        results = []
        self.by_turns = []
        for i, t in enumerate(threads):
            run.thread = t
            results.append(f(*[c[i] for c in columns]))
        run.thread = self.members[0]
        reasons, self.by_turns = self.by_turns, None
        if len(reasons) == len(threads):
            Machine(run, None, threads).pause(reasons[0])
        return self.gathered(results)

    def pauses(self, why: str) -> bool:
        """Tell whether a lane that polls need not pause now: it does, if all do, once each has had its turn."""
        if self.by_turns is not None:
            self.by_turns.append(why)
        return self.by_turns is not None

    def gathered(self, results: list[Any]) -> Any:
        """The lanes' results as one."""
        first = results[0]
        if first is None:
            return None
        if isinstance(first, tuple):
            return tuple(self.gathered(list(row)) for row in zip(*results))
        if isinstance(first, np.ndarray):
            return LaneVector(self, np.stack(results))
        if set(map(type, results)) == {int}:
            return self.of(None, results)
        numbers = list(map(from_python, results))
        dtype = numbers[0].dtype
        if any(x.dtype is not dtype for x in numbers):
            raise NotTogether("the lanes' results differ in their types")
        return self.of(dtype, [x.value for x in numbers])

    # units
    def units(self, of: Callable[[Any], Any], kind: Any, named: int | None = None) -> list[Crew]:
        """The lanes by the warp, or the like, that `of` gives a thread, in order. Those of which not all are here go on
        elsewhere, one by one. kind: says which. named: the bits of the lanes of a warp that are meant; None for all."""
        found: list[Crew] | None = self.memory.get((kind, named))
        if found is not None:
            return found
        here: dict[Any, list[Any]] = {}
        for t in self.threads:
            here.setdefault(of(t), []).append(t)
        parts: list[Any] = []
        for unit, threads in here.items():
            all_of_it = unit.threads if named is None else [t for t in unit.threads if named >> t.lane & 1]
            if threads == all_of_it:
                parts += [None] * len(threads)
            else:
                parts += [(threads[0].warp.threads[0].index, _named(t, named)) for t in threads]
        if parts.count(parts[0]) < len(parts):
            self.agree(parts)
            return self.units(of, kind, named)
        found = self.memory[kind, named] = list(map(Crew, here.values())) if len(here) > 1 else [self._crew]
        return found

    def by_units(self, units: list[Crew], do: Callable[..., Any], *args: Any) -> Any:
        """`do(*args)` for each of the units in turn, for whose lanes alone the convoy computes meanwhile; gives their
        results as one."""
        if len(units) == 1:
            return do(*args)
        crew, parts = self._crew, []
        self.apart = self.partial = True
        for unit in units:
            self._compute_for(unit)
            parts.append(do(*args))
        self.apart, self.partial = False, bool(self.masks)
        self._compute_for(crew)
        return self._joined(parts, units)

    def _joined(self, parts: list[Any], units: list[Crew]) -> Any:
        """Join the results of units, one after the other, into one."""
        kinds = set(map(type, parts))
        if tuple in kinds:
            return tuple(self._joined(list(row), units) for row in zip(*parts))
        if kinds == {type(None)}:
            return None
        if LaneVector in kinds:
            return LaneVector(self, np.concatenate([p.own for p in parts]))
        values = [x for p, u in zip(parts, units) for x in (p.own if type(p) is Lanes else [plain(p)] * len(u.lanes))]
        dtypes = {None if type(p) is int else (p if type(p) is Lanes else from_python(p)).dtype for p in parts}
        if len(dtypes) > 1:
            raise NotTogether("the units' results differ in their types")
        return self.of(dtypes.pop(), values)

    # parting
    def agree(self, values: list[Any]) -> Any:
        """One value, which all lanes have: those that have another go on elsewhere."""
        first = values[0]
        if values.count(first) == len(values):
            return first
        groups: dict[Any, list[int]] = {}
        for i, v in enumerate(values):
            groups.setdefault(v, []).append(i)
        if len(groups) == 1:
            return first
        if self.apart:
            raise NotTogether("lanes part in what a unit of them does")
        stays = self._went() if self._behind else self._part(list(groups.values()))
        assert stays is not None
        kept = set(stays)
        value = next(v for v, lane in zip(values, self.lanes) if lane in kept)
        self._narrow(stays)
        return value

    def alike(self, *values: Any) -> None:
        """The lanes for which one of `values` differs go on elsewhere."""
        lists = [v.values for v in values if type(v) is Lanes]
        if lists:
            self.agree(list(zip(*lists)))

    def common(self, value: Any) -> Any:
        """The value's one number that most lanes have; the others go on elsewhere."""
        return self.agree(value.values) if type(value) is Lanes else value

    # masks
    def when(self, conditions: list[bool], do: Callable[[], None]) -> None:
        """Call `do` for the lanes whose condition holds, while the others wait for them."""
        mask = self.enter(conditions)
        if mask is not None:
            do()
            self.leave(mask)

    def enter(self, conditions: list[bool]) -> Mask | None:
        """Compute for the lanes whose condition holds alone, until they `leave`; None if there are none."""
        if True not in conditions:
            return None
        mask = Mask(self._crew, self._fork if self._behind else len(self.log.forks), self._at)
        if False not in conditions:
            return mask
        if not self._behind:
            self.log.forks.append(None)
        elif (stays := self._went()) is not None:  # the others did not wait
            goes = conditions[self.lanes.index(stays[0])]
            self._narrow(stays)
            mask.crew = self._crew
            return mask if goes else None
        self.masks.append(mask)
        self.partial = True
        self._compute_for(self._crew.some(conditions))
        mask.chosen = self.lanes
        return mask

    def leave(self, mask: Mask) -> None:
        """Compute for all lanes again."""
        if self.masks and self.masks[-1] is mask:
            self.masks.pop()
            self.partial = bool(self.masks)
            self._compute_for(mask.crew)

    def go_on_apart(self) -> None:
        """Let the lanes that wait for those that a mask chose wait no longer: they go on elsewhere from where it began,
        for these are about to wait themselves."""
        for mask, inner in zip(self.masks, [*[m.crew for m in self.masks[1:]], self._crew]):
            others = [t for t in mask.crew.threads if t.index not in set(inner.lanes)]
            if others:
                self.cluster.spawn(Convoy(self.cluster, others, self._all, self.log.until(mask)))
            self.log.forks[mask.fork] = mask.chosen
        if self.masks:
            self.masks, self.partial = [], self.apart
            self._lead(self.threads)

    def _lead(self, members: list[Any]) -> None:
        """Be for these lanes alone."""
        self.members = members
        self.members[0].greenlet = getcurrent()
        self.cluster.run.thread = self.members[0]

    # operands and results of instructions
    def column(self, value: Any) -> list[Any]:
        return column(value, self.threads)

    def scalars(self, kind: str, value: Any) -> Any:
        return scalars(kind, value)

    def vectors(self, operand: Operand, value: Any, size: int, row: Instr) -> Any:
        return vectors(self, operand, value, size, row)

    def results(self, row: Instr, case: dict[str, Any], operands: dict[str, Any], values: list[Any]) -> Any:
        return lane_results(self, row, case, operands, values)

    def _part(self, parts: list[list[int]]) -> tuple[int, ...]:
        """Let the lanes of each part but the greatest go on elsewhere; gives those that stay."""
        most = max(range(len(parts)), key=lambda i: len(parts[i]))
        self.cluster.run.computed += self.work
        self.work = 0
        threads = self.threads
        for i, part in enumerate(parts):
            if i != most:
                self.cluster.spawn(Convoy(self.cluster, [threads[at] for at in part], self._all, self.log.copy()))
        gone = {threads[at] for i, part in enumerate(parts) if i != most for at in part}
        self._lead([t for t in self.members if t not in gone])
        return self._remember()

    def _went(self) -> tuple[int, ...] | None:
        """Return the lanes at the next place where the code parts again: those that stayed, or, if this convoy left
        them, its own lanes; None if the others waited (`masks`)."""
        if self._fork < len(self.log.forks):
            self._fork += 1
            return self.log.forks[self._fork - 1]
        self._behind = False
        run = self.cluster.run
        run.repeated += self.work
        self.work = 0
        if run.repeated > WORTH * (run.computed + WARM_UP):
            raise NotTogether("the lanes part so often that they are faster one by one")  # see launch: they run so
        return self._remember()

    def _remember(self) -> tuple[int, ...]:
        """Write down who goes on here."""
        stays = tuple(t.index for t in self.members)
        if self._stepping:
            self.log.narrowed[self._at - 1] = stays
        else:
            self.log.forks.append(stays)
        return stays

    def _narrow(self, stays: tuple[int, ...]) -> None:
        kept = set(stays)
        for mask in self.masks:
            mask.crew = Crew([t for t in mask.crew.threads if t.index in kept])
        self._compute_for(Crew([t for t in self.threads if t.index in kept]))


def beginning(cluster: Any, threads: list[Any]) -> Convoy:
    """Make the convoy of some threads of a CTA at the kernel's start: all of them, or, where an order of warps is asked
    for, those of a warp."""
    return Convoy(cluster, threads, threads, Log())


def _named(thread: Any, named: int | None) -> bool:
    return named is None or bool(named >> thread.lane & 1)


def _held(result: Any) -> Any:
    """Give what a step gave, for the log."""
    kind = type(result)
    if kind is tuple:
        return tuple(map(_held, result))
    return result.held() if kind is Lanes or kind is LaneVector else result


def column(value: Any, threads: list[Any]) -> list[Any]:
    """A value as each thread has it."""
    kind = type(value)
    if kind is Lanes:
        return value.numbers  # type: ignore[no-any-return]
    if kind is LaneVector:
        return list(value.array)
    if isinstance(value, Apart):
        return [value.of(t) for t in threads]
    if kind is tuple or kind is list:
        return [kind(row) for row in zip(*(column(v, threads) for v in value))] if value else [value] * len(threads)
    if kind is dict:
        columns = [column(v, threads) for v in value.values()]
        return [dict(zip(value, row)) for row in zip(*columns)] if value else [value] * len(threads)
    if kind is Regs:
        files, starts = column(value.file, threads), column(value.start, threads)
        return [Regs(f, value.dtype, s, value.count) for f, s in zip(files, starts)]
    return [value] * len(threads)
