# SPDX-License-Identifier: Apache-2.0
"""Right kernels at which other tools cry wolf: not a word here, in any order, with warnings as errors."""

import numba
import numpy as np
import pytest
from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa.rows import bulk, cluster, copy_async, fence, mbarrier, sync, tma
from numba_cute.sim import DeadlockError, SimError, simulate

BAR, BUF = 1024, 2048
ORDERS = [None, *range(8)]


def get(at):
    return seam.current().load(dtypes.Int32, "smem", at, 1, 4)[0]


def barriers(*counts):
    if cuda.threadIdx.x == 0:
        for i, n in enumerate(counts):
            mbarrier.mbarrier_init(BAR + 8 * i, n)
        fence.fence_mbarrier_init()
    cuda.syncthreads()


barriers = cuda.jit(device=True)(barriers)


def several_copies_on_one_barrier(a, out):
    barriers(1)
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
        for i in range(4):
            bulk.cp_async_bulk_g2s(BUF + 64 * i, a.ctypes.data + 64 * i, 64, BAR)
    mbarrier.mbarrier_wait_parity(BAR, 0)
    out[t] = get(BUF + 4 * t)


def producer_waits_for_parity_1_of_a_fresh_barrier(a, out):
    barriers(1, 64)
    t = cuda.threadIdx.x
    for i in range(3):
        if t == 0:
            mbarrier.mbarrier_wait_parity(BAR + 8, i & 1 ^ 1)
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
        mbarrier.mbarrier_wait_parity(BAR, i & 1)
        out[t] = get(BUF + 4 * t)
        mbarrier.mbarrier_arrive(BAR + 8)


def generic_read_then_async_read(a, out):
    barriers(1)
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
        bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
    mbarrier.mbarrier_wait_parity(BAR, 0)
    assert get(BUF + 4 * t) == t
    if t == 0:
        bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
        tma.cp_async_bulk_commit_group()
        tma.cp_async_bulk_wait_group(n=0)


def bulk_copies_from_several_warps_in_a_loop(a, out):
    t = cuda.threadIdx.x
    warp, lane = t // 32, t % 32
    bar, buf = BAR + 8 * warp, BUF + 128 * warp
    if lane == 0:
        mbarrier.mbarrier_init(bar, 1)
        fence.fence_mbarrier_init()
    sync.bar_warp_sync()
    for i in range(4):
        if lane == 0:
            mbarrier.mbarrier_arrive_expect_tx(bar, 128)
            bulk.cp_async_bulk_g2s(buf, a.ctypes.data + 128 * warp, 128, bar)
        mbarrier.mbarrier_wait_parity(bar, i & 1)
        out[t] = get(buf + 4 * lane)
        sync.bar_warp_sync()


def the_reader_fences_after_the_barrier(a, out):
    t = cuda.threadIdx.x
    seam.current().store(dtypes.Int32, "smem", BUF + 4 * t, (a[t],), 4)
    cuda.syncthreads()
    if t == 0:
        fence.fence_proxy_async()
        bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
        tma.cp_async_bulk_commit_group()
        tma.cp_async_bulk_wait_group(n=0)


def neighbours_write_bytes_of_one_word(a, out):
    tile = cuda.shared.array(64, numba.int8)
    t = cuda.threadIdx.x
    tile[t] = t
    cuda.syncthreads()
    out[t] = tile[t ^ 1] ^ 1


def double_buffer_with_one_barrier_a_round(a, out):
    tile = cuda.shared.array((2, 64), numba.int32)
    t = cuda.threadIdx.x
    for i in range(6):
        tile[i % 2, t] = a[t]
        cuda.syncthreads()
        out[t] = tile[i % 2, 63 - t] * 0 + tile[i % 2, t]


def copies_issued_ahead_of_the_announcement(a, out):
    barriers(1)
    t = cuda.threadIdx.x
    if t == 0:
        bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 128, BAR)
        bulk.cp_async_bulk_g2s(BUF + 128, a.ctypes.data + 128, 128, BAR)
        mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
    mbarrier.mbarrier_wait_parity(BAR, 0)
    out[t] = get(BUF + 4 * t)


def two_warps_that_hand_over_by_named_barriers(a, out):
    tile = cuda.shared.array(32, numba.int32)
    t = cuda.threadIdx.x
    for i in range(3):
        if t < 32:
            if i:
                sync.bar_sync(2, 64)
            tile[t] = a[t + 32 * (i % 2)]
            sync.bar_arrive(1, 64)
        else:
            sync.bar_sync(1, 64)
            out[t - 32 + 32 * (i % 2)] = tile[t - 32]
            if i < 2:
                sync.bar_arrive(2, 64)


