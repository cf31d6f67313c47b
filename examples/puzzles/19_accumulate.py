# SPDX-License-Identifier: Apache-2.0
"""Puzzle 19. Products add up.

A tile of K = 64 takes four wgmma of 16. The registers hold nothing in the beginning: when does a product add to
them, and when does it overwrite them?
"""

import ml_dtypes
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.utils import LayoutEnum, sm90

M, N, K = 64, 16, 64
ROW = LayoutEnum.ROW_MAJOR
MAJOR = ROW.sm90_mma_major_mode()
MMA = sm90.make_trivial_tiled_mma(cute.BFloat16, cute.BFloat16, MAJOR, MAJOR, cute.Float32, (1, 1, 1), (64, N))
A, B = (make(ROW, (M, N, K), cute.BFloat16, 1) for make in (sm90.make_smem_layout_a, sm90.make_smem_layout_b))


@cuda.jit
def product(a, b, c):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, A.outer, 1024, A.inner)[None, None, 0]
    sB = smem.allocate_tensor(cute.BFloat16, B.outer, 1024, B.inner)[None, None, 0]
    for i in range(tidx, M * K, 128):
        sA[i // K, i % K] = a[i // K, i % K]
    for i in range(tidx, N * K, 128):
        sB[i // K, i % K] = b[i // K, i % K]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    mma = MMA.get_slice(tidx)
    fA, fB = MMA.make_fragment_A(mma.partition_A(sA)), MMA.make_fragment_B(mma.partition_B(sB))
    tC = mma.partition_C(c)
    acc = MMA.make_fragment_C(tC.shape)
    warpgroup.fence()
    for k in cute.range_constexpr(4):
        op = MMA.set(warpgroup.Field.ACCUMULATE, ___)
        cute.gemm(op, acc, fA[None, None, k], fB[None, None, k], acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, tC)


rng = np.random.default_rng(0)
a, b = (rng.standard_normal((rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, N))
c = np.zeros((M, N), np.float32)
cute.simulate(product, arch="sm_90a")[1, 128](*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, rtol=1e-5, atol=1e-5)

print("right")
