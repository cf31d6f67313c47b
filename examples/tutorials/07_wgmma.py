# SPDX-License-Identifier: Apache-2.0
"""wgmma: the script of docs/tutorials."""

import ml_dtypes
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.utils import LayoutEnum, sm90

M, N, K = 64, 32, 64
ROW = LayoutEnum.ROW_MAJOR  # A (M, K) and B (N, K): contiguous along K
K_MAJOR = ROW.sm90_mma_major_mode()
tiled_mma = sm90.make_trivial_tiled_mma(
    cute.BFloat16, cute.BFloat16, K_MAJOR, K_MAJOR, cute.Float32, (1, 1, 1), (64, N)
)
a_layout = sm90.make_smem_layout_a(ROW, (M, N, K), cute.BFloat16, 1)
b_layout = sm90.make_smem_layout_b(ROW, (M, N, K), cute.BFloat16, 1)
print(a_layout)


@cuda.jit
def product(a, b, c, tiled_mma, a_layout, b_layout):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, a_layout.outer, 1024, a_layout.inner)[None, None, 0]
    sB = smem.allocate_tensor(cute.BFloat16, b_layout.outer, 1024, b_layout.inner)[None, None, 0]
    for i in range(tidx, M * K, 128):  # threads bring the operands; TMA would do it in the background
        sA[i // K, i % K] = a[i // K, i % K]
    for i in range(tidx, N * K, 128):
        sB[i // K, i % K] = b[i // K, i % K]
    arch.fence_proxy("async.shared", space="cta")  # the tensor core reads by another path than these writes
    arch.sync_threads()

    mma = tiled_mma.get_slice(tidx)
    fA = tiled_mma.make_fragment_A(mma.partition_A(sA))
    fB = tiled_mma.make_fragment_B(mma.partition_B(sB))
    tC = mma.partition_C(c)
    acc = tiled_mma.make_fragment_C(tC.shape)

    warpgroup.fence()
    for k in cute.range_constexpr(cute.size(fA, mode=[2])):  # K / 16 instructions
        adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > 0)  # the first one overwrites
        cute.gemm(adds, acc, fA[None, None, k], fB[None, None, k], acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)  # the registers of `acc` may be read from here on
    cute.autovec_copy(acc, tC)


rng = np.random.default_rng(0)
a, b = (rng.standard_normal((rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, N))
c = np.zeros((M, N), np.float32)
arguments = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
cute.simulate(product, arch="sm_90a")[1, 128](*arguments, tiled_mma, a_layout, b_layout)
np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, rtol=1e-5, atol=1e-5)
print("right")


places = tiled_mma.get_slice(0).partition_C(cute.make_identity_tensor((M, N)))
print([places[i] for i in range(8)])
