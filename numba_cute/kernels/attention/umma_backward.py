# SPDX-License-Identifier: Apache-2.0
"""Attention's backward pass on Blackwell: dQ, dK and dV of Q, K, V, dO and what stands of each query.

A CTA has 128 keys, and goes over the tiles of 128 queries that see them, of all heads that share the keys. Its warps
have roles, and tensor memory holds what they hand on:

    load     K and V, then Q, dO and two numbers of each query, tile by tile
    mma      dV += P^T dO, dP^T = V dO^T, the next S^T = K Q^T, dK += dS^T Q, dQ = dS K, in this order
    compute  two warpgroups, each half of the queries: S^T becomes P^T, and dP^T becomes dS^T, in their own columns, as
             operands A; dS goes to shared memory too, for dQ. At the end, dV and dK leave: a thread has a key
    reduce   takes dQ from tensor memory, a query of each thread, and adds it up in global memory by bulk copies

So the matrix unit multiplies for S^T beside dS, and for dK and dQ beside the exponentials of the next tile. It keeps
the order in which it is told to multiply: what is read before it is written needs no barrier there. Which memory holds
what is in `umma_backward_plan.py`; who loads and who stores, in `umma_backward_roles.py`.

It has run in the simulator and through the assembler; on Blackwell itself it has not run.
"""

import functools
import math

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import CopyUniversalOp, cpasync, tcgen05
from numba_cute.nvgpu.tcgen05 import Repetition
from numba_cute.pipeline import NamedBarrier

from . import masks, visits
from .backward_rows import bent
from .elements import kept, within
from .umma_backward_plan import HALF, PIECE, TILE, columns_of, matrices, multiplies, operand_layout
from .umma_backward_roles import (
    LOAD_WARP,
    MMA_WARP,
    REDUCE_WARP,
    THREADS,
    allocated,
    make_leave,
    make_load,
    make_reduce,
    make_walk,
    piped,
    start,
    take_registers,
    words_of,
)
from .umma_roles import multiply

TAKEN, LAST = 1, 2  # named barriers: of all who use tensor memory, when it is taken, and at its end
VECTOR = 8  # elements of 16 bits that a thread writes at once


