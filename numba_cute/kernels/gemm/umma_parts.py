# SPDX-License-Identifier: Apache-2.0
"""Parts that GEMMs of Blackwell share: the memory and the barriers of a CTA, the warp that multiplies, and how sums
leave tensor memory.

One warp feeds shared memory by TMA, one issues tcgen05.mma, and four take the sums from tensor memory, where there are
two of each tile: one is taken while the next is multiplied. The seventh warp is each kernel's own.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, tcgen05
from numba_cute.seam import current, frozen, traced

from . import cuts
from .umma_rows import atom_of
from .umma_scaled import scaled

TILE_M, ROW, THREADS = cuts.TILE_M, cuts.ROW, cuts.THREADS_OF_UMMA
ACC_STAGES = 2  # of sums in tensor memory
EPILOGUE_WARPS, MMA_WARP, LOAD_WARP, OWN_WARP = 4, 4, 5, 6


# ---------------------------------------------------------------- memory and barriers


@frozen
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


@frozen
class Tiles:
    """Stages of operands and slots of C in shared memory. a, b: as TMA fills them. a_parts, b_parts: the same as
    tcgen05.mma takes them. c: slots."""

    a: Any
    a_parts: Any
    b: Any
    b_parts: Any
    c: Any

    @staticmethod
    @traced
    def allocate(smem: Any, dtype: Any, a_matrices: Any, b_matrices: Any, c_dtype: Any, c_layout: Any) -> Any:
        """Reserve shared memory. dtype, c_dtype: the types. a_matrices, b_matrices: of `Matrices`. c_layout: of the
        slots."""
        a, a_parts = allocated(smem, dtype, a_matrices, "sA")
        b, b_parts = allocated(smem, dtype, b_matrices, "sB")
        c = smem.allocate_tensor(c_dtype, c_layout.outer, 1024, c_layout.inner, "sC")
        return Tiles(a, a_parts, b, b_parts, c)


@frozen
class Rings:
    """The two pipelines of all GEMMs. mainloop: stages of operands. results: sums in tensor memory. accumulators: the
    layout of these. more: further barriers."""

    mainloop: Any
    results: Any
    accumulators: Any
    more: Any

    @staticmethod
    @traced
    def create(smem: Any, tiled_mma: Any, cluster: Any, stages: int, beside: int = 0, more: int = 0) -> Any:
        """Make the pipelines. cluster: as of `PipelineTmaUmma`. stages: of operands. beside: bytes of a stage that are
        none of A and B. more: how many further barriers there are. All threads."""
        tile_n, ctas = tiled_mma.shape_mnk[1], cute.size(tiled_mma.thr_id)
        barriers = smem.allocate_array(cute.Int64, 2 * (stages + ACC_STAGES) + more, name="barriers")
        one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
        sharers = cute.size(cluster, mode=[1]) + cute.size(cluster, mode=[2]) - 1
        mainloop = pipeline.PipelineTmaUmma.create(
            num_stages=stages,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharers),
            tx_count=(ctas * TILE_M + tile_n) * ROW + beside,
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
        shape = (*tiled_mma.partition_shape_C((ctas * TILE_M, tile_n)), ACC_STAGES)
        return Rings(mainloop, results, tiled_mma.make_fragment_C(shape), barriers + 2 * (stages + ACC_STAGES))


@traced
def tensor_memory(smem: Any, tiled_mma: Any) -> Any:
    """Make the allocator of tensor memory, from which the first four warps allocate, and the one that multiplies
    hears."""
    return utils.TmemAllocator(
        smem.allocate_array(cute.Int32, 1),
        barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * (EPILOGUE_WARPS + 1)),
        is_two_cta=cute.size(tiled_mma.thr_id) == 2,
        two_cta_tmem_dealloc_mbar_ptr=smem.allocate_array(cute.Int64, 1),
    )


@traced
def prefetch(warp: Any, atoms: tuple[Any, ...]) -> None:
    """Let the warp that loads fetch the descriptors of TMA's atoms. warp: this one."""

    def fetch() -> None:
        for atom in atoms:
            cpasync.prefetch_descriptor(atom_of(atom))

    current().when(current().compare("==", warp, LOAD_WARP), fetch)


@traced
def leader_of(rank: Any, ctas: int) -> Any:
    """Give the rank of the CTA on whose barriers a pair's copies complete; None, if there are no pairs. rank: of this
    one."""
    return None if ctas == 1 else cute.Int32(rank) & -2


# ---------------------------------------------------------------- the warp that multiplies


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


