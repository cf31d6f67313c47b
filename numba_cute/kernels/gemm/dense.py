# SPDX-License-Identifier: Apache-2.0
"""A Hopper GEMM in one plain @cuda.jit kernel: C = f(A @ B.T), with A (M, K), B (N, K), and f the epilogue.

Persistent and warp-specialised. Of three warpgroups one feeds shared memory by TMA: its first warp the operands, its
second and third what the epilogues of the two others take, and they store what these give. The other two multiply with
wgmma, 64 rows of a tile each, and work on their sums in registers. They meet only at barriers in shared memory, so that
one may multiply while the other writes.

CTAs of a cluster share each tile of B by multicast (those along its first mode), or the products along K (those along
its second): each of these sums a part of K, reads the others' sums of its own columns from their shared memory, and
adds them in order. `plan.py` says how a problem is cut, `epilogue.py` what f may be.
"""

from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.seam import current, traced

from .indexed import gather, store_piece
from .multiply import release
from .output import Pieces, of_warpgroup, partition
from .shares import apart_of, part_of_k, share_of, steps_of

TILE_M, ROW = 128, 128  # ROW bytes along K make a tile: one swizzle
K_BLOCKS = ROW // 32  # a wgmma takes 32 bytes of K
THREADS, CONSUMER_WARPS = 384, 8
LOADS = 32  # of four sums of a thread, which are on their way at once


@traced
def tiles_of(tensor, tile):
    """Cut a matrix, or a batch of them, into tiles; of modes that make K the first is cut."""
    rows, columns = tile
    more = cute.rank(tensor.layout, mode=[1]) - 1 if type(tensor.shape[1]) is tuple else 0
    return cute.local_tile(tensor, (rows, (columns, *(1,) * more) if more else columns), (None,) * cute.rank(tensor))


@traced
def at(tensor, *place):
    """Give the tile of a tensor of tiles at a place, of which a tensor without a batch has one coordinate less."""
    return tensor[(None, *place)[: cute.rank(tensor)]]


