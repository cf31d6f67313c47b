# SPDX-License-Identifier: Apache-2.0
"""Puzzle 3. A transpose for nothing.

Look at a row-major matrix of 4 x 8 as one of 8 x 4, transposed, without moving anything: choose its modes in
another order.
"""

import numba_cute as cute

matrix = cute.make_layout((4, 8), stride=(8, 1))
transposed = cute.select(matrix, mode=___)

assert transposed.shape == (8, 4), f"the shape is {transposed.shape}"
assert all(transposed((j, i)) == matrix((i, j)) for i in range(4) for j in range(8))

print("right")
