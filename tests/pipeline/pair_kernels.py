# SPDX-License-Identifier: Apache-2.0
"""PipelineTmaUmma over a cluster (V, M, N): CTAs or pairs of them multiply tiles whose operands TMA multicasts.

Group (i, j) of V CTAs computes C[i, j] (128 * V, 32) = A[i] @ B[j].T, 16 of K a stage. Rows of 32 bytes, swizzled.
"""

from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, layout, pipeline, seam, utils
from numba_cute.isa.facts.bits import encode_address
from numba_cute.isa.rows.tcgen05_mma import Tcgen05Descriptor, Tcgen05Instruction
from numba_cute.nvgpu import common, cpasync
from numba_cute.pipeline import Agent, CooperativeGroup

from .umma_kernels import EPILOGUE, ONE, K, M, N, allocate, allocated, free, read_accumulator

DESCRIPTOR = Tcgen05Descriptor(stride=256, swizzle=32).encode()


def shared(rows):
    """A tile in shared memory, as TMA's and the matrix unit's swizzle of 32 bytes has it."""
    return cute.make_composed_layout(cute.make_swizzle(1, 4, 3), 0, cute.make_layout((rows, K), stride=(K, 1)))


def atoms(a, b, shape):
    """((atom, coordinates) of A and of B), each CTA loading its part for those that share it."""
    v, m, n = shape
    op = cpasync.CopyBulkTensorTileG2SMulticastOp(common.CtaGroup.TWO if v == 2 else common.CtaGroup.ONE)
    made_a = cpasync.make_tiled_tma_atom(op, a, shared(M), (M, K), n)
    return made_a, cpasync.make_tiled_tma_atom(op, b, shared(N // v), (N // v, K), m)


@seam.traced
def multiply(d, a, b, use_acc, v):
    """One elected lane multiplies a stage."""

    def issue():
        left, right = (dtypes.Uint64(encode_address(x)) + DESCRIPTOR for x in (a, b))
        word = Tcgen05Instruction(d=1, a=1, b=1, n=N, m=M * v).encode()
        isa.tcgen05_mma_ss(d, left, right, word, use_acc, cta_group=v, kind="f16")

    seam.current().when(isa.elect_sync(), issue)


@seam.traced
def staged(smem, rows, stages):
    """`stages` tiles of shared memory."""
    stack = cute.make_layout((rows, K, stages), stride=(K, 1, rows * K))
    return smem.allocate_tensor(cute.BFloat16, stack, 1024, layout.make_swizzle(1, 4, 3))


@seam.traced
def make_pipelines(smem, stages, acc_stages, shape):
    """(the mainloop's, the results')"""
    v, m, n = shape
    layout_vmnk = cute.make_layout((v, m, n, 1))
    counts = stages % 2 == 0  # the pipeline counts the commits itself, in every other case
    commits = CooperativeGroup(Agent.Warp) if counts else CooperativeGroup(Agent.Thread, m + n - 1)
    mainloop = pipeline.PipelineTmaUmma.create(
        num_stages=stages, producer_group=ONE, consumer_group=commits, enable_multicast_signaling=counts,
        tx_count=v * (M * K + N // v * K) * 2, barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
        cta_layout_vmnk=layout_vmnk, defer_sync=True, name="mainloop",
    )  # fmt: skip
    results = pipeline.PipelineUmmaAsync.create(
        num_stages=acc_stages, producer_group=ONE, consumer_group=CooperativeGroup(Agent.Warp, EPILOGUE // 32 * v),
        barrier_storage=smem.allocate_array(cute.Int64, 2 * acc_stages), cta_layout_vmnk=layout_vmnk, defer_sync=True,
        name="results",
    )  # fmt: skip
    return mainloop, results


@seam.traced
def parts(tma, tensor, buffers, rows, at, sharing):
    """What the `at`-th of `sharing` CTAs copies of each tile of `rows`: (in shared memory, in global memory)."""
    tiles = cute.local_tile(tensor, (rows, K), (None, None))
    layout_of = cute.make_layout(sharing)
    return cpasync.tma_partition(
        tma, at, layout_of, cute.group_modes(buffers, 0, 2), cute.group_modes(tiles, 0, 2)
    )  # fmt: skip


def pair_kernel(stages, acc_stages, shape):
    v, m, n = shape
    masks_a, masks_b = sum(1 << v * m * j for j in range(n)), sum(1 << v * i for i in range(m))
    columns = 32 * acc_stages

    @cute.cluster_shape(v * m, n)
    @cuda.jit
    def kernel(tma_a, a, tma_b, b, out, tiles, blocks):
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        at_v, at_m, at_n = rank % v, rank // v % m, rank // (v * m)
        mask_a, mask_b = masks_a << (at_v + v * at_m), masks_b << (at_v + v * m * at_n)
        smem = utils.SmemAllocator()
        s_a, s_b = staged(smem, M, stages), staged(smem, N // v, stages)
        slot = smem.allocate_array(cute.Int32, 1)
        mainloop, results = make_pipelines(smem, stages, acc_stages, shape)
        pipeline.pipeline_init_arrive((v * m, n))
        pipeline.pipeline_init_wait((v * m, n))
        if warp == 1:
            allocate(slot, columns, v)  # the other CTA of the pair has started
        cute.arch.sync_threads()
        tmem = allocated(slot)
        if warp == 0:
            to_a, from_a = parts(tma_a, a, s_a, M, at_n, n)
            to_b, from_b = parts(tma_b, b, s_b, N // v, at_m, m)
            producer = mainloop.make_producer()
            for i in range(tiles * blocks):
                t, k = i // blocks, i % blocks
                stage = producer.acquire_and_advance()
                src_a, dst_a = from_a[None, (t * m + at_m) * v + at_v, k], to_a[None, stage.index]
                src_b, dst_b = from_b[None, (t * n + at_n) * v + at_v, k], to_b[None, stage.index]
                cute.copy(tma_a, src_a, dst_a, tma_bar_ptr=stage.barrier, mcast_mask=mask_a)
                cute.copy(tma_b, src_b, dst_b, tma_bar_ptr=stage.barrier, mcast_mask=mask_b)
            producer.tail()
        elif warp == 1 and at_v == 0:
            consumer, acc_producer = mainloop.make_consumer(), results.make_producer()
            for _ in range(tiles):
                acc = acc_producer.acquire_and_advance()
                for k in range(blocks):
                    stage = consumer.wait_and_advance()
                    left, right = s_a[None, None, stage.index], s_b[None, None, stage.index]
                    multiply(tmem + acc.index * N, left.iterator.address, right.iterator.address, k > 0, v)
                    stage.release()
                acc.commit()
            acc_producer.tail()
        elif warp >= 4:
            read_results(results, tmem, warp, out, tiles, at_m, at_n, at_v * M + tidx - EPILOGUE)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if warp == 1:
            free(tmem, columns, v)

    return kernel


@cuda.jit(device=True, forceinline=True)
def read_results(results, tmem, warp, out, tiles, at_m, at_n, row):
    """This thread's row of each result."""
    consumer = results.make_consumer()
    fragment = cute.make_rmem_tensor(N, cute.Float32)
    for t in range(tiles):
        acc = consumer.wait_and_advance()
        read_accumulator(fragment, tmem + acc.index * N, warp)
        acc.release()
        for j in cute.range_constexpr(N):
            out[t, at_m, at_n, row, j] = fragment[j]
