# SPDX-License-Identifier: Apache-2.0
"""Instructions' operands and results of lanes that run together, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...isa.form.instr import Instr
from ...isa.form.kinds import Operand
from ...seam import Regs
from ..hardware.collective import (
    BITS,
    MAKE,
    MASK,
    REGISTER,
    as_elements,
    check_registers,
    check_size,
    result_type,
    scalar,
    span,
    vector,
)
from ..python.arithmetic.lanes import LaneFile, Lanes


def scalars(kind: str, value: Any) -> Any:
    """A scalar operand: an array, or one number for all lanes."""
    return registers_of(kind, value) if type(value) is Lanes else scalar(kind, value)


def vectors(f: Any, o: Operand, value: Any, size: int, row: Instr) -> Any:
    """A vector operand of a convoy's lanes: shape (lanes, size)."""
    kind = o.kind.name
    if isinstance(value, Regs):
        if type(value.start) is Lanes:
            return np.stack([vector(o, v, size, row) for v in f.column(value)])
        found = spans(f, value, BITS[kind])
        check_size(o, found.shape[1], size, row)
        return found
    check_size(o, len(value), size, row)
    out = np.empty((len(f.threads), size), BITS[kind])
    for i, v in enumerate(value):
        out[:, i] = scalars(kind, v)
    return out


def registers_of(kind: str, value: Lanes) -> Any:
    """A scalar operand of several lanes as an array."""
    dtype = REGISTER[kind]
    if kind in ("f32", "f64", "pred"):
        return value.array(dtype)
    if kind == "u64":
        if value.dtype is None or not value.dtype.is_integer:
            return np.array([scalar(kind, v) for v in value.values], dtype)
        return value.array(value.dtype.numpy).astype(dtype)
    return (value.array(np.int64) & MASK[kind]).astype(dtype) if kind in MASK else value.array(np.int64).astype(dtype)


def as_lanes(f: Any, kind: str, values: Any) -> Any:
    """Convert what a body gave the lanes of a convoy: an array, or one value for all."""
    if not isinstance(values, np.ndarray) or not values.ndim:
        return MAKE[kind](scalar(kind, values))
    if kind in MASK and values.dtype != np.uint32:
        values = values.astype(np.int64) & MASK[kind] if MASK[kind] < 1 << 63 else values.astype(np.uint64)
    return f.of_array(result_type(kind), values.astype(REGISTER[kind], copy=False))


def spans(f: Any, regs: Regs, dtype: Any = None) -> Any:
    """A span of registers of all lanes of a convoy: shape (lanes, count)."""
    file: LaneFile = regs.file
    base = as_elements(file.base, regs)
    check_registers(regs, base.shape[1])
    part = base[file.rows(f), regs.start : regs.start + regs.count]
    want = np.dtype(dtype if dtype is not None else regs.dtype.numpy)
    return part if part.dtype == want else part.view(want)


def lane_results(f: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any], values: list[Any]) -> Any:
    """`results` for the lanes of a convoy."""
    given: list[Any] = []
    for o, v in zip([o for o in row.operands_in(case) if o.writes and not o.reads], values):
        target, kind = operands.get(o.name), o.kind.name
        if isinstance(target, Regs):
            if type(target.file) is LaneFile:
                file = target.file
                part = as_elements(file.base, target)[:, target.start : target.start + target.count]
                part = part if part.dtype == BITS[kind] else part.view(BITS[kind])
                part[file.rows(f)] = v
            else:
                span(target, BITS[kind])[...] = v[0] if isinstance(v, np.ndarray) and v.ndim > 1 else v
        elif o.count is None:
            given.append(as_lanes(f, kind, v))
        else:
            given += [as_lanes(f, kind, v[:, i]) for i in range(v.shape[1])]
    return None if not given else given[0] if len(given) == 1 else tuple(given)
