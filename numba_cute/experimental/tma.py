# SPDX-License-Identifier: Apache-2.0
"""TMA between a kernel's tensor arguments and shared memory, without atoms, and the maps from a tile's elements in
shared memory to the tensor's coordinates. Names and parameters are those that NVIDIA documents of
`cute.experimental`."""

from __future__ import annotations

from typing import Any

from .. import layout
from ..arch.index import block_idx_in_cluster
from ..arch.mbarrier import mbarrier_expect_tx
from ..arch.warp import elect_one
from ..atoms.mma_atom import TiledMma
from ..atoms.op import OPERAND_MODES
from ..layout import Layout
from ..nvgpu.common import ReductionOp
from ..nvgpu.hopper.mma_tile import thread_tile
from ..nvgpu.hopper.partition import create_tma_multicast_mask
from ..nvgpu.hopper.tma_ops import CopyBulkTensorTileS2GOp, CopyReduceBulkTensorTileS2GOp
from ..nvgpu.hopper.tma_tiles import copy_tile, shared_tile, tile_bytes
from ..seam import CuteError, current, frozen, traced
from ..tensor.pointer import Pointer
from ..tensor.tensor import Tensor
from .operations import MULTICASTS, PAIRS, TMA_LOADS, OperationTypeEnum, load_op, one_of
from .tensors import GlobalTensor, tile_of

__all__ = [
    "StageBarrier", "get_cta_v_map_ab", "get_cta_v_map_c", "tma_load", "tma_load_multicast", "tma_reduce_store",
    "tma_store",
]  # fmt: skip


@frozen
class StageBarrier(Pointer):
    """The full barrier of a pipeline's stage, as `get_mbarrier` gives it: loads announce there how many bytes they
    bring, since the pipeline was not told.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, producer, _ = ext.create_pipeline(2, simt, simt, 1, 1)
    ...     full = ext.get_mbarrier(ext.get_pipeline_produce_stage(pipe, producer)[0])
    ...     print(isinstance(full, ext.StageBarrier), full.memspace)
    >>> cute.simulate(kernel)[1, 1]()
    True AddressSpace.smem
    """


def _announce(what: str, mbar: Any, nbytes: int, kind: OperationTypeEnum, asked: bool | None) -> None:
    """Add to what the barrier's phase waits for, if it is to (None: that of a stage): of a pair the first block does,
    for both."""
    if asked not in (True, False, None):
        raise CuteError(f"{what}: update_expect_tx {asked!r} must be True, False or None")
    if not (isinstance(mbar, StageBarrier) if asked is None else asked):
        return
    pair = kind in PAIRS
    count = 2 * nbytes if pair else nbytes
    leads = current().compare("==", block_idx_in_cluster() & 1, 0) if pair else True
    current().when(leads, lambda: current().when(elect_one(), lambda: mbarrier_expect_tx(mbar, count)))


