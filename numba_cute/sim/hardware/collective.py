# SPDX-License-Identifier: Apache-2.0
"""Issuing an instruction: operands become Python numbers and NumPy arrays, and threads that issue together meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import Boolean, DType, Float32, Float64, Int32, Uint16, Uint32, Uint64, number
from ...isa.form.instr import CLUSTER, TCGEN05_LOADS, WARP, WARPGROUP, WGMMA_GROUP, Instr
from ...isa.form.kinds import Operand
from ...seam import CuteError, Regs
from ..checks.spread import perform
from ..lanes.fragment import Fragment, column
from ..lanes.lanes import LaneFile, Lanes
from ..python.arithmetic.number import CLASSES, Number
from ..report import DivergenceError
from .machine import Machine
from .tmem import loads, one_group

_MASK = {"u16": 0xFFFF, "u32": 0xFFFFFFFF, "smem": 0xFFFFFFFF, "cluster_smem": 0xFFFFFFFF, "tmem": 0xFFFFFFFF,
         "u64": (1 << 64) - 1, "gmem": (1 << 64) - 1, "tmap": (1 << 64) - 1}  # fmt: skip
_DTYPE = {"u16": np.uint16, "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "f32": np.float32,
          "f64": np.float64, "pred": np.bool_, "smem": np.int64, "cluster_smem": np.int64, "gmem": np.uint64,
          "tmap": np.uint64, "tmem": np.int64}  # fmt: skip
_BITS: dict[str, Any] = {**_DTYPE, "smem": np.uint32, "cluster_smem": np.uint32, "tmem": np.uint32}
_TYPES = {"u16": Uint16, "s32": Int32, "u64": Uint64, "f32": Float32, "f64": Float64, "pred": Boolean, "gmem": Uint64,
          "tmap": Uint64}  # fmt: skip
"""Of what instructions give; the others are Uint32."""


_MAKE = {kind: CLASSES[_TYPES.get(kind, Uint32)].make for kind in _DTYPE}


def result_type(kind: str) -> DType:
    """The type of what an instruction gives as an operand of a kind."""
    return _TYPES.get(kind, Uint32)


def scalar(kind: str, value: Any) -> Any:
    """A scalar operand as the instruction's register holds it."""
    if isinstance(value, Number):
        if value.dtype is _TYPES.get(kind):
            return value.value  # it lies in the register already
        value = value.value
    mask = _MASK.get(kind)
    if type(value) is float and (mask is not None or kind == "s32"):
        value = number(value, _TYPES.get(kind, Uint32))
    if mask is not None:
        return int(value) & mask
    if kind == "s32":
        return ((int(value) & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    if kind == "pred":
        return bool(value)
    return float(np.float32(value)) if kind == "f32" else float(value)


def span(regs: Regs, dtype: Any = None) -> Any:
    """A span of one thread's registers as an array that shares their memory."""
    part = regs.file[regs.start : regs.start + regs.count]
    want = np.dtype(dtype if dtype is not None else regs.dtype.numpy)
    return part if part.dtype == want else part.view(want)


def _vector(operand: Operand, value: Any, size: int, row: Instr) -> Any:
    """A vector operand of one thread."""
    dtype = _BITS[operand.kind.name]
    if isinstance(value, Regs):
        out = span(value, dtype)
    else:
        out = np.array([scalar(operand.kind.name, v) for v in value], dtype)
    _check_size(operand, len(out), size, row)
    return out


def _check_size(operand: Operand, found: int, size: int, row: Instr) -> None:
    if found != size:
        raise CuteError(f"{row.name}: operand {operand.name} takes {size} registers, got {found}")


def results(row: Instr, case: dict[str, Any], operands: dict[str, Any], values: Any) -> Any:
    """What `issue` gives one thread: `values` are the body's outs for it."""
    outs = [o for o in row.operands_in(case) if o.writes and not o.reads]
    if not outs:
        return None
    given = []
    for o, v in zip(outs, values if len(outs) > 1 else (values,)):
        target = operands.get(o.name)
        if isinstance(target, Regs):
            span(target, _BITS[o.kind.name])[...] = v
        else:
            kind = o.kind.name
            make = _MAKE[kind]
            given += [make(scalar(kind, x)) for x in (v if o.count is not None else (v,))]
    return None if not given else given[0] if len(given) == 1 else tuple(given)


def registers_of(kind: str, value: Lanes) -> Any:
    """A scalar operand of several lanes as an array."""
    dtype = _DTYPE[kind]
    if kind in ("f32", "f64", "pred"):
        return value.array(dtype)
    if kind == "u64":
        return np.array([scalar(kind, v) for v in value.list], dtype)
    return (value.array(np.int64) & _MASK[kind]).astype(dtype) if kind in _MASK else value.array(np.int64).astype(dtype)


def as_lanes(f: Fragment, kind: str, values: Any) -> Any:
    """What a body gave the lanes of a fragment: an array, or one value for all."""
    if not isinstance(values, np.ndarray) or not values.ndim:
        return _MAKE[kind](scalar(kind, values))
    if kind in _MASK and values.dtype != np.uint32:
        values = values.astype(np.int64) & _MASK[kind] if _MASK[kind] < 1 << 63 else values.astype(np.uint64)
    return f.of_array(result_type(kind), values.astype(_DTYPE[kind], copy=False))


def spans(f: Fragment, regs: Regs, dtype: Any = None) -> Any:
    """A span of registers of all lanes of a fragment: shape (lanes, count)."""
    file: LaneFile = regs.file
    part = file.slab[file.rows(f), regs.start : regs.start + regs.count]
    want = np.dtype(dtype if dtype is not None else regs.dtype.numpy)
    return part if part.dtype == want else part.view(want)


def issue_alone(
    run: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any], fragment: Fragment | None = None
) -> Any:
    """Issue a row whose issuer is one thread; with equal operands by all of a fragment at once."""
    values = {}
    for o in row.operands_in(case):
        if o.reads and o.name in operands:
            given = operands[o.name]
            values[o.name] = scalar(o.kind.name, given) if o.count is None else _vector(o, given, o.size(case), row)
    threads = [run.thread] if fragment is None else fragment.threads
    m = Machine(run, row, threads, case=case)
    if "cta_group" in case:
        one_group(m, case["cta_group"])
    outs = row.perform(m, case, values)
    return results(row, case, operands, outs)


class Meet:
    """The threads of a unit on their way to one instruction that they issue together.

    operands: of each thread, those of a fragment's lanes as one. fragments: those that have come, with their places."""

    __slots__ = ("unit", "row", "case", "operands", "fragments", "arrived", "outs", "by", "undefined")

    def __init__(self, unit: Any, row: Instr, case: dict[str, Any]) -> None:
        self.unit, self.row, self.case = unit, row, case
        self.operands: list[dict[str, Any] | None] = [None] * len(unit.threads)
        self.fragments: list[tuple[Fragment, list[int]]] = []
        self.arrived = 0
        self.outs: Any = None
        self.by: Any = None  # the thread that runs the body
        self.undefined = False  # whether some threads' operands are: see spread

    def absent(self) -> list[Any]:
        return [t for t, ops in zip(self.unit.threads, self.operands) if ops is None]

    def arrive(self, places: list[int], operands: dict[str, Any], fragment: Fragment | None) -> None:
        for at in places:
            self.operands[at] = operands
        if fragment is not None:
            self.fragments.append((fragment, places))
        self.arrived += len(places)

    def perform(self, run: Any) -> None:
        """Run the body for all; the last to arrive does it."""
        self.by = run.thread
        m = Machine(run, self.row, self.unit.threads, self.unit, self.case)
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
        self.outs = perform(self, m, values) if self.undefined else self.row.perform(m, self.case, values)
        if self.row.done_by == TCGEN05_LOADS and "registers" in run.checks:
            written = [o.name for o in operands if o.writes and o.name in given]
            loads(m, [r for name in written for r in zip(m.threads, self._alone(name))])
        for name, array in copied:
            for regs, lane in zip(self._alone(name), array):
                span(regs, array.dtype)[...] = lane

    def _alone(self, name: str) -> list[Any]:
        """An operand as each thread has it."""
        given = [ops[name] for ops in self.operands]  # type: ignore[index]
        for f, places in self.fragments:
            for at, value in zip(places, column(given[places[0]], f.threads)):
                given[at] = value
        return given

    def _gather(self, o: Operand, m: Machine, copied: list[tuple[str, Any]]) -> Any:
        kind, name = o.kind.name, o.name
        if o.count is None:
            if self.fragments:
                return self._scalars(kind, name)
            given = self._alone(name)
            first = given[0]
            if given.count(first) == len(given):
                return np.full(len(given), scalar(kind, first), _DTYPE[kind])
            return np.array([scalar(kind, v) for v in given], _DTYPE[kind])
        chosen = [places[0] for _, places in self.fragments] or range(len(self.operands))
        whole = _slab([self.operands[at][name] for at in chosen], self.unit, _BITS[kind])  # type: ignore[index]
        if whole is None:
            whole = (
                self._vectors(o)
                if self.fragments
                else np.stack([_vector(o, v, o.size(self.case), self.row) for v in self._alone(name)])
            )
            if o.writes:
                copied.append((name, whole))
                m.eager = True
        if whole.shape[1] != o.size(self.case):
            raise CuteError(
                f"{self.row.name}: operand {name} takes {o.size(self.case)} registers, got {whole.shape[1]}"
            )
        return whole

    def _scalars(self, kind: str, name: str) -> Any:
        """A scalar operand of fragments."""
        out: Any = np.empty(len(self.operands), _DTYPE[kind])
        for _, places in self.fragments:
            value = self.operands[places[0]][name]  # type: ignore[index]
            _put(out, places, registers_of(kind, value) if type(value) is Lanes else scalar(kind, value))
        return out

    def _vectors(self, o: Operand) -> Any:
        """A vector operand of fragments."""
        kind, size = o.kind.name, o.size(self.case)
        out = np.empty((len(self.operands), size), _BITS[kind])
        for f, places in self.fragments:
            value = self.operands[places[0]][o.name]  # type: ignore[index]
            if isinstance(value, Regs) and type(value.start) is not Lanes:
                _check_size(o, value.count, size, self.row)
                _put(out, places, spans(f, value, out.dtype))
                continue
            if isinstance(value, Regs):
                _put(out, places, np.stack([_vector(o, v, size, self.row) for v in column(value, f.threads)]))
                continue
            _check_size(o, len(value), size, self.row)
            for i, v in enumerate(value):
                _put(out[:, i], places, registers_of(kind, v) if type(v) is Lanes else scalar(kind, v))
        return out


def _put(out: Any, places: list[int], values: Any) -> None:
    """Set the lanes at `places`, which mostly lie side by side."""
    low, high = places[0], places[-1] + 1
    if high - low == len(places):
        out[low:high] = values
    else:
        out[places] = values


def _slab(given: list[Any], unit: Any, dtype: Any) -> Any:
    """All lanes' spans as one view, if they lie in one slab of register files (see `SimBackend.registers`)."""
    first = given[0]
    if not isinstance(first, Regs):
        return None
    start, count = first.start, first.count
    if not all(isinstance(r, Regs) and r.start == start and r.count == count for r in given):
        return None
    if type(first.file) is LaneFile:
        base, row = first.file.slab, unit.threads[0].index - first.file.first
        if not all(type(r.file) is LaneFile and r.file.slab is base for r in given):
            return None
    elif isinstance(first.file, np.ndarray) and first.file.base is not None:
        base = first.file.base
        if not all(isinstance(r.file, np.ndarray) and r.file.base is base for r in given):
            return None
        row = (first.file.ctypes.data - base.ctypes.data) // base.strides[0]
    else:
        return None
    part = base[row : row + len(unit.threads), start : start + count]
    return part if part.dtype == dtype else part.view(dtype)


def issue_together(run: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
    """Issue a row whose issuer is a warp or wider: wait for the other threads; the last one runs the body."""
    if row.mask is not None and row.mask in operands:
        return _issue_masked(run, row, case, operands, row.mask)
    thread = run.thread
    fragment = thread.fragment
    unit = thread.unit(row.issuer, row.name)
    key = (row.name, id(case), row.given(operands))
    meet = unit.meets.get(key)
    if meet is None:
        if row.issuer in (WARP, WARPGROUP):
            _check_converged(unit, row, thread)
        meet = unit.meets[key] = Meet(unit, row, case)
    at = thread.index - unit.threads[0].index if row.issuer != CLUSTER else unit.threads.index(thread)
    places = [at] if fragment is None else _places(fragment, unit, at)
    return _join(run, thread, unit.meets, key, operands, places)


def _issue_masked(run: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any], name: str) -> Any:
    """`issue_together` for the lanes of a warp that the operand `name` names, wherever the others are."""
    fragment, given = run.thread.fragment, operands[name]
    if type(given) is Lanes:
        fragment.alike(given)  # lanes of another mask part here
        given = given.list[0]
    mask = int(given) & 0xFFFFFFFF
    if fragment is not None:
        fragment.alike(Lanes(fragment, None, [mask >> lane & 1 for lane in fragment.lanes]))
    threads = [run.thread] if fragment is None else fragment.threads
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
    return _join(run, threads[0], warp.meets, key, {**operands, name: mask}, places)


def _join(run: Any, thread: Any, meets: dict[Any, Any], key: Any, operands: dict[str, Any], places: list[int]) -> Any:
    """Come to a meeting with the operands of the threads at `places`, wait for all, and give what the body gave."""
    meet = meets[key]
    fragment, unit, row = thread.fragment, meet.unit, meet.row
    meet.arrive(places, operands, fragment)
    if thread.undefined:
        meet.undefined = True
    if meet.arrived < len(unit.threads):
        thread.suspend(row.name, meet, None)
    else:
        del meets[key]
        meet.perform(run)
        meeting = [f.members[0] for f, _ in meet.fragments] if fragment is not None else unit.threads
        thread.cta.cluster.wake_others(meeting)
    if meet.outs is None:
        return None
    several = isinstance(meet.outs, tuple)
    if fragment is not None:
        outs = meet.outs if several else (meet.outs,)
        return _lane_results(fragment, row, meet.case, operands, [lane(o, places) for o in outs])
    mine = tuple(lane(o, places[0]) for o in meet.outs) if several else lane(meet.outs, places[0])
    return results(row, meet.case, operands, mine)


def _places(f: Fragment, unit: Any, first: int) -> list[int]:
    """Where a fragment's threads are in a unit, the first of them at `first`."""
    found: list[int] | None = f.memory.get(unit)
    if found is None:
        index = f.threads[0].index
        found = f.memory[unit] = [first + t.index - index for t in f.threads]
    return found


def _lane_results(f: Fragment, row: Instr, case: Any, operands: dict[str, Any], values: list[Any]) -> Any:
    """`results` for the lanes of a fragment."""
    given: list[Any] = []
    for o, v in zip([o for o in row.operands_in(case) if o.writes and not o.reads], values):
        target, kind = operands.get(o.name), o.kind.name
        if isinstance(target, Regs):
            if type(target.file) is LaneFile:
                file = target.file
                part = file.slab[:, target.start : target.start + target.count]
                part = part if part.dtype == _BITS[kind] else part.view(_BITS[kind])
                part[file.rows(f)] = v
            else:
                span(target, _BITS[kind])[...] = v[0] if isinstance(v, np.ndarray) and v.ndim > 1 else v
        elif o.count is None:
            given.append(as_lanes(f, kind, v))
        else:
            given += [as_lanes(f, kind, v[:, i]) for i in range(v.shape[1])]
    return None if not given else given[0] if len(given) == 1 else tuple(given)


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
