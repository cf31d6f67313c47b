# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Atomic read-modify-write of global memory (PTX ISA, "atom" and "red"). Any thread; the old value is given.

sem: "relaxed", "acquire", "release", "acq_rel"; scope: "cta", "gpu", "sys", the threads that see it as one step. The
simulator runs one thread at a time, so that each is one step for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .instr import f32, gmem, instr, out, u32, u64
from .machine import Machine

_REF = "parallel-synchronization-and-communication-instructions-atom"
_ORDERS = [{"sem": s, "scope": c} for s in ("relaxed", "acq_rel", "acquire", "release") for c in ("gpu", "cta", "sys")]
_TYPES = {"u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64}
_BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _forms(width: int) -> list[dict[str, Any]]:
    kinds = [("add", f"u{width}"), *((op, f"{s}{width}") for op in ("min", "max") for s in "us")]
    kinds += [(op, f"b{width}") for op in ("exch", *_BITS)]
    return [{"op": op, "type": t, **order} for order in _ORDERS for op, t in kinds]


def _update(m: Machine, addr: int, value: int, op: str, type: str) -> int:
    dtype = np.dtype(_TYPES[type])
    unsigned = np.dtype(f"u{dtype.itemsize}")
    given = np.array([value], unsigned).view(dtype)

    def new(before: Any) -> Any:
        old = before.view(dtype)
        if op == "add":
            return (old + given).view(np.uint8)
        if op == "exch":
            return given.view(np.uint8)
        if op in _BITS:
            return _BITS[op](old, given).view(np.uint8)
        return (np.minimum if op == "min" else np.maximum)(old, given).view(np.uint8)

    return int(m.update_global(addr, dtype.itemsize, new).view(unsigned)[0])


_ATOM = "atom.{sem}.{scope}.global.{op}.{type} $old, [$addr], $value;"


@instr(_ATOM, target="sm_70", ref=_REF, over=_forms(32))
def atom_global_b32(m: Machine, addr: gmem, value: u32, old: out(u32), *, op: str, type: str) -> int:
    """Replace 4 bytes by their combination with `value`, giving what was there: op "add" (u32), "min", "max" (u32,
    s32), "and", "or", "xor", "exch" (b32). addr: a multiple of 4."""
    return _update(m, addr, value, op, type)


@instr(_ATOM, target="sm_70", ref=_REF, over=_forms(64))
def atom_global_b64(m: Machine, addr: gmem, value: u64, old: out(u64), *, op: str, type: str) -> int:
    """`atom_global_b32` of 8 bytes: "add" (u64), "min", "max" (u64, s64), "and", "or", "xor", "exch" (b64)."""
    return _update(m, addr, value, op, type)


@instr("atom.{sem}.{scope}.global.add.f32 $old, [$addr], $value;", target="sm_70", ref=_REF, over=_ORDERS)
def atom_global_add_f32(m: Machine, addr: gmem, value: f32, old: out(f32)) -> float:
    """Add to a float, giving what was there; in no order, so that low bits of a sum may differ between runs."""
    before = m.update_global(addr, 4, lambda b: (b.view(np.float32) + np.float32(value)).view(np.uint8))
    return float(before.view(np.float32)[0])


@instr("atom.{sem}.{scope}.global.cas.b32 $old, [$addr], $expected, $value;", target="sm_70", ref=_REF, over=_ORDERS)
def atom_global_cas_b32(m: Machine, addr: gmem, expected: u32, value: u32, old: out(u32)) -> int:
    """Replace 4 bytes by `value` if they are `expected`; gives what was there."""
    given = np.array([value], np.uint32).view(np.uint8)
    before = m.update_global(addr, 4, lambda b: given if int(b.view(np.uint32)[0]) == expected else b)
    return int(before.view(np.uint32)[0])
