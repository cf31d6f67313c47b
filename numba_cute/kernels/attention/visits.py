# SPDX-License-Identifier: Apache-2.0
"""Find the blocks of keys that a tile of queries visits by lists: of each block of queries the blocks that it sees, in
their order, and of each whether it sees all of it, so that no function need be asked.

A list's element is twice the number of a block, and one more where the block is seen whole. A block has as many tiles
of a kernel as its extent says; *places* count the tiles that a list names, one after the other.
"""

from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from numba_cute.seam import frozen

from .schedule import divided
from .split import BEYOND


@frozen
class Visits:
    """Hold the lists. counts: (rows, heads, batch), how many blocks each list names. lists: (blocks, rows, heads,
    batch). Both Int32; where all heads, or batches, have the same, their strides are 0."""

    counts: Any
    lists: Any


def of(counts, lists):
    """Give the lists of arrays: counts (batch, heads, rows) and lists (batch, heads, rows, blocks), whose extent is 1
    where all batches, or heads, have the same."""

    def over(array):
        t = from_dlpack(array)
        shape, stride = t.layout.shape[::-1], t.layout.stride[::-1]
        step = [0 if n == 1 else cute.Int64(s) for n, s in zip(shape[-2:], stride[-2:])]
        inner = [1, *(cute.Int64(s) for s in stride[1:-2])]
        return cute.make_tensor(t.iterator, cute.make_layout(tuple(map(cute.Int32, shape)), stride=(*inner, *step)))

    return Visits(over(counts), over(lists))


@cuda.jit
def place_of(visits, row, head, b, tile, each):
    """Give the first place whose tile is `tile`, or comes after it. row, head, b: of the list. each: tiles of a
    block."""
    block = divided(tile, each)
    low, high = cute.Int32(0), cute.Int32(visits.counts[row, head, b])
    end = high
    while low < high:
        middle = cute.Int32((low + high) // 2)
        if visits.lists[middle, row, head, b] // 2 < block:
            low = cute.Int32(middle + 1)
        else:
            high = middle
    place = cute.Int32(low * each)
    if low < end:
        if visits.lists[low, row, head, b] // 2 == block:
            place = cute.Int32(place + tile - block * each)
    return place


@cuda.jit
def places_of(visits, row, head, b, begin, end, each, bounded):
    """Give the places of the tiles from `begin` to before `end`: the first, and the one after the last; BEYOND twice
    where there is none. bounded: whether a list may name others. All others as of `place_of`."""
    first, last = cute.Int32(0), cute.Int32(visits.counts[row, head, b] * each)
    if cute.const_expr(bounded):
        first = place_of(visits, row, head, b, begin, each)
        last = place_of(visits, row, head, b, end, each)
    if first >= last:
        first, last = cute.Int32(BEYOND), cute.Int32(BEYOND)
    return first, last


@cuda.jit
def tile_visited(visits, row, head, b, place, each):
    """Give the tile at a place, and whether all of it is seen; a tile beyond all where the place is. All others as of
    `place_of`."""
    tile, whole = cute.Int32(BEYOND), cute.Int32(0)
    if place < BEYOND:
        element = cute.Int32(visits.lists[divided(place, each), row, head, b])
        tile, whole = cute.Int32(element // 2 * each + place % each), cute.Int32(element % 2)
    return tile, whole


def make_heads(block, tile_m, tile_n, bounded):
    """The functions of the tiles of queries that see a tile of keys, head after head of those that share it:
    `rounds_of`, `following` and `tile_of`. block: queries and keys of a block, or None where nothing is listed: then
    places are tiles. tile_m, tile_n: keys, and queries, of a tile. bounded: as of `places_of`. m: the tile of keys.
    begin, end: the tiles of queries that a window leaves."""
    each = 1 if block is None else block[0] // tile_n

    @cuda.jit
    def places_of_head(m, head, b, begin, end, listed):
        """The places of a head's tiles."""
        if cute.const_expr(block is None):
            return begin, end
        return places_of(listed, divided(m * tile_m, block[1]), head, b, begin, end, each, bounded)

    @cuda.jit
    def rounds_of(m, kv_head, group, b, begin, end, listed):
        """Count the tiles of all heads of a group."""
        if cute.const_expr(block is None):
            return cute.Int32((end - begin) * group)
        rounds = cute.Int32(0)
        for i in range(group):
            first, last = places_of_head(m, cute.Int32(kv_head * group + i), b, begin, end, listed)
            rounds = cute.Int32(rounds + last - first)
        return rounds

    @cuda.jit
    def following(place, last, head, m, b, begin, end, listed):
        """The place after one, of the next head that has one where this one's `last` is reached; that head's last, and
        the head. There must be one."""
        place = cute.Int32(place + 1)
        while place >= last:
            head = cute.Int32(head + 1)
            place, last = places_of_head(m, head, b, begin, end, listed)
        return place, last, head

    @cuda.jit
    def tile_of(place, head, m, b, listed):
        """The tile at a place, and whether the mask's function is to be asked of it."""
        if cute.const_expr(block is None):
            return place, True
        n, whole = tile_visited(listed, divided(m * tile_m, block[1]), head, b, place, each)
        return n, whole == 0

    return rounds_of, following, tile_of
