# SPDX-License-Identifier: Apache-2.0
"""mbarriers, named and cluster barriers, threads that do not meet: right kernels silent, broken ones named."""

from contextlib import nullcontext

import numpy as np
import pytest
from numba import cuda

from numba_cute.isa.rows import cluster, mbarrier, memory, special, sync, tma, wgmma
from numba_cute.sim import (
    BarrierError,
    DeadlockError,
    DivergenceError,
    OutOfBoundsError,
    RaceError,
    SimError,
    name_range,
    simulate,
)

BAR = 1024


def launch(kernel, *args, threads=64, blocks=1, smem=4096, **options):
    simulate(kernel, **options)[blocks, threads, 0, smem](*args)


def barrier_of(count):
    """Run by all threads: a fresh barrier at BAR."""
    if cuda.threadIdx.x == 0:
        mbarrier.mbarrier_init(BAR, count)
    cuda.syncthreads()


barrier_of = cuda.jit(device=True)(barrier_of)


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_phases_alternate_and_order_two_warps(seed):
    def kernel(out):
        barrier_of(32)
        for i in range(5):
            if cuda.threadIdx.x < 32:
                out[i, cuda.threadIdx.x] = i + 1
                mbarrier.mbarrier_arrive(BAR)
            else:
                mbarrier.mbarrier_wait_parity(BAR, i & 1)
                out[i, cuda.threadIdx.x] = out[i, cuda.threadIdx.x - 32] * 10
            cuda.syncthreads()

    out = np.zeros((5, 64), np.int32)
    launch(kernel, out, seed=seed)
    np.testing.assert_array_equal(out[:, 32:], 10 * out[:, :32])
    np.testing.assert_array_equal(out[:, 0], np.arange(1, 6))


def test_parity_1_of_a_fresh_barrier_is_done():
    def kernel():
        barrier_of(1)
        mbarrier.mbarrier_wait_parity(BAR, 1)

    launch(kernel)


@pytest.mark.parametrize("poll", [mbarrier.mbarrier_test_wait_parity, mbarrier.mbarrier_try_wait_parity])
def test_polling_lets_the_others_go_on(poll):
    def kernel(out):
        barrier_of(1)
        t = cuda.threadIdx.x
        if t == 0:
            while not poll(BAR, 0):
                out[0] += 1
        if t == 40:
            mbarrier.mbarrier_arrive(BAR)

    out = np.zeros(1, np.int64)
    launch(kernel, out)
    assert out[0] <= 1


def test_polling_for_ever_is_a_deadlock():
    def kernel():
        barrier_of(1)
        if cuda.threadIdx.x == 0:
            while not mbarrier.mbarrier_test_wait_parity(BAR, 0):
                pass

    with pytest.raises(DeadlockError, match="again and again"):
        launch(kernel)


def test_deadlock_names_barrier_place_phase_and_arrivals():
    def kernel():
        name_range(BAR, 16, "work.ready")
        barrier_of(2)
        if cuda.threadIdx.x == 33:
            mbarrier.mbarrier_arrive(BAR)
        if cuda.threadIdx.x < 32:
            mbarrier.mbarrier_wait_parity(BAR, 0)

    with pytest.raises(DeadlockError) as caught:
        launch(kernel)
    text = str(caught.value)
    for words in (
        "warp 0 (32 threads) wait", "test_barriers.py:", "`mbarrier.mbarrier_wait_parity(BAR, 0)`",
        "work.ready[0] (0x400)",
        "phase 0 (parity 0)", "1 of 2 arrivals missing", "thread 33 (warp 1) at", "(exited)",
    ):  # fmt: skip
        assert words in text


def arrive_twice():
    barrier_of(1)
    if cuda.threadIdx.x == 0:
        mbarrier.mbarrier_arrive(BAR, 2)


def use_uninitialised():
    mbarrier.mbarrier_arrive(BAR + 8)


def use_invalidated():
    barrier_of(1)
    if cuda.threadIdx.x == 0:
        mbarrier.mbarrier_inval(BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)


def init_twice():
    mbarrier.mbarrier_init(BAR, 1)


