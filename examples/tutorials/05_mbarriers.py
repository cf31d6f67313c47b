# SPDX-License-Identifier: Apache-2.0
"""mbarriers and phases: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils

ROUNDS, WARP = 6, 32


@cuda.jit
def ping_pong(out):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    ball = smem.allocate_tensor(cute.Int32, cute.make_layout(WARP), 16)
    full = smem.allocate_array(cute.Int64, 1)
    empty = smem.allocate_array(cute.Int64, 1)
    if tidx == 0:
        arch.mbarrier_init(full, WARP)  # all 32 threads of the writing warp arrive
        arch.mbarrier_init(empty, WARP)
    arch.mbarrier_init_fence()
    arch.sync_threads()

    if tidx < WARP:
        for i in range(ROUNDS):
            arch.mbarrier_wait(empty, (i + 1) % 2)  # phase i - 1 has ended; before the first one it has
            ball[tidx] = i + tidx
            arch.mbarrier_arrive(full)
    else:
        lane = tidx - WARP
        for i in range(ROUNDS):
            arch.mbarrier_wait(full, i % 2)  # phase i has ended
            out[i, lane] = ball[lane] * ball[lane]
            arch.mbarrier_arrive(empty)


out = np.zeros((ROUNDS, WARP), np.int32)
cute.simulate(ping_pong)[1, 2 * WARP](out)
want = (np.arange(ROUNDS)[:, None] + np.arange(WARP)) ** 2
np.testing.assert_array_equal(out, want)
print(out[:3, :6])


@cuda.jit
def wrong(out):
    tidx, _, _ = arch.thread_idx()
    empty = utils.SmemAllocator().allocate_array(cute.Int64, 1)
    if tidx == 0:
        arch.mbarrier_init(empty, WARP)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    arch.mbarrier_wait(empty, 0)  # nobody has arrived yet, and nobody will
    out[0, tidx] = 1


try:
    cute.simulate(wrong)[1, WARP](out)
except cute.CuteError as error:
    print(type(error).__name__, str(error).partition(":")[0])
    print([line.strip() for line in str(error).splitlines() if "missing" in line][0])
