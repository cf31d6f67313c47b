# SPDX-License-Identifier: Apache-2.0
"""Attention over a latent cache on Hopper: all heads share one row of a key, whose first columns are its value too.

A persistent CTA takes tiles of 64 rows, heads of some queries side by side. One warp brings blocks of 64 keys by TMA,
once for both products; two warpgroups have half of O's columns each. The first computes S = Q K^T and its softmax, has
P in registers for its own half of P V, and leaves it in shared memory for the other, with what rows of O are to be
multiplied with. Both halves of P V run at once: to bring keys takes longer than to multiply, and the sooner a stage is
given back the better. Halves of a block are given back one by one: while one is waited for, the other is there.
"""

import functools
from typing import NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.pipeline import Agent, CooperativeGroup

from . import masks, output, softmax, split
from .schedule import TICKETS, begin_tickets, divided, draw, next_drawn, next_told, tile_at

ROWS, KEYS = 64, 64  # of a tile
STAGES = 2
THREADS = 384
GO, FREE, CLEARED = 1, 2, 3  # named barriers: P is written, and read; values of a warpgroup's half are whole


class Form(NamedTuple):
    """Hold what the kernel knows when it is compiled.

    dtype: of all elements. latent, rope: columns of a key, of which the first are its value's too. pack: heads of a
    query that lie side by side in a tile, a power of two. across: tiles of a query's heads. causal: whether a query
    sees no key after its own. page: keys of a page, 0 if there are none. cluster: CTAs, of neighbouring tiles, that
    share their keys: each fetches a part of a block for all. draws: whether a CTA that is done draws the next tile from
    a counter, or takes every so manieth.
    """

    dtype: cute.DType
    latent: int
    rope: int
    pack: int
    across: int
    causal: bool
    page: int = 0
    cluster: int = 1
    draws: bool = True

    @property
    def half(self):
        """Columns of a value that a warpgroup has."""
        return self.latent // 2

    @property
    def queries(self):
        """Queries of a tile."""
        return ROWS // self.pack

    @property
    def chunk(self):
        """Keys that one copy brings."""
        return chunk_of(self.page)


def chunk_of(page):
    """Give how many keys one copy brings: a block of them, or as many as divide both it and a page."""
    return next(n for n in (64, 32, 16, 8) if page % n == 0)


def rows_of(dtype, rows, columns, *stages):
    """Shared memory for rows of `columns` elements, as wgmma and TMA take them."""
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, dtype)
    return cute.tile_to_shape(atom, (rows, columns, *stages), (0, 1, 2)[: 2 + len(stages)])


def layouts(form):
    """The layouts in shared memory of Q, of half a block of keys, of its last columns, and of P; and of a half as
    values, (columns, keys, stages) of the same elements."""
    dtype = form.dtype
    columns = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.MN_SW128, dtype)
    return (
        rows_of(dtype, ROWS, form.latent + form.rope),
        rows_of(dtype, KEYS, form.half, STAGES),
        rows_of(dtype, KEYS, form.rope, STAGES),
        rows_of(dtype, ROWS, KEYS),
        cute.tile_to_shape(columns, (form.half, KEYS, STAGES), (1, 0, 2)),
    )


def multiplies(form):
    """The tiled MMAs, of one warpgroup, of S = Q K^T, and of half of O = P V with P in registers and in shared
    memory."""
    smem, rmem = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
    K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
    op = warpgroup.MmaF16BF16Op
    scores = op(form.dtype, cute.Float32, (64, KEYS, 16), smem, K, K)
    values = [op(form.dtype, cute.Float32, (64, form.half, 16), of, K, MN) for of in (rmem, smem)]
    return tuple(cute.make_tiled_mma(x, (1, 1, 1)) for x in (scores, *values))