def a_barrier_that_ends_and_another_in_its_place(a, out):
    t = cuda.threadIdx.x
    for i in range(3):
        barriers(64)
        out[t] = a[t] * (i == 2)
        mbarrier.mbarrier_arrive(BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        cuda.syncthreads()
        if t == 0:
            mbarrier.mbarrier_inval(BAR)
        cuda.syncthreads()


def a_wait_for_a_phase_that_others_saw_and_told_of(a, out):
    barriers(32)
    t = cuda.threadIdx.x
    for i in range(4):
        if t < 32:
            mbarrier.mbarrier_arrive(BAR)
            mbarrier.mbarrier_wait_parity(BAR, i & 1)
        cuda.syncthreads()  # warp 1 waits for none of the first three phases itself
    if t >= 32:
        mbarrier.mbarrier_wait_parity(BAR, 1)
    out[t] = a[t]


def early_return_before_syncthreads(a, out):
    tile = cuda.shared.array(64, numba.int32)
    t = cuda.threadIdx.x
    out[t] = a[t]
    if t >= 40:
        return
    tile[t] = a[t]
    cuda.syncthreads()
    out[t] = tile[39 - t] + a[t] - a[39 - t]


def a_partial_sum_whose_other_lanes_are_dropped(a, out):
    t = cuda.threadIdx.x
    out[t] = a[t]
    if t < 16:
        x = a[t]
        for step in (8, 4, 2, 1):
            x += cuda.shfl_down_sync(0xFFFF, x, step)
        if t == 0:
            out[0] = x - 120


def some_lanes_meet_before_all_do(a, out):
    t = cuda.threadIdx.x
    out[t] = a[t]
    if t % 32 >= 16:
        cuda.syncwarp(0xFFFF0000)
    cuda.syncwarp()
    if t % 32 < 16:
        cuda.syncwarp(0x0000FFFF)


def one_group_after_the_other_on_one_named_barrier(a, out):
    t = cuda.threadIdx.x
    out[t] = a[t]
    for warp in range(2):
        if t // 32 == warp:
            sync.bar_sync(1, 32)
        cuda.syncthreads()


def cp_async_told_by_a_barrier_while_the_thread_goes_on(a, out):
    barriers(16)
    t = cuda.threadIdx.x
    if t < 16:
        copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 16 * t, nbytes=16, cache="cg", prefetch=0)
        copy_async.cp_async_mbarrier_arrive_noinc(BAR)
        copy_async.cp_async(BUF + 512 + 16 * t, a.ctypes.data + 16 * t, nbytes=16, cache="cg", prefetch=0)
        copy_async.cp_async_commit_group()
        copy_async.cp_async_wait_group(n=0)
    mbarrier.mbarrier_wait_parity(BAR, 0)
    out[t] = get(BUF + 4 * t)


def a_lock_and_a_counter(a, out):
    lock = cuda.shared.array(2, numba.int32)
    t = cuda.threadIdx.x
    if t < 2:
        lock[t] = 0
    cuda.syncthreads()
    if t % 32 == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence_block()
        lock[1] += 1
        cuda.threadfence_block()
        cuda.atomic.exch(lock, 0, 0)
    cuda.syncthreads()
    out[t] = a[t] if lock[1] == 2 else -1


KERNELS = [
    copies_issued_ahead_of_the_announcement,
    two_warps_that_hand_over_by_named_barriers,
    a_barrier_that_ends_and_another_in_its_place,
    a_wait_for_a_phase_that_others_saw_and_told_of,
    early_return_before_syncthreads,
    a_partial_sum_whose_other_lanes_are_dropped,
    some_lanes_meet_before_all_do,
    one_group_after_the_other_on_one_named_barrier,
    cp_async_told_by_a_barrier_while_the_thread_goes_on,
    a_lock_and_a_counter,
    several_copies_on_one_barrier,
    producer_waits_for_parity_1_of_a_fresh_barrier,
    generic_read_then_async_read,
    bulk_copies_from_several_warps_in_a_loop,
    the_reader_fences_after_the_barrier,
    neighbours_write_bytes_of_one_word,
    double_buffer_with_one_barrier_a_round,
]


