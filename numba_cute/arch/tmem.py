# SPDX-License-Identifier: Apache-2.0
"""Tensor memory: taking and giving back its columns (PTX ISA, "tcgen05"), sm_100f."""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import DType, Uint32
from ..isa.form.targets import TARGETS, named
from ..seam import CuteError, Int, traced
from ..seam.guards.messages import how_static
from ..tensor.pointer import AddressSpace, Pointer, shared_address

__all__ = [
    "alloc_tmem", "dealloc_tmem", "fence_view_async_tmem_load", "fence_view_async_tmem_store",
    "get_max_tmem_alloc_cols", "get_min_tmem_alloc_cols", "relinquish_tmem_alloc_permit", "retrieve_tmem_ptr",
    "tcgen05_fence_after_thread_sync", "tcgen05_fence_before_thread_sync",
]  # fmt: skip

_LEAST = 32


def _capacity(compute_capability: str, what: str) -> int:
    columns = named(compute_capability).tmem_columns
    if not columns:
        having = ", ".join(t.name for t in TARGETS.values() if t.tmem_columns)
        raise CuteError(f"{what}: {compute_capability!r} has no tensor memory; {having} have")
    return columns


@traced
def get_max_tmem_alloc_cols(compute_capability: str) -> int:
    """Return the columns of tensor memory of a target, 512. compute_capability: a target with tensor memory, such as
    "sm_100"; others are errors.

    >>> arch.get_max_tmem_alloc_cols("sm_100")
    512
    """
    return _capacity(compute_capability, "get_max_tmem_alloc_cols")


@traced
def get_min_tmem_alloc_cols(compute_capability: str) -> int:
    """Return the fewest columns that one allocation takes, 32. compute_capability: as for `get_max_tmem_alloc_cols`,
    "sm_100" or later.

    >>> arch.get_min_tmem_alloc_cols("sm_100")
    32
    """
    _capacity(compute_capability, "get_min_tmem_alloc_cols")
    return _LEAST


def _columns(count: Any, what: str, arch: str) -> Uint32:
    top = _capacity(arch, what)
    if type(count) is int and (count & (count - 1) or not _LEAST <= count <= top):
        raise CuteError(f"{what}: num_columns {count} must be a power of two from {_LEAST} to {top}")
    return Uint32(count)


def _group(is_two_cta: Any, what: str) -> int:
    if is_two_cta not in (None, True, False):
        raise CuteError(
            f"{what}: is_two_cta {is_two_cta!r} must be static: None, True or False{how_static(is_two_cta)}"
        )
    return 2 if is_two_cta else 1


@traced
def alloc_tmem(
    num_columns: Int, smem_ptr_to_write_address: Any, is_two_cta: bool | None = None, arch: str = "sm_100"
) -> None:
    """Allocate columns of tensor memory, waiting until they are free. One warp of the block; with `is_two_cta` one of
    each of the pair.

    num_columns: a power of two from 32 to 512. smem_ptr_to_write_address: a Pointer to the Int32 of shared memory that
    receives their address. is_two_cta: allocate in both blocks of a pair. arch: the target whose capacity is checked.
    PTX tcgen05.alloc, sm_100f.

    >>> def kernel():
    ...     place = arch.alloc_smem(cute.Int32, 1)
    ...     arch.alloc_tmem(64, place)
    ...     tmem = arch.retrieve_tmem_ptr(cute.Float32, 16, place)
    ...     arch.relinquish_tmem_alloc_permit()
    ...     arch.dealloc_tmem(tmem, 64)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 32]()
    """
    what = "alloc_tmem"
    group = _group(is_two_cta, what)
    isa.tcgen05_alloc(
        shared_address(smem_ptr_to_write_address, what), _columns(num_columns, what, arch), cta_group=group
    )


@traced
def dealloc_tmem(tmem_ptr: Any, num_columns: Int, is_two_cta: bool | None = None, arch: str = "sm_100") -> None:
    """Free columns of tensor memory, as many as were allocated together. One warp, before the kernel ends.

    tmem_ptr: their first address, a Pointer to tensor memory or an Int32. num_columns, is_two_cta, arch: as for
    `alloc_tmem`. PTX tcgen05.dealloc, sm_100f.

    >>> def kernel():
    ...     place = arch.alloc_smem(cute.Int32, 1)
    ...     arch.alloc_tmem(64, place)
    ...     arch.dealloc_tmem(arch.retrieve_tmem_ptr(cute.Float32, 16, place), 64)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 32]()
    """
    what = "dealloc_tmem"
    if isinstance(tmem_ptr, Pointer) and tmem_ptr.space is not AddressSpace.tmem:
        raise CuteError(f"{what}: tmem_ptr {tmem_ptr!r} must point to tensor memory (AddressSpace.tmem)")
    address = tmem_ptr.address if isinstance(tmem_ptr, Pointer) else tmem_ptr
    isa.tcgen05_dealloc(address, _columns(num_columns, what, arch), cta_group=_group(is_two_cta, what))


