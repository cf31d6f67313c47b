# SPDX-License-Identifier: Apache-2.0
"""Integers as bits, and arithmetic for which Python has no operator. Any thread; sm_70.

width: the bits of a word, 32 (the default), or 64 where a function takes that: Uint64 and Int64 then stand for Uint32
and Int32.
"""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import Int32, Int64, Uint32, Uint64
from ..seam import CuteError, Int, traced
from ..seam.guards.messages import how_static

__all__ = [
    "add_sat_int", "bfe", "bfi", "bfind", "brev", "clz", "lop3", "mad24", "mul24", "mul_hi", "mul_wide", "popc", "prmt",
    "shf", "sub_sat_int",
]  # fmt: skip


@traced
def prmt(src: Int, src_reg_shifted: Any, prmt_indices: Int) -> Any:
    """Select four of eight bytes (Uint32). PTX prmt, sm_70.

    src: the word of bytes 0 to 3; src_reg_shifted: that of bytes 4 to 7. prmt_indices: its hexadecimal digit i names
    the byte that becomes byte i; with 8 added to the digit, that byte's sign bit fills it.

    >>> cute.simulate(lambda: print(hex(arch.prmt(0x33221100, 0x77665544, 0x0123))))[1, 1]()
    0x112233
    """
    return isa.prmt(Uint32(src), Uint32(src_reg_shifted), Uint32(prmt_indices))


@traced
def lop3(a: Int, b: Int, c: Int, lut: int) -> Any:
    """Apply any logical function of three bits to each bit of the words `a`, `b` and `c` (Uint32). lut: the function's
    value for 0xF0, 0xCC and 0xAA, static, 0 to 255. PTX lop3, sm_70.

    >>> cute.simulate(lambda: print(arch.lop3(12, 10, 0, 0xC0)))[1, 1]()
    8
    """
    if type(lut) is not int or not 0 <= lut <= 255:
        raise CuteError(f"lop3: lut {lut!r} must be a static number in [0, 255]{how_static(lut)}")
    return isa.lop3(Uint32(a), Uint32(b), Uint32(c), lut=lut)


_SHIFTS = {"l": ("l", "wrap"), "r": ("r", "wrap"), "clamp_left": ("l", "clamp"), "clamp_right": ("r", "clamp")}


@traced
def shf(a: Int, b: Int, shift: Int, kind: str = "l") -> Any:
    """Shift the 64 bits `a`:`b`, of which `a` is the high word, and give one word of them (Uint32). PTX shf, sm_70.

    shift: how far, taken modulo 32, or at most 32 where `kind` says "clamp". kind: "l" or "clamp_left" (left, the high
    word), "r" or "clamp_right" (right, the low word).

    >>> cute.simulate(lambda: print(hex(arch.shf(0x80000000, 1, 1))))[1, 1]()
    0x0
    """
    if kind not in _SHIFTS:
        raise CuteError(f"shf: kind {kind!r} is none of {', '.join(map(repr, _SHIFTS))}")
    direction, mode = _SHIFTS[kind]
    return isa.shf(Uint32(b), Uint32(a), Uint32(shift), direction=direction, mode=mode)


def _types(what: str, width: Any) -> tuple[Any, Any]:
    """(unsigned type, signed type) of words of 32 or 64 bits."""
    if width not in (32, 64):
        raise CuteError(f"{what}: width {width!r} must be 32 or 64, the bits of a word")
    return (Uint32, Int32) if width == 32 else (Uint64, Int64)


def _signed(*operands: Any) -> bool:
    """Return whether none of the operands is of an unsigned type."""
    return all(seam.current().type_of(x).kind != "uint" for x in operands)


@traced
def bfe(value: Int, start: Int, length: Int, signed: bool = False, width: int = 32) -> Any:
    """Extract the `length` bits of `value` from bit `start` on (Uint32), or with `signed` sign-extended (Int32). width:
    32 or 64. PTX bfe, sm_70.

    >>> cute.simulate(lambda: print(hex(arch.bfe(0xABCD, 4, 8))))[1, 1]()
    0xbc
    """
    word, number = _types("bfe", width)
    got = isa.bfe(word(value), Uint32(start), Uint32(length), sign="s" if signed else "u", width=width)
    return number(got) if signed else got


@traced
def bfi(replacement: Any, value: Int, start: Int, length: Int, width: int = 32) -> Any:
    """Insert the low `length` bits of `replacement` into `value` from bit `start` on (Uint32). width: 32 or 64. PTX
    bfi, sm_70.

    >>> cute.simulate(lambda: print(hex(arch.bfi(0xF, 0xABCD, 4, 4))))[1, 1]()
    0xabfd
    """
    word, _ = _types("bfi", width)
    return isa.bfi(word(replacement), word(value), Uint32(start), Uint32(length), width=width)


