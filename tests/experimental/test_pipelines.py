# SPDX-License-Identifier: Apache-2.0
"""Pipelines that keep their states, and the same as a value and two states: between each pair of operations data
arrives in order, through a ring that is reused; what has no pipeline is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, experimental as ext, pipeline
from numba_cute.pipeline import PipelineUserType
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from .kernels import SMEM, aligned, tensor

KINDS = ext.OperationTypeEnum
ROUNDS = 5


@ext.kernel
def through_states(src, dst, facts):
    """Threads to threads by the functions: warp 0 fills, warp 1 empties, in a ring of two stages."""
    tidx, _, _ = arch.thread_idx()
    ring = ext.allocate(cute.Int32, SMEM, (32, 2))
    pipe, producer, consumer = ext.create_pipeline(2, KINDS.SIMT, KINDS.SIMT, 32, 32)
    if tidx < 32:
        for i in range(ROUNDS):
            ext.producer_acquire(pipe, producer, ext.producer_try_acquire(pipe, producer))
            _, at = ext.get_pipeline_produce_stage(pipe, producer)
            ring[tidx, at] = src[32 * i + tidx]
            if tidx == 0:
                facts[i] = at + 2 * ext.get_pipeline_produce_phase(pipe, producer)
            ext.producer_commit(pipe, producer)
            producer = ext.pipeline_advance_iterator(pipe, producer)
        ext.pipeline_tail(pipe, producer)
        if tidx == 0:
            facts[2 * ROUNDS] = 1
    else:
        for i in range(ROUNDS):
            ext.consumer_wait(pipe, consumer, ext.consumer_try_wait(pipe, consumer))
            _, at = ext.get_pipeline_consume_stage(pipe, consumer)
            dst[32 * i + tidx - 32] = ring[63 - tidx, at]
            if tidx == 32:
                facts[ROUNDS + i] = at + 2 * ext.get_pipeline_consume_phase(pipe, consumer)
            ext.consumer_release(pipe, consumer)
            consumer = ext.pipeline_advance_iterator(pipe, consumer)


def reversed_by_rounds(src):
    return src.reshape(ROUNDS, 32)[:, ::-1].reshape(-1)


def test_functions_take_data_through_a_ring_in_order(run):
    src, dst, facts = aligned((32 * ROUNDS,), np.int32), np.zeros(32 * ROUNDS, np.int32), np.zeros(11, np.int32)

    def right():
        np.testing.assert_array_equal(dst, reversed_by_rounds(src))
        np.testing.assert_array_equal(facts, [2, 3, 0, 1, 2, 0, 1, 2, 3, 0, 1])  # stage + 2 * phase of each side

    run(through_states, 1, 64, [src, dst, facts], outputs=[dst, facts], check=right)


@ext.kernel
def through_methods(src, dst):
    """The same by methods, with tokens of stages, and a warp's release by one lane."""
    tidx, _, _ = arch.thread_idx()
    ring = ext.allocate(cute.Int32, SMEM, (32, 2))
    pipe = ext.GenericPipeline.create(
        num_stages=2, producer=KINDS.SIMT, consumer=KINDS.SIMT, producer_arv_count=32, consumer_arv_count=1
    )
    if tidx < 32:
        for i in range(ROUNDS):
            stage, at = pipe.producer_acquire_and_get_stage(pipe.producer_try_acquire())
            ring[tidx, at] = src[32 * i + tidx]
            pipe.producer_commit(stage)
            pipe.producer_advance()
        pipe.consumer_tail()
    else:
        for i in range(ROUNDS):
            _, at = pipe.consumer_wait_and_get_stage(pipe.consumer_try_wait())
            dst[32 * i + tidx - 32] = ring[63 - tidx, at]
            arch.sync_warp()
            ext.consumer_release_elect_one_sync(pipe.raw_pipeline, pipe.consumer_state)
            pipe.consumer_advance()


