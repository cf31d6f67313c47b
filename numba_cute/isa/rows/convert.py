# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Conversions of two packed values at once (PTX ISA, "cvt")."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ..form.instr import ARRAY, f32, instr, out, u16, u32
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


@instr("cvt.rn.bf16x2.f32 $packed, $hi, $lo;", target="sm_80", ref=_REF, pure=True, lanes=ARRAY)
def cvt_bf16x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u32)) -> Any:
    """Two floats as bf16, rounded to nearest even: `lo` in bits 0 to 15, `hi` in bits 16 to 31. Any thread."""
    return _pair(lo, hi, dtypes.BFloat16)


@instr("cvt.rn.f16x2.f32 $packed, $hi, $lo;", target="sm_80", ref=_REF, pure=True, lanes=ARRAY)
def cvt_f16x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u32)) -> Any:
    """Two floats as f16, rounded to nearest even: `lo` in bits 0 to 15, `hi` in bits 16 to 31. Any thread."""
    return _pair(lo, hi, dtypes.Float16)


def _eight(lo: float, hi: float, dtype: dtypes.DType, top: float) -> int:
    """Two floats as one 16-bit register of 8-bit floats; what is too large becomes the largest (.satfinite)."""
    values = np.clip(np.array([lo, hi], np.float32), -top, top)  # a NaN stays one
    low, high = (0x7F if np.isnan(v) else int(v.astype(dtype.numpy).view(np.uint8)) for v in values)
    return high << 8 | low


def _widened(packed: int, dtype: dtypes.DType) -> int:
    """Two 8-bit floats as one register of f16s."""
    pair = np.array([packed], np.uint16).view(dtype.numpy).astype(np.float16)
    low, high = (_NAN16 if np.isnan(v) else int(v.view(np.uint16)) for v in pair)
    return high << 16 | low


@instr("cvt.rn.satfinite.e4m3x2.f32 $packed, $hi, $lo;", target="sm_89", ref=_REF, pure=True)
def cvt_e4m3x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u16)) -> int:
    """Two floats as e4m3, rounded to nearest even, to ±448 at most: `lo` in bits 0 to 7, `hi` above. Any thread."""
    return _eight(lo, hi, dtypes.Float8E4M3FN, 448.0)


@instr("cvt.rn.satfinite.e5m2x2.f32 $packed, $hi, $lo;", target="sm_89", ref=_REF, pure=True)
def cvt_e5m2x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u16)) -> int:
    """Two floats as e5m2, rounded to nearest even, to ±57344 at most: `lo` in bits 0 to 7, `hi` above. Any thread."""
    return _eight(lo, hi, dtypes.Float8E5M2, 57344.0)


@instr("cvt.rn.f16x2.e4m3x2 $wide, $packed;", target="sm_89", ref=_REF, pure=True)
def cvt_f16x2_e4m3x2(m: Machine, packed: u16, wide: out(u32)) -> int:
    """Two e4m3 numbers as f16, which holds them all: bits 0 to 7 become bits 0 to 15. Any thread."""
    return _widened(packed, dtypes.Float8E4M3FN)


@instr("cvt.rn.f16x2.e5m2x2 $wide, $packed;", target="sm_89", ref=_REF, pure=True)
def cvt_f16x2_e5m2x2(m: Machine, packed: u16, wide: out(u32)) -> int:
    """Two e5m2 numbers as f16, which holds them all: bits 0 to 7 become bits 0 to 15. Any thread."""
    return _widened(packed, dtypes.Float8E5M2)