@functools.cache
def make_multiply(form):
    """The role of the warp that multiplies."""
    scores, sums, back = multiplies(form)
    lies, columns, of_terms = matrices(form), columns_of(form), operand_layout(sums)
    s_layout = scores.make_fragment_C(scores.partition_shape_C((TILE, TILE))).layout
    sums_layout = sums.make_fragment_C(sums.partition_shape_C((TILE, form.d))).layout
    dtype, shared = form.dtype, columns.dq == columns.dp

    @cuda.jit
    def multiply_all(base, tiles, pipes, rounds):
        fK = scores.make_fragment_A(cute.make_tensor(tiles.k.iterator, lies.a_rows))[None, None, None, 0]
        fV = scores.make_fragment_A(cute.make_tensor(tiles.v.iterator, lies.a_rows))[None, None, None, 0]
        fQ = scores.make_fragment_B(cute.make_tensor(tiles.q.iterator, lies.b_q))
        fdO = scores.make_fragment_B(cute.make_tensor(tiles.do.iterator, lies.b_do))
        fQt = sums.make_fragment_B(cute.make_tensor(tiles.q.iterator, lies.t_q))
        fdOt = sums.make_fragment_B(cute.make_tensor(tiles.do.iterator, lies.t_do))
        fKt = back.make_fragment_B(cute.make_tensor(tiles.k.iterator, lies.t_k))[None, None, None, 0]
        fdS = back.make_fragment_A(cute.make_tensor(tiles.ds.iterator, lies.a_ds))[None, None, None, 0]
        tS, tdP = (cute.make_tensor(base + c, s_layout) for c in (columns.s, columns.dp))
        tdV, tdK, tdQ = (cute.make_tensor(base + c, sums_layout) for c in (columns.dv, columns.dk, columns.dq))
        tP, tdS = (cute.make_tensor(cute.recast_ptr(base + c, dtype=dtype), of_terms) for c in (columns.s, columns.dp))
        own, do = pipes.own.make_consumer(), pipes.do.make_consumer()
        q, q_done = pipes.q.make_consumer(), pipes.q.make_consumer()
        of_s, of_dp, of_dq = pipes.s.make_producer(), pipes.dp.make_producer(), pipes.dq.make_producer()
        own.wait_and_advance()  # K
        of_s.acquire()
        of_dp.acquire()
        multiply(scores, tS, fK, fQ[None, None, None, q.wait_and_advance().index], False)
        of_s.commit()
        of_s.advance()
        own.wait_and_advance()  # V
        for i in range(rounds):
            of_s.acquire()  # P is there
            seen = do.wait_and_advance()
            multiply(sums, tdV, tP, fdOt[None, None, None, seen.index], i > 0)
            if cute.const_expr(shared):
                of_dq.acquire()
            multiply(scores, tdP, fV, fdO[None, None, None, seen.index], False)
            of_dp.commit()
            of_dp.advance()
            seen.release()
            if i + 1 < rounds:
                multiply(scores, tS, fK, fQ[None, None, None, q.wait_and_advance().index], False)
                of_s.commit()
                of_s.advance()
            of_dp.acquire()  # dS is there
            multiply(sums, tdK, tdS, fQt[None, None, None, q_done.state.index], i > 0)
            q_done.release()
            q_done.advance()
            if cute.const_expr(not shared):
                of_dq.acquire()
            multiply(back, tdQ, fdS, fKt, False)
            of_dq.commit()
            of_dq.advance()
        pipes.sums.make_producer().acquire().commit()

    return multiply_all


