# SPDX-License-Identifier: Apache-2.0
"""Puzzle 8. Banks.

A tile of 32 x 32 words is written by rows and read by columns. Give its rows a stride for which no two words of a
column share one of the 32 banks, with as little memory as possible.
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.sim import Trace

LAYOUT = cute.make_layout((32, 32), stride=(___, 1))


@cuda.jit
def transpose(x, y):
    lane, _, _ = arch.thread_idx()
    tile = utils.SmemAllocator().allocate_tensor(cute.Float32, LAYOUT, 16)
    for i in range(4):
        tile[lane, i] = x[i, lane]
    arch.sync_warp()
    for i in range(4):
        y[i, lane] = tile[lane, i]


x, y, trace = np.ones((4, 32), np.float32), np.zeros((4, 32), np.float32), Trace()
cute.simulate(transpose, trace=trace)[1, 32](x, y)
np.testing.assert_array_equal(y, x)
assert not trace.bank_conflicts, f"passes too many, by line: {trace.bank_conflicts}"
assert cute.cosize(LAYOUT) <= 32 * 33

print("right")
