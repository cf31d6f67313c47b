# SPDX-License-Identifier: Apache-2.0
"""Issuing an instruction: operands become Python numbers and NumPy arrays, and threads that issue together meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import Boolean, DType, Float32, Float64, Int32, Uint16, Uint32, Uint64, number
from ...isa.form.instr import CLUSTER, TCGEN05_LOADS, WARP, WARPGROUP, WGMMA_GROUP, Instr
from ...isa.form.kinds import Operand
from ...seam import CuteError, Leaf, Regs
from ...seam.ground.naming import described
from ..ground.report import DivergenceError, OutOfBoundsError
from ..python.arithmetic.number import CLASSES, Number
from .machine import Machine
from .tmem import one_group
from .together import Together, let_others_run, who_waits

MASK = {"u16": 0xFFFF, "u32": 0xFFFFFFFF, "smem": 0xFFFFFFFF, "cluster_smem": 0xFFFFFFFF, "tmem": 0xFFFFFFFF,
         "u64": (1 << 64) - 1, "gmem": (1 << 64) - 1, "tmap": (1 << 64) - 1}  # fmt: skip
REGISTER = {"u16": np.uint16, "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "f32": np.float32,
          "f64": np.float64, "pred": np.bool_, "smem": np.int64, "cluster_smem": np.int64, "gmem": np.uint64,
          "tmap": np.uint64, "tmem": np.int64}  # fmt: skip
BITS: dict[str, Any] = {**REGISTER, "smem": np.uint32, "cluster_smem": np.uint32, "tmem": np.uint32}
_TYPES = {"u16": Uint16, "s32": Int32, "u64": Uint64, "f32": Float32, "f64": Float64, "pred": Boolean, "gmem": Uint64,
          "tmap": Uint64}  # fmt: skip
"""The types of instructions' results; the others are Uint32."""


MAKE = {kind: CLASSES[_TYPES.get(kind, Uint32)].make for kind in REGISTER}


def result_type(kind: str) -> DType:
    """The type of what an instruction gives as an operand of a kind."""
    return _TYPES.get(kind, Uint32)


_PLAIN = (int, float, np.generic, Leaf)