@traced
def relinquish_tmem_alloc_permit(is_two_cta: bool | None = None) -> None:
    """Give up the right to allocate tensor memory, so that other blocks may. One warp; is_two_cta: as for
    `alloc_tmem`. PTX tcgen05.relinquish_alloc_permit, sm_100f.

    >>> def kernel():
    ...     place = arch.alloc_smem(cute.Int32, 1)
    ...     arch.alloc_tmem(512, place)
    ...     arch.relinquish_tmem_alloc_permit()
    ...     arch.dealloc_tmem(arch.retrieve_tmem_ptr(cute.Float32, 16, place), 512)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 32]()
    """
    isa.tcgen05_relinquish_alloc_permit(cta_group=_group(is_two_cta, "relinquish_tmem_alloc_permit"))


@traced
def retrieve_tmem_ptr(element_type: DType, alignment: int, ptr_to_buffer_holding_addr: Any) -> Pointer:
    """Read the Pointer to tensor memory that `alloc_tmem` wrote. Any thread, after a barrier.

    element_type: the type to point to. alignment: bytes that the address is a multiple of. ptr_to_buffer_holding_addr:
    a Pointer to the Int32 in shared memory. PTX ld.shared, sm_100f.

    >>> def kernel():
    ...     place = arch.alloc_smem(cute.Int32, 1)
    ...     arch.alloc_tmem(32, place)
    ...     arch.sync_warp()
    ...     tmem = arch.retrieve_tmem_ptr(cute.Float32, 16, place)
    ...     if arch.lane_idx() == 0:
    ...         print(tmem)
    ...     arch.dealloc_tmem(tmem, 32)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 32]()
    ptr<Float32, tmem, align 16>
    """
    p = ptr_to_buffer_holding_addr
    if not isinstance(p, Pointer) or p.space is not AddressSpace.smem or p.dtype.width != 32:
        raise CuteError(f"retrieve_tmem_ptr: {p!r} must point to an Int32 in shared memory")
    if not isinstance(element_type, DType):
        raise CuteError(f"retrieve_tmem_ptr: element_type {element_type!r} is not an element type")
    return Pointer(element_type, AddressSpace.tmem, Uint32(p.load()), 0, alignment)


@traced
def fence_view_async_tmem_load() -> None:
    """Wait until this thread's loads from tensor memory are complete. Whole warps. PTX tcgen05.wait::ld, sm_100f.

    >>> cute.simulate(lambda: arch.fence_view_async_tmem_load(), arch="sm_100a")[1, 32]()
    """
    isa.tcgen05_wait_ld()


@traced
def fence_view_async_tmem_store() -> None:
    """Wait until this thread's stores to tensor memory are complete. Whole warps. PTX tcgen05.wait::st, sm_100f.

    >>> cute.simulate(lambda: arch.fence_view_async_tmem_store(), arch="sm_100a")[1, 32]()
    """
    isa.tcgen05_wait_st()


@traced
def tcgen05_fence_before_thread_sync() -> None:
    """Order this thread's earlier work on tensor memory before its next synchronisation with other threads. Any
    thread. Pipelines and `utils.TmemAllocator` have it in. PTX tcgen05.fence::before_thread_sync, sm_100f.

    >>> def kernel():
    ...     arch.tcgen05_fence_before_thread_sync()
    ...     arch.sync_threads()
    ...     arch.tcgen05_fence_after_thread_sync()
    >>> cute.simulate(kernel, arch="sm_100a")[1, 64]()
    """
    isa.tcgen05_fence_before()


@traced
def tcgen05_fence_after_thread_sync() -> None:
    """Order this thread's later work on tensor memory after its last synchronisation with other threads: a barrier, or
    the mbarrier of a `tcgen05.commit`. Any thread. PTX tcgen05.fence::after_thread_sync, sm_100f.

    See the example of `tcgen05_fence_before_thread_sync`.
    """
    isa.tcgen05_fence_after()