def make_kernel(form):
    """The kernel of a form."""
    dtype, half, rope, pack, across, per = form.dtype, form.half, form.rope, form.pack, form.across, form.queries
    causal, page, chunk, cluster, draws = form.causal, form.page, form.chunk, form.cluster, form.draws
    d, share = form.latent + rope, (1 << form.cluster) - 1
    scores_mma, values_mma, other_mma = multiplies(form)
    q_layout, half_layout, rope_layout, p_layout, v_layout = layouts(form)
    store_p = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
    row_bytes = KEYS * dtype.width // 8
    q_tile = pack, per

    @cuda.jit
    def tile_of(index, order, tiles):
        """The tile of a sequence that comes `index`-th, the sequence, and which part of its keys."""
        m, _, b = tile_at(index, order, False)
        part, tile = tiles.divmod(m)
        return tile, b, part

    @cuda.jit
    def length_of(used, b, keys):
        """Count the keys of sequence b."""
        if cute.const_expr(used is not None):
            keys = cute.Int32(used[b])
        return keys

    @cuda.jit
    def blocks_of(tile, queries, keys, part, splits):
        """The blocks of keys that the tiles of a cluster see, or a part of them: the first, and the one after the
        last."""
        end = cute.Int32(keys)
        if cute.const_expr(causal):
            last = ((tile + 1) * cluster - 1) // across * per + per - 1
            end = cute.Int32(max(min(keys, keys - queries + last + 1), 0))
        begin, end = cute.Int32(0), divided(end + KEYS - 1, KEYS)
        if cute.const_expr(splits is not None):
            begin, end = split.part_of(begin, end, part, splits)
        end = max(end, cute.Int32(begin + 1))  # a tile that sees no key has a block, all masked
        return arch.make_warp_uniform(begin), arch.make_warp_uniform(end)

    @cuda.jit
    def whole_of(tile, queries, keys):
        """Count the blocks that all rows of a CTA's tile see whole."""
        end = cute.Int32(keys)
        if cute.const_expr(causal):
            end = cute.Int32(max(min(keys, keys - queries + tile // across * per + 1), 0))
        return divided(end, KEYS)

    @cuda.jit
    def mask(scores, n, tile, row, column, queries, keys):
        """Leave out the scores of block n that the thread's rows, `row` and the eighth after, do not see."""
        end = cute.make_rmem_tensor(2, cute.Int32)
        for r in cute.range_constexpr(2):
            end[r] = keys - n * KEYS
            if cute.const_expr(causal):
                query = tile // across * per + (row + 8 * r) // pack
                end[r] = min(keys, keys - queries + query + 1) - n * KEYS
        masks.leave_out(scores, column, None, end)

    @cuda.jit
    def load(tma, source, target, column, stage, pages, b, n, keys):
        """Bring columns of block n of keys to a stage: at once, or a page, or a part of one, after the other."""
        for c in cute.range(KEYS // chunk, unroll=KEYS // chunk if chunk > 8 else 1):
            key, number = cute.Int32(n * KEYS + c * chunk), cute.Int32(b)
            if cute.const_expr(page > 0):
                number, key = cute.Int32(pages[b, max(0, min(key, keys - 1)) // page]), cute.Int32(key % page)
            of, to = source[None, key // chunk, column, number], target[None, c, stage.index]
            if cute.const_expr(cluster > 1):
                cute.copy(tma, of, to, tma_bar_ptr=stage.barrier, mcast_mask=share)
            else:
                cute.copy(tma, of, to, tma_bar_ptr=stage.barrier)

    @cuda.jit
    def parts(tma, tensor, shared, width, rank):
        """Partition source and target for copies of `width` columns: (…, chunk, columns, page), (…, chunk, stage)."""
        tiles = cute.local_tile(tensor, (chunk, width), (None, None, None))
        places = cute.local_tile(shared, (chunk, width), (None, 0, None))
        return cpasync.tma_partition(
            tma, rank, cute.make_layout(cluster), cute.group_modes(places, 0, 2), cute.group_modes(tiles, 0, 2)
        )

    @cuda.jit
    def multiply_scores(tQ, tL, tX, tR, acc, left, right):
        """Begin S = Q K^T. left, right: the stages of the two halves."""
        for k in cute.range_constexpr(d // 16):
            adds = scores_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
            if cute.const_expr(k < half // 16):
                cute.gemm(adds, acc, tQ[None, None, k], tL[None, None, k, left], acc)
            elif cute.const_expr(k < 2 * half // 16):
                cute.gemm(adds, acc, tQ[None, None, k], tR[None, None, k - half // 16, right], acc)
            else:
                cute.gemm(adds, acc, tQ[None, None, k], tX[None, None, k - 2 * half // 16, left], acc)
        warpgroup.commit_group()

    @cuda.jit
    def multiply_values(tiled_mma, P, tV, acc, stage, accumulate):
        """Begin O (+)= P V of a half."""
        for k in cute.range_constexpr(KEYS // 16):
            adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, accumulate or k > 0)
            cute.gemm(adds, acc, P[None, None, k], tV[None, None, k, stage], acc)
        warpgroup.commit_group()

    @cuda.jit
    def clear(sV, stage, n, keys, used, thread, cleared):
        """Zero what lies behind the last key of a half's values."""
        if cute.const_expr(used is not None):
            if (n + 1) * KEYS > keys:
                masks.clear_behind(sV[None, None, stage], cute.Int32(max(0, keys - n * KEYS)), thread, 128)
                arch.fence_proxy("async.shared", space="cta")
                cleared.arrive_and_wait()

    @cuda.jit
    def tell(n, keys, used, thread, whole, rank):
        """Tell the peers, whose copies come there next, that values are whole: one thread, after what `clear` did."""
        if cute.const_expr(cluster > 1 and used is not None):
            if (n + 1) * KEYS > keys and thread == 0:
                for i in cute.range_constexpr(1, cluster):
                    arch.mbarrier_arrive(whole, (rank + i) % cluster)

    @cuda.jit
    def following(index, seen, tickets, told, ctas):
        """The number of the CTA's next tile, and how many of which it was told."""
        if cute.const_expr(draws):
            return next_told(tickets, told, seen), seen + 1
        return index + ctas, seen

    @cuda.jit
    def row_of(tile, row, queries, heads):
        """The query and the head of a row of a tile, and whether there is one."""
        query, head = cute.Int32(tile // across * per + row // pack), cute.Int32(tile % across * pack + row % pack)
        return min(query, queries - 1), min(head, heads - 1), query < queries and head < heads

    @cuda.jit
    def leave(rO, factor, mO, w, tile, b, part, row, queries, heads, splits):
        """Write half a thread's rows of O, times `factor`. w: which half."""
        place = b if splits is None else (b, part)
        for r in cute.range_constexpr(2):
            query, head, there = row_of(tile, cute.Int32(row + 8 * r), queries, heads)
            own_row = cute.domain_offset(w * half, mO[query, None, head, place])
            if cute.const_expr(splits is None):
                output.store_row(rO, r, factor[r], own_row, there, dtype)
            elif there:
                split.store_row(rO, r, factor[r], own_row)

    @cuda.jit(launch_bounds=(THREADS, 1))
    def kernel(
        tma_q, mQ, tma_half, mHalf, tma_rope, mRope, mO, mL, counter, used, pages, splits, queries, keys, heads, tiles,
        order, scale_log2,
    ):  # fmt: skip
        tidx, _, _ = arch.thread_idx()
        warp_idx = arch.make_warp_uniform(arch.warp_idx())
        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_q)
            cpasync.prefetch_descriptor(tma_half)
            cpasync.prefetch_descriptor(tma_rope)

        smem = utils.SmemAllocator()
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sL = smem.allocate_tensor(dtype, half_layout.outer, 1024, half_layout.inner, "left half")
        sR = smem.allocate_tensor(dtype, half_layout.outer, 1024, half_layout.inner, "right half")
        sX = smem.allocate_tensor(dtype, rope_layout.outer, 1024, rope_layout.inner, "last columns")
        sP = smem.allocate_tensor(dtype, p_layout.outer, 1024, p_layout.inner, "sP")
        factors = smem.allocate_tensor(cute.Float32, cute.make_layout(ROWS), 16, None, "factors")
        one, four = CooperativeGroup(Agent.Thread), CooperativeGroup(Agent.Thread, 4)
        consumers = CooperativeGroup(Agent.Thread, 4 * cluster)
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster()) if cluster > 1 else 0
        q_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=1, producer_group=one, consumer_group=four, tx_count=row_bytes * d,
            barrier_storage=smem.allocate_array(cute.Int64, 2), defer_sync=True, name="Q",
        )  # fmt: skip
        left_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES, producer_group=one, consumer_group=consumers, tx_count=row_bytes * (half + rope),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES), tidx=tidx % 128, mcast_mode_mn=(0, 1),
            cta_layout_vmnk=cute.make_layout((1, cluster, 1, 1)), defer_sync=True, name="left half",
        )  # fmt: skip
        right_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES, producer_group=one, consumer_group=consumers, tx_count=row_bytes * half,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES), tidx=tidx % 128, mcast_mode_mn=(0, 1),
            cta_layout_vmnk=cute.make_layout((1, cluster, 1, 1)), defer_sync=True, name="right half",
        )  # fmt: skip
        tickets = smem.allocate_tensor(cute.Int32, cute.make_layout(TICKETS), 16, None, "tickets")
        told = smem.allocate_array(cute.Int64, 2 * TICKETS, name="told")
        whole = smem.allocate_array(cute.Int64, 1, name="values are whole")
        if tidx == 0:
            begin_tickets(told, 8)
            arch.mbarrier_init(whole, max(1, 2 * cluster - 2))
        pipeline.pipeline_init_arrive((cluster, 1))
        pipeline.pipeline_init_wait((cluster, 1))
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()  # what was launched before has written Q and the cache

        index, ctas = cute.Int32(arch.block_idx()[0]) // cluster, cute.Int32(arch.grid_dim()[0]) // cluster
        go, free = pipeline.NamedBarrier(GO, 256), pipeline.NamedBarrier(FREE, 256)
        thread = tidx % 128
        row, column = cute.Int32(thread // 32 * 16 + thread % 32 // 4), cute.Int32(thread % 4 * 2)

        if warp_idx < 4:
            arch.setmaxregister_decrease(56)
            if warp_idx == 0:
                loads_q, loads_left, loads_right = (
                    q_pipe.make_producer(), left_pipe.make_producer(), right_pipe.make_producer()
                )  # fmt: skip
                tLs, tLg = parts(tma_half, mHalf, sL, half, rank)
                tRs, tRg = parts(tma_half, mHalf, sR, half, rank)
                told_of = cluster > 1 and used is not None
                tXs, tXg = parts(tma_rope, mRope, sX, rope, rank)
                given, drawn, parity = cute.Int32(0), cute.Int32(0), cute.Int32(0)
                while index < order.tiles:
                    arch.sync_warp()
                    tile, b, part = tile_of(index, order, tiles)
                    length = length_of(used, b, keys)
                    begin, end = blocks_of(tile, queries, length, part, splits)
                    gQ = cute.local_tile(mQ[None, None, b], (q_tile, d), (None, 0))
                    tQs, tQg = cpasync.tma_partition(
                        tma_q, 0, cute.make_layout(1), cute.group_modes(sQ, 0, 2), cute.group_modes(gQ, 0, 2)
                    )
                    for i in cute.range(end - begin, unroll=1):
                        n = cute.Int32(end - 1 - i)
                        if cute.const_expr(told_of):
                            if i == STAGES and end * KEYS > length:  # it goes where the first block was
                                arch.mbarrier_wait(whole, parity, scope="cluster")
                        stage = loads_left.acquire_and_advance()
                        load(tma_half, tLg, tLs, 0, stage, pages, b, n, length)
                        load(tma_rope, tXg, tXs, 2 * half // rope, stage, pages, b, n, length)
                        if i == 0:
                            stage, at = loads_q.acquire_and_advance(), cute.Int32(tile * cluster + rank)
                            own = tQg[None, (at % across, at // across)]
                            cute.copy(tma_q, own, tQs, tma_bar_ptr=stage.barrier)
                        if cute.const_expr(draws):
                            if n == begin:
                                drawn = draw(counter)
                        stage = loads_right.acquire_and_advance()
                        load(tma_half, tRg, tRs, 1, stage, pages, b, n, length)
                    if cute.const_expr(told_of):
                        if end * KEYS > length:
                            if end - begin <= STAGES:
                                arch.mbarrier_wait(whole, parity, scope="cluster")
                            parity = parity ^ 1
                    if cute.const_expr(draws):
                        index = next_drawn(drawn, counter, order.tiles, ctas, tickets, told, given)
                        given += 1
                    else:
                        index += ctas
                if cute.const_expr(cluster > 1):  # a CTA whose peers have yet to give back its stages stays
                    loads_q.tail()
                    loads_left.tail()
                    loads_right.tail()

        elif warp_idx < 8:
            arch.setmaxregister_increase(224)
            tQ = scores_mma.make_fragment_A(scores_mma.get_slice(0).partition_A(sQ))
            tL = scores_mma.make_fragment_B(scores_mma.get_slice(0).partition_B(sL))
            tR = scores_mma.make_fragment_B(scores_mma.get_slice(0).partition_B(sR))
            tX = scores_mma.make_fragment_B(scores_mma.get_slice(0).partition_B(sX))
            sV = cute.make_tensor(sL.iterator, v_layout.outer)
            tV = values_mma.make_fragment_B(values_mma.get_slice(0).partition_B(sV))
            rS = scores_mma.make_fragment_C(scores_mma.partition_shape_C((ROWS, KEYS)))
            rO = values_mma.make_fragment_C(values_mma.partition_shape_C((ROWS, half)))
            rP = values_mma.make_fragment_A(values_mma.partition_shape_A((ROWS, KEYS)))
            as_p = cute.make_tensor(rS.iterator, rP.layout)
            to_p = cute.make_tiled_copy_S(store_p, cute.make_tiled_copy_C_atom(store_p, scores_mma))
            tP = to_p.get_slice(thread).partition_D(sP)
            rounded = cute.make_rmem_tensor(cute.shape(tP), dtype)
            scores = softmax.rows_of(rS)
            highest, total = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
            factor, lse = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
            cleared, grown = pipeline.NamedBarrier(CLEARED, 128), cute.Float32(softmax.GROWN)
            full_q, full_left = q_pipe.make_consumer(), left_pipe.make_consumer()
            full_right, seen = right_pipe.make_consumer(), cute.Int32(0)  # whose stages the other gives back
            while index < order.tiles:
                arch.sync_warp()
                tile, b, part = tile_of(index, order, tiles)
                length = length_of(used, b, keys)
                begin, end = blocks_of(tile, queries, length, part, splits)
                own_tile = cute.Int32(tile * cluster + rank)
                seen_whole = whole_of(own_tile, queries, length)
                for r in cute.range_constexpr(2):
                    highest[r], total[r], factor[r] = softmax.LOWEST, 0, 1
                n, adds = cute.Int32(end - 1), False
                full_left.wait()
                full_q.wait()
                full_right.wait()
                warpgroup.fence()
                multiply_scores(tQ, tL, tX, tR, rS, full_left.state.index, full_right.state.index)
                warpgroup.wait_group(0)
                while True:
                    full_right.advance()
                    if n == begin:
                        full_q.release()
                        full_q.advance()
                    if n >= seen_whole:
                        mask(scores, n, own_tile, row, column, queries, length)
                    moved = softmax.raise_maxima(scores, highest, total, factor, scale_log2, grown)
                    softmax.exponentials(scores, highest, total, scale_log2, cute.Float32(0))
                    rP.store(as_p.load().to(dtype))
                    rounded.store(rS.load().to(dtype))
                    if not moved:
                        for r in cute.range_constexpr(2):
                            factor[r] = 1
                    if moved and adds:
                        softmax.scale_rows(rO, factor)
                    clear(sV, full_left.state.index, n, length, used, thread, cleared)
                    warpgroup.fence()
                    multiply_values(values_mma, rP, tV, rO, full_left.state.index, adds)
                    tell(n, length, used, thread, whole, rank)
                    adds = True
                    free.arrive_and_wait()
                    cute.copy(to_p, rounded, tP)
                    if thread % 4 == 0:
                        for r in cute.range_constexpr(2):
                            factors[row + 8 * r] = factor[r]
                    arch.fence_proxy("async.shared", space="cta")
                    go.arrive()
                    warpgroup.wait_group(0)
                    full_left.release()
                    full_left.advance()
                    if n == begin:
                        break
                    n = cute.Int32(n - 1)
                    full_left.wait()
                    full_right.wait()
                    warpgroup.fence()
                    multiply_scores(tQ, tL, tX, tR, rS, full_left.state.index, full_right.state.index)
                    warpgroup.wait_group(0)
                softmax.finish(highest, total, factor, lse, None, cute.Float32(0))
                free.arrive_and_wait()
                if thread % 4 == 0:
                    place = b if splits is None else (b, part)
                    for r in cute.range_constexpr(2):
                        factors[row + 8 * r] = factor[r]
                        query, head, there = row_of(own_tile, cute.Int32(row + 8 * r), queries, heads)
                        if there:
                            mL[query, head, place] = lse[r]
                go.arrive()
                leave(rO, factor, mO, 0, own_tile, b, part, row, queries, heads, splits)
                index, seen = following(index, seen, tickets, told, ctas)
            free.arrive_and_wait()  # the last arrival

        else:
            arch.setmaxregister_increase(224)
            sV = cute.make_tensor(sR.iterator, v_layout.outer)
            tV = other_mma.make_fragment_B(other_mma.get_slice(0).partition_B(sV))
            tP = other_mma.make_fragment_A(other_mma.get_slice(0).partition_A(sP))
            rO = other_mma.make_fragment_C(other_mma.partition_shape_C((ROWS, half)))
            factor = cute.make_rmem_tensor(2, cute.Float32)
            cleared = pipeline.NamedBarrier(CLEARED + 1, 128)
            full_right = right_pipe.make_consumer()
            seen = cute.Int32(0)
            free.arrive()
            while index < order.tiles:
                arch.sync_warp()
                tile, b, part = tile_of(index, order, tiles)
                length = length_of(used, b, keys)
                begin, end = blocks_of(tile, queries, length, part, splits)
                own_tile = cute.Int32(tile * cluster + rank)
                n, adds = cute.Int32(end - 1), False
                while n >= begin:
                    go.arrive_and_wait()
                    full_right.wait()
                    for r in cute.range_constexpr(2):
                        factor[r] = factors[row + 8 * r]
                    if arch.vote_any_sync(factor[0] != 1 or factor[1] != 1) and adds:
                        softmax.scale_rows(rO, factor)
                    clear(sV, full_right.state.index, n, length, used, thread, cleared)
                    warpgroup.fence()
                    multiply_values(other_mma, tP, tV, rO, full_right.state.index, adds)
                    tell(n, length, used, thread, whole, rank)
                    adds = True
                    warpgroup.wait_group(0)
                    free.arrive()
                    full_right.release()
                    full_right.advance()
                    n = cute.Int32(n - 1)
                go.arrive_and_wait()
                for r in cute.range_constexpr(2):
                    factor[r] = factors[row + 8 * r]
                free.arrive()
                leave(rO, factor, mO, 1, own_tile, b, part, row, queries, heads, splits)
                index, seen = following(index, seen, tickets, told, ctas)

    return kernel if cluster == 1 else cute.cluster_shape(cluster)(kernel)


kernel_of = functools.cache(make_kernel)
