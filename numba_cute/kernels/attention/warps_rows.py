# SPDX-License-Identifier: Apache-2.0
"""Find a tile's rows of queries and the blocks of keys that they see, and mask their scores."""

from numba import cuda

import numba_cute as cute

from . import masks, split
from .schedule import divided, tile_at


@cuda.jit
def sequence(cu, used, b, rows):
    """Give the first row of sequence b, and its number of rows: `rows`, or what `cu` and `used` say."""
    first = cute.Int32(0)
    if cute.const_expr(cu is not None):
        first = cute.Int32(cu[b])
        rows = cute.Int32(cu[b + 1] - first)
    if cute.const_expr(used is not None):
        rows = cute.Int32(used[b])
    return first, cute.Int32(rows)


def make_blocks(form):
    """The functions of a form's tiles: `tile_of`, `blocks_of`, `whole_of` and `mask`."""
    tile_m, tile_n, pack, has_left, has_right = form.tile_m, form.tile_n, form.pack, form.left, form.right

    @cuda.jit
    def tile_of(index, order, splits):
        """The tile that comes `index`-th, and which part of its keys."""
        m, head, b = tile_at(index, order, has_right)
        if cute.const_expr(splits is None):
            return m, head, b, 0
        tile, part = splits.divmod(m)
        return tile, head, b, part

    @cuda.jit
    def blocks_of(m, queries, keys, left, right, part, splits):
        """The blocks of keys that the queries of tile m see, or a part of them: the first, and the one after the
        last."""
        shift = cute.Int32(keys - queries)
        first, last = m * tile_m // pack + shift, ((m + 1) * tile_m - 1) // pack + shift
        begin, end = cute.Int32(0), cute.Int32(keys)
        if cute.const_expr(has_right):
            end = cute.Int32(max(min(keys, last + right + 1), 0))
        if cute.const_expr(has_left):
            begin = cute.Int32(max(0, first - left))
        begin, end = divided(begin, tile_n), divided(end + tile_n - 1, tile_n)
        if cute.const_expr(splits is not None):
            begin, end = split.part_of(begin, end, part, splits)
        return cute.Int32(begin), cute.Int32(end)

    @cuda.jit
    def whole_of(place, rows, queries, keys, left, right):
        """Of the blocks of keys those that so many rows from `place` on see whole: the first, and the one after the
        last."""
        begin, end, shift = cute.Int32(0), cute.Int32(keys), cute.Int32(keys - queries)
        if cute.const_expr(has_right):
            end = cute.Int32(max(min(keys, place // pack + shift + right + 1), 0))
        if cute.const_expr(has_left):
            begin = cute.Int32(max(0, (place + rows - 1) // pack + shift - left))
        return divided(begin + tile_n - 1, tile_n), divided(end, tile_n)

    @cuda.jit
    def mask(scores, n, place, column, queries, keys, left, right):
        """Leave out the scores of block n that the thread's rows, `place` and the eighth after, do not see."""
        begin, end = cute.make_rmem_tensor(2, cute.Int32), cute.make_rmem_tensor(2, cute.Int32)
        for r in cute.range_constexpr(2):
            at = (place + 8 * r) // pack + keys - queries
            end[r] = keys - n * tile_n
            if cute.const_expr(has_right):
                end[r] = min(keys, at + right + 1) - n * tile_n
            if cute.const_expr(has_left):
                begin[r] = at - left - n * tile_n
        masks.leave_out(scores, column, begin if has_left else None, end)

    return tile_of, blocks_of, whole_of, mask
