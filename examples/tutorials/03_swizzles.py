# SPDX-License-Identifier: Apache-2.0
"""Swizzles and banks: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.sim import Trace

N = 32


@cuda.jit
def transpose(x, y, layout):
    lane, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, layout, 128)
    for row in range(N):
        tile[row, lane] = x[row, lane]  # a row: 32 words side by side
    arch.sync_warp()
    for column in range(N):
        y[column, lane] = tile[lane, column]  # a column: 32 words, one of each row


def passes(layout):
    """Count the passes of the busiest column, bank by bank, in plain Python."""
    most = 0
    for column in range(N):
        banks = [layout((lane, column)) % 32 for lane in range(N)]
        most = max(most, max(banks.count(b) for b in banks))
    return most


def tried(name, layout):
    x = np.random.default_rng(0).standard_normal((N, N), dtype=np.float32)
    y = np.zeros_like(x)
    trace = Trace()
    cute.simulate(transpose, trace=trace, checks=False)[1, N](x, y, layout)
    np.testing.assert_array_equal(y, x.T)
    print(f"{name}: {layout}, {passes(layout)} passes for a column")
    print("  more passes than needed, as the simulator counts them:", sum(trace.bank_conflicts.values()))


row_major = cute.make_layout((N, N), stride=(N, 1))
tried("row-major", row_major)


tried("padded", cute.make_layout((N, N), stride=(N + 1, 1)))


swizzled = cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, row_major)
tried("swizzled", swizzled)
for row in range(4):
    print([swizzled((row, column)) % 32 for column in range(8)])


assert sorted(swizzled(i) for i in range(N * N)) == list(range(N * N))
