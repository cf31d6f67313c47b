# SPDX-License-Identifier: Apache-2.0
"""Which keys a query sees, and what becomes of the others' scores.

A query at `q` sees the keys from q + shift - left to q + shift + right, and none beyond the last. `shift` aligns the
last query with the last key: keys - queries.
"""

import math

from numba import cuda

import numba_cute as cute


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
