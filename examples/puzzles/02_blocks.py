# SPDX-License-Identifier: Apache-2.0
"""Puzzle 2. Blocks.

A 4 x 4 matrix lies in memory as four blocks of 2 x 2, block after block down the first column of blocks, then down
the second. In a block the rows run fastest: (0, 0), (1, 0), (0, 1), (1, 1). Each mode is (place in the block, which
block).
"""

import numpy as np

import numba_cute as cute

layout = cute.make_layout(((2, 2), (2, 2)), stride=___)

wanted = [[0, 2, 8, 10], [1, 3, 9, 11], [4, 6, 12, 14], [5, 7, 13, 15]]
found = [[layout((i, j)) for j in range(4)] for i in range(4)]
assert np.array_equal(found, wanted), f"found {found}"

print("right")