@traced
def fill(epilogue, pieces, vectors, slot, row, column, batch, store_n, tma_d, matrix):
    """Bring what the epilogue takes of a piece of C to a slot, which is then full. A whole warp."""
    place = epilogue.place(64 * row, store_n * column, batch, 0, store_n)
    epilogue.fetch(place, vectors, slot, arch.lane_idx(), 32)
    barrier = pieces.sync_object_full.get_barrier(slot)
    if tma_d is not None:
        shared, there = matrix
        nbytes = 64 * store_n * shared.element_type.width // 8
        current().when(arch.elect_one(), lambda: arch.mbarrier_expect_tx(barrier, nbytes))
        cute.copy(tma_d, at(there, row, column, batch), shared[None, slot // 2], tma_bar_ptr=barrier)
    arch.sync_warp()
    pieces.sync_object_full.arrive(slot)


@traced
def put_sums(acc, shared_sums, thread):
    """Write this thread's sums to shared memory, and wait until all CTAs of the cluster have written theirs."""
    pipeline.NamedBarrier(1, 2 * 128).arrive_and_wait()  # both warpgroups have multiplied
    fours = cute.make_tensor(acc.iterator, cute.make_layout((4, cute.size(acc) // 4)))
    for i in range(cute.size(acc) // 4):
        cute.autovec_copy(fours[None, i], shared_sums[None, thread, i])
    arch.cluster_arrive()
    arch.cluster_wait()


@traced
def get_sums(shared_sums: Any, thread: Any, piece: Any, sharer: Any, cluster: Any, like: Any) -> Any:
    """Add the sums of a piece of all CTAs that share K, in order: this thread's, a tensor like `like`."""
    sharers, parts = cluster.shape[1], cluster.shape[2]
    fours = cute.size(like) // 4
    sums: Any = cute.make_rmem_tensor(cute.size(like), like.element_type)
    peers: list[Any] = []
    for peer in range(parts):
        there = arch.map_dsmem_ptr(shared_sums.iterator, peer * sharers + sharer)
        peers.append(cute.make_tensor(there, shared_sums.layout))
    for i in range(fours):
        total: Any = None
        for peer in peers:
            got = arch.load(peer[None, thread, piece * fours + i].iterator, like.element_type, ss="cluster", count=4)
            total = got if total is None else tuple(a + b for a, b in zip(total, got))
        for j in range(4):
            sums[4 * i + j] = total[j]
    return sums


@traced
def put_partial(sums, partial, thread, piece):
    """Write this thread's sums of a piece to global memory. partial: (4, threads, fours) of this CTA."""
    fours = cute.size(sums) // 4
    source = cute.make_tensor(sums.iterator, cute.make_layout((4, fours)))
    for i in range(fours):
        cute.autovec_copy(source[None, i], partial[None, thread, piece * fours + i])


@traced
def get_partial(sums: Any, partial: Any, thread: Any, piece: int, first: Any, count: int) -> None:
    """Add to this thread's sums of a piece those of `count` sharers, in order, from `first` on. partial: (4, threads,
    fours, splits)."""
    fours = cute.size(sums) // 4
    for i in range(fours if count else 0):
        total: Any = tuple(sums[4 * i + j] for j in range(4))
        for split in range(count):
            there = partial[None, thread, piece * fours + i, first + split].iterator
            got = arch.load(there, sums.element_type, cop="cg", count=4)
            total = tuple(a + b for a, b in zip(total, got))
        for j in range(4):
            sums[4 * i + j] = total[j]


@traced
def at_once_of(splits: int, most: int) -> int:
    """Count the sharers whose sums are read in one turn. most: of a loop's turn. One turn alone is not a loop, and the
    loads of the rest come with its own, for half as many more of which there are registers: or there are two turns."""
    if splits <= most + most // 2:
        return splits
    return max(1, most if splits >= 2 * most else splits // 2)


@traced
def is_last(ticket: Any, splits: Any, flags: Any, turn: Any, thread: Any, all_of_them: Any) -> Any:
    """Say whether all others that share K of this CTA's columns have written their sums. All threads that have sums,
    which meet at the barrier `all_of_them`. flags, turn: the one of two that says it to the warp that stores, which may
    still look at the other one, of the tile before."""
    all_of_them.arrive_and_wait()

    def draw() -> None:
        before = arch.atomic_add(ticket, 1, sem="acq_rel")
        flags[turn] = before
        current().when(
            current().compare("==", before, splits - 1), lambda: arch.atomic_exch(ticket, 0)
        )  # for the next launch

    current().when(current().compare("==", thread, 0), draw)
    all_of_them.arrive_and_wait()
    return current().compare("==", flags[turn], splits - 1)


@cute.cluster_shape(2, 1)
@cuda.jit(launch_bounds=(THREADS, 1))
def gemm(
    dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, piece_mma, store, a_layout, b_layout, c_layout,
    cluster, schedule, epilogue, tma_d, mD, partials, tickets, exchange, totals,
):  # fmt: skip
    gathers, scatters = mA is None, mC is None  # threads read A's rows, and write C's: the atom is a Rows
    tile_n = tiled_mma.shape_mnk[1]
    sharers, parts = cluster.shape[1], cluster.shape[2]  # CTAs that share B, and those that share K
    tidx, _, _ = arch.thread_idx()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    sharer = rank if cute.const_expr(parts == 1) else rank % sharers
    part = 0 if cute.const_expr(parts == 1) else rank // sharers
    if warp_idx == 0:
        if cute.const_expr(not gathers):
            cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
        if cute.const_expr(not scatters):
            cpasync.prefetch_descriptor(tma_c)

    stages, slots = cute.size(a_layout, mode=[2]), cute.size(c_layout, mode=[2])
    store_n = cute.size(c_layout, mode=[1])
    k_kept = cute.size(b_layout, mode=[2])
    kept = k_kept != stages  # all K tiles of B, which has one tile of columns, are loaded once and stay
    loaded_once, more_barriers = (tile_n * ROW, 2) if cute.const_expr(kept) else (0, 0)
    if cute.const_expr(gathers):
        loaded_once, more_barriers = TILE_M * ROW, 2 * stages
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(dtype, a_layout.outer, 1024, a_layout.inner, "sA")
    sB = smem.allocate_tensor(dtype, b_layout.outer, 1024, b_layout.inner, "sB")
    sC = smem.allocate_tensor(c_dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    splits = 1 if cute.const_expr(partials is None) else cute.size(partials, mode=[3])
    apart = apart_of(schedule)
    all_shared = cute.const_expr(splits > 1 and schedule.all_shared)
    flags = smem.allocate_tensor(cute.Int32, cute.make_layout(4), 16, None, "flags")
    vectors = epilogue.allocate(smem, store_n, 2 * slots)
    barriers = smem.allocate_array(cute.Int64, 2 * stages + 4 * slots + more_barriers, name="barriers")
    if cute.const_expr(exchange.brings or exchange.sends):
        arch.griddepcontrol_wait()  # the launch before has counted itself
        others = exchange.begin(smem, tidx)
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharers * CONSUMER_WARPS),
        tx_count=(TILE_M + tile_n) * ROW - loaded_once,
        barrier_storage=barriers,
        cta_layout_vmnk=cluster,
        tidx=tidx,
        mcast_mode_mn=(0, 1),  # B, along M
        defer_sync=True,
        name="mainloop",
    )
    # A slot holds a piece of C of 64 rows: what the epilogue takes comes there, what it gives leaves from there.
    # Each consumer warpgroup has every other slot.
    pieces = pipeline.PipelineTmaAsync.create(
        num_stages=2 * slots,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMER_WARPS // 2),
        tx_count=None,
        barrier_storage=barriers + 2 * stages,
        tidx=tidx,
        defer_sync=True,
        name="pieces",
    )
    if cute.const_expr(kept):
        whole = pipeline.PipelineTmaAsync.create(
            num_stages=1,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMER_WARPS),
            tx_count=k_kept * tile_n * ROW,
            barrier_storage=barriers + 2 * stages + 4 * slots,
            tidx=tidx,
            defer_sync=True,
            name="whole",
        )
    if cute.const_expr(gathers):
        gathered = pipeline.PipelineTmaAsync.create(
            num_stages=stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMER_WARPS),
            tx_count=None,
            barrier_storage=barriers + 2 * stages + 4 * slots,
            tidx=tidx,
            defer_sync=True,
            name="gathered",
        )
    pipeline.pipeline_init_arrive(cluster.shape)
    pipeline.pipeline_init_wait(cluster.shape)
    producer, consumer = mainloop.make_participants()
    steps = steps_of(schedule, arch.block_idx(), arch.grid_dim())
    scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), steps)
    work = scheduler.initial_work_tile_info()

    # What TMA copies: A's tile to this CTA alone; of B's tile this CTA fetches its part, for all that share it.
    tile_k = 8 * ROW // dtype.width
    gB = tiles_of(mB, (tile_n, tile_k))
    if cute.const_expr(not scatters):
        gC = tiles_of(mC, (64, store_n))
    if cute.const_expr(not gathers):
        tAsA, tAgA = partition(tma_a, sA, tiles_of(mA, (TILE_M, tile_k)))
    if cute.const_expr(exchange.brings):  # of this GPU's own rows, which need not come
        _, own_tiles = partition(exchange.tma_own, sA, tiles_of(exchange.own, (TILE_M, tile_k)))
    tBsB, tBgB = partition(tma_b, sB, gB, sharer, sharers)
    k_tiles = cute.size(tBgB if cute.const_expr(gathers) else tAgA, mode=[2])
    own_pieces = tile_n // epilogue.spread // store_n // parts  # of C's, those that this CTA makes
    tile_pieces = own_pieces * parts
    share = None if sharers == 1 else ((1 << sharers) - 1) << (part * sharers)
    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written A and B

    if warp_idx < 4:
        arch.setmaxregister_decrease(exchange.registers[0])
        if cute.const_expr(parts > 1):
            arch.cluster_arrive()
        if warp_idx == 0:
            if cute.const_expr(kept):
                stage = whole.make_producer().acquire_and_advance()
                for k in range(k_kept):
                    cute.copy(tma_b, at(tBgB, 0, k, 0), tBsB[None, k], tma_bar_ptr=stage.barrier)
                stage.commit()
            while work.is_valid_tile:
                m, n, layer = work.tile_idx
                batch, split = share_of(layer, splits, apart)
                first_k, end_k = part_of_k(k_tiles, split, splits, part, parts, schedule)
                if cute.const_expr(exchange.brings):
                    others.await_rows(m, batch)
                for k in range(cute.Int32(first_k), cute.Int32(end_k)):
                    cute.range_push("acquire", k)
                    stage = producer.acquire_and_advance()
                    cute.range_pop()
                    cute.range_push("load", k)
                    if cute.const_expr(exchange.brings):
                        if batch == exchange.rank:
                            cute.copy(
                                exchange.tma_own, at(own_tiles, m, k, batch), tAsA[None, stage.index],
                                tma_bar_ptr=stage.barrier,
                            )  # fmt: skip
                        else:
                            cute.copy(tma_a, at(tAgA, m, k, batch), tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                    elif cute.const_expr(not gathers):
                        cute.copy(tma_a, at(tAgA, m, k, batch), tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                    if cute.const_expr(not kept):
                        cute.copy(
                            tma_b, at(tBgB, n, k, batch), tBsB[None, stage.index], tma_bar_ptr=stage.barrier,
                            mcast_mask=share,
                        )  # fmt: skip
                    stage.commit()
                    cute.range_pop()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            producer.tail()
        elif cute.const_expr(exchange.sends):
            copies = tma_c, totals[0], totals[1]
            others.store_or_talk(warp_idx, scheduler, pieces, sC, copies, own_pieces)
        elif warp_idx < 3:
            group = cute.Int32(warp_idx - 1)  # of which consumer warpgroup: rows 64 * group of the tile
            sC_group = of_warpgroup(sC, group)
            if cute.const_expr(not scatters):
                tCsC, tCgC = partition(tma_c, sC_group, gC)
            lag = 1 if slots > 1 else 0  # a slot is filled again while the next one is stored
            matrix = None
            if cute.const_expr(tma_d is not None):
                matrix = partition(tma_d, sC_group, tiles_of(mD, (64, store_n)))
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2 * slots)
            if group == 1:
                state.advance()
            m, n, layer = work.tile_idx
            batch, split = share_of(layer, splits, apart)
            for piece in cute.range_constexpr(slots):
                column = tile_pieces * n + part * own_pieces + piece
                fill(epilogue, pieces, vectors, 2 * piece + group, 2 * m + group, column, batch, store_n, tma_d, matrix)
            while work.is_valid_tile:
                m, n, layer = work.tile_idx
                batch, split = share_of(layer, splits, apart)
                for piece in cute.range_constexpr(own_pieces):
                    pieces.producer_acquire(state)  # what the consumers made is there
                    state.advance()
                    state.advance()
                    column = tile_pieces * n + part * own_pieces + piece
                    turn = scheduler.num_tiles_executed % 2
                    if cute.const_expr(splits == 1) or split == splits or flags[turn] == splits - 1:
                        if cute.const_expr(scatters):
                            shared = sC_group[None, None, piece % slots]
                            store_piece(tma_c, shared, 64 * (2 * m + group), store_n * column, batch)
                        else:
                            cute.copy(tma_c, tCsC[None, piece % slots], at(tCgC, 2 * m + group, column, batch))
                    arch.cp_async_bulk_commit_group()
                    if cute.const_expr(lag <= piece and piece - lag + slots < own_pieces):  # that has left its slot
                        arch.cp_async_bulk_wait_group(lag, read=True)
                        slot = 2 * ((piece - lag) % slots) + group
                        fill(
                            epilogue, pieces, vectors, slot, 2 * m + group, column + slots - lag, batch, store_n,
                            tma_d, matrix,
                        )  # fmt: skip
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
                arch.cp_async_bulk_wait_group(0, read=True)
                if work.is_valid_tile:
                    m, n, layer = work.tile_idx
                    batch, split = share_of(layer, splits, apart)
                    for piece in cute.range_constexpr(slots):
                        column = tile_pieces * n + part * own_pieces + piece
                        slot = 2 * piece + group
                        fill(epilogue, pieces, vectors, slot, 2 * m + group, column, batch, store_n, tma_d, matrix)
        elif cute.const_expr(gathers):
            gather(tma_a, gathered, sA, scheduler, splits, part, parts, k_tiles)
        elif cute.const_expr(exchange.brings):
            others.talk()
        if cute.const_expr(parts > 1):
            arch.cluster_wait()
            arch.cluster_arrive()
            arch.cluster_wait()
    else:
        arch.setmaxregister_increase(exchange.registers[1])
        group = cute.Int32((warp_idx - 4) // 4)
        mma = tiled_mma.get_slice(cute.Int32(group * 128))
        adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        tCrA = tiled_mma.make_fragment_A(mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(mma.partition_B(sB))
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_M, tile_n)))
        own = Pieces.create(store, piece_mma, sC, cute.Int32(tidx - 128))
        tCsD = piece_mma.get_slice(cute.Int32(tidx - 128)).partition_C(sC)
        sums_of_piece = store_n * epilogue.spread // 2  # of this thread
        all_sums = cute.make_tensor(acc.iterator, cute.make_layout((sums_of_piece, tile_pieces)))
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2 * slots)
        if group == 1:
            state.advance()

        if cute.const_expr(kept):
            whole.make_consumer().wait_and_advance()
        if cute.const_expr(gathers):
            of_a, done_a = gathered.make_consumer(), gathered.make_consumer()
        while work.is_valid_tile:
            m, n, layer = work.tile_idx
            batch, split = share_of(layer, splits, apart)
            first_k, end_k = part_of_k(k_tiles, split, splits, part, parts, schedule)
            previous = consumer.wait()
            for k in range(first_k, end_k):
                cute.range_push("wait", k)
                stage = consumer.wait_and_advance()
                if cute.const_expr(gathers):
                    of_a.wait_and_advance()
                cute.range_pop()
                cute.range_push("multiply", k)
                warpgroup.fence()
                first = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > first_k)
                of_b = stage.index if cute.const_expr(not kept) else k
                cute.gemm(first, acc, tCrA[None, None, 0, stage.index], tCrB[None, None, 0, of_b], acc)
                for kb in cute.range_constexpr(1, K_BLOCKS):
                    cute.gemm(adds, acc, tCrA[None, None, kb, stage.index], tCrB[None, None, kb, of_b], acc)
                warpgroup.commit_group()
                warpgroup.wait_group(1)  # the tensor cores may still read this stage, but not the one before
                if k > first_k:
                    previous.release()
                    if cute.const_expr(gathers):
                        release(done_a)
                previous = stage
                cute.range_pop()
            cute.range_push("drain")
            warpgroup.wait_group(0)
            previous.release()
            if cute.const_expr(gathers):
                release(done_a)
            cute.range_pop()
            cute.range_push("epilogue", m)

            if cute.const_expr(parts > 1):  # one tile for each CTA: the operands' memory is free
                shared_sums = cute.make_tensor(
                    cute.recast_ptr(sA.iterator, dtype=acc.element_type),
                    cute.make_layout((4, 2 * 128, cute.size(acc) // 4)),
                )
                put_sums(acc, shared_sums, tidx - 128)
            finishes = True
            if cute.const_expr(splits > 1):
                tile = schedule.place(scheduler.current_work_linear_idx) * (sharers * parts) + rank
                partial = partials[None, None, None, None, tile]
                if cute.const_expr(all_shared) or split < splits:
                    for piece in cute.range_constexpr(own_pieces):
                        sums = all_sums[None, piece]
                        if cute.const_expr(parts > 1):
                            sums = get_sums(shared_sums, tidx - 128, part * own_pieces + piece, sharer, cluster, sums)
                        put_partial(sums, partial[None, None, None, split], tidx - 128, piece)
                    finishes = is_last(
                        tickets.iterator + tile,
                        splits,
                        flags,
                        scheduler.num_tiles_executed % 2,
                        tidx - 128,
                        pipeline.NamedBarrier(1, 2 * 128),
                    )
            for piece in cute.range_constexpr(own_pieces):
                pieces.consumer_wait(state)
                if cute.const_expr(splits == 1) or finishes:
                    sums = all_sums[None, piece]
                    if cute.const_expr(splits > 1):
                        if cute.const_expr(all_shared) or split < splits:
                            sums.fill(0)
                            most = LOADS if all_shared else LOADS // 2  # other pieces' sums are in registers too
                            at_once = at_once_of(splits, 4 * most // sums_of_piece)
                            for turn in cute.range(splits // at_once, unroll=1):  # or all loads would come first
                                get_partial(sums, partial, tidx - 128, piece, turn * at_once, at_once)
                            rest = splits % at_once
                            get_partial(sums, partial, tidx - 128, piece, splits - rest, rest)
                    elif cute.const_expr(parts > 1):
                        sums = get_sums(shared_sums, tidx - 128, part * own_pieces + piece, sharer, cluster, sums)
                    column = tile_pieces * n + part * own_pieces + piece
                    place = epilogue.place(64 * (2 * m + group), store_n * column, batch, tidx % 128, store_n)
                    if cute.const_expr(exchange.sends):
                        others.add_parts(sums, batch, pieces, state, tCsD)
                    made = epilogue.apply(sums, place, vectors, tCsD[None, 0, 0, piece % slots], state.index)
                    own.hold(made)
                    if cute.const_expr(tma_d is not None or exchange.sends):
                        arch.sync_warp()  # all lanes have read what is overwritten
                    if cute.const_expr(exchange.sends):
                        own.put(exchange.slot_of(state, piece, slots))
                    else:
                        own.put(piece % slots)
                arch.sync_warp()
                pieces.consumer_release(state)
                state.advance()
                state.advance()
            cute.range_pop()
            if cute.const_expr(parts > 1 or all_shared):
                break  # there is no other tile: or the registers of `acc` are kept for its first product
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        if cute.const_expr(exchange.sends):
            others.finish(totals[2], tidx - 128)
        if cute.const_expr(parts > 1):
            arch.cluster_arrive()  # the others' sums have been read
            arch.cluster_wait()
