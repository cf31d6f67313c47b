# SPDX-License-Identifier: Apache-2.0
"""Conversion of one run-time number between Numba's scalar types."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types

from ...dtypes import DType
from . import convert
from .leaves import Number, dtype_of, scalar_type

HALVES = (types.float16, types.bfloat16)
_I16, _I32, _F32 = ir.IntType(16), ir.IntType(32), ir.FloatType()


def cast(tracer: Any, x: Number, ty: types.Type, llvm: Any) -> Any:
    """`x` as an LLVM value of the Numba type `ty` (another than its own), `llvm` in LLVM (bools as i1)."""
    b = tracer.builder
    if x.type in HALVES or ty in HALVES:
        return _half(tracer, x, ty)
    if ty == types.boolean:
        zero = ir.Constant(x.ir.type, 0)
        compare = b.fcmp_unordered if isinstance(x.type, types.Float) else b.icmp_unsigned
        return compare("!=", x.ir, zero)
    if x.type == types.boolean:
        return b.zext(x.ir, llvm) if isinstance(ty, types.Integer) else b.uitofp(x.ir, llvm)
    if isinstance(x.type, types.Integer) and isinstance(ty, types.Integer):
        if x.type.bitwidth == ty.bitwidth:
            return x.ir
        if x.type.bitwidth > ty.bitwidth:
            return b.trunc(x.ir, llvm)
        return (b.sext if x.type.signed else b.zext)(x.ir, llvm)
    if isinstance(ty, types.Integer):
        return to_integer(tracer, x, dtype_of(ty))
    return tracer.context.cast(b, x.ir, x.type, ty)


def _half(tracer: Any, x: Number, ty: types.Type) -> Any:
    """From or to a 16-bit float, through Float32 (Numba would call a C++ function that nothing links offline)."""
    if x.type in HALVES:
        word = tracer.builder.zext(x.ir, _I32)
        single = Number(types.float32, convert.widened(tracer, [word], dtype_of(x.type), 1)[0])
        return tracer.ir(single, ty)
    word = convert.narrowed(tracer, [to_float32(tracer, x)], dtype_of(ty))[0]
    return tracer.builder.trunc(word, _I16)


def to_integer(tracer: Any, x: Number, dtype: DType) -> Any:
    """A number as an integer of `dtype`, in LLVM of at least 8 bits: floats towards zero, saturating, NaN to 0;
    integers wrap around. Instructions do so for 32 and 64 bits (cvt.rzi)."""
    b = tracer.builder
    if not isinstance(x.type, types.Float):
        return tracer.ir(x, scalar_type(dtype))
    if x.type in HALVES:
        x = Number(types.float32, tracer.ir(x, types.float32))
    double, wide = x.type.bitwidth == 64, dtype.width == 64
    name = ("" if dtype.signed else "u") + ("ll" if wide else "int")
    result = ir.IntType(64 if wide else 32)
    value = _libdevice(b, f"{'double' if double else 'float'}2{name}_rz", result, x.ir)
    if double or wide:  # there a NaN gives the least number (PTX ISA, "cvt")
        value = b.select(b.fcmp_unordered("uno", x.ir, x.ir), result(0), value)
    if dtype.width >= 32:
        return value
    low = -(1 << (dtype.width - 1)) if dtype.signed else 0
    high = result(low + (1 << dtype.width) - 1)
    compare = b.icmp_signed if dtype.signed else b.icmp_unsigned
    value = b.select(compare(">", value, high), high, value)
    if dtype.signed:
        value = b.select(compare("<", value, result(low)), result(low), value)
    return b.trunc(value, ir.IntType(max(8, dtype.width)))


def to_float32(tracer: Any, x: Number) -> Any:
    """A number as a float that is to be rounded again, to at most 11 digits: to odd where it has more digits than a
    float, so that the second rounding is the only one."""
    b = tracer.builder
    if x.type == types.float64:
        single = _libdevice(b, "double2float_rz", _F32, x.ir)
        inexact = b.fcmp_unordered("!=", b.fpext(single, ir.DoubleType()), x.ir)
    elif isinstance(x.type, types.Integer) and x.type.bitwidth >= 32:
        name = ("" if x.type.signed else "u") + ("ll" if x.type.bitwidth == 64 else "int")
        single = _libdevice(b, f"{name}2float_rz", _F32, x.ir)
        inexact = b.icmp_unsigned("!=", _libdevice(b, f"float2{name}_rz", x.ir.type, single), x.ir)
    else:
        return tracer.ir(x, types.float32)
    return b.bitcast(b.or_(b.bitcast(single, _I32), b.zext(inexact, _I32)), _F32)


def _libdevice(b: Any, name: str, result: Any, x: Any) -> Any:
    ty = ir.FunctionType(result, [x.type])
    return b.call(cgutils.get_or_insert_function(b.module, ty, f"__nv_{name}"), [x])
