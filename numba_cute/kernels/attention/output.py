# SPDX-License-Identifier: Apache-2.0
"""Store rows of an accumulator: from registers to global memory; shared memory is free for the next tile."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch


@cuda.jit
def store_row(acc, r, factor, row, there, dtype):
    """Multiply row `r` of a wgmma accumulator with `factor`, round it to `dtype`, of 16 bits, and write it to `row`, in
    global memory, where `there` says so; the accumulator stays as it is. `row` begins at a multiple of 16 bytes, as
    entries have it (entry.check_for_tma). A thread has two columns side by side of every eight: of each two eights it
    gives the next lane those of one, so that two lanes write eight bytes each of the same 32. A whole warp."""
    rounded = cute.make_rmem_tensor(4, dtype)
    words = cute.recast_tensor(rounded, cute.Uint32)
    of_row = cute.make_tensor(acc.iterator + 2 * r, cute.make_layout(((2, 2), cute.size(acc) // 8), stride=((1, 4), 8)))
    lane = arch.lane_idx() % 4
    odd = lane % 2 == 1
    to = cute.recast_ptr(row.iterator + (lane // 2 * 4 + lane % 2 * 8), dtype=cute.Uint32)
    for i in cute.range_constexpr(cute.size(acc) // 8):
        rounded.store((of_row[None, i].load() * factor).to(dtype))
        low, high = words[0], words[1]
        other = arch.shuffle_sync_bfly(cute.where(odd, low, high), 1)
        words[0], words[1] = cute.where(odd, other, low), cute.where(odd, high, other)
        if there:
            arch.store(to + 8 * i, (words[0], words[1]))