@ext.kernel
def by_cp_async(src, dst):
    """cp.async fills, threads empty: a stage is full when the copies have landed."""
    tidx, _, _ = arch.thread_idx()
    ring = ext.allocate(cute.Int32, SMEM, (32, 2), alignment=128)
    pipe = ext.GenericPipeline.create(
        num_stages=2, producer=KINDS.SM80_CP_ASYNC, consumer=KINDS.SIMT, producer_arv_count=32, consumer_arv_count=32
    )
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Int32, 32)
    given = cute.make_tensor(src, cute.make_layout((32, ROUNDS)))
    if tidx < 32:
        for i in range(ROUNDS):
            _, at = pipe.producer_acquire_and_get_stage()
            one = cute.local_tile(given[None, i], (1,), (tidx,))
            cute.copy(atom, one, cute.local_tile(ring[None, at], (1,), (tidx,)))
            pipe.producer_commit_and_advance()
        pipe.producer_tail()
    else:
        for i in range(ROUNDS):
            _, at = pipe.consumer_wait_and_get_stage()
            dst[32 * i + tidx - 32] = ring[63 - tidx, at]
            pipe.consumer_release_and_advance()


@ext.kernel
def tries(out):
    """What a stage's tries tell before and after it is filled, by one warp on both sides."""
    tidx, _, _ = arch.thread_idx()
    pipe = ext.GenericPipeline.create(
        num_stages=1, producer=KINDS.SIMT, consumer=KINDS.SIMT, producer_arv_count=32, consumer_arv_count=32
    )
    empty, full = pipe.producer_try_acquire(), pipe.consumer_try_wait()
    out[tidx, 0] = 1 if empty else 0
    out[tidx, 1] = 1 if full else 0
    arch.sync_warp()
    pipe.producer_acquire(empty)
    pipe.producer_commit()
    pipe.consumer_wait()
    full = pipe.consumer_try_wait()
    out[tidx, 2] = 1 if full else 0
    pipe.consumer_release()


def test_a_try_tells_whether_a_stage_is_empty_or_full(run):
    out = np.zeros((32, 3), np.int32)
    run(tries, 1, 32, [out], outputs=[out], check=lambda: np.testing.assert_array_equal(out, [[1, 0, 1]] * 32))


@pytest.mark.parametrize("kernel", [through_methods, by_cp_async], ids=lambda k: k.py_func.__name__)
def test_methods_take_data_through_a_ring_in_order(run, kernel):
    src, dst = aligned((32 * ROUNDS,), np.int32), np.zeros(32 * ROUNDS, np.int32)
    want = lambda: np.testing.assert_array_equal(dst, reversed_by_rounds(src))  # noqa: E731
    run(kernel, 1, 64, [src, dst], outputs=[dst], check=want)


@ext.kernel
def tma_to_threads(src, dst):
    """A warp loads rows, another doubles and stores them: two loads a stage, of different sizes."""
    tidx, _, _ = arch.thread_idx()
    wide = ext.allocate(cute.Int32, SMEM, (32, 2), alignment=128)
    narrow = ext.allocate(cute.Int32, SMEM, cute.make_layout((4, 2), stride=(1, 32)), alignment=128)
    pipe = ext.TMAToAsyncPipeline.create(num_stages=2, consumer_arv_count=32, consumer=KINDS.SIMT)
    if tidx < 32:
        for i in range(ROUNDS):
            stage, at = pipe.producer_acquire_and_get_stage()
            full = ext.get_mbarrier(stage)
            ext.tma_load(cute.local_tile(src, (32, 1), (0, i)), wide[None, at], full)
            ext.tma_load(cute.local_tile(src, (4, 1), (0, i)), narrow[None, at], full)
            pipe.producer_commit_and_advance()
        pipe.producer_tail()
    else:
        for i in range(ROUNDS):
            _, at = pipe.consumer_wait_and_get_stage()
            dst[tidx - 32, i] = wide[tidx - 32, at] + narrow[tidx % 4, at]
            arch.sync_warp()
            pipe.consumer_release_and_advance()


def test_loads_announce_what_they_bring(run):
    src, dst = aligned((32, ROUNDS), np.int32, "F"), aligned((32, ROUNDS), np.int32, "F")
    want = lambda: np.testing.assert_array_equal(dst, src + np.tile(src[:4], (8, 1)))  # noqa: E731
    run(tma_to_threads, 1, 64, [tensor(src), tensor(dst)], inouts=[dst], check=want)


