# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Integers as bits, and their arithmetic where Python's operators do not say it. All of any thread. width: the bits of
a word, 32 or 64."""

from __future__ import annotations

from ..form.instr import instr
from ..form.kinds import choice, out, u32, u64
from ..form.machine import Machine

_LOGIC = "logic-and-shift-instructions"
_INT = "integer-arithmetic-instructions"
_WORD = 0xFFFFFFFF
_WIDTHS = [{"width": w} for w in (32, 64)]
_SIGNS = [{"width": w, "sign": s} for w in (32, 64) for s in "us"]
_OF_WIDTH = choice("width", {32: u32, 64: u64})


def _number(word: int, sign: str, bits: int) -> int:
    top = 1 << bits - 1
    return (word ^ top) - top if sign == "s" else word


@instr("prmt.b32 $result, $a, $b, $selector;", target="sm_70", pure=True,
       ref="data-movement-and-conversion-instructions-prmt")  # fmt: skip
def prmt(m: Machine, a: u32, b: u32, selector: u32, result: out(u32)) -> int:
    """Four bytes out of the eight of `a` (0 to 3) and `b` (4 to 7): byte i is the one that bits 4 i to 4 i + 2 of
    `selector` name; if bit 4 i + 3 is set, its sign in all bits."""
    both, got = a | b << 32, 0
    for i in range(4):
        pick = selector >> 4 * i
        byte = both >> 8 * (pick & 7) & 255
        got |= (255 * (byte >> 7) if pick & 8 else byte) << 8 * i
    return got


@instr("mov.b64 $result, {$low, $high};", target="sm_70", pure=True,
       ref="data-movement-and-conversion-instructions-mov")  # fmt: skip
def join_words(m: Machine, low: u32, high: u32, result: out(u64)) -> int:
    """Join the 64 bits `high`:`low`. LLVM does not look into it: what is added to that stays an addition."""
    return high << 32 | low


@instr("lop3.b32 $result, $a, $b, $c, {lut};", target="sm_70", pure=True, ref=f"{_LOGIC}-lop3",
       over=[{"lut": i} for i in range(256)])  # fmt: skip
def lop3(m: Machine, a: u32, b: u32, c: u32, result: out(u32), *, lut: int) -> int:
    """Any function of three bits, on each bit: bit 4 a + 2 b + c of `lut` is its value (so a & b | c is the same
    expression of 0xF0, 0xCC and 0xAA)."""
    got = 0
    for i in range(8):
        if lut >> i & 1:
            got |= (a ^ (0 if i & 4 else _WORD)) & (b ^ (0 if i & 2 else _WORD)) & (c ^ (0 if i & 1 else _WORD))
    return got


@instr("shf.{direction}.{mode}.b32 $result, $low, $high, $count;", target="sm_70", pure=True, ref=f"{_LOGIC}-shf",
       over=[{"direction": d, "mode": m} for d in "lr" for m in ("wrap", "clamp")])  # fmt: skip
def shf(m: Machine, low: u32, high: u32, count: u32, result: out(u32), *, direction: str, mode: str) -> int:
    """The 64 bits `high`:`low` shifted left ("l": the high word of that) or right ("r": the low word) by `count`, which
    wraps at 32 or is clamped to it."""
    n = count & 31 if mode == "wrap" else min(count, 32)
    both = high << 32 | low
    return both << n >> 32 & _WORD if direction == "l" else both >> n & _WORD


@instr("bfe.{sign}{width} $result, $value, $start, $count;", target="sm_70", pure=True, ref=f"{_INT}-bfe", over=_SIGNS)
def bfe(
    m: Machine, value: _OF_WIDTH, start: u32, count: u32, result: out(_OF_WIDTH), *, sign: str, width: int
) -> int:  # fmt: skip
    """The `count` bits of `value` from bit `start` on; with sign "s" their highest one fills the rest."""
    start, count = start & 255, count & 255
    if count == 0:
        return 0
    wide = _number(value, sign, width)
    field = wide >> start & ((1 << count) - 1)
    if sign == "s" and wide >> min(start + count - 1, width - 1) & 1:
        field |= -1 << count
    return field & (1 << width) - 1


@instr("bfi.b{width} $result, $field, $value, $start, $count;", target="sm_70", pure=True, ref=f"{_INT}-bfi",
       over=_WIDTHS)  # fmt: skip
def bfi(
    m: Machine, field: _OF_WIDTH, value: _OF_WIDTH, start: u32, count: u32, result: out(_OF_WIDTH), *, width: int
) -> int:
    """`value` with its `count` bits from bit `start` on taken from the low bits of `field`."""
    start, count = start & 255, count & 255
    mask = ((1 << count) - 1) << start & (1 << width) - 1
    return value & ~mask | field << start & mask


@instr("bfind.{sign}{width} $result, $value;", target="sm_70", pure=True, ref=f"{_INT}-bfind", over=_SIGNS)
def bfind(m: Machine, value: _OF_WIDTH, result: out(u32), *, sign: str, width: int) -> int:
    """The number of the highest bit set (with sign "s", of a negative value the highest clear); 0xffffffff if none."""
    number = _number(value, sign, width)
    return (int(~number if number < 0 else number).bit_length() - 1) & _WORD


@instr("brev.b{width} $result, $value;", target="sm_70", pure=True, ref=f"{_INT}-brev", over=_WIDTHS)
def brev(m: Machine, value: _OF_WIDTH, result: out(_OF_WIDTH), *, width: int) -> int:
    """The bits in reverse order."""
    return int(f"{value:0{width}b}"[::-1], 2)


@instr("clz.b{width} $result, $value;", target="sm_70", pure=True, ref=f"{_INT}-clz", over=_WIDTHS)
def clz(m: Machine, value: _OF_WIDTH, result: out(u32), *, width: int) -> int:
    """The number of bits above the highest one set (`width` for 0)."""
    return width - int(value).bit_length()


@instr("popc.b{width} $result, $value;", target="sm_70", pure=True, ref=f"{_INT}-popc", over=_WIDTHS)
def popc(m: Machine, value: _OF_WIDTH, result: out(u32)) -> int:
    """The number of bits that are set."""
    return bin(value).count("1")


@instr("mul.hi.{sign}{width} $result, $a, $b;", target="sm_70", pure=True, ref=f"{_INT}-mul", over=_SIGNS)
def mul_hi(m: Machine, a: _OF_WIDTH, b: _OF_WIDTH, result: out(_OF_WIDTH), *, sign: str, width: int) -> int:
    """The high half of the product."""
    return _number(a, sign, width) * _number(b, sign, width) >> width & (1 << width) - 1


@instr("mul.wide.{sign}32 $result, $a, $b;", target="sm_70", pure=True, ref=f"{_INT}-mul",
       over=[{"sign": s} for s in "us"])  # fmt: skip
def mul_wide(m: Machine, a: u32, b: u32, result: out(u64), *, sign: str) -> int:
    """The whole 64-bit product."""
    return _number(a, sign, 32) * _number(b, sign, 32) & (1 << 64) - 1


def _clamp(value: int) -> int:
    return max(-(1 << 31), min(value, (1 << 31) - 1)) & _WORD


@instr("{op}.sat.s32 $result, $a, $b;", target="sm_70", pure=True, ref=f"{_INT}-add",
       over=[{"op": "add"}, {"op": "sub"}])  # fmt: skip
def add_sat(m: Machine, a: u32, b: u32, result: out(u32), *, op: str) -> int:
    """The sum ("add") or difference ("sub") of signed integers, clamped where it would wrap."""
    x, y = _number(a, "s", 32), _number(b, "s", 32)
    return _clamp(x + y if op == "add" else x - y)
