# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Small integers and 4-bit floats as 16-bit and 32-bit floats, exactly, several at once, and f32 as tf32.

No target has one instruction for these. Bytes and nibbles are moved into the mantissa of a float whose exponent makes
them its lowest digits, and the float's own value is subtracted (as in CUTLASS's numeric_conversion.h, BSD-3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ..form.instr import instr
from ..form.kinds import f32, out, u32
from ..form.machine import Machine

_CVT = "data-movement-and-conversion-instructions-cvt"
_PRMT = "data-movement-and-conversion-instructions-prmt"


def _signed_bytes(word: int) -> list[int]:
    return np.array([word], np.uint32).view(np.int8).tolist()  # type: ignore[no-any-return]


def _words(values: list[Any], dtype: dtypes.DType) -> list[int]:
    return np.array(values, np.float32).astype(dtype.numpy).view(np.uint32).tolist()  # type: ignore[no-any-return]


_REGS = ".reg .b32 t, w0, w1, w2, w3; .reg .f32 f0, f1, f2, f3;"
_MAGIC = "0fCB000080"  # -(2^23 + 128)
_BYTES = "xor.b32 t, $packed, 0x80808080; " + " ".join(
    f"prmt.b32 w{i}, t, 0x4b000000, {0x7540 + i:#x}; mov.b32 f{i}, w{i}; add.f32 f{i}, f{i}, {_MAGIC};"
    for i in range(4)
)
"""Byte i, its sign bit flipped, as the lowest digits of 2^23, less 2^23 + 128."""


@instr(f"{{ {_REGS} {_BYTES} mov.b32 $a, f0; mov.b32 $b, f1; mov.b32 $c, f2; mov.b32 $d, f3; }}", target="sm_70",
       pure=True, ref=_PRMT)  # fmt: skip
def cvt_f32x4_s8x4(m: Machine, packed: u32, a: out(f32), b: out(f32), c: out(f32), d: out(f32)) -> tuple[float, ...]:
    """Four signed bytes of a word, lowest first, as floats. Any thread."""
    return tuple(float(v) for v in _signed_bytes(packed))


_SPLIT = "prmt.b32 {w}, $packed, 0, {selector:#x}; "  # two bytes, 16 bits apart
_TO_BF16_PAIR = (  # 128 + the seven low bits, less 128, or 256 where the sign bit says so
    "lop3.b32 c, {w}, 0x00800080, 0xc300c300, 0xea; lop3.b32 {w}, {w}, 0x007f007f, 0x43004300, 0xea; "
    "fma.rn.bf16x2 ${result}, {w}, one, c; "
)


@instr("{ .reg .b32 u, v, c, one; mov.b32 one, 0x3f803f80; "
       + _SPLIT.format(w="u", selector=0x4140) + _SPLIT.format(w="v", selector=0x4342)
       + _TO_BF16_PAIR.format(w="u", result="lo") + _TO_BF16_PAIR.format(w="v", result="hi") + "}", target="sm_80",
       pure=True, ref=_PRMT)  # fmt: skip
def cvt_bf16x4_s8x4(m: Machine, packed: u32, lo: out(u32), hi: out(u32)) -> tuple[int, ...]:
    """Four signed bytes of a word, lowest first, as bf16, which holds them all: the first two in `lo`. Any thread."""
    return tuple(_words(_signed_bytes(packed), dtypes.BFloat16))


_HALVES = "xor.b32 t, $packed, 0x80808080; prmt.b32 w0, t, 0x64006400, 0x7150; prmt.b32 w1, t, 0x64006400, 0x7352;"


@instr(f"{{ .reg .b32 t, w0, w1, less; {_HALVES} mov.b32 less, 0x64806480; sub.rn.f16x2 $lo, w0, less; "
       "sub.rn.f16x2 $hi, w1, less; }", target="sm_70", pure=True, ref=_PRMT)  # fmt: skip
def cvt_f16x4_s8x4(m: Machine, packed: u32, lo: out(u32), hi: out(u32)) -> tuple[int, ...]:
    """Four signed bytes of a word, lowest first, as f16, which holds them all: the first two in `lo`. Any thread."""
    return tuple(_words(_signed_bytes(packed), dtypes.Float16))


