# SPDX-License-Identifier: Apache-2.0
"""Undefined operands of instructions: what comes out differently for different values in their place is
undefined."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....isa.form.instr import WARP, WGMMA_GROUP, Instr
from ....isa.form.kinds import CONTROL, MEMORY, Operand, Role, u32
from ....seam import Regs
from ...python.arithmetic.number import plain
from ...python.arithmetic.undefined import POISON, Never, Partial, Undefined, Why
from .unwritten import undefine

Reasons = dict[str, dict[int, Why]]
"""Reasons why elements of operands are undefined, by operand and element (0 of a scalar)."""

_KINDS = {"pred": "bool", "f32": "float", "f64": "float"}
_TYPES: dict[str, Any] = {"u16": np.uint16, "s32": np.int32, "u64": np.uint64, "f32": np.float32, "f64": np.float64}


def undefined(kind: str, why: Why) -> Undefined:
    """An undefined scalar of an operand's kind."""
    return Undefined(why, _KINDS.get(kind, "int"))


def may_spread(row: Instr, why: Reasons) -> bool:
    """Tell whether what a row of several threads does to its operands is known here: it gives what depends on them, and
    does no more."""
    roles = {o.role for o in row.operands if o.name in why}
    if not roles.isdisjoint(CONTROL):  # with garbage there the instruction is wrong, whoever uses what it gives
        return False
    if row.done_by == WGMMA_GROUP:
        return roles <= {Role.ACCUMULATOR, Role.VALUE}
    quiet = row.issuer == WARP and row.done_by is None and any(o.writes for o in row.operands)
    return quiet and not any(o.role in MEMORY for o in row.operands)


# one thread


