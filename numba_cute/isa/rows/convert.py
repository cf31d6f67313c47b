# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Conversions of two packed values at once (PTX ISA, "cvt")."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ..form.instr import ARRAY, instr
from ..form.kinds import f32, out, u16, u32
from ..form.machine import Machine

_REF = "data-movement-and-conversion-instructions-cvt"
_NAN16 = 0x7FFF  # the canonical NaN that cvt gives for both f16 and bf16


def _bf16_bits(x: float) -> int:
    """A float of 32 bits as bf16, rounded to nearest even."""
    if x != x:
        return _NAN16
    bits: int = _INT.unpack(_FLOAT.pack(x))[0]
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def _f16_bits(x: float) -> int:
    """A float as f16, rounded to nearest even."""
    if x != x:
        return _NAN16
    try:
        return int.from_bytes(_HALF.pack(x), "little")
    except OverflowError:
        return 0x7C00 if x > 0 else 0xFC00


_FLOAT, _INT, _HALF = struct.Struct("<f"), struct.Struct("<I"), struct.Struct("<e")
_NARROWED: dict[dtypes.DType, Callable[[float], int]] = {dtypes.BFloat16: _bf16_bits, dtypes.Float16: _f16_bits}


def _pair(lo: Any, hi: Any, dtype: dtypes.DType) -> Any:
    """The two floats (or arrays of them) in the halves of a word."""
    if type(lo) is float and type(hi) is float:  # of one thread: NumPy would take most of the time
        half = _NARROWED[dtype]
        return half(hi) << 16 | half(lo)
    both = np.empty((*np.broadcast(lo, hi).shape, 2), np.float32)
    both[..., 0], both[..., 1] = lo, hi
    with np.errstate(over="ignore", invalid="ignore"):
        bits = both.astype(dtype.numpy).view(np.uint16)
    bits[both != both] = _NAN16
    return bits.view(np.uint32)[..., 0]


_HALVES = {d.ptx: d for d in (dtypes.BFloat16, dtypes.Float16)}


@instr("cvt.rn.{type}x2.f32 $packed, $hi, $lo;", target="sm_80", ref=_REF, pure=True, lanes=ARRAY,
       over=[{"type": t} for t in _HALVES])  # fmt: skip
def cvt_halves_f32(m: Machine, lo: f32, hi: f32, packed: out(u32), *, type: str) -> Any:
    """Two floats as bf16 or f16, rounded to nearest even: `lo` in bits 0 to 15, `hi` in bits 16 to 31. Any thread."""
    return _pair(lo, hi, _HALVES[type])


_EIGHT = {d.ptx: d for d in (dtypes.Float8E4M3FN, dtypes.Float8E5M2)}
_FEWER = {d.ptx: d for d in (dtypes.Float4E2M1FN, dtypes.Float6E2M3FN, dtypes.Float6E3M2FN)}
_FAMILIES = "sm_100f|sm_110f|sm_120f"
_SMALL = [{"type": t, "nibbles": False} for t in _EIGHT]
_SMALL += [{"type": t, "nibbles": d.width == 4, "target": _FAMILIES} for t, d in _FEWER.items()]
"""nibbles: the two numbers are in one byte, not in two."""


def _narrowed(x: float, type: str) -> int:
    """A float as one of 8 bits, or as one of fewer, which have neither infinities nor NaN; what is too large becomes
    the largest (.satfinite)."""
    if type in _FEWER:
        return int(dtypes.converted(np.array([x], np.float32), _FEWER[type]).view(np.uint8)[0])
    dtype = _EIGHT[type]
    top = {"e4m3": 448.0, "e5m2": 57344.0}[type]
    return 0x7F if x != x else int(np.clip(np.float32(x), -top, top).astype(dtype.numpy).view(np.uint8))


@instr("<nibbles:{ .reg .b8 b; cvt.rn.satfinite.{type}x2.f32 b, $hi, $lo; mov.b16 $packed, {b, 0}; }|"
       "cvt.rn.satfinite.{type}x2.f32 $packed, $hi, $lo;>", target="sm_89", ref=_REF, pure=True,
       over=_SMALL)  # fmt: skip
