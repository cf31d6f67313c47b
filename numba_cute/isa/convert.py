# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Conversions that pack two values into one register (PTX ISA, "cvt")."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from .instr import f32, instr, out, u32
from .machine import Machine

_REF = "data-movement-and-conversion-instructions-cvt"
_NAN16 = 0x7FFF  # the canonical NaN that cvt gives for both f16 and bf16


def _half(value: float, dtype: dtypes.DType) -> int:
    if math.isnan(value):
        return _NAN16
    with np.errstate(over="ignore"):
        return int(np.array([value], np.float32).astype(dtype.numpy).view(np.uint16)[0])


@instr("cvt.rn.bf16x2.f32 $packed, $hi, $lo;", target="sm_80", ref=_REF, pure=True)
def cvt_bf16x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u32)) -> int:
    """Two floats as bf16, rounded to nearest even: `lo` in bits 0 to 15, `hi` in bits 16 to 31. Any thread."""
    return _half(hi, dtypes.BFloat16) << 16 | _half(lo, dtypes.BFloat16)


@instr("cvt.rn.f16x2.f32 $packed, $hi, $lo;", target="sm_80", ref=_REF, pure=True)
def cvt_f16x2_f32(m: Machine, lo: f32, hi: f32, packed: out(u32)) -> int:
    """Two floats as f16, rounded to nearest even: `lo` in bits 0 to 15, `hi` in bits 16 to 31. Any thread."""
    return _half(hi, dtypes.Float16) << 16 | _half(lo, dtypes.Float16)