@traced
def tma_load(
    src: Tensor, dst: Tensor, mbar: Pointer, *, cta_v_map: Layout | None = None,
    tma_operation_type: OperationTypeEnum = OperationTypeEnum.SM90_TMA_LOAD, internal_type: Any = None,
    cache_policy: Any = None, update_expect_tx: bool | None = None,
) -> None:  # fmt: skip
    """Load a tile of a kernel's tensor argument into shared memory by TMA. A whole converged warp, of which one lane
    issues; what lies outside of the argument reads as zero.

    src: the tile, a part of an argument of a kernel of `cute.experimental.kernel`. dst: the tile in shared memory,
    with its stage chosen: as many elements, swizzled as it was allocated. mbar: the mbarrier that the bytes complete
    on. From `get_mbarrier` it is told how many they are; any other must know.
    cta_v_map: where the elements of dst stand in the argument, by get_cta_v_map_ab or _c; None: as in src.
    tma_operation_type: SM90_TMA_LOAD, or SM100_TMA_LOAD_2SM: the barrier is that of the first block of a pair.
    internal_type: the type that TMA takes the elements for, as in make_tiled_tma_atom. cache_policy: an L2 policy word.
    update_expect_tx: whether mbar is told of the bytes; None: if get_mbarrier gave it.
    Raises CuteError for tensors and tiles that TMA cannot copy. PTX cp.async.bulk.tensor, sm_90.

    >>> from numba_cute import experimental as ext
    >>> x = cute.runtime.from_dlpack(np.arange(60, dtype=np.int32), assumed_align=16)
    >>> @ext.kernel
    ... def kernel(x):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, 32, alignment=128)
    ...     pipe = ext.TMAToAsyncPipeline.create(num_stages=1, consumer_arv_count=32)
    ...     stage, _ = pipe.producer_acquire_and_get_stage()
    ...     ext.tma_load(cute.local_tile(x, (32,), (1,)), s, ext.get_mbarrier(stage))
    ...     pipe.producer_commit()
    ...     pipe.consumer_wait()
    ...     if arch.lane_idx() == 0:
    ...         print(s[0], s[31])
    >>> cute.simulate(kernel)[1, 32](x)
    32 0
    """
    what = "tma_load"
    kind = one_of(tma_operation_type, tuple(k for k in TMA_LOADS if k not in MULTICASTS), what, "tma_operation_type")
    tile, smem = tile_of(src, what, "src", cta_v_map), shared_tile(dst, what, "dst")
    _announce(what, mbar, tile_bytes(smem), kind, update_expect_tx)
    copy_tile(what, load_op(kind), tile, smem, bar=mbar, policy=cache_policy, internal_type=internal_type)


@traced
def tma_load_multicast(
    src: Tensor, dst: Tensor, mbar: Pointer, *, vmnk_layout: Layout, multicast_mode: int,
    cta_v_map: Layout | None = None,
    tma_operation_type: OperationTypeEnum = OperationTypeEnum.SM90_TMA_LOAD_MULTICAST, internal_type: Any = None,
    cache_policy: Any = None, update_expect_tx: bool | None = None,
) -> None:  # fmt: skip
    """Load a tile that several blocks of a cluster need by TMA, each of them its part for all. A whole converged warp
    of each of these blocks, of which one lane issues.

    src, dst, mbar, cta_v_map, internal_type, cache_policy, update_expect_tx: as of `tma_load`; src is the whole tile,
    the same in each of these blocks, dst lies at the same place in each, and on each one's barrier all of its bytes
    complete.
    vmnk_layout: the ranks of the cluster's blocks by (V, M, N, K). multicast_mode: the mode along which the blocks lie
    that need the tile: 2 for A, 1 for B. tma_operation_type: SM90_TMA_LOAD_MULTICAST, or SM100_TMA_LOAD_2SM_MULTICAST:
    the barriers are those of the first blocks of pairs. Raises CuteError as `tma_load` does, and for a tile that has
    not so many parts. PTX cp.async.bulk.tensor.multicast, sm_90.

    >>> from numba_cute import experimental as ext
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.int32), assumed_align=16)
    >>> tma, simt = ext.OperationTypeEnum.SM90_TMA_LOAD_MULTICAST, ext.OperationTypeEnum.SIMT
    >>> pair = cute.make_layout((1, 1, 2, 1))
    >>> @ext.kernel
    ... def kernel(x):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, 64, alignment=128)
    ...     pipe, producer, consumer = ext.create_pipeline(1, tma, simt, 1, 32, cluster_layout_vmnk=pair)
    ...     ext.producer_acquire(pipe, producer)
    ...     stage, _ = ext.get_pipeline_produce_stage(pipe, producer)
    ...     ext.tma_load_multicast(x, s, ext.get_mbarrier(stage), vmnk_layout=pair, multicast_mode=2)
    ...     ext.producer_commit(pipe, producer)
    ...     ext.consumer_wait(pipe, consumer)
    ...     if arch.lane_idx() == 0:
    ...         print(s[0], s[63])
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    >>> cute.simulate(kernel, cluster=2)[2, 32](x)
    0 63
    0 63
    """
    what = "tma_load_multicast"
    kind = one_of(tma_operation_type, MULTICASTS, what, "tma_operation_type")
    if not isinstance(vmnk_layout, Layout) or layout.rank(vmnk_layout) != 4:
        raise CuteError(f"{what}: vmnk_layout {vmnk_layout!r} must be a layout of four modes, (V, M, N, K)")
    if multicast_mode not in (1, 2):
        raise CuteError(f"{what}: multicast_mode {multicast_mode!r} must be 2 for A (along N) or 1 for B (along M)")
    tile, smem = tile_of(src, what, "src", cta_v_map), shared_tile(dst, what, "dst")
    _announce(what, mbar, tile_bytes(smem), kind, update_expect_tx)
    parts = int(layout.size(vmnk_layout, (multicast_mode,)))
    place = vmnk_layout.get_flat_coord(block_idx_in_cluster())
    copy_tile(
        what, load_op(kind), tile, smem, bar=mbar, policy=cache_policy, part=place[multicast_mode], parts=parts,
        mask=create_tma_multicast_mask(vmnk_layout, place, multicast_mode), internal_type=internal_type,
    )  # fmt: skip


