# SPDX-License-Identifier: Apache-2.0
"""The role of the warpgroup of Blackwell's attention that corrects: it scales O where maxima have grown, and writes it
in the end."""

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch

from . import masks, output, softmax, split
from .elements import make_elements
from .umma_form import ROWS, sums_of
from .umma_parts import FACTOR, LOG, WARP_ROWS, make_tiles
from .umma_roles import Rows
from .walk import make_blocks

PIECE = 32  # columns of O that a warp scales, or writes, at once


@cuda.jit
def told(slots, which, row, g, values):
    """Read what was told of this thread's rows."""
    for j in cute.range_constexpr(2):
        for r in cute.range_constexpr(2):
            values[r, j] = slots[row + 16 * j + 8 * r, which, g]


@cuda.jit
def scale(sums, pieces, factor):
    """Multiply the warp's rows of O, of so many pieces, if any of them is to be."""
    moved = factor[0, 0] != 1 or factor[1, 0] != 1 or factor[0, 1] != 1 or factor[1, 1] != 1
    if arch.vote_any_sync(moved):
        acc = cute.make_rmem_tensor((PIECE // 2, 2), cute.Float32)
        for piece in cute.range_constexpr(pieces):
            for j in cute.range_constexpr(2):
                sums.take(piece, j, acc[None, j])
            arch.fence_view_async_tmem_load()
            for j in cute.range_constexpr(2):
                softmax.scale_rows(acc[None, j], factor[None, j])
                sums.put(piece, j, acc[None, j])
        arch.fence_view_async_tmem_store()


def make_leave(form):
    """The function that writes results: `leave`."""
    dtype, dv = form.dtype, form.dv
    row_of, _, _ = make_elements(form.pack, form.group, form.tile_n, form.score, form.mask)

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

    return leave


def make_clear(form):
    """The function that zeroes values behind the last key: `clear`."""
    tile_n, (_, _, block_at, _) = form.tile_n, make_blocks(form, WARP_ROWS)

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

    return clear


@functools.cache
def make_correction_role(form):
    """The role of the warpgroup that corrects: `correct_tiles`."""
    groups, tile_m, tile_n, dv = form.groups, form.tile_m, form.tile_n, form.dv
    clear, leave = make_clear(form), make_leave(form)
    start, after, tile_at = make_tiles(form)
    o_layout = sums_of(form)[3]

    @cuda.jit
    def of_group(base, g, thread):
        """This thread's part of a group's O."""
        tO = cute.make_tensor(base + (groups * tile_n + g * dv), o_layout)[(None, None), 0, 0]
        return Rows.create(tO, PIECE, thread)

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
                    scale(of_group(base, g, thread), dv // PIECE, factor)
                    ready.release()
                    ready.advance()
            for g in cute.range_constexpr(groups):
                rows.wait()
                told(slots, FACTOR, row, g, factor)
                told(slots, LOG, row, g, lse)
                rows.release()
                rows.advance()
                results.wait()
                place = cute.Int32(tile.m * tile_m + g * ROWS + row)
                leave(of_group(base, g, thread), factor, lse, mO, mL, place, tile, given)
                results.release()
                results.advance()
            index, seen = after(index, seen, given)

    return correct_tiles
