# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Arithmetic of one thread that Python's operators do not say: carries, 24-bit products, minima, fused 16-bit floats.

PTX's carry flag lives from one instruction to the next, which two inline statements cannot promise each other; the
rows here pass it as a number, in and out, and set the flag from it inside one statement.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ..facts.rounding import flushed, fused, half_bits
from ..form.instr import f32, instr, out, u16, u32, u64
from ..form.machine import Machine

_EXT = "extended-precision-arithmetic-instructions"
_INT = "integer-arithmetic-instructions"
_FLOAT = "floating-point-instructions"
_HALF = "half-precision-floating-point-instructions"

_ADD = "{{ .reg .b32 t; add.cc.u32 t, $carry_in, 0xffffffff; addc.cc.u{w} $result, $a, $b; addc.u32 $carry, 0, 0; }}"
_SUB = (
    "{{ .reg .b32 t; sub.cc.u32 t, 0, $borrow_in; subc.cc.u{w} $result, $a, $b; subc.u32 t, 0, 0; "
    "neg.s32 $borrow, t; }}"
)
_MAD = (
    "{{ .reg .b32 t; add.cc.u32 t, $carry_in, 0xffffffff; madc.lo.cc.u{w} $result, $a, $b, $c; "
    "addc.u32 $carry, 0, 0; }}"
)


def _added(x: Any, y: Any, carry: Any, width: int) -> tuple[int, int]:
    total = x + y + carry
    return total & ((1 << width) - 1), total >> width


def _product(a: Any, b: Any, width: int) -> Any:
    return a * b & ((1 << width) - 1)


def _text(form: str, width: int) -> str:
    return form.format(w=width)


@instr(_text(_ADD, 32), target="sm_70", pure=True, ref=f"{_EXT}-addc")
def add_carry_b32(m: Machine, a: u32, b: u32, carry_in: u32, result: out(u32), carry: out(u32)) -> tuple[int, int]:
    """a + b + carry_in (0 or 1), and the carry out of it (0 or 1)."""
    return _added(a, b, carry_in, 32)


@instr(_text(_ADD, 64), target="sm_70", pure=True, ref=f"{_EXT}-addc")
def add_carry_b64(m: Machine, a: u64, b: u64, carry_in: u32, result: out(u64), carry: out(u32)) -> tuple[int, int]:
    """`add_carry_b32` of 64 bits."""
    return _added(a, b, carry_in, 64)


def _subtracted(x: Any, y: Any, borrow: Any, width: int) -> tuple[int, int]:
    total = x - y - borrow
    return total & ((1 << width) - 1), int(total < 0)


@instr(_text(_SUB, 32), target="sm_70", pure=True, ref=f"{_EXT}-subc")
def sub_borrow_b32(m: Machine, a: u32, b: u32, borrow_in: u32, result: out(u32), borrow: out(u32)) -> tuple[int, int]:
    """a - b - borrow_in (0 or 1), and the borrow out of it (0 or 1)."""
    return _subtracted(a, b, borrow_in, 32)


@instr(_text(_SUB, 64), target="sm_70", pure=True, ref=f"{_EXT}-subc")
def sub_borrow_b64(m: Machine, a: u64, b: u64, borrow_in: u32, result: out(u64), borrow: out(u32)) -> tuple[int, int]:
    """`sub_borrow_b32` of 64 bits."""
    return _subtracted(a, b, borrow_in, 64)


@instr(_text(_MAD, 32), target="sm_70", pure=True, ref=f"{_EXT}-madc")
def mad_carry_b32(
    m: Machine, a: u32, b: u32, c: u32, carry_in: u32, result: out(u32), carry: out(u32)
) -> tuple[int, int]:
    """The low word of a * b, plus c and carry_in (0 or 1), and the carry out of that sum."""
    return _added(_product(a, b, 32), c, carry_in, 32)


@instr(_text(_MAD, 64), target="sm_70", pure=True, ref=f"{_EXT}-madc")
def mad_carry_b64(
    m: Machine, a: u64, b: u64, c: u64, carry_in: u32, result: out(u64), carry: out(u32)
) -> tuple[int, int]:
    """`mad_carry_b32` of 64 bits."""
    return _added(_product(a, b, 64), c, carry_in, 64)


def _low24(word: int, sign: str) -> int:
    word &= 0xFFFFFF
    return (word ^ 0x800000) - 0x800000 if sign == "s" else word