def _e4m3(scale: str, overflow: str, shift: int, kind: str) -> str:
    """Sign, exponent and digits where the wider type has them, times its scale. What then is 480 was NaN: times
    `overflow` it alone is infinite, and zero times that makes it NaN."""
    pair = (
        "and.b32 c, {w}, 0x80008000; and.b32 {w}, {w}, 0x7f007f00; shr.u32 {w}, {w}, {shift}; or.b32 {w}, {w}, c; "
        "fma.rn.{kind} {w}, {w}, scale, none; fma.rn.{kind} c, {w}, over, none; "
        "fma.rn.{kind} ${result}, c, zero, {w}; "
    )
    return (
        "{ .reg .b32 u, v, c, scale, over, zero, none; mov.b32 zero, 0; mov.b32 none, 0x80008000; "  # -0 adds nothing
        + f"mov.b32 scale, {scale}; mov.b32 over, {overflow}; "
        + _SPLIT.format(w="u", selector=0x1404) + _SPLIT.format(w="v", selector=0x3424)
        + "".join(pair.format(w=w, result=r, shift=shift, kind=kind) for w, r in (("u", "lo"), ("v", "hi"))) + "}"
    )  # fmt: skip


def _float_bytes(word: int, dtype: dtypes.DType) -> list[float]:
    return np.array([word], np.uint32).view(dtype.numpy).astype(np.float32).tolist()  # type: ignore[no-any-return]


@instr(_e4m3("0x5c005c00", "0x58605860", 1, "f16x2"), target="sm_70", pure=True, ref=_PRMT)
def cvt_f16x4_e4m3x4(m: Machine, packed: u32, lo: out(u32), hi: out(u32)) -> tuple[int, ...]:
    """Four e4m3 floats of a word, lowest first, as f16, which holds them all: the first two in `lo`. Any thread."""
    return tuple(_words(_float_bytes(packed, dtypes.Float8E4M3FN), dtypes.Float16))


@instr(_e4m3("0x7b807b80", "0x7b0d7b0d", 4, "bf16x2"), target="sm_80", pure=True, ref=_PRMT)
def cvt_bf16x4_e4m3x4(m: Machine, packed: u32, lo: out(u32), hi: out(u32)) -> tuple[int, ...]:
    """Four e4m3 floats of a word, lowest first, as bf16, which holds them all: the first two in `lo`. Any thread."""
    return tuple(_words(_float_bytes(packed, dtypes.Float8E4M3FN), dtypes.BFloat16))


_UNPACK = (
    "{ .reg .b16 l, h, a, b; .reg .b32 u, v; .reg .f32 x, y; mov.b32 {l, h}, $packed; "
    "cvt.rn.f16x2.e4m3x2 u, l; cvt.rn.f16x2.e4m3x2 v, h; "
)
_FROM_F16 = "mov.b32 {{a, b}}, {w}; cvt.f32.f16 x, a; cvt.f32.f16 y, b; cvt.rn.bf16x2.f32 ${result}, y, x; "


@instr(_UNPACK + "mov.b32 $lo, u; mov.b32 $hi, v; }", target="sm_89", pure=True, ref=_CVT)
def cvt_rn_f16x4_e4m3x4(m: Machine, packed: u32, lo: out(u32), hi: out(u32)) -> tuple[int, ...]:
    """`cvt_f16x4_e4m3x4` by the target's own conversion, two instructions. Any thread."""
    return tuple(_words(_float_bytes(packed, dtypes.Float8E4M3FN), dtypes.Float16))


@instr(_UNPACK + _FROM_F16.format(w="u", result="lo") + _FROM_F16.format(w="v", result="hi") + "}", target="sm_90",
       pure=True, ref=_CVT)  # fmt: skip
def cvt_rn_bf16x4_e4m3x4(m: Machine, packed: u32, lo: out(u32), hi: out(u32)) -> tuple[int, ...]:
    """`cvt_bf16x4_e4m3x4` by way of the target's own conversion to f16: eight instructions instead of 14.
    Any thread."""
    return tuple(_words(_float_bytes(packed, dtypes.Float8E4M3FN), dtypes.BFloat16))


@instr("{ prmt.b32 $lo, $packed, 0, 0x1404; prmt.b32 $hi, $packed, 0, 0x3424; }", target="sm_70", pure=True, ref=_PRMT)
def cvt_f16x4_e5m2x4(m: Machine, packed: u32, lo: out(u32), hi: out(u32)) -> tuple[int, ...]:
    """Four e5m2 floats of a word, lowest first, as f16, whose first byte they are: the first two in `lo`. Any
    thread."""
    return tuple(_words(_float_bytes(packed, dtypes.Float8E5M2), dtypes.Float16))


def _nibbles(word: int) -> list[int]:
    """The eight 4-bit digits, lowest first."""
    return [word >> 4 * i & 15 for i in range(8)]


ORDER = (0, 2, 1, 3, 4, 6, 5, 7)
"""The elements of a shuffled word's nibbles, lowest first."""
_BYTE = "prmt.b32 u, t, 0, {selector:#x}; shl.b32 v, u, 12; or.b32 u, u, v;"  # its digits 16 bits apart
_TO_BF16 = "lop3.b32 u, u, 0x000f000f, 0x43004300, 0xea; fma.rn.bf16x2 ${result}, u, one, less;"  # 128 + digit - 136
_START = (
    ".reg .b32 t, u, v, one, less; xor.b32 t, $packed, 0x88888888; mov.b32 one, 0x3f803f80; mov.b32 less, 0xc308c308;"
)


