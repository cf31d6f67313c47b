# SPDX-License-Identifier: Apache-2.0
"""How rows of an accumulator leave: from registers to global memory; shared memory is free for the next tile."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import CopyUniversalOp


@cuda.jit
def turn_quad(words):
    """Turn a square of four words by the four lanes that have a row together: lane c gets the c-th word of the first
    lane, of the second, the third and the fourth."""
    for bit in cute.range_constexpr(1, 3):
        high = (arch.lane_idx() & bit) != 0
        for pair in cute.range_constexpr(2):
            a = pair * (3 - bit)
            low, up = words[a], words[a + bit]
            other = arch.shuffle_sync_bfly(cute.where(high, low, up), bit)
            words[a], words[a + bit] = cute.where(high, other, low), cute.where(high, up, other)


@cuda.jit
def half_words(values, dtype):
    """Round values to `dtype`, of 16 bits, and give their bits as words."""
    return values.to(dtype).bitcast(cute.Uint16).to(cute.Uint32)


@cuda.jit
def store_row(acc, r, row, there, dtype):
    """Round row `r` of a wgmma accumulator to `dtype`, of 16 bits, and write it to `row`, in global memory, where
    `there` says so. It begins at a multiple of 16 bytes, as entries have it (entry.check_for_tma). Of every 32 columns
    the lanes of a row exchange theirs, so that each writes eight side by side. A whole warp."""
    wide = cute.make_copy_atom(CopyUniversalOp(), cute.Uint32, 128)
    row = cute.make_tensor(row.iterator.align(16), row.layout)
    target, words = cute.recast_tensor(row, cute.Uint32), cute.make_rmem_tensor(4, cute.Uint32)
    of_row = cute.make_tensor(acc.iterator + 2 * r, cute.make_layout((2, 4, cute.size(acc) // 16), stride=(1, 4, 16)))
    for i in cute.range_constexpr(cute.size(acc) // 16):
        low, high = of_row[0, None, i].load(), of_row[1, None, i].load()
        words.store(half_words(low, dtype) | half_words(high, dtype) << 16)
        turn_quad(words)
        if there:
            cute.copy(wide, words, cute.local_tile(target, (4,), (4 * i + arch.lane_idx() % 4,)))
