# SPDX-License-Identifier: Apache-2.0
"""A grouped GEMM for Blackwell: that of `grouped.py`, with the tiles, the warps and the tensor memory of `umma.py`.

The seventh warp finds the group of each tile, and tells the others. CTAs of a pair find the same ones, and have rows of
their own: of 256 rows of a group the second has the last 128, which may all be another group's. Rows that an index
names TMA brings, and takes, four at a time (`umma_rows.py`). What an epilogue reads of a tile the warps that take its
sums fetch before these are there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, tcgen05

from .. import entry
from . import umma_plan
from .cuts import Umma
from .epilogue import Epilogue, hook
from .groups import GroupedTiles, hear, ragged_rows, tell
from .indexed import named_of
from .operands import load_atom, mapped, most_clusters, some_clusters, tensor_of
from .output import partition
from .plan import in_halves, loads, room_of, run_of, smem_layout, sums_of
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
    leader_of,
    prefetch,
    tensor_memory,
)  # fmt: skip
from .umma_rows import Chosen, spoil

PLACES = 2
TALL = 512  # rows of a group from which on pairs are thought better: fewer leave much of 256 empty


@cuda.jit(launch_bounds=(THREADS, 1))
def grouped(
    dtype, acc_dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, columns, tiled_mma, piece_mma, load, store,
    a_matrices, b_matrices, c_layout, cluster, epilogue,
):  # fmt: skip
    gathers, scatters = mA is None, mC is None  # an index names A's rows, and C's: the atom is a Fours
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
    tile_pieces = tile_n // epilogue.spread // store_n
    vectors_layout, vectors = epilogue.layout(TILE_M, store_n, tile_pieces), None
    if cute.const_expr(vectors_layout is not None):
        vectors = smem.allocate_tensor(cute.Float32, vectors_layout, 16, None, "vectors")
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
            group, end, row, n = hear(told, places)
            if group < 0:
                break
            if cute.const_expr(gathers):
                rows_a = tma_a.part(row, end)
                numbers = rows_a.of_lane(0)
            else:
                gA = cute.local_tile(cute.domain_offset((row, 0), mA), (TILE_M, tile_k), (0, None))
                tAsA, tAgA = partition(tma_a, shared.a, gA)
            for k in range(tBgB.shape[2]):
                stage = producer.acquire_and_advance()
                if cute.const_expr(gathers):
                    there = shared.a[None, None, stage.index]
                    rows_a.load(numbers, k * tile_k, there, stage.barrier, leader_of(part, ctas))
                else:
                    cute.copy(tma_a, tAgA[None, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                cute.copy(
                    tma_b, tBgB[None, n * ctas + part, k, group], tBsB[None, stage.index], tma_bar_ptr=stage.barrier
                )
        producer.tail()

    if warp_idx < EPILOGUE_WARPS:
        thread = arch.thread_idx()[0]
        leaving = Leaving.create(rings, tmem, acc_dtype, load, store, piece_mma, shared.c, thread)
        of_piece = piece_mma.get_slice(thread).partition_C(cute.make_identity_tensor((TILE_M, store_n)))
        while True:
            group, end, row, n = hear(told, places)
            if group < 0:
                break
            left = cute.max(cute.Int32(0), cute.min(cute.Int32(TILE_M), cute.Int32(end - row)))
            first = cute.Int32(tile_pieces * n)
            if cute.const_expr(vectors is not None):
                for piece in cute.range_constexpr(tile_pieces):
                    where = (row, (first + piece) * store_n, group, of_piece[None, 0, None], (TILE_M, store_n))
                    epilogue.fetch(epilogue.place_in(*where), vectors, piece, thread, 32 * EPILOGUE_WARPS)
            if cute.const_expr(gathers):
                lost = tma_a.part(row, end).lost(0, of_piece)
            if cute.const_expr(scatters):
                rows_c = tma_c.part(row, end)
                numbers_c = rows_c.of_lane(0)
            else:
                there = cute.domain_offset((TILE_M - left, 0, row + left), mC)
                gC = cute.local_tile(there, (TILE_M, store_n), (0, None, 0))
                tCsC, tCgC = partition(tma_c, shared.c, gC)
            tile = leaving.ready.wait_and_advance()
            if cute.const_expr(vectors is not None):
                leaving.together.arrive_and_wait()  # what the others fetched is there
            for piece in cute.range_constexpr(tile_pieces):
                leaving.way.take(piece, tile.index)
                if piece == tile_pieces - 1:
                    tile.release()
                for half in cute.range_constexpr(2):
                    sums = leaving.way.of_half(half)
                    if cute.const_expr(gathers):
                        spoil(lost, half, sums)
                    where = (row, (first + piece) * store_n, group, of_piece[None, half, None], (TILE_M, store_n))
                    made = epilogue.apply(sums, epilogue.place_in(*where), vectors, None, piece)
                    leaving.way.round(half, made)
                slot = leaving.fill(warp_idx, piece)
                if warp_idx == 0:
                    if left > 0:
                        if cute.const_expr(scatters):
                            rows_c.store(numbers_c, (first + piece) * store_n, shared.c[None, None, slot])
                        else:
                            cute.copy(tma_c, tCsC[None, slot], tCgC[None, first + piece])
                    leaving.stores.producer_commit()
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


def choose(rows: int, groups: int, n: int, room: Callable[[int], int]) -> Umma:
    """Choose the cut for so many rows in so many groups, and N columns. room: `room(ctas)` clusters of so many CTAs run
    at once."""
    tile_n = 128 if n <= 128 else 256
    return Umma(tile_n, 2 if rows >= TALL * groups and room(2) > 0 else 1)


def plan(
    a: Any, b: Any, ends: Any, c: Any, cut: Umma | None = None, epilogue: Epilogue | None = None,
    rows: Any = (None, None),
) -> Any:  # fmt: skip
    """Plan the launch for tensors as `grouped_gemm` takes them. cut: an Umma, or None for the one that is thought best.
    epilogue, rows: as of `grouped.plan`."""
    indices = [r for r in rows if r is not None]
    count, (groups, n, _) = indices[0].shape[0] if indices else a.shape[0], b.shape
    cut = cut or choose(count, groups, n, functools.partial(most_clusters, a))
    umma_plan.check_alone("grouped_gemm", cut, entry.element_type(a))
    columns = math.ceil(n / cut.tile_n)
    most = (count // (TILE_M * cut.ctas) + min(groups, count)) * columns
    clusters = max(1, min(some_clusters(f"grouped_gemm: {cut}", most_clusters(a, cut.ctas), cut.ctas), most))
    given = epilogue.tensors if epilogue else []
    form, read, named = epilogue and epilogue.form, len(given), (rows[0] is not None, rows[1] is not None)

    def arguments(a: Any, b: Any, ends: Any, c: Any, *others: Any) -> Any:
        kinds, own = (entry.element_type(a), entry.element_type(c)), Epilogue.of(form, others[:read]) if form else None
        a, c, of_a, of_c, _ = named_of(a, c, named, others[read:])
        return arguments_of(cut, columns, kinds, a, b, ends, c, own, (of_a, of_c))

    tensors = (a, b, ends, c, *given, *indices)
    return mapped(grouped, (clusters * cut.ctas, 1, 1), (cut.ctas, 1, 1), tensors, arguments, block=THREADS)


def arguments_of(
    cut: Umma, columns: int, kinds: tuple[Any, Any], a: Any, b: Any, ends: Any, c: Any,
    epilogue: Epilogue | None, rows: tuple[Any, Any],
) -> tuple[Any, ...]:  # fmt: skip
    """Give the kernel's arguments. cut: an Umma. columns: tiles along N. kinds: the types of A and of C. a, b, ends, c:
    as `grouped_gemm` takes them; with the product's rows, where they are named. epilogue: or None. rows: a Named of A's
    rows and of C's, or None."""
    (dtype, c_dtype), (of_a, of_c), ctas = kinds, rows, cut.ctas
    spread, (groups, n, _), m = epilogue.spread if epilogue else 1, b.shape, int(a.shape[0])
    b_mode = 2 if entry.strides(b)[2] == 1 else 1
    tB = tensor_of(b, b_mode)
    tB = cute.make_tensor(tB.iterator, cute.select(tB.layout, mode=[1, 2, 0]))  # N, K, groups
    tiled_mma, tile_k = umma_plan.mma_of(dtype, cut, 1, b_mode - 1), 8 * ROW // dtype.width
    pieces = umma_plan.pieces_of(cut, c_dtype.width, *room_of(epilogue), whole=True)
    run = run_of(b_mode - 1, n // 2, pieces.columns, cut.tile_n // (2 * ctas)) if spread == 2 else None
    a_tile, b_tile, piece = (TILE_M, tile_k), (cut.tile_n // ctas, tile_k), (TILE_M, pieces.columns)
    a_matrices = umma_plan.matrices(dtype, 1, a_tile, pieces.stages, tiled_mma, "A", None)
    b_matrices = umma_plan.matrices(dtype, b_mode - 1, b_tile, pieces.stages, tiled_mma, "B", run)
    load = tcgen05.Ld16x256bOp(tcgen05.Repetition(pieces.columns * spread // 8))
    tA, tC, c_piece = tensor_of(a, 1), tensor_of(c, 1), smem_layout(c_dtype, 1, *piece)
    tma_a, mA = (
        load_atom(tA, a_matrices.tiles, a_tile, 1, ctas) if of_a is None
        else Chosen(tA, of_a, m).loads(dtype, a_matrices.tiles, a_tile, 1, together=ctas)
    )  # fmt: skip
    if run is None:
        tma_b, mB = load_atom(tB, b_matrices.tiles, b_tile, 1, ctas)
    else:
        across = run, 2, cute.Int32(columns * cut.tile_n // (2 * run))
        halves = in_halves(tB, n // 2, run)
        tma_b, mB = loads(halves, dtype, b_matrices.tiles, b_tile, 1, (across, b.shape[2]), ctas)
    tma_c, mC = (
        cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), ragged_rows(tC, TILE_M), c_piece, piece)
        if of_c is None else Chosen(tC, of_c, m).stores(c_dtype, c_piece, piece)
    )  # fmt: skip
    return (
        dtype, sums_of(dtype), c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, cute.Int32(columns), tiled_mma,
        umma_plan.piece_mma(pieces.columns), cute.make_copy_atom(load, sums_of(dtype)),
        umma_plan.store_atom(c_dtype, 1, pieces.columns), a_matrices, b_matrices,
        smem_layout(c_dtype, 1, *piece, pieces.slots),
        cute.tiled_divide(cute.make_layout((ctas, 1, 1)), (tiled_mma.thr_id.shape,)),
        hook(epilogue, m, n // spread, False, run, groups),
    )  # fmt: skip
