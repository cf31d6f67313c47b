# SPDX-License-Identifier: Apache-2.0
"""The kernel for dQ of attention's wide backward pass: a CTA has 128 queries, 64 of each warpgroup, and keys and values
stream by. What it shares with the kernel for dK and dV, and why there are two, is in `backward_wide.py`."""

from __future__ import annotations

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import warp, warpgroup

from . import masks, softmax, visits
from .backward_rows import TILE, bent, load_rows, pipe_of, put, sequence, stream, stream_rows, tiles_of
from .backward_tiles import load_tile, multiply, rows_of, turned
from .backward_wide import REGISTERS, REGISTERS_OF_LISTS, THREADS, WRITTEN, multiplies
from .elements import kept, make_elements, within
from .schedule import tile_at


@functools.cache
def make_queries_kernel(form):
    """The kernel for dQ. Its grid: clusters for pairs of tiles of 128 queries, heads and batches."""
    dtype, d, dv, causal, left, score, lengths, cluster, mask, block, _ = form
    per_block = 1 if block is None else block[1] // TILE
    producer_registers, consumer_registers = REGISTERS if block is None else REGISTERS_OF_LISTS
    _, _, ask = make_elements(1, 1, TILE, None, mask)
    scores, _, sums = multiplies(dtype, d)
    v_stages = 1 if d + dv > 384 else 2
    layouts = tuple(rows_of(dtype, TILE, *of) for of in ((d, 2), (dv, 2), (d, 2), (dv, v_stages)))
    row_bytes = TILE * dtype.width // 8
    store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
    share = (1 << cluster) - 1

    @cuda.jit(launch_bounds=(THREADS, 1))
    def dq(
        tma_q, mQ, tma_k, mK, tma_v, mV, tma_do, mdO, tma_dq, mdQ, lse, dot,
        keys, group, heads, order, shift, statistics_rows, scale, queries, behind, cu_q, cu_k, used, aux,
        mask_aux, listed,
    ):  # fmt: skip
        tidx, _, _ = arch.thread_idx()
        warp_idx = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        sQ, sdO, sK, sV = tiles_of(smem, dtype, layouts)
        own_full = smem.allocate_array(cute.Int64, 2, name="own_full")
        k_pipe = pipe_of(smem, 2, row_bytes * d, cluster, tidx, "K")
        v_pipe = pipe_of(smem, v_stages, row_bytes * dv, cluster, tidx, "V")
        if tidx == 0:
            arch.mbarrier_init(own_full, 1)
            arch.mbarrier_init(own_full + 1, 1)
        pipeline.pipeline_init_arrive((cluster, 1))
        pipeline.pipeline_init_wait((cluster, 1))

        index = cute.Int32(arch.block_idx()[0]) // cluster
        pair, head, batch = tile_at(index, order, causal)
        tile = (pair * cluster + rank) * 2  # of 64 queries: this warpgroup's, and the next one's
        q_row, k_row, q_batch, k_batch = 0, 0, batch, batch
        if cute.const_expr(lengths):
            q_row, queries, q_batch = sequence(cu_q, None, batch, queries)
            k_row, keys, k_batch = sequence(cu_k, used, batch, keys)
            shift, behind = cute.Int32(shift + keys - queries), cute.Int32(behind + keys - queries)
        end = max(min(keys, (pair + 1) * (2 * cluster * TILE) + shift), 0) if causal else keys
        if cute.const_expr(lengths):
            if pair * (2 * cluster * TILE) >= queries:
                end = cute.Int32(0)
        blocks = cute.Int32((end + TILE - 1) // TILE)
        begin = cute.Int32(0)
        if cute.const_expr(left):
            begin = cute.Int32(min(blocks, max(0, pair * (2 * cluster * TILE) + behind) // TILE))
        if cute.const_expr(block is not None):  # places in the list
            list_row, begin, blocks = cute.Int32(tile * TILE // block[0]), cute.Int32(0), cute.Int32(0)
            if tile * TILE < queries:
                blocks = cute.Int32(listed.counts[list_row, head, batch] * per_block)
        # It begins when the last CTAs of the kernel for dK and dV do, which have seen that the one before has ended.

        if warp_idx < 4:
            arch.setmaxregister_decrease(producer_registers)
            if warp_idx == 0:
                for part in cute.range_constexpr(2):
                    if arch.elect_one():
                        arch.mbarrier_arrive_and_expect_tx(own_full + part, row_bytes * (d + dv))
                    own_q, own_do, full = sQ[None, None, part], sdO[None, None, part], own_full + part
                    if cute.const_expr(lengths):
                        load_rows(tma_q, mQ, own_q, tile + part, q_row, queries, d, head, q_batch, full)
                        load_rows(tma_do, mdO, own_do, tile + part, q_row, queries, dv, head, q_batch, full)
                    else:
                        load_tile(tma_q, mQ, own_q, (TILE, d), tile + part, head, batch, full)
                        load_tile(tma_do, mdO, own_do, (TILE, dv), tile + part, head, batch, full)
                loads_k, loads_v = k_pipe.make_producer(), v_pipe.make_producer()
                kv_head = head // group
                if cute.const_expr(not lengths):
                    tKsK, tKgK = stream(tma_k, mK, sK, d, cluster, rank, kv_head, batch)
                    tVsV, tVgV = stream(tma_v, mV, sV, dv, cluster, rank, kv_head, batch)
                for at_key in range(begin, blocks):
                    n = at_key
                    if cute.const_expr(block is not None):
                        n, _ = visits.tile_visited(listed, list_row, head, batch, at_key, per_block)
                    k = loads_k.acquire_and_advance()
                    if cute.const_expr(lengths):
                        stream_rows(tma_k, mK, sK, k.index, n, k_row, keys, d, cluster, rank, kv_head, k_batch,
                                    k.barrier, share)  # fmt: skip
                    else:
                        cute.copy(tma_k, tKgK[None, n], tKsK[None, k.index], tma_bar_ptr=k.barrier, mcast_mask=share)
                    v = loads_v.acquire_and_advance()
                    if cute.const_expr(lengths):
                        stream_rows(tma_v, mV, sV, v.index, n, k_row, keys, dv, cluster, rank, kv_head, k_batch,
                                    v.barrier, share)  # fmt: skip
                    else:
                        cute.copy(tma_v, tVgV[None, n], tVsV[None, v.index], tma_bar_ptr=v.barrier, mcast_mask=share)
                loads_k.tail()
                loads_v.tail()
        else:
            arch.setmaxregister_increase(consumer_registers)
            thread = cute.Int32(tidx % 128)
            w = cute.Int32(warp_idx // 8)
            row = cute.Int32((tile + w) * TILE + thread // 32 * 16 + thread % 32 // 4)  # and the eighth after it
            column = cute.Int32(thread % 4 * 2)
            own = scores.get_slice(thread)
            fQ = scores.make_fragment_A(own.partition_A(sQ))[None, None, None, w]
            fdO = scores.make_fragment_A(own.partition_A(sdO))[None, None, None, w]
            fK, fV = scores.make_fragment_B(own.partition_B(sK)), scores.make_fragment_B(own.partition_B(sV))
            fKt = sums.make_fragment_B(sums.get_slice(thread).partition_B(turned(sK)))
            rdQ = sums.make_fragment_C(sums.partition_shape_C((TILE, d)))
            rS = scores.make_fragment_C(scores.partition_shape_C((TILE, TILE)))
            rdP = scores.make_fragment_C(scores.partition_shape_C((TILE, TILE)))
            rdS = cute.make_rmem_tensor(sums.partition_shape_A((TILE, TILE)), dtype)
            s, dp = softmax.rows_of(rS), softmax.rows_of(rdP)
            logs, dots = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
            seen = cute.make_rmem_tensor(2, cute.Int32)  # keys that a row sees
            for r in cute.range_constexpr(2):
                at = cute.Int32((batch * heads + head) * statistics_rows + row + 8 * r)
                logs[r], dots[r] = lse[at], dot[at]
                seen[r] = min(keys, row + 8 * r + shift + 1) if causal else keys
            starts = cute.make_rmem_tensor(2, cute.Int32)  # and the first of them, where there is a left side
            for r in cute.range_constexpr(2):
                starts[r] = row + 8 * r + behind if left else 0
            whole = cute.Int32(min(keys, (tile + w) * TILE + shift + 1) if causal else keys)  # that all rows see
            inner = cute.Int32((tile + w + 1) * TILE - 1 + behind if left else 0)  # the first that all rows see
            scale_log2 = cute.Float32(softmax.LOG2_E) if score is not None else scale * cute.Float32(softmax.LOG2_E)
            k_ready, k_done, v_ready = k_pipe.make_consumer(), k_pipe.make_consumer(), v_pipe.make_consumer()
            rdQ.fill(0.0)
            arch.mbarrier_wait(own_full + w, 0)
            seen_whole = cute.Int32(0)
            for at_key in range(begin, blocks):
                n = at_key
                if cute.const_expr(block is not None):
                    n, seen_whole = visits.tile_visited(listed, list_row, head, batch, at_key, per_block)
                k = k_ready.wait_and_advance()
                warpgroup.fence()
                multiply(scores, rS, fQ, fK[None, None, None, k.index], False)
                warpgroup.commit_group()
                v = v_ready.wait_and_advance()
                multiply(scores, rdP, fdO, fV[None, None, None, v.index], False)
                warpgroup.commit_group()
                warpgroup.wait_group(1)  # for S, and for dQ of the block before
                if at_key > begin:
                    k_done.release()
                    k_done.advance()
                if cute.const_expr(score is not None):
                    for r in cute.range_constexpr(2):
                        query = within(row + 8 * r, queries)
                        for j in cute.range_constexpr(cute.size(s, mode=[1])):
                            at = cute.Int32(n * TILE + column + j // 2 * 8 + j % 2)
                            own, rate = bent(score, s[r, j] * scale, batch, head, query, within(at, keys), aux)
                            p = cute.math.exp2(own * scale_log2 - logs[r], fastmath=True) * rate
                            if at >= seen[r] or left and at < starts[r]:
                                p = cute.Float32(0)
                            if cute.const_expr(mask is not None):
                                if seen_whole == 0:
                                    p = kept(mask(batch, head, query, within(at, keys), *mask_aux), p, 0.0)
                            s[r, j] = p
                else:
                    if (n + 1) * TILE > whole or left and n * TILE < inner:
                        ends = cute.make_rmem_tensor(2, cute.Int32)
                        begins = cute.make_rmem_tensor(2, cute.Int32)
                        for r in cute.range_constexpr(2):
                            ends[r] = seen[r] - n * TILE
                            begins[r] = starts[r] - n * TILE
                        masks.leave_out(s, column, begins if left else None, ends)
                    if cute.const_expr(mask is not None):
                        if seen_whole == 0:
                            ask(s, n, row, column, batch, head, mask_aux, queries, keys)
                    for r in cute.range_constexpr(2):
                        s[r, None].store(cute.math.exp2(s[r, None].load() * scale_log2 - logs[r], fastmath=True))
                warpgroup.wait_group(0)  # for dP
                v.release()
                for r in cute.range_constexpr(2):
                    s[r, None].store(s[r, None].load() * (dp[r, None].load() - dots[r]))
                rdS.store(rS.load().to(dtype))
                warpgroup.fence()
                multiply(sums, rdQ, rdS, fKt[None, None, None, k.index], True)
                warpgroup.commit_group()
            warpgroup.wait_group(0)
            if blocks > begin:
                k_done.release()
            written = pipeline.NamedBarrier(WRITTEN + w, 128)
            put((rdQ.load() * scale).to(dtype), sums, store, sQ[None, None, w], tma_dq, mdQ, tile + w, head, q_batch, d,
                thread, written, written, lengths, q_row, queries)  # fmt: skip
        arch.griddepcontrol_wait()  # who waits for this kernel waits for the one for dK and dV too

    return cute.cluster_shape(cluster)(dq)
