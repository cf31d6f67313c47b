# SPDX-License-Identifier: Apache-2.0
"""Attention's backward pass on GPUs whose tensor cores are a warp's: dQ of one kernel, dK and dV of another.

Each sums what is its own in registers, so that nothing is added up in memory, and the result is the same each time; S
and dP are computed twice. A CTA keeps a tile of queries, or of keys, a warp 16 rows of it, and what it meets passes by
in blocks: the next is copied while one is multiplied. Of queries, S = Q K^T, P, dP = dO V^T, dS, dQ += dS K. Of keys
the same is turned: S^T = K Q^T, P^T, dV += P^T dO, dP^T = V dO^T, dS^T, dK += dS^T Q. So P and dS stay in registers,
rounded as they lie to operands, and what they meet is taken out of shared memory turned.
"""

import functools
import math

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils

from . import masks, output, softmax, visits
from .backward_rows import bent
from .elements import kept, within
from .products import multiply
from .schedule import divided, tile_at
from .walk import make_blocks, make_mask
from .warps_form import VECTOR, fragment_copies, multiply_of, rows_copy, tile_layout
from .warps_tiles import as_operand, block_of, bring, sequence, sums_of, turned

STAGES = 2  # of what passes by


def make_load(form, columns, rows):
    """The function by which a CTA begins to copy tiles of so many rows, and this thread's part of shared memory."""
    copy, down = rows_copy(form, columns)
    across = form.threads // down
    assert rows % down == 0, form

    @cuda.jit
    def load(own, target, thread, n, first, count):
        """Begin to copy the n-th tile of a sequence of `count` rows, which begins at `first`; zeros behind it. own: the
        rows of a head."""
        row, column = thread // across, thread % across * VECTOR
        for i in cute.range_constexpr(rows // down):
            at = cute.Int32(n * rows + row + down * i)
            there = cute.Int32(first + max(0, min(at, count - 1)))
            bring(target, own[there, None], i, cute.Int32(column), at < count)

    return load, copy


def make_asked(score, mask, of_keys, of_products):
    """The functions of a block's scores: `change` and `leave_out`, which ask the caller's of no query and no key beyond
    the last. of_keys: whether a thread's rows are keys, and its columns queries, or the other way round. of_products:
    whether dP becomes dS."""

    @cuda.jit
    def pair(row, column, r, j, queries, keys):
        """The query and the key of a thread's score, as functions are asked of them."""
        own, other = cute.Int32(row + 8 * r), cute.Int32(column + j // 2 * 8 + j % 2)
        if cute.const_expr(of_keys):
            return within(other, queries), within(own, keys)
        return within(own, queries), within(other, keys)

    @cuda.jit
    def change(scores, products, row, column, b, head, aux, scale, queries, keys):
        """Scale scores, and change them as the function says, and dP by its derivative."""
        for r in cute.range_constexpr(2):
            for j in cute.range_constexpr(cute.size(scores, mode=[1])):
                query, key = pair(row, column, r, j, queries, keys)
                made, slope = bent(score, scores[r, j] * scale, b, head, query, key, aux)
                scores[r, j] = made
                if cute.const_expr(of_products):
                    products[r, j] *= slope

    @cuda.jit
    def leave_out(scores, row, column, b, head, mask_aux, queries, keys):
        """Leave out the scores that the mask's function does not allow."""
        for r in cute.range_constexpr(2):
            for j in cute.range_constexpr(cute.size(scores, mode=[1])):
                query, key = pair(row, column, r, j, queries, keys)
                scores[r, j] = kept(mask(b, head, query, key, *mask_aux), scores[r, j], -math.inf)

    return change, leave_out


@functools.cache
def make_queries(form):
    """The kernel for dQ. Its grid: a CTA for each tile of queries, head and batch."""
    dtype, d, dv, tile_m, tile_n, group = form.dtype, form.d, form.dv, form.tile_m, form.tile_n, form.group
    threads, score, asked = form.threads, form.score, form.mask
    tiled_mma = multiply_of(form)
    copy_a, copy_b, copy_turned = fragment_copies(form, tiled_mma)
    load_q, own_d = make_load(form, d, tile_m)
    load_do, own_v = make_load(form, dv, tile_m)
    (load_k, _), (load_v, _) = make_load(form, d, tile_n), make_load(form, dv, tile_n)
    q_layout, do_layout = tile_layout(dtype, tile_m, d), tile_layout(dtype, tile_m, dv)
    k_layout, v_layout = tile_layout(dtype, tile_n, d, STAGES), tile_layout(dtype, tile_n, dv, STAGES)
    tile_of, blocks_of, block_at, whole_of = make_blocks(form, form.rows, always=False)
    mask, (change, leave_out) = make_mask(form), make_asked(score, asked, False, True)

    @cuda.jit(launch_bounds=(threads, form.ctas))
    def gradient_of_queries(
        mQ, mK, mV, mdO, mdQ, logs, dots, cu_q, cu_k, used, aux, mask_aux, listed, queries, keys, order, left, right,
        scale, scale_log2,
    ):  # fmt: skip
        thread, _, _ = arch.thread_idx()
        index, _, _ = arch.block_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sdO = smem.allocate_tensor(dtype, do_layout.outer, 1024, do_layout.inner, "sdO")
        sK = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sK")
        sV = smem.allocate_tensor(dtype, v_layout.outer, 1024, v_layout.inner, "sV")
        to_q, to_k = own_d.get_slice(thread).partition_D(sQ), own_d.get_slice(thread).partition_D(sK)
        to_do, to_v = own_v.get_slice(thread).partition_D(sdO), own_v.get_slice(thread).partition_D(sV)

        m, head, b, _ = tile_of(cute.Int32(index), order, None)
        first_q, rows_q = sequence(cu_q, None, b, queries)
        first_k, rows_k = sequence(cu_k, used, b, keys)
        if m * tile_m < rows_q:
            begin, end = blocks_of(m, head, b, rows_q, rows_k, left, right, 0, None, listed)
            kv_head, own_q, own_k = (
                cute.Int32(head // group),
                0 if cu_q is not None else b,
                0 if cu_k is not None else b,
            )
            place = cute.Int32(m * tile_m + 16 * warp + thread % 32 // 4)  # of this thread's first row
            column = cute.Int32(thread % 4 * 2)
            whole_begin, whole_end = whole_of(m * tile_m + 16 * warp, rows_q, rows_k, left, right)
            gK, gV = mK[None, None, kv_head, own_k], mV[None, None, kv_head, own_k]
            log, dot = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
            for r in cute.range_constexpr(2):
                log[r], dot[r] = logs[place + 8 * r, head, b], dots[place + 8 * r, head, b]
            rS, rdP, rdQ = sums_of(16, tile_n), sums_of(16, tile_n), sums_of(16, d)
            rdQ.fill(0)
            scores, products = softmax.rows_of(rS), softmax.rows_of(rdP)

            if begin < end:
                load_q(mQ[None, None, head, own_q], to_q, thread, m, first_q, rows_q)
                load_do(mdO[None, None, head, own_q], to_do, thread, m, first_q, rows_q)
                last, _ = block_at(cute.Int32(end - 1), m, head, b, listed)
                load_k(gK, to_k[None, None, None, 0], thread, last, first_k, rows_k)
                load_v(gV, to_v[None, None, None, 0], thread, last, first_k, rows_k)
            arch.cp_async_commit_group()
            for i in range(end - begin):
                at, stage = cute.Int32(end - 1 - i), cute.Int32(i % STAGES)
                n, partial = block_at(at, m, head, b, listed)
                arch.cp_async_wait_group(0)
                arch.sync_threads()  # the block is there, and all warps are done with the one before
                if at > begin:
                    after, _ = block_at(cute.Int32(at - 1), m, head, b, listed)
                    load_k(gK, to_k[None, None, None, stage ^ 1], thread, after, first_k, rows_k)
                    load_v(gV, to_v[None, None, None, stage ^ 1], thread, after, first_k, rows_k)
                arch.cp_async_commit_group()
                rS.fill(0)
                for r in cute.range_constexpr(2):
                    products[r, None].fill(-dot[r])
                multiply(tiled_mma, copy_a, copy_b, thread, sQ, sK[None, None, stage], rS)
                multiply(tiled_mma, copy_a, copy_b, thread, sdO, sV[None, None, stage], rdP)
                first = cute.Int32(n * tile_n + column)
                if cute.const_expr(score is not None):
                    change(scores, products, place, first, b, head, aux, scale, rows_q, rows_k)
                if cute.const_expr(asked is not None):
                    if partial:
                        leave_out(scores, place, first, b, head, mask_aux, rows_q, rows_k)
                if n >= whole_end or n < whole_begin:
                    mask(scores, n, place, column, rows_q, rows_k, left, right)
                for r in cute.range_constexpr(2):
                    p = cute.math.exp2(scores[r, None].load() * scale_log2 - log[r], fastmath=True)
                    products[r, None].store(p * products[r, None].load())
                multiply(
                    tiled_mma, None, copy_turned, thread, as_operand(rdP, dtype), turned(sK[None, None, stage]), rdQ
                )

            for r in cute.range_constexpr(2):
                query = cute.Int32(place + 8 * r)
                row = mdQ[cute.Int32(first_q + min(query, rows_q - 1)), None, head, own_q]
                output.store_row(block_of(rdQ, 0), r, scale, row, query < rows_q, dtype)

    return gradient_of_queries


@functools.cache
def make_keys(form, which):
    """The kernel for dK and dV, or for one of them. which: "k", "v", or both. Its grid: a CTA for each tile of keys, KV
    head and batch."""
    dtype, d, dv, tile_m, tile_n, group = form.dtype, form.d, form.dv, form.tile_m, form.tile_n, form.group
    threads, score, asked, has_left, has_right = form.threads, form.score, form.mask, form.left, form.right
    of_k, of_v = "k" in which, "v" in which
    tiled_mma = multiply_of(form)
    copy_a, copy_b, copy_turned = fragment_copies(form, tiled_mma)
    load_k, own_d = make_load(form, d, tile_m)
    load_v, own_v = make_load(form, dv, tile_m)
    (load_q, _), (load_do, _) = make_load(form, d, tile_n), make_load(form, dv, tile_n)
    k_layout, v_layout = tile_layout(dtype, tile_m, d), tile_layout(dtype, tile_m, dv)
    q_layout, do_layout = tile_layout(dtype, tile_n, d, STAGES), tile_layout(dtype, tile_n, dv, STAGES)
    rounds_of, following, tile_of = visits.make_heads(form.block, tile_m, tile_n, form.bounded)
    change, leave_out = make_asked(score, asked, True, of_k)

    @cuda.jit
    def blocks_of(m, queries, keys, left, right):
        """The blocks of queries that see tile m of keys: the first, and the one after the last."""
        shift, begin, end = cute.Int32(keys - queries), cute.Int32(0), cute.Int32(queries)
        if cute.const_expr(has_right):
            begin = cute.Int32(max(0, m * tile_m - shift - right))
        if cute.const_expr(has_left):
            end = cute.Int32(max(0, min(queries, (m + 1) * tile_m - shift + left)))
        begin, end = divided(begin, tile_n), divided(end + tile_n - 1, tile_n)
        return cute.Int32(min(begin, end)), cute.Int32(end)

    @cuda.jit
    def mask(scores, n, key, column, queries, keys, left, right):
        """Leave out the scores of block n whose queries do not see this thread's rows, `key` and the eighth after."""
        begin, end = cute.make_rmem_tensor(2, cute.Int32), cute.make_rmem_tensor(2, cute.Int32)
        for r in cute.range_constexpr(2):
            own = cute.Int32(key + 8 * r - (keys - queries) - n * tile_n)  # the query at this key, in the block
            end[r] = cute.Int32(tile_n)
            if cute.const_expr(has_left):
                end[r] = cute.Int32(own + left + 1)
            if cute.const_expr(has_right):
                begin[r] = cute.Int32(own - right)
        masks.leave_out(scores, column, begin if has_right else None, end)

    @cuda.jit
    def store(acc, to, factor, place, first, count):
        """Write a thread's two rows of sums, times `factor`."""
        for r in cute.range_constexpr(2):
            key = cute.Int32(place + 8 * r)
            row = to[cute.Int32(first + min(key, count - 1)), None]
            output.store_row(block_of(acc, 0), r, factor, row, key < count, dtype)

    @cuda.jit
    def numbers(held, tensor, head, b, first):
        """Read a number of each of this thread's columns, two of every 8."""
        for j in cute.range_constexpr(tile_n // 8):
            pair = arch.load(tensor[None, head, b].iterator + (first + 8 * j), cute.Float32, count=2)
            held[2 * j], held[2 * j + 1] = pair[0], pair[1]

    @cuda.jit(launch_bounds=(threads, form.ctas))
    def gradients_of_keys(
        mQ, mK, mV, mdO, mdK, mdV, logs, dots, cu_q, cu_k, used, aux, mask_aux, listed, queries, keys, order, left,
        right, scale, scale_log2,
    ):  # fmt: skip
        thread, _, _ = arch.thread_idx()
        index, _, _ = arch.block_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        sK = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sK")
        sV = smem.allocate_tensor(dtype, v_layout.outer, 1024, v_layout.inner, "sV") if of_k else None
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sdO = smem.allocate_tensor(dtype, do_layout.outer, 1024, do_layout.inner, "sdO")
        to_q, to_k = own_d.get_slice(thread).partition_D(sQ), own_d.get_slice(thread).partition_D(sK)
        to_do = own_v.get_slice(thread).partition_D(sdO)

        m, kv_head, b = tile_at(cute.Int32(index), order, False)
        first_q, rows_q = sequence(cu_q, None, b, queries)
        first_k, rows_k = sequence(cu_k, used, b, keys)
        if m * tile_m < rows_k:
            own_q, own_k = 0 if cu_q is not None else b, 0 if cu_k is not None else b
            place = cute.Int32(m * tile_m + 16 * warp + thread % 32 // 4)
            column = cute.Int32(thread % 4 * 2)
            log, dot = (cute.make_rmem_tensor(tile_n // 4, cute.Float32) for _ in range(2))
            rS, rdP = sums_of(16, tile_n), sums_of(16, tile_n)
            rdK, rdV = sums_of(16, d), sums_of(16, dv)
            rdK.fill(0)
            rdV.fill(0)
            scores, products = softmax.rows_of(rS), softmax.rows_of(rdP)
            # The first and the last query that see all of a warp's keys
            shift = cute.Int32(rows_k - rows_q)
            least = cute.Int32(m * tile_m + 16 * warp + 15 - shift - right)
            most = cute.Int32(m * tile_m + 16 * warp - shift + left)

            begin, end = blocks_of(m, rows_q, rows_k, left, right)
            rounds = rounds_of(m, kv_head, group, b, begin, end, listed)
            at, last, head = cute.Int32(0), cute.Int32(0), cute.Int32(kv_head * group - 1)
            stage = cute.Int32(rounds % STAGES)
            if rounds > 0:
                at, last, head = following(at, last, head, m, b, begin, end, listed)
                n, _ = tile_of(at, head, m, b, listed)
                load_k(mK[None, None, kv_head, own_k], to_k, thread, m, first_k, rows_k)
                if cute.const_expr(of_k):
                    to_v = own_v.get_slice(thread).partition_D(sV)
                    load_v(mV[None, None, kv_head, own_k], to_v, thread, m, first_k, rows_k)
                load_q(mQ[None, None, head, own_q], to_q[None, None, None, stage], thread, n, first_q, rows_q)
                load_do(mdO[None, None, head, own_q], to_do[None, None, None, stage], thread, n, first_q, rows_q)
            arch.cp_async_commit_group()
            while rounds > 0:
                stage, after, next_head = cute.Int32(rounds % STAGES), at, head
                n, partial = tile_of(at, head, m, b, listed)
                arch.cp_async_wait_group(0)
                arch.sync_threads()  # the block is there, and all warps are done with the one before
                if rounds > 1:
                    after, last, next_head = following(at, last, head, m, b, begin, end, listed)
                    ahead, _ = tile_of(after, next_head, m, b, listed)
                    gQ, gdO = mQ[None, None, next_head, own_q], mdO[None, None, next_head, own_q]
                    load_q(gQ, to_q[None, None, None, stage ^ 1], thread, ahead, first_q, rows_q)
                    load_do(gdO, to_do[None, None, None, stage ^ 1], thread, ahead, first_q, rows_q)
                arch.cp_async_commit_group()
                numbers(log, logs, head, b, n * tile_n + column)
                if cute.const_expr(of_k):
                    numbers(dot, dots, head, b, n * tile_n + column)
                rS.fill(0)
                multiply(tiled_mma, copy_a, copy_b, thread, sK, sQ[None, None, stage], rS)
                if cute.const_expr(of_k):
                    for r in cute.range_constexpr(2):
                        for j in cute.range_constexpr(cute.size(products, mode=[1])):
                            products[r, j] = -dot[j]
                    multiply(tiled_mma, copy_a, copy_b, thread, sV, sdO[None, None, stage], rdP)
                first = cute.Int32(n * tile_n + column)
                if cute.const_expr(score is not None):
                    change(scores, products, place, first, b, head, aux, scale, rows_q, rows_k)
                if cute.const_expr(asked is not None):
                    if partial:
                        leave_out(scores, place, first, b, head, mask_aux, rows_q, rows_k)
                if cute.const_expr(has_left or has_right):
                    if (has_right and n * tile_n < least) or (has_left and (n + 1) * tile_n - 1 > most):
                        mask(scores, n, place, column, rows_q, rows_k, left, right)
                for r in cute.range_constexpr(2):
                    for j in cute.range_constexpr(cute.size(scores, mode=[1])):
                        scores[r, j] = cute.math.exp2(scores[r, j] * scale_log2 - log[j], fastmath=True)
                        if cute.const_expr(of_k):
                            products[r, j] *= scores[r, j]
                if cute.const_expr(of_v):
                    by = turned(sdO[None, None, stage])
                    multiply(tiled_mma, None, copy_turned, thread, as_operand(rS, dtype), by, rdV)
                if cute.const_expr(of_k):
                    by = turned(sQ[None, None, stage])
                    multiply(tiled_mma, None, copy_turned, thread, as_operand(rdP, dtype), by, rdK)
                at, head, rounds = after, next_head, cute.Int32(rounds - 1)

            if cute.const_expr(of_k):
                store(rdK, mdK[None, None, kv_head, own_k], scale, place, first_k, rows_k)
            if cute.const_expr(of_v):
                store(rdV, mdV[None, None, kv_head, own_k], cute.Float32(1), place, first_k, rows_k)

    return gradients_of_keys