def cvt_small_f32(m: Machine, lo: f32, hi: f32, packed: out(u16), *, type: str, nibbles: bool) -> int:
    """Two floats as e4m3 (to ±448 at most), e5m2 (±57344), e2m3 (±7.5), e3m2 (±28) or e2m1 (±6), rounded to nearest
    even: `lo` in bits 0 to 7, `hi` above; e2m1 in bits 0 to 3 and 4 to 7. Any thread."""
    return _narrowed(hi, type) << (4 if nibbles else 8) | _narrowed(lo, type)


@instr("<nibbles:{ .reg .b8 b, z; mov.b16 {b, z}, $packed; cvt.rn.f16x2.{type}x2 $wide, b; }|"
       "cvt.rn.f16x2.{type}x2 $wide, $packed;>", target="sm_89", ref=_REF, pure=True, over=_SMALL)  # fmt: skip
def cvt_f16x2_small(m: Machine, packed: u16, wide: out(u32), *, type: str, nibbles: bool) -> int:
    """Two numbers of the types of `cvt_small_f32`, where it puts them, as f16, which holds them all: the first in bits
    0 to 15. Any thread."""
    dtype = (_EIGHT | _FEWER)[type]
    bits = np.array([packed & 15, packed >> 4 & 15] if nibbles else [packed & 255, packed >> 8], np.uint8)
    if type in _FEWER:
        bits &= (1 << dtype.width) - 1
    low, high = (_NAN16 if np.isnan(v) else int(v.view(np.uint16)) for v in bits.view(dtype.numpy).astype(np.float16))
    return high << 16 | low


_POWERS = [{"round": r, "saturates": s} for r in ("rp", "rz") for s in (True, False)]


def _power(x: float, round: str, saturates: bool) -> int:
    """The exponent code of a power of two that is not less (rp) or not more (rz) than a float's magnitude, 2 ** -127 at
    least; 255 is NaN, and what is too large without `saturates`."""
    bits = int(np.float32(x).view(np.uint32)) & 0x7FFFFFFF
    if bits > 0x7F800000:
        return 0xFF
    code, rest = bits >> 23, bits & 0x7FFFFF
    if round == "rp" and rest > (0x400000 if code == 0 else 0):
        code += 1
    return min(code, 0xFE) if saturates else min(code, 0xFF)


def _powers(lo: float, hi: float, round: str, saturates: bool) -> int:
    return _power(hi, round, saturates) << 8 | _power(lo, round, saturates)


@instr("cvt.{round}<saturates:.satfinite>.ue8m0x2.f32 $packed, $hi, $lo;", target=_FAMILIES, ref=_REF, pure=True,
       over=_POWERS)  # fmt: skip
def cvt_ue8m0_f32(m: Machine, lo: f32, hi: f32, packed: out(u16), *, round: str, saturates: bool) -> int:
    """The magnitudes of two floats as powers of two (ue8m0), rounded up (rp) or down (rz): `lo` in bits 0 to 7, `hi`
    above. NaN, and without `saturates` what is too large, becomes 255. Any thread."""
    return _powers(lo, hi, round, saturates)


@instr("cvt.{round}<saturates:.satfinite>.ue8m0x2.bf16x2 $packed, $wide;", target=_FAMILIES, ref=_REF, pure=True,
       over=_POWERS)  # fmt: skip
def cvt_ue8m0_bf16(m: Machine, wide: u32, packed: out(u16), *, round: str, saturates: bool) -> int:
    """Two bf16 as powers of two: `cvt_ue8m0_f32` of them, the first in bits 0 to 15. Any thread."""
    low, high = np.array([wide << 16 & 0xFFFF0000, wide & 0xFFFF0000], np.uint32).view(np.float32).tolist()
    return _powers(low, high, round, saturates)


@instr("cvt.rn.bf16x2.ue8m0x2 $wide, $packed;", target=_FAMILIES, ref=_REF, pure=True)
def cvt_bf16_ue8m0(m: Machine, packed: u16, wide: out(u32)) -> int:
    """Two powers of two (ue8m0, the first in bits 0 to 7) as bf16, which holds them all; 255 is NaN. Any thread."""

    def half(code: int) -> int:
        return _NAN16 if code == 0xFF else 0x40 if code == 0 else code << 7

    return half(packed >> 8 & 0xFF) << 16 | half(packed & 0xFF)
