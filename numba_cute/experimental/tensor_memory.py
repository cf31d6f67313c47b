# SPDX-License-Identifier: Apache-2.0
"""Tensor memory: allocated where a kernel asks for it, freed at the kernel's end; the layouts that go there and come
from there."""

from __future__ import annotations

from typing import Any

from ..arch.index import warp_idx
from ..arch.sync import cluster_arrive, cluster_wait, sync_threads
from ..arch.tmem import (
    alloc_tmem,
    dealloc_tmem,
    get_max_tmem_alloc_cols,
    get_min_tmem_alloc_cols,
    relinquish_tmem_alloc_permit,
    retrieve_tmem_ptr,
    tcgen05_fence_after_thread_sync,
    tcgen05_fence_before_thread_sync,
)
from ..arch.warp import make_warp_uniform
from ..dtypes import DType, Int32
from ..layout import Layout
from ..seam import CuteError, current
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor
from ..utils.tmem_allocator import compute_tmem_cols_from_layout
from .shared import smem_bytes


def allocate_tmem(dtype: DType, lay: Any, two: bool) -> Tensor:
    """Allocate a tensor in tensor memory, of a pair of blocks if `two`, and see to it that it is freed."""
    if not isinstance(lay, Layout) or two not in (True, False):
        raise CuteError(f"allocate: layout {lay!r} of tensor memory must be a layout, and is2cta {two!r} True or False")
    columns = compute_tmem_cols_from_layout(lay, dtype)
    columns = max(1 << max(columns - 1, 0).bit_length(), get_min_tmem_alloc_cols("sm_100"))
    if columns > get_max_tmem_alloc_cols("sm_100"):
        raise CuteError(f"allocate: layout {lay} of {dtype} takes {columns} columns of tensor memory, which has 512")
    address, start = smem_bytes(4, 4, "the address of tensor memory")
    current().when(_first_warp(), lambda: alloc_tmem(columns, _word(address), two))
    _meet(False)
    current().at_exit(lambda: _free(start, columns, two))
    return Tensor(retrieve_tmem_ptr(dtype, 16, _word(address)), lay)


def _word(address: Any) -> Pointer:
    return Pointer(Int32, AddressSpace.smem, address, 0, 4)


def _first_warp() -> Any:
    return current().compare("==", make_warp_uniform(warp_idx()), 0)


def _meet(two: bool) -> None:
    """Wait for all threads of the block, or of the cluster, what they do to tensor memory included."""
    tcgen05_fence_before_thread_sync()
    if two:
        cluster_arrive()
        cluster_wait()
    else:
        sync_threads()
    tcgen05_fence_after_thread_sync()


def _free(start: int, columns: int, two: bool) -> None:
    """Free what was allocated, once all threads have done with it."""
    _meet(two)

    def free() -> None:
        word = _word(current().smem_base() + start)
        relinquish_tmem_alloc_permit(two)
        dealloc_tmem(retrieve_tmem_ptr(Int32, 16, word), columns, two)

    current().when(_first_warp(), free)
