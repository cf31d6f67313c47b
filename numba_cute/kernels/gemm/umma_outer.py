# SPDX-License-Identifier: Apache-2.0
"""A grouped GEMM for Blackwell that sums over the rows of groups: that of `grouped_outer.py`, with the tiles, the warps
and the tensor memory of `umma.py`. A group without rows gives zeros, of which the warps that take sums know by
themselves. The seventh warp has nothing to do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, tcgen05, warp

from .. import entry
from . import umma_plan
from .cuts import Umma
from .operands import load_atom, mapped, most_clusters, some_clusters, tensor_of
from .outer import DEPTH, ragged, tile_of
from .output import partition
from .plan import smem_layout
from .umma_parts import (
    EPILOGUE_WARPS,
    LOAD_WARP,
    MMA_WARP,
    THREADS,
    TILE_M,
    Leaving,
    Multiplier,
    Rings,
    Tiles,
    prefetch,
    tensor_memory,
)  # fmt: skip


@cuda.jit(launch_bounds=(THREADS, 1))
def outer(
    dtype, tma_x, mX, tma_y, mY, tma_c, mC, ends, tiles_m, tiles_n, tiles, tiled_mma, piece_mma, load, store,
    x_matrices, y_matrices, c_layout, cluster,
):  # fmt: skip
    tile_n, ctas = tiled_mma.shape_mnk[1], cute.size(tiled_mma.thr_id)
    store_n = cute.size(c_layout, mode=[1])
    first, step = arch.block_idx()[0] // ctas, arch.grid_dim()[0] // ctas
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    part = arch.make_warp_uniform(arch.block_idx_in_cluster())
    prefetch(warp_idx, (tma_x, tma_y, tma_c))
    smem = utils.SmemAllocator()
    shared = Tiles.allocate(smem, dtype, x_matrices, y_matrices, dtype, c_layout)
    rings = Rings.create(smem, tiled_mma, cluster, cute.size(x_matrices.tiles, mode=[2]))
    tmem = tensor_memory(smem, tiled_mma)
    pipeline.pipeline_init_arrive(cluster)
    pipeline.pipeline_init_wait(cluster)
    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written X, Y and the ends
    group_ends = cute.make_tensor(ends)

    if warp_idx == LOAD_WARP:
        producer = rings.mainloop.make_producer()
        for index in cute.range(first, tiles, step, unroll=1):
            _, begin, end, m, n = tile_of(index, group_ends, tiles_m, tiles_n)
            for row in cute.range(begin, end, DEPTH, unroll=1):
                left = cute.min(cute.Int32(end - row), cute.Int32(DEPTH))
                there = (0, DEPTH - left, row + left)
                gX = cute.local_tile(cute.domain_offset(there, mX), (TILE_M, DEPTH), (m * ctas + part, None, 0))
                gY = cute.local_tile(cute.domain_offset(there, mY), (tile_n // ctas, DEPTH), (n * ctas + part, None, 0))
                tXsX, tXgX = partition(tma_x, shared.a, gX)
                tYsY, tYgY = partition(tma_y, shared.b, gY)
                stage = producer.acquire_and_advance()
                cute.copy(tma_x, tXgX[None, 0], tXsX[None, stage.index], tma_bar_ptr=stage.barrier)
                cute.copy(tma_y, tYgY[None, 0], tYsY[None, stage.index], tma_bar_ptr=stage.barrier)
        producer.tail()

    if warp_idx == MMA_WARP:
        multiplier = Multiplier.create(rings, tmem, tiled_mma, cute.Float32, shared)
        if part == 0:  # the first of a pair multiplies for both
            for index in cute.range(first, tiles, step, unroll=1):
                _, begin, end, _, _ = tile_of(index, group_ends, tiles_m, tiles_n)
                if end > begin:
                    multiplier.multiply(cute.Int32((end - begin + DEPTH - 1) // DEPTH))

    if warp_idx < EPILOGUE_WARPS:
        leaving = Leaving.create(rings, tmem, cute.Float32, load, store, piece_mma, shared.c, arch.thread_idx()[0])
        for index in cute.range(first, tiles, step, unroll=1):
            group, begin, end, m, n = tile_of(index, group_ends, tiles_m, tiles_n)
            gC = cute.local_tile(mC[None, None, group], (TILE_M, store_n), (m * ctas + part, None))
            tCsC, tCgC = partition(tma_c, shared.c, gC)
            if end > begin:
                leaving.put(warp_idx, tma_c, tCsC, tCgC, n, tile_n // store_n, True)
            else:
                leaving.put_zeros(warp_idx, tma_c, tCsC, tCgC, n, tile_n // store_n)
        leaving.tail(warp_idx)


def choose(rows: int, groups: int, m: int, n: int, sms: int, room: Callable[[int], int]) -> Umma:
    """Choose the cut that takes the least time, by the model of `umma_plan`, for groups of so many rows each. room:
    `room(ctas)` clusters of so many CTAs run at once."""
    k_tiles = max(1, math.ceil(rows / groups / DEPTH))
    fit = [cut for cut in umma_plan.CUTS if cut.ctas == 1 or room(cut.ctas) > 0]
    return min(fit, key=lambda cut: umma_plan.clocks(cut, groups, m, n, k_tiles, sms))


def plan(x: Any, y: Any, ends: Any, c: Any, cut: Umma | None = None) -> Any:
    """Plan the launch. x, y, ends, c: as of `grouped_outer.plan`. cut: an Umma of one cluster's CTAs, or None for the
    one that is thought best."""
    groups, m, n = c.shape
    cut = cut or choose(
        x.shape[0], groups, m, n, entry.multiprocessors(x), functools.partial(most_clusters, x)
    )  # fmt: skip
    umma_plan.check_alone("grouped_gemm", cut, entry.element_type(x))
    tiles_m, tiles_n = math.ceil(m / (TILE_M * cut.ctas)), math.ceil(n / cut.tile_n)
    counts = tiles_m, tiles_n, tiles_m * tiles_n * groups
    clusters = max(1, min(some_clusters(f"grouped_gemm: {cut}", most_clusters(x, cut.ctas), cut.ctas), counts[-1]))
    return mapped(
        outer, (clusters * cut.ctas, 1, 1), (cut.ctas, 1, 1), (x, y, ends, c),
        functools.partial(arguments_of, cut, counts), block=THREADS,
    )  # fmt: skip


def arguments_of(cut: Umma, counts: tuple[int, int, int], x: Any, y: Any, ends: Any, c: Any) -> tuple[Any, ...]:
    """Give the kernel's arguments. cut: an Umma. counts: tiles along M and N, and of all groups. The others: as of
    `plan`."""
    dtype, ctas = entry.element_type(x), cut.ctas
    tiled_mma, pieces = umma_plan.mma_of(dtype, cut, 0, 0), umma_plan.pieces_of(cut, dtype.width)
    x_tile, y_tile, piece = (TILE_M, DEPTH), (cut.tile_n // ctas, DEPTH), (TILE_M, pieces.columns)
    x_matrices = umma_plan.matrices(dtype, 0, x_tile, pieces.stages, tiled_mma, "A", None)
    y_matrices = umma_plan.matrices(dtype, 0, y_tile, pieces.stages, tiled_mma, "B", None)
    tC = tensor_of(c, 2)
    tma_c, mC = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), cute.make_tensor(tC.iterator, cute.select(tC.layout, mode=[1, 2, 0])),
        smem_layout(dtype, 1, *piece), piece,
    )  # fmt: skip
    load = cute.make_copy_atom(tcgen05.Ld16x256bOp(tcgen05.Repetition(pieces.columns // 8)), cute.Float32)
    return (
        dtype, *load_atom(ragged(x), x_matrices.tiles, x_tile, 1, ctas),
        *load_atom(ragged(y), y_matrices.tiles, y_tile, 1, ctas), tma_c, mC, ends, *map(cute.Int32, counts), tiled_mma,
        umma_plan.piece_mma(pieces.columns), load, cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype),
        x_matrices, y_matrices, smem_layout(dtype, 1, *piece, pieces.slots),
        cute.tiled_divide(cute.make_layout((ctas, 1, 1)), (tiled_mma.thr_id.shape,)),
    )  # fmt: skip