@functools.cache
def make_powers(form):
    """The functions of a piece of a thread's scores: one makes P, one dS, and one reads numbers of its queries."""
    dtype, score, mask, left, right = form.dtype, form.score, form.mask, form.left, form.right
    wide = cute.make_copy_atom(CopyUniversalOp(), dtype, 16 * VECTOR)

    @cuda.jit
    def numbers_of(numbers, which, stage, first):
        """Read a number of each of a piece's queries."""
        held = cute.make_rmem_tensor(PIECE, cute.Float32)
        at = cute.assume((stage * 2 + which) * TILE + first, divby=PIECE)
        cute.autovec_copy(cute.make_tensor(numbers.iterator + at, cute.make_layout(PIECE)), held)
        return held

    @cuda.jit
    def hidden(key, query, walk):
        """A word with a bit for each of a piece's queries, set where it does not see this thread's key."""
        word = cute.Uint32(0xFFFFFFFF if key >= walk.keys else 0)
        if cute.const_expr(right):
            word |= masks.lowest(key - walk.before - query)
        if cute.const_expr(left):
            word |= masks.others(key - walk.behind + 1 - query)
        return word

    @cuda.jit
    def powers(rS, piece, log, key, query, head, partial, walk, aux, mask_aux, scale, scale_log2):
        """Make of a piece of scores P, rounded, and leave in their place P times the derivative of their function.
        partial: whether the mask's function is asked; none is of a query or key beyond the last."""
        s, slopes = rS[None, piece], cute.make_rmem_tensor(PIECE, cute.Float32)
        own = within(key, walk.keys)
        if cute.const_expr(score is not None):
            for i in cute.range_constexpr(PIECE):
                at = within(query + i, walk.queries)
                s[i], slopes[i] = bent(score, s[i] * scale, walk.batch, head, at, own, aux)
        if cute.const_expr(mask is not None):
            if partial:
                for i in cute.range_constexpr(PIECE):
                    at = within(query + i, walk.queries)
                    s[i] = kept(mask(walk.batch, head, at, own, *mask_aux), s[i], -math.inf)
        word = hidden(key, query, walk)
        if word != 0:
            for i in cute.range_constexpr(PIECE):
                s[i] = cute.where(word & (1 << i) != 0, cute.Float32(-math.inf), s[i])
        s.store(cute.math.exp2(s.load() * scale_log2 - log.load(), fastmath=True))
        rounded = cute.make_rmem_tensor(PIECE, dtype)
        rounded.store(s.load().to(dtype))
        if cute.const_expr(score is not None):
            for i in cute.range_constexpr(PIECE):
                s[i] = cute.where(s[i] == 0, cute.Float32(0), s[i] * slopes[i])
        return rounded

    @cuda.jit
    def slopes(p, dp, dot, shared):
        """Make of a piece of dP dS, rounded, and write it to its place in shared memory too."""
        rounded = cute.make_rmem_tensor(PIECE, dtype)
        rounded.store((p.load() * (dp.load() - dot.load())).to(dtype))
        for v in cute.range_constexpr(PIECE // VECTOR):
            cute.copy(wide, cute.local_tile(rounded, (VECTOR,), (v,)), cute.local_tile(shared, (VECTOR,), (v,)))
        return rounded

    return powers, slopes, numbers_of


@functools.cache
def make_compute(form):
    """The role of the threads that compute: P of S, and dS of dP."""
    dtype, columns = form.dtype, columns_of(form)
    powers, slopes, numbers_of = make_powers(form)
    words, load_words = words_of(HALF)  # of a warpgroup's scores
    terms = cute.make_layout((TILE, HALF), stride=(1 << 17, 1))  # of its P, or dS
    store_terms = cute.make_copy_atom(tcgen05.St32x32bOp(Repetition(PIECE // 2)), dtype)
    _, following, tile_of = visits.make_heads(form.block, TILE, TILE, form.bounded)

    @cuda.jit
    def compute(base, tiles, pipes, walk, half, thread, aux, mask_aux, scale, scale_log2):
        """Do so for `half` of the queries of each tile. thread: of the warpgroup."""
        tS, tdP = (cute.make_tensor(base + (c + half * HALF), words) for c in (columns.s, columns.dp))
        tP, tdS = (
            cute.make_tensor(cute.recast_ptr(base + (c + half * HALF), dtype=dtype), terms)
            for c in (columns.s, columns.dp)
        )
        loads = tcgen05.make_tmem_copy(load_words, tS)
        stores = tcgen05.make_tmem_copy(store_terms, tP)
        from_s, from_dp = (loads.get_slice(thread).partition_S(t) for t in (tS, tdP))
        to_p, to_ds = (stores.get_slice(thread).partition_D(t) for t in (tP, tdS))
        own_ds = cute.local_tile(tiles.ds[thread, None], (HALF,), (half,))
        numbers, of_s, of_dp = pipes.numbers.make_consumer(), pipes.s.make_consumer(), pipes.dp.make_consumer()
        key = cute.Int32(walk.tile * TILE + thread)
        place, last, head = start(walk)
        rS = cute.make_rmem_tensor((PIECE, HALF // PIECE), cute.Float32)
        rdP = cute.make_rmem_tensor(PIECE, cute.Float32)
        for _ in range(walk.rounds):
            place, last, head = following(place, last, head, walk.tile, walk.batch, walk.first, walk.last, walk.listed)
            m, partial = tile_of(place, head, walk.tile, walk.batch, walk.listed)
            given, scored = numbers.wait_and_advance(), of_s.wait_and_advance()
            for piece in cute.range_constexpr(HALF // PIECE):
                cute.copy(loads, from_s[None, 0, piece], rS[None, piece])
                arch.fence_view_async_tmem_load()
                first = half * HALF + piece * PIECE
                log = numbers_of(tiles.numbers, 0, given.index, first)
                query = cute.Int32(m * TILE + first)
                rP = powers(rS, piece, log, key, query, head, partial, walk, aux, mask_aux, scale, scale_log2)
                cute.copy(stores, rP, to_p[None, 0, piece])
            arch.fence_view_async_tmem_store()
            scored.release()

            multiplied = of_dp.wait_and_advance()
            for piece in cute.range_constexpr(HALF // PIECE):
                cute.copy(loads, from_dp[None, 0, piece], rdP)
                arch.fence_view_async_tmem_load()
                dot = numbers_of(tiles.numbers, 1, given.index, half * HALF + piece * PIECE)
                rdS = slopes(rS[None, piece], rdP, dot, cute.local_tile(own_ds, (PIECE,), (piece,)))
                cute.copy(stores, rdS, to_ds[None, 0, piece])
            arch.fence_view_async_tmem_store()
            arch.fence_proxy("async.shared", space="cta")
            multiplied.release()
            arch.sync_warp()
            given.release()

    return compute


@functools.cache
def make_kernel(form):
    """The kernel of a form. Its grid: tiles of keys, KV heads and batches, as the order says."""
    columns, walk_of = columns_of(form), make_walk(form)
    load, multiply_all, compute = make_load(form), make_multiply(form), make_compute(form)
    leave, reduce = make_leave(form), make_reduce(form)
    dtype, lies, (q_stages, do_stages), nbytes = form.dtype, matrices(form), form.stages, form.tile_bytes
    of_others, of_reduce, of_compute = form.registers

    @cuda.jit(launch_bounds=(THREADS, 1))
    def kernel(
        tma_q, mQ, tma_k, mK, tma_v, mV, tma_do, mdO, dk, dk_strides, dv, dv_strides, logs, dots, sums,
        cu_q, cu_k, used, aux, mask_aux, listed, queries, keys, group, order, behind, before, scale, scale_log2,
    ):  # fmt: skip
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        if warp == LOAD_WARP:
            for tma in (tma_q, tma_k, tma_v, tma_do):
                cpasync.prefetch_descriptor(tma)
        smem = utils.SmemAllocator()
        tiles, pipes = allocated(smem, dtype, lies, q_stages), piped(smem, q_stages, do_stages, nbytes, tidx)
        tmem = utils.TmemAllocator(
            smem.allocate_array(cute.Int32, 1), barrier_for_retrieve=NamedBarrier(TAKEN, 32 * (MMA_WARP + 1))
        )
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()
        walk = walk_of(arch.block_idx()[0], order, group, queries, keys, behind, before, cu_q, cu_k, used, listed)
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()  # the kernel before has written what stands there of each query

        if warp >= MMA_WARP:
            take_registers(of_others)
            if warp == LOAD_WARP:
                if walk.rounds > 0:
                    load(tma_q, mQ, tma_k, mK, tma_v, mV, tma_do, mdO, logs, dots, tiles, pipes, walk)
            elif warp == MMA_WARP:
                tmem.wait_for_alloc()
                base = tmem.retrieve_ptr(cute.Float32)
                if walk.rounds > 0:
                    multiply_all(base, tiles, pipes, walk.rounds)
        elif warp >= REDUCE_WARP:
            take_registers(of_reduce)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cute.Float32)
            reduce(base, tiles, pipes, walk, warp, tidx % TILE, sums)
            NamedBarrier(LAST, 32 * MMA_WARP).arrive_and_wait()
        else:
            take_registers(of_compute)
            tmem.allocate(columns.whole)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cute.Float32)
            half, thread = warp // 4, cute.Int32(tidx % TILE)
            compute(base, tiles, pipes, walk, half, thread, aux, mask_aux, scale, scale_log2)
            if walk.rounds > 0:
                pipes.sums.make_consumer().wait()
            leave(base, half, dk, dk_strides, dv, dv_strides, scale, walk, thread)
            tmem.relinquish_alloc_permit()
            NamedBarrier(LAST, 32 * MMA_WARP).arrive_and_wait()
            tmem.free(base)

    return kernel
