# SPDX-License-Identifier: Apache-2.0
"""Puzzle 17. More tiles than blocks.

Each block begins with the tile of its own number. How far is its next tile?
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch

TILES = 11


@cuda.jit
def fill(out):
    lane, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    blocks, _, _ = arch.grid_dim()
    for tile in range(block, TILES, ___):
        out[tile, lane] += tile + 1


for blocks in (1, 3, 4):
    out = np.zeros((TILES, 32), np.int32)
    cute.simulate(fill)[blocks, 32](out)
    np.testing.assert_array_equal(out, np.arange(1, TILES + 1)[:, None].repeat(32, 1))

print("right")
