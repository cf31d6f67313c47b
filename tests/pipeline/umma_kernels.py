# SPDX-License-Identifier: Apache-2.0
"""Kernels with Blackwell's matrix unit: C (128 * tiles, 32) = A @ B.T, 16 of K a stage, for the UMMA pipelines.

A stage in memory is what the matrix unit reads without a swizzle: 16-byte pieces of K, each (rows, 8) row by row.
"""

from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, pipeline, seam, utils
from numba_cute.isa.facts.bits import encode_address
from numba_cute.isa.rows.tcgen05_mma import Tcgen05Descriptor, Tcgen05Instruction
from numba_cute.pipeline import Agent, CooperativeGroup, PipelineOp

M, N, K = 128, 32, 16
A_BYTES, B_BYTES = M * K * 2, N * K * 2
STAGE_BYTES = A_BYTES + B_BYTES
THREADS, EPILOGUE = 256, 128  # warp 0 copies, warp 1 multiplies, warps 4 to 7 read the result
ONE = CooperativeGroup(Agent.Thread)


def descriptor(rows):
    """All of a K-major operand's descriptor but its start."""
    return Tcgen05Descriptor(leading=rows * 16, stride=128, swizzle=0).encode()


def instruction(ctas):
    return Tcgen05Instruction(d=1, a=1, b=1, n=N, m=M * ctas).encode()


@seam.traced
def copy_stage(dst, src, stage_index, bar):
    """One elected lane copies a stage."""
    b = seam.current()
    source = src.iterator.address + dtypes.Uint64(stage_index) * STAGE_BYTES
    b.when(isa.elect_sync(), lambda: isa.cp_async_bulk_g2s(dst, source, STAGE_BYTES, bar.address))


@seam.traced
def multiply(d, stage, use_acc, ctas):
    """One elected lane multiplies a stage."""

    def issue():
        a = dtypes.Uint64(encode_address(stage)) + descriptor(M)
        b = dtypes.Uint64(encode_address(stage + A_BYTES)) + descriptor(N // ctas)
        isa.tcgen05_mma_ss(d, a, b, instruction(ctas), use_acc, cta_group=ctas, kind="f16")

    seam.current().when(isa.elect_sync(), issue)


@seam.traced
def allocate(slot, columns, ctas):
    isa.tcgen05_alloc(slot.address, columns, cta_group=ctas)
    isa.tcgen05_fence_before()


@seam.traced
def allocated(slot):
    isa.tcgen05_fence_after()
    return slot.load()


@seam.traced
def free(address, columns, ctas):
    isa.tcgen05_dealloc(address, columns, cta_group=ctas)


@seam.traced
def read_accumulator(fragment, address, warp):
    """This warp's 32 rows of the accumulator into registers."""
    isa.tcgen05_fence_after()
    regs = seam.Regs(fragment.iterator.address, dtypes.Float32, 0, N)
    isa.tcgen05_ld(dst=regs, taddr=address + ((warp % 4 * 32) << 16), shape="32x32b", num=N)
    isa.tcgen05_wait_ld()
    isa.tcgen05_fence_before()


def tma_kernel(stages, acc_stages):
    """PipelineTmaUmma feeds the matrix unit, PipelineUmmaAsync hands its results on."""
    columns = 64 if acc_stages > 1 else 32

    @cuda.jit
    def kernel(source, out, tiles, blocks):
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        buffers = smem.allocate(STAGE_BYTES * stages, 128)
        slot = smem.allocate_array(cute.Int32, 1)
        bars, acc_bars = smem.allocate_array(cute.Int64, 2 * stages), smem.allocate_array(cute.Int64, 2 * acc_stages)
        mainloop = pipeline.PipelineTmaUmma.create(
            num_stages=stages, producer_group=ONE, consumer_group=ONE, tx_count=STAGE_BYTES, barrier_storage=bars,
            defer_sync=True, name="mainloop",
        )  # fmt: skip
        results = pipeline.PipelineUmmaAsync.create(
            num_stages=acc_stages, producer_group=ONE, consumer_group=CooperativeGroup(Agent.Thread, EPILOGUE),
            barrier_storage=acc_bars, defer_sync=True, name="results",
        )  # fmt: skip
        if warp == 1:
            allocate(slot, columns, 1)
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()
        tmem = allocated(slot)
        if warp == 0:
            producer = mainloop.make_producer()
            for i in range(tiles * blocks):
                stage = producer.acquire_and_advance()
                copy_stage(buffers.address + stage.index * STAGE_BYTES, source, i, stage.barrier)
            producer.tail()
        elif warp == 1:
            consumer, acc_producer = mainloop.make_consumer(), results.make_producer()
            for _ in range(tiles):
                acc = acc_producer.acquire_and_advance()
                for i in range(blocks):
                    stage = consumer.wait_and_advance()
                    multiply(tmem + acc.index * N, buffers.address + stage.index * STAGE_BYTES, i > 0, 1)
                    stage.release()
                acc.commit()
            acc_producer.tail()
        elif warp >= 4:
            acc_consumer = results.make_consumer()
            fragment = cute.make_rmem_tensor(N, cute.Float32)
            for t in range(tiles):
                acc = acc_consumer.wait_and_advance()
                read_accumulator(fragment, tmem + acc.index * N, warp)
                acc.release()
                for j in cute.range_constexpr(N):
                    out[t * M + tidx - EPILOGUE, j] = fragment[j]
        cute.arch.sync_threads()
        if warp == 1:
            free(tmem, columns, 1)

    return kernel


@seam.traced
def threads_pipelines(smem, stages, ctas):
    layout = cute.make_layout((ctas, 1, 1, 1))
    mainloop = pipeline.PipelineAsyncUmma.create(
        num_stages=stages, producer_group=CooperativeGroup(Agent.Thread, 64 * ctas), consumer_group=ONE,
        barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), cta_layout_vmnk=layout, defer_sync=True,
        name="mainloop",
    )  # fmt: skip
    results = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=ONE, consumer_group=CooperativeGroup(Agent.Thread, EPILOGUE * ctas),
        barrier_storage=smem.allocate_array(cute.Int64, 2), cta_layout_vmnk=layout, defer_sync=True, name="results",
    )  # fmt: skip
    return mainloop, results


