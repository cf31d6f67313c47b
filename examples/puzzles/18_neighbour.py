# SPDX-License-Identifier: Apache-2.0
"""Puzzle 18. The neighbour's memory.

Four blocks of a cluster stand in a ring. Each writes its number into the memory of the next one; the last one's
next is the first.
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils


@cute.cluster_shape(4)
@cuda.jit
def ring(out):
    lane, _, _ = arch.thread_idx()
    rank = arch.block_idx_in_cluster()
    box = utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout(1), 16)
    arch.cluster_arrive()
    arch.cluster_wait()
    if lane == 0:
        arch.store(arch.map_dsmem_ptr(box.iterator, ___), rank, ss="cluster")
    arch.cluster_arrive()
    arch.cluster_wait()
    if lane == 0:
        out[rank] = box[0]


out = np.zeros(4, np.int32)
cute.simulate(ring)[4, 32](out)
np.testing.assert_array_equal(out, [3, 0, 1, 2])

print("right")
