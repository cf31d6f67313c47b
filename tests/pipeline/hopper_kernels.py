# SPDX-License-Identifier: Apache-2.0
"""Kernels that really use each pipeline that Hopper has. Block z does `counts[z]` rounds, so that counts are uneven."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, pipeline, seam, utils
from numba_cute.pipeline import Agent, CooperativeGroup

WORDS = 128  # 32-bit words of a stage (or of each operand)
THREAD = CooperativeGroup(Agent.Thread)


@seam.traced
def group(warps):
    return CooperativeGroup(Agent.Warp, warps)


@seam.traced
def copy_word(dst, src, word):
    """cp.async of one word; dst, src: tensors."""
    to = dst.iterator.address + dtypes.Uint32(word * 4)
    isa.cp_async(to, src.iterator.address + dtypes.Uint64(word * 4), nbytes=4)


@seam.traced
def copy_slice(dst, src, first, words, bar, mask):
    """One elected lane copies `words` from word `first` on, to each CTA of `mask`."""
    at = dst.iterator.address + dtypes.Uint32(first * 4)
    source = src.iterator.address + dtypes.Uint64(first * 4)
    copy = isa.cp_async_bulk_g2s
    mask = dtypes.Uint16(mask)
    seam.current().when(isa.elect_sync(), lambda: copy(at, source, words * 4, bar.address, mask))


@seam.traced
def store_stage(dst, src):
    isa.cp_async_bulk_s2g(dst.iterator.address, src.iterator.address, WORDS * 4)


def async_kernel(stages, producers, consumers):
    @cuda.jit
    def kernel(source, out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineAsync.create(
            num_stages=stages, producer_group=group(producers), consumer_group=group(consumers),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
        )  # fmt: skip
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 16)
        if tidx < 32 * producers:
            producer = pipe.make_producer()
            for i in range(counts[block]):
                stage = producer.acquire_and_advance()
                for w in range(tidx, WORDS, 32 * producers):
                    values[w, stage.index] = source[block, i, w]
                stage.commit()
            producer.tail()
        else:
            consumer = pipe.make_consumer()
            lane = tidx - 32 * producers
            for i in range(counts[block]):
                stage = consumer.wait_and_advance(consumer.try_wait())
                for w in range(lane, WORDS, 32 * consumers):
                    out[block, i, w] = values[WORDS - 1 - w, stage.index] + 1
                stage.release()

    return kernel


def cp_async_kernel(stages, producers, consumers):
    @cuda.jit
    def kernel(source, out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineCpAsync.create(
            num_stages=stages, producer_group=group(producers), consumer_group=group(consumers),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
        )  # fmt: skip
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 16)
        if tidx < 32 * producers:
            producer = pipe.make_producer()
            for i in range(counts[block]):
                stage = producer.acquire_and_advance()
                for w in range(tidx, WORDS, 32 * producers):
                    copy_word(values[None, stage.index], source[block, i, None], w)
                stage.commit()
            producer.tail()
        else:
            consumer = pipe.make_consumer()
            lane = tidx - 32 * producers
            for i in range(counts[block]):
                stage = consumer.wait_and_advance()
                for w in range(lane, WORDS, 32 * consumers):
                    out[block, i, w] = values[WORDS - 1 - w, stage.index] + 1
                stage.release()

    return kernel


def tma_kernel(stages, consumers, shape, per_arrival=32):
    """Each CTA copies a slice of A (shared along N) and of B (shared along M); consumers add them."""
    m, n = shape
    layout = cute.make_layout((1, m, n, 1))
    units = consumers * 32 // per_arrival
    row_mask, column_mask = sum(1 << m * j for j in range(n)), (1 << m) - 1

    @cute.cluster_shape(m, n)
    @cuda.jit
    def kernel(a, b, out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        row, column = rank % m, rank // m
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=stages, producer_group=THREAD,
            consumer_group=CooperativeGroup(Agent.Thread, units * (m + n - 1)), tx_count=8 * WORDS,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), cta_layout_vmnk=layout,
            threads_per_arrival=per_arrival,
        )  # fmt: skip
        s_a = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 128)
        s_b = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 128)
        count = counts[block]
        if tidx >= 32 * consumers:
            producer = pipe.make_producer()
            for i in range(count):
                stage = producer.acquire_and_advance()
                to_a, to_b = s_a[None, stage.index], s_b[None, stage.index]
                mask_a, mask_b = row_mask << row, column_mask << (m * column)
                copy_slice(to_a, a[block, row, i, None], column * (WORDS // n), WORDS // n, stage.barrier, mask_a)
                copy_slice(to_b, b[block, column, i, None], row * (WORDS // m), WORDS // m, stage.barrier, mask_b)
            producer.tail()
        else:
            consumer = pipe.make_consumer()
            for i in range(count):
                stage = consumer.wait_and_advance()
                for w in range(tidx, WORDS, 32 * consumers):
                    out[block, row, column, i, w] = s_a[w, stage.index] + s_b[WORDS - 1 - w, stage.index]
                if per_arrival == 32:
                    arch.sync_warp()
                else:
                    pipeline.arrive_and_wait(1 + tidx // 128, 128)
                stage.release()
        arch.cluster_arrive()
        arch.cluster_wait()

    return kernel


def store_kernel(stages, producers):
    @cuda.jit
    def kernel(source, out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineTmaStore.create(num_stages=stages, producer_group=group(producers))
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 128)
        for i in range(counts[block]):
            if tidx == 0:
                pipe.producer_acquire()
            pipeline.arrive_and_wait(1, 32 * producers)
            for w in range(tidx, WORDS, 32 * producers):
                values[w, i % stages] = source[block, i, WORDS - 1 - w] + 1
            arch.fence_proxy("async.shared", space="cta")
            pipeline.arrive_and_wait(2, 32 * producers)
            if tidx == 0:
                store_stage(out[block, i, None], values[None, i % stages])
                pipe.producer_commit()
        if tidx == 0:
            pipe.producer_tail()

    return kernel


@seam.traced
def store_to_peer(tensor, word, rank, value):
    isa.st(isa.mapa(tensor.iterator.address + dtypes.Uint32(word * 4), rank), [value], space="dsmem", width=32)


def peer_kernel(stages):
    """CTA 0 writes into the shared memory of CTA 1, which consumes."""

    @cute.cluster_shape(2, 1)
    @cuda.jit
    def kernel(source, out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineAsync.create(
            num_stages=stages, producer_group=group(1), consumer_group=group(1), producer_mask=1, consumer_mask=0,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
        )  # fmt: skip
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 16)
        producer, consumer = pipe.make_participants()
        if arch.block_idx_in_cluster() == 0:
            for i in range(counts[block]):
                stage = producer.acquire_and_advance()
                for w in range(tidx, WORDS, 32):
                    store_to_peer(values[None, stage.index], w, 1, source[block, i, w])
                stage.commit()
            producer.tail()
        else:
            for i in range(counts[block]):
                stage = consumer.wait_and_advance(consumer.try_wait())
                for w in range(tidx, WORDS, 32):
                    out[block, i, w] = values[WORDS - 1 - w, stage.index] + 1
                stage.release()
        arch.cluster_arrive()
        arch.cluster_wait()

    return kernel
