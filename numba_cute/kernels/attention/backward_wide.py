# SPDX-License-Identifier: Apache-2.0
"""The backward pass of attention on Hopper where heads are wide, beyond 128, and for all options, of any heads: dK and
dV of one kernel, dQ of another.

Registers hold the sums of but 64 keys, or 128 queries, and parts of dQ added up in memory would cost more than S and dP
computed twice: so each kernel sums what is its own, and nothing is summed in memory. The CTAs of a cluster have
neighbouring tiles; what streams by them, each fetches a half of for both.

Of the kernel for dK and dV, one warpgroup has S^T = K Q^T, P^T, and dV += P^T dO, the other dP^T = V dO^T, dS^T, and
dK += dS^T Q; P goes from the one's registers to the other's. Of the kernel for dQ, each warpgroup has 64 queries.
While one computes, the tensor cores have the other's products.

A function of the scores is followed by them (`derivative.py`): P, times its derivative, is what dS is made of.
Sequences of their own lengths are read and written by tensor maps with two modes for rows, of which one ends after a
tile's: what is another sequence's is read as zeros, and stays as it is (as in `gemm/grouped_outer.py`).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import warp, warpgroup
from numba_cute.nvgpu.warpgroup import OperandMajorMode, OperandSource

from . import softmax, visits
from .backward_rows import (
    CONSUMER_WARPS,
    TILE,
    bent,
    hide,
    hold,
    load_rows,
    make_ask,
    multiply_by,
    pipe_of,
    put,
    sequence,
    stream,
    stream_rows,
    tiles_of,
)  # fmt: skip
from .backward_tiles import leave_out, load_numbers, load_tile, multiply, release, rows_of, statistics, turned
from .elements import kept, within
from .schedule import tile_at

THREADS = 384
REGISTERS, REGISTERS_OF_LISTS = (24, 240), (40, 232)  # of a producer's thread, and of the others; with lists to read
BOTH, WRITTEN = 1, 2  # named barriers: of both warpgroups, and the first of those of one, at their end


class Form(NamedTuple):
    """The static parameters of the kernels.

    head_dim: of Q and K. value_dim: of V, O and dO. causal, left: whether a query's window of keys ends on the right,
    and on the left. score: what becomes of a score, or None. lengths: whether sequences have their own lengths.
    cluster: CTAs that share what streams by. held: columns of K, and of V, that stand in registers where dK and dV are
    summed. mask: says which keys a query sees, or None. block: queries and keys of the blocks of which lists say that
    they are visited, multiples of 128 and 64, or None; with them there is no cluster.
    """

    dtype: cute.DType
    head_dim: int
    value_dim: int
    causal: bool
    left: bool = False
    score: Any = None
    lengths: bool = False
    cluster: int = 2
    mask: Any = None
    block: tuple[int, int] | None = None
    held: tuple[int, int] = (128, 128)


def multiplies(dtype, width):
    """The tiled MMAs of a warpgroup: of S and of dP, the same with A in registers, and of sums with `width` columns, of
    P or dS in registers."""
    op, K, MN = warpgroup.MmaF16BF16Op, OperandMajorMode.K, OperandMajorMode.MN
    scores = op(dtype, cute.Float32, (64, TILE, 16), OperandSource.SMEM, K, K)
    held = op(dtype, cute.Float32, (64, TILE, 16), OperandSource.RMEM, K, K)
    sums = op(dtype, cute.Float32, (64, width, 16), OperandSource.RMEM, K, MN)
    return cute.make_tiled_mma(scores), cute.make_tiled_mma(held), cute.make_tiled_mma(sums)


@functools.cache
def make_keys_kernel(form):
    """The kernel for dK and dV. Its grid: clusters for pairs of tiles of keys, KV heads and batches."""
    dtype, d, dv, causal, left, score, lengths, cluster, mask, block, held = form
    per_block = 1 if block is None else block[0] // TILE
    producer_registers, consumer_registers = REGISTERS if block is None else REGISTERS_OF_LISTS
    ask = make_ask(mask)
    held = min(held[0], d if score is None or d < 256 else 64), min(held[1], dv)
    (scores, in_registers, to_v), (_, _, to_k) = multiplies(dtype, dv), multiplies(dtype, d)
    layouts = tuple(rows_of(dtype, TILE, *of) for of in ((d, 2), (dv, 2), (d,), (dv,)))
    row_bytes = TILE * dtype.width // 8
    store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
    by_column = cute.make_layout((2, 2, TILE // 8))
    vectors = cute.make_layout((8, TILE // 16))  # of a thread's P, in registers
    share = (1 << cluster) - 1

    @cuda.jit
    def rounds_of(pair, shift, behind, query_tiles, keys, group):
        """The first tile of queries that sees a pair of tiles of keys, the one after the last, and how many there are
        of all heads."""
        hidden = max(pair * cluster * TILE - shift, 0) // TILE if causal else 0
        last = query_tiles
        if cute.const_expr(left):
            beyond = cute.Int32(max((pair + 1) * (cluster * TILE) - 1 - behind + TILE, 0) // TILE)
            last = cute.Int32(min(query_tiles, beyond))
        if cute.const_expr(lengths):
            if pair * cluster * TILE >= keys:
                last = cute.Int32(0)
        first = min(cute.Int32(hidden), last)
        return first, last, cute.Int32(group * (last - first))

    @cuda.jit
    def places_of(listed, tile, keys, head, batch):
        """Count the tiles of queries that the list of a tile of keys names for a query head."""
        places = cute.Int32(0)
        if tile * TILE < keys:
            places = cute.Int32(listed.counts[tile * TILE // block[1], head, batch] * per_block)
        return places

    @cuda.jit(launch_bounds=(THREADS, 1))
    def dk_dv(
        tma_q, mQ, tma_k, mK, tma_v, mV, tma_do, mdO, tma_dk, mdK, tma_dv, mdV, lse, dot,
        keys, query_tiles, group, heads, order, shift, statistics_rows, scale, queries, behind, cu_q, cu_k, used, aux,
        mask_aux, listed,
    ):  # fmt: skip
        tidx, _, _ = arch.thread_idx()
        warp_idx = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        sQ, sdO, sK, sV = tiles_of(smem, dtype, layouts)
        sP = smem.allocate_tensor(dtype, cute.make_layout((8, 128, TILE // 16, 2)), 128, None, "sP")
        sLse = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, 2)), 128, None, "sLse")
        sDot = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, 2)), 128, None, "sDot")
        barriers = smem.allocate_array(cute.Int64, 6, name="barriers")
        k_full, v_full, p_full, p_empty = barriers, barriers + 1, barriers + 2, barriers + 4  # of P: for each stage
        q_pipe = pipe_of(smem, 2, row_bytes * d + 4 * TILE, cluster, tidx, "Q")
        do_pipe = pipe_of(smem, 2, row_bytes * dv + 4 * TILE, cluster, tidx, "dO")
        if tidx == 0:
            for i in cute.range_constexpr(2):
                arch.mbarrier_init(barriers + i, 1)
                arch.mbarrier_init(p_full + i, CONSUMER_WARPS // 2)
                arch.mbarrier_init(p_empty + i, CONSUMER_WARPS // 2)
        pipeline.pipeline_init_arrive((cluster, 1))
        pipeline.pipeline_init_wait((cluster, 1))

        index = cute.Int32(arch.block_idx()[0]) // cluster
        pair, head, batch = tile_at(index, order, False)
        key_tile = pair * cluster + rank
        q_row, k_row, q_batch, k_batch = 0, 0, batch, batch
        if cute.const_expr(lengths):
            q_row, queries, q_batch = sequence(cu_q, None, batch, queries)
            k_row, keys, k_batch = sequence(cu_k, used, batch, keys)
            query_tiles = cute.Int32((queries + TILE - 1) // TILE)
            shift, behind = cute.Int32(shift + keys - queries), cute.Int32(behind + keys - queries)
        first, end, rounds = rounds_of(pair, shift, behind, query_tiles, keys, group)
        if cute.const_expr(block is not None):  # places in the lists
            first, rounds, list_row = cute.Int32(0), cute.Int32(0), cute.Int32(key_tile * TILE // block[1])
            for member in range(group):
                rounds = cute.Int32(rounds + places_of(listed, key_tile, keys, head * group + member, batch))
        arch.griddepcontrol_wait()  # the kernel before has written what stands there of each query
        arch.griddepcontrol_launch_dependents()

        if warp_idx < 4:
            arch.setmaxregister_decrease(producer_registers)
            if warp_idx == 0:
                if arch.elect_one():
                    arch.mbarrier_arrive_and_expect_tx(k_full, row_bytes * d)
                    arch.mbarrier_arrive_and_expect_tx(v_full, row_bytes * dv)
                if cute.const_expr(lengths):
                    load_rows(tma_k, mK, sK, key_tile, k_row, keys, d, head, k_batch, k_full)
                    load_rows(tma_v, mV, sV, key_tile, k_row, keys, dv, head, k_batch, v_full)
                else:
                    load_tile(tma_k, mK, sK, (TILE, d), key_tile, head, batch, k_full)
                    load_tile(tma_v, mV, sV, (TILE, dv), key_tile, head, batch, v_full)
                loads_q, loads_do = q_pipe.make_producer(), do_pipe.make_producer()
                for member in range(group):
                    q_head = cute.Int32(head * group + member)
                    if cute.const_expr(not lengths):
                        tQsQ, tQgQ = stream(tma_q, mQ, sQ, d, cluster, rank, q_head, batch)
                        tOsO, tOgO = stream(tma_do, mdO, sdO, dv, cluster, rank, q_head, batch)
                    row = cute.Int32((batch * heads * group + q_head) * statistics_rows)
                    if cute.const_expr(block is not None):
                        end = places_of(listed, key_tile, keys, q_head, batch)
                    for at_query in range(first, end):
                        m = at_query
                        if cute.const_expr(block is not None):
                            m, _ = visits.tile_visited(listed, list_row, q_head, batch, at_query, per_block)
                        place = cute.assume(row + m * TILE, divby=16)
                        stage = loads_q.acquire_and_advance()
                        if arch.elect_one():
                            load_numbers(lse, place, sLse[None, stage.index], stage.barrier, TILE)
                        if cute.const_expr(lengths):
                            stream_rows(
                                tma_q, mQ, sQ, stage.index, m, q_row, queries, d, cluster, rank, q_head, q_batch,
                                stage.barrier, share,
                            )  # fmt: skip
                        else:
                            cute.copy(
                                tma_q, tQgQ[None, m], tQsQ[None, stage.index], tma_bar_ptr=stage.barrier,
                                mcast_mask=share,
                            )  # fmt: skip
                        stage = loads_do.acquire_and_advance()
                        if arch.elect_one():
                            load_numbers(dot, place, sDot[None, stage.index], stage.barrier, TILE)
                        if cute.const_expr(lengths):
                            stream_rows(
                                tma_do, mdO, sdO, stage.index, m, q_row, queries, dv, cluster, rank, q_head, q_batch,
                                stage.barrier, share,
                            )  # fmt: skip
                        else:
                            cute.copy(
                                tma_do, tOgO[None, m], tOsO[None, stage.index], tma_bar_ptr=stage.barrier,
                                mcast_mask=share,
                            )  # fmt: skip
                loads_q.tail()
                loads_do.tail()
        else:
            arch.setmaxregister_increase(consumer_registers)
            thread, lane = cute.Int32(tidx % 128), cute.Int32(tidx % 32)
            key = cute.Int32(thread // 32 * 16 + lane // 4)  # this thread's first; the second one is 8 further on
            place = cute.Int32(lane % 4)  # its columns are 8 j + 2 place and the next
            fQ = scores.make_fragment_B(scores.get_slice(thread).partition_B(sQ))
            fdO = scores.make_fragment_B(scores.get_slice(thread).partition_B(sdO))
            own_p = cute.make_tensor(
                sP.iterator + cute.assume(8 * thread, divby=8),
                cute.make_layout((8, TILE // 16, 2), stride=(1, 1024, 128 * TILE // 2)),
            )
            q_ready, q_done = q_pipe.make_consumer(), q_pipe.make_consumer()
            do_ready, do_done = do_pipe.make_consumer(), do_pipe.make_consumer()
            both, written = pipeline.NamedBarrier(BOTH, 256), pipeline.NamedBarrier(WRITTEN + warp_idx // 8, 128)
            if warp_idx < 8:
                fK = scores.make_fragment_A(scores.get_slice(thread).partition_A(sK))
                fdOt = to_v.make_fragment_B(to_v.get_slice(thread).partition_B(turned(sdO)))
                rdV = to_v.make_fragment_C(to_v.partition_shape_C((TILE, dv)))
                rS = scores.make_fragment_C(scores.partition_shape_C((TILE, TILE)))
                rP = cute.make_rmem_tensor(to_v.partition_shape_A((TILE, TILE)), dtype)
                rdV.fill(0.0)
                scale_log2 = cute.Float32(softmax.LOG2_E) if score is not None else scale * cute.Float32(softmax.LOG2_E)
                query_tile, q_head = cute.Int32(first), cute.Int32(head * group)
                named, seen_whole = cute.Int32(0), cute.Int32(0)  # tiles of the head's list so far
                arch.mbarrier_wait(k_full, 0)
                rK = cute.make_rmem_tensor(in_registers.partition_shape_A((TILE, held[0])), dtype)
                hold(sK, rK, held[0], in_registers, thread)
                for i in range(rounds):
                    q = q_ready.wait_and_advance()
                    warpgroup.fence()
                    multiply_by(scores, in_registers, rS, rK, fK, fQ[None, None, None, q.index])
                    warpgroup.commit_group()
                    warpgroup.wait_group(0)  # for dV of the tile before too
                    if i > 0:
                        do_done.release()
                        do_done.advance()
                    if cute.const_expr(block is not None):
                        while named == places_of(listed, key_tile, keys, q_head, batch):
                            named, q_head = cute.Int32(0), cute.Int32(q_head + 1)
                        query_tile, seen_whole = visits.tile_visited(listed, list_row, q_head, batch, named, per_block)
                        named = cute.Int32(named + 1)
                    rLse = statistics(sLse, q.index, place, TILE)
                    if cute.const_expr(score is not None):
                        rPd = cute.make_rmem_tensor(cute.shape(rP), dtype)  # times the derivative by each score
                        for e in cute.range_constexpr(cute.size(rS)):
                            at = cute.Int32(key_tile * TILE + key + e // 2 % 2 * 8)
                            by = cute.Int32(query_tile * TILE + 2 * place + e // 4 * 8 + e % 2)
                            own_by, own_at = within(by, queries), within(at, keys)
                            own, rate = bent(score, rS[e] * scale, batch, q_head, own_by, own_at, aux)
                            p = cute.math.exp2(own * scale_log2 - rLse[e % 2, 0, e // 4], fastmath=True)
                            if at >= keys or causal and at > by + shift or left and at < by + behind:
                                p, rate = cute.Float32(0), cute.Float32(0)
                            if cute.const_expr(mask is not None):
                                if seen_whole == 0:
                                    allowed = mask(batch, q_head, own_by, own_at, *mask_aux)
                                    p, rate = kept(allowed, p, 0.0), kept(allowed, rate, 0.0)
                            rS[e], rPd[e] = p, dtype(p * rate)
                    else:
                        if cute.const_expr(left or lengths):
                            hide(rS, key_tile * TILE + key, query_tile * TILE + 2 * place, keys, shift, behind, causal,
                                 left)  # fmt: skip
                        elif causal:
                            last = cute.Int32(query_tile * TILE + shift - key_tile * TILE)  # that the first sees
                            if last < TILE - 1:
                                leave_out(rS, cute.Int32(last + 2 * place - key), TILE)
                        if cute.const_expr(mask is not None):
                            if seen_whole == 0:
                                ask(rS, batch, q_head, query_tile * TILE + 2 * place, key_tile * TILE + key, queries,
                                    keys, mask_aux)  # fmt: skip
                        s = cute.make_tensor(rS.iterator, by_column)
                        s.store(cute.math.exp2(s.load() * scale_log2 - rLse.load(), fastmath=True))
                    if cute.const_expr(block is None and (causal or left or score is not None or lengths or mask is not
                                                          None)):  # fmt: skip
                        query_tile = cute.Int32(query_tile + 1)
                        if query_tile == end:
                            query_tile, q_head = first, cute.Int32(q_head + 1)
                    rP.store(rS.load().to(dtype))
                    arch.mbarrier_wait(p_empty + (i & 1), i >> 1 & 1 ^ 1)
                    sent = rPd if score is not None else rP
                    cute.autovec_copy(cute.make_tensor(sent.iterator, vectors), own_p[None, None, i & 1])
                    arch.sync_warp()
                    release(p_full + (i & 1))
                    q.release()
                    do = do_ready.wait_and_advance()
                    warpgroup.fence()
                    multiply(to_v, rdV, rP, fdOt[None, None, None, do.index], True)
                    warpgroup.commit_group()
                warpgroup.wait_group(0)
                if rounds > 0:
                    do_done.release()
                put(rdV.load().to(dtype), to_v, store, sV, tma_dv, mdV, key_tile, head, k_batch, dv,
                    thread, both, written, lengths, k_row, keys)  # fmt: skip
            else:
                fV = scores.make_fragment_A(scores.get_slice(thread).partition_A(sV))
                fQt = to_k.make_fragment_B(to_k.get_slice(thread).partition_B(turned(sQ)))
                rdK = to_k.make_fragment_C(to_k.partition_shape_C((TILE, d)))
                rdP = scores.make_fragment_C(scores.partition_shape_C((TILE, TILE)))
                rP = cute.make_rmem_tensor(to_k.partition_shape_A((TILE, TILE)), dtype)
                rdS = cute.make_rmem_tensor(to_k.partition_shape_A((TILE, TILE)), dtype)
                rdK.fill(0.0)
                arch.mbarrier_wait(v_full, 0)
                rV = cute.make_rmem_tensor(in_registers.partition_shape_A((TILE, held[1])), dtype)
                hold(sV, rV, held[1], in_registers, thread)
                for i in range(rounds):
                    do = do_ready.wait_and_advance()
                    warpgroup.fence()
                    multiply_by(scores, in_registers, rdP, rV, fV, fdO[None, None, None, do.index])
                    warpgroup.commit_group()
                    warpgroup.wait_group(0)  # for dK of the tile before too
                    if i > 0:
                        q_done.release()
                        q_done.advance()
                    rDot = statistics(sDot, do.index, place, TILE)
                    arch.mbarrier_wait(p_full + (i & 1), i >> 1 & 1)
                    cute.autovec_copy(own_p[None, None, i & 1], cute.make_tensor(rP.iterator, vectors))
                    arch.sync_warp()
                    release(p_empty + (i & 1))
                    do.release()
                    p = cute.make_tensor(rP.iterator, by_column).load().to(cute.Float32)
                    dp = cute.make_tensor(rdP.iterator, by_column).load()
                    rdS.store((p * (dp - rDot.load())).to(dtype))
                    q = q_ready.wait_and_advance()
                    warpgroup.fence()
                    multiply(to_k, rdK, rdS, fQt[None, None, None, q.index], True)
                    warpgroup.commit_group()
                warpgroup.wait_group(0)
                if rounds > 0:
                    q_done.release()
                put((rdK.load() * scale).to(dtype), to_k, store, sK, tma_dk, mdK, key_tile, head,
                    k_batch, d, thread, both, written, lengths, k_row, keys)  # fmt: skip

    return cute.cluster_shape(cluster)(dk_dv)
