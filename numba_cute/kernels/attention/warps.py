# SPDX-License-Identifier: Apache-2.0
"""Attention on GPUs whose tensor cores are a warp's (sm_80 on), forward: O = softmax(scale Q K^T) V, and the log of
each row's sum of exponentials.

A CTA has a tile of queries, each of its warps 16 or 32 rows of it, and takes block after block of the keys that they
see, the last first. All warps copy by cp.async, zeros beyond the last key: a block's values while its scores are
computed, and the next block's keys while they become weights and meet the values. S = Q K^T stays in registers, where
its softmax is taken as on Hopper, and is rounded to the operand of O += P V as it lies.
"""

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils

from . import output, softmax, split
from .elements import make_elements
from .products import multiply
from .walk import make_blocks, make_mask
from .warps_form import VECTOR, fragment_copies, multiply_of, rows_copy, tile_layout
from .warps_tiles import as_operand, block_of, bring, sequence, sums_of, turned


@functools.cache
def make_forward(form):
    """The kernel of a form. Its grid: a CTA for each tile, or part of its keys."""
    dtype, d, dv, tile_m, tile_n, group = form.dtype, form.d, form.dv, form.tile_m, form.tile_n, form.group
    rows, threads, pack, page = form.rows, form.threads, form.pack, form.page
    score, asked, ctas = form.score, form.mask, form.ctas
    blocks = rows // 16
    tiled_mma = multiply_of(form)
    copy_a, copy_b, copy_turned = fragment_copies(form, tiled_mma)
    (copy_k, down_k), (copy_v, down_v) = rows_copy(form, d), rows_copy(form, dv)
    assert tile_m % down_k == 0 and tile_n % down_k == 0 and tile_n % down_v == 0, form
    q_layout, k_layout, v_layout = (tile_layout(dtype, *x) for x in ((tile_m, d), (tile_n, d), (tile_n, dv)))
    heads_of_tile = 1 if pack > 1 else group  # tile heads that share the keys and values of one
    tile_of, blocks_of, block_at, whole_of = make_blocks(form, rows, always=False)
    mask = make_mask(form)
    row_of, change, ask = make_elements(pack, group, tile_n, score, asked)

    @cuda.jit
    def load_queries(mQ, target, thread, m, head, b, first, queries):
        """Begin to copy a tile of queries."""
        row, column = thread // (threads // down_k), thread % (threads // down_k) * VECTOR
        for i in cute.range_constexpr(tile_m // down_k):
            query, own_head, there = row_of(m * tile_m + row + down_k * i, 0, head)
            own = mQ[cute.Int32(first + min(query, queries - 1)), None, own_head, b]
            bring(target, own, i, cute.Int32(column), there and query < queries)

    @cuda.jit
    def load_keys(tensor, target, down, thread, n, head, b, first, keys, pages, sequence_of):
        """Begin to copy block n of keys, or of values, a row at a time: each may be of another page."""
        row, column = thread // (threads // down), thread % (threads // down) * VECTOR
        for i in cute.range_constexpr(tile_n // down):
            key = cute.Int32(n * tile_n + row + down * i)
            at = cute.Int32(max(0, min(key, keys - 1)))
            if cute.const_expr(page == 0):
                own = tensor[cute.Int32(first + at), None, head, b]
            else:
                own = tensor[cute.Int32(at % page), None, head, pages[sequence_of, at // page]]
            bring(target, own, i, cute.Int32(column), key < keys)

    @cuda.jit
    def leave(rO, factor, lse, mO, mL, first, queries, head, own_b, place, part, splits):
        """Write a thread's two rows of O, times `factor`, and the logs of their sums."""
        at_part = own_b if splits is None else (own_b, part)
        for r in cute.range_constexpr(2):
            query, own_head, there = row_of(place, r, head)
            there = there and query < queries
            own_row = mO[cute.Int32(first + min(query, queries - 1)), None, own_head, at_part]
            if cute.const_expr(splits is None):
                output.store_row(rO, r, factor[r], own_row, there, dtype)
            elif there:
                split.store_row(rO, r, factor[r], own_row)
            if there and arch.lane_idx() % 4 == 0:
                mL[cute.Int32(first + query), own_head, at_part] = lse[r]

    @cuda.jit(launch_bounds=(threads, ctas))
    def attention(
        mQ, mK, mV, mO, mL, cu_q, cu_k, used, pages, sink, aux, mask_aux, listed, splits, queries, keys, order, left,
        right, scale, scale_log2,
    ):  # fmt: skip
        thread, _, _ = arch.thread_idx()
        index, _, _ = arch.block_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sK = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sK")
        sV = smem.allocate_tensor(dtype, v_layout.outer, 1024, v_layout.inner, "sV")
        to_q, to_k = copy_k.get_slice(thread).partition_D(sQ), copy_k.get_slice(thread).partition_D(sK)
        to_v = copy_v.get_slice(thread).partition_D(sV)

        m, head, b, part = tile_of(cute.Int32(index), order, splits)
        first_q, rows_q = sequence(cu_q, None, b, queries)
        first_k, rows_k = sequence(cu_k, used, b, keys)
        if m * tile_m < rows_q * pack:
            begin, end = blocks_of(m, head, b, rows_q, rows_k, left, right, part, splits, listed)
            kv_head = cute.Int32(head // heads_of_tile)
            own_q, own_k = 0 if cu_q is not None else b, 0 if cu_k is not None else b
            place = cute.Int32(m * tile_m + rows * warp + thread % 32 // 4)  # of this thread's first row
            column = cute.Int32(thread % 4 * 2)
            whole_begin, whole_end = whole_of(m * tile_m + rows * warp, rows_q, rows_k, left, right)
            rS, rO = sums_of(rows, tile_n), sums_of(rows, dv)
            rO.fill(0)
            highest, total = (cute.make_rmem_tensor((2, blocks), cute.Float32) for _ in range(2))
            factor, lse = (cute.make_rmem_tensor((2, blocks), cute.Float32) for _ in range(2))
            highest.fill(softmax.LOWEST)
            total.fill(0)

            if begin < end:
                load_queries(mQ, to_q, thread, m, head, own_q, first_q, rows_q)
                last, _ = block_at(cute.Int32(end - 1), m, head, b, listed)
                load_keys(mK, to_k, down_k, thread, last, kv_head, own_k, first_k, rows_k, pages, b)
            arch.cp_async_commit_group()
            for i in range(end - begin):
                at = cute.Int32(end - 1 - i)
                n, partial = block_at(at, m, head, b, listed)
                arch.cp_async_wait_group(0)
                arch.sync_threads()  # the keys are there, and all warps are done with the values before
                load_keys(mV, to_v, down_v, thread, n, kv_head, own_k, first_k, rows_k, pages, b)
                arch.cp_async_commit_group()
                rS.fill(0)
                multiply(tiled_mma, copy_a, copy_b, thread, sQ, sK, rS)
                arch.cp_async_wait_group(0)
                arch.sync_threads()  # the values are there, and all warps are done with the keys
                if at > begin:
                    after, _ = block_at(cute.Int32(at - 1), m, head, b, listed)
                    load_keys(mK, to_k, down_k, thread, after, kv_head, own_k, first_k, rows_k, pages, b)
                arch.cp_async_commit_group()
                for j in cute.range_constexpr(blocks):
                    scores, own = softmax.rows_of(block_of(rS, j)), cute.Int32(place + 16 * j)
                    if cute.const_expr(score is not None):
                        change(scores, n, own, column, b, head, aux, scale, rows_q, rows_k)
                    if cute.const_expr(asked is not None):
                        if partial:
                            ask(scores, n, own, column, b, head, mask_aux, rows_q, rows_k)
                    if n >= whole_end or n < whole_begin:
                        mask(scores, n, own, column, rows_q, rows_k, left, right)
                    moved = softmax.raise_maxima(
                        scores, highest[None, j], total[None, j], factor[None, j], scale_log2,
                        cute.Float32(softmax.GROWN),
                    )  # fmt: skip
                    softmax.exponentials(scores, highest[None, j], total[None, j], scale_log2, cute.Float32(0))
                    if moved:
                        softmax.scale_rows(block_of(rO, j), factor[None, j])
                multiply(tiled_mma, None, copy_turned, thread, as_operand(rS, dtype), turned(sV), rO)

            for j in cute.range_constexpr(blocks):
                own = cute.Int32(place + 16 * j)
                sinks = None
                if cute.const_expr(sink is not None):
                    sinks = cute.make_rmem_tensor(2, cute.Float32)
                    for r in cute.range_constexpr(2):
                        _, own_head, _ = row_of(own, r, head)
                        sinks[r] = sink[own_head]
                softmax.finish(highest[None, j], total[None, j], factor[None, j], lse[None, j], sinks, cute.Float32(0))
                leave(
                    block_of(rO, j), factor[None, j], lse[None, j], mO, mL, first_q, rows_q, head, own_q, own, part,
                    splits,
                )  # fmt: skip

    return attention
