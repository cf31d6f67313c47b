# SPDX-License-Identifier: Apache-2.0
"""Puzzle 7. Threads meet.

64 threads reverse an array through shared memory. What must stand between writing and reading?
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils


@cuda.jit
def reverse(x, y):
    tidx, _, _ = arch.thread_idx()
    tile = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64), 16)
    tile[tidx] = x[tidx]
    ___
    y[tidx] = tile[63 - tidx]


x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
cute.simulate(reverse)[1, 64](x, y)
np.testing.assert_array_equal(y, x[::-1])

print("right")
