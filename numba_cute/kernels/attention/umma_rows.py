# SPDX-License-Identifier: Apache-2.0
"""The roles of Blackwell's attention that have rows of the tile: the warpgroups that take softmax, and the one that
corrects: it scales O where maxima have grown, and writes it in the end."""

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch

from . import masks, output, softmax, split
from .elements import make_elements
from .umma_form import ROWS, multiplies
from .umma_parts import WARP_ROWS, make_tiles
from .umma_roles import Rows, Words
from .walk import make_blocks

PIECE = 32  # columns of O that a warp scales, or writes, at once
FACTOR, LOG = 0, 1  # what a row's slot holds: what its O is to be multiplied with, and in the end the log of its sum


@functools.cache
def make_softmax_role(form):
    """The role of the warpgroups that make S to P: `soften_tiles`."""
    dtype, groups, tile_m, tile_n, group, pack = (
        form.dtype, form.groups, form.tile_m, form.tile_n, form.group, form.pack
    )  # fmt: skip
    score, asked = form.score, form.mask
    _, _, block_at, whole_of, mask = make_blocks(form, WARP_ROWS)
    row_of, change, ask = make_elements(pack, group, tile_n, score, asked)
    start, after, tile_at = make_tiles(form)
    scores_mma, values_mma = multiplies(form)
    s_layout = scores_mma.make_fragment_C(scores_mma.partition_shape_C((ROWS, tile_n))).layout
    p_fragment = values_mma.make_fragment_A(values_mma.partition_shape_A((ROWS, tile_n))).layout
    rows, columns = cute.get(p_fragment, mode=[0, 0]), cute.get(p_fragment, mode=[0, 1])
    p_layout = cute.make_layout((rows.shape, tile_n), stride=(rows.stride, columns.stride))  # the same, row by row

    @cuda.jit
    def tell(rows, slots, which, values, row):
        """Write what the warpgroup that corrects is to know of this thread's rows, the same in four lanes."""
        if arch.lane_idx() % 4 == 0:
            for j in cute.range_constexpr(2):
                for r in cute.range_constexpr(2):
                    slots[row + 16 * j + 8 * r, which, rows.state.index] = values[r, j]

    @cuda.jit
    def leave_out(acc, n, partial, place, column, whole_begin, whole_end, aux, mask_aux, tile, given):
        """Change the scores of a block as the caller's functions say, and leave out those of keys that are not seen."""
        for j in cute.range_constexpr(2):
            scores, own = softmax.rows_of(acc[None, j]), cute.Int32(place + 16 * j)
            if cute.const_expr(score is not None):
                change(scores, n, own, column, tile.b, tile.head, aux, given.scale, tile.rows_q, tile.rows_k)
            if cute.const_expr(asked is not None):
                if partial:
                    ask(scores, n, own, column, tile.b, tile.head, mask_aux, tile.rows_q, tile.rows_k)
            if n >= whole_end or n < whole_begin:
                mask(scores, n, own, column, tile.rows_q, tile.rows_k, given.left, given.right)

    @cuda.jit
    def soften_tiles(ready, rows, slots, base, thread, g, aux, mask_aux, given):
        """Make P of all S of group g. thread: of its warpgroup."""
        sums = Rows.create(cute.make_tensor(base + g * tile_n, s_layout)[(None, None), 0, 0], tile_n, thread)
        words = Words.create(cute.make_tensor(cute.recast_ptr(base + g * tile_n, dtype=dtype), p_layout), thread)
        acc = cute.make_rmem_tensor((tile_n // 2, 2), cute.Float32)
        rounded = cute.make_rmem_tensor(tile_n // 2, dtype)
        highest, total = (cute.make_rmem_tensor((2, 2), cute.Float32) for _ in range(2))
        factor, lse = (cute.make_rmem_tensor((2, 2), cute.Float32) for _ in range(2))
        row, column = thread // 32 * 32 + thread % 32 // 4, cute.Int32(thread % 4 * 2)
        index, seen = start(given)
        while index < given.order.tiles:
            tile = tile_at(index, given)
            first = cute.Int32(tile.m * tile_m + g * ROWS)
            place = cute.Int32(first + row)
            whole_begin, whole_end = whole_of(
                first + arch.make_warp_uniform(thread // 32) * 32, tile.rows_q, tile.rows_k, given.left, given.right
            )
            highest.fill(softmax.lowest(given.scale_log2))
            total.fill(0)
            for i in range(tile.end - tile.begin):
                n, partial = block_at(tile.end - 1 - i, tile.m, tile.head, tile.b, given.listed)
                ready.wait()
                for j in cute.range_constexpr(2):
                    sums.take(0, j, acc[None, j])
                arch.fence_view_async_tmem_load()
                leave_out(acc, n, partial, place, column, whole_begin, whole_end, aux, mask_aux, tile, given)
                for j in cute.range_constexpr(2):
                    factor[None, j].fill(1)
                    softmax.raise_maxima(
                        softmax.rows_of(acc[None, j]), highest[None, j], total[None, j], factor[None, j],
                        given.scale_log2, cute.Float32(softmax.GROWN),
                    )  # fmt: skip
                if i > 0:
                    rows.acquire()
                    tell(rows, slots, FACTOR, factor, row)
                    arch.tcgen05_fence_before_thread_sync()
                    rows.commit()
                    for _ in cute.range_constexpr(groups):
                        rows.advance()
                for j in cute.range_constexpr(2):
                    softmax.exponentials(
                        softmax.rows_of(acc[None, j]), highest[None, j], total[None, j], given.scale_log2,
                        cute.Float32(0),
                    )  # fmt: skip
                    rounded.store(acc[None, j].load().to(dtype))
                    words.put(j, rounded)
                arch.fence_view_async_tmem_store()
                ready.release()
                for _ in cute.range_constexpr(groups):
                    ready.advance()
            sinks = None
            for j in cute.range_constexpr(2):
                if cute.const_expr(given.sink is not None):
                    sinks = cute.make_rmem_tensor(2, cute.Float32)
                    for r in cute.range_constexpr(2):
                        _, own_head, _ = row_of(cute.Int32(place + 16 * j), r, tile.head)
                        sinks[r] = given.sink[own_head]
                softmax.finish(
                    highest[None, j], total[None, j], factor[None, j], lse[None, j], given.scale_log2, sinks,
                    cute.Float32(0),
                )  # fmt: skip
            rows.acquire()
            tell(rows, slots, FACTOR, factor, row)
            tell(rows, slots, LOG, lse, row)
            rows.commit()
            for _ in cute.range_constexpr(groups):
                rows.advance()
            index, seen = after(index, seen, given)

    return soften_tiles


@functools.cache
def make_correction_role(form):
    """The role of the warpgroup that corrects: `correct_tiles`."""
    dtype, groups, tile_m, tile_n, dv, pack, group = (
        form.dtype, form.groups, form.tile_m, form.tile_n, form.dv, form.pack, form.group
    )  # fmt: skip
    _, _, block_at, _, _ = make_blocks(form, WARP_ROWS)
    row_of, _, _ = make_elements(pack, group, tile_n, form.score, form.mask)
    start, after, tile_at = make_tiles(form)
    _, values_mma = multiplies(form)
    o_layout = values_mma.make_fragment_C(values_mma.partition_shape_C((ROWS, dv))).layout

    @cuda.jit
    def told(slots, which, row, g, values):
        """Read what was told of this thread's rows."""
        for j in cute.range_constexpr(2):
            for r in cute.range_constexpr(2):
                values[r, j] = slots[row + 16 * j + 8 * r, which, g]

    @cuda.jit
    def scale(sums, factor):
        """Multiply the warp's rows of O, if any of them is to be."""
        moved = factor[0, 0] != 1 or factor[1, 0] != 1 or factor[0, 1] != 1 or factor[1, 1] != 1
        if arch.vote_any_sync(moved):
            acc = cute.make_rmem_tensor((PIECE // 2, 2), cute.Float32)
            for piece in cute.range_constexpr(dv // PIECE):
                for j in cute.range_constexpr(2):
                    sums.take(piece, j, acc[None, j])
                arch.fence_view_async_tmem_load()
                for j in cute.range_constexpr(2):
                    softmax.scale_rows(acc[None, j], factor[None, j])
                    sums.put(piece, j, acc[None, j])
            arch.fence_view_async_tmem_store()

    @cuda.jit
    def leave(sums, factor, lse, mO, mL, place, tile, given):
        """Write the warp's rows of O, times `factor`, and the logs of their sums."""
        own_b = 0 if given.cu_q is not None else tile.b
        at = own_b if given.splits is None else (own_b, tile.part)
        acc = cute.make_rmem_tensor(PIECE // 2, cute.Float32)
        for j in cute.range_constexpr(2):
            for piece in cute.range_constexpr(dv // PIECE):
                sums.take(piece, j, acc)
                arch.fence_view_async_tmem_load()
                for r in cute.range_constexpr(2):
                    query, own_head, there = row_of(cute.Int32(place + 16 * j), r, tile.head)
                    there = there and query < tile.rows_q
                    own_row = mO[cute.Int32(tile.first_q + min(query, cute.Int32(tile.rows_q - 1))), None, own_head, at]
                    part = cute.make_tensor(own_row.iterator + PIECE * piece, cute.make_layout(PIECE))
                    if cute.const_expr(given.splits is None):
                        output.store_row(acc, r, factor[r, j], part, there, dtype)
                    elif there:
                        split.store_row(acc, r, factor[r, j], part)
                    if cute.const_expr(piece == 0):
                        if there and arch.lane_idx() % 4 == 0:
                            mL[cute.Int32(tile.first_q + query), own_head, at] = lse[r, j]

    @cuda.jit
    def clear(full_v, sV, thread, tile, given):
        """Zero what lies behind the last key in the first block of values, before it is multiplied."""
        if cute.const_expr(given.cu_k is not None or given.used is not None):
            last, _ = block_at(tile.end - 1, tile.m, tile.head, tile.b, given.listed)
            if (last + 1) * tile_n > tile.rows_k:
                stage = full_v.wait()
                beyond = max(0, tile.rows_k - last * tile_n)
                masks.clear_behind(sV[None, None, stage.index], beyond, thread, 128)
                arch.fence_proxy("async.shared", space="cta")
            for _ in range(tile.end - tile.begin):
                full_v.advance()

    @cuda.jit
    def correct_tiles(full_v, ready, rows, results, slots, base, sV, mO, mL, thread, given):
        """Scale O of all tiles, and write it."""
        factor, lse = (cute.make_rmem_tensor((2, 2), cute.Float32) for _ in range(2))
        row = thread // 32 * 32 + thread % 32 // 4
        index, seen = start(given)
        while index < given.order.tiles:
            tile = tile_at(index, given)
            clear(full_v, sV, thread, tile, given)
            for _ in cute.range_constexpr(groups):  # there is no O to scale yet
                ready.release()
                ready.advance()
            for _ in range(tile.end - tile.begin - 1):
                for g in cute.range_constexpr(groups):
                    rows.wait()  # for P V before, too, for which its threads have waited
                    arch.tcgen05_fence_after_thread_sync()
                    told(slots, FACTOR, row, g, factor)
                    rows.release()
                    rows.advance()
                    tO = cute.make_tensor(base + (groups * tile_n + g * dv), o_layout)[(None, None), 0, 0]
                    scale(Rows.create(tO, PIECE, thread), factor)
                    ready.release()
                    ready.advance()
            for g in cute.range_constexpr(groups):
                rows.wait()
                told(slots, FACTOR, row, g, factor)
                told(slots, LOG, row, g, lse)
                rows.release()
                rows.advance()
                results.wait()
                tO = cute.make_tensor(base + (groups * tile_n + g * dv), o_layout)[(None, None), 0, 0]
                place = cute.Int32(tile.m * tile_m + g * ROWS + row)
                leave(Rows.create(tO, PIECE, thread), factor, lse, mO, mL, place, tile, given)
                results.release()
                results.advance()
            index, seen = after(index, seen, given)

    return correct_tiles
