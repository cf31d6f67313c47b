# SPDX-License-Identifier: Apache-2.0
"""Mistakes with barriers, pipelines, and fences."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import warpgroup

from .form import mistake

THREAD = pipeline.Agent.Thread
PLAIN, TMA = pipeline.PipelineAsync, pipeline.PipelineTmaAsync


@mistake("is not in [1, 2^20 - 1]")
def barrier_of_no_arrivals(x):
    p = utils.SmemAllocator().allocate_array(cute.Int64, 1)
    arch.mbarrier_init(p, 0)  # wrong


@mistake("8-byte aligned")
def barrier_that_is_misaligned(x):
    arch.mbarrier_wait(cute.make_ptr(cute.Float32, 4, cute.AddressSpace.smem), 0)  # wrong


@mistake("must point to shared memory")
def barrier_in_global_memory(x):
    arch.mbarrier_wait(cute.make_ptr(cute.Float32, 8, cute.AddressSpace.gmem, 8), 0)  # wrong


@mistake("is not in [0, 2^20 - 1]")
def barrier_that_expects_too_much(x):
    p = utils.SmemAllocator().allocate_array(cute.Int64, 1)
    arch.mbarrier_expect_tx(p, 1 << 20)  # wrong


@mistake("is not in [0, 15]")
def named_barrier_16(x):
    arch.barrier(16, 32)  # wrong


@mistake("multiple of 32")
def named_barrier_of_48_threads(x):
    arch.barrier(1, 48)  # wrong


@mistake("must be given")
def arrival_of_unknown_many(x):
    arch.barrier_arrive(1)  # wrong


@mistake("is not a proxy fence")
def fence_of_no_kind(x):
    arch.fence_proxy("async.shared")  # wrong


@mistake("multiple of 8")
def registers_that_are_no_multiple_of_8(x):
    arch.setmaxregister_increase(100)  # wrong


@mistake("must be a static number in [0, 31]")
def bulk_groups_waited_for_out_of_range(x):
    arch.cp_async_bulk_wait_group(40)  # wrong


@mistake("must be a static number in [0, 7]")
def wgmma_groups_waited_for_out_of_range(x):
    warpgroup.wait_group(8)  # wrong


@mistake("static", np.int32(1))
def groups_waited_for_at_run_time(n):
    arch.cp_async_wait_group(n)  # wrong


@mistake(
    "has 16 bytes of dynamic shared memory", lambda: np.zeros(64, np.float32), block=64, only="simulator",
    reason="a pointer's type says where it points, not how far: only a run knows what an allocator gave",
)  # fmt: skip
def pipeline_with_too_few_barriers(x):
    storage = utils.SmemAllocator().allocate_array(cute.Int64, 2)
    group = pipeline.CooperativeGroup(THREAD, 32)
    PLAIN.create(num_stages=2, producer_group=group, consumer_group=group, barrier_storage=storage)  # wrong


@mistake("-bit words of shared memory: SmemAllocator", lambda: np.zeros(64, np.float32), block=64)
def pipeline_with_barriers_of_another_type(x):
    storage = utils.SmemAllocator().allocate_array(cute.Float32, 8)
    group = pipeline.CooperativeGroup(THREAD, 32)
    PLAIN.create(num_stages=2, producer_group=group, consumer_group=group, barrier_storage=storage)  # wrong


@mistake("is not a CooperativeGroup", lambda: np.zeros(64, np.float32))
def pipeline_of_a_number_of_threads(x):
    storage = utils.SmemAllocator().allocate_array(cute.Int64, 4)
    PLAIN.create(num_stages=2, producer_group=32, consumer_group=32, barrier_storage=storage)  # wrong


@mistake("must be an int of at least", lambda: np.zeros(64, np.float32))
def group_of_no_threads(x):
    pipeline.CooperativeGroup(THREAD, 0)  # wrong


@mistake("is not a member of pipeline.Agent", lambda: np.zeros(64, np.float32))
def group_of_no_agent(x):
    pipeline.CooperativeGroup("thread", 32)  # wrong


@mistake("must be a static int of at least", lambda: np.zeros(64, np.float32), np.int32(2), block=64)
def pipeline_of_run_time_stages(x, n):
    storage = utils.SmemAllocator().allocate_array(cute.Int64, 4)
    group = pipeline.CooperativeGroup(THREAD, 32)
    PLAIN.create(num_stages=n, producer_group=group, consumer_group=group, barrier_storage=storage)  # wrong


@mistake("is not a member of pipeline.PipelineUserType", lambda: np.zeros(64, np.float32))
def state_of_no_kind(x):
    pipeline.make_pipeline_state("producer", 2)  # wrong


@mistake("NamedBarrier: num_threads", lambda: np.zeros(64, np.float32))
def named_barrier_object_of_48_threads(x):
    pipeline.NamedBarrier(1, 48).arrive_and_wait()  # wrong


@mistake("tx_count", lambda: np.zeros(64, np.float32))
def tma_pipeline_without_bytes(x):
    storage = utils.SmemAllocator().allocate_array(cute.Int64, 4)
    group = pipeline.CooperativeGroup(THREAD)
    TMA.create(num_stages=2, producer_group=group, consumer_group=group, tx_count=0, barrier_storage=storage)  # wrong


@mistake(
    "deadlock", lambda: np.zeros(64, np.float32), only="simulator", block=32,
    reason="which threads arrive is known only at run time",
)  # fmt: skip
def barrier_that_completes_never(x):
    p = utils.SmemAllocator().allocate_array(cute.Int64, 1)
    if cuda.threadIdx.x == 0:
        arch.mbarrier_init(p, 2)
        arch.mbarrier_init_fence()
    cuda.syncthreads()
    arch.mbarrier_wait(p, 0)  # wrong


@mistake(
    "beyond", lambda: np.zeros(8, np.float32), only="simulator", block=32,
    reason="an array's size is known only at run time",
)  # fmt: skip
def store_beyond_an_array(x):
    x[cuda.threadIdx.x] = 1.0  # wrong
