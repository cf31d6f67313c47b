# SPDX-License-Identifier: Apache-2.0
"""Puzzle 11. Arrivals.

Three warps work, one collects. Every thread of the three arrives once. For how many arrivals is the barrier to be
made?
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils


@cuda.jit
def collect(out):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    parts = smem.allocate_tensor(cute.Int32, cute.make_layout(96), 16)
    done = smem.allocate_array(cute.Int64, 1)
    if tidx == 0:
        arch.mbarrier_init(done, ___)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    if tidx < 96:
        parts[tidx] = tidx
        arch.mbarrier_arrive(done)
    else:
        arch.mbarrier_wait(done, 0)
        lane = tidx - 96
        out[lane] = parts[lane] + parts[lane + 32] + parts[lane + 64]


out = np.zeros(32, np.int32)
cute.simulate(collect)[1, 128](out)
np.testing.assert_array_equal(out, 3 * np.arange(32) + 96)

print("right")
