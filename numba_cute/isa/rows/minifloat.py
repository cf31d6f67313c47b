# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Conversions of pairs of 4-bit and 6-bit floats (PTX ISA, "cvt"). These types have neither infinities nor NaN: what is
too large, and NaN, becomes the largest (.satfinite)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ..form.instr import f32, instr, out, u16, u32
from ..form.machine import Machine

_REF = "data-movement-and-conversion-instructions-cvt"
_TARGET = "sm_100f|sm_110f|sm_120f"


def _narrowed(lo: float, hi: float, dtype: dtypes.DType) -> list[int]:
    return dtypes.converted(np.array([lo, hi], np.float32), dtype).view(np.uint8).tolist()  # type: ignore[no-any-return]


def _widened(low: int, high: int, dtype: dtypes.DType) -> int:
    bits: Any = np.array([low, high], np.uint8).view(dtype.numpy).astype(np.float16).view(np.uint32)
    return int(bits[0])


@instr("{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, $hi, $lo; mov.b16 $packed, {b, 0}; }", target=_TARGET, ref=_REF,
       pure=True)  # fmt: skip
def cvt_e2m1x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u16)) -> int:
    """Two floats as e2m1, rounded to nearest even, to ±6 at most: `lo` in bits 0 to 3, `hi` in 4 to 7. Any thread."""
    low, high = _narrowed(lo, hi, dtypes.Float4E2M1FN)
    return high << 4 | low


@instr("{ .reg .b8 b, z; mov.b16 {b, z}, $packed; cvt.rn.f16x2.e2m1x2 $wide, b; }", target=_TARGET, ref=_REF, pure=True)
def cvt_f16x2_e2m1x2(m: Machine, packed: u16, wide: out(u32)) -> int:
    """Two e2m1 numbers as f16, which holds them all: bits 0 to 3 become bits 0 to 15. Any thread."""
    return _widened(packed & 15, packed >> 4 & 15, dtypes.Float4E2M1FN)


@instr("cvt.rn.satfinite.e2m3x2.f32 $packed, $hi, $lo;", target=_TARGET, ref=_REF, pure=True)
def cvt_e2m3x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u16)) -> int:
    """Two floats as e2m3, rounded to nearest even, to ±7.5 at most: `lo` in bits 0 to 5, `hi` in 8 to 13.
    Any thread."""
    low, high = _narrowed(lo, hi, dtypes.Float6E2M3FN)
    return high << 8 | low


@instr("cvt.rn.satfinite.e3m2x2.f32 $packed, $hi, $lo;", target=_TARGET, ref=_REF, pure=True)
def cvt_e3m2x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u16)) -> int:
    """Two floats as e3m2, rounded to nearest even, to ±28 at most: `lo` in bits 0 to 5, `hi` in 8 to 13. Any thread."""
    low, high = _narrowed(lo, hi, dtypes.Float6E3M2FN)
    return high << 8 | low


@instr("cvt.rn.f16x2.e2m3x2 $wide, $packed;", target=_TARGET, ref=_REF, pure=True)
def cvt_f16x2_e2m3x2(m: Machine, packed: u16, wide: out(u32)) -> int:
    """Two e2m3 numbers as f16, which holds them all: bits 0 to 5 become bits 0 to 15. Any thread."""
    return _widened(packed & 63, packed >> 8 & 63, dtypes.Float6E2M3FN)


@instr("cvt.rn.f16x2.e3m2x2 $wide, $packed;", target=_TARGET, ref=_REF, pure=True)
def cvt_f16x2_e3m2x2(m: Machine, packed: u16, wide: out(u32)) -> int:
    """Two e3m2 numbers as f16, which holds them all: bits 0 to 5 become bits 0 to 15. Any thread."""
    return _widened(packed & 63, packed >> 8 & 63, dtypes.Float6E3M2FN)
