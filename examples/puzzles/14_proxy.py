# SPDX-License-Identifier: Apache-2.0
"""Puzzle 14. Two ways to memory.

Threads fill a tile, and TMA stores it. A barrier is there already; what is missing before it?
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack


@cuda.jit
def store(tma, target):
    tidx, _, _ = arch.thread_idx()
    tile = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64), 128)
    tile[tidx] = tidx * tidx
    ___
    arch.sync_threads()
    if tidx < 32:
        what, to = cpasync.tma_partition(
            tma, 0, cute.make_layout(1), cute.group_modes(tile, 0, 1), cute.group_modes(target, 0, 1)
        )
        cute.copy(tma, what, to)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)


out = np.zeros(64, np.float32)
op = cpasync.CopyBulkTensorTileS2GOp()
cute.simulate(store)[1, 64](*cpasync.make_tiled_tma_atom(op, from_dlpack(out), cute.make_layout(64), (64,)))
np.testing.assert_array_equal(out, np.arange(64) ** 2)

print("right")
