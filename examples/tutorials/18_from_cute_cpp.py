# SPDX-License-Identifier: Apache-2.0
"""From CuTe C++: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import MmaUniversalOp
from numba_cute.runtime import from_dlpack

BM, BN, BK = 32, 32, 8
THREADS = cute.make_layout((16, 16))
LOADERS = cute.make_layout((32, 8))  # of A's and B's tiles, one element each
tiled_mma = cute.make_tiled_mma(MmaUniversalOp(cute.Float32), (16, 16, 1))


@cuda.jit
def sgemm(mA, mB, mC, tiled_mma):
    """C (M, N) = A (M, K) B (N, K)^T."""
    tidx, _, _ = arch.thread_idx()
    m, n, _ = arch.block_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.Float32, cute.make_layout((BM, BK)), 16)
    sB = smem.allocate_tensor(cute.Float32, cute.make_layout((BN, BK)), 16)

    tiler, coord = (BM, BN, BK), (m, n, None)
    gA = cute.local_tile(mA, tiler, coord, proj=(1, None, 1))  # (BM, BK, tiles of K)
    gB = cute.local_tile(mB, tiler, coord, proj=(None, 1, 1))
    gC = cute.local_tile(mC, tiler, coord, proj=(1, 1, None))

    tAgA, tAsA = cute.local_partition(gA, LOADERS, tidx), cute.local_partition(sA, LOADERS, tidx)
    tBgB, tBsB = cute.local_partition(gB, LOADERS, tidx), cute.local_partition(sB, LOADERS, tidx)
    mma = tiled_mma.get_slice(tidx)
    tCsA, tCsB, tCgC = mma.partition_A(sA), mma.partition_B(sB), mma.partition_C(gC)
    acc = tiled_mma.make_fragment_C(tCgC.shape)
    acc.fill(0)

    for k in range(gA.shape[2]):
        cute.autovec_copy(tAgA[None, None, k], tAsA)
        cute.autovec_copy(tBgB[None, None, k], tBsB)
        arch.sync_threads()
        cute.gemm(tiled_mma, acc, tCsA, tCsB, acc)
        arch.sync_threads()
    cute.autovec_copy(acc, tCgC)


rng = np.random.default_rng(0)
a, b = (rng.standard_normal((rows, 16), dtype=np.float32) for rows in (64, 32))
c = np.zeros((64, 32), np.float32)
cute.simulate(sgemm)[(2, 1), cute.size(THREADS)](from_dlpack(a), from_dlpack(b), from_dlpack(c), tiled_mma)
np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, rtol=1e-4, atol=1e-5)
print("right")
