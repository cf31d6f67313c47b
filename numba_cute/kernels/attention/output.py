# SPDX-License-Identifier: Apache-2.0
"""How rows of an accumulator leave: from registers to global memory; shared memory is free for the next tile."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import CopyUniversalOp


@cuda.jit
def turn_quad(words):
    """Turn squares of four words by the four lanes that have a row together: of each four words lane c gets the c-th of
    the first lane, of the second, the third and the fourth."""
    lane = arch.lane_idx()
    for first in cute.range_constexpr(0, cute.size(words), 4):
        for bit in cute.range_constexpr(1, 3):
            high = (lane & bit) != 0
            for pair in cute.range_constexpr(2):
                a = first + pair * (3 - bit)
                low, up = words[a], words[a + bit]
                other = arch.shuffle_sync_bfly(cute.where(high, low, up), bit)
                words[a], words[a + bit] = cute.where(high, other, low), cute.where(high, up, other)


@cuda.jit
def half_words(values, dtype):
    """Round values to `dtype`, of 16 bits, and give their bits as words."""
    return values.to(dtype).bitcast(cute.Uint16).to(cute.Uint32)


@cuda.jit
def words_of(acc, r, dtype):
    """Round row `r` of a wgmma accumulator to `dtype`, of 16 bits: the words of the thread's lane of four. Of every 32
    columns it has eight side by side: lane c those from 8 * c on. A whole warp."""
    rows = cute.make_tensor(acc.iterator, cute.make_layout((2, 2, cute.size(acc) // 4)))
    words = cute.make_rmem_tensor(cute.size(acc) // 4, cute.Uint32)
    words.store(half_words(rows[0, r, None].load(), dtype) | half_words(rows[1, r, None].load(), dtype) << 16)
    turn_quad(words)
    return words


@cuda.jit
def store_words(words, row):
    """Write what `words_of` gave to `row`, a row in global memory."""
    wide = cute.make_copy_atom(CopyUniversalOp(), cute.Uint32, 128)
    target = cute.recast_tensor(row, cute.Uint32)
    for i in cute.range_constexpr(cute.size(words) // 4):
        part = cute.local_tile(target, (4,), (4 * i + arch.lane_idx() % 4,))
        cute.copy(wide, cute.local_tile(words, (4,), (i,)), part)