@cute.struct
class Multiplier:
    """The warp that multiplies. Make one with `create`.

    sums: in tensor memory, of all stages. rA, rB: fragments, (V, M or N, K, stages)."""

    tiled_mma: Any
    sums: Any
    rA: Any
    rB: Any
    consumer: Any
    full: Any

    @staticmethod
    @traced
    def create(rings: Any, tmem: Any, tiled_mma: Any, acc_dtype: Any, tiles: Any) -> Any:
        """Hear where the sums are. acc_dtype: theirs. tiles: of `Tiles`. The whole warp."""
        tmem.wait_for_alloc()
        sums = cute.make_tensor(tmem.retrieve_ptr(acc_dtype), rings.accumulators.layout)
        rA, rB = tiled_mma.make_fragment_A(tiles.a_parts), tiled_mma.make_fragment_B(tiles.b_parts)
        return Multiplier(tiled_mma, sums, rA, rB, rings.mainloop.make_consumer(), rings.results.make_producer())

    def multiply(self, k_tiles, factors=None):
        """Multiply the next `k_tiles` stages of operands, to the next stage of sums. Of a pair the first one's warp
        does. factors: of both operands, what `Factors.hold` gave, or None."""
        cute.range_push("room")
        tile = self.full.acquire_and_advance()
        cute.range_pop()
        sums = self.sums[None, None, None, tile.index]
        if cute.const_expr(factors is None):
            plainly(self.consumer, self.tiled_mma, sums, self.rA, self.rB, k_tiles)
        else:
            scaled(self.consumer, self.tiled_mma, sums, self.rA, self.rB, k_tiles, factors[0], factors[1])
        tile.commit()


# ---------------------------------------------------------------- the warps that take the sums


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


@traced
def give_back(tmem: Any, ptr: Any) -> None:
    """Free tensor memory once all four warps have taken their sums. ptr: where it begins."""
    tmem.relinquish_alloc_permit()
    pipeline.NamedBarrier(2, 32 * EPILOGUE_WARPS).arrive_and_wait()
    tmem.free(ptr)


@cute.struct
class Leaving:
    """The four warps' way for whole tiles of C, where the first one of them stores what all have put. Make one with
    `create`."""

    tmem: Any
    ptr: Any
    way: Any
    ready: Any
    stores: Any
    together: Any

    @staticmethod
    @traced
    def create(
        rings: Any, tmem: Any, acc_dtype: Any, load: Any, store: Any, piece_mma: Any, slots: Any, thread: Any
    ) -> Any:
        """Allocate tensor memory, and find this thread's part. acc_dtype: of the sums. slots: of C. load, store,
        piece_mma, thread: as of `Way.create`. The four warps."""
        tmem.allocate(utils.get_num_tmem_alloc_cols(rings.accumulators))
        tmem.wait_for_alloc()
        ptr = tmem.retrieve_ptr(acc_dtype)
        ready, together = rings.results.make_consumer(), pipeline.NamedBarrier(2, 32 * EPILOGUE_WARPS)
        acc = cute.make_tensor(ptr, rings.accumulators.layout)
        way = Way.create(load, store, piece_mma, acc, slots, thread)
        stores = pipeline.PipelineTmaStore.create(
            num_stages=cute.size(slots, mode=[2]),
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * EPILOGUE_WARPS),
        )
        return Leaving(tmem, ptr, way, ready, stores, together)

    def put(self, warp, tma, shared, there, n, pieces, some):
        """Store the next tile. warp: of the four. tma, shared, there: TMA's atom, and what it copies from and to, as of
        `partition`. n: the tile's place along N. pieces: how many it has. some: whether there is anything to be
        stored."""
        tile = self.ready.wait_and_advance()
        for piece in cute.range_constexpr(pieces):
            self.way.take(piece, tile.index)
            if piece == pieces - 1:
                tile.release()
            self.put_piece(warp, tma, shared, there[None, pieces * n + piece], piece, some)

    def put_zeros(self, warp, tma, shared, there, n, pieces):
        """Store a tile of zeros, of which there are no sums. The arguments: as of `put`."""
        self.way.sums.fill(0.0)
        for piece in cute.range_constexpr(pieces):
            self.put_piece(warp, tma, shared, there[None, pieces * n + piece], piece, True)

    def put_piece(self, warp, tma, shared, there, piece, some):
        """Round this thread's sums, and store the piece, which all four warps put to the next slot."""
        for half in cute.range_constexpr(2):
            self.way.round(half, self.way.of_half(half).load())
        slot = self.fill(warp, piece)
        if warp == 0:
            if some:
                cute.copy(tma, shared[None, slot], there)
            self.stores.producer_commit()

    def fill(self, warp, piece):
        """Put this thread's rounded values of a piece to the next slot, which is then full, and give it. warp: of the
        four."""
        slot = piece % self.stores.num_stages
        if warp == 0:
            self.stores.producer_acquire()  # the slot has been read by the store before the last
        self.together.arrive_and_wait()
        self.way.put(slot)
        self.together.arrive_and_wait()
        return slot

    def tail(self, warp):
        """Wait until all pieces have been read, and give tensor memory back. warp: of the four."""
        if warp == 0:
            self.stores.producer_tail()
        give_back(self.tmem, self.ptr)