@ext.kernel
def announced_by_hand(src, dst):
    """A barrier of one's own is told of the bytes by mbarrier_expect_tx, and loads add nothing."""
    tidx, _, _ = arch.thread_idx()
    s = ext.allocate(cute.Int32, SMEM, 32, alignment=128)
    bar = arch.alloc_smem(cute.Int64, 1)
    if tidx == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_warp()
    if ext.elect_sync():
        ext.mbarrier_expect_tx(bar, 128)
        arch.mbarrier_arrive(bar)
    arch.sync_warp()
    ext.tma_load(cute.local_tile(src, (32, 1), (0, 1)), s, bar)
    arch.mbarrier_wait(bar, 0)
    dst[tidx] = s[tidx]


def test_a_barrier_of_ones_own_knows_its_bytes(run):
    src, dst = aligned((32, 2), np.int32, "F"), np.zeros(32, np.int32)
    run(
        announced_by_hand, 1, 32, [tensor(src), dst], outputs=[dst],
        check=lambda: np.testing.assert_array_equal(dst, src[:, 1]),
    )  # fmt: skip


@ext.kernel
def elected(out):
    if ext.elect_sync():
        cuda.atomic.add(out, 0, 1)


def test_one_lane_of_a_warp_is_elected(run):
    out = np.zeros(1, np.int32)
    run(elected, 1, 64, [out], inouts=[out], check=lambda: np.testing.assert_array_equal(out, [2]))


@ext.kernel
def stored_by_ring(dst):
    """More pieces than buffers: each buffer is read before it is written anew."""
    tidx, _, _ = arch.thread_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    s = ext.allocate(cute.Int32, SMEM, cute.make_layout((64, 3)), alignment=128)
    stores = ext.TMAStorePipeline(stages=3, arv_count=64, barrier_id=1, tma_warp_id=1)
    for i in range(8):
        stores.acquire_sync()
        s[tidx, stores.get_index()] = 100 * i + tidx
        stores.commit_sync()
        if warp == 1:
            ext.tma_store(s[None, stores.get_index()], cute.local_tile(dst, (64, 1), (0, i)))
        stores.release_advance()
    stores.tail()


def test_a_store_pipeline_reuses_its_buffers(run):
    dst = aligned((64, 8), np.int32, "F")
    want = 100 * np.arange(8)[None] + np.arange(64)[:, None]
    check = lambda: np.testing.assert_array_equal(dst, want)  # noqa: E731
    run(stored_by_ring, 1, 64, [tensor(dst)], inouts=[dst], check=check)


@ext.kernel
def at_a_count(out):
    pipe, _, _ = ext.create_pipeline(3, KINDS.SIMT, KINDS.SIMT, 32, 32)
    state = ext.create_pipeline_state_at(pipe, PipelineUserType.Producer, out[0])
    walked = pipeline.make_pipeline_state(PipelineUserType.Producer, 3)
    for _ in range(out[0]):
        walked.advance()
    full, empty = ext.get_arrival_count(pipe)
    if arch.thread_idx()[0] == 0:
        out[1], out[2], out[3] = state.index - walked.index, state.phase - walked.phase, state.count
        out[4], out[5] = full, empty


@pytest.mark.parametrize("count", [0, 2, 3, 8])
def test_a_state_is_made_at_any_count(run, count):
    out = np.array([count, 9, 9, 9, 9, 9], np.int32)
    check = lambda: np.testing.assert_array_equal(out, [count, 0, 0, count, 32, 32])  # noqa: E731
    run(at_a_count, 1, 32, [out], inouts=[out], check=check)


# ------------------------------------------------------------------------------------------------------------ refusals


def refused(make, word, arch="sm_100a"):
    @cuda.jit
    def kernel():
        make()

    with pytest.raises(CuteError, match=word):
        cute.simulate(kernel, arch=arch)[1, 64]()


