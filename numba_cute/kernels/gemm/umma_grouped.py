# SPDX-License-Identifier: Apache-2.0
"""A grouped GEMM for Blackwell: that of `grouped.py`, with the tiles, the warps and the tensor memory of `umma.py`.

The seventh warp finds the group of each tile, and tells the others. CTAs of a pair find the same ones, and have rows of
their own: of 256 rows of a group the second has the last 128, which may all be another group's.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import CopyUniversalOp, cpasync, tcgen05, warp
from numba_cute.seam import CuteError

from .. import entry
from . import umma_plan
from .groups import GroupedTiles, hear, ragged_rows, tell
from .operands import Mapped, most_clusters, tensor_of, whole
from .output import partition
from .plan import smem_layout, sums_of
from .umma import (
    ACC_STAGES,
    EPILOGUE_WARPS,
    LOAD_WARP,
    MMA_WARP,
    PIECES_WARP as PLACES_WARP,
    ROW,
    THREADS,
    TILE_M,
    Way,
    allocated,
    plainly,
)  # fmt: skip

PLACES = 2
TALL = 512  # rows of a group from which on pairs are thought better: fewer leave much of 256 empty


@cuda.jit(launch_bounds=(THREADS, 1))
def grouped(
    dtype, acc_dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, columns, tiled_mma, piece_mma, load, store,
    a_matrices, b_matrices, c_layout, cluster,
):  # fmt: skip
    tile_n, ctas = tiled_mma.shape_mnk[1], cute.size(tiled_mma.thr_id)
    stages, slots, store_n = (cute.size(a_matrices.tiles, mode=[2]), cute.size(c_layout, mode=[2]),
                              cute.size(c_layout, mode=[1]))  # fmt: skip
    block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    part = arch.make_warp_uniform(arch.block_idx_in_cluster())
    if warp_idx == LOAD_WARP:
        cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
        cpasync.prefetch_descriptor(tma_c)
    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written A, B and the ends
    tiles = GroupedTiles(cute.make_tensor(ends), ctas * TILE_M, columns, block // ctas, blocks // ctas)
    if warp_idx == PLACES_WARP:
        tiles.spread()  # the ends come while the barriers are made

    smem = utils.SmemAllocator()
    sA, sA_parts = allocated(smem, dtype, a_matrices, "sA")
    sB, sB_parts = allocated(smem, dtype, b_matrices, "sB")
    sC = smem.allocate_tensor(c_dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    barriers = smem.allocate_array(cute.Int64, 2 * (stages + ACC_STAGES + PLACES), name="barriers")
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    mainloop = pipeline.PipelineTmaUmma.create(
        num_stages=stages,
        producer_group=one,
        consumer_group=one,
        tx_count=(ctas * TILE_M + tile_n) * ROW,
        barrier_storage=barriers,
        cta_layout_vmnk=cluster,
        defer_sync=True,
        name="mainloop",
    )
    results = pipeline.PipelineUmmaAsync.create(
        num_stages=ACC_STAGES,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * EPILOGUE_WARPS * ctas),
        barrier_storage=barriers + 2 * stages,
        cta_layout_vmnk=cluster,
        defer_sync=True,
        name="results",
    )
    # Of each tile a warp finds the place, and tells the others: the group, its end, the tile's first row and column.
    places = smem.allocate_tensor(cute.Int32, cute.make_layout((4, PLACES)), 16, name="places")
    tells = pipeline.PipelineAsync.create(
        num_stages=PLACES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp, EPILOGUE_WARPS + 2),
        barrier_storage=barriers + 2 * (stages + ACC_STAGES),
        defer_sync=True,
        name="places",
    )
    tmem = utils.TmemAllocator(
        smem.allocate_array(cute.Int32, 1),
        barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * (EPILOGUE_WARPS + 1)),
        is_two_cta=ctas == 2,
        two_cta_tmem_dealloc_mbar_ptr=smem.allocate_array(cute.Int64, 1),
    )
    accumulators = tiled_mma.make_fragment_C((*tiled_mma.partition_shape_C((ctas * TILE_M, tile_n)), ACC_STAGES))
    pipeline.pipeline_init_arrive(cluster)
    pipeline.pipeline_init_wait(cluster)
    teller, told = tells.make_participants()
    tile_k = 8 * ROW // dtype.width

    if warp_idx == PLACES_WARP:
        while tiles.find():
            row = tiles.begin + (tiles.m * ctas + part) * TILE_M
            tell(teller, places, tiles.group, tiles.end, row, tiles.n)
            tiles.advance()
        tell(teller, places, -1, 0, 0, 0)
        teller.tail()

    if warp_idx == LOAD_WARP:
        tBsB, tBgB = partition(tma_b, sB, cute.local_tile(mB, (tile_n // ctas, tile_k), (None, None, None)))
        producer = mainloop.make_producer()
        while True:
            group, _, row, n = hear(told, places)
            if group < 0:
                break
            gA = cute.local_tile(cute.domain_offset((row, 0), mA), (TILE_M, tile_k), (0, None))
            tAsA, tAgA = partition(tma_a, sA, gA)
            for k in range(tBgB.shape[2]):
                stage = producer.acquire_and_advance()
                cute.copy(tma_a, tAgA[None, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                cute.copy(
                    tma_b, tBgB[None, n * ctas + part, k, group], tBsB[None, stage.index], tma_bar_ptr=stage.barrier
                )
        producer.tail()

    if warp_idx < EPILOGUE_WARPS:
        tmem.allocate(utils.get_num_tmem_alloc_cols(accumulators))
        tmem.wait_for_alloc()
        ptr = tmem.retrieve_ptr(acc_dtype)
        ready, together = results.make_consumer(), pipeline.NamedBarrier(2, 32 * EPILOGUE_WARPS)
        way = Way.create(
            load, store, piece_mma, cute.make_tensor(ptr, accumulators.layout), sC, arch.thread_idx()[0]
        )  # fmt: skip
        stores = pipeline.PipelineTmaStore.create(
            num_stages=slots,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * EPILOGUE_WARPS),
        )
        tile_pieces = tile_n // store_n
        while True:
            group, end, row, n = hear(told, places)
            if group < 0:
                break
            left = cute.max(cute.Int32(0), cute.min(cute.Int32(TILE_M), cute.Int32(end - row)))
            there = cute.domain_offset((TILE_M - left, 0, row + left), mC)
            tCsC, tCgC = partition(tma_c, sC, cute.local_tile(there, (TILE_M, store_n), (0, None, 0)))
            tile = ready.wait_and_advance()
            for piece in cute.range_constexpr(tile_pieces):
                way.take(piece, tile.index)
                if piece == tile_pieces - 1:
                    tile.release()
                for half in cute.range_constexpr(2):
                    way.round(half, way.of_half(half).load())
                if warp_idx == 0:
                    stores.producer_acquire()  # the slot has been read by the store before the last
                together.arrive_and_wait()
                way.put(piece % slots)
                together.arrive_and_wait()
                if warp_idx == 0:
                    if left > 0:
                        cute.copy(tma_c, tCsC[None, piece % slots], tCgC[None, tile_pieces * n + piece])
                    stores.producer_commit()
        if warp_idx == 0:
            stores.producer_tail()
        tmem.relinquish_alloc_permit()
        together.arrive_and_wait()  # all have taken their sums
        tmem.free(ptr)

    if warp_idx == MMA_WARP:
        tmem.wait_for_alloc()
        acc = cute.make_tensor(tmem.retrieve_ptr(acc_dtype), accumulators.layout)
        rA, rB = tiled_mma.make_fragment_A(sA_parts), tiled_mma.make_fragment_B(sB_parts)
        consumer, full = mainloop.make_consumer(), results.make_producer()
        k_tiles = cute.ceil_div(mB.shape[1], tile_k)
        while True:
            group, _, _, _ = hear(told, places)
            if group < 0:
                break
            if part == 0:  # the first of a pair multiplies for both
                tile = full.acquire_and_advance()
                plainly(consumer, tiled_mma, acc[None, None, None, tile.index], rA, rB, k_tiles)
                tile.commit()


def choose(rows: int, groups: int, n: int) -> umma_plan.Umma:
    """Choose the cut for so many rows in so many groups, and N columns."""
    tile_n = 128 if n <= 128 else 256
    return umma_plan.Umma(tile_n, 2 if rows >= TALL * groups else 1)


def plan(a: Any, b: Any, ends: Any, c: Any, cut: umma_plan.Umma | None = None) -> Any:
    """Plan the launch for tensors as `grouped_gemm` takes them. cut: an Umma, or None for the one that is thought
    best."""
    (rows, _), (groups, n, _) = a.shape, b.shape
    cut = cut or choose(rows, groups, n)
    umma_plan.check(cut, entry.element_type(a), cute.target("sm_100a"))
    if cut.shape != (cut.ctas, 1):
        raise CuteError(f"grouped_gemm: {cut}: a cluster is the CTAs that multiply together here: leave cluster out")
    columns = math.ceil(n / cut.tile_n)
    most = (rows // (TILE_M * cut.ctas) + min(groups, rows)) * columns
    clusters = max(1, min(most_clusters(a, cut.ctas), most))
    arguments = functools.partial(arguments_of, cut, columns)
    return Mapped(
        grouped, (clusters * cut.ctas, 1, 1), THREADS, cluster=(cut.ctas, 1, 1),
        static=arguments(*whole((a, b, ends, c), None, False)), arguments=arguments,
    )  # fmt: skip


def arguments_of(cut: umma_plan.Umma, columns: int, a: Any, b: Any, ends: Any, c: Any) -> tuple[Any, ...]:
    """Give the kernel's arguments. cut: an Umma. columns: tiles along N. The others: as `grouped_gemm` takes them."""
    dtype, c_dtype, ctas = entry.element_type(a), entry.element_type(c), cut.ctas
    b_mode = 2 if entry.strides(b)[2] == 1 else 1
    tB = tensor_of(b, b_mode)
    tB = cute.make_tensor(tB.iterator, cute.select(tB.layout, mode=[1, 2, 0]))  # N, K, groups
    tiled_mma, tile_k = umma_plan.mma_of(dtype, cut, 1, b_mode - 1), 8 * ROW // dtype.width
    pieces = umma_plan.pieces_of(cut, c_dtype.width)
    a_tile, b_tile, piece = (TILE_M, tile_k), (cut.tile_n // ctas, tile_k), (TILE_M, pieces.columns)
    a_matrices = umma_plan.matrices(dtype, 1, a_tile, pieces.stages, tiled_mma, "A", None)
    b_matrices = umma_plan.matrices(dtype, b_mode - 1, b_tile, pieces.stages, tiled_mma, "B", None)
    load = tcgen05.Ld16x256bOp(tcgen05.Repetition(pieces.columns // 8))
    store = warp.StMatrix8x8x16bOp(False, 4) if c_dtype.width == 16 else CopyUniversalOp()
    tma_a, mA = umma_plan.atom_of(tensor_of(a, 1), a_matrices, a_tile, ctas, 1)
    tma_b, mB = umma_plan.atom_of(tB, b_matrices, b_tile, ctas, 1)
    tma_c, mC = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), ragged_rows(tensor_of(c, 1), TILE_M), smem_layout(c_dtype, 1, *piece), piece
    )  # fmt: skip
    return (
        dtype, sums_of(dtype), c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, cute.Int32(columns), tiled_mma,
        umma_plan.piece_mma(pieces.columns), cute.make_copy_atom(load, sums_of(dtype)),
        cute.make_copy_atom(store, c_dtype), a_matrices, b_matrices, smem_layout(c_dtype, 1, *piece, pieces.slots),
        cute.tiled_divide(cute.make_layout((ctas, 1, 1)), (tiled_mma.thr_id.shape,)),
    )  # fmt: skip