@traced
def tma_store(src: Tensor, dst: Tensor, *, cta_v_map: Layout | None = None, cache_policy: Any = None) -> None:
    """Store a tile of shared memory to a kernel's tensor argument by TMA. A whole converged warp, of which one lane
    issues, after the writers' proxy fences and a barrier; what lies outside of the argument is left out.

    src: the tile in shared memory. dst: the tile, a part of an argument of a kernel of `cute.experimental.kernel`.
    cta_v_map, cache_policy: as of `tma_load`. TMAStorePipeline, or arch.cp_async_bulk_commit_group and _wait_group,
    track it. Raises CuteError as `tma_load` does, and for a read-only tensor. PTX cp.async.bulk.tensor, sm_90.

    >>> from numba_cute import experimental as ext
    >>> out = np.zeros(40, np.int32)
    >>> @ext.kernel
    ... def kernel(out):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, 32, alignment=128)
    ...     s[arch.lane_idx()] = arch.lane_idx()
    ...     arch.fence_view_async_shared()
    ...     arch.sync_warp()
    ...     ext.tma_store(s, cute.local_tile(out, (32,), (1,)))
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    >>> cute.simulate(kernel)[1, 32](cute.runtime.from_dlpack(out, assumed_align=16))
    >>> out[30:]
    array([0, 0, 0, 1, 2, 3, 4, 5, 6, 7], dtype=int32)
    """
    tile, smem = tile_of(dst, "tma_store", "dst", cta_v_map), shared_tile(src, "tma_store", "src")
    copy_tile("tma_store", CopyBulkTensorTileS2GOp(), tile, smem, policy=cache_policy)


@traced
def tma_reduce_store(
    src: Tensor, dst: Tensor, *, reduction_kind: ReductionOp = ReductionOp.ADD, cta_v_map: Layout | None = None,
    cache_policy: Any = None,
) -> None:  # fmt: skip
    """Combine a tile of shared memory with that of a kernel's tensor argument by TMA, each element atomically. src,
    dst, cta_v_map, cache_policy: as of `tma_store`, whose threads and errors it has too. reduction_kind: ADD, MIN, MAX,
    …, as CopyReduceBulkTensorTileS2GOp takes them. PTX cp.reduce.async.bulk.tensor, sm_90.

    >>> from numba_cute import experimental as ext
    >>> out = np.full(32, 100, np.int32)
    >>> @ext.kernel
    ... def kernel(out):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, 32, alignment=128)
    ...     s[arch.lane_idx()] = arch.lane_idx()
    ...     arch.fence_view_async_shared()
    ...     arch.sync_warp()
    ...     ext.tma_reduce_store(s, out)
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    >>> cute.simulate(kernel)[2, 32](cute.runtime.from_dlpack(out, assumed_align=16))
    >>> out[:4]
    array([100, 102, 104, 106], dtype=int32)
    """
    what = "tma_reduce_store"
    tile, smem = tile_of(dst, what, "dst", cta_v_map), shared_tile(src, what, "src")
    copy_tile(what, CopyReduceBulkTensorTileS2GOp(reduction_kind=reduction_kind), tile, smem, policy=cache_policy)