def _int4(parts: list[str]) -> str:
    text = [p + " " + _TO_BF16.format(result=r) for p, r in zip(parts, "abcd")]
    return "{ " + _START + " " + " ".join(text) + " }"


_STRAIGHT = _int4([_BYTE.format(selector=0x4440 + i) for i in range(4)])
_SHUFFLED = _int4([f"prmt.b32 u, t, 0, {(0x4140, 0x4342)[i // 2]:#x}; shr.u32 u, u, {4 * (i % 2)};" for i in range(4)])


def _bf16_of_int4(elements: list[int]) -> tuple[int, ...]:
    return tuple(_words([float((e ^ 8) - 8) for e in elements], dtypes.BFloat16))


@instr(_STRAIGHT, target="sm_80", pure=True, ref=_PRMT)
def cvt_bf16x8_s4x8(
    m: Machine, packed: u32, a: out(u32), b: out(u32), c: out(u32), d: out(u32)
) -> tuple[int, ...]:  # fmt: skip
    """Eight signed 4-bit integers of a word, lowest first, as bf16, two to a word: the first two in `a`. Any
    thread."""
    return _bf16_of_int4(_nibbles(packed))


@instr(_SHUFFLED, target="sm_80", pure=True, ref=_PRMT)
def cvt_bf16x8_s4x8_shuffled(
    m: Machine, packed: u32, a: out(u32), b: out(u32), c: out(u32), d: out(u32)
) -> tuple[int, ...]:
    """`cvt_bf16x8_s4x8` of a word that holds elements 0, 2, 1, 3, 4, 6, 5, 7, lowest first, with fewer instructions:
    the results are in the order of the elements."""
    held = _nibbles(packed)
    return _bf16_of_int4([held[ORDER.index(i)] for i in range(8)])


def _e2m1(parts: list[str]) -> str:
    """Sign, exponent and digit where f16 has its sign, the end of its exponent and the first digit; times 2^14."""
    move = (
        "shl.b32 v, u, 12; shl.b32 u, u, 9; and.b32 u, u, 0x0e000e00; lop3.b32 u, v, 0x80008000, u, 0xea; "
        "mul.rn.f16x2 ${result}, u, scale;"
    )
    text = [p + " " + move.format(result=r) for p, r in zip(parts, "abcd")]
    return "{ .reg .b32 t, u, v, scale; mov.b32 t, $packed; mov.b32 scale, 0x74007400; " + " ".join(text) + " }"


@instr(_e2m1([_BYTE.format(selector=0x4440 + i) for i in range(4)]), target="sm_75", pure=True, ref=_PRMT)
def cvt_f16x8_e2m1x8(
    m: Machine, packed: u32, a: out(u32), b: out(u32), c: out(u32), d: out(u32)
) -> tuple[int, ...]:  # fmt: skip
    """Eight e2m1 floats of a word, lowest first, as f16, which holds them all, two to a word: the first two in `a`.
    Any thread."""
    values = np.array(_nibbles(packed), np.uint8).view(dtypes.Float4E2M1FN.numpy).astype(np.float32)
    return tuple(_words(values.tolist(), dtypes.Float16))


_TF32_NAN = 0x7FFFFFFF


def _tf32(value: float, half: int) -> int:
    """The 10 digits that tf32 keeps; `half` is added to the others, so that they round."""
    bits = int(np.array([value], np.float32).view(np.uint32)[0])
    if bits & 0x7FFFFFFF > 0x7F800000:
        return _TF32_NAN
    if bits & 0x7F800000 == 0x7F800000:
        return bits
    return (bits + half) & 0xFFFFE000


@instr("cvt.rna.tf32.f32 $bits, $x;", target="sm_80", pure=True, ref=_CVT)
def cvt_rna_tf32_f32(m: Machine, x: f32, bits: out(u32)) -> int:
    """A float as tf32, rounded to nearest with ties away from zero: a register of a tf32 matrix operand. Any thread."""
    return _tf32(x, 0x1000)


@instr("cvt.rn.tf32.f32 $bits, $x;", target="sm_90", pure=True, ref=_CVT)
def cvt_rn_tf32_f32(m: Machine, x: f32, bits: out(u32)) -> int:
    """A float as tf32, rounded to nearest even: a register of a tf32 matrix operand. Any thread."""
    odd = int(np.array([x], np.float32).view(np.uint32)[0]) >> 13 & 1
    return _tf32(x, 0x0FFF + odd)
