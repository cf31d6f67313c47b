# SPDX-License-Identifier: Apache-2.0
"""Issuing an instruction: operands become Python numbers and NumPy arrays, and threads that issue together meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..isa.instr import WGMMA_GROUP, Instr, Operand
from ..seam import CuteError, Regs
from .machine import Machine
from .report import DivergenceError

_MASK = {"u16": 0xFFFF, "u32": 0xFFFFFFFF, "smem": 0xFFFFFFFF, "cluster_smem": 0xFFFFFFFF, "tmem": 0xFFFFFFFF,
         "u64": (1 << 64) - 1, "gmem": (1 << 64) - 1, "tmap": (1 << 64) - 1}  # fmt: skip
_DTYPE = {"u16": np.uint16, "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "f32": np.float32,
          "f64": np.float64, "pred": np.bool_, "smem": np.int64, "cluster_smem": np.int64, "gmem": np.uint64,
          "tmap": np.uint64, "tmem": np.int64}  # fmt: skip
_BITS: dict[str, Any] = {**_DTYPE, "smem": np.uint32, "cluster_smem": np.uint32, "tmem": np.uint32}


def scalar(kind: str, value: Any) -> Any:
    """A scalar operand as the instruction's register holds it."""
    mask = _MASK.get(kind)
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
    if len(out) != size:
        raise CuteError(f"{row.name}: operand {operand.name} takes {size} registers, got {len(out)}")
    return out


def results(row: Instr, case: dict[str, Any], operands: dict[str, Any], values: Any) -> Any:
    """What `issue` gives one thread: `values` are the body's outs for it."""
    outs = [o for o in row.operands if o.writes and not o.reads]
    if not outs:
        return None
    given = []
    for o, v in zip(outs, values if len(outs) > 1 else (values,)):
        target = operands.get(o.name)
        if isinstance(target, Regs):
            span(target, _BITS[o.kind.name])[...] = v
        elif o.count is None:
            given.append(scalar(o.kind.name, v))
        else:
            given += [scalar(o.kind.name, x) for x in v]
    return None if not given else given[0] if len(given) == 1 else tuple(given)


def issue_alone(run: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
    """Issue a row whose issuer is one thread."""
    values = {}
    for o in row.operands:
        if o.reads:
            given = operands[o.name]
            values[o.name] = scalar(o.kind.name, given) if o.count is None else _vector(o, given, o.size(case), row)
    outs = row.perform(Machine(run, row, [run.thread]), case, values)
    return results(row, case, operands, outs)


class Meet:
    """The threads of a unit on their way to one instruction that they issue together."""

    __slots__ = ("unit", "row", "case", "operands", "arrived", "outs", "by")

    def __init__(self, unit: Any, row: Instr, case: dict[str, Any]) -> None:
        self.unit, self.row, self.case = unit, row, case
        self.operands: list[dict[str, Any] | None] = [None] * len(unit.threads)
        self.arrived = 0
        self.outs: Any = None
        self.by: Any = None  # the thread that runs the body

    def absent(self) -> list[Any]:
        return [t for t, ops in zip(self.unit.threads, self.operands) if ops is None]

    def perform(self, run: Any) -> None:
        """Run the body for all; the last to arrive does it."""
        self.by = run.thread
        m = Machine(run, self.row, self.unit.threads, self.unit)
        copied: list[tuple[str, Any]] = []
        values = {o.name: self._gather(o, m, copied) for o in self.row.operands if o.reads}
        if self.row.done_by == WGMMA_GROUP:
            for o in self.row.operands:
                if o.count is not None and not o.writes:
                    m.hold(values[o.name], True)
        self.outs = self.row.perform(m, self.case, values)
        for name, array in copied:
            for ops, lane in zip(self.operands, array):
                span(ops[name], array.dtype)[...] = lane  # type: ignore[index]

    def _gather(self, o: Operand, m: Machine, copied: list[tuple[str, Any]]) -> Any:
        kind, name = o.kind.name, o.name
        given = [ops[name] for ops in self.operands]  # type: ignore[index]
        if o.count is None:
            first = given[0]
            if given.count(first) == len(given):
                return np.full(len(given), scalar(kind, first), _DTYPE[kind])
            return np.array([scalar(kind, v) for v in given], _DTYPE[kind])
        whole = _slab(given, _BITS[kind])
        if whole is None:
            whole = np.stack([_vector(o, v, o.size(self.case), self.row) for v in given])
            if o.writes:
                copied.append((name, whole))
                m.eager = True
        if whole.shape[1] != o.size(self.case):
            raise CuteError(
                f"{self.row.name}: operand {name} takes {o.size(self.case)} registers, got {whole.shape[1]}"
            )
        return whole


def _slab(given: list[Any], dtype: Any) -> Any:
    """All lanes' spans as one view, if they lie in one slab of register files (see `SimBackend.registers`)."""
    first = given[0]
    if not isinstance(first, Regs) or not isinstance(first.file, np.ndarray) or first.file.base is None:
        return None
    base, start, count = first.file.base, first.start, first.count
    if not all(isinstance(r, Regs) and r.file.base is base and r.start == start and r.count == count for r in given):
        return None
    row = (first.file.ctypes.data - base.ctypes.data) // base.strides[0]
    part = base[row : row + len(given), start : start + count]
    return part if part.dtype == dtype else part.view(dtype)


def issue_together(run: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
    """Issue a row whose issuer is a warp or wider: wait for the other threads; the last one runs the body."""
    thread = run.thread
    unit = thread.unit(row.issuer, row.name)
    key = (row.name, id(case))
    meet = unit.meets.get(key)
    if meet is None:
        if row.issuer in ("warp", "warpgroup"):
            _check_converged(unit, row, thread)
        meet = unit.meets[key] = Meet(unit, row, case)
    at = thread.index - unit.threads[0].index if row.issuer != "cluster" else unit.threads.index(thread)
    meet.operands[at] = operands
    meet.arrived += 1
    if meet.arrived < len(unit.threads):
        thread.suspend(row.name, meet, None)
    else:
        del unit.meets[key]
        meet.perform(run)
        for t in unit.threads:
            if t is not thread:
                t.cta.cluster.wake(t)
    if meet.outs is None:
        return None
    several = isinstance(meet.outs, tuple)
    mine = tuple(lane(o, at) for o in meet.outs) if several else lane(meet.outs, at)
    return results(row, case, operands, mine)


def lane(out: Any, at: int) -> Any:
    """One lane's part of an `out`; a single value stands for all lanes."""
    return out[at] if isinstance(out, np.ndarray) and out.ndim else out


def _check_converged(unit: Any, row: Instr, thread: Any) -> None:
    if not unit.meets:
        return
    other = next(iter(unit.meets.values()))
    there = [t for t, ops in zip(unit.threads, other.operands) if ops is not None]
    m = Machine(thread.cta.cluster.run, row, [thread])
    raise DivergenceError(
        f"divergent {unit.kind}: {m.describe()} issues {row.name} at {m.place}\n"
        f"  but thread {there[0].index} of the same {unit.kind} waits in {other.row.name} at {there[0].place}; all "
        f"{len(unit.threads)} threads must execute the same one together"
    )