def _part(a: int, b: int, part: str, sign: str) -> int:
    product = _low24(a, sign) * _low24(b, sign)
    return (product >> 16 if part == "hi" else product) & 0xFFFFFFFF


_24 = [{"part": p, "sign": s} for p in ("lo", "hi") for s in "us"]


@instr("mul24.{part}.{sign}32 $result, $a, $b;", target="sm_70", pure=True, ref=f"{_INT}-mul24", over=_24)
def mul24(m: Machine, a: u32, b: u32, result: out(u32), *, part: str, sign: str) -> int:
    """Of the 48-bit product of the low 24 bits, bits 0 to 31 (part "lo") or 16 to 47 ("hi")."""
    return _part(a, b, part, sign)


@instr("mad24.{part}.{sign}32 $result, $a, $b, $c;", target="sm_70", pure=True, ref=f"{_INT}-mad24", over=_24)
def mad24(m: Machine, a: u32, b: u32, c: u32, result: out(u32), *, part: str, sign: str) -> int:
    """`mul24`, plus `c`."""
    return (_part(a, b, part, sign) + c) & 0xFFFFFFFF


def _ends(op: str, nan: bool, ftz: bool) -> dict[str, Any]:
    return {"op": op, "nan": nan, "ftz": ftz, "nan_text": ".NaN" if nan else "", "ftz_text": ".ftz" if ftz else ""}


def _extreme(op: str, a: Any, b: Any, nan: bool, ftz: bool) -> Any:
    """The smaller or greater float (-0 before +0); of a NaN and a number the number, unless NaN is to be passed on."""
    x, y = (np.asarray(flushed(v) if ftz else v, np.float32) for v in (a, b))
    first = np.where(np.signbit(x) != np.signbit(y), np.signbit(x), x < y)
    got = np.where(first if op == "min" else ~first.astype(bool), x, y)
    if nan:
        return np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), got)
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, got))


_OPS = ("min", "max")


@instr("{op}{ftz_text}.f32 $result, $a, $b;", target="sm_70", pure=True, ref=f"{_FLOAT}-min",
       over=[_ends(o, False, f) for o in _OPS for f in (False, True)])  # fmt: skip
def extreme_f32(m: Machine, a: f32, b: f32, result: out(f32), *, op: str, ftz: bool) -> Any:
    """The smaller (op "min") or greater ("max") of two floats, -0 counting as less than +0; a number before a NaN.
    ftz: subnormal operands count as zero."""
    return _extreme(op, a, b, False, ftz)[()]


@instr("{op}{ftz_text}.NaN.f32 $result, $a, $b;", target="sm_80", pure=True, ref=f"{_FLOAT}-min",
       over=[_ends(o, True, f) for o in _OPS for f in (False, True)])  # fmt: skip
def extreme_nan_f32(m: Machine, a: f32, b: f32, result: out(f32), *, op: str, ftz: bool) -> Any:
    """`extreme_f32` that gives NaN if either operand is one."""
    return _extreme(op, a, b, True, ftz)[()]


@instr("{op}{ftz_text}{nan_text}.xorsign.abs.f32 $result, $a, $b;", target="sm_86", pure=True, ref=f"{_FLOAT}-min",
       over=[_ends(o, n, f) for o in _OPS for n in (False, True) for f in (False, True)])  # fmt: skip
def extreme_xorsign_f32(m: Machine, a: f32, b: f32, result: out(f32), *, op: str, nan: bool, ftz: bool) -> Any:
    """The smaller or greater magnitude, with the exclusive or of both signs."""
    x, y = np.asarray(a, np.float32), np.asarray(b, np.float32)
    got = _extreme(op, np.abs(x), np.abs(y), nan, ftz)
    return np.where(np.signbit(x) != np.signbit(y), -got, got)[()]


_TYPES = {d.ptx: d for d in (dtypes.Float16, dtypes.BFloat16)}


@instr("fma.rn.{type} $result, $a, $b, $c;", target="sm_80", pure=True, ref=f"{_HALF}-fma",
       over=[{"type": t} for t in _TYPES])  # fmt: skip
def fma_half(m: Machine, a: u16, b: u16, c: u16, result: out(u16), *, type: str) -> int:
    """Fused a * b + c of f16 or bf16, as bits, rounded to nearest even."""
    dtype = _TYPES[type]
    x, y, z = (np.array([v], np.uint16).view(dtype.numpy).astype(np.float64) for v in (a, b, c))
    return int(half_bits(fused(x, y, z), dtype)[0])
