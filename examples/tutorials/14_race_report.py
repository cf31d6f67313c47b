# SPDX-License-Identifier: Apache-2.0
"""Reading a race report: the script of docs/tutorials."""

import re

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync

N = 64


@cuda.jit
def reverse(x, y):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout(N), 16)
    tile[tidx] = x[tidx]
    arch.sync_warp()
    y[tidx] = tile[N - 1 - tidx]


def reported(run):
    """The report of a run, with files by their names alone."""
    try:
        run()
    except cute.CuteError as error:
        return f"{type(error).__name__}: " + re.sub(r"[\w./\\:-]*[/\\](?=14_)", "", str(error))
    return "nothing to report"


x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
print(reported(lambda: cute.simulate(reverse)[1, N](x, y)))


@cuda.jit
def reverse_right(x, y):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout(N), 16)
    tile[tidx] = x[tidx]
    arch.sync_threads()
    y[tidx] = tile[N - 1 - tidx]


print(reported(lambda: cute.simulate(reverse_right)[1, N](x, y)))
np.testing.assert_array_equal(y, x[::-1])


@cuda.jit
def store_it(tma, target, x):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout(N), 128)
    tile[tidx] = 2 * x[tidx]
    arch.sync_threads()
    if tidx < 32:
        what, to = cpasync.tma_partition(
            tma, 0, cute.make_layout(1), cute.group_modes(tile, 0, 1), cute.group_modes(target, 0, 1)
        )
        cute.copy(tma, what, to)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)


op = cpasync.CopyBulkTensorTileS2GOp()
tma, target = cpasync.make_tiled_tma_atom(op, cute.runtime.from_dlpack(y), cute.make_layout(N), (N,))
print(reported(lambda: cute.simulate(store_it)[1, N](tma, target, x)))
