# SPDX-License-Identifier: Apache-2.0
"""Warp specialisation: the script of docs/tutorials."""

import ml_dtypes
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced
from numba_cute.utils import LayoutEnum, sm90

M, N, K, STAGES = 64, 64, 64, 2
STAGE_BYTES = (M + N) * K * 2
ROW = LayoutEnum.ROW_MAJOR
MAJOR = ROW.sm90_mma_major_mode()
tiled_mma = sm90.make_trivial_tiled_mma(cute.BFloat16, cute.BFloat16, MAJOR, MAJOR, cute.Float32, (1, 1, 1), (64, N))
a_layout = sm90.make_smem_layout_a(ROW, (M, N, K), cute.BFloat16, STAGES)
b_layout = sm90.make_smem_layout_b(ROW, (M, N, K), cute.BFloat16, STAGES)


@traced
def parts(tma, tensor, shared, tile):
    """Partition for the copies of a pipeline: (shared memory by stages, global memory by tiles of K)."""
    tiles = cute.local_tile(tensor, tile, (0, None))
    return cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2), cute.group_modes(tiles, 0, 2)
    )


@cuda.jit
def product(tma_a, mA, tma_b, mB, c, tiled_mma, a_layout, b_layout):
    tidx, _, _ = arch.thread_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, a_layout.outer, 1024, a_layout.inner)
    sB = smem.allocate_tensor(cute.BFloat16, b_layout.outer, 1024, b_layout.inner)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        tx_count=STAGE_BYTES,
        producer_group=CooperativeGroup(Agent.Thread),
        consumer_group=CooperativeGroup(Agent.Thread, 4),  # the four warps that multiply
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
    )
    producer, consumer = pipe.make_participants()
    to_a, of_a = parts(tma_a, mA, sA, (M, K))
    to_b, of_b = parts(tma_b, mB, sB, (N, K))
    tiles = of_a.shape[1]

    if warp < 4:  # the first warpgroup fetches
        arch.setmaxregister_decrease(40)
        if warp == 0:
            for k in range(tiles):
                stage = producer.acquire_and_advance()
                cute.copy(tma_a, of_a[None, k], to_a[None, stage.index], tma_bar_ptr=stage.barrier)
                cute.copy(tma_b, of_b[None, k], to_b[None, stage.index], tma_bar_ptr=stage.barrier)
            producer.tail()
    else:  # the second one multiplies
        arch.setmaxregister_increase(232)
        mma = tiled_mma.get_slice(tidx - 128)
        fA = tiled_mma.make_fragment_A(mma.partition_A(sA))
        fB = tiled_mma.make_fragment_B(mma.partition_B(sB))
        tC = mma.partition_C(c)
        acc = tiled_mma.make_fragment_C(tC.shape)
        for k in range(tiles):
            stage = consumer.wait_and_advance()
            warpgroup.fence()
            for kb in cute.range_constexpr(K // 16):
                adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, k + kb > 0)
                cute.gemm(adds, acc, fA[None, None, kb, stage.index], fB[None, None, kb, stage.index], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            stage.release()
        cute.autovec_copy(acc, tC)


def operand(x, layout, rows):
    load = cpasync.CopyBulkTensorTileG2SOp()
    return cpasync.make_tiled_tma_atom(load, from_dlpack(x, assumed_align=16), layout, (rows, K))


rng = np.random.default_rng(0)
a, b = (rng.standard_normal((rows, 3 * K)).astype(ml_dtypes.bfloat16) for rows in (M, N))
c = np.zeros((M, N), np.float32)
arguments = (
    *operand(a, cute.slice_(a_layout, (None, None, 0)), M),
    *operand(b, cute.slice_(b_layout, (None, None, 0)), N),
    from_dlpack(c, assumed_align=16),
)
cute.simulate(product, arch="sm_90a")[1, 256](*arguments, tiled_mma, a_layout, b_layout)
np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, rtol=1e-5, atol=1e-5)
print("right")
