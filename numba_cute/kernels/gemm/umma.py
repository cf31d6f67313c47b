# SPDX-License-Identifier: Apache-2.0
"""A GEMM for Blackwell (sm_100a, sm_103a) in one plain kernel: C = f(A @ B.T), with A (M, K), B (N, K), and f the
epilogue.

Persistent and warp-specialised. One warp feeds shared memory by TMA, one issues tcgen05.mma, and four take the sums
from tensor memory, where there are two of each tile: one is taken while the next is multiplied. They take the sums as
wgmma would have left them, so that the epilogue is the one of all GEMMs here. The seventh warp brings what the epilogue
reads to where C will leave from, and stores what the four have put there.

One CTA multiplies 128 rows, or a pair of CTAs 256 together, each with half of the tile of B. CTAs of a larger cluster
share operands by multicast. `umma_plan.py` says how a problem is cut, `umma_scaled.py` what scale factors come along.
"""

from typing import Any

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, tcgen05
from numba_cute.seam import current, static, traced

from .dense import at, tiles_of
from .output import partition
from .umma_scaled import scaled

TILE_M, ROW = 128, 128  # rows of C of a CTA; bytes of K in a stage
ACC_STAGES = 2  # of sums in tensor memory
FACTOR_COLUMNS, ALL_COLUMNS = 16, 512  # of tensor memory, for an operand's scale factors in a stage, and in all
EPILOGUE_WARPS, MMA_WARP, LOAD_WARP, PIECES_WARP = 4, 4, 5, 6
THREADS = 32 * 7


@static
class Matrices:
    """Describe an operand in shared memory. tiles: as TMA fills it, (rows, K, stages) of a CTA. parts: the same as
    tcgen05.mma takes it, ((rows, K), rest, rest, stages)."""

    tiles: Any
    parts: Any


@traced
def allocated(smem: Any, dtype: Any, matrices: Matrices, name: str) -> tuple[Any, Any]:
    """Reserve shared memory for an operand's stages, and give it as `Matrices` says."""
    tiles = smem.allocate_tensor(dtype, matrices.tiles.outer, 1024, matrices.tiles.inner, name)
    return tiles, cute.make_tensor(tiles.iterator, matrices.parts.outer)


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