def test_operations_without_a_pipeline_are_refused():
    umma, tma = KINDS.SM100_MMA_1SM_SS, KINDS.SM90_TMA_LOAD
    refused(lambda: ext.create_pipeline(1, umma, umma), "there is no pipeline")
    refused(lambda: ext.create_pipeline(1, KINDS.SM80_CP_ASYNC, umma), "produce as SIMT")
    refused(lambda: ext.create_pipeline(1, KINDS.SM90_MMA_SS, KINDS.SIMT), "producer .* must be one of")
    refused(lambda: ext.create_pipeline(1, KINDS.SIMT, tma), "consumer .* must be one of")
    refused(
        lambda: ext.create_pipeline_with_mask(1, tma, umma, cluster_layout_vmnk=None), "must be one of SM90_TMA_LOAD_MU"
    )
    refused(lambda: ext.TMAToUMMAPipeline.create(num_stages=1, mma_operation_type=tma), "mma_operation_type")
    refused(lambda: ext.TMAToAsyncPipeline.create(num_stages=1, consumer_arv_count=32, consumer=umma), "consumer")
    refused(
        lambda: ext.AsyncToUMMAPipeline.create(
            num_stages=1, producer_arv_count=32, mma_operation_type=umma, producer=tma
        ),
        "producer",
    )
    refused(lambda: ext.TMAStorePipeline(stages=0, arv_count=64, barrier_id=1, tma_warp_id=0), "stages 0")
    refused(lambda: ext.get_mbarrier(3), "is not a stage of a pipeline")


def test_the_pipelines_are_those_of_the_library():
    """What each pair of operations has: nothing is implemented twice."""
    umma = KINDS.SM100_MMA_1SM_SS
    pairs = {
        (KINDS.SM90_TMA_LOAD, KINDS.SIMT): "PipelineTmaAsync",
        (KINDS.SM90_TMA_LOAD, KINDS.SM90_MMA_RS): "PipelineTmaAsync",
        (KINDS.SM90_TMA_LOAD, umma): "PipelineTmaUmma",
        (umma, KINDS.SM100_COPY_T2R): "PipelineUmmaAsync",
        (KINDS.SIMT, umma): "PipelineAsyncUmma",
        (KINDS.SM80_CP_ASYNC, KINDS.SIMT): "PipelineCpAsync",
        (KINDS.SIMT, KINDS.SIMT): "PipelineAsync",
    }

    def made(pair):
        found = []

        def kernel():
            found.append(type(ext.create_pipeline(1, *pair, 32, 32)[0]).__name__)

        cute.simulate(kernel, arch="sm_100a")[1, 32]()
        return found[0]

    assert {pair: made(pair) for pair in pairs} == pairs


def test_a_producer_must_wait_for_its_consumers():
    """Without the wait the simulator finds the race: the pipelines do what they say."""

    @ext.kernel
    def hasty(src):
        pipe = ext.TMAToAsyncPipeline.create(num_stages=1, consumer_arv_count=32)
        s = ext.allocate(cute.Int32, SMEM, 32, alignment=128)
        stage, _ = pipe.producer_acquire_and_get_stage()
        ext.tma_load(cute.local_tile(src, (32, 1), (0, 0)), s, ext.get_mbarrier(stage))
        pipe.producer_commit()
        src[arch.thread_idx()[0], 1] = s[arch.thread_idx()[0]]

    t = from_dlpack(aligned((32, 2), np.int32, "F"), assumed_align=16)
    with pytest.raises(cute.sim.RaceError):
        cute.simulate(hasty)[1, 32](t)


def ending_by(tail):
    """A producer that reads, once all is released, what the consumers left: only the tail orders that."""

    @ext.kernel
    def ends(out):
        tidx, _, _ = arch.thread_idx()
        ring, left = ext.allocate(cute.Int32, SMEM, 2), ext.allocate(cute.Int32, SMEM, 32)
        pipe = ext.GenericPipeline.create(
            num_stages=2, producer=KINDS.SIMT, consumer=KINDS.SIMT, producer_arv_count=32, consumer_arv_count=32
        )
        if tidx < 32:
            for i in range(3):
                _, at = pipe.producer_acquire_and_get_stage()
                if tidx == 0:
                    ring[at] = 7 * i
                pipe.producer_commit_and_advance()
            tail(pipe)
            out[tidx] = left[31 - tidx]
        else:
            for _ in range(3):
                _, at = pipe.consumer_wait_and_get_stage()
                left[tidx - 32] = ring[at] + tidx
                pipe.consumer_release_and_advance()

    return ends


