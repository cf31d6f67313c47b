# SPDX-License-Identifier: Apache-2.0
"""Attention on Hopper, forward: O = softmax(scale Q K^T) V, and the log of each row's sum of exponentials.

A persistent CTA takes tiles of queries, one after the other. One warp feeds shared memory by TMA; two or three
warpgroups have 64 rows of the tile each: S = Q K^T by wgmma into registers, its softmax there, and O += P V by wgmma
with P in registers. While a block's softmax is computed, the product of the last block's P and V runs; and the
warpgroups take turns in issuing, so that one's softmax runs beside the other's products.
"""

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.pipeline import Agent, CooperativeGroup

from . import masks, output, softmax, split
from .again import make_again
from .elements import make_elements
from .form import layouts, multiplies, order_of_p
from .schedule import TICKETS, begin_tickets, draw, next_drawn
from .walk import make_blocks, make_load, make_mask, make_next, make_ring, sequence, shifted

TURN, CLEARED = 1, 5  # named barriers: the first of those by which warpgroups take turns; values are whole


def make_kernel(form):
    """The kernel of a form."""
    dtype, d, dv, tile_m, tile_n, groups = form.dtype, form.d, form.dv, form.tile_m, form.tile_n, form.groups
    group, threads, has_left, has_right = form.group, form.threads, form.left, form.right
    turns, draws, pack, page, chunk, score = form.turns, form.draws, form.pack, form.page, form.chunk, form.score
    asked, block, ring = form.mask, form.block, form.ring
    tile_of, blocks_of, block_at, whole_of = make_blocks(form, 64)
    if ring:
        blocks_of, block_at, mask_of_ring = make_ring(form, blocks_of)
    load, mask, (following, seek) = make_load(form), make_mask(form), make_next(form, tile_of)
    row_of, change, ask = make_elements(pack, group, tile_n, score, asked)
    q_stages, stages, cluster = form.q_stages, form.stages, form.cluster
    cluster_layout = cute.make_layout((1, cluster, 1, 1))  # V, M, N, K
    producer_registers, consumer_registers = form.registers
    scores_mma, values_mma = multiplies(form)
    q_layout, k_layout, v_layout = layouts(form)
    bytes_each, step = dtype.width // 8, 256 // dtype.width
    (grown, offset), result, narrow, p_order = form.room, form.result, form.narrow, order_of_p(form)
    q_bytes, k_bytes, v_bytes = 64 * d * bytes_each, tile_n * d * bytes_each, tile_n * dv * bytes_each
    p_shape = values_mma.partition_shape_A((64, tile_n))
    lazy, again = form.lazy, make_again(form)
    q_tile = 64 if pack == 1 else (pack, 64 // pack)
    heads_of_tile = 1 if pack > 1 else group  # tile heads that share the keys and values of one

    @cuda.jit
    def scales_of(by_q, by_k, b, kv_head, scale, scale_log2):
        """Return the factors of scores, before the caller's function has them and after."""
        if cute.const_expr(by_q is None and by_k is None):
            return scale, scale_log2
        by = cute.Float32(1)
        if cute.const_expr(by_q is not None):
            by *= by_q[b, kv_head]
        if cute.const_expr(by_k is not None):
            by *= by_k[b, kv_head]
        return (scale * by, scale_log2) if score is not None else (scale, scale_log2 * by)

    @cuda.jit
    def multiply_scores(tQ, tK, acc, tile, stage):
        """Begin S = Q K^T."""
        for k in cute.range_constexpr(d // step):
            first = scores_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
            cute.gemm(first, acc, tQ[None, None, k, tile], tK[None, None, k, stage], acc)
        warpgroup.commit_group()

    @cuda.jit
    def multiply_values(rP, tV, acc, stage, accumulate):
        """Begin O (+)= P V."""
        for k in cute.range_constexpr(tile_n // step):
            adds = values_mma.set(warpgroup.Field.ACCUMULATE, accumulate or k > 0)
            cute.gemm(adds, acc, rP[None, None, k], tV[None, None, k, stage], acc)
        warpgroup.commit_group()

    @cuda.jit
    def leave(rO, factor, lse, mO, mL, cu_q, queries, m, head, b, row, part, splits):
        """Write a thread's rows of O, times `factor`, and the logs of their sums."""
        first, rows = sequence(cu_q, None, b, queries)
        own_b = 0 if cu_q is not None else b
        place = own_b if splits is None else (own_b, part)
        for r in cute.range_constexpr(2):
            query, own_head, there = row_of(cute.Int32(m * tile_m + row), r, head)
            there = there and query < rows
            own_row = mO[cute.Int32(first + min(query, cute.Int32(rows - 1))), None, own_head, place]
            if cute.const_expr(splits is None):
                output.store_row(rO, r, factor[r], own_row, there, result)
            elif there:
                split.store_row(rO, r, factor[r], own_row)
            if there and arch.lane_idx() % 4 == 0:
                mL[cute.Int32(first + query), own_head, place] = lse[r]

    @cuda.jit(launch_bounds=(threads, 1))
    def kernel(
        tma_q, mQ, tma_k, mK, tma_v, mV, mO, mL, counter, cu_q, cu_k, used, pages, sink, aux, splits, by_q, by_k,
        by_v, mask_aux, listed, queries, keys, order, left, right, scale, scale_log2,
    ):  # fmt: skip
        tidx, _, _ = arch.thread_idx()
        warp_idx = arch.make_warp_uniform(arch.warp_idx())
        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_q)
            cpasync.prefetch_descriptor(tma_k)
            cpasync.prefetch_descriptor(tma_v)

        smem = utils.SmemAllocator()
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sK = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sK")
        sV = smem.allocate_tensor(dtype, v_layout.outer, 1024, v_layout.inner, "sV")
        one, warps = CooperativeGroup(Agent.Thread), CooperativeGroup(Agent.Thread, cluster * 4 * groups)
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster()) if cluster > 1 else 0
        q_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=groups * q_stages, producer_group=one, consumer_group=CooperativeGroup(Agent.Thread, 4),
            tx_count=q_bytes, barrier_storage=smem.allocate_array(cute.Int64, 2 * groups * q_stages), defer_sync=True,
            name="Q",
        )  # fmt: skip
        k_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=stages, producer_group=one, consumer_group=warps, tx_count=k_bytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), cta_layout_vmnk=cluster_layout, tidx=tidx,
            mcast_mode_mn=(0, 1), defer_sync=True, name="K",
        )  # fmt: skip
        v_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=stages, producer_group=one, consumer_group=warps, tx_count=v_bytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), cta_layout_vmnk=cluster_layout, tidx=tidx,
            mcast_mode_mn=(0, 1), defer_sync=True, name="V",
        )  # fmt: skip
        if cute.const_expr(ring):
            others = listed.begin(smem, tidx, sK, sV)
        tickets = smem.allocate_tensor(cute.Int32, cute.make_layout(TICKETS), 16, None, "tickets")
        told = smem.allocate_array(cute.Int64, 2 * TICKETS, name="told")
        if tidx == 0:
            begin_tickets(told, 4 * groups)
        pipeline.pipeline_init_arrive((cluster, 1))
        pipeline.pipeline_init_wait((cluster, 1))
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()  # what was launched before has written Q, K and V

        tiles = order.tiles
        index, ctas = cute.Int32(arch.block_idx()[0]) // cluster, cute.Int32(arch.grid_dim()[0]) // cluster

        if warp_idx < 4:
            arch.setmaxregister_decrease(producer_registers)
            if warp_idx == 0:
                loads_q, loads_k, loads_v = q_pipe.make_producer(), k_pipe.make_producer(), v_pipe.make_producer()
                given, drawn = cute.Int32(0), cute.Int32(0)
                all_here = False
                while index < tiles:
                    arch.sync_warp()
                    m, head, b, part = tile_of(index, order, splits)
                    first_q, rows_q = sequence(cu_q, None, b, queries)
                    first_k, rows_k = sequence(cu_k, used, b, keys)
                    if cute.const_expr(cu_q is None) or m * cluster * tile_m < rows_q * pack:
                        m = m * cluster + rank
                        begin, end = blocks_of(m, head, b, rows_q, rows_k, left, right, part, splits, listed)
                        kv_head = head // heads_of_tile
                        own_q, own_k = 0 if cu_q is not None else b, 0 if cu_k is not None else b
                        gQ = cute.local_tile(
                            shifted(mQ[None, None, head, own_q], cu_q, first_q), (q_tile, d), (None, 0)
                        )
                        if cute.const_expr(page == 0):
                            gK = cute.local_tile(
                                shifted(mK[None, None, kv_head, own_k], cu_k, first_k), (tile_n, d), (None, 0)
                            )
                            gV = cute.local_tile(
                                cute.domain_offset((0, first_k), mV[None, None, kv_head, own_k]),
                                (dv, tile_n),
                                (0, None),
                            )
                            pK, pV = sK, sV
                        else:
                            gK = cute.local_tile(mK[None, None, kv_head, None], (chunk, d), (None, 0, None))
                            gV = cute.local_tile(mV[None, None, kv_head, None], (dv, chunk), (0, None, None))
                            pK = cute.local_tile(sK, (chunk, d), (None, 0, None))
                            pV = cute.local_tile(sV, (dv, chunk), (0, None, None))
                        tQsQ, tQgQ = cpasync.tma_partition(
                            tma_q, 0, cute.make_layout(1), cute.group_modes(sQ, 0, 2), cute.group_modes(gQ, 0, 2)
                        )
                        tKsK, tKgK = cpasync.tma_partition(
                            tma_k,
                            rank,
                            cute.make_layout(cluster),
                            cute.group_modes(pK, 0, 2),
                            cute.group_modes(gK, 0, 2),
                        )
                        tVsV, tVgV = cpasync.tma_partition(
                            tma_v,
                            rank,
                            cute.make_layout(cluster),
                            cute.group_modes(pV, 0, 2),
                            cute.group_modes(gV, 0, 2),
                        )
                        blocks, of_v, source_of_v = cute.Int32(end - begin), cute.Int32(0), cute.Int32(0)
                        for i in cute.range(blocks + 1, unroll=1):  # V's blocks follow K's
                            n = cute.Int32(end - 1 - i)
                            if i < blocks:
                                n, source = block_at(n, m, head, b, listed)
                                if cute.const_expr(ring):  # before a stage is free, beside the products
                                    if source >= 0 and not all_here:
                                        if source != source_of_v:  # the first of its chunk
                                            all_here = others.have_all()
                                        if not all_here:
                                            others.await_block(n, source, kv_head, b)
                                stage = loads_k.acquire_and_advance()
                                if cute.const_expr(ring):
                                    others.load_k(tma_k, tKgK, n, source, kv_head, b, stage)
                                else:
                                    load(tma_k, tKgK, tKsK, stage.index, stage, pages, b, n, rows_k)
                            if i == 0:
                                for part_of_q in cute.range(groups, unroll=1):
                                    stage = loads_q.acquire_and_advance()
                                    at = m * groups + part_of_q
                                    cute.copy(tma_q, tQgQ[None, at], tQsQ[None, stage.index], tma_bar_ptr=stage.barrier)
                            else:
                                if cute.const_expr(draws):
                                    if i == blocks:
                                        drawn = draw(counter)
                                stage = loads_v.acquire_and_advance()
                                if cute.const_expr(ring):
                                    others.load_v(tma_v, tVgV, of_v, source_of_v, kv_head, b, stage)
                                else:
                                    load(tma_v, tVgV, tVsV, stage.index, stage, pages, b,
                                         n + 1 if block is None else of_v, rows_k)  # fmt: skip
                            if cute.const_expr(block is not None or ring):
                                of_v = n
                            if cute.const_expr(ring):
                                source_of_v = source
                    elif cute.const_expr(draws):
                        drawn = draw(counter)
                    if cute.const_expr(draws):
                        index = next_drawn(drawn, counter, tiles, ctas, tickets, told, given)
                        given += 1
                    else:
                        index += ctas
                if cute.const_expr(cluster > 1):  # a CTA whose peers have yet to give back its stages stays
                    loads_q.tail()
                    loads_k.tail()
                    loads_v.tail()
            if cute.const_expr(ring):
                if warp_idx == 1:
                    others.talk()

        else:
            arch.setmaxregister_increase(consumer_registers)
            w = cute.Int32((warp_idx - 4) // 4)  # which consumer warpgroup: rows 64 * w of the tile
            thread = tidx % 128
            tQ = scores_mma.make_fragment_A(scores_mma.get_slice(0).partition_A(sQ))
            tK = scores_mma.make_fragment_B(scores_mma.get_slice(0).partition_B(sK))
            tV = values_mma.make_fragment_B(values_mma.get_slice(0).partition_B(sV))
            rS = scores_mma.make_fragment_C(scores_mma.partition_shape_C((64, tile_n)))
            rO = values_mma.make_fragment_C(values_mma.partition_shape_C((64, dv)))
            rP = values_mma.make_fragment_A(p_shape)
            as_p = cute.make_tensor(rS.iterator, rP.layout if p_order is None else p_order)
            scores = softmax.rows_of(rS)
            highest, total = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
            factor, lse = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
            sinks = cute.make_rmem_tensor(2, cute.Float32)
            row = cute.Int32(64 * w + thread // 32 * 16 + thread % 32 // 4)  # of the tile: this thread's first
            column = cute.Int32(thread % 4 * 2)

            mine = pipeline.NamedBarrier(TURN + w, 256)
            next_one = pipeline.NamedBarrier(cute.where(w < groups - 1, TURN + 1 + w, TURN), 256)
            everybody = pipeline.NamedBarrier(CLEARED, 128 * groups)
            if cute.const_expr(turns):
                if w == groups - 1:
                    next_one.arrive()  # the first warpgroup begins

            full_q, full_k, full_v = q_pipe.make_consumer(), k_pipe.make_consumer(), v_pipe.make_consumer()
            for _ in cute.range(w, unroll=1):
                full_q.advance()
            index, seen = seek(index, cute.Int32(0), tickets, told, cu_q, queries, splits, order, ctas)
            if index < tiles:
                full_k.wait()
                full_q.wait()
                if cute.const_expr(turns):
                    mine.arrive_and_wait()
                warpgroup.fence()
                multiply_scores(tQ, tK, rS, full_q.state.index, full_k.state.index)
                if cute.const_expr(turns):
                    next_one.arrive()
                warpgroup.wait_group(0)
                if cute.const_expr(not lazy):
                    full_k.release()
                    full_k.advance()
                while True:
                    arch.sync_warp()
                    m, head, b, part = tile_of(index, order, splits)
                    _, rows_q = sequence(cu_q, None, b, queries)
                    _, rows_k = sequence(cu_k, used, b, keys)
                    m = m * cluster + rank
                    begin, end = blocks_of(m, head, b, rows_q, rows_k, left, right, part, splits, listed)
                    whole_begin, whole_end = whole_of(m * tile_m + 64 * w, rows_q, rows_k, left, right)
                    begin, end = arch.make_warp_uniform(begin), arch.make_warp_uniform(end)
                    place = cute.Int32(m * tile_m + row)
                    own_scale, own_log2 = scales_of(by_q, by_k, b, head // heads_of_tile, scale, scale_log2)
                    for r in cute.range_constexpr(2):
                        highest[r], total[r] = softmax.LOWEST, 0
                    if cute.const_expr(not lazy):
                        if end - begin == 1:
                            full_q.release()
                    last, partial = block_at(end - 1, m, head, b, listed)
                    if cute.const_expr(not narrow and (cu_k is not None or used is not None)):
                        after = end if block is None else last + 1
                        if after * tile_n > rows_k:  # there is something behind the last key
                            stage_v = full_v.wait()
                            beyond = max(0, rows_k - (after - 1) * tile_n)
                            masks.clear_behind(sV[None, None, stage_v.index], beyond, tidx - 128, 128 * groups)
                            arch.fence_proxy("async.shared", space="cta")
                            everybody.arrive_and_wait()
                    if cute.const_expr(score is not None):
                        change(scores, last, place, column, b, head, aux, own_scale, rows_q, rows_k)
                    if cute.const_expr(asked is not None):
                        if partial:
                            ask(scores, last, place, column, b, head, mask_aux, rows_q, rows_k)
                    mask(scores, last, place, column, rows_q, rows_k, left, right)

                    at_q = arch.make_warp_uniform(full_q.state.index)
                    at, n, adds = cute.Int32(end - 1), cute.Int32(last), False
                    exact, masked = True, True  # whether maxima are found: where a row may have none yet
                    ask_at = at  # of a ring, the next place at which to ask what is seen
                    while True:
                        moved = False
                        if cute.const_expr(lazy):
                            while True:
                                if exact:
                                    moved = softmax.raise_maxima(
                                        scores, highest, total, factor, own_log2, cute.Float32(grown)
                                    )
                                if not softmax.exponentials_below(
                                    scores, highest, total, own_log2, cute.Float32(offset), cute.Float32(softmax.MOST)
                                ):
                                    break
                                again(sQ, sK, rS, at_q, full_k.state.index, tidx % 128)
                                exact = True
                            if at == begin:
                                full_q.release()
                            full_k.release()
                            full_k.advance()
                        else:
                            moved = softmax.raise_maxima(scores, highest, total, factor, own_log2, cute.Float32(grown))
                            softmax.exponentials(scores, highest, total, own_log2, cute.Float32(offset))
                        warpgroup.wait_group(0, after=total)  # the softmax runs beside P V
                        if adds:
                            full_v.release()
                            full_v.advance()
                        rP.store(as_p.load().to(dtype))
                        if moved and adds:
                            softmax.scale_rows(rO, factor)
                        if at == begin:
                            break
                        at = cute.Int32(at - 1)
                        if cute.const_expr(not ring):
                            n, partial = block_at(at, m, head, b, listed)
                        full_k.wait()
                        if cute.const_expr(turns):
                            mine.arrive_and_wait()
                        warpgroup.fence()
                        multiply_scores(tQ, tK, rS, at_q, full_k.state.index)
                        full_v.wait()
                        warpgroup.fence()
                        multiply_values(rP, tV, rO, full_v.state.index, adds)
                        adds = True
                        warpgroup.wait_group(1)
                        if cute.const_expr(turns):
                            next_one.arrive()
                        if cute.const_expr(not lazy):
                            full_k.release()
                            full_k.advance()
                            if at == begin:
                                full_q.release()
                        if cute.const_expr(score is not None):
                            change(scores, n, place, column, b, head, aux, own_scale, rows_q, rows_k)
                        if cute.const_expr(asked is not None):
                            if partial:
                                ask(scores, n, place, column, b, head, mask_aux, rows_q, rows_k)
                        if cute.const_expr(ring):
                            if at <= ask_at:
                                first = m * tile_m + 64 * w
                                ask_at = mask_of_ring(
                                    scores, at, first, whole_end, place, column, rows_k, listed
                                )  # fmt: skip
                        elif cute.const_expr(has_right or has_left):
                            exact = masked
                            masked = n >= whole_end or n < whole_begin
                            if masked:
                                exact = True
                                mask(scores, n, place, column, rows_q, rows_k, left, right)
                        else:
                            exact = False

                    if cute.const_expr(sink is not None):
                        for r in cute.range_constexpr(2):
                            _, own_head, _ = row_of(place, r, head)
                            sinks[r] = sink[own_head]
                    of_sinks = None if sink is None else sinks
                    softmax.finish(highest, total, factor, lse, of_sinks, cute.Float32(offset))
                    if cute.const_expr(by_v is not None):
                        for r in cute.range_constexpr(2):
                            factor[r] *= by_v[b, head // heads_of_tile]
                    for _ in cute.range_constexpr(groups):
                        full_q.advance()
                    index, seen = following(index, seen, tickets, told, ctas)
                    index, seen = seek(index, seen, tickets, told, cu_q, queries, splits, order, ctas)
                    more = index < tiles

                    # The last P V, and the first Q K^T of the next tile, beside which O leaves. After the last tile
                    # Q K^T is of what stands in shared memory, and dropped: in a branch it would serialise the rest.
                    full_v.wait()
                    warpgroup.fence()
                    multiply_values(rP, tV, rO, full_v.state.index, adds)
                    at_q, at_k = w, cute.Int32(0)
                    if more:
                        full_k.wait()
                        full_q.wait()
                        at_q, at_k = full_q.state.index, full_k.state.index
                        if cute.const_expr(turns):
                            mine.arrive_and_wait()
                    warpgroup.fence()
                    multiply_scores(tQ, tK, rS, at_q, at_k)
                    if cute.const_expr(turns):
                        if more:
                            next_one.arrive()
                    warpgroup.wait_group(1)
                    full_v.release()
                    full_v.advance()
                    leave(rO, factor, lse, mO, mL, cu_q, queries, m, head, b, row, part, splits)
                    warpgroup.wait_group(0)
                    if not more:
                        break
                    if cute.const_expr(not lazy):
                        full_k.release()
                        full_k.advance()

            if cute.const_expr(turns):
                if w == 0:
                    mine.arrive_and_wait()  # the last arrival

    return kernel if cluster == 1 else cute.cluster_shape(cluster)(kernel)


kernel_of = functools.cache(make_kernel)
