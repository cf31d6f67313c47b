# SPDX-License-Identifier: Apache-2.0
"""Find the keys that a query sees, and mask the others' scores.

A query at `q` sees the keys from q + shift - left to q + shift + right, and none beyond the last. `shift` aligns the
last query with the last key: keys - queries.
"""

import math

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import CopyUniversalOp


@cuda.jit
def before(limit):
    """Count a thread's columns, two of each 8, that lie before the column `limit`."""
    limit = cute.Int32(limit)
    return cute.Int32((limit >> 3) * 2 + min(cute.Int32(limit & 7), cute.Int32(2)))


@cuda.jit
def lowest(count):
    """A word of which the lowest `count` bits are set: none where it is negative, all where it is 32 or more. Bits are
    tested by few instructions, and numbers each by its own."""
    return arch.shf(0, 0xFFFFFFFF, max(cute.Int32(32 - count), cute.Int32(0)), "clamp_right")


@cuda.jit
def others(count):
    """A word of which all but the lowest `count` bits are set."""
    return arch.shf(0xFFFFFFFF, 0, max(cute.Int32(count), cute.Int32(0)), "clamp_left")


@cuda.jit
def leave_out(scores, first_column, begin, end):
    """Set the scores of columns outside of [begin, end) to -inf.

    scores: (row, (2, columns / 8)) of a thread, as `softmax.rows_of` gives them. first_column: where in the tile the
    thread's first one is. begin, end: columns of the tile, of each row; `begin` may be None.
    """
    columns = cute.size(scores, mode=[1])
    for r in cute.range_constexpr(2):
        for first in cute.range_constexpr(0, columns, 32):
            hidden = others(before(end[r] - first_column) - first)  # a bit for each column
            if cute.const_expr(begin is not None):
                hidden |= lowest(before(begin[r] - first_column) - first)
            for i in cute.range_constexpr(first, min(first + 32, columns)):
                if hidden & (1 << (i - first)) != 0:
                    scores[r, i] = -math.inf


@cuda.jit
def clear_behind(values, first, thread, threads):
    """Zero the keys from `first` on of a block of values, (columns, keys) in shared memory: they weigh nothing, but 0
    times NaN is NaN. Of `threads` each does a share, this one the `thread`-th."""
    dtype = values.element_type
    wide, zeros = cute.make_copy_atom(CopyUniversalOp(), dtype, 128), cute.make_rmem_tensor(8, dtype)
    zeros.fill(0)
    columns, keys = cute.size(values, mode=[0]) // 8, cute.size(values, mode=[1])
    for i in range(first * columns + thread, keys * columns, threads):
        cute.copy(wide, zeros, cute.local_tile(values[None, i // columns], (8,), (i % columns,)))
