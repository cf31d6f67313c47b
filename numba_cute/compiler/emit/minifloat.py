# SPDX-License-Identifier: Apache-2.0
"""Floats of at most 8 bits to and from Float32 on targets that have no instruction for them: a few operations for each
element, exact one way and rounded to nearest even, saturating, the other (as `dtypes.converted`)."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ..ground import llvmlite as ir
from ..ground.builder import Builder

_I16, _I32, _F32 = ir.IntType(16), ir.IntType(32), ir.FloatType()
_MAGNITUDE = _I32(0x7FFFFFFF)

# ptx name: bits of the mantissa, bias of the exponent, the largest number.
_FORMATS = {
    "e4m3": (3, 7, 448.0),
    "e5m2": (2, 15, 57344.0),
    "e2m3": (3, 1, 7.5),
    "e3m2": (2, 3, 28.0),
    "e2m1": (1, 1, 6.0),
}


def widened(b: Builder, bits: Any, dtype: dtypes.DType) -> Any:
    """Convert the bits of one element (an i32, zeros above) to a float."""
    if dtype is dtypes.Float8E8M0FNU:
        return _power(b, bits)
    mantissa, bias, _ = _FORMATS[dtype.ptx]
    sign_at = dtype.width - 1
    magnitude = b.and_(bits, _I32((1 << sign_at) - 1))
    # As an f16, whose exponent has the bias 15: its subnormal numbers are read as well.
    half = b.bitcast(b.trunc(b.shl(magnitude, _I32(10 - mantissa)), _I16), ir.HalfType())
    value = b.fmul(b.fpext(half, _F32), ir.Constant(_F32, 2.0 ** (15 - bias)))
    if dtype.ptx == "e4m3":
        value = b.select(b.icmp_unsigned("==", magnitude, _I32(0x7F)), ir.Constant(_F32, float("nan")), value)
    sign = b.shl(b.lshr(bits, _I32(sign_at)), _I32(31))
    return b.bitcast(b.or_(b.bitcast(value, _I32), sign), _F32)


def narrowed(b: Builder, value: Any, dtype: dtypes.DType) -> Any:
    """Convert a float to the bits of one element, an i32."""
    if dtype is dtypes.Float8E8M0FNU:
        return _power_bits(b, value)
    mantissa, bias, top = _FORMATS[dtype.ptx]
    raw = b.bitcast(value, _I32)
    magnitude = b.bitcast(b.and_(raw, _MAGNITUDE), _F32)
    largest = ir.Constant(_F32, top)
    bounded = b.select(b.fcmp_ordered("<", magnitude, largest), magnitude, largest)
    # A number so large that its last digit is that of the result: adding it rounds.
    least = _I32(127 + 1 - bias)
    exponent = b.lshr(b.bitcast(bounded, _I32), _I32(23))
    exponent = b.select(b.icmp_unsigned("<", exponent, least), least, exponent)
    big = b.bitcast(b.shl(b.add(exponent, _I32(23 - mantissa)), _I32(23)), _F32)
    rounded = b.fsub(b.fadd(bounded, big), big)
    half = b.fptrunc(b.fmul(rounded, ir.Constant(_F32, 2.0 ** (bias - 15))), ir.HalfType())
    bits = b.lshr(b.zext(b.bitcast(half, _I16), _I32), _I32(10 - mantissa))
    if dtype.width == 8:
        bits = b.select(b.fcmp_unordered("uno", value, value), _I32(0x7F), bits)
    return b.or_(bits, b.shl(b.lshr(raw, _I32(31)), _I32(dtype.width - 1)))


def _power(b: Builder, bits: Any) -> Any:
    """Compute 2 ** (bits - 127); 255 is NaN."""
    exact = b.select(b.icmp_unsigned("==", bits, _I32(0)), _I32(0x00400000), b.shl(bits, _I32(23)))
    return b.bitcast(b.select(b.icmp_unsigned("==", bits, _I32(255)), _I32(0x7FFFFFFF), exact), _F32)


def _power_bits(b: Builder, value: Any) -> Any:
    """Return the exponent of the least power of two that is not smaller than the magnitude."""
    raw = b.and_(b.bitcast(value, _I32), _MAGNITUDE)
    exponent, rest = b.lshr(raw, _I32(23)), b.and_(raw, _I32(0x7FFFFF))
    below = b.select(b.icmp_unsigned("==", exponent, _I32(0)), _I32(0x400000), _I32(0))  # 2**-127 is subnormal
    up = b.add(exponent, b.zext(b.icmp_unsigned(">", rest, below), _I32))
    bounded = b.select(b.icmp_unsigned("<", up, _I32(254)), up, _I32(254))
    return b.select(b.icmp_unsigned(">", raw, _I32(0x7F800000)), _I32(255), bounded)
