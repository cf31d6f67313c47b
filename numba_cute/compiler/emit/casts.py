# SPDX-License-Identifier: Apache-2.0
"""Conversion of one run-time number between Numba's scalar types."""

from __future__ import annotations

from typing import Any

from ... import seam
from ..ground import llvmlite as ir
from ..ground.numba_cuda import types
from . import convert
from .leaves import NumberLeaf, dtype_of
from .rounding import HALVES, to_float32, to_integer

_I16, _I32 = ir.IntType(16), ir.IntType(32)


def cast(tracer: Any, x: NumberLeaf, ty: types.Type, llvm: Any) -> Any:
    """Convert `x` to an LLVM value of the Numba type `ty` (another than its own), `llvm` in LLVM (bools as i1)."""
    b = tracer.builder
    if x.type in HALVES or ty in HALVES:
        with seam.running(tracer):  # which a field's store, beside traced code, is not in
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
        with seam.running(tracer):
            return to_integer(tracer, x, dtype_of(ty))
    return tracer.context.cast(b, x.ir, x.type, ty)


def _half(tracer: Any, x: NumberLeaf, ty: types.Type) -> Any:
    """Convert from or to a 16-bit float, through Float32 (Numba would call a C++ function that nothing links
    offline)."""
    if x.type in HALVES:
        word = tracer.builder.zext(x.ir, _I32)
        single = NumberLeaf(types.float32, convert.widened(tracer, [word], dtype_of(x.type), 1)[0])
        return tracer.ir(single, ty)
    word = convert.narrowed(tracer, [to_float32(tracer, x)], dtype_of(ty))[0]
    return tracer.builder.trunc(word, _I16)
