# SPDX-License-Identifier: Apache-2.0
"""Puzzle 13. Phases.

One warp tells another six numbers, through one place. `full` says that a number is there, `empty` that it has been
read. Which parity does the reader wait for in round i?
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils


@cuda.jit
def tell(out):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    place = smem.allocate_tensor(cute.Int32, cute.make_layout(32), 16)
    full, empty = smem.allocate_array(cute.Int64, 1), smem.allocate_array(cute.Int64, 1)
    if tidx == 0:
        arch.mbarrier_init(full, 32)
        arch.mbarrier_init(empty, 32)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    for i in range(6):
        if tidx < 32:
            arch.mbarrier_wait(empty, (i + 1) % 2)
            place[tidx] = i * tidx
            arch.mbarrier_arrive(full)
        else:
            arch.mbarrier_wait(full, ___)
            out[i, tidx - 32] = place[tidx - 32]
            arch.mbarrier_arrive(empty)


out = np.full((6, 32), -1, np.int32)
cute.simulate(tell)[1, 64](out)
np.testing.assert_array_equal(out, np.arange(6)[:, None] * np.arange(32))

print("right")
