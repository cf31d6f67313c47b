# SPDX-License-Identifier: Apache-2.0
"""Integers as bits, and their arithmetic where Python's operators do not say it. Any thread. Words have 32 bits,
or 64 with width=64 where a function takes that (results too are then Uint64 and Int64)."""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import Int32, Int64, Uint32, Uint64
from ..seam import CuteError, traced


@traced
def prmt(src: Any, src_reg_shifted: Any, prmt_indices: Any) -> Any:
    """Four bytes (Uint32) out of the eight of `src` (0 to 3) and `src_reg_shifted` (4 to 7): byte i is the one that
    digit i of the hexadecimal `prmt_indices` names, or with 8 added to the digit its sign. PTX prmt."""
    return isa.prmt(Uint32(src), Uint32(src_reg_shifted), Uint32(prmt_indices))


@traced
def lop3(a: Any, b: Any, c: Any, lut: int) -> Any:
    """Any function of three bits, on each bit (Uint32): `lut` (0 to 255, static) is that function of 0xF0, 0xCC and
    0xAA. PTX lop3."""
    if type(lut) is not int or not 0 <= lut <= 255:
        raise CuteError(f"lop3: lut {lut!r} must be a static number in [0, 255]")
    return isa.lop3(Uint32(a), Uint32(b), Uint32(c), lut=lut)


_SHIFTS = {"l": ("l", "wrap"), "r": ("r", "wrap"), "clamp_left": ("l", "clamp"), "clamp_right": ("r", "clamp")}


@traced
def shf(a: Any, b: Any, shift: Any, kind: str = "l") -> Any:
    """The 64 bits `a`:`b` (`a` the high word) shifted left (kind "l": the high word, Uint32) or right ("r": the low
    word) by `shift`, which wraps at 32, or stops there with "clamp_left", "clamp_right". PTX shf."""
    if kind not in _SHIFTS:
        raise CuteError(f"shf: kind {kind!r} is none of {', '.join(map(repr, _SHIFTS))}")
    direction, mode = _SHIFTS[kind]
    return isa.shf(Uint32(b), Uint32(a), Uint32(shift), direction=direction, mode=mode)


def _types(what: str, width: Any) -> tuple[Any, Any]:
    """(unsigned type, signed type) of words of 32 or 64 bits."""
    if width not in (32, 64):
        raise CuteError(f"{what}: width {width!r} must be 32 or 64, the bits of a word")
    return (Uint32, Int32) if width == 32 else (Uint64, Int64)


@traced
def bfe(value: Any, start: Any, length: Any, signed: bool = False, width: int = 32) -> Any:
    """The `length` bits of `value` from bit `start` on (Uint32), or sign-extended (Int32). PTX bfe."""
    word, number = _types("bfe", width)
    got = isa.bfe(word(value), Uint32(start), Uint32(length), sign="s" if signed else "u", width=width)
    return number(got) if signed else got


@traced
def bfi(replacement: Any, value: Any, start: Any, length: Any, width: int = 32) -> Any:
    """`value` with its `length` bits from bit `start` on taken from the low bits of `replacement` (Uint32). PTX bfi."""
    word, _ = _types("bfi", width)
    return isa.bfi(word(replacement), word(value), Uint32(start), Uint32(length), width=width)


@traced
def bfind(value: Any, signed: bool = False, width: int = 32) -> Any:
    """The number of the highest bit set (signed: of a negative value the highest clear), -1 if none (Int32).
    PTX bfind."""
    word, _ = _types("bfind", width)
    return Int32(isa.bfind(word(value), sign="s" if signed else "u", width=width))


@traced
def brev(value: Any, width: int = 32) -> Any:
    """The bits in reverse order (Uint32). PTX brev."""
    word, _ = _types("brev", width)
    return isa.brev(word(value), width=width)


@traced
def clz(value: Any, width: int = 32) -> Any:
    """How many bits above the highest one set (Int32; `width` of 0). PTX clz."""
    word, _ = _types("clz", width)
    return Int32(isa.clz(word(value), width=width))


@traced
def popc(value: Any, width: int = 32) -> Any:
    """How many bits are set (Int32). PTX popc."""
    word, _ = _types("popc", width)
    return Int32(isa.popc(word(value), width=width))


@traced
def mul_hi(a: Any, b: Any, signed: bool = True, width: int = 32) -> Any:
    """The high half of the product (Int32, or Uint32). PTX mul.hi."""
    word, number = _types("mul_hi", width)
    got = isa.mul_hi(word(a), word(b), sign="s" if signed else "u", width=width)
    return number(got) if signed else got


@traced
def mul_wide(a: Any, b: Any, signed: bool = True) -> Any:
    """The whole 64-bit product (Uint64 bits; signed by default). PTX mul.wide."""
    return isa.mul_wide(Uint32(a), Uint32(b), sign="s" if signed else "u")


@traced
def add_sat_int(a: Any, b: Any) -> Any:
    """The sum of two Int32, clamped where it would wrap. PTX add.sat.s32."""
    return Int32(isa.add_sat(Uint32(a), Uint32(b), op="add"))


@traced
def sub_sat_int(a: Any, b: Any) -> Any:
    """The difference of two Int32, clamped where it would wrap. PTX sub.sat.s32."""
    return Int32(isa.add_sat(Uint32(a), Uint32(b), op="sub"))


def _signed24(got: Any, signed: Any) -> Any:
    return Int32(got) if signed else got


@traced
def mul24(a: Any, b: Any, hi: bool = False, signed: bool = True) -> Any:
    """Of the 48-bit product of the low 24 bits, the low word, or with `hi` bits 16 to 47 (Int32, or Uint32).
    PTX mul24."""
    got = isa.mul24(Uint32(a), Uint32(b), part="hi" if hi else "lo", sign="s" if signed else "u")
    return _signed24(got, signed)


@traced
def mad24(a: Any, b: Any, c: Any, hi: bool = False, signed: bool = True) -> Any:
    """`mul24`, plus `c`. PTX mad24."""
    part, sign = "hi" if hi else "lo", "s" if signed else "u"
    return _signed24(isa.mad24(Uint32(a), Uint32(b), Uint32(c), part=part, sign=sign), signed)
