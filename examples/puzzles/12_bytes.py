# SPDX-License-Identifier: Apache-2.0
"""Puzzle 12. Bytes.

TMA loads a tile of 64 float16. How many bytes must the barrier be told to wait for?
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack


@cuda.jit
def load(tma, source, out):
    lane, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float16, cute.make_layout(64), 128)
    ready = smem.allocate_array(cute.Int64, 1)
    if lane == 0:
        arch.mbarrier_init(ready, 1)
        arch.mbarrier_arrive_and_expect_tx(ready, ___)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    to, what = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(tile, 0, 1), cute.group_modes(source, 0, 1)
    )
    cute.copy(tma, what, to, tma_bar_ptr=ready)
    arch.mbarrier_wait(ready, 0)
    out[lane] = cute.Float32(tile[lane]) + cute.Float32(tile[lane + 32])


x, out = np.arange(64, dtype=np.float16), np.zeros(32, np.float32)
op = cpasync.CopyBulkTensorTileG2SOp()
cute.simulate(load)[1, 32](*cpasync.make_tiled_tma_atom(op, from_dlpack(x), cute.make_layout(64), (64,)), out)
np.testing.assert_array_equal(out, x[:32] + x[32:])

print("right")