@cuda.jit
def by_producer_tail(pipe):
    pipe.producer_tail()


@cuda.jit
def by_consumer_tail(pipe):
    pipe.consumer_tail()


@cuda.jit
def by_pipeline_tail(pipe):
    ext.pipeline_tail(pipe.raw_pipeline, pipe.producer_state)


@cuda.jit
def by_function(pipe):
    ext.consumer_tail(pipe.raw_pipeline, pipe.producer_state)


@cuda.jit
def by_nothing(pipe):
    pass


TAILS = (by_producer_tail, by_consumer_tail, by_pipeline_tail, by_function)


@pytest.mark.parametrize("tail", TAILS, ids=lambda t: t.py_func.__name__)
def test_a_tail_waits_for_all_releases(run, tail):
    out = np.zeros(32, np.int32)
    want = 14 + 32 + np.arange(32)[::-1]
    run(ending_by(tail), 1, 64, [out], outputs=[out], check=lambda: np.testing.assert_array_equal(out, want))


def test_without_a_tail_the_end_is_a_race():
    with pytest.raises(cute.sim.RaceError):
        cute.simulate(ending_by(by_nothing))[1, 64](np.zeros(32, np.int32))


CLUSTER = cute.make_layout((1, 2, 1, 1))


@cute.cluster_shape(2)
@ext.kernel
def masked(src, dst):
    """Both blocks of a cluster load half of each row for both, through a ring of two stages."""
    tidx, _, _ = arch.thread_idx()
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    s = ext.allocate(cute.Int32, SMEM, (64, 2), alignment=128)
    pipe, producer, consumer = ext.create_pipeline_with_mask(
        2, KINDS.SM90_TMA_LOAD_MULTICAST, KINDS.SIMT, 1, 32, cluster_layout_vmnk=CLUSTER, mcast_mode_mn=(0, 1)
    )
    if tidx < 32:
        for i in range(ROUNDS):
            ext.producer_acquire(pipe, producer)
            stage, at = ext.get_pipeline_produce_stage(pipe, producer)
            tile = cute.local_tile(src, (64, 1), (0, i))
            ext.tma_load_multicast(tile, s[None, at], ext.get_mbarrier(stage), vmnk_layout=CLUSTER, multicast_mode=1)
            ext.producer_commit(pipe, producer)
            producer = ext.pipeline_advance_iterator(pipe, producer)
        ext.pipeline_tail(pipe, producer)
    else:
        for i in range(ROUNDS):
            ext.consumer_wait(pipe, consumer)
            _, at = ext.get_pipeline_consume_stage(pipe, consumer)
            dst[tidx - 32 + 32 * rank, i] = s[tidx - 32, at] + s[tidx, at]
            arch.sync_warp()
            ext.consumer_release(pipe, consumer)
            consumer = ext.pipeline_advance_iterator(pipe, consumer)


def test_a_masked_pipeline_waits_for_all_blocks_that_its_loads_reach(run):
    src, dst = aligned((64, ROUNDS), np.int32, "F"), aligned((64, ROUNDS), np.int32, "F")
    want = np.tile(src[:32] + src[32:], (2, 1))
    run(
        masked, 2, 64, [tensor(src), tensor(dst)], inouts=[dst],
        check=lambda: np.testing.assert_array_equal(dst, want),
    )  # fmt: skip


def test_what_is_elsewhere_too_is_the_same():
    assert ext.PipelineState is pipeline.PipelineState
    assert ext.compile is cute.compile and ext.jit is cute.jit


def test_barriers_lie_in_the_dynamic_memory_of_a_kernel_that_allocates_it():
    @ext.kernel
    def kernel(out):
        t = ext.allocate(cute.Int32, SMEM, cute.make_layout(4))
        t[0] = 5
        pipe, _, _ = ext.create_pipeline(2, KINDS.SIMT, KINDS.SIMT, 1, 1)
        out[0] = t[0] + pipe.num_stages

    x, full = np.zeros(1, np.int32), 232448
    cute.simulate(kernel, arch="sm_90a")[1, 1, 0, full](from_dlpack(x))
    assert x[0] == 7
    assert cute.compile(kernel, from_dlpack(x), arch="sm_90a").resources.shared == 0
