# SPDX-License-Identifier: Apache-2.0
"""The backward pass of attention on Hopper: dQ, dK and dV of Q, K, V, dO and what the forward pass left.

A CTA has 128 keys, and goes over the tiles of queries that see them. Of S and dP it computes the transposes, so that
P and dS stand in the registers as the A operands of dV += P^T dO and dK += dS^T Q; dS goes to shared memory too, for
dQ = dS K, whose parts TMA adds up in global memory, in Float32.

The products of a tile of queries follow one another so that the tensor cores always have one to do while the threads
compute: dQ of the tile before runs beside the exponentials, dV beside dS, dK and the next S beside the stores.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.nvgpu.warpgroup import OperandMajorMode, OperandSource

from .backward_tiles import (
    leave_out,
    leave_out_beyond,
    load_numbers,
    load_tile,
    multiply,
    publish,
    release,
    rows_of,
    statistics,
    turned,
)
from .schedule import TICKETS, begin_tickets, divided, draw, next_drawn, next_told, tile_at

KEYS = 128  # of a CTA: 64 for each of its two warpgroups that multiply
STAGES = 2  # of Q and dO, and of dS
THREADS, CONSUMER_WARPS = 384, 8
LOAD_WARP, STORE_WARP = 0, 1  # of the first warpgroup; warps STORE_WARP and STORE_WARP + 1 send dQ on
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 24, 240
LOG2_E = math.log2(math.e)


class Form(NamedTuple):
    """The static parameters of the kernel. queries: of a tile."""

    dtype: cute.DType
    head_dim: int
    queries: int
    causal: bool


def multiplies(form):
    """The tiled MMAs of S^T = K Q^T and dP^T = V dO^T, of dV = P^T dO and dK = dS^T Q, and of dQ^T = K^T dS^T."""
    dtype, d, queries, _ = form
    K, MN = OperandMajorMode.K, OperandMajorMode.MN
    op, f32 = warpgroup.MmaF16BF16Op, cute.Float32
    scores = op(dtype, f32, (64, queries, 16), OperandSource.SMEM, K, K)
    sums = op(dtype, f32, (64, d, 16), OperandSource.RMEM, K, MN)
    columns = 128 // d  # of warpgroups, beside each other where d has rows for one alone
    back = op(dtype, f32, (64, queries // columns, 16), OperandSource.SMEM, MN, K)
    return (
        cute.make_tiled_mma(scores, (2, 1, 1)),
        cute.make_tiled_mma(sums, (2, 1, 1)),
        cute.make_tiled_mma(back, (2 // columns, columns, 1)),
    )


def sums_layout(form):
    """Say how a tile of the sums of dQ lies in memory, (d, queries): as wgmma leaves dQ^T, of whose warpgroups each has
    half of d, or of the queries where d has rows for one alone."""
    _, d, queries, _ = form
    part = queries * d // 2
    rows = (8, 2, 4, 2)[: 4 if d > 64 else 3]
    columns = (2, 4, queries // 8) if d > 64 else (2, 4, queries // 16, 2)
    return cute.make_layout(
        (rows, columns), stride=((16, 2, 128, part)[: len(rows)], (1, 4, 512, part)[: len(columns)])
    )  # fmt: skip


@functools.cache
def make_kernel(form):
    """The kernel of a form."""
    dtype, d, queries, causal = form
    scores, sums, back = multiplies(form)
    q_layout, k_layout = rows_of(dtype, queries, d, STAGES), rows_of(dtype, KEYS, d)
    ds_layout, leaving = rows_of(dtype, queries, KEYS, STAGES), rows_of(dtype, 64, d)
    q_bytes, k_bytes = queries * d * dtype.width // 8, KEYS * d * dtype.width // 8
    part = queries * d // 2  # elements of dQ that a warpgroup has
    held = part // 128
    store_ds = cute.make_copy_atom(warp.StMatrix8x8x16bOp(True, 4), dtype)
    store_sums = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
    add = cute.make_copy_atom(cpasync.CopyReduceBulkS2GOp(), cute.Float32, 32 * part)
    one_of_sums = cute.make_tiled_mma(sums.op, (1, 1, 1))
    by_column = cute.make_layout((2, 2, queries // 8))

    @cuda.jit
    def first_query_tile(key_tile, shift, query_tiles):
        """The first tile of queries that sees a tile of keys: query i sees the keys up to i + shift. Keys that none
        sees have the last tile, all masked."""
        if causal:
            hidden = divided(max(cute.Int32(key_tile * KEYS - shift), cute.Int32(0)), queries)
            return min(hidden, cute.Int32(query_tiles - 1))
        return cute.Int32(0)

    @cuda.jit
    def leave(total, sdQ, half, thread, out_full, out_empty, count):
        """Write this warpgroup's rows of dV or dK to its half of sdQ, for the warp that stores them."""
        sOut = cute.make_tensor(
            cute.recast_ptr(sdQ.iterator + cute.assume(half * part, divby=256), leaving.inner, dtype=dtype),
            leaving.outer,
        )
        out = cute.make_tiled_copy_S(store_sums, cute.make_tiled_copy_C_atom(store_sums, one_of_sums))
        to_out = out.get_slice(thread).partition_D(sOut)
        rounded = cute.make_rmem_tensor(cute.shape(to_out), dtype)
        rounded.store(total)
        arch.mbarrier_wait(out_empty + half, count & 1 ^ 1)
        cute.copy(out, rounded, to_out)
        publish(out_full + half)

    @cuda.jit
    def load_rows(tma, of, to, numbers, place, to_numbers, stage, full, more):
        """Load a tile of Q or dO, and a number of each of its queries, to an empty stage. more: bytes that come
        beside."""
        if arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(full + stage, q_bytes + 4 * queries + more)
            load_numbers(numbers, place, to_numbers[None, stage], full + stage, queries)
        cute.copy(tma, of, to[None, stage], tma_bar_ptr=full + stage)

    @cuda.jit
    def load(
        tma_q, mQ, tma_k, mK, tma_v, mV, tma_do, mdO, sQ, sdO, sK, sV, sLse, sDot, lse, dot,
        drawn, tickets, barriers, start, step, order, query_tiles, group, heads, shift,
    ):  # fmt: skip
        """The work of the warp that loads."""
        q_full, do_full, empty = barriers, barriers + 2, barriers + 4
        kv_empty, told = barriers + 12, barriers + 13
        alone = cute.make_layout(1)
        count, turns = cute.Int32(0), cute.Int32(0)
        tile, given = cute.Int32(start), cute.Int32(0)
        while tile < order.tiles:
            key_tile, head, batch = tile_at(tile, order, False)
            first = first_query_tile(key_tile, shift, query_tiles)
            for member in cute.range(group, unroll=1):
                q_head = cute.Int32(head * group + member)
                gQ = cute.local_tile(mQ[None, None, q_head, batch], (queries, d), (None, 0))
                gdO = cute.local_tile(mdO[None, None, q_head, batch], (queries, d), (None, 0))
                tQsQ, tQgQ = cpasync.tma_partition(
                    tma_q, 0, alone, cute.group_modes(sQ, 0, 2), cute.group_modes(gQ, 0, 2)
                )
                tOsO, tOgO = cpasync.tma_partition(
                    tma_do, 0, alone, cute.group_modes(sdO, 0, 2), cute.group_modes(gdO, 0, 2)
                )
                row = cute.Int32((batch * heads * group + q_head) * query_tiles)
                for m in cute.range(first, query_tiles, unroll=1):
                    stage, phase = cute.Int32(count & 1), cute.Int32(count >> 1 & 1)
                    place = cute.assume(cute.Int32(row + m) * queries, divby=16)
                    begins = member == 0 and m == first  # the tile of keys, which comes with its first queries
                    more = 2 * k_bytes if begins else 0
                    arch.mbarrier_wait(empty + stage, phase ^ 1)
                    load_rows(tma_q, tQgQ[None, m], tQsQ, lse, place, sLse, stage, q_full, more)
                    if begins:
                        arch.mbarrier_wait(kv_empty, turns & 1 ^ 1)
                        turns = cute.Int32(turns + 1)
                        load_tile(tma_k, mK, sK, (KEYS, d), key_tile, head, batch, q_full + stage)
                        load_tile(tma_v, mV, sV, (KEYS, d), key_tile, head, batch, q_full + stage)
                    load_rows(tma_do, tOgO[None, m], tOsO, dot, place, sDot, stage, do_full, 0)
                    count = cute.Int32(count + 1)
            tile = next_drawn(draw(drawn), drawn, order.tiles, step, tickets, told, given)
            given = cute.Int32(given + 1)

    @cuda.jit
    def store(
        tma_dk, mdK, tma_dv, mdV, sdQ, dq, out_full, out_empty, half, tickets, told,
        start, order, query_tiles, group, heads, shift,
    ):  # fmt: skip
        """The work of the warp that sends on what a warpgroup leaves in its half of sdQ: dQ's parts, dV, dK."""
        place = sdQ.iterator + cute.assume(half * part, divby=256)
        mine = cute.make_tensor(place, cute.make_layout(part))
        sOut = cute.make_tensor(cute.recast_ptr(place, leaving.inner, dtype=dtype), leaving.outer)
        alone = cute.make_layout(1)
        times = cute.Int32(0)
        tile, tickets_seen = cute.Int32(start), cute.Int32(0)
        while tile < order.tiles:
            key_tile, head, batch = tile_at(tile, order, False)
            first = first_query_tile(key_tile, shift, query_tiles)
            for member in cute.range(group, unroll=1):
                row = cute.Int32(((batch * heads + head) * group + member) * query_tiles)
                for m in cute.range(first, query_tiles, unroll=1):
                    arch.mbarrier_wait(out_full, times & 1)
                    if arch.elect_one():
                        to = cute.assume(cute.Int64(cute.Int32(row + m) * 2 + half) * part, divby=256)
                        cute.copy(add, mine, cute.make_tensor(dq.iterator + to, cute.make_layout(part)))
                        arch.cp_async_bulk_commit_group()
                        arch.cp_async_bulk_wait_group(0, read=True)
                        arch.mbarrier_arrive(out_empty)
                    times = cute.Int32(times + 1)
            for which in cute.range_constexpr(2):
                tma, coords = (tma_dv, mdV) if which == 0 else (tma_dk, mdK)
                to = cute.local_tile(coords[None, None, head, batch], (64, d), (None, 0))
                ts, tg = cpasync.tma_partition(tma, 0, alone, cute.group_modes(sOut, 0, 2), cute.group_modes(to, 0, 2))
                arch.mbarrier_wait(out_full, times & 1)
                cute.copy(tma, ts, tg[None, 2 * key_tile + half])
                if arch.elect_one():
                    arch.cp_async_bulk_commit_group()
                    arch.cp_async_bulk_wait_group(0, read=True)
                    arch.mbarrier_arrive(out_empty)
                times = cute.Int32(times + 1)
            tile = next_told(tickets, told, tickets_seen)
            tickets_seen = cute.Int32(tickets_seen + 1)

    @cuda.jit(launch_bounds=(THREADS, 1))
    def kernel(
        tma_q, mQ, tma_k, mK, tma_v, mV, tma_do, mdO, tma_dk, mdK, tma_dv, mdV, lse, dot, dq, drawn,
        keys, query_tiles, group, heads, order, shift, scale,
    ):  # fmt: skip
        tidx, _, _ = arch.thread_idx()
        start, step = cute.Int32(arch.block_idx()[0]), cute.Int32(arch.grid_dim()[0])
        warp_idx = arch.make_warp_uniform(arch.warp_idx())
        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_q)
            cpasync.prefetch_descriptor(tma_k)
            cpasync.prefetch_descriptor(tma_v)
            cpasync.prefetch_descriptor(tma_do)

        smem = utils.SmemAllocator()
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sdO = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sdO")
        sK = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sK")
        sV = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sV")
        sdS = smem.allocate_tensor(dtype, ds_layout.outer, 1024, ds_layout.inner, "sdS")
        sdQ = smem.allocate_tensor(cute.Float32, cute.make_layout((part, 2)), 1024, None, "sdQ")
        sLse = smem.allocate_tensor(cute.Float32, cute.make_layout((queries, STAGES)), 128, None, "sLse")
        sDot = smem.allocate_tensor(cute.Float32, cute.make_layout((queries, STAGES)), 128, None, "sDot")
        tickets = smem.allocate_tensor(cute.Int32, cute.make_layout(TICKETS), 16, None, "tickets")
        barriers = smem.allocate_array(cute.Int64, 17, name="barriers")
        q_full, do_full, empty = barriers, barriers + 2, barriers + 4  # of each stage
        ds_full, out_full, out_empty = barriers + 6, barriers + 8, barriers + 10  # out: of each half of sdQ
        kv_empty, told = barriers + 12, barriers + 13
        if tidx == 0:
            for i in cute.range_constexpr(2):
                arch.mbarrier_init(q_full + i, 1)
                arch.mbarrier_init(do_full + i, 1)
                arch.mbarrier_init(empty + i, CONSUMER_WARPS)
                arch.mbarrier_init(ds_full + i, CONSUMER_WARPS)
                arch.mbarrier_init(out_full + i, CONSUMER_WARPS // 2)
                arch.mbarrier_init(out_empty + i, 1)
            begin_tickets(told, CONSUMER_WARPS + 2)
            arch.mbarrier_init(kv_empty, CONSUMER_WARPS)
            arch.mbarrier_init_fence()
        # In a tile's first round there is no dS of a round before: what stands there is multiplied, and dropped.
        words = cute.recast_ptr(sdS.iterator, dtype=cute.Uint32)
        for i in cute.range(cute.Int32(tidx), queries * KEYS // 4, THREADS, unroll=1):
            arch.store(words + 4 * i, (0, 0, 0, 0))
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_threads()
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()  # the kernel before has written what stands there of each query

        if warp_idx < 4:
            arch.setmaxregister_decrease(PRODUCER_REGISTERS)
            if warp_idx == LOAD_WARP:
                load(
                    tma_q, mQ, tma_k, mK, tma_v, mV, tma_do, mdO, sQ, sdO, sK, sV, sLse, sDot, lse, dot,
                    drawn, tickets, barriers, start, step, order, query_tiles, group, heads, shift,
                )  # fmt: skip
            elif warp_idx <= STORE_WARP + 1:
                half = warp_idx - STORE_WARP  # of sdQ, the work of a warpgroup
                store(
                    tma_dk, mdK, tma_dv, mdV, sdQ, dq, out_full + half, out_empty + half, half, tickets, told,
                    start, order, query_tiles, group, heads, shift,
                )  # fmt: skip
        else:
            arch.setmaxregister_increase(CONSUMER_REGISTERS)
            half = arch.make_warp_uniform(divided(warp_idx, 4) - 1)
            thread, lane = cute.Int32(tidx % 128), cute.Int32(tidx % 32)  # of the warpgroup, of the warp
            first_row = cute.Int32((warp_idx - 4) * 16 + lane // 4)  # of the keys; the second one is 8 further on
            place = cute.Int32(lane % 4)  # this thread's columns are 8 j + 2 place and the next
            of_half = cute.Int32(half * 128)
            s_mma, sum_mma, back_mma = scores.get_slice(of_half), sums.get_slice(of_half), back.get_slice(of_half)
            fK, fV = scores.make_fragment_A(s_mma.partition_A(sK)), scores.make_fragment_A(s_mma.partition_A(sV))
            fQ, fdO = scores.make_fragment_B(s_mma.partition_B(sQ)), scores.make_fragment_B(s_mma.partition_B(sdO))
            fQt = sums.make_fragment_B(sum_mma.partition_B(turned(sQ)))
            fdOt = sums.make_fragment_B(sum_mma.partition_B(turned(sdO)))
            fKt = back.make_fragment_A(back_mma.partition_A(turned(sK)))
            fdS = back.make_fragment_B(back_mma.partition_B(sdS))
            dS_out = cute.make_tiled_copy_S(store_ds, cute.make_tiled_copy_C_atom(store_ds, scores))
            to_dS = dS_out.get_slice(of_half + thread).partition_D(turned(sdS))
            ds_held = cute.make_layout(cute.shape(to_dS[None, None, None, 0]))
            mine = cute.make_tensor(
                sdQ.iterator + cute.assume(half * part + 4 * thread, divby=4),
                cute.make_layout((4, held // 4), stride=(1, 512)),
            )
            mine_layout = cute.make_layout((4, held // 4))
            rdK = sums.make_fragment_C(sums.partition_shape_C((KEYS, d)))
            rdV = sums.make_fragment_C(sums.partition_shape_C((KEYS, d)))
            scale_log2 = scale * cute.Float32(LOG2_E)
            count, tile, tickets_seen = cute.Int32(0), cute.Int32(start), cute.Int32(0)
            while tile < order.tiles:
                key_tile, _, _ = tile_at(tile, order, False)
                first = first_query_tile(key_tile, shift, query_tiles)
                rounds = cute.Int32(group * (query_tiles - first))
                visible = cute.Int32(keys - key_tile * KEYS)
                # of these keys, the last one that the first query of a tile sees
                last = cute.Int32(first * queries + shift - key_tile * KEYS)
                for i in cute.range(rounds, unroll=1):
                    stage, phase = cute.Int32(count & 1), cute.Int32(count >> 1 & 1)
                    rS = scores.make_fragment_C(scores.partition_shape_C((KEYS, queries)))
                    rdP = scores.make_fragment_C(scores.partition_shape_C((KEYS, queries)))
                    rdQ = back.make_fragment_C(back.partition_shape_C((d, queries)))
                    rP = cute.make_rmem_tensor(sums.partition_shape_A((KEYS, queries)), dtype)
                    rdS = cute.make_rmem_tensor(sums.partition_shape_A((KEYS, queries)), dtype)

                    arch.mbarrier_wait(q_full + stage, phase)
                    warpgroup.fence()
                    multiply(scores, rS, fK, fQ[None, None, None, stage], False)
                    warpgroup.commit_group()
                    if i > 0:
                        arch.mbarrier_wait(ds_full + (stage ^ 1), phase ^ stage ^ 1)
                    multiply(back, rdQ, fKt, fdS[None, None, None, stage ^ 1], False)
                    warpgroup.commit_group()
                    warpgroup.wait_group(1)  # for S, and for what reads Q and dO of the round before
                    if i > 0:
                        release(empty + (stage ^ 1))
                    if cute.const_expr(causal):  # a query sees no key beyond the last
                        if last < KEYS - 1:
                            leave_out(rS, cute.Int32(last + 2 * place - first_row), queries)
                    elif visible < KEYS:
                        leave_out_beyond(rS, cute.Int32(visible - first_row), queries)
                    s = cute.make_tensor(rS.iterator, by_column)
                    rLse = statistics(sLse, stage, place, queries)
                    s.store(cute.math.exp2(s.load() * scale_log2 - rLse.load(), fastmath=True))
                    arch.mbarrier_wait(do_full + stage, phase)
                    warpgroup.wait_group(0)  # for dQ
                    if i > 0:
                        arch.mbarrier_wait(out_empty + half, stage)
                        cute.autovec_copy(cute.make_tensor(rdQ.iterator, mine_layout), mine)
                        publish(out_full + half)
                    rP.store(rS.load().to(dtype))
                    warpgroup.fence()
                    multiply(scores, rdP, fV, fdO[None, None, None, stage], False)
                    warpgroup.commit_group()
                    multiply(sums, rdV, rP, fdOt[None, None, None, stage], i > 0)
                    warpgroup.commit_group()
                    warpgroup.wait_group(1)  # for dP
                    rDot = statistics(sDot, stage, place, queries)
                    p = cute.make_rmem_tensor(by_column, cute.Float32)
                    p.store(cute.make_tensor(rP.iterator, by_column).load().to(cute.Float32))
                    for e in cute.range_constexpr(queries // 4):  # registers have room for as many as they are
                        p[e] = s[e]
                    dp = cute.make_tensor(rdP.iterator, by_column).load()
                    rdS.store((p.load() * (dp - rDot.load())).to(dtype))
                    warpgroup.fence()
                    multiply(sums, rdK, rdS, fQt[None, None, None, stage], i > 0)
                    warpgroup.commit_group()
                    cute.copy(dS_out, cute.make_tensor(rdS.iterator, ds_held), to_dS[None, None, None, stage])
                    publish(ds_full + stage)
                    warpgroup.wait_group(0)  # for dV and dK: the next round has their registers (longer code without)
                    count = cute.Int32(count + 1)
                    if causal:
                        last = cute.Int32(last + queries)
                        if last == cute.Int32(query_tiles * queries + shift - key_tile * KEYS):  # the next head begins
                            last = cute.Int32(first * queries + shift - key_tile * KEYS)

                stage, phase = cute.Int32(count & 1), cute.Int32(count >> 1 & 1)
                arch.mbarrier_wait(ds_full + (stage ^ 1), phase ^ stage ^ 1)
                rdQ = back.make_fragment_C(back.partition_shape_C((d, queries)))
                warpgroup.fence()
                multiply(back, rdQ, fKt, fdS[None, None, None, stage ^ 1], False)
                warpgroup.commit_group()
                release(empty + (stage ^ 1))
                warpgroup.wait_group(0)
                release(kv_empty)
                arch.mbarrier_wait(out_empty + half, stage)
                cute.autovec_copy(cute.make_tensor(rdQ.iterator, mine_layout), mine)
                publish(out_full + half)
                leave(rdV.load().to(dtype), sdQ, half, thread, out_full, out_empty, count)
                leave((rdK.load() * scale).to(dtype), sdQ, half, thread, out_full, out_empty, count + 1)
                tile = next_told(tickets, told, tickets_seen)
                tickets_seen = cute.Int32(tickets_seen + 1)

    return kernel