def _coordinates(t: Any, what: str) -> Layout:
    """A layout of the coordinates of a tensor's elements in the argument."""
    if isinstance(t, GlobalTensor):
        return t.coordinates.layout  # type: ignore[no-any-return]
    if not isinstance(t, Tensor):
        raise CuteError(f"{what}: gmem_tensor {t!r} is not a tensor")
    return layout.make_identity_layout(t.shape)


@traced
def get_cta_v_map_ab(gmem_tensor: Tensor, mma_tiler_mnk: Any, tiled_mma: TiledMma, operand: str) -> Layout:
    """Give where the elements of an operand's tile stand that a block holds: from (MMA, MMA_M or MMA_N, MMA_K), as
    shared memory has them, to coordinates of the tensor.

    gmem_tensor: the argument A (M, K, …) or B (N, K, …), or their scale factors. mma_tiler_mnk: the tile (M, N, K) of
    all blocks that multiply together, in elements. tiled_mma: how they do. operand: "A", "B", "SFA" or "SFB". On the
    host or in a kernel. Of a pair each block takes a half of B's factors so; where each needs all, give the TiledMma
    of one block, as examples/experimental_blockscaled_gemm.py does. Raises CuteError for others. No instruction.

    >>> from numba_cute import experimental as ext
    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.Float16, K, K, cute.Float32, one, (128, 64))
    >>> a = cute.runtime.from_dlpack(np.zeros((256, 128), np.float16), assumed_align=16)
    >>> ext.get_cta_v_map_ab(a, (128, 64, 64), tiled, "A")
    ((128,16),1,4):((1@0,1@1),0,16@1)
    """
    what = "get_cta_v_map_ab"
    if operand not in ("A", "B", "SFA", "SFB"):
        raise CuteError(f'{what}: operand {operand!r} must be "A", "B", "SFA" or "SFB"')
    if not isinstance(mma_tiler_mnk, tuple) or len(mma_tiler_mnk) != 3:
        raise CuteError(f"{what}: mma_tiler_mnk {mma_tiler_mnk!r} must be (M, N, K)")
    if not isinstance(tiled_mma, TiledMma):
        raise CuteError(f"{what}: tiled_mma {tiled_mma!r} is not a TiledMma")
    x, y = OPERAND_MODES[operand[-1]]
    tile = layout.composition(_coordinates(gmem_tensor, what), (mma_tiler_mnk[x], mma_tiler_mnk[y]))
    return thread_tile(tiled_mma, operand[-1], tile)


@traced
def get_cta_v_map_c(gmem_tensor: Tensor, epi_tile: Any) -> Layout:
    """Give where the elements of a piece of C stand: from a piece's coordinates to those of the tensor. gmem_tensor:
    the argument C (M, N, …). epi_tile: the piece, a number or layout for each of M and N. On the host or in a kernel.
    Raises CuteError for what is not a tensor, and as `composition` does. No instruction.

    >>> from numba_cute import experimental as ext
    >>> c = cute.runtime.from_dlpack(np.zeros((128, 64), np.float16), assumed_align=16)
    >>> ext.get_cta_v_map_c(c, (64, 32))
    (64,32):(1@0,1@1)
    """
    tile: Layout = layout.composition(_coordinates(gmem_tensor, "get_cta_v_map_c"), epi_tile)
    return tile
