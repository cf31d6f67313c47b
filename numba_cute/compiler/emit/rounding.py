# SPDX-License-Identifier: Apache-2.0
"""Round one run-time number to an integer, or to a float that is to be rounded once more."""

from __future__ import annotations

from typing import Any

from ...dtypes import DType
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.llvmlite import get_or_insert_function
from ..ground.numba_cuda import types
from .leaves import NumberLeaf, scalar_type

HALVES = (types.float16, types.bfloat16)
_I32, _F32 = ir.IntType(32), ir.FloatType()


def to_integer(tracer: Any, x: NumberLeaf, dtype: DType) -> Any:
    """Convert a number to an integer of `dtype`, in LLVM of at least 8 bits: floats towards zero, saturating, NaN to 0;
    integers wrap around. Instructions do so for 32 and 64 bits (cvt.rzi)."""
    b = tracer.builder
    if not isinstance(x.type, types.Float):
        return tracer.ir(x, scalar_type(dtype))
    if x.type in HALVES:
        x = NumberLeaf(types.float32, tracer.ir(x, types.float32))
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


def to_float32(tracer: Any, x: NumberLeaf) -> Any:
    """Convert a number to a float that is to be rounded again, to at most 11 digits: to odd where it has more digits
    than a float, so that the second rounding is the only one."""
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


def _libdevice(b: Builder, name: str, result: Any, x: Any) -> Any:
    ty = ir.FunctionType(result, [x.type])
    return b.call(get_or_insert_function(b.module, ty, f"__nv_{name}"), [x])