def threads_kernel(stages, ctas):
    """PipelineAsyncUmma: threads write the operands, of one CTA or of a pair that multiplies together."""
    words = (A_BYTES + B_BYTES // ctas) // 4
    stage_bytes = words * 4

    @cute.cluster_shape(ctas, 1)
    @cuda.jit
    def kernel(source, out, tiles, blocks):
        tidx, _, _ = arch.thread_idx()
        warp, rank = arch.make_warp_uniform(arch.warp_idx()), arch.block_idx_in_cluster()
        smem = utils.SmemAllocator()
        buffers = smem.allocate_tensor(cute.Int32, cute.make_layout((words, stages)), 128)
        slot = smem.allocate_array(cute.Int32, 1)
        mainloop, results = threads_pipelines(smem, stages, ctas)
        pipeline.pipeline_init_arrive((ctas, 1))
        pipeline.pipeline_init_wait((ctas, 1))
        if warp == 1:
            allocate(slot, 32, ctas)  # both CTAs have started
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        tmem = allocated(slot)
        if warp == 2 or warp == 3:
            producer = mainloop.make_producer()
            for i in range(tiles * blocks):
                stage = producer.acquire_and_advance()
                for w in range(tidx - 64, words, 64):
                    buffers[w, stage.index] = source[rank, i, w]
                cute.arch.fence_proxy("async.shared", space="cta")
                stage.commit()
            producer.tail()
        elif warp == 1 and rank == 0:
            consumer, acc_producer = mainloop.make_consumer(), results.make_producer()
            for _ in range(tiles):
                acc = acc_producer.acquire_and_advance()
                for i in range(blocks):
                    stage = consumer.wait_and_advance()
                    multiply(tmem, buffers.iterator.address + stage.index * stage_bytes, i > 0, ctas)
                    stage.release()
                acc.commit()
            acc_producer.tail()
        elif warp >= 4:
            acc_consumer = results.make_consumer()
            fragment = cute.make_rmem_tensor(N, cute.Float32)
            for t in range(tiles):
                acc = acc_consumer.wait_and_advance()
                read_accumulator(fragment, tmem, warp)
                acc.release()
                for j in cute.range_constexpr(N):
                    out[(t * ctas + rank) * M + tidx - EPILOGUE, j] = fragment[j]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if warp == 1:
            free(tmem, 32, ctas)

    return kernel


@seam.traced
def copy_part(dst, src, stage_index, bar, at, of):
    """One elected lane copies the `at`-th part of `of` of a stage, to each of `of` CTAs."""
    b, part, mask = seam.current(), STAGE_BYTES // of, dtypes.Uint16((1 << of) - 1)
    source = src.iterator.address + dtypes.Uint64(stage_index) * STAGE_BYTES + dtypes.Uint64(at * part)
    copy = isa.cp_async_bulk_g2s
    b.when(isa.elect_sync(), lambda: copy(dst + dtypes.Uint32(at * part), source, part, bar.address, mask))


@seam.traced
def both_pipelines(smem, stages, shared):
    umma = CooperativeGroup(Agent.Thread, shared)
    threads = CooperativeGroup(Agent.Thread, 64 if shared == 1 else 2 * shared)  # of several CTAs a lane of each warp
    mainloop = pipeline.PipelineTmaMultiConsumersAsync.create(
        num_stages=stages, producer_group=ONE, consumer_group_umma=umma, consumer_group_async=threads,
        tx_count=STAGE_BYTES, barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
        cta_layout_vmnk=cute.make_layout((1, 1, shared, 1)), mcast_mode_mn=(1, 0), name="mainloop",
    )  # fmt: skip
    results = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=ONE, consumer_group=CooperativeGroup(Agent.Thread, EPILOGUE),
        barrier_storage=smem.allocate_array(cute.Int64, 2), name="results",
    )  # fmt: skip
    return mainloop, results


