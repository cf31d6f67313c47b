# SPDX-License-Identifier: Apache-2.0
"""Epilogues: the script of docs/tutorials."""

import ml_dtypes
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.utils import LayoutEnum, sm90

M, N, K = 64, 64, 64
ROW = LayoutEnum.ROW_MAJOR
MAJOR = ROW.sm90_mma_major_mode()
tiled_mma = sm90.make_trivial_tiled_mma(cute.BFloat16, cute.BFloat16, MAJOR, MAJOR, cute.Float32, (1, 1, 1), (64, N))
a_layout = sm90.make_smem_layout_a(ROW, (M, N, K), cute.BFloat16, 1)
b_layout = sm90.make_smem_layout_b(ROW, (M, N, K), cute.BFloat16, 1)
c_layout = sm90.make_smem_layout_epi(cute.BFloat16, ROW, (M, N), 1)
store = sm90.get_smem_store_op(ROW, cute.BFloat16, cute.Float32)  # stmatrix
print(c_layout)


@cuda.jit
def product(a, b, bias, tma_c, mC, tiled_mma, a_layout, b_layout, c_layout, store):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, a_layout.outer, 1024, a_layout.inner)[None, None, 0]
    sB = smem.allocate_tensor(cute.BFloat16, b_layout.outer, 1024, b_layout.inner)[None, None, 0]
    sC = smem.allocate_tensor(cute.BFloat16, c_layout.outer, 1024, c_layout.inner)[None, None, 0]
    for i in range(tidx, M * K, 128):
        sA[i // K, i % K] = a[i // K, i % K]
    for i in range(tidx, N * K, 128):
        sB[i // K, i % K] = b[i // K, i % K]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()

    mma = tiled_mma.get_slice(tidx)
    fA = tiled_mma.make_fragment_A(mma.partition_A(sA))
    fB = tiled_mma.make_fragment_B(mma.partition_B(sB))
    acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((M, N)))
    warpgroup.fence()
    for k in cute.range_constexpr(K // 16):
        adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
        cute.gemm(adds, acc, fA[None, None, k], fB[None, None, k], acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)

    # The epilogue. `places` tells which column each of this thread's sums belongs to.
    places = mma.partition_C(cute.make_identity_tensor((M, N)))
    for i in cute.range_constexpr(cute.size(acc)):
        acc[i] = max(acc[i] + bias[places[i][1]], cute.Float32(0))

    to_shared = cute.make_tiled_copy_C(store, tiled_mma)
    mine = to_shared.get_slice(tidx)
    rounded = cute.make_rmem_tensor(acc.shape, cute.BFloat16)
    rounded.store(acc.load().to(cute.BFloat16))
    cute.copy(to_shared, mine.retile(rounded), mine.partition_D(sC))
    arch.fence_proxy("async.shared", space="cta")  # each writing thread, before the barrier
    arch.sync_threads()
    if tidx < 32:
        what, to = cpasync.tma_partition(
            tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), cute.group_modes(mC, 0, 2)
        )
        cute.copy(tma_c, what, to)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)  # until shared memory has been read


rng = np.random.default_rng(0)
a, b = (rng.standard_normal((rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, N))
bias = rng.standard_normal(N, dtype=np.float32)
c = np.zeros((M, N), ml_dtypes.bfloat16)
tma_c, mC = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileS2GOp(),
    from_dlpack(c, assumed_align=16),
    cute.slice_(c_layout, (None, None, 0)),
    (M, N),
)
a_, b_ = (from_dlpack(x, assumed_align=16) for x in (a, b))
cute.simulate(product, arch="sm_90a")[1, 128](a_, b_, bias, tma_c, mC, tiled_mma, a_layout, b_layout, c_layout, store)
want = np.maximum(a.astype(float) @ b.astype(float).T + bias, 0)
np.testing.assert_allclose(c.astype(float), want, rtol=2**-8, atol=1e-4)
print("right to bfloat16's rounding")
