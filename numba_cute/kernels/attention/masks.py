# SPDX-License-Identifier: Apache-2.0
"""Which keys a query sees, and what becomes of the others' scores.

A query at `q` sees the keys from q + shift - left to q + shift + right, and none beyond the last. `shift` aligns the
last query with the last key: keys - queries.
"""

import math

from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import CopyUniversalOp


@cuda.jit
def leave_out(scores, first_column, begin, end):
    """Set the scores of columns outside of [begin, end) to -inf.

    scores: (row, (2, columns / 8)) of a thread, as `softmax.rows_of` gives them. first_column: where in the tile the
    thread's first one is. begin, end: columns of the tile, of each row; `begin` may be None.
    """
    for r in cute.range_constexpr(2):
        low = cute.Int32(end[r] - first_column)
        for i in cute.range_constexpr(cute.size(scores, mode=[1])):
            column = i // 2 * 8 + i % 2
            if column >= low:
                scores[r, i] = -math.inf
            if cute.const_expr(begin is not None):
                if column < cute.Int32(begin[r] - first_column):
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
