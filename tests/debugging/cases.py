# SPDX-License-Identifier: Apache-2.0
"""Kernels that wait for ever, or do what they must not, each with a right twin: for `cute.debug` on a GPU.

A case makes its kernel, broken or right; `words` are those that the report must hold.

PYTEST_DONT_REWRITE: the assertions are the kernels'."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.sim import DeadlockError, OutOfBoundsError, SimError, UninitializedReadError

WARP = CooperativeGroup(Agent.Warp)


@dataclass
class Case:
    name: str
    make: Callable[[bool], Any]
    error: type
    words: tuple[str, ...]
    threads: int = 64
    blocks: int = 1
    cluster: Any = None
    size: int = 256
    dtype: Any = np.float32
    options: dict[str, Any] = field(default_factory=dict)

    def arguments(self):
        return np.arange(self.size).astype(self.dtype), np.zeros(self.size, self.dtype)


CASES: list[Case] = []


def case(error: type, *words: str, **launch: Any) -> Any:
    def add(make):
        CASES.append(Case(make.__name__.replace("_", " "), make, error, words, **launch))
        return make

    return add


# ---------------------------------------------------------------------- mbarriers
@case(DeadlockError, "1 of ", "the phase of parity 0", "mbarrier_wait(bar, 0)")
def one_arrival_too_few(broken):
    count = 33 if broken else 32

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, count)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        if t < 32:
            arch.mbarrier_arrive(bar)
        arch.mbarrier_wait(bar, 0)
        out[t] = a[t]

    return kernel


@case(DeadlockError, "the phase of parity 1", "(64 threads)")
def waits_for_the_phase_after_the_last(broken):
    parity = 1 if broken else 0

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, 64)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        arch.mbarrier_arrive(bar)
        arch.mbarrier_wait(bar, 0)
        arch.mbarrier_wait(bar, parity ^ 0)
        out[t] = a[t]

    return kernel


@case(DeadlockError, "256 bytes of copies missing", "the phase of parity 0")
def announces_more_bytes_than_come(broken):
    nbytes = 256 if broken else 0

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        if t == 0:
            arch.mbarrier_arrive_and_expect_tx(bar, nbytes)
        arch.mbarrier_wait(bar, 0)
        out[t] = a[t]

    return kernel


@case(DeadlockError, "mbarrier_try_wait(bar, 0)", "1 of ")
def polls_an_mbarrier_that_nobody_signals(broken):
    signals = not broken

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        if t == 0 and signals:
            arch.mbarrier_arrive(bar)
        while not arch.mbarrier_try_wait(bar, 0):
            pass
        out[t] = a[t]

    return kernel


@case(DeadlockError, "mbarrier_test_wait(bar, 0)")
def tests_an_mbarrier_for_ever(broken):
    count = 65 if broken else 64

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, count)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        arch.mbarrier_arrive(bar)
        while not arch.mbarrier_test_wait(bar, 0):
            pass
        out[t] = a[t]

    return kernel


@case(DeadlockError, "mbarrier_wait(first, 0)", "mbarrier_wait(second, 0)")
def two_warps_wait_for_each_other(broken):
    early = not broken

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        first = utils.SmemAllocator().allocate_array(cute.Int64, 2, 8)
        second = first + 1
        if t == 0:
            arch.mbarrier_init(first, 32)
            arch.mbarrier_init(second, 32)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        if t < 32:
            if early:
                arch.mbarrier_arrive(second)
            arch.mbarrier_wait(first, 0)
            if not early:
                arch.mbarrier_arrive(second)
        else:
            arch.mbarrier_wait(second, 0)
            arch.mbarrier_arrive(first)
        out[t] = a[t]

    return kernel


@case(DeadlockError, "for the barrier of the block", "the mbarrier at")
def a_warp_waits_at_syncthreads_for_one_that_waits(broken):
    arrives = not broken

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, 32)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        if t < 32:
            if arrives:
                arch.mbarrier_arrive(bar)
        else:
            arch.mbarrier_wait(bar, 0)
        cuda.syncthreads()
        out[t] = a[t]

    return kernel


# ---------------------------------------------------------------------- pipelines
def pipe_kernel(producer_rounds, consumer_rounds, releases, commits, stages=2):
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        smem = utils.SmemAllocator()
        held = smem.allocate_tensor(cute.Float32, cute.make_layout((32, stages)), 16)
        pipe = pipeline.PipelineAsync.create(
            num_stages=stages, producer_group=WARP, consumer_group=WARP,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), name="tiles",
        )  # fmt: skip
        if t < 32:
            producer = pipe.make_producer()
            for i in range(producer_rounds):
                stage = producer.acquire_and_advance()
                held[t, stage.index] = a[i * 32 + t]
                if commits or i < 1:
                    stage.commit()
        else:
            consumer = pipe.make_consumer()
            for i in range(consumer_rounds):
                stage = consumer.wait_and_advance()
                out[i * 32 + t - 32] = held[t - 32, stage.index]
                if releases or i < 1:
                    stage.release()

    return kernel


@case(DeadlockError, "wait_and_advance", "32 of 32 arrivals missing")
def consumer_asks_for_one_tile_too_many(broken):
    return pipe_kernel(4, 5 if broken else 4, True, True)


@case(DeadlockError, "acquire_and_advance", "32 of 32 arrivals missing")
def producer_fills_more_than_is_released(broken):
    return pipe_kernel(8 if broken else 4, 4, True, True)


@case(DeadlockError, "acquire_and_advance")
def consumer_does_not_release(broken):
    return pipe_kernel(6, 6, not broken, True)


@case(DeadlockError, "wait_and_advance")
def producer_does_not_commit(broken):
    return pipe_kernel(2, 2, True, not broken)


# ---------------------------------------------------------------------- named barriers
@case(DeadlockError, "for named barrier 1: 32 of 64 threads have arrived", "lanes|warp 1")
def a_named_barrier_that_one_warp_does_not_come_to(broken):
    comes = not broken

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 32 or comes:
            arch.barrier(barrier_id=1, number_of_threads=64)
        out[t] = a[t]

    return kernel


@case(DeadlockError, "for named barrier 2: 32 of 64", "for named barrier 1: 32 of 64")
def two_named_barriers_in_two_orders(broken):
    crossed = broken

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 32 or not crossed:
            arch.barrier(barrier_id=1, number_of_threads=64)
            arch.barrier(barrier_id=2, number_of_threads=64)
        else:
            arch.barrier(barrier_id=2, number_of_threads=64)
            arch.barrier(barrier_id=1, number_of_threads=64)
        out[t] = a[t]

    return kernel


@case(DeadlockError, "for named barrier 3: 64 of 96", threads=96)
def a_named_barrier_for_more_threads_than_come(broken):
    count = 96 if broken else 64

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 64:
            arch.barrier(barrier_id=3, number_of_threads=count)
        out[t] = a[t]

    return kernel


@case(DeadlockError, "for named barrier 1: 32 of 64")
def a_warp_that_never_signals_by_bar_arrive(broken):
    signals = not broken

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 32:
            if signals:
                arch.barrier_arrive(barrier_id=1, number_of_threads=64)
        else:
            arch.barrier(barrier_id=1, number_of_threads=64)
        out[t] = a[t]

    return kernel


# ---------------------------------------------------------------------- clusters and grids
@case(DeadlockError, "of CTA 1", "1 of ", cluster=2, blocks=2)
def the_peer_arrives_at_its_own_barrier(broken):
    target = 0 if broken else 1

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        rank = arch.block_idx_in_cluster()
        if t == 0:
            arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.cluster_arrive()
        arch.cluster_wait()
        if rank == 0 and t == 0:
            arch.mbarrier_arrive(bar, target)
        if rank == 1:
            arch.mbarrier_wait(bar, 0)
        arch.cluster_arrive()
        arch.cluster_wait()
        out[t + 64 * rank] = a[t]

    return kernel


@case(DeadlockError, "for the barrier of the cluster", "for named barrier 1", cluster=2, blocks=2)
def a_cluster_waits_for_a_named_barrier(broken):
    count = 128 if broken else 64

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        rank = arch.block_idx_in_cluster()
        if rank == 1:
            arch.barrier(barrier_id=1, number_of_threads=count)
        arch.cluster_arrive()
        arch.cluster_wait()
        out[t + 64 * rank] = a[t]

    return kernel


@case(DeadlockError, "other block", "1 of ", blocks=40)
def every_block_waits(broken):
    count = 33 if broken else 32

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, count)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        if t < 32:
            arch.mbarrier_arrive(bar)
        arch.mbarrier_wait(bar, 0)
        if cuda.blockIdx.x == 0:
            out[t] = a[t]

    return kernel


@case(DeadlockError, "block (1, 0, 0)", blocks=3)
def one_block_of_three_waits(broken):
    stuck = 1 if broken else 7

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, 64)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        if cuda.blockIdx.x != stuck:
            arch.mbarrier_arrive(bar)
        arch.mbarrier_wait(bar, 0)
        out[t] = a[t]

    return kernel


@case(DeadlockError, "had ended, or did not wait", "31 of 64 arrivals missing")
def lanes_return_before_they_arrive(broken):
    leaves = broken

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        bar = utils.SmemAllocator().allocate_array(cute.Int64, 1, 8)
        if t == 0:
            arch.mbarrier_init(bar, 64)
        arch.mbarrier_init_fence()
        cuda.syncthreads()
        out[t] = a[t]
        if leaves and t < 31:
            return
        arch.mbarrier_arrive(bar)
        arch.mbarrier_wait(bar, 0)

    return kernel


# ---------------------------------------------------------------------- memory and numbers
@case(OutOfBoundsError, "behind the end of out", "out[t + far]")
def a_store_behind_the_end(broken):
    far = 256 if broken else 0

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x + 0 * arch.lane_idx()
        out[t + far] = a[t]

    return kernel


@case(OutOfBoundsError, "behind the end of a")
def a_load_by_a_tensor_of_a_layout_that_is_too_long(broken):
    far = 300 if broken else 3

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x + 0 * arch.lane_idx()
        out[t] = a[t + far]

    return kernel


@case(SimError, "stores a NaN", "math.sqrt")
def a_store_of_no_number(broken):
    import math

    shift = 8.0 if broken else 0.0

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x + 0 * arch.lane_idx()
        out[t] = math.sqrt(a[t] - shift)

    return kernel


@case(UninitializedReadError, "nobody has written", "out[t]")
def shared_memory_that_nobody_wrote(broken):
    most = 32 if broken else 64

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        held = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64), 16)
        if t < most:
            held[t] = a[t]
        cuda.syncthreads()
        out[t] = held[t]

    return kernel


@case(AssertionError, "n is 5 at the most", "is false", "thread ")
def an_assertion(broken):
    most = 6 if broken else 64

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x + 0 * arch.lane_idx()
        assert t < most, "n is 5 at the most"
        out[t] = a[t]

    return kernel


@case(UninitializedReadError, "output out", "192 of 256", options={"outputs": "out"})
def an_output_that_is_not_written(broken):
    step = 64 if broken else 1

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x + 0 * arch.lane_idx()
        for i in range(t, 256, 64 * step):
            out[i] = a[i]

    return kernel
