# SPDX-License-Identifier: Apache-2.0
"""Shared memory of the block: static allocations, and where dynamic shared memory begins."""

from __future__ import annotations

from dataclasses import replace

from .. import isa, seam
from ..dtypes import DType, Int32, Uint32
from ..seam import CuteError, Int, traced
from ..seam.guards.messages import how_static
from ..tensor.pointer import AddressSpace, Pointer, access_alignment, physical
from .index import dynamic_smem_size

__all__ = ["alloc_smem", "get_dyn_smem", "get_dyn_smem_size", "map_dsmem_ptr"]


@traced
def alloc_smem(element_type: DType, size_in_elems: int, alignment: int | None = None) -> Pointer:
    """Reserve static shared memory for `size_in_elems` elements, the same for all threads of the block; its contents
    are undefined. PTX: none, any target.

    Each line of a kernel that calls this makes one allocation (of a traced function, each call of it). element_type: an
    element type. size_in_elems: a static number, at least 1. alignment: bytes, a power of two up to 1024; the element's
    size by default.

    >>> cute.simulate(lambda: print(arch.alloc_smem(cute.Float32, 4)))[1, 1]()
    ptr<Float32, smem, align 4>
    """
    if not isinstance(element_type, DType):
        raise CuteError(f"alloc_smem: element_type {element_type!r} is not an element type; use one like cute.Float32")
    if type(size_in_elems) is not int or size_in_elems < 1:
        raise CuteError(
            f"alloc_smem: size_in_elems {size_in_elems!r} must be a static number, at least 1"
            f"{how_static(size_in_elems)}"
        )
    align = element_type.bytes if alignment is None else alignment
    if type(align) is not int or align < 1 or align & (align - 1) or align > 1024:
        raise CuteError(f"alloc_smem: alignment {alignment!r} must be a power of two, at most 1024")
    align = max(align, element_type.bytes)
    address = seam.current().static_smem(size_in_elems * element_type.bytes, align)
    return Pointer(element_type, AddressSpace.smem, address, 0, align)


@traced
def get_dyn_smem(element_type: DType, alignment: int | None = None) -> Pointer:
    """Return a Pointer to the first byte of dynamic shared memory, which is a multiple of 1024.

    element_type: the type to point to. alignment: what the Pointer is to promise, in bytes: a power of two up to 1024,
    the default. The launch must provide as much as the kernel uses (its `smem` argument), and nothing else may allocate
    from it. PTX: none, any target.

    >>> cute.simulate(lambda: print(arch.get_dyn_smem(cute.Float32)))[1, 1, 0, 1024]()
    ptr<Float32, smem, align 1024>
    """
    if not isinstance(element_type, DType):
        raise CuteError(f"get_dyn_smem: element_type {element_type!r} is not an element type")
    if alignment is not None and (type(alignment) is not int or 1024 % alignment):
        raise CuteError(f"get_dyn_smem: alignment {alignment!r} must be a power of two, at most 1024")
    return Pointer(element_type, AddressSpace.smem, seam.current().smem_base(), 0, alignment or 1024)


@traced
def get_dyn_smem_size() -> Int32:
    """Return the bytes of dynamic shared memory of the launch (Int32). Any thread. PTX %dynamic_smem_size, sm_70.

    >>> cute.simulate(lambda: print(arch.get_dyn_smem_size()))[1, 1, 0, 1024]()
    1024
    """
    return Int32(dynamic_smem_size())


@traced
def map_dsmem_ptr(smem_ptr: Pointer, peer_cta_rank: Int) -> Pointer:
    """Give the pointer to the same place in the shared memory of another block of the cluster: for `arch.load` and
    `arch.store` with ss="cluster", for copies with SharedSpace.CLUSTER, and for CopyDsmemStoreOp and its barrier. Any
    thread.

    smem_ptr: a Pointer to this block's shared memory; its swizzle stays. peer_cta_rank: the block's rank in the
    cluster. Raises CuteError for other pointers. PTX mapa.shared::cluster, sm_90.

    See the example of `cluster_arrive`.
    """
    if not isinstance(smem_ptr, Pointer) or smem_ptr.space is not AddressSpace.smem:
        raise CuteError(f"map_dsmem_ptr: smem_ptr {smem_ptr!r} must be a Pointer to shared memory")
    plain = replace(smem_ptr, swizzle=None)  # a swizzle is of the bits below the block's
    address = isa.mapa(physical(plain), Uint32(peer_cta_rank))
    return Pointer(smem_ptr.dtype, AddressSpace.smem, address, 0, access_alignment(plain), smem_ptr.swizzle)
