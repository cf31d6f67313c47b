# SPDX-License-Identifier: Apache-2.0
"""Kernels that use barriers as they are: turns, named barriers, each form of MbarrierArray. Block z does `counts[z]`
rounds."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, pipeline, seam, utils
from numba_cute.pipeline import Agent, CooperativeGroup, MbarrierArray, NamedBarrier, PipelineOp

from .hopper_kernels import WORDS, copy_word, group

ONE = CooperativeGroup(Agent.Thread)


def order_kernel(depth, groups):
    """Warps take turns in each of `depth` sections; a section notes who came."""

    @cuda.jit
    def kernel(out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        warp = tidx // 32
        smem = utils.SmemAllocator()
        order = pipeline.PipelineOrder.create(
            depth=depth, length=groups, group_id=warp, producer_group=CooperativeGroup(Agent.Thread, 32),
            barrier_storage=smem.allocate_array(cute.Int64, depth * groups),
        )  # fmt: skip
        said = smem.allocate_tensor(cute.Int32, cute.make_layout(depth), 16)
        if tidx < depth:
            said[tidx] = 0
        cuda.syncthreads()
        for i in range(counts[block] * depth):
            order.wait()
            if tidx % 32 == 0:
                section = i % depth
                out[block, section, said[section]] = warp
                said[section] += 1
            order.arrive()

    return kernel


def named_kernel(stages, producers, consumers):
    """Producers and consumers hand `stages` buffers over by two named barriers each, aligned and unaligned in turn."""
    threads = 32 * (producers + consumers)

    @cuda.jit
    def kernel(source, out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        smem = utils.SmemAllocator()
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 16)
        count = counts[block]
        for i in range(count):
            stage = i % stages
            full, empty = NamedBarrier(1 + stage, threads), NamedBarrier(1 + stages + stage, threads)
            if tidx < 32 * producers:
                if i >= stages:
                    if i % 2:
                        empty.wait_unaligned()
                    else:
                        empty.sync()
                for w in range(tidx, WORDS, 32 * producers):
                    values[w, stage] = source[block, i, w]
                if i % 2:
                    full.arrive_unaligned()
                else:
                    pipeline.arrive(1 + stage, threads)
            else:
                if i % 2:
                    pipeline.wait_unaligned(1 + stage, threads)
                else:
                    full.arrive_and_wait()
                for w in range(tidx - 32 * producers, WORDS, 32 * consumers):
                    out[block, i, w] = values[WORDS - 1 - w, stage] + 1
                if i + stages < count:  # somebody will wait for it
                    if (i + stages) % 2:
                        pipeline.arrive_unaligned(1 + stages + stage, threads)
                    else:
                        empty.arrive()

    return kernel


@seam.traced
def copy_in(dst, src, bar):
    """One elected lane copies WORDS words."""
    b, copy = seam.current(), isa.cp_async_bulk_g2s
    b.when(isa.elect_sync(), lambda: copy(dst.iterator.address, src.iterator.address, WORDS * 4, bar.address))


def forms_kernel(stages):
    """Two CTAs; each announces the bytes of its peer's copy at the peer's barrier. One warp."""

    @cute.cluster_shape(2, 1)
    @cuda.jit
    def kernel(source, out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 128)
        loads = MbarrierArray(smem.allocate_array(cute.Int64, stages), stages, (PipelineOp.TmaLoad, ONE), WORDS * 4)
        both = MbarrierArray(smem.allocate_array(cute.Int64, stages), stages, (PipelineOp.Composite, group(2)))
        pipeline.pipeline_init_arrive((2, 1))
        pipeline.pipeline_init_wait((2, 1))
        threads = both.recast_to_new_op_type(PipelineOp.AsyncThread)
        for i in range(counts[block]):
            stage, phase = i % stages, i // stages % 2
            if tidx == 0:
                loads.arrive_and_expect_tx_with_dst(stage, WORDS * 4, 1 - rank)
            copy_in(values[None, stage], source[block, rank, i, None], loads.get_barrier(stage))
            while not loads.try_wait(stage, phase):
                pass
            loads.wait(stage, phase)
            for w in range(tidx, WORDS, 32):
                out[block, rank, i, w] = values[WORDS - 1 - w, stage] + 1
            threads.arrive(stage, 1 - rank)  # 32 threads of each CTA, at the peer's barrier and at their own
            threads.arrive_mbarrier(stage)
            both.wait(stage, phase)
        arch.cluster_arrive()
        arch.cluster_wait()

    return kernel


def cp_forms_kernel(stages):
    """`arrive` and `arrive_and_wait` of every kind that Hopper's threads have, in one CTA of one warp."""

    @cuda.jit
    def kernel(source, out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        smem = utils.SmemAllocator()
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages, 2)), 128)
        copies = MbarrierArray(smem.allocate_array(cute.Int64, stages), stages, (PipelineOp.AsyncLoad, group(1)))
        loads = MbarrierArray(smem.allocate_array(cute.Int64, stages), stages, (PipelineOp.TmaLoad, ONE), WORDS * 4)
        done = MbarrierArray(smem.allocate_array(cute.Int64, stages), stages, (PipelineOp.AsyncThread, group(1)))
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()
        for i in range(counts[block]):
            stage, phase = i % stages, i // stages % 2
            for w in range(tidx, WORDS, 32):
                copy_word(values[None, stage, 0], source[block, 0, i, None], w)
            copies.arrive_cp_async_mbarrier(stage)
            loads.arrive_and_expect_tx(stage, WORDS * 4)
            copy_in(values[None, stage, 1], source[block, 1, i, None], loads.get_barrier(stage))
            copies.wait(stage, phase)
            loads.wait(stage, phase)
            for w in range(tidx, WORDS, 32):
                out[block, 0, i, w] = values[WORDS - 1 - w, stage, 0] + 1
                out[block, 1, i, w] = values[WORDS - 1 - w, stage, 1] + 1
            done.arrive_and_wait(stage, phase)

    return kernel


def drop_kernel(stages):
    """Warp 1 takes part in half of the rounds only, and then leaves the barrier."""

    @cuda.jit
    def kernel(out, counts):
        tidx, _, _ = arch.thread_idx()
        _, _, block = arch.block_idx()
        smem = utils.SmemAllocator()
        agent = (PipelineOp.AsyncThread, group(2))
        barrier = MbarrierArray(smem.allocate_array(cute.Int64, stages), stages, agent)
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
        count = counts[block]
        rounds = count if tidx < 32 else (count + 1) // 2
        for i in range(rounds):
            last = tidx >= 32 and i + stages >= rounds
            if last:
                barrier.arrive_and_drop(state.index)
            else:
                barrier.arrive_and_wait(state.index, state.phase)
            state.advance()
        if tidx >= 32:
            for _ in range(max(stages - rounds, 0)):  # the barriers of the stages that it never came to
                barrier.arrive_and_drop(state.index)
                state.advance()
        out[block, tidx] = dtypes.Int32(rounds)

    return kernel