def scalar(kind: str, value: Any) -> Any:
    """A scalar operand as the instruction's register holds it."""
    if isinstance(value, Number):
        if value.dtype is _TYPES.get(kind):
            return value.value  # it lies in the register already
        value = value.value
    elif not isinstance(value, _PLAIN):
        raise CuteError(f"{described(value)}, is given where an instruction takes a number: give a number")
    mask = MASK.get(kind)
    if type(value) is float and (mask is not None or kind == "s32"):
        value = number(value, _TYPES.get(kind, Uint32))
    if mask is not None:
        return int(value) & mask
    if kind == "s32":
        return ((int(value) & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    if kind == "pred":
        return bool(value)
    return float(np.float32(value)) if kind == "f32" else float(value)


def check_registers(regs: Regs, size: int) -> None:
    """Raise an OutOfBoundsError for registers that begin where a register tensor of so many elements has none."""
    if regs.count and not 0 <= regs.start < size:
        last = regs.start + regs.count - 1
        raise OutOfBoundsError(f"registers: a thread accesses elements {regs.start} to {last} of a tensor of {size}")


def as_elements(file: Any, regs: Regs) -> Any:
    """Registers as elements of the width that a span of them has, which may be another than their own."""
    want = np.dtype(regs.dtype.numpy)
    return file if file.itemsize == want.itemsize else file.view(want)


def span(regs: Regs, dtype: Any = None) -> Any:
    """A span of one thread's registers as an array that shares their memory."""
    if not isinstance(regs.file, np.ndarray):
        raise CuteError(f"a pointer to registers has {described(regs.file)} for them; cute.make_rmem_tensor makes some")
    file = as_elements(regs.file, regs)
    check_registers(regs, len(file))
    part = file[regs.start : regs.start + regs.count]
    want = np.dtype(dtype if dtype is not None else regs.dtype.numpy)
    return part if part.dtype == want else part.view(want)


def vector(operand: Operand, value: Any, size: int, row: Instr) -> Any:
    """A vector operand of one thread."""
    dtype = BITS[operand.kind.name]
    if isinstance(value, Regs):
        out = span(value, dtype)
    else:
        out = np.array([scalar(operand.kind.name, v) for v in value], dtype)
    check_size(operand, len(out), size, row)
    return out


def check_size(operand: Operand, found: int, size: int, row: Instr) -> None:
    if found != size:
        raise CuteError(f"{row.name}: operand {operand.name} takes {size} registers, got {found}")


def results(row: Instr, case: dict[str, Any], operands: dict[str, Any], values: Any) -> Any:
    """Give what `issue` gives one thread: `values` are the body's outs for it."""
    outs = [o for o in row.operands_in(case) if o.writes and not o.reads]
    if not outs:
        return None
    given = []
    for o, v in zip(outs, values if len(outs) > 1 else (values,)):
        target = operands.get(o.name)
        if isinstance(target, Regs):
            span(target, BITS[o.kind.name])[...] = v
        else:
            kind = o.kind.name
            make = MAKE[kind]
            given += [make(scalar(kind, x)) for x in (v if o.count is not None else (v,))]
    return None if not given else given[0] if len(given) == 1 else tuple(given)


def issue_alone(
    run: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any], convoy: Together | None = None
) -> Any:
    """Issue a row whose issuer is one thread; with equal operands by all of a convoy at once."""
    values = {}
    for o in row.operands_in(case):
        if o.reads and o.name in operands:
            given = operands[o.name]
            values[o.name] = scalar(o.kind.name, given) if o.count is None else vector(o, given, o.size(case), row)
    threads = [run.thread] if convoy is None else convoy.threads
    m = Machine(run, row, threads, case=case)
    if "cta_group" in case:
        one_group(m, case["cta_group"])
    outs = row.perform(m, case, values)
    return results(row, case, operands, outs)


class Meet:
    """The threads of a unit on their way to one instruction that they issue together.

    operands: of each thread, those of a convoy's lanes as one. convoys: those that have come, with their places."""

    __slots__ = ("unit", "row", "case", "operands", "convoys", "arrived", "outs", "by", "undefined")

    def __init__(self, unit: Any, row: Instr, case: dict[str, Any]) -> None:
        self.unit, self.row, self.case = unit, row, case
        self.operands: list[dict[str, Any] | None] = [None] * len(unit.threads)
        self.convoys: list[tuple[Together, list[int]]] = []
        self.arrived = 0
        self.outs: Any = None
        self.by: Any = None  # the thread that runs the body
        self.undefined = False  # whether some threads' operands are: see spread

    def absent(self) -> list[Any]:
        return [t for t, ops in zip(self.unit.threads, self.operands) if ops is None]

    def arrive(self, places: list[int], operands: dict[str, Any], convoy: Together | None) -> None:
        if len(places) == len(self.operands):
            self.operands = [operands] * len(places)
        else:
            for at in places:
                self.operands[at] = operands
        if convoy is not None:
            self.convoys.append((convoy, places))
        self.arrived += len(places)

    def perform(self, run: Any) -> None:
        """Run the body for all; the last to arrive does it."""
        self.by = run.thread
        for tell in run.watch.meets:
            tell(self.unit.threads)
        whole = self.convoys[0][0].threads if len(self.convoys) == 1 else self.unit.threads  # of which more is known
        m = Machine(run, self.row, whole, self.unit, self.case)
        operands = self.row.operands_in(self.case)
        given: Any = self.operands[0]
        if "cta_group" in self.case:
            one_group(m, self.case["cta_group"])
        copied: list[tuple[str, Any]] = []
        values = {o.name: self._gather(o, m, copied) for o in operands if o.reads and o.name in given}
        if self.row.done_by == WGMMA_GROUP:
            for o in operands:
                if o.count is not None and not o.writes:
                    m.hold(values[o.name], True)
        for perform in run.watch.performs if self.undefined else ():
            self.outs = perform(self, m, values)
        if not self.undefined:
            self.outs = self.row.perform(m, self.case, values)
        if self.row.done_by == TCGEN05_LOADS:
            for follow in run.watch.loads_tensor_memory:
                follow(self, m, values)
            for tell in run.watch.loads_registers:
                written = [o.name for o in operands if o.writes and o.name in given]
                tell(m, [r for name in written for r in zip(m.threads, self._alone(name))])
        for name, array in copied:
            for regs, lane in zip(self._alone(name), array):
                span(regs, array.dtype)[...] = lane

    def _alone(self, name: str) -> list[Any]:
        """An operand as each thread has it."""
        given = [ops[name] for ops in self.operands]  # type: ignore[index]
        for f, places in self.convoys:
            for at, value in zip(places, f.column(given[places[0]])):
                given[at] = value
        return given

    def _gather(self, o: Operand, m: Machine, copied: list[tuple[str, Any]]) -> Any:
        kind, name = o.kind.name, o.name
        if o.count is None:
            if self.convoys:
                return self._scalars(kind, name, o.same)
            given = self._alone(name)
            first = given[0]
            if given.count(first) == len(given):
                return np.full(len(given), scalar(kind, first), REGISTER[kind])
            return np.array([scalar(kind, v) for v in given], REGISTER[kind])
        chosen = [places[0] for _, places in self.convoys] or range(len(self.operands))
        given = [self.operands[at][name] for at in chosen]  # type: ignore[index]
        whole = _slab(given, self.unit, BITS[kind], bool(self.convoys))
        if whole is None:
            whole = (
                self._vectors(o)
                if self.convoys
                else np.stack([vector(o, v, o.size(self.case), self.row) for v in self._alone(name)])
            )
            if o.writes:
                copied.append((name, whole))
                m.eager = True
        if whole.shape[1] != o.size(self.case):
            raise CuteError(
                f"{self.row.name}: operand {name} takes {o.size(self.case)} registers, got {whole.shape[1]}"
            )
        return whole

    def _scalars(self, kind: str, name: str, same: bool) -> Any:
        """A scalar operand of convoys."""
        size = len(self.operands)
        if len(self.convoys) == 1:
            found = self.convoys[0][0].scalars(kind, self.operands[0][name])  # type: ignore[index]
            return found if same or isinstance(found, np.ndarray) else np.full(size, found, REGISTER[kind])
        out: Any = np.empty(size, REGISTER[kind])
        for f, places in self.convoys:
            value = self.operands[places[0]][name]  # type: ignore[index]
            _put(out, places, f.scalars(kind, value))
        return out

    def _vectors(self, o: Operand) -> Any:
        """A vector operand of convoys."""
        size = o.size(self.case)
        if len(self.convoys) == 1:
            return self.convoys[0][0].vectors(o, self.operands[0][o.name], size, self.row)  # type: ignore[index]
        out = np.empty((len(self.operands), size), BITS[o.kind.name])
        for f, places in self.convoys:
            _put(out, places, f.vectors(o, self.operands[places[0]][o.name], size, self.row))  # type: ignore[index]
        return out


def _put(out: Any, places: list[int], values: Any) -> None:
    """Set the lanes at `places`, which mostly lie side by side."""
    low, high = places[0], places[-1] + 1
    if high - low == len(places):
        out[low:high] = values
    else:
        out[places] = values


def _slab(given: list[Any], unit: Any, dtype: Any, together: bool) -> Any:
    """All lanes' spans as one view, if they lie in one slab of register files (see `SimBackend.registers`). together:
    each of `given` is of a convoy's lanes, and its file knows the slab's first thread."""
    first = given[0]
    if not isinstance(first, Regs):
        return None
    start, count = first.start, first.count
    if not all(isinstance(r, Regs) and r.start == start and r.count == count for r in given):
        return None
    base = first.file.base
    if base is None or not all(r.file.base is base for r in given):
        return None
    if together:
        row = unit.threads[0].index - first.file.first
    else:
        row = (first.file.ctypes.data - base.ctypes.data) // base.strides[0]
    part = as_elements(base, first)[row : row + len(unit.threads), start : start + count]
    return part if part.dtype == dtype else part.view(dtype)


def issue_together(run: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
    """Issue a row whose issuer is a warp or wider: wait for the other threads; the last one runs the body."""
    if row.mask is not None and row.mask in operands:
        return _issue_masked(run, row, case, operands, row.mask)
    convoy = run.thread.convoy
    thread = run.thread if convoy is None else convoy.threads[0]
    unit = thread.unit(row.issuer, row.name)
    key = (row.name, id(case), row.given(operands))
    meet = unit.meets.get(key)
    if meet is None:
        if row.issuer in (WARP, WARPGROUP):
            _check_converged(unit, row, thread)
        meet = unit.meets[key] = Meet(unit, row, case)
    at = thread.index - unit.threads[0].index if row.issuer != CLUSTER else unit.threads.index(thread)
    places = [at] if convoy is None else _places(convoy, unit, at)
    return _join(run, unit.meets, key, operands, places)


def _issue_masked(run: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any], name: str) -> Any:
    """`issue_together` for the lanes of a warp that the operand `name` names, wherever the others are."""
    convoy, given = run.thread.convoy, operands[name]
    mask = int(given if convoy is None else convoy.common(given)) & 0xFFFFFFFF
    threads = [run.thread] if convoy is None else convoy.threads
    if not mask >> threads[0].lane & 1:
        m = Machine(run, row, threads)
        raise DivergenceError(f"{row.name}: {m.describe()} is not in its own mask {mask:#x}, at {m.place}")
    warp = threads[0].warp
    key = (row.name, id(case), mask)
    meet = warp.meets.get(key)
    if meet is None:
        named = [t for t in warp.threads if mask >> t.lane & 1]
        meet = warp.meets[key] = Meet(type(warp)(f"warp that the mask {mask:#x} names", named), row, case)
    lanes = [t.lane for t in meet.unit.threads]
    places = [lanes.index(t.lane) for t in threads]
    return _join(run, warp.meets, key, {**operands, name: mask}, places)


def _join(run: Any, meets: dict[Any, Any], key: Any, operands: dict[str, Any], places: list[int]) -> Any:
    """Come to a meeting with the operands of the threads at `places`, wait for all, and give what the body gave."""
    meet, thread = meets[key], run.thread
    convoy, unit, row = thread.convoy, meet.unit, meet.row
    meet.arrive(places, operands, convoy)
    if thread.undefined:
        meet.undefined = True
    if meet.arrived < len(unit.threads):
        who_waits(run).suspend(row.name, meet, None)
    else:
        del meets[key]
        meet.perform(run)
        meeting = [f.members[0] for f, _ in meet.convoys] if convoy is not None else unit.threads
        thread.cta.cluster.wake_others(meeting)
        if len(meet.convoys) == 1:
            let_others_run(run.thread, row.name, meet)  # `thread` may have gone another way where the body waited
    if meet.outs is None:
        return None
    several = isinstance(meet.outs, tuple)
    if convoy is not None:
        outs = meet.outs if several else (meet.outs,)
        return convoy.results(row, meet.case, operands, [lane(o, places) for o in outs])
    mine = tuple(lane(o, places[0]) for o in meet.outs) if several else lane(meet.outs, places[0])
    return results(row, meet.case, operands, mine)


def _places(f: Together, unit: Any, first: int) -> list[int]:
    """Return the places of a convoy's threads in a unit, the first of them at `first`."""
    found: list[int] | None = f.memory.get(unit)
    if found is None:
        index = f.threads[0].index
        found = f.memory[unit] = [first + t.index - index for t in f.threads]
    return found


def lane(out: Any, at: Any) -> Any:
    """One lane's part of an `out`, or that of several; a single value stands for all lanes."""
    return out[at] if isinstance(out, np.ndarray) and out.ndim else out


def _check_converged(unit: Any, row: Instr, thread: Any) -> None:
    # exchanges of some lanes may end first
    other = next((meet for meet in unit.meets.values() if hasattr(meet, "row") and meet.unit is unit), None)
    if other is None:
        return
    there = [t for t, ops in zip(unit.threads, other.operands) if ops is not None]
    m = Machine(thread.cta.cluster.run, row, [thread])
    raise DivergenceError(
        f"divergent {unit.kind}: {m.describe()} issues {row.name} at {m.place}\n"
        f"  but thread {there[0].index} of the same {unit.kind} waits in {other.row.name} at {there[0].place}; all "
        f"{len(unit.threads)} threads must execute the same one together"
    )