@cute.struct
class Way:
    """A thread's way out for sums: from tensor memory to registers, 16 rows of its warp and then 16 more, and from
    there, rounded, to a slot of shared memory. Make one with `create`."""

    load: Any
    there: Any
    sums: Any
    store: Any
    held: Any
    source: Any
    slots: Any

    @staticmethod
    @traced
    def create(load: Any, store: Any, piece_mma: Any, acc: Any, sC: Any, thread: Any) -> Any:
        """Find this thread's part. load: the copy atom from tensor memory; it takes the columns of a piece's sums.
        store: the one to shared memory. piece_mma: as of `umma_plan.piece_mma`. acc: the sums, of all stages. sC: the
        slots. thread: of the four warps."""
        columns, blocks = cute.size(load.layout_dst_tv, mode=[1]) // 4 * 8, cute.size(sC, mode=[1]) // 8
        tAcc = cute.flat_divide(acc[(None, None), 0, 0, None], (TILE_M, columns))  # (rows, columns, 1, pieces, stages)
        tiled_load = tcgen05.make_tmem_copy(load, tAcc[None, None, 0, 0, 0])
        sums = cute.make_rmem_tensor(((columns // 2, 1), 2, 1), acc.element_type)
        held = cute.make_rmem_tensor(
            cute.make_layout(((2, 2), 2, blocks), stride=((1, 2), 4 * blocks, 4)), sC.element_type
        )
        tiled_store = cute.make_tiled_copy_C(store, piece_mma)
        own = tiled_store.get_slice(thread)
        there = tiled_load.get_slice(thread).partition_S(tAcc)
        return Way(tiled_load, there, sums, tiled_store, held, own.retile(held), own.partition_D(sC))

    @traced
    def take(self, piece: Any, stage: Any) -> None:
        """Load the sums of a piece. The whole warp."""
        cute.copy(self.load, self.there[None, None, None, 0, piece, stage], self.sums)
        arch.fence_view_async_tmem_load()

    @traced
    def of_half(self, half: int) -> Any:
        """Give the sums of this thread's first or second 16 rows: (2 columns, 2 rows, blocks)."""
        return self.sums[None, half, 0]

    @traced
    def round(self, half: int, values: Any) -> None:
        """Round values to C's type. half: of which rows. values: a vector, in the order of the sums."""
        held = cute.make_tensor(self.held.iterator + half * (cute.size(self.held) // 2), cute.make_layout(values.shape))
        held.store(values.to(self.held.element_type))

    @traced
    def put(self, slot: Any) -> None:
        """Write the rounded values to a slot, where TMA sees them once the threads have met."""
        cute.copy(self.store, self.source, self.slots[None, None, None, slot])
        arch.fence_proxy("async.shared", space="cta")


@cute.jit
def plainly(consumer, tiled_mma, sums, rA, rB, k_tiles):
    """Set `sums` to the products of `k_tiles` stages. rA, rB: fragments, (V, M or N, K, stages)."""
    for k in range(k_tiles):
        cute.range_push("wait", k)
        stage = consumer.wait_and_advance()
        cute.range_pop()
        for kb in cute.range_constexpr(cute.size(rA, mode=[2])):
            adds = tiled_mma.set(tcgen05.Field.ACCUMULATE, k > 0 or kb > 0)
            cute.gemm(adds, sums, rA[None, None, kb, stage.index], rB[None, None, kb, stage.index], sums)
        stage.release()


def multiply(
    dtype, acc_dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, piece_mma, load, store, a_matrices,
    b_matrices, c_layout, cluster, schedule, epilogue, tma_d, mD, factors, tma_fa, mFA, tma_fb, mFB,
):  # fmt: skip
    tile_n, ctas = tiled_mma.shape_mnk[1], cute.size(tiled_mma.thr_id)
    warp = arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    place = cluster.get_flat_coord(rank)  # (of the pair, along M, along N, 0)
    part = place[0]
    if warp == LOAD_WARP:
        cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
        cpasync.prefetch_descriptor(tma_c)

    stages, slots, store_n = (cute.size(a_matrices.tiles, mode=[2]), cute.size(c_layout, mode=[2]),
                              cute.size(c_layout, mode=[1]))  # fmt: skip
    sharers_a, sharers_b = cute.size(cluster, mode=[2]), cute.size(cluster, mode=[1])
    smem = utils.SmemAllocator()
    sA, sA_parts = allocated(smem, dtype, a_matrices, "sA")
    sB, sB_parts = allocated(smem, dtype, b_matrices, "sB")
    sC = smem.allocate_tensor(c_dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    factors_bytes = 0
    if cute.const_expr(factors is not None):
        sFA, sFB = factors.allocate(smem)
        factors_bytes = ctas * factors.stage
    vectors_layout, vectors = epilogue.layout(TILE_M, store_n, slots), None
    if cute.const_expr(vectors_layout is not None):
        vectors = smem.allocate_tensor(cute.Float32, vectors_layout, 16, None, "vectors")
    barriers = smem.allocate_array(cute.Int64, 2 * (stages + ACC_STAGES + slots), name="barriers")
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    mainloop = pipeline.PipelineTmaUmma.create(
        num_stages=stages,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharers_a + sharers_b - 1),
        tx_count=(ctas * TILE_M + tile_n) * ROW + factors_bytes,
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
    # A slot holds a piece of C: what the epilogue takes comes there, what it gives leaves from there.
    pieces = pipeline.PipelineTmaAsync.create(
        num_stages=slots,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, EPILOGUE_WARPS),
        tx_count=None,
        barrier_storage=barriers + 2 * (stages + ACC_STAGES),
        defer_sync=True,
        name="pieces",
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
    scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()

    # What TMA copies: of each tile this CTA fetches its part, for all that share it. A pair has halves of B's tile.
    tile_k = 8 * ROW // dtype.width
    tAsA, tAgA = partition(tma_a, sA, tiles_of(mA, (TILE_M, tile_k)), place[2], sharers_a)
    tBsB, tBgB = partition(tma_b, sB, tiles_of(mB, (tile_n // ctas, tile_k)), place[1], sharers_b)
    tCsC, tCgC = partition(tma_c, sC, tiles_of(mC, (TILE_M, store_n)))
    k_tiles = cute.size(tAgA, mode=[2])
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
        producer = mainloop.make_producer()
        while work.is_valid_tile:
            m, n, batch = work.tile_idx
            for k in range(k_tiles):
                cute.range_push("acquire", k)
                stage = producer.acquire_and_advance()
                cute.range_pop()
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
        tmem.wait_for_alloc()
        ptr = tmem.retrieve_ptr(acc_dtype)
        acc = cute.make_tensor(ptr, accumulators.layout)
        if cute.const_expr(factors is not None):
            of_a = factors.hold(ptr + ACC_STAGES * tile_n, sFA, factors.a_held)
            of_b = factors.hold(ptr + (ACC_STAGES * tile_n + FACTOR_COLUMNS), sFB, factors.b_held)
        rA, rB = tiled_mma.make_fragment_A(sA_parts), tiled_mma.make_fragment_B(sB_parts)
        consumer, full = mainloop.make_consumer(), results.make_producer()
        while work.is_valid_tile:
            if part == 0:  # the first of a pair multiplies for both
                cute.range_push("room")
                tile = full.acquire_and_advance()
                cute.range_pop()
                sums = acc[None, None, None, tile.index]
                if cute.const_expr(factors is None):
                    plainly(consumer, tiled_mma, sums, rA, rB, k_tiles)
                else:
                    scaled(consumer, tiled_mma, sums, rA, rB, k_tiles, of_a, of_b)
                tile.commit()
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()

    thread = arch.thread_idx()[0] % (32 * EPILOGUE_WARPS)
    of_piece = piece_mma.get_slice(thread).partition_C(cute.make_identity_tensor((TILE_M, store_n)))
    if warp == PIECES_WARP:
        lag = 1 if slots > 1 else 0  # a slot is filled again while the next one is stored
        tDsD, tDgD = None, None
        if cute.const_expr(tma_d is not None):
            tDsD, tDgD = partition(tma_d, sC, tiles_of(mD, (TILE_M, store_n)))
        own, extents = of_piece[None, 0, None], (TILE_M, store_n)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, slots)
        m, n, batch = work.tile_idx
        for piece in cute.range_constexpr(slots):
            column = (tile_pieces * n + piece) * store_n
            fill(epilogue, pieces, vectors, piece, own, TILE_M * m, column, batch, extents, tma_d, tDsD, tDgD)
        while work.is_valid_tile:
            m, n, batch = work.tile_idx
            for piece in cute.range_constexpr(tile_pieces):
                pieces.producer_acquire(state)  # what the epilogue made is there
                state.advance()
                cute.copy(tma_c, tCsC[None, piece % slots], at(tCgC, m, tile_pieces * n + piece, batch))
                arch.cp_async_bulk_commit_group()
                if cute.const_expr(lag <= piece and piece - lag + slots < tile_pieces):  # that has left its slot
                    arch.cp_async_bulk_wait_group(lag, read=True)
                    column = (tile_pieces * n + piece + slots - lag) * store_n
                    slot = (piece - lag) % slots
                    fill(epilogue, pieces, vectors, slot, own, TILE_M * m, column, batch, extents, tma_d, tDsD, tDgD)
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
            arch.cp_async_bulk_wait_group(0, read=True)
            if work.is_valid_tile:
                m, n, batch = work.tile_idx
                for piece in cute.range_constexpr(slots):
                    column = (tile_pieces * n + piece) * store_n
                    fill(epilogue, pieces, vectors, piece, own, TILE_M * m, column, batch, extents, tma_d, tDsD, tDgD)

    if warp < EPILOGUE_WARPS:
        tmem.allocate(utils.get_num_tmem_alloc_cols(accumulators) if cute.const_expr(factors is None) else ALL_COLUMNS)
        tmem.wait_for_alloc()
        ptr = tmem.retrieve_ptr(acc_dtype)
        acc = cute.make_tensor(ptr, accumulators.layout)
        ready, state = results.make_consumer(), pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, slots)
        way, tCsD = Way.create(load, store, piece_mma, acc, sC, thread), piece_mma.get_slice(thread).partition_C(sC)
        while work.is_valid_tile:
            m, n, batch = work.tile_idx
            tile = ready.wait_and_advance()
            cute.range_push("epilogue", m)
            for piece in cute.range_constexpr(tile_pieces):
                way.take(piece, tile.index)
                if piece == tile_pieces - 1:
                    tile.release()
                pieces.consumer_wait(state)
                for half in cute.range_constexpr(2):
                    column = (tile_pieces * n + piece) * store_n
                    where = epilogue.place_in(TILE_M * m, column, batch, of_piece[None, half, None], (TILE_M, store_n))
                    matrix = tCsD[None, half, None, piece % slots]
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
        tmem.relinquish_alloc_permit()
        pipeline.NamedBarrier(2, 32 * EPILOGUE_WARPS).arrive_and_wait()  # all have taken their sums
        tmem.free(ptr)
