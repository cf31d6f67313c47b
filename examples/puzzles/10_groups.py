# SPDX-License-Identifier: Apache-2.0
"""Puzzle 10. Groups of cp.async.

Each thread copies 16 bytes of row k + 1 while row k is used. How many of its newest groups may be unfinished when
row k is read?
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

ATOM = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
COPY = cute.make_tiled_copy_tv(ATOM, cute.make_layout(32), cute.make_layout(4))


@cuda.jit
def sums(x, out):
    lane, _, _ = arch.thread_idx()
    rows = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((128, 2)), 16)
    mine = COPY.get_slice(lane)
    cute.copy(COPY, mine.partition_S(x[None, 0]), mine.partition_D(rows[None, 0]))
    arch.cp_async_commit_group()
    total = cute.Float32(0)
    for k in range(x.shape[1]):
        if k + 1 < x.shape[1]:
            cute.copy(COPY, mine.partition_S(x[None, k + 1]), mine.partition_D(rows[None, (k + 1) % 2]))
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(___)
        for j in cute.range_constexpr(4):
            total += rows[4 * lane + j, k % 2]
    out[lane] = total


x = np.random.default_rng(0).standard_normal((4, 128), dtype=np.float32)
out, trips = np.zeros(32, np.float32), 4
cute.simulate(sums, async_mode="lazy")[1, 32](from_dlpack(x.T, assumed_align=16), out)
np.testing.assert_allclose(out, x.reshape(4, 32, 4).sum((0, 2), dtype=float), rtol=1e-5, atol=1e-5)

print("right")
