# SPDX-License-Identifier: Apache-2.0
"""Puzzle 6. The last block.

100 numbers, blocks of 32 threads: the last block has threads too many. Say which threads may work.
"""

import numpy as np
from numba import cuda

import numba_cute as cute


@cuda.jit
def double(x, y):
    i = cuda.grid(1)
    if ___:
        y[i] = 2 * x[i]


x = np.arange(100, dtype=np.float32)
y = np.zeros_like(x)
cute.simulate(double)[4, 32](x, y)
np.testing.assert_array_equal(y, 2 * x)

print("right")
