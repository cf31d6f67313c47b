# SPDX-License-Identifier: Apache-2.0
"""The main loop of a product on Blackwell, by one warp.

Names and parameters are those that NVIDIA's examples use of `cute.experimental`."""

from __future__ import annotations

from typing import Any

from .. import layout
from ..atoms.mma_atom import TiledMma
from ..nvgpu.tcgen05 import Field
from ..seam import CuteError, Int, current, traced
from ..seam.guards.messages import how_static
from ..tensor.tensor import Tensor, slice_tensor
from .math import dot
from .pipelines import GenericPipelineBase

__all__ = ["mainloop_mma"]


@traced
def mainloop_mma(
    tiled_mma: TiledMma, a: Tensor, b: Tensor, accumulators: Tensor, first_k_tile: int, k_tiles: Int,
    mma_inst_tile_k: int, a_pipe: GenericPipelineBase, b_pipe: GenericPipelineBase,
) -> tuple[Any, Any]:  # fmt: skip
    """Multiply all tiles of K as they come: accumulators = a @ b.T. Gives (a_pipe, b_pipe), which have gone on by
    `k_tiles` stages. One whole converged warp, of a pair that of the leading block.

    tiled_mma: a tiled tcgen05 operation. a, b: shared memory as it was allocated, (V, M or N, K, stages). accumulators:
    of one stage, (V, M, N), in tensor memory; the first multiply overwrites them. first_k_tile: 0. k_tiles: how many
    tiles. mma_inst_tile_k: multiplies of a tile (static). a_pipe, b_pipe: the pipelines that fill a and b, or one for
    both: each stage is waited for, multiplied and released. It commits nothing else. Raises CuteError for others, and
    as `dot` does. PTX tcgen05.mma, sm_100f.

    >>> from numba_cute import experimental as ext
    >>> from numba_cute.nvgpu import tcgen05
    >>> k, half, single, tiler = nvgpu.OperandMajorMode.K, cute.Float16, cute.Float32, (128, 32, 16)
    >>> umma = ext.OperationTypeEnum.SM100_MMA_1SM_SS
    >>> mma = utils.sm100.make_trivial_tiled_mma(half, k, k, single, tcgen05.CtaGroup.ONE, tiler[:2])
    >>> a_of, b_of = (f(mma, tiler, half, 2) for f in (utils.sm100.make_smem_layout_a, utils.sm100.make_smem_layout_b))
    >>> acc_of = ext.make_tmem_layout_acc(mma, tiler, 1)
    >>> @ext.kernel
    ... def kernel(a, b, c):
    ...     sA = ext.allocate(half, cute.AddressSpace.smem, a_of, alignment=1024)
    ...     sB = ext.allocate(half, cute.AddressSpace.smem, b_of, alignment=1024)
    ...     acc = ext.allocate(single, cute.AddressSpace.tmem, acc_of)
    ...     loads = ext.TMAToUMMAPipeline.create(num_stages=2, mma_operation_type=umma)
    ...     results = ext.UMMAtoAsyncPipeline.create(num_stages=1, mma_operation_type=umma, consumer_arv_count=128)
    ...     stores = ext.TMAStorePipeline(stages=2, arv_count=128, barrier_id=1, tma_warp_id=0)
    ...     warp = arch.make_warp_uniform(arch.warp_idx())
    ...     if warp == 5:
    ...         a_map = ext.get_cta_v_map_ab(a, tiler, mma, "A")
    ...         b_map = ext.get_cta_v_map_ab(b, tiler, mma, "B")
    ...         for k in range(2):
    ...             stage, at = loads.producer_acquire_and_get_stage()
    ...             full, tile_a, tile_b = ext.get_mbarrier(stage), sA[None, None, None, at], sB[None, None, None, at]
    ...             ext.tma_load(cute.local_tile(a, (128, 16), (0, k)), tile_a, full, cta_v_map=a_map)
    ...             ext.tma_load(cute.local_tile(b, (32, 16), (0, k)), tile_b, full, cta_v_map=b_map)
    ...             loads.producer_commit_and_advance()
    ...         loads.producer_tail()
    ...     elif warp == 4:
    ...         results.producer_acquire()
    ...         ext.mainloop_mma(mma, sA, sB, acc[None, None, None, 0], 0, 2, 1, loads, loads)
    ...         results.producer_commit_and_advance()
    ...         results.producer_tail()
    ...     else:
    ...         results.consumer_wait()
    ...         ext.epilogue_tma_store(tiler, False, acc[(None, None), 0, 0, 0], c, (0, 0), stores, 0)
    ...         results.consumer_release_and_advance()
    >>> a, b, c = np.ones((128, 32), np.float16), np.ones((32, 32), np.float16), np.zeros((128, 32), np.float32)
    >>> args = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    >>> cute.simulate(kernel, arch="sm_100a")[1, 192](*args)
    >>> c.min(), c.max()
    (np.float32(32.0), np.float32(32.0))
    """
    what = "mainloop_mma"
    if not isinstance(tiled_mma, TiledMma):
        raise CuteError(f"{what}: tiled_mma {tiled_mma!r} is not a TiledMma")
    for name, t, rank in (("a", a, 4), ("b", b, 4), ("accumulators", accumulators, 3)):
        if not isinstance(t, Tensor) or layout.rank(t.layout) != rank:
            raise CuteError(f"{what}: {name} {t!r} must be a tensor of {rank} modes")
    for name, pipe in (("a_pipe", a_pipe), ("b_pipe", b_pipe)):
        if not isinstance(pipe, GenericPipelineBase):
            raise CuteError(f"{what}: {name} {pipe!r} is not a pipeline of cute.experimental")
    if type(first_k_tile) is not int or first_k_tile != 0:
        raise CuteError(f"{what}: first_k_tile {first_k_tile!r} must be 0")
    if type(mma_inst_tile_k) is not int or mma_inst_tile_k < 1:
        raise CuteError(
            f"{what}: mma_inst_tile_k {mma_inst_tile_k!r} must be a static number of at least 1"
            f"{how_static(mma_inst_tile_k)}"
        )
    shared = _are_one(a_pipe, b_pipe)

    def tile(k: Any) -> None:
        _, at = a_pipe.consumer_wait_and_get_stage()
        _unless(shared, b_pipe.consumer_wait)
        of_b = current().select(shared, at, b_pipe.consumer_state.index)
        for block in range(mma_inst_tile_k):
            goes_on = True if block else current().compare("!=", k, 0)
            atom = tiled_mma.set(Field.ACCUMULATE, goes_on)
            dot(atom, _block(a, block, at), _block(b, block, of_b), accumulators)
        a_pipe.consumer_release_and_advance()
        _unless(shared, b_pipe.consumer_release_and_advance)

    current().loop(0, k_tiles, tile)
    return a_pipe, b_pipe


def _block(t: Tensor, block: int, stage: Any) -> Tensor:
    part = slice_tensor(t, (None, None, block, stage))
    return part._relaid(lambda lay: layout.append_ones(lay, 3))


def _are_one(a: Any, b: Any) -> Any:
    """Compare two pipelines by the addresses of their barriers; gives whether they are the same."""
    if a is b:
        return True
    x, y = (p.raw_pipeline.sync_object_full.get_barrier(0).address for p in (a, b))
    return current().compare("==", x, y)


def _unless(shared: Any, do: Any) -> None:
    if shared is not True:
        current().when(current().compare("==", shared, False), do)
