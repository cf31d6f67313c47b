# SPDX-License-Identifier: Apache-2.0
"""Clusters and distributed shared memory: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

CLUSTER, THREADS = 4, 32


@cute.cluster_shape(CLUSTER)
@cuda.jit
def total(x, out):
    lane, _, _ = arch.thread_idx()
    rank = arch.block_idx_in_cluster()
    smem = utils.SmemAllocator()
    sums = smem.allocate_tensor(cute.Float32, cute.make_layout(CLUSTER), 16)

    mine = cute.Float32(0)
    for i in range(rank * THREADS + lane, x.shape[0], CLUSTER * THREADS):
        mine += x[i]
    mine = arch.warp_reduction_sum(mine)

    arch.cluster_arrive()
    arch.cluster_wait()  # all blocks have started: only now their shared memory may be written
    if lane == 0:
        there = arch.map_dsmem_ptr(sums.iterator + rank, 0)  # element `rank`, in block 0
        arch.store(there, mine, ss="cluster")
    arch.cluster_arrive()  # what was written is seen by those that wait
    arch.cluster_wait()
    if rank == 0 and lane == 0:
        out[0] = sums[0] + sums[1] + sums[2] + sums[3]


x = np.random.default_rng(0).standard_normal(1000, dtype=np.float32)
out = np.zeros(1, np.float32)
cute.simulate(total)[CLUSTER, THREADS](x, out)
np.testing.assert_allclose(out[0], x.sum(dtype=np.float64), rtol=1e-4)
print("right")


TILE = 128


@cute.cluster_shape(2)
@cuda.jit
def both_get_it(tma, source, out):
    lane, _, _ = arch.thread_idx()
    rank = arch.block_idx_in_cluster()
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout(TILE), 128)
    ready = smem.allocate_array(cute.Int64, 1)
    if lane == 0:
        arch.mbarrier_init(ready, 1)
        arch.mbarrier_arrive_and_expect_tx(ready, TILE * 4)  # both halves
    arch.mbarrier_init_fence()
    arch.cluster_arrive()
    arch.cluster_wait()  # the other block's barrier is ready for my half

    to, what = cpasync.tma_partition(
        tma, rank, cute.make_layout(2), cute.group_modes(tile, 0, 1), cute.group_modes(source, 0, 1)
    )
    cute.copy(tma, what, to, tma_bar_ptr=ready, mcast_mask=0b11)
    arch.mbarrier_wait(ready, 0)
    for i in range(lane, TILE, THREADS):
        out[rank, i] = tile[i]
    arch.cluster_arrive()
    arch.cluster_wait()  # no block leaves while its half is on the way to the other


y = np.random.default_rng(1).standard_normal(TILE, dtype=np.float32)
copies = np.zeros((2, TILE), np.float32)
load = cpasync.CopyBulkTensorTileG2SMulticastOp()
tma, source = cpasync.make_tiled_tma_atom(load, from_dlpack(y), cute.make_layout(TILE), (TILE,), num_multicast=2)
cute.simulate(both_get_it)[2, THREADS](tma, source, copies)
np.testing.assert_array_equal(copies, [y, y])
print("both blocks have the tile")
