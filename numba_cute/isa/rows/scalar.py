# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Arithmetic of one thread that Python's operators do not say: carries, 24-bit products, minima, fused 16-bit floats.

PTX's carry flag lives from one instruction to the next, which two inline statements cannot promise each other; the
rows here pass it as a number, in and out, and set the flag from it inside one statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import dtypes
from ..facts.rounding import flushed, fused, half_bits
from ..form.instr import instr
from ..form.kinds import choice, f32, out, u16, u32, u64
from ..form.machine import Machine

_EXT = "extended-precision-arithmetic-instructions"
_INT = "integer-arithmetic-instructions"
_FLOAT = "floating-point-instructions"
_HALF = "half-precision-floating-point-instructions"

_OF_WIDTH = choice("width", {32: u32, 64: u64})
_CARRYING: dict[str, Any] = {"target": "sm_70", "pure": True, "over": [{"width": w} for w in (32, 64)]}


def _added(x: Any, y: Any, carry: Any, width: int) -> tuple[int, int]:
    total = x + y + carry
    return total & ((1 << width) - 1), total >> width


@instr("{ .reg .b32 t; add.cc.u32 t, $carry_in, 0xffffffff; addc.cc.u{width} $result, $a, $b; addc.u32 $carry, 0, 0; }",
       ref=f"{_EXT}-addc", **_CARRYING)  # fmt: skip
def add_carry(
    m: Machine, a: _OF_WIDTH, b: _OF_WIDTH, carry_in: u32, result: out(_OF_WIDTH), carry: out(u32), *, width: int
) -> tuple[int, int]:
    """a + b + carry_in (0 or 1) of `width` (32, 64) bits, and the carry out of it (0 or 1)."""
    return _added(a, b, carry_in, width)


@instr("{ .reg .b32 t; sub.cc.u32 t, 0, $borrow_in; subc.cc.u{width} $result, $a, $b; subc.u32 t, 0, 0; "
       "neg.s32 $borrow, t; }", ref=f"{_EXT}-subc", **_CARRYING)  # fmt: skip
def sub_borrow(
    m: Machine, a: _OF_WIDTH, b: _OF_WIDTH, borrow_in: u32, result: out(_OF_WIDTH), borrow: out(u32), *, width: int
) -> tuple[int, int]:
    """a - b - borrow_in (0 or 1) of `width` (32, 64) bits, and the borrow out of it (0 or 1)."""
    total = a - b - borrow_in  # type: ignore[operator]
    return total & ((1 << width) - 1), int(total < 0)


@instr("{ .reg .b32 t; add.cc.u32 t, $carry_in, 0xffffffff; madc.lo.cc.u{width} $result, $a, $b, $c; "
       "addc.u32 $carry, 0, 0; }", ref=f"{_EXT}-madc", **_CARRYING)  # fmt: skip
def mad_carry(
    m: Machine, a: _OF_WIDTH, b: _OF_WIDTH, c: _OF_WIDTH, carry_in: u32, result: out(_OF_WIDTH), carry: out(u32),
    *, width: int,
) -> tuple[int, int]:  # fmt: skip
    """The low word of a * b, plus c and carry_in (0 or 1), and the carry out of that sum; words of `width` (32, 64)
    bits."""
    return _added(a * b & ((1 << width) - 1), c, carry_in, width)  # type: ignore[operator]


def _low24(word: int, sign: str) -> int:
    word &= 0xFFFFFF
    return (word ^ 0x800000) - 0x800000 if sign == "s" else word


def _part(a: int, b: int, part: str, sign: str) -> int:
    product = _low24(a, sign) * _low24(b, sign)
    return (product >> 16 if part == "hi" else product) & 0xFFFFFFFF


_24 = [{"part": p, "sign": s} for p in ("lo", "hi") for s in "us"]


@instr("mul24.{part}.{sign}32 $result, $a, $b;", target="sm_70", pure=True, ref=f"{_INT}-mul24", over=_24)
def mul24(m: Machine, a: u32, b: u32, result: out(u32), *, part: str, sign: str) -> int:
    """Bits 0 to 31 (part "lo") or 16 to 47 ("hi") of the 48-bit product of the low 24 bits."""
    return _part(a, b, part, sign)


@instr("mad24.{part}.{sign}32 $result, $a, $b, $c;", target="sm_70", pure=True, ref=f"{_INT}-mad24", over=_24)
def mad24(m: Machine, a: u32, b: u32, c: u32, result: out(u32), *, part: str, sign: str) -> int:
    """`mul24`, plus `c`."""
    return (_part(a, b, part, sign) + c) & 0xFFFFFFFF


def _extreme(op: str, a: Any, b: Any, nan: bool, ftz: bool) -> Any:
    """The smaller or greater float (-0 before +0); of a NaN and a number the number, unless NaN is to be passed on."""
    x, y = (np.asarray(flushed(v) if ftz else v, np.float32) for v in (a, b))
    first = np.where(np.signbit(x) != np.signbit(y), np.signbit(x), x < y)
    got = np.where(first if op == "min" else ~first.astype(bool), x, y)
    if nan:
        return np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), got)
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, got))


def _extremes() -> Iterator[dict[str, Any]]:
    for op in ("min", "max"):
        for xorsign, nan in ((False, False), (False, True), (True, False), (True, True)):
            target = "sm_86" if xorsign else "sm_80" if nan else "sm_70"
            yield from ({"op": op, "nan": nan, "xorsign": xorsign, "ftz": f, "target": target} for f in (False, True))


@instr("{op}<ftz:.ftz><nan:.NaN><xorsign:.xorsign.abs>.f32 $result, $a, $b;", target="sm_70", pure=True,
       ref=f"{_FLOAT}-min", over=_extremes(), defaults={"nan": False, "xorsign": False, "ftz": False})  # fmt: skip
def extreme_f32(
    m: Machine, a: f32, b: f32, result: out(f32), *, op: str, nan: bool, xorsign: bool, ftz: bool
) -> Any:  # fmt: skip
    """The smaller (op "min") or greater ("max") of two floats, -0 counting as less than +0; a number before a NaN, or
    NaN if either operand is one with `nan` (sm_80). xorsign (sm_86): of the magnitudes, with the exclusive or of both
    signs. ftz: subnormal operands count as zero."""
    if not xorsign:
        return _extreme(op, a, b, nan, ftz)[()]
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