@traced
def bfind(value: Int, signed: bool = False, width: int = 32) -> Int32:
    """Find the highest bit set in `value`, or with `signed` the highest that differs from its sign: a bit number
    (Int32), -1 if there is none. width: 32 or 64. PTX bfind, sm_70.

    >>> cute.simulate(lambda: print(arch.bfind(8)))[1, 1]()
    3
    """
    word, _ = _types("bfind", width)
    return Int32(isa.bfind(word(value), sign="s" if signed else "u", width=width))


@traced
def brev(value: Int, width: int = 32) -> Any:
    """Reverse the order of the bits of `value` (Uint32). width: 32 or 64. PTX brev, sm_70.

    >>> cute.simulate(lambda: print(hex(arch.brev(1))))[1, 1]()
    0x80000000
    """
    word, _ = _types("brev", width)
    return isa.brev(word(value), width=width)


@traced
def clz(value: Int, width: int = 32) -> Int32:
    """Count the zero bits above the highest one set in `value` (Int32); of 0 there are `width`, which is 32 or 64. PTX
    clz, sm_70.

    >>> cute.simulate(lambda: print(arch.clz(1)))[1, 1]()
    31
    """
    word, _ = _types("clz", width)
    return Int32(isa.clz(word(value), width=width))


@traced
def popc(value: Int, width: int = 32) -> Int32:
    """Count the bits set in `value` (Int32). width: 32 or 64. PTX popc, sm_70.

    >>> cute.simulate(lambda: print(arch.popc(7)))[1, 1]()
    3
    """
    word, _ = _types("popc", width)
    return Int32(isa.popc(word(value), width=width))


@traced
def mul_hi(a: Int, b: Int, signed: bool | None = None, width: int = 32) -> Any:
    """Multiply `a` and `b` and keep the high half of the product: Int32 if `signed`, else Uint32; by default it is if
    neither is of an unsigned type. width: 32 or 64. PTX mul.hi, sm_70.

    >>> cute.simulate(lambda: print(arch.mul_hi(1 << 20, 1 << 20)))[1, 1]()
    256
    """
    word, number = _types("mul_hi", width)
    signed = _signed(a, b) if signed is None else signed
    got = isa.mul_hi(word(a), word(b), sign="s" if signed else "u", width=width)
    return number(got) if signed else got


@traced
def mul_wide(a: Int, b: Int, signed: bool | None = None) -> Any:
    """Multiply `a` and `b`, 32 bits each, and keep all 64 bits of the product (as Uint64). signed: whether they are
    Int32, as by default if neither is of an unsigned type, or Uint32. PTX mul.wide, sm_70.

    >>> cute.simulate(lambda: print(arch.mul_wide(1 << 20, 1 << 20)))[1, 1]()
    1099511627776
    """
    signed = _signed(a, b) if signed is None else signed
    return isa.mul_wide(Uint32(a), Uint32(b), sign="s" if signed else "u")


@traced
def add_sat_int(a: Int, b: Int) -> Int32:
    """Add the Int32 `a` and `b`, clamping the sum where it would wrap. PTX add.sat.s32, sm_70.

    >>> cute.simulate(lambda: print(arch.add_sat_int(2**31 - 1, 1)))[1, 1]()
    2147483647
    """
    return Int32(isa.add_sat(Uint32(a), Uint32(b), op="add"))


@traced
def sub_sat_int(a: Int, b: Int) -> Int32:
    """Subtract the Int32 `b` from `a`, clamping the difference where it would wrap. PTX sub.sat.s32, sm_70.

    >>> cute.simulate(lambda: print(arch.sub_sat_int(-(2**31), 1)))[1, 1]()
    -2147483648
    """
    return Int32(isa.add_sat(Uint32(a), Uint32(b), op="sub"))


def _signed24(got: Any, signed: Any) -> Any:
    return Int32(got) if signed else got


@traced
def mul24(a: Int, b: Int, hi: bool = False, signed: bool = True) -> Any:
    """Multiply the low 24 bits of `a` and `b`. hi: keep bits 16 to 47 of the 48-bit product instead of its low word.
    signed: whether the factors are signed (Int32, the default) or not (Uint32). PTX mul24, sm_70.

    >>> cute.simulate(lambda: print(arch.mul24(3, 5)))[1, 1]()
    15
    """
    got = isa.mul24(Uint32(a), Uint32(b), part="hi" if hi else "lo", sign="s" if signed else "u")
    return _signed24(got, signed)


@traced
def mad24(a: Int, b: Int, c: Int, hi: bool = False, signed: bool = True) -> Any:
    """Multiply as `mul24(a, b, hi, signed)` does, and add `c`. PTX mad24, sm_70.

    >>> cute.simulate(lambda: print(arch.mad24(3, 5, 1)))[1, 1]()
    16
    """
    part, sign = "hi" if hi else "lo", "s" if signed else "u"
    return _signed24(isa.mad24(Uint32(a), Uint32(b), Uint32(c), part=part, sign=sign), signed)
