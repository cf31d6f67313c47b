# SPDX-License-Identifier: Apache-2.0
"""A GEMM for Blackwell (sm_100a, sm_103a) in one plain kernel: C = f(A @ B.T), with A (M, K), B (N, K), and f the
epilogue.

Persistent and warp-specialised (`umma_parts.py`). The four warps that take the sums from tensor memory take them as
wgmma would have left them, so that the epilogue is the one of all GEMMs here. The seventh warp brings what the epilogue
reads to where C will leave from, and stores what the four have put there.

One CTA multiplies 128 rows, or a pair of CTAs 256 together, each with half of the tile of B. CTAs of a larger cluster
share operands by multicast. Several clusters may share K, of all tiles or of the last ones: each writes its sums to
global memory, and the last of them adds them up in order (`shares.py`). `umma_plan.py` says how a problem is cut,
`umma_scaled.py` what scale factors come along.
"""

from typing import Any

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.seam import current, traced

from .dense import at, is_last, put_partial, tiles_of
from .output import partition
from .shares import part_of_k, share_of
from .umma_parts import (
    ACC_STAGES,
    EPILOGUE_WARPS,
    LOAD_WARP,
    MMA_WARP,
    OWN_WARP,
    ROW,
    TILE_M,
    Multiplier,
    Rings,
    Tiles,
    Way,
    give_back,
    leader_of,
    prefetch,
    tensor_memory,
)  # fmt: skip
from .umma_rows import spoil

FACTOR_COLUMNS, ALL_COLUMNS = 16, 512  # of tensor memory, for an operand's scale factors in a stage, and in all


@traced
def fill(epilogue, pieces, vectors, slot, own, first_row, first_column, batch, extents, tma_d, shared, there):
    """Bring what the epilogue takes of a piece of C to a slot, which is then full. A whole warp.

    own: as of `Hook.place_in`, of any thread. extents: of the piece. tma_d: of the matrix like C, or None. shared,
    there: what it copies to and from."""
    place = epilogue.place_in(first_row, first_column, batch, own, extents)
    epilogue.fetch(place, vectors, slot, arch.lane_idx(), 32)
    barrier = pieces.sync_object_full.get_barrier(slot)
    if tma_d is not None:
        nbytes = extents[0] * extents[1] * shared.element_type.width // 8
        current().when(arch.elect_one(), lambda: arch.mbarrier_expect_tx(barrier, nbytes))
        row, column = first_row // extents[0], first_column // extents[1]
        cute.copy(tma_d, at(there, row, column, batch), shared[None, slot], tma_bar_ptr=barrier)
    arch.sync_warp()
    pieces.sync_object_full.arrive(slot)


@traced
def add_partials(sums: Any, partial: Any, thread: Any, piece: int) -> None:
    """Set this thread's sums to all sharers' together, in order: one after the other, for of all at once ptxas spilt.
    partial: (4, threads, fours, splits)."""
    fours = cute.size(sums) // 4
    sums.fill(sums.element_type(0))

    def add(split: Any) -> None:
        for i in range(fours):
            there = partial[None, thread, piece * fours + i, split].iterator
            got = arch.load(there, sums.element_type, cop="cg", count=4)
            for j in range(4):
                sums[4 * i + j] = sums[4 * i + j] + got[j]

    current().loop(0, cute.size(partial, mode=[3]), add)


@traced
def left(pending: int) -> None:
    """Wait until all stores but the latest have been read, of each lane. A whole warp."""
    arch.cp_async_bulk_wait_group(pending, read=True)
    arch.sync_warp()


