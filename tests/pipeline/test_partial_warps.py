# SPDX-License-Identifier: Apache-2.0
"""Blocks that are no multiple of 32: named barriers count whole warps, of which the last has fewer threads."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import nvgpu, pipeline

BLOCKS = [1, 33, 48, 100]
AGENTS = (pipeline.Agent.Thread, pipeline.Agent.ThreadBlock)


@cuda.jit
def syncs(out):
    i = cuda.threadIdx.x
    pipeline.sync(0)
    pipeline.sync(barrier_id=1)
    pipeline.pipeline_init_arrive(cluster_shape_mn=(1, 1), is_relaxed=True)
    pipeline.pipeline_init_wait(cluster_shape_mn=(1, 1))
    pipeline.agent_sync(pipeline.Agent.ThreadBlock)
    pipeline.agent_sync(pipeline.Agent.Warp)
    cute.arch.barrier()
    cute.arch.sync_warp()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    out[i] = i + 1 + cuda.syncthreads_or(0)


def barriers(count):
    whole = -(-count // 32) * 32

    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x
        named = pipeline.NamedBarrier(barrier_id=1, num_threads=whole)
        named.arrive_and_wait()
        if i % 2 == 0:
            named.wait_unaligned()
        else:
            named.wait_unaligned()
        if i >= whole - 32:  # the last warp alone
            pipeline.NamedBarrier(barrier_id=2, num_threads=32).sync()
        cute.arch.barrier(barrier_id=3, number_of_threads=whole)
        out[i] = i + 1

    return kernel


def pipes(count, agent):
    size = count if agent is pipeline.Agent.Thread else 1

    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x
        shared = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((128, 2)))
        group = pipeline.CooperativeGroup(agent, size)
        producer, consumer = pipeline.PipelineAsync.create(
            num_stages=2, producer_group=group, consumer_group=group
        ).make_participants()
        for _ in range(3):
            filled = producer.acquire_and_advance()
            shared[i, filled.index] = i + 1
            filled.commit()
            full = consumer.wait_and_advance()
            out[count - 1 - i] = shared[count - 1 - i, full.index]
            full.release()
        producer.tail()

    return kernel


def copies(count):
    @cuda.jit
    def kernel(x, out):
        i = cuda.threadIdx.x
        shared = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(128))
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, count)
        pipe = pipeline.PipelineCpAsync.create(num_stages=1, producer_group=group, consumer_group=group)
        producer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
        consumer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        atom = cute.make_copy_atom(nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
        pipe.producer_acquire(producer)
        cute.copy(atom, cute.local_tile(cute.make_tensor(x, 128), (1,), (i,)), cute.local_tile(shared, (1,), (i,)))
        pipe.producer_commit(producer)
        producer.advance()
        pipe.consumer_wait(consumer)
        out[i] = shared[count - 1 - i]
        pipe.consumer_release(consumer)
        pipe.producer_tail(producer)

    return kernel


def ordered(count):
    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x
        order = pipeline.PipelineOrder.create(
            depth=1, length=1, group_id=0, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, count)
        )
        order.wait()
        out[i] = i + 1
        order.arrive()

    return kernel


@pytest.mark.parametrize("checks", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("count", [33, *(pytest.param(n, marks=pytest.mark.slow) for n in BLOCKS if n != 33)])
def test_everything_meets(count, checks):
    out, x = np.zeros(128, np.float32), np.arange(1, 129, dtype=np.float32)
    for kernel in (syncs, barriers(count), *(pipes(count, a) for a in AGENTS), ordered(count)):
        out[:] = 0
        cute.simulate(kernel, checks=checks)[1, count](out)
        np.testing.assert_array_equal(out[:count], x[:count])
    cute.simulate(copies(count), checks=checks)[1, count](x, out)
    np.testing.assert_array_equal(out[:count], x[:count][::-1])


@pytest.mark.slow
def test_they_compile():
    out = np.zeros(128, np.float32)
    for kernel in (syncs, barriers(100), pipes(100, pipeline.Agent.ThreadBlock), ordered(100)):
        assert cute.compile(kernel, out).ptx
    assert cute.compile(copies(100), out, out).ptx


def test_a_thread_that_does_not_come_is_waited_for():
    from numba_cute.sim import DeadlockError

    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x
        if i != 40:
            pipeline.NamedBarrier(barrier_id=1, num_threads=64).wait_unaligned()
        out[i] = 1

    with pytest.raises(DeadlockError, match="47 of 64 threads have arrived; missing: thread 40"):
        cute.simulate(kernel)[1, 48](np.zeros(48))
