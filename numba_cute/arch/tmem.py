# SPDX-License-Identifier: Apache-2.0
"""Tensor memory: taking and giving back its columns (PTX ISA, "tcgen05"), sm_100f."""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import DType, Uint32
from ..seam import CuteError, traced
from ..tensor.pointer import AddressSpace, Pointer, shared_address

__all__ = [
    "alloc_tmem", "dealloc_tmem", "fence_view_async_tmem_load", "fence_view_async_tmem_store",
    "get_max_tmem_alloc_cols", "get_min_tmem_alloc_cols", "relinquish_tmem_alloc_permit", "retrieve_tmem_ptr",
]  # fmt: skip

_CAPACITY = {"sm_100": 512, "sm_103": 512, "sm_107": 512, "sm_101": 512, "sm_110": 512}
_LEAST = 32


def _capacity(compute_capability: str, what: str) -> int:
    found = _CAPACITY.get(str(compute_capability).rstrip("af"))
    if found is None:
        raise CuteError(f"{what}: {compute_capability!r} has no tensor memory; {', '.join(_CAPACITY)} have")
    return found


@traced
def get_max_tmem_alloc_cols(compute_capability: str) -> int:
    """Columns of tensor memory of a target such as "sm_100": 512."""
    return _capacity(compute_capability, "get_max_tmem_alloc_cols")


@traced
def get_min_tmem_alloc_cols(compute_capability: str) -> int:
    """The fewest columns that one allocation takes on a target such as "sm_100": 32."""
    _capacity(compute_capability, "get_min_tmem_alloc_cols")
    return _LEAST


def _columns(count: Any, what: str, arch: str) -> Any:
    top = _capacity(arch, what)
    if type(count) is int and (count & (count - 1) or not _LEAST <= count <= top):
        raise CuteError(f"{what}: num_columns {count} must be a power of two from {_LEAST} to {top}")
    return Uint32(count)


def _group(is_two_cta: Any, what: str) -> int:
    if is_two_cta not in (None, True, False):
        raise CuteError(f"{what}: is_two_cta {is_two_cta!r} must be static: None, True or False")
    return 2 if is_two_cta else 1


@traced
def alloc_tmem(
    num_columns: Any, smem_ptr_to_write_address: Any, is_two_cta: bool | None = None, arch: str = "sm_100"
) -> None:
    """Take `num_columns` (a power of two, 32 to 512) columns, waiting until they are free; their address is written to
    the Int32 at `smem_ptr_to_write_address`. One warp of the block, of each of the pair with `is_two_cta`.
    PTX tcgen05.alloc."""
    what = "alloc_tmem"
    group = _group(is_two_cta, what)
    isa.tcgen05_alloc(
        shared_address(smem_ptr_to_write_address, what), _columns(num_columns, what, arch), cta_group=group
    )


@traced
def dealloc_tmem(tmem_ptr: Any, num_columns: Any, is_two_cta: bool | None = None, arch: str = "sm_100") -> None:
    """Give back the columns at `tmem_ptr`, all `num_columns` of them. One warp, before the kernel ends.
    PTX tcgen05.dealloc."""
    what = "dealloc_tmem"
    if isinstance(tmem_ptr, Pointer) and tmem_ptr.space is not AddressSpace.tmem:
        raise CuteError(f"{what}: tmem_ptr {tmem_ptr!r} must point to tensor memory (AddressSpace.tmem)")
    address = tmem_ptr.address if isinstance(tmem_ptr, Pointer) else tmem_ptr
    isa.tcgen05_dealloc(address, _columns(num_columns, what, arch), cta_group=_group(is_two_cta, what))


@traced
def relinquish_tmem_alloc_permit(is_two_cta: bool | None = None) -> None:
    """Say that this block allocates no more, so that others may. One warp. PTX tcgen05.relinquish_alloc_permit."""
    isa.tcgen05_relinquish_alloc_permit(cta_group=_group(is_two_cta, "relinquish_tmem_alloc_permit"))


@traced
def retrieve_tmem_ptr(element_type: DType, alignment: int, ptr_to_buffer_holding_addr: Any) -> Pointer:
    """The Pointer that `alloc_tmem` wrote to shared memory. Any thread, after a barrier."""
    p = ptr_to_buffer_holding_addr
    if not isinstance(p, Pointer) or p.space is not AddressSpace.smem or p.dtype.width != 32:
        raise CuteError(f"retrieve_tmem_ptr: {p!r} must point to an Int32 in shared memory")
    if not isinstance(element_type, DType):
        raise CuteError(f"retrieve_tmem_ptr: element_type {element_type!r} is not an element type")
    return Pointer(element_type, AddressSpace.tmem, Uint32(p.load()), 0, alignment)


@traced
def fence_view_async_tmem_load() -> None:
    """Wait until this thread's loads from tensor memory are complete. Whole warps. PTX tcgen05.wait::ld."""
    isa.tcgen05_wait_ld()


@traced
def fence_view_async_tmem_store() -> None:
    """Wait until this thread's stores to tensor memory are complete. Whole warps. PTX tcgen05.wait::st."""
    isa.tcgen05_wait_st()
