# SPDX-License-Identifier: Apache-2.0
"""Numba's arrays as traced code sees them."""

from __future__ import annotations

from typing import Any

from ... import dtypes, seam
from ...seam import CuteError
from ..emit.leaves import NumberLeaf
from ..emit.tracer import Tracer
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.llvmlite import unpack_tuple
from ..ground.numba_cuda import make_array, types
from .shared_arrays import SharedArray

_I32 = ir.IntType(32)
_GIVEN = "given"


def view_of(ty: types.Array, value: Any, tracer: Tracer) -> seam.ArrayView:
    """Make of an array of Numba's type (and an LLVM value, when lowering) what traced code sees."""
    dtype = _DTYPES.get(ty.dtype)
    if dtype is None:
        raise CuteError(f"an array of {ty.dtype} has no CuTe element type")
    shared = isinstance(ty, SharedArray)
    if tracer.builder is None:
        data: Any = NumberLeaf(types.uint32 if shared else types.uint64)
        shape: tuple[Any, ...] = tuple(NumberLeaf(types.int64) for _ in range(ty.ndim))
        strides: tuple[Any, ...] = shape
    else:
        b = tracer.builder
        array = make_array(ty)(tracer.context, b, value)
        data = _data_address(b, array.data, shared)
        shape = tuple(NumberLeaf(types.int64, v) for v in unpack_tuple(b, array.shape, ty.ndim))
        strides = tuple(NumberLeaf(types.int64, v) for v in unpack_tuple(b, array.strides, ty.ndim))
    size = dtype.bytes
    elements: list[Any] = [tracer.arith("sdiv", s, size) for s in strides]
    if ty.layout == "C":
        elements[-1:] = [1]
    elif ty.layout == "F":
        elements[:1] = [1]
    if shared and ty.extents is not None:
        shape, elements = ty.extents, ty.strides
    view = seam.ArrayView(dtype, data, shape, tuple(elements), not ty.mutable, shared, getattr(ty, "alignment", 0))
    object.__setattr__(view, _GIVEN, (ty, value))
    return view


def given_array(view: seam.ArrayView) -> Any:
    """Return the type and the LLVM value of the array that was given to traced code; None of a view of none. What gives
    it back, as a named tuple that holds it, gives the array, which has elements."""
    return vars(view).get(_GIVEN)


def _data_address(builder: Builder, data: Any, shared: bool) -> NumberLeaf:
    """Return where an array's elements begin: anywhere in memory, or in shared memory."""
    if not shared:
        return NumberLeaf(types.uint64, builder.ptrtoint(data, ir.IntType(64)))
    there = builder.addrspacecast(data, ir.PointerType(data.type.pointee, 3))
    return NumberLeaf(types.uint32, builder.ptrtoint(there, _I32))


_DTYPES = {
    types.boolean: dtypes.Boolean, types.int8: dtypes.Int8, types.int16: dtypes.Int16, types.int32: dtypes.Int32,
    types.int64: dtypes.Int64, types.uint8: dtypes.Uint8, types.uint16: dtypes.Uint16, types.uint32: dtypes.Uint32,
    types.uint64: dtypes.Uint64, types.float16: dtypes.Float16, types.bfloat16: dtypes.BFloat16,
    types.float32: dtypes.Float32, types.float64: dtypes.Float64,
}  # fmt: skip
