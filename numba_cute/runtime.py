# SPDX-License-Identifier: Apache-2.0
"""Tensors on the host: from arrays of other libraries, from addresses, and stand-ins for compiling without data."""

from __future__ import annotations

from typing import Any

from . import layout
from .dlpack import inspect_array
from .dtypes import DType, Int64, Scalar
from .layout import Layout
from .pointer import AddressSpace, Pointer, make_ptr
from .seam import CuteError
from .tensor import Tensor

__all__ = ["from_dlpack", "make_fake_compact_tensor", "make_fake_tensor", "make_ptr"]


def from_dlpack(tensor_dlpack: Any, assumed_align: int | None = None) -> Tensor:
    """The tensor over an array's memory, with its static shape and strides.

    tensor_dlpack: a NumPy array (for the simulator), or any array on a GPU with DLPack or the CUDA array interface;
    bf16 and fp8 too (ml_dtypes, torch, jax), and packed fp4 (torch.float4_e2m1fn_x2), seen as bytes. assumed_align:
    bytes that the address is known to be a multiple of (default: one element's). The tensor keeps the array alive; a
    launch does not.
    """
    info = inspect_array(tensor_dlpack)
    if not info.shape:
        raise CuteError("from_dlpack: the array has no dimension; reshape it to (1,)")
    pointer = _pointer(info.dtype, info.address, AddressSpace.gmem, assumed_align, "from_dlpack")
    tensor = Tensor(pointer, Layout(info.shape, info.strides))
    object.__setattr__(tensor, "_source", info.owner)  # no field: it must neither be compared nor go to a kernel
    return tensor


def _pointer(dtype: DType, address: int, space: AddressSpace, assumed_align: int | None, what: str) -> Pointer:
    align = dtype.bytes if assumed_align is None else assumed_align
    if type(align) is not int or align < dtype.bytes or align & (align - 1):
        raise CuteError(f"{what}: assumed_align {align!r} must be a power of two of at least {dtype.bytes} bytes")
    if address % align:
        raise CuteError(f"{what}: address {address:#x} is not a multiple of assumed_align = {align} bytes")
    return Pointer(dtype, space, Int64(address), 0, align)


def make_fake_tensor(
    dtype: DType,
    shape: Any,
    stride: Any,
    *,
    memspace: AddressSpace = AddressSpace.gmem,
    assumed_align: int | None = None,
) -> Tensor:
    """A tensor without memory, to compile a kernel for: Scalars in `shape` and `stride` (as `Int32(1024)`) are
    run-time values there, ints are static."""
    if not isinstance(dtype, DType):
        raise CuteError(f"make_fake_tensor: dtype {dtype!r} is not an element type; use one like cute.Float32")
    return Tensor(_pointer(dtype, 0, memspace, assumed_align, "make_fake_tensor"), Layout(shape, stride))


def make_fake_compact_tensor(
    dtype: DType,
    shape: Any,
    *,
    stride_order: Any = None,
    memspace: AddressSpace = AddressSpace.gmem,
    assumed_align: int | None = None,
) -> Tensor:
    """`make_fake_tensor` with compact strides. stride_order: for each mode its place from the innermost (0) outwards;
    by default the first mode is innermost."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    order = tuple(range(len(shape))) if stride_order is None else tuple(stride_order)
    if sorted(order) != list(range(len(shape))):
        raise CuteError(f"make_fake_compact_tensor: stride_order {stride_order!r} must place each mode of {shape} once")
    strides: list[Any] = [1] * len(shape)
    step: Any = 1
    for m in sorted(range(len(shape)), key=order.__getitem__):
        strides[m] = step
        step = Int64(int(step) * int(shape[m])) if isinstance(shape[m], Scalar) or isinstance(step, Scalar) \
            else step * layout.size(shape[m])  # fmt: skip
    return make_fake_tensor(dtype, shape, tuple(strides), memspace=memspace, assumed_align=assumed_align)
