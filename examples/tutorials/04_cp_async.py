# SPDX-License-Identifier: Apache-2.0
"""cp.async: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

THREADS, WIDTH = 32, 128  # each thread copies 16 bytes, 4 floats, of a row
STAGES = 2


@cuda.jit
def column_sums(x, out, copy):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    rows = smem.allocate_tensor(cute.Float32, cute.make_layout((WIDTH, STAGES)), 16)
    thread = copy.get_slice(tidx)
    count = x.shape[1]

    def start(row):  # nothing is copied for rows that there are not, but the group is closed all the same
        if row < count:
            cute.copy(copy, thread.partition_S(x[None, row]), thread.partition_D(rows[None, row % STAGES]))
        arch.cp_async_commit_group()

    start(0)
    sums = cute.make_rmem_tensor(4, cute.Float32)
    sums.fill(0)
    for row in range(count):
        start(row + 1)
        arch.cp_async_wait_group(1)  # all but the newest group: row `row` has come
        arch.sync_threads()
        for j in cute.range_constexpr(4):
            sums[j] += rows[tidx + j * THREADS, row % STAGES]
        arch.sync_threads()  # everybody has read before the stage is filled again
    for j in cute.range_constexpr(4):
        out[tidx + j * THREADS] = sums[j]


atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
copy = cute.make_tiled_copy_tv(atom, cute.make_layout(THREADS), cute.make_layout(4))
x = np.random.default_rng(0).standard_normal((5, WIDTH), dtype=np.float32)
out = np.zeros(WIDTH, np.float32)
cute.simulate(column_sums, arch="sm_80")[1, THREADS](from_dlpack(x.T, assumed_align=16), out, copy)
np.testing.assert_allclose(out, x.sum(axis=0, dtype=np.float64), rtol=1e-6, atol=1e-6)
print("right")