def alone(backend: Any, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
    """Give the results of a pure row of one thread, of which some operands are undefined."""
    given = {k: backend.vector(v) if isinstance(v, Regs) else v for k, v in operands.items()}
    inputs = {o: given[o.name] for o in row.operands_in(case) if o.reads and o.name in given}
    why = next(w for v in inputs.values() for w in _reasons(v))
    tries = []
    for byte in POISON:
        out = backend.issue_defined(row, case, {o.name: _filled(o, v, byte) for o, v in inputs.items()})
        tries.append(out if isinstance(out, tuple) else (out,))
    values: list[Any] = []
    at = 0
    for o in row.operands_in(case):
        if not o.writes:
            continue
        found = [t[at : at + o.size(case)] for t in tries]
        part = [x[0] if _same(x) else undefined(o.kind.name, why) for x in zip(*found)]
        at += len(part)
        target = operands.get(o.name)
        if isinstance(target, Regs):
            backend.unvector(backend.pack(target.dtype, part), target)
        else:
            values += part
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def _reasons(value: Any) -> list[Why]:
    if isinstance(value, (list, tuple)):
        return [w for v in value for w in _reasons(v)]
    return [value.why] if type(value) is Undefined else list(value.why.values()) if type(value) is Partial else []


def _filled(o: Operand, value: Any, byte: int) -> Any:
    """An operand with what the byte makes where it is undefined."""
    if type(value) is Undefined:
        if o.kind.name == "pred":
            return byte == POISON[0]
        return np.full(8, byte, np.uint8).view(_TYPES.get(o.kind.name, np.uint32))[0].item()
    if isinstance(value, (list, tuple, Partial)):
        return [_filled(o, v, byte) for v in value]
    return value


def _same(values: Any) -> bool:
    values = [plain(v) for v in values]
    first = values[0]
    return all(v == first or (v != v and first != first) for v in values)


# the threads of a warp or warpgroup together


def perform(meet: Any, m: Any, values: dict[str, Any]) -> Any:
    """Run the body for threads that meet, of which some have undefined operands (`Thread.undefined`). Registers that it
    writes are marked; what else it gives is left with the threads (`Thread.received`)."""
    why: list[Reasons] = [t.undefined or {} for t in meet.unit.threads]
    for t in meet.unit.threads:
        t.undefined = None
    if meet.row.done_by == WGMMA_GROUP:
        _mark_accumulators(meet, why)
        return meet.row.perform(m, meet.case, values)
    tries = [{k: _poisoned(meet, k, v, why, byte) for k, v in values.items()} for byte in POISON]
    given = [_tuple(meet.row.perform(m, meet.case, each)) for each in tries]
    outs = meet.row.perform(m, meet.case, values)
    results = iter(zip(*given))
    for o in meet.row.operands_in(meet.case):
        if o.writes:
            _mark(meet, o, [each[o.name] for each in tries] if o.reads else next(results), why)
    return outs


def _tuple(outs: Any) -> tuple[Any, ...]:
    return outs if isinstance(outs, tuple) else () if outs is None else (outs,)


def _elements(meet: Any, name: str, i: int) -> int:
    """Return the number of elements of an operand in a thread."""
    given = meet.operands[i].get(name)
    return int(given.count) if isinstance(given, Regs) else len(given) if isinstance(given, (list, tuple)) else 1


def _poisoned(meet: Any, name: str, values: Any, why: list[Reasons], byte: int) -> Any:
    """A copy of an operand, a row for each thread, with the byte where it is undefined."""
    out = np.ascontiguousarray(values).copy()
    raw = out.reshape(len(why), -1).view(np.uint8)
    for i, some in enumerate(why):
        for k in some.get(name, ()):
            n = raw.shape[1] // _elements(meet, name, i)
            raw[i, k * n : (k + 1) * n] = byte if out.dtype != np.bool_ else byte == POISON[0]
    return out


def _mark(meet: Any, o: Operand, tries: Any, why: list[Reasons]) -> None:
    """Say of each thread what of a result is undefined: what differs."""
    arrays = [np.full(len(why), x) if np.ndim(x) == 0 else np.ascontiguousarray(x) for x in tries]  # one for all lanes
    raw = [a.reshape(len(why), -1).view(np.uint8) for a in arrays]
    differs = (raw[0] != raw[1]) | (raw[0] != raw[2])
    anybody = next(w for some in why for each in some.values() for w in each.values())
    for i in np.flatnonzero(differs.any(1)).tolist():
        t, some = meet.unit.threads[i], why[i]
        regs = meet.operands[i].get(o.name)
        count = _elements(meet, o.name, i) if o.reads or isinstance(regs, Regs) else o.size(meet.case)
        own = some.get(o.name, {})
        other = next((w for k, each in some.items() if k != o.name for w in each.values()), anybody)
        found = np.flatnonzero(differs[i].reshape(count, -1).any(1)).tolist()
        reasons = {k: through(meet.row, own.get(k), other) for k in found}
        if o.reads and isinstance(regs, Regs):
            undefine(regs, t, reasons)
        elif not o.reads:
            t.received = {**(t.received or {}), o.name: reasons}


def through(row: Instr, own: Why | None, other: Why) -> Why:
    """Return the reason why a result is undefined: its accumulator is, or another operand."""
    why = other if own is None else own
    if Role.ACCUMULATOR in row.roles and isinstance(why, Never) and why.by is None:
        return why._replace(by=row, role="operand" if own is None else "acc")
    return why


def _mark_accumulators(meet: Any, why: list[Reasons]) -> None:
    """Mark the accumulators of a wgmma: rows of an undefined A are undefined, and so are sums with what is."""
    row = meet.row
    keep = bool(meet.operands[0][row.roles[Role.ACCUMULATE]])
    a, acc = row.roles.get(Role.VALUE, ""), next(o for o in row.operands if o.role is Role.ACCUMULATOR)
    rows: dict[Any, Why] = {}
    for i, some in enumerate(why):
        for k, w in some.get(a, {}).items():
            rows.setdefault((i // 4, k * 4 // _elements(meet, a, i) & 1), w)
    words = acc.kind is u32
    for i, t in enumerate(meet.unit.threads):
        regs = meet.operands[i][acc.name]
        own = why[i].get(acc.name, {})
        if not isinstance(regs, Regs) or not (own or rows):
            continue
        each = 1 if words and regs.count == meet.case["regs"] else 2  # elements side by side in one row
        reasons = {}
        for k in range(regs.count):
            other = rows.get((i // 4, k // each & 1))
            mine = own.get(k) if keep else None
            if mine is not None or other is not None:
                reasons[k] = through(meet.row, mine, other)  # type: ignore[arg-type]
        undefine(regs, t, reasons)
