# SPDX-License-Identifier: Apache-2.0
"""Convoys: lanes of a warp that run the kernel's code together, once, as long as they go the same way.

What differs between them is `Lanes`. Where the code needs one number of what differs, the convoy parts: the most
numerous go on, and each of the other parts runs the kernel's function again from its start on a greenlet of its own.
It computes what the convoy computed, for all the lanes that there were, and parts where it parted; but each step (an
instruction, an access to memory or registers) gives what it gave, from the log, and happens no more. So it arrives
where the lanes parted, and goes on from there for its own lanes. Any Python code may run so that leaves no trace but
by steps (see `replayable`), and what a warp does alike costs a lane's time.

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
    narrowed: those that stayed where a step did, by its number."""

    __slots__ = ("steps", "forks", "narrowed")

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.forks: list[tuple[int, ...]] = []
        self.narrowed: dict[int, tuple[int, ...]] = {}

    def copy(self) -> Log:
        new = Log()
        new.steps, new.forks, new.narrowed = list(self.steps), list(self.forks), dict(self.narrowed)
        return new


class Convoy:
    """Lanes of one warp on one greenlet, which is their first thread's: the only one that the scheduler sees.

    members: the threads that it is for. threads: those that it computes for, which are more while it catches up."""

    __slots__ = ("cluster", "members", "threads", "lanes", "log", "memory", "by_turns", "work", "_at", "_fork",
                 "_behind", "_stepping", "_warp", "_moves")  # fmt: skip

    def __init__(self, cluster: Any, members: list[Any], warp: list[Any], log: Log) -> None:
        self.cluster, self.members, self._warp, self.log = cluster, members, warp, log
        self._at = self._fork = 0
        self._behind = len(members) < len(warp)
        self._stepping = False
        self.work = 0  # values computed since the last account of it
        self.by_turns: list[str] | None = None  # while the lanes do a step one by one: why some want to pause
        self._compute_for(warp)

    def _compute_for(self, threads: list[Any]) -> None:
        self.threads = threads
        self.lanes = tuple(t.lane for t in threads)
        self.memory: dict[Any, Any] = {}  # what depends on the lanes alone
        self._moves: dict[Any, list[int]] = {}

    def forget(self) -> None:
        """Take apart what refers to itself, once the lanes have ended."""
        self.members, self.threads, self._warp, self.log, self.memory = [], [], [], Log(), {}

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
        if array.dtype.kind != "f" or len(array) == 1:
            found = self.of(held, elements(array))
            if type(found) is Lanes and array.dtype.kind in "iub":
                found._array = array
            return found
        return Lanes(self, held, None, array)

    def positions(self, lanes: tuple[int, ...]) -> list[int]:
        """Where this convoy's lanes are among `lanes`."""
        found = self._moves.get(lanes)
        if found is None:
            found = self._moves[lanes] = [lanes.index(lane) for lane in self.lanes]
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
        if len(self.threads) > 1:  # one lane parts no more
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
        stays = self._went() if self._behind else self._part(list(groups.values()))
        value = values[self.lanes.index(stays[0])]
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
                self.cluster.spawn(Convoy(self.cluster, [threads[at] for at in part], self._warp, self.log.copy()))
        self.members = [threads[at] for at in parts[most]]
        self.members[0].greenlet = getcurrent()
        self.cluster.run.thread = self.members[0]
        return self._remember()

    def _went(self) -> tuple[int, ...]:
        """Where the code parts again: those that stayed, or, where this convoy left them, its own lanes."""
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
        stays = tuple(t.lane for t in self.members)
        if self._stepping:
            self.log.narrowed[self._at - 1] = stays
        else:
            self.log.forks.append(stays)
        return stays

    def _narrow(self, stays: tuple[int, ...]) -> None:
        self._compute_for([t for t in self.threads if t.lane in stays])


def whole_warp(cluster: Any, threads: list[Any]) -> Convoy:
    """All lanes of a warp, at the kernel's start."""
    return Convoy(cluster, threads, threads, Log())


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