def both_kernel(stages, shared=1):
    """PipelineTmaMultiConsumersAsync: the matrix unit multiplies a stage while threads sum its words. shared: CTAs
    along N, each of which fetches a part of every stage, for all."""

    @cute.cluster_shape(1, shared)
    @cuda.jit
    def kernel(source, out, sums, blocks):
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        buffers = smem.allocate_tensor(cute.Int32, cute.make_layout((STAGE_BYTES // 4, stages)), 128)
        slot = smem.allocate_array(cute.Int32, 1)
        pipe, results = both_pipelines(smem, stages, shared)
        if warp == 1:
            allocate(slot, 32, 1)
        cute.arch.sync_threads()
        tmem = allocated(slot)
        producer, consumer, _ = pipe.make_participants()
        acc_producer, acc_consumer = results.make_participants()
        if warp == 0:
            for i in range(blocks):
                stage = producer.acquire_and_advance()
                copy_part(buffers.iterator.address + stage.index * STAGE_BYTES, source, i, stage.barrier, rank, shared)
            producer.tail()
        elif warp == 1:
            acc = acc_producer.acquire_and_advance()
            for i in range(blocks):
                stage = consumer.wait_and_advance()
                multiply(tmem, buffers.iterator.address + stage.index * STAGE_BYTES, i > 0, 1)
                stage.release()
            acc.commit()
            acc_producer.tail()
        elif warp < 4:
            total = 0
            for _ in range(blocks):
                stage = consumer.wait_and_advance()
                for w in range(tidx - 64, STAGE_BYTES // 4, 64):
                    total += buffers[w, stage.index] & 0xFFFF
                arch.sync_warp()
                pipe.consumer_release(stage, PipelineOp.AsyncThread)
            sums[rank, tidx - 64] = total
        else:
            acc_consumer.wait()
            fragment = cute.make_rmem_tensor(N, cute.Float32)
            read_accumulator(fragment, tmem, warp)
            acc_consumer.release()
            for j in cute.range_constexpr(N):
                out[rank, tidx - EPILOGUE, j] = fragment[j]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if warp == 1:
            free(tmem, 32, 1)

    return kernel
