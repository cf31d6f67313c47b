# SPDX-License-Identifier: Apache-2.0
"""Blackwell: the script of docs/tutorials."""

import ml_dtypes
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode
from numba_cute.runtime import from_dlpack
from numba_cute.utils import sm100

M, N, K = 128, 32, 32
MAJOR = OperandMajorMode.K
tiled_mma = sm100.make_trivial_tiled_mma(cute.BFloat16, MAJOR, MAJOR, cute.Float32, CtaGroup.ONE, (M, N))
a_layout = sm100.make_smem_layout_a(tiled_mma, (M, N, K), cute.BFloat16, 1)
b_layout = sm100.make_smem_layout_b(tiled_mma, (M, N, K), cute.BFloat16, 1)
accumulator = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((M, N)))
columns = utils.get_num_tmem_alloc_cols(accumulator)
load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)
print("the accumulator:", accumulator.layout, "in", columns, "columns")


@cuda.jit
def product(a, b, c, tiled_mma, a_layout, b_layout, accumulator_layout, load):
    tidx, _, _ = arch.thread_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, a_layout.outer, 1024, a_layout.inner)
    sB = smem.allocate_tensor(cute.BFloat16, b_layout.outer, 1024, b_layout.inner)
    done = smem.allocate_array(cute.Int64, 1)
    tmem = utils.TmemAllocator(smem.allocate_array(cute.Int32, 1), barrier_for_retrieve=pipeline.NamedBarrier(1, 128))
    if tidx == 0:
        arch.mbarrier_init(done, 1)
    arch.mbarrier_init_fence()

    # 1. The operands go to shared memory, cut up as the matrix unit takes them.
    tA, tB = tiled_mma.get_slice(0).partition_A(a), tiled_mma.get_slice(0).partition_B(b)
    for i in range(tidx, M * K, 128):
        sA[i] = tA[i]
    for i in range(tidx, N * K, 128):
        sB[i] = tB[i]
    arch.fence_proxy("async.shared", space="cta")

    # 2. One warp allocates columns of tensor memory; everybody learns where.
    tmem.allocate(columns)
    tmem.wait_for_alloc()
    acc = cute.make_tensor(tmem.retrieve_ptr(cute.Float32), accumulator_layout)
    arch.sync_threads()

    # 3. One warp multiplies; `commit` lets a barrier know when it has.
    if warp == 0:
        fA, fB = tiled_mma.make_fragment_A(sA), tiled_mma.make_fragment_B(sB)
        for k in cute.range_constexpr(cute.size(fA, mode=[2])):
            adds = tiled_mma.set(tcgen05.Field.ACCUMULATE, k > 0)
            cute.gemm(adds, acc, fA[None, None, k, 0], fB[None, None, k, 0], acc)
        tcgen05.commit(done)
    arch.mbarrier_wait(done, 0)
    arch.tcgen05_fence_after_thread_sync()

    # 4. Four warps take the sums out, each its own 32 lanes.
    rows = acc[(None, None), 0, 0]
    to_registers = tcgen05.make_tmem_copy(load, rows)
    mine = to_registers.get_slice(tidx)
    tC = mine.partition_D(c)
    sums = cute.make_rmem_tensor(tC.shape, cute.Float32)
    cute.copy(to_registers, mine.partition_S(rows), sums)
    arch.fence_view_async_tmem_load()
    cute.autovec_copy(sums, tC)

    # 5. What was allocated is given back.
    tmem.relinquish_alloc_permit()
    arch.sync_threads()
    tmem.free(acc.iterator)


rng = np.random.default_rng(0)
a, b = (rng.standard_normal((rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, N))
c = np.zeros((M, N), np.float32)
arguments = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
constants = (tiled_mma, a_layout, b_layout, accumulator.layout, load)
cute.simulate(product, arch="sm_100a")[1, 128](*arguments, *constants)
np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, rtol=1e-5, atol=1e-5)
print("right")
