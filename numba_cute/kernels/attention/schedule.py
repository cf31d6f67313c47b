# SPDX-License-Identifier: Apache-2.0
"""The order in which attention's tiles are done: persistent, heads in sections that share L2, longest tiles first."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch

L2_BYTES = 32 << 20  # of K and V that a section of heads may take


@cuda.jit
def tile_at(index, blocks, heads, batch, section, longest_first):
    """Give (block, head, batch) of the `index`-th tile. Sections of `section` heads are done one after the other; in a
    section the heads are innermost, and blocks are counted from the last where `longest_first`."""
    per_section = section * blocks
    which, rest = index // per_section, index % per_section
    first = which * section
    width = min(section, heads * batch - first)
    block, at = rest // width, first + rest % width
    if longest_first:
        block = blocks - 1 - block
    return block, at % heads, at // heads


@cuda.jit
def draw(counter, tiles, ctas):
    """Draw the number of the next tile from `counter`, an int32 that is 0 before the first; who draws the last one sets
    it back. tiles: how many there are. ctas: those that draw; each does its own number first. A whole warp."""
    drawn = cute.Int32(0)
    if arch.lane_idx() == 0:
        drawn = cute.Int32(arch.atomic_add(counter.iterator, 1))
        if drawn == tiles - 1:
            arch.atomic_exch(counter.iterator, 0)
    return arch.shuffle_sync(drawn, 0) + ctas


def section_of(keys, head_dims, bytes_each, group):
    """Give the number of query heads whose keys and values fit L2 together: a power of two, times `group`."""
    room = L2_BYTES // max(1, keys * head_dims * bytes_each)
    return (1 << max(0, room.bit_length() - 1)) * group