def multiply(
    dtype, acc_dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, piece_mma, load, store, a_matrices,
    b_matrices, c_layout, cluster, schedule, epilogue, tma_d, mD, factors, tma_fa, mFA, tma_fb, mFB,
    partials, tickets,
):  # fmt: skip
    gathers, scatters = mA is None, mC is None  # an index names A's rows, and C's: the atom is a Fours
    tile_n, ctas = tiled_mma.shape_mnk[1], cute.size(tiled_mma.thr_id)
    warp = arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    place = cluster.get_flat_coord(rank)  # (of the pair, along M, along N, 0)
    part = place[0]
    prefetch(warp, (tma_a, tma_b, tma_c))
    stages, slots, store_n = (cute.size(a_matrices.tiles, mode=[2]), cute.size(c_layout, mode=[2]),
                              cute.size(c_layout, mode=[1]))  # fmt: skip
    sharers_a, sharers_b = cute.size(cluster, mode=[2]), cute.size(cluster, mode=[1])
    smem = utils.SmemAllocator()
    tiles = Tiles.allocate(smem, dtype, a_matrices, b_matrices, c_dtype, c_layout)
    factors_bytes = 0
    if cute.const_expr(factors is not None):
        sFA, sFB = factors.allocate(smem)
        factors_bytes = ctas * factors.stage
    vectors_layout, vectors = epilogue.layout(TILE_M, store_n, slots), None
    if cute.const_expr(vectors_layout is not None):
        vectors = smem.allocate_tensor(cute.Float32, vectors_layout, 16, None, "vectors")
    splits, flags = 1, None
    if cute.const_expr(partials is not None):
        splits = cute.size(partials, mode=[3])
        flags = smem.allocate_tensor(cute.Int32, cute.make_layout(4), 16, None, "flags")
    rings = Rings.create(smem, tiled_mma, cluster, stages, factors_bytes, 2 * slots)
    # A slot holds a piece of C: what the epilogue takes comes there, what it gives leaves from there.
    pieces = pipeline.PipelineTmaAsync.create(
        num_stages=slots,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, EPILOGUE_WARPS),
        tx_count=None,
        barrier_storage=rings.more,
        defer_sync=True,
        name="pieces",
    )
    tmem = tensor_memory(smem, tiled_mma)
    pipeline.pipeline_init_arrive(cluster)
    pipeline.pipeline_init_wait(cluster)
    scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()

    # What TMA copies: of each tile this CTA fetches its part, for all that share it. A pair has halves of B's tile.
    tile_k = 8 * ROW // dtype.width
    if cute.const_expr(not gathers):
        tAsA, tAgA = partition(tma_a, tiles.a, tiles_of(mA, (TILE_M, tile_k)), place[2], sharers_a)
    tBsB, tBgB = partition(tma_b, tiles.b, tiles_of(mB, (tile_n // ctas, tile_k)), place[1], sharers_b)
    if cute.const_expr(not scatters):
        tCsC, tCgC = partition(tma_c, tiles.c, tiles_of(mC, (TILE_M, store_n)))
    k_tiles = cute.size(tBgB if cute.const_expr(gathers) else tAgA, mode=[2])
    tile_pieces = tile_n // epilogue.spread // store_n
    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written A and B

    if warp == LOAD_WARP:
        share_a = share_b = None
        if cute.const_expr(sharers_a > 1):
            share_a = cpasync.create_tma_multicast_mask(cluster, place, 2)
        if cute.const_expr(sharers_b > 1):
            share_b = cpasync.create_tma_multicast_mask(cluster, place, 1)
        if cute.const_expr(factors is not None):
            tFAsFA, tFAgFA = factors.loads(tma_fa, sFA, mFA)
            tFBsFB, tFBgFB = factors.loads(tma_fb, sFB, mFB)
        producer = rings.mainloop.make_producer()
        while work.is_valid_tile:
            m, n, layer = work.tile_idx
            batch, split = share_of(layer, splits)
            first_k, end_k = part_of_k(k_tiles, split, splits, 0, 1)
            if cute.const_expr(gathers):
                numbers = tma_a.of_lane(TILE_M * m)
            for k in range(first_k, end_k):
                cute.range_push("acquire", k)
                stage = producer.acquire_and_advance()
                cute.range_pop()
                if cute.const_expr(gathers):
                    tma_a.load(
                        numbers, k * tile_k, tiles.a[None, None, stage.index], stage.barrier,
                        leader_of(rank, ctas),
                    )  # fmt: skip
                else:
                    cute.copy(
                        tma_a, at(tAgA, m, k, batch), tAsA[None, stage.index], tma_bar_ptr=stage.barrier,
                        mcast_mask=share_a,
                    )  # fmt: skip
                cute.copy(
                    tma_b, at(tBgB, n * ctas + part, k, batch), tBsB[None, stage.index], tma_bar_ptr=stage.barrier,
                    mcast_mask=share_b,
                )  # fmt: skip
                if cute.const_expr(factors is not None):
                    i, bar = stage.index, stage.barrier
                    cute.copy(tma_fa, tFAgFA[None, 0, k, m], tFAsFA[None, i], tma_bar_ptr=bar)
                    cute.copy(tma_fb, tFBgFB[None, 0, k, n], tFBsFB[None, i], tma_bar_ptr=bar)
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        producer.tail()

    if warp == MMA_WARP:
        multiplier, of_both = Multiplier.create(rings, tmem, tiled_mma, acc_dtype, tiles), None
        if cute.const_expr(factors is not None):
            behind = multiplier.sums.iterator + ACC_STAGES * tile_n
            of_both = (factors.hold(behind, sFA, factors.a_held),
                       factors.hold(behind + FACTOR_COLUMNS, sFB, factors.b_held))  # fmt: skip
        while work.is_valid_tile:
            if part == 0:  # the first of a pair multiplies for both
                _, split = share_of(work.tile_idx[2], splits)
                first_k, end_k = part_of_k(k_tiles, split, splits, 0, 1)
                multiplier.multiply(end_k - first_k, of_both)
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()

    thread = arch.thread_idx()[0] % (32 * EPILOGUE_WARPS)
    of_piece = piece_mma.get_slice(thread).partition_C(cute.make_identity_tensor((TILE_M, store_n)))
    if warp == OWN_WARP:
        lag = 1 if slots > 1 else 0  # a slot is filled again while the next one is stored
        tDsD, tDgD = None, None
        if cute.const_expr(tma_d is not None):
            tDsD, tDgD = partition(tma_d, tiles.c, tiles_of(mD, (TILE_M, store_n)))
        own, extents = of_piece[None, 0, None], (TILE_M, store_n)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, slots)
        m, n, layer = work.tile_idx
        batch, _ = share_of(layer, splits)
        for piece in cute.range_constexpr(slots):
            column = (tile_pieces * n + piece) * store_n
            fill(epilogue, pieces, vectors, piece, own, TILE_M * m, column, batch, extents, tma_d, tDsD, tDgD)
        while work.is_valid_tile:
            m, n, layer = work.tile_idx
            batch, split = share_of(layer, splits)
            turn = scheduler.num_tiles_executed % 2
            if cute.const_expr(scatters):
                numbers_c = tma_c.of_lane(TILE_M * m)
            for piece in cute.range_constexpr(tile_pieces):
                pieces.producer_acquire(state)  # what the epilogue made is there
                state.advance()
                if cute.const_expr(splits == 1) or split == splits or flags[turn] == splits - 1:  # type: ignore[index]
                    if cute.const_expr(scatters):
                        column = (tile_pieces * n + piece) * store_n
                        tma_c.store(numbers_c, column, tiles.c[None, None, piece % slots])
                    else:
                        cute.copy(tma_c, tCsC[None, piece % slots], at(tCgC, m, tile_pieces * n + piece, batch))
                arch.cp_async_bulk_commit_group()
                if cute.const_expr(lag <= piece and piece - lag + slots < tile_pieces):  # that has left its slot
                    left(lag)
                    column = (tile_pieces * n + piece + slots - lag) * store_n
                    slot = (piece - lag) % slots
                    fill(epilogue, pieces, vectors, slot, own, TILE_M * m, column, batch, extents, tma_d, tDsD, tDgD)
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
            left(0)
            if work.is_valid_tile:
                m, n, layer = work.tile_idx
                batch, _ = share_of(layer, splits)
                for piece in cute.range_constexpr(slots):
                    column = (tile_pieces * n + piece) * store_n
                    fill(epilogue, pieces, vectors, piece, own, TILE_M * m, column, batch, extents, tma_d, tDsD, tDgD)

    if warp < EPILOGUE_WARPS:
        tmem.allocate(
            utils.get_num_tmem_alloc_cols(rings.accumulators) if cute.const_expr(factors is None) else ALL_COLUMNS
        )
        tmem.wait_for_alloc()
        ptr = tmem.retrieve_ptr(acc_dtype)
        acc, ready = cute.make_tensor(ptr, rings.accumulators.layout), rings.results.make_consumer()
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, slots)
        way = Way.create(load, store, piece_mma, acc, tiles.c, thread)
        tCsD, together = piece_mma.get_slice(thread).partition_C(tiles.c), pipeline.NamedBarrier(2, 32 * EPILOGUE_WARPS)
        while work.is_valid_tile:
            m, n, layer = work.tile_idx
            batch, split = share_of(layer, splits)
            if cute.const_expr(gathers):
                lost = tma_a.lost(TILE_M * m, of_piece)
            tile = ready.wait_and_advance()
            cute.range_push("epilogue", m)
            finishes = True
            if cute.const_expr(splits > 1):
                which = schedule.place(scheduler.current_work_linear_idx) * cute.size(cluster) + rank
                partial, turn = partials[None, None, None, None, which], scheduler.num_tiles_executed % 2
                if split < splits:
                    for piece in cute.range_constexpr(tile_pieces):
                        way.take(piece, tile.index)
                        put_partial(way.sums, partial[None, None, None, split], thread, piece)
                    finishes = is_last(tickets.iterator + which, splits, flags, turn, thread, together)
            for piece in cute.range_constexpr(tile_pieces):
                if cute.const_expr(splits == 1) or split == splits:
                    way.take(piece, tile.index)
                if piece == tile_pieces - 1:
                    tile.release()
                pieces.consumer_wait(state)
                if cute.const_expr(splits == 1) or finishes:
                    if cute.const_expr(splits > 1):
                        if split < splits:
                            add_partials(way.sums, partial, thread, piece)
                    column = (tile_pieces * n + piece) * store_n
                    for half in cute.range_constexpr(2):
                        own = of_piece[None, half, None]
                        where = epilogue.place_in(TILE_M * m, column, batch, own, (TILE_M, store_n))
                        matrix = tCsD[None, half, None, piece % slots]
                        if cute.const_expr(gathers):
                            spoil(lost, half, way.of_half(half))
                        way.round(half, epilogue.apply(way.of_half(half), where, vectors, matrix, state.index))
                    if cute.const_expr(tma_d is not None):
                        arch.sync_warp()  # all lanes have read what is overwritten
                    way.put(piece % slots)
                arch.sync_warp()
                pieces.consumer_release(state)
                state.advance()
            cute.range_pop()
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        give_back(tmem, ptr)
