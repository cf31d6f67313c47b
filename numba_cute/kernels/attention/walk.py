# SPDX-License-Identifier: Apache-2.0
"""Walk through attention's tiles: which queries and which blocks of keys a tile has, in which order tiles come, and
which blocks are masked. Shared by the kernels of all families; what brings tiles is for those that TMA feeds."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch

from . import masks, split, visits
from .form import by_lanes
from .schedule import divided, next_told, tile_at


@cuda.jit
def sequence(cu, used, b, rows):
    """The first row of sequence b, and how many it has: of all as many, or where `cu` and `used` say."""
    first = 0
    if cute.const_expr(cu is not None):
        first = cu[b]
        rows = cu[b + 1] - first
    if cute.const_expr(used is not None):
        rows = used[b]
    return first, rows


@cuda.jit
def shifted(tensor, cu, first):
    """The tensor from a sequence's first row on."""
    if cute.const_expr(cu is None):
        return tensor
    if cute.const_expr(cute.rank(tensor, mode=[0]) == 2):
        return cute.domain_offset(((0, first), 0), tensor)
    return cute.domain_offset((first, 0), tensor)


def make_blocks(form, rows, always=True):
    """The functions of a tile's blocks of keys: `tile_of`, `blocks_of`, `block_at` and `whole_of`. form: a family's.
    rows: of a tile, that say together whether a block is masked. always: whether a tile that sees no key has a block
    all the same, all masked."""
    tile_m, tile_n, pack, has_left, has_right = form.tile_m, form.tile_n, form.pack, form.left, form.right
    block, per_block = form.block, 1 if form.block is None else form.block[1] // tile_n
    bounded = form.bounded or per_block > 1  # the last block may have tiles that there are not

    @cuda.jit
    def tile_of(index, order, splits):
        """The tile that comes `index`-th, and which part of its keys."""
        m, head, b = tile_at(index, order, has_right)
        if cute.const_expr(splits is None):
            return m, head, b, 0
        tile, part = splits.divmod(m)
        return tile, head, b, part

    @cuda.jit
    def blocks_of(m, head, b, queries, keys, left, right, part, splits, listed):
        """The blocks of keys that the queries of tile m see, or a part of them: the first, and the one after the last;
        of those that are listed, their places."""
        shift = cute.Int32(keys - queries)
        first, last = m * tile_m // pack + shift, ((m + 1) * tile_m - 1) // pack + shift
        begin, end = cute.Int32(0), cute.Int32(keys)
        if cute.const_expr(has_right):
            end = cute.Int32(max(min(keys, last + right + 1), 0))
        if cute.const_expr(has_left):
            begin = cute.Int32(max(0, first - left))
        begin, end = divided(begin, tile_n), divided(end + tile_n - 1, tile_n)
        if cute.const_expr(block is not None):
            row = divided(m * tile_m, block[0])
            begin, end = visits.places_of(listed, row, head, b, begin, end, per_block, bounded)
        if cute.const_expr(splits is not None):
            begin, end = split.part_of(begin, end, part, splits)
        if cute.const_expr(always):
            end = max(end, cute.Int32(begin + 1))
        return begin, end

    @cuda.jit
    def block_at(place, m, head, b, listed):
        """The block of keys at a place, and whether the mask's function is to be asked of it."""
        if cute.const_expr(block is None):
            return place, True
        n, whole = visits.tile_visited(listed, divided(m * tile_m, block[0]), head, b, place, per_block)
        return arch.make_warp_uniform(n), arch.make_warp_uniform(whole) == 0

    @cuda.jit
    def whole_of(place, queries, keys, left, right):
        """Return the blocks of keys that so many rows, from `place` on, see whole: the first, and the one after the
        last."""
        begin, end, shift = cute.Int32(0), cute.Int32(keys), cute.Int32(keys - queries)
        if cute.const_expr(has_right):
            end = cute.Int32(max(min(keys, place // pack + shift + right + 1), 0))
        if cute.const_expr(has_left):
            begin = cute.Int32(max(0, (place + rows - 1) // pack + shift - left))
        return divided(begin + tile_n - 1, tile_n), divided(end, tile_n)

    return tile_of, blocks_of, block_at, whole_of


def make_ring(form, blocks_of):
    """The functions of a tile's blocks of the keys of several GPUs: `blocks_of` and `block_at`, in the place of those
    of `make_blocks`, and `mask`. form: a family's. blocks_of: of this GPU's own keys alone, which are visited first."""
    tile_m, tile_n, pack, has_right = form.tile_m, form.tile_n, form.pack, form.right

    @cuda.jit
    def blocks_of_all(m, head, b, queries, keys, left, right, part, splits, ring):
        """The places of the blocks that a tile sees, as of `blocks_of`."""
        _, end = blocks_of(m, head, b, queries, keys, left, right, part, splits, ring)
        return cute.Int32(ring.first(((m + 1) * tile_m - 1) // pack)), cute.Int32(end + ring.before())

    @cuda.jit
    def block_at(place, m, head, b, ring):
        """The block of a GPU's keys at a place, and the chunk, which is negative where they are this GPU's own."""
        return ring.block_at(place)

    @cuda.jit
    def mask(scores, at, first, whole, place, column, keys, ring):
        """Leave out the scores of the block at a place that the thread's rows, `place` and the eighth after, do not
        see. Gives the next place at which to ask: before it all is seen whole. first: of the rows that ask together.
        whole: the first block of this GPU's own that these do not see whole."""
        n, chunk = ring.block_at(at)
        if chunk >= 0:
            whole = divided(ring.limit(chunk, first // pack, keys), tile_n)
        if n >= whole:
            end = cute.make_rmem_tensor(2, cute.Int32)
            for r in cute.range_constexpr(2):
                query = (place + 8 * r) // pack
                own = cute.Int32(min(keys, query + 1) if has_right else keys)
                end[r] = cute.where(chunk < 0, own, ring.limit(chunk, query, keys)) - n * tile_n
            masks.leave_out(scores, column, None, end)
        return cute.Int32(ring.next_of(at, n, chunk, whole))

    return blocks_of_all, block_at, mask


def make_mask(form):
    """The function that leaves out what a window does not have: `mask`."""
    tile_n, pack, has_left, has_right = form.tile_n, form.pack, form.left, form.right

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

    return mask


def make_load(form):
    """The function that brings a block of keys, or values, to shared memory."""
    tile_n, cluster, page, chunk = form.tile_n, form.cluster, form.page, form.chunk
    share, lanes = (1 << cluster) - 1, by_lanes(form)

    @cuda.jit
    def page_of(pages, b, key, keys):
        """The number of the page that has a key of sequence b; of one beyond the last, that of the last."""
        return cute.Int32(pages[b, max(0, min(key, keys - 1)) // page])

    @cuda.jit
    def load(tma, source, target, place, stage, pages, b, n, keys):
        """Bring block n of keys, or values, to a stage: at once, or a page, or a part of one, after the other."""
        if cute.const_expr(cluster > 1):
            cute.copy(tma, source[None, n], target[None, place], tma_bar_ptr=stage.barrier, mcast_mask=share)
        elif cute.const_expr(page == 0):
            cute.copy(tma, source[None, n], target[None, place], tma_bar_ptr=stage.barrier)
        elif cute.const_expr(lanes):
            of_lane = page_of(
                pages, b, cute.Int32(n * tile_n + min(arch.lane_idx(), tile_n // chunk - 1) * chunk), keys
            )
            for c in cute.range(tile_n // chunk, unroll=1):
                key = cute.Int32(n * tile_n + c * chunk)
                number = arch.shuffle_sync(of_lane, c)
                cute.copy(tma, source[None, key % page // chunk, number], target[None, c, place],
                          tma_bar_ptr=stage.barrier)  # fmt: skip
        else:
            for c in cute.range_constexpr(tile_n // chunk):
                key = n * tile_n + c * chunk
                number = pages[b, max(0, min(key, keys - 1)) // page]
                cute.copy(tma, source[None, key % page // chunk, number], target[None, c, place],
                          tma_bar_ptr=stage.barrier)  # fmt: skip

    return load


def make_next(form, tile_of):
    """The functions that find the CTA's next tile: `following` and `seek`. tile_of: as of `make_blocks`."""
    tile_m, pack, cluster, draws = form.tile_m, form.pack, form.cluster, form.draws

    @cuda.jit
    def following(index, seen, tickets, told, ctas):
        """The number of the CTA's next tile, and how many of which it was told."""
        if cute.const_expr(draws):
            return next_told(tickets, told, seen), seen + 1
        return index + ctas, seen

    @cuda.jit
    def seek(index, seen, tickets, told, cu_q, queries, splits, order, ctas):
        """From tile `index` on, the first that has queries, as `following` gives it; if none has, one beyond all."""
        if cute.const_expr(cu_q is not None):
            while index < order.tiles:
                m, _, b, _ = tile_of(index, order, splits)
                if m * cluster * tile_m < sequence(cu_q, None, b, queries)[1] * pack:
                    break
                index, seen = following(index, seen, tickets, told, ctas)
        return index, seen

    return following, seek
