# SPDX-License-Identifier: Apache-2.0
"""Tensor memory: allocated where a kernel asks for it, freed at the kernel's end; the layouts that go there and come
from there. Names and parameters are those that NVIDIA documents of `cute.experimental`."""

from __future__ import annotations

from typing import Any

from .. import layout
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
from ..atoms.copy_atom import TiledCopy
from ..atoms.mma_atom import TiledMma
from ..dtypes import DType, Int32
from ..layout import Layout
from ..nvgpu.common import OperandSource
from ..seam import CuteError, current, traced
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor
from ..utils.tmem_allocator import compute_tmem_cols_from_layout
from .shared import smem_bytes

__all__ = ["make_t2r_rmem_layout", "make_tmem_layout_a", "make_tmem_layout_acc"]


def allocate_tmem(dtype: DType, lay: Any, two: bool) -> Tensor:
    """Allocate a tensor in tensor memory, of a pair of blocks if `two`, and see to it that it is freed."""
    if not isinstance(lay, Layout) or two not in (True, False):
        raise CuteError(f"allocate: layout {lay!r} of tensor memory must be a layout, and is2cta {two!r} True or False")
    columns = compute_tmem_cols_from_layout(lay, dtype)
    columns = max(1 << max(columns - 1, 0).bit_length(), get_min_tmem_alloc_cols("sm_100"))
    if columns > get_max_tmem_alloc_cols("sm_100"):
        raise CuteError(f"allocate: layout {lay} of {dtype} takes {columns} columns of tensor memory, which has 512")
    address, start = smem_bytes(4, 4, "the address of tensor memory")
    if two:
        _meet(True)  # the other block must have started
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


def _tiler(mnk_tiler: Any, tiled_mma: Any, what: str) -> Any:
    if not isinstance(tiled_mma, TiledMma):
        raise CuteError(f"{what}: tiled_mma {tiled_mma!r} is not a TiledMma")
    if not isinstance(mnk_tiler, tuple) or len(mnk_tiler) != 3:
        raise CuteError(f"{what}: mnk_tiler {mnk_tiler!r} must be (M, N, K)")
    return mnk_tiler


@traced
def make_tmem_layout_acc(tiled_mma: TiledMma, mnk_tiler: Any, num_stages: int) -> Layout:
    """Make the layout of accumulators in tensor memory, ((M, N), rest M, rest N, stages).

    tiled_mma: a tiled tcgen05 operation. mnk_tiler: the tile (M, N, K) of all blocks that multiply together, in
    elements. num_stages: how many accumulators, 1 or more (static). On the host or in a kernel; its strides are those
    of addresses (65536 words of 32 bits from lane to lane, 1 from column to column) in elements. Raises CuteError for
    others. No instruction.

    >>> from numba_cute import experimental as ext
    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.Float16, K, K, cute.Float32, one, (128, 64))
    >>> ext.make_tmem_layout_acc(tiled, (128, 64, 64), 2)
    ((128,64),1,1,2):((65536,1),0,0,64)
    """
    m, n, _ = _tiler(mnk_tiler, tiled_mma, "make_tmem_layout_acc")
    shape = tiled_mma.partition_shape_C((m, n))
    made: Layout = tiled_mma.make_fragment_C((*shape, num_stages)).layout
    return made


@traced
def make_tmem_layout_a(tiled_mma: TiledMma, mnk_tiler: Any, num_stages: int) -> Layout:
    """Make the layout of operand A in tensor memory, ((M, K), rest M, rest K, stages).

    tiled_mma: a tiled tcgen05 operation whose A is there (OperandSource.TMEM). mnk_tiler, num_stages: as of
    `make_tmem_layout_acc`. Raises CuteError for others. No instruction.

    >>> from numba_cute import experimental as ext
    >>> K, TMEM = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.OperandSource.TMEM
    >>> one = nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.Float16, K, K, cute.Float32, one, (128, 64), TMEM)
    >>> ext.make_tmem_layout_a(tiled, (128, 64, 64), 1)
    ((128,16),1,4,1):((131072,1),0,16,0)
    """
    what = "make_tmem_layout_a"
    m, _, k = _tiler(mnk_tiler, tiled_mma, what)
    if getattr(tiled_mma.op, "a_src", None) is not OperandSource.TMEM:
        raise CuteError(f"{what}: tiled_mma {tiled_mma!r} takes A from elsewhere; give a_src=OperandSource.TMEM")
    shape = tiled_mma.partition_shape_A((m, k))
    made: Layout = tiled_mma.make_fragment_A((*shape, num_stages)).layout
    return made


@traced
def make_t2r_rmem_layout(tiled_copy_t2r: TiledCopy, gmem_tensor_epi: Tensor, tidx: Any) -> Layout:
    """Make the layout of a thread's registers for one piece of the results, as the load from tensor memory leaves them
    there.

    tiled_copy_t2r: the load, tiled by tcgen05.make_tmem_copy. gmem_tensor_epi: the results by pieces, (piece M, piece
    N, pieces M, pieces N, …), as flat_divide gives them. tidx: the thread, counted from 0. It is (values, copies along
    M, copies along N), compact. Raises CuteError for others. No instruction.

    >>> from numba_cute import experimental as ext
    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.Ld32x32bOp(nvgpu.tcgen05.Repetition.x32), cute.Float32)
    >>> place = cute.make_ptr(cute.Float32, 0, cute.AddressSpace.tmem, assumed_align=16)
    >>> acc = cute.make_tensor(place, cute.make_layout((128, 32), stride=(65536, 1)))
    >>> c = cute.flat_divide(cute.make_identity_tensor((256, 64)), (128, 32))
    >>> ext.make_t2r_rmem_layout(nvgpu.tcgen05.make_tmem_copy(atom, acc), c, 0)
    ((32,1),1,1):((1,0),0,0)
    """
    what = "make_t2r_rmem_layout"
    if not isinstance(tiled_copy_t2r, TiledCopy):
        raise CuteError(f"{what}: tiled_copy_t2r {tiled_copy_t2r!r} is not a tiled copy")
    if not isinstance(gmem_tensor_epi, Tensor) or layout.rank(gmem_tensor_epi.layout) < 2:
        raise CuteError(f"{what}: gmem_tensor_epi {gmem_tensor_epi!r} must be a tensor of pieces, by flat_divide")
    parts = tiled_copy_t2r.get_slice(tidx).partition_D(gmem_tensor_epi)
    made: Layout = layout.make_layout(parts.shape[:3])
    return made
