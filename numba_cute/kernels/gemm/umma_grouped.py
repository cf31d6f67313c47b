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

from .. import entry
from . import umma_plan
from .groups import GroupedTiles, hear, ragged_rows, tell
from .operands import Mapped, load_atom, most_clusters, some_clusters, tensor_of, whole
from .output import partition
from .plan import smem_layout, sums_of
from .umma_parts import (
    EPILOGUE_WARPS,
    LOAD_WARP,
    MMA_WARP,
    OWN_WARP,
    ROW,
    THREADS,
    TILE_M,
    Leaving,
    Multiplier,
    Rings,
    Tiles,
    prefetch,
    tensor_memory,
)  # fmt: skip

PLACES = 2
TALL = 512  # rows of a group from which on pairs are thought better: fewer leave much of 256 empty


@cuda.jit(launch_bounds=(THREADS, 1))
def grouped(
    dtype, acc_dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, columns, tiled_mma, piece_mma, load, store,
    a_matrices, b_matrices, c_layout, cluster,
):  # fmt: skip
    tile_n, ctas = tiled_mma.shape_mnk[1], cute.size(tiled_mma.thr_id)
    store_n = cute.size(c_layout, mode=[1])
    block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    part = arch.make_warp_uniform(arch.block_idx_in_cluster())
    prefetch(warp_idx, (tma_a, tma_b, tma_c))
    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written A, B and the ends
    tiles = GroupedTiles(cute.make_tensor(ends), ctas * TILE_M, columns, block // ctas, blocks // ctas)
    if warp_idx == OWN_WARP:
        tiles.spread()  # the ends come while the barriers are made

    smem = utils.SmemAllocator()
    shared = Tiles.allocate(smem, dtype, a_matrices, b_matrices, c_dtype, c_layout)
    rings = Rings.create(smem, tiled_mma, cluster, cute.size(a_matrices.tiles, mode=[2]), 0, 2 * PLACES)
    # Of each tile a warp finds the place, and tells the others: the group, its end, the tile's first row and column.
    places = smem.allocate_tensor(cute.Int32, cute.make_layout((4, PLACES)), 16, name="places")
    tells = pipeline.PipelineAsync.create(
        num_stages=PLACES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp, EPILOGUE_WARPS + 2),
        barrier_storage=rings.more,
        defer_sync=True,
        name="places",
    )
    tmem = tensor_memory(smem, tiled_mma)
    pipeline.pipeline_init_arrive(cluster)
    pipeline.pipeline_init_wait(cluster)
    teller, told = tells.make_participants()
    tile_k = 8 * ROW // dtype.width

    if warp_idx == OWN_WARP:
        while tiles.find():
            row = tiles.begin + (tiles.m * ctas + part) * TILE_M
            tell(teller, places, tiles.group, tiles.end, row, tiles.n)
            tiles.advance()
        tell(teller, places, -1, 0, 0, 0)
        teller.tail()

    if warp_idx == LOAD_WARP:
        tBsB, tBgB = partition(tma_b, shared.b, cute.local_tile(mB, (tile_n // ctas, tile_k), (None, None, None)))
        producer = rings.mainloop.make_producer()
        while True:
            group, _, row, n = hear(told, places)
            if group < 0:
                break
            gA = cute.local_tile(cute.domain_offset((row, 0), mA), (TILE_M, tile_k), (0, None))
            tAsA, tAgA = partition(tma_a, shared.a, gA)
            for k in range(tBgB.shape[2]):
                stage = producer.acquire_and_advance()
                cute.copy(tma_a, tAgA[None, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                cute.copy(
                    tma_b, tBgB[None, n * ctas + part, k, group], tBsB[None, stage.index], tma_bar_ptr=stage.barrier
                )
        producer.tail()

    if warp_idx < EPILOGUE_WARPS:
        leaving = Leaving.create(rings, tmem, acc_dtype, load, store, piece_mma, shared.c, arch.thread_idx()[0])
        while True:
            group, end, row, n = hear(told, places)
            if group < 0:
                break
            left = cute.max(cute.Int32(0), cute.min(cute.Int32(TILE_M), cute.Int32(end - row)))
            there = cute.domain_offset((TILE_M - left, 0, row + left), mC)
            gC = cute.local_tile(there, (TILE_M, store_n), (0, None, 0))
            tCsC, tCgC = partition(tma_c, shared.c, gC)
            leaving.put(warp_idx, tma_c, tCsC, tCgC, n, tile_n // store_n, left > 0)
        leaving.tail(warp_idx)

    if warp_idx == MMA_WARP:
        multiplier = Multiplier.create(rings, tmem, tiled_mma, acc_dtype, shared)
        k_tiles = cute.ceil_div(mB.shape[1], tile_k)
        while True:
            group, _, _, _ = hear(told, places)
            if group < 0:
                break
            if part == 0:  # the first of a pair multiplies for both
                multiplier.multiply(k_tiles)


def choose(rows: int, groups: int, n: int) -> umma_plan.Umma:
    """Choose the cut for so many rows in so many groups, and N columns."""
    tile_n = 128 if n <= 128 else 256
    return umma_plan.Umma(tile_n, 2 if rows >= TALL * groups else 1)


def plan(a: Any, b: Any, ends: Any, c: Any, cut: umma_plan.Umma | None = None) -> Any:
    """Plan the launch for tensors as `grouped_gemm` takes them. cut: an Umma, or None for the one that is thought
    best."""
    (rows, _), (groups, n, _) = a.shape, b.shape
    cut = cut or choose(rows, groups, n)
    umma_plan.check_alone("grouped_gemm", cut, entry.element_type(a))
    columns = math.ceil(n / cut.tile_n)
    most = (rows // (TILE_M * cut.ctas) + min(groups, rows)) * columns
    clusters = max(1, min(some_clusters(f"grouped_gemm: {cut}", most_clusters(a, cut.ctas), cut.ctas), most))
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
    tma_a, mA = load_atom(tensor_of(a, 1), a_matrices.tiles, a_tile, 1, ctas)
    tma_b, mB = load_atom(tB, b_matrices.tiles, b_tile, 1, ctas)
    tma_c, mC = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), ragged_rows(tensor_of(c, 1), TILE_M), smem_layout(c_dtype, 1, *piece), piece
    )  # fmt: skip
    return (
        dtype, sums_of(dtype), c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, cute.Int32(columns), tiled_mma,
        umma_plan.piece_mma(pieces.columns), cute.make_copy_atom(load, sums_of(dtype)),
        cute.make_copy_atom(store, c_dtype), a_matrices, b_matrices, smem_layout(c_dtype, 1, *piece, pieces.slots),
        cute.tiled_divide(cute.make_layout((ctas, 1, 1)), (tiled_mma.thr_id.shape,)),
    )  # fmt: skip
