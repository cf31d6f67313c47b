# SPDX-License-Identifier: Apache-2.0
"""The role of the warpgroups of Blackwell's attention that take softmax."""

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch

from . import softmax
from .elements import make_elements
from .umma_exponentials import exponentials
from .umma_form import ROWS, sums_of
from .umma_parts import FACTOR, LOG, WARP_ROWS, make_tiles
from .umma_roles import Rows, Words
from .walk import make_blocks, make_mask


@cuda.jit
def tell(slots, which, values, row, g):
    """Write what the warpgroup that corrects is to know of this thread's rows, the same in four lanes."""
    if arch.lane_idx() % 4 == 0:
        for j in cute.range_constexpr(2):
            for r in cute.range_constexpr(2):
                slots[row + 16 * j + 8 * r, which, g] = values[r, j]


@cuda.jit
def turn(participant, groups):
    """Go on to this group's next stage: the others' are between."""
    for _ in cute.range_constexpr(groups):
        participant.advance()


def make_hide(form):
    """The function that leaves scores out: `hide`."""
    score, asked = form.score, form.mask
    _, change, ask = make_elements(form.pack, form.group, form.tile_n, score, asked)
    mask = make_mask(form)

    @cuda.jit
    def hide(acc, n, partial, place, column, whole_begin, whole_end, aux, mask_aux, tile, given):
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

    return hide


def make_soften(form):
    """The function that makes P of a block's S: `soften`."""
    dtype, groups, hide = form.dtype, form.groups, make_hide(form)

    @cuda.jit
    def soften(ready, rows, slots, sums, words, rounded, highest, total, factor, n, partial, first, place, column, row,
               g, whole_begin, whole_end, aux, mask_aux, tile, given):  # fmt: skip
        """Make P of the S of block n, and tell what O is to be multiplied with, unless it is the first block."""
        acc = cute.make_rmem_tensor((cute.size(rounded), 2), cute.Float32)
        ready.wait()
        for j in cute.range_constexpr(2):
            sums.take(0, j, acc[None, j])
        arch.fence_view_async_tmem_load()
        hide(acc, n, partial, place, column, whole_begin, whole_end, aux, mask_aux, tile, given)
        for j in cute.range_constexpr(2):
            factor[None, j].fill(1)
            softmax.raise_maxima(
                softmax.rows_of(acc[None, j]), highest[None, j], total[None, j], factor[None, j], given.scale_log2,
                cute.Float32(softmax.GROWN),
            )  # fmt: skip
        if not first:
            rows.acquire()
            tell(slots, FACTOR, factor, row, g)
            arch.tcgen05_fence_before_thread_sync()
            rows.commit()
            turn(rows, groups)
        for j in cute.range_constexpr(2):
            exponentials(softmax.rows_of(acc[None, j]), highest[None, j], total[None, j], given.scale_log2)
            rounded.store(acc[None, j].load().to(dtype))
            words.put(j, rounded)
        arch.fence_view_async_tmem_store()
        ready.release()
        turn(ready, groups)

    return soften


def make_finish(form):
    """The function that ends a row's softmax: `finish`."""
    row_of, _, _ = make_elements(form.pack, form.group, form.tile_n, form.score, form.mask)

    @cuda.jit
    def finish(highest, total, factor, lse, place, tile, given):
        """Give what results are to be multiplied with, and the logs, as `softmax.finish` does."""
        sinks = None
        for j in cute.range_constexpr(2):
            if cute.const_expr(given.sink is not None):
                sinks = cute.make_rmem_tensor(2, cute.Float32)
                for r in cute.range_constexpr(2):
                    _, own_head, _ = row_of(cute.Int32(place + 16 * j), r, tile.head)
                    sinks[r] = given.sink[own_head]
            softmax.finish(
                highest[None, j], total[None, j], factor[None, j], lse[None, j], sinks,
                cute.Float32(0),
            )  # fmt: skip

    return finish


@functools.cache
def make_softmax_role(form):
    """The role of the warpgroups that make S to P: `soften_tiles`."""
    dtype, groups, tile_m, tile_n = form.dtype, form.groups, form.tile_m, form.tile_n
    _, _, block_at, whole_of = make_blocks(form, WARP_ROWS)
    start, after, tile_at = make_tiles(form)
    s_layout, _, p_layout, _ = sums_of(form)
    soften, finish = make_soften(form), make_finish(form)

    @cuda.jit
    def soften_tiles(ready, rows, slots, base, thread, g, aux, mask_aux, given):
        """Make P of all S of group g. thread: of its warpgroup."""
        sums = Rows.create(cute.make_tensor(base + g * tile_n, s_layout)[(None, None), 0, 0], tile_n, thread)
        words = Words.create(cute.make_tensor(cute.recast_ptr(base + g * tile_n, dtype=dtype), p_layout), thread)
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
            highest.fill(softmax.LOWEST)
            total.fill(0)
            for i in range(tile.end - tile.begin):
                n, partial = block_at(tile.end - 1 - i, tile.m, tile.head, tile.b, given.listed)
                soften(
                    ready, rows, slots, sums, words, rounded, highest, total, factor, n, partial, i == 0, place,
                    column, row, g, whole_begin, whole_end, aux, mask_aux, tile, given,
                )  # fmt: skip
            finish(highest, total, factor, lse, place, tile, given)
            rows.acquire()
            tell(slots, FACTOR, factor, row, g)
            tell(slots, LOG, lse, row, g)
            rows.commit()
            turn(rows, groups)
            index, seen = after(index, seen, given)

    return soften_tiles
