# SPDX-License-Identifier: Apache-2.0
"""A first kernel, and one TMA load in it: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

TILE = 128


@cuda.jit
def double(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = 2 * x[i]


x = np.arange(1000, dtype=np.float32)
y = np.zeros_like(x)
cute.simulate(double)[8, TILE](x, y)
np.testing.assert_array_equal(y, 2 * x)


load = cpasync.CopyBulkTensorTileG2SOp()
tma, source = cpasync.make_tiled_tma_atom(load, from_dlpack(x), cute.make_layout(TILE), (TILE,))
print(source)


@cuda.jit
def double_by_tma(tma, source, y):
    tidx, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout(TILE), 128)
    ready = smem.allocate_array(cute.Int64, 1)
    if tidx == 0:
        arch.mbarrier_init(ready, 1)  # one arrival completes a phase
    arch.mbarrier_init_fence()
    arch.sync_threads()  # all threads see the barrier from here on

    mine = cute.local_tile(source, (TILE,), (block,))
    to, what = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(tile, 0, 1), cute.group_modes(mine, 0, 1)
    )
    if tidx < 32:  # a whole warp calls, one of its lanes issues the copy
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(ready, TILE * 4)  # the arrival, and the bytes to wait for
        cute.copy(tma, what, to, tma_bar_ptr=ready)
    arch.mbarrier_wait(ready, 0)  # the first phase of a barrier has parity 0

    i = block * TILE + tidx
    if i < y.shape[0]:
        y[i] = 2 * tile[tidx]


y[:] = 0
cute.simulate(double_by_tma)[8, TILE](tma, source, y)
np.testing.assert_array_equal(y, 2 * x)
print("right")
