# SPDX-License-Identifier: Apache-2.0
"""Beginnings of tensors: pointers, coordinates, descriptors, and the arrays that a kernel has."""

from __future__ import annotations

from typing import Any

from .. import dtypes, layout, seam
from ..layout import Layout
from ..seam import CuteError, Leaf
from ..seam.ground.naming import shown
from .pointer import AddressSpace, Pointer


def layout_of(view: seam.ArrayView) -> Layout:
    """An array's shape and strides."""
    return layout.make_layout(view.shape, stride=view.stride)


def start_of(view: seam.ArrayView) -> Pointer:
    """Return the pointer to an array's beginning."""
    space = AddressSpace.smem if view.shared else AddressSpace.generic
    align = max(view.dtype.bytes, view.alignment)
    return Pointer(view.dtype, space, view.address, alignment=align, readonly=view.readonly)


def in_global_memory(t: Any) -> bool:
    """Return whether a tensor, of a layout that is not swizzled, lies in global memory."""
    p = t.iterator
    in_global = isinstance(p, Pointer) and p.space in (AddressSpace.gmem, AddressSpace.generic)
    return in_global and isinstance(t.layout, Layout)


def is_origin(x: Any) -> bool:
    """Return whether a tensor may begin at `x`: a coordinate, or an object that moves by `+`."""
    return isinstance(x, (int, Leaf, tuple)) or hasattr(x, "__add__") and seam.is_frozen_class(type(x))


def origin(x: Any) -> Any:
    """Return what a tensor begins at; CuteError of anything else."""
    if isinstance(x, (Pointer, tuple)) or hasattr(x, "__add__") and seam.is_frozen_class(type(x)):
        return x
    raise CuteError(f"make_tensor: iterator {shown(x)} is neither a Pointer nor a coordinate tuple")


def array_view(x: Any) -> seam.ArrayView | None:
    """A Numba array that a kernel passes, as compiled code sees it or (NumPy's) as the simulator does."""
    if isinstance(x, seam.ArrayView):
        return x
    if isinstance(x, (Pointer, tuple)):
        return None
    made = getattr(x, "__cute_view__", None)
    if made is not None:
        return made()  # type: ignore[no-any-return]
    if isinstance(x, type) or not hasattr(x, "__array_interface__"):
        return None
    strides = tuple(s // x.itemsize for s in x.strides)
    address, readonly = x.__array_interface__["data"]
    return seam.ArrayView(dtypes.from_numpy(x.dtype), address, x.shape, strides, readonly)