@pytest.mark.parametrize("seed", ORDERS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_not_a_word(kernel, seed):
    a, out = np.arange(64, dtype=np.int32), np.full(64, -1, np.int32)
    simulate(kernel, seed=seed)[1, 64, 0, 8192](a, out)
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("seed", ORDERS)
def test_peers_exchange_by_st_async_and_cluster_barriers(seed):
    def kernel(out):
        barriers(1)
        sync.cluster_arrive(sem="relaxed")
        sync.cluster_wait()
        rank = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 4)
            cluster.st_async(cluster.mapa(BUF, 1 - rank), [10 + rank], cluster.mapa(BAR, 1 - rank))
            mbarrier.mbarrier_wait_parity(BAR, 0)
            out[rank] = get(BUF)

    out = np.zeros(2, np.int32)
    simulate(kernel, cluster=2, seed=seed)[2, 32, 0, 8192](out)
    assert out.tolist() == [11, 10]


@pytest.mark.parametrize("seed", ORDERS)
def test_blocks_hand_over_through_atomics_and_threadfence(seed):
    def kernel(parts, done, out):
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        last = cuda.shared.array(1, numba.int32)
        parts[b, t] = b + t
        cuda.threadfence()
        cuda.syncthreads()
        if t == 0:
            last[0] = cuda.atomic.add(done, 0, 1) == 3
            cuda.threadfence()
        cuda.syncthreads()
        if last[0]:
            out[t] = parts[0, t] + parts[1, t] + parts[2, t] + parts[3, t]

    out = np.zeros(32, np.int32)
    simulate(kernel, seed=seed)[4, 32](np.zeros((4, 32), np.int32), np.zeros(1, np.int32), out)
    np.testing.assert_array_equal(out, 6 + 4 * np.arange(32))


@pytest.mark.parametrize("seed", ORDERS)
def test_a_block_that_waits_for_a_later_one(seed):
    def kernel(flags, out):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            while b < 3 and cuda.atomic.add(flags, b + 1, 0) == 0:
                pass
            cuda.threadfence()
            out[b] = 1 if b == 3 else out[b + 1] + 1
            cuda.threadfence()
            cuda.atomic.add(flags, b, 1)

    out = np.zeros(4, np.int32)
    simulate(kernel, seed=seed)[4, 32](np.zeros(5, np.int32), out)
    assert out.tolist() == [4, 3, 2, 1]


def test_a_loop_over_a_plain_read_is_reported_and_not_followed_for_ever():
    def kernel(flag):
        while flag[0] == 0:
            pass

    with pytest.raises(DeadlockError, match="a loop that reads .* again and again"):
        simulate(kernel)[1, 1](np.zeros(1, np.int32))


def test_checks_off_says_nothing_of_races_and_still_finds_deadlocks():
    def racy(out):
        tile = cuda.shared.array(64, numba.int32)
        tile[cuda.threadIdx.x] = 1
        out[cuda.threadIdx.x] = tile[63 - cuda.threadIdx.x]

    with pytest.raises(SimError):
        simulate(racy)[1, 64](np.zeros(64))
    simulate(racy, checks=False)[1, 64](np.zeros(64))
    with pytest.raises(DeadlockError):
        simulate(lambda: sync.bar_sync(1, 64) if cuda.threadIdx.x < 32 else None, checks=False)[1, 64]()


@pytest.mark.parametrize("checks", ["race", ("races", "speed")])
def test_checks_that_do_not_exist(checks):
    with pytest.raises(Exception, match="are none of"):
        simulate(lambda: None, checks=checks)


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("atomic", [False, True], ids=["reads", "atomics that change nothing"])
def test_a_long_loop_over_one_element_is_no_deadlock(checks, atomic):
    """It comes back to the same element, but not to the same state, as a loop that waits does."""

    @cuda.jit
    def kernel(scale, out):
        total = 0.0
        for i in range(300):
            total += cuda.atomic.max(scale, 0, 0.0) * i if atomic else scale[0] * i
        out[cuda.grid(1)] = total

    out = np.zeros(32)
    simulate(kernel, checks=checks)[1, 32](np.full(1, 0.5), out)
    assert (out == 0.25 * 300 * 299).all()


@pytest.mark.parametrize("checks", [True, False])
def test_a_block_that_counts_while_it_waits_for_a_later_one_lets_it_start(checks):
    @cuda.jit
    def kernel(flag, tries):
        if cuda.blockIdx.x == 0:
            n = 0
            while cuda.atomic.add(flag, 0, 0) == 0:
                n += 1
            tries[0] = n
        else:
            cuda.atomic.add(flag, 0, 1)

    tries = np.zeros(1, np.int64)
    simulate(kernel, checks=checks)[2, 1](np.zeros(1, np.int32), tries)
    assert 0 < tries[0] < 10_000
