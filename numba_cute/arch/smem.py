# SPDX-License-Identifier: Apache-2.0
"""Shared memory of the block: static allocations, and where dynamic shared memory begins."""

from __future__ import annotations

from typing import Any

from .. import seam
from ..dtypes import DType, Int32
from ..seam import CuteError, traced
from ..tensor.pointer import AddressSpace, Pointer
from .index import dynamic_smem_size


@traced
def alloc_smem(element_type: DType, size_in_elems: int, alignment: int | None = None) -> Pointer:
    """Room for `size_in_elems` elements in static shared memory: one allocation for each line of the kernel that calls
    this (and for each call, if it is a traced function that does), the same for all threads of the block, whose
    contents are undefined. alignment: bytes (by default the element's size)."""
    if not isinstance(element_type, DType):
        raise CuteError(f"alloc_smem: element_type {element_type!r} is not an element type; use one like cute.Float32")
    if type(size_in_elems) is not int or size_in_elems < 1:
        raise CuteError(f"alloc_smem: size_in_elems {size_in_elems!r} must be a static number, at least 1")
    align = element_type.bytes if alignment is None else alignment
    if type(align) is not int or align < 1 or align & (align - 1) or align > 1024:
        raise CuteError(f"alloc_smem: alignment {alignment!r} must be a power of two, at most 1024")
    align = max(align, element_type.bytes)
    address = seam.current().static_smem(size_in_elems * element_type.bytes, align)
    return Pointer(element_type, AddressSpace.smem, address, 0, align)


@traced
def get_dyn_smem(element_type: DType, alignment: int | None = None) -> Pointer:
    """A Pointer to the first byte of dynamic shared memory, which is a multiple of 1024. The launch must give as much
    as the kernel uses (its `smem` argument), and nothing else may allocate from it."""
    if not isinstance(element_type, DType):
        raise CuteError(f"get_dyn_smem: element_type {element_type!r} is not an element type")
    if alignment is not None and (type(alignment) is not int or 1024 % alignment):
        raise CuteError(f"get_dyn_smem: alignment {alignment!r} must be a power of two, at most 1024")
    return Pointer(element_type, AddressSpace.smem, seam.current().smem_base(), 0, alignment or 1024)


@traced
def get_dyn_smem_size() -> Any:
    """Bytes of dynamic shared memory of the launch (Int32). PTX %dynamic_smem_size."""
    return Int32(dynamic_smem_size())