def init_with_zero():
    mbarrier.mbarrier_init(BAR, 0)


def too_many_bytes():
    barrier_of(1)
    if cuda.threadIdx.x == 0:
        mbarrier.mbarrier_expect_tx(BAR, 1 << 20)


def ends_with_bytes_pending():
    barrier_of(1)
    if cuda.threadIdx.x == 0:
        mbarrier.mbarrier_arrive_expect_tx(BAR, 96)


def misplaced():
    mbarrier.mbarrier_init(BAR + 4, 1)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (arrive_twice, "more arrivals than the barrier was initialised for"),
        (use_uninitialised, "is not initialised"),
        (use_invalidated, "is not initialised"),
        (init_twice, "initialised again"),
        (init_with_zero, "arrival count 0 is not in 1 to 1048575"),
        (too_many_bytes, "exceed the range"),
        (ends_with_bytes_pending, "the kernel ended in phase 0 with 96 bytes missing"),
        (misplaced, "no multiple of 8"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_misuse_of_an_mbarrier(kernel, words):
    with pytest.raises(BarrierError, match=words):
        launch(kernel)


def test_barrier_outside_of_shared_memory():
    def kernel():
        mbarrier.mbarrier_init(BAR + 4096, 1)

    with pytest.raises(OutOfBoundsError, match="4096 bytes of dynamic shared memory"):
        launch(kernel)


@pytest.mark.parametrize("seed", [None, 3])
def test_named_barrier_of_two_warps(seed):
    def kernel(out):
        t = cuda.threadIdx.x
        if t < 32:
            out[t] = t
            sync.bar_arrive(3, 64)
        elif t < 64:
            sync.bar_sync(3, 64)
            out[t] = out[t - 32] + 1

    out = np.zeros(96, np.int32)
    launch(kernel, out, threads=96, seed=seed)
    np.testing.assert_array_equal(out[32:64], np.arange(32) + 1)


@pytest.mark.parametrize("seed", [None, 3])
def test_a_warp_arrives_at_a_named_barrier_and_waits_for_the_same_use(seed):
    def kernel(out):
        t = cuda.threadIdx.x
        if t < 64:
            out[t] = t
            sync.bar_arrive(3, 96)
        if t < 32:
            sync.bar_sync(3, 96)  # with the arrivals of both warps it is the third
            out[t] = out[t + 32] + 1

    out = np.zeros(64, np.int32)
    launch(kernel, out, threads=96, seed=seed)
    np.testing.assert_array_equal(out[:32], np.arange(33, 65))


def test_a_warp_that_arrives_twice_for_two_uses_is_reported():
    def kernel():
        if cuda.threadIdx.x < 64:
            sync.bar_arrive(3, 96)
            sync.bar_arrive(3, 96)

    with pytest.raises(BarrierError, match="has arrived there already"):
        launch(kernel, threads=96)


def test_named_barrier_that_lacks_a_warp():
    def kernel():
        if cuda.threadIdx.x < 32:
            sync.bar_sync(2, 96)

    with pytest.raises(
        DeadlockError, match=r"named barrier 2: 32 of 96 threads have arrived; missing: warps 1-2 .*exited"
    ):
        launch(kernel, threads=96)


def test_named_barrier_with_unequal_counts():
    def kernel():
        sync.bar_sync(2, 96 - 32 * (cuda.threadIdx.x // 32 & 1))

    with pytest.raises(BarrierError, match="arrives for 64 threads"):
        launch(kernel, threads=96)


@pytest.mark.parametrize("seed", [None, 4])
def test_cluster_barrier_orders_peers(seed):
    def kernel(out):
        rank = special.sreg_cluster(register="cluster_ctarank")
        sync.cluster_arrive()
        sync.cluster_wait()  # both have started
        if cuda.threadIdx.x == 0:
            memory.st(cluster.mapa(BAR, 1 - rank), [100 + rank], space="dsmem", width=32)
        sync.cluster_arrive()
        sync.cluster_wait()
        if cuda.threadIdx.x == 0:
            out[cuda.blockIdx.x] = memory.ld(BAR, space="dsmem", width=32)

    out = np.zeros(4, np.int32)
    launch(kernel, out, blocks=4, cluster=2, seed=seed)
    np.testing.assert_array_equal(out, [101, 100, 101, 100])


def test_cluster_barrier_that_a_cta_misses():
    def kernel():
        if cuda.blockIdx.x == 0:
            sync.cluster_arrive()
            sync.cluster_wait()
        else:
            mbarrier.mbarrier_init(BAR, 1) if cuda.threadIdx.x == 0 else None
            cuda.syncthreads()
            mbarrier.mbarrier_wait_parity(BAR, 0)

    with pytest.raises(DeadlockError, match="barrier.cluster.wait: 64 threads arrived; missing: warps 0-1"):
        launch(kernel, blocks=2, cluster=(2, 1, 1))


def test_cluster_wait_without_arrive():
    with pytest.raises(BarrierError, match="waits without having arrived"):
        launch(lambda: sync.cluster_wait())


def test_a_cta_outside_the_cluster():
    with pytest.raises(OutOfBoundsError, match="CTA 2 is outside the cluster, which has 2 CTAs"):
        launch(lambda: cluster.mapa(BAR, 2), blocks=2, cluster=2)


@pytest.mark.parametrize("met", [True, False])
def test_any_lane_may_be_elected(met):
    """Lane 0 writes, and the elected lane arrives: that is one thread by luck, which a seed undoes."""

    def kernel(out):
        barrier_of(1)
        place = cuda.shared.array(1, np.int32)
        if cuda.threadIdx.x < 32:
            if cuda.threadIdx.x == 0:
                place[0] = 7
            if met:
                cuda.syncwarp()
            if sync.elect_sync():
                mbarrier.mbarrier_arrive(BAR)
        else:
            mbarrier.mbarrier_wait_parity(BAR, 0)
            out[cuda.threadIdx.x - 32] = place[0]

    out = np.zeros(32, np.int32)
    for seed in (None, 0):
        launch(kernel, out, seed=seed)
        assert (out == 7).all()
    with nullcontext() if met else pytest.raises(RaceError, match="place"):
        launch(kernel, out, seed=5)


def test_exactly_one_lane_is_elected():
    def kernel(out):
        if sync.elect_sync():
            cuda.atomic.add(out, cuda.threadIdx.x // 32, 1)

    out = np.zeros(2, np.int32)
    launch(kernel, out)
    np.testing.assert_array_equal(out, [1, 1])


def test_part_of_a_warp_in_a_collective():
    def kernel():
        if cuda.threadIdx.x != 5:
            sync.elect_sync()

    with pytest.raises(
        DeadlockError, match=r"lanes 0-4, 6-31 of warp 0 .*wait at(.|\n)*thread 5 \(warp 0\) \(exited\)"
    ):
        launch(kernel)


def test_lanes_in_different_collectives():
    def kernel():
        if cuda.threadIdx.x < 8:
            sync.elect_sync()
        else:
            sync.bar_warp_sync()

    with pytest.raises(DivergenceError, match="divergent warp"):
        launch(kernel)


def test_warpgroup_instruction_with_too_few_threads():
    with pytest.raises(SimError, match="warpgroup of 128 threads"):
        launch(lambda: wgmma.wgmma_fence())


def test_operands_that_must_be_uniform():
    def kernel():
        sync.bar_sync(cuda.threadIdx.x % 2 + 1, 64)

    with pytest.raises(DivergenceError, match="bar_sync: its threads must agree"):
        launch(kernel)


def test_instruction_that_the_target_lacks():
    with pytest.raises(Exception, match="wgmma_fence needs sm_90a, and the target is sm_80"):
        launch(lambda: wgmma.wgmma_fence(), threads=128, arch="sm_80")


def test_a_copy_that_is_no_tensor_map():
    def kernel():
        barrier_of(1)
        tma.cp_async_bulk_tensor_g2s(BAR + 1024, 4711, (0, 0), BAR, rank=2)

    with pytest.raises(SimError, match="is not a tensor map"):
        launch(kernel)
