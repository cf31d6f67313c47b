# SPDX-License-Identifier: Apache-2.0
"""Bugs of mbarriers, named barriers and their counts, phases and lives."""

import numpy as np
from numba import cuda

from numba_cute.isa.rows import bulk, cluster, fence, mbarrier, registers, sync
from numba_cute.sim import BarrierError, DeadlockError, RaceError, SimError
from numba_cute.sim.checks.initialised import Initialised
from numba_cute.sim.checks.phases import Phases
from numba_cute.sim.checks.races import Races

from .zoo import BAR, BUF, bug, fresh, get, put


def ints(n):
    return lambda: (np.arange(n, dtype=np.int32), np.zeros(n, np.int32))


@bug(
    BarrierError,
    "is not initialised",
    "mbarrier_arrive_expect_tx(BAR, 128)",
    "mbarrier_init",
    origin="cutlass#2364",
    arguments=ints(32),
)
def expect_tx_on_an_uninitialised_mbarrier(mended):
    def kernel(a, out):
        if mended:
            fresh(1)
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 128)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 128, BAR)
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


def ring(consumers, arrivals, rounds=4, signal=None):
    """Warp 0 fills one stage by TMA, `consumers` warps read it and release it; `arrivals` is the empty barrier's."""
    full, empty = BAR, BAR + 8

    def kernel(a, out):
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_init(full, 1)
            mbarrier.mbarrier_init(empty, arrivals)
            fence.fence_mbarrier_init()
        cuda.syncthreads()
        if t < 32:
            for i in range(rounds):
                if t == 0:
                    mbarrier.mbarrier_wait_parity(empty, i & 1 ^ 1)
                    mbarrier.mbarrier_arrive_expect_tx(full, 128)
                    bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 128, full)
        else:
            for i in range(rounds):
                mbarrier.mbarrier_wait_parity(full, i & 1)
                out[t - 32] += get(BUF + 4 * (t % 32))
                sync.bar_warp_sync()
                if (t % 32 == 0) if signal is None else t == signal:
                    mbarrier.mbarrier_arrive(empty)

    return kernel


@bug(
    SimError,
    "mbarrier_arrive(empty)|barriers.py",
    "more arrivals than the barrier was initialised for|before anybody waited|nothing orders",
    check=Phases,
    threads=96,
    arguments=ints(64),
    origin="cutlass#2404",
)
def consumer_arrival_count_of_one_for_two_consumers(mended):
    return ring(2, 2 if mended else 1)


@bug(DeadlockError, "1 of 3 arrivals missing", "fix:", "thread 0 (warp 0)", threads=96, arguments=ints(64))
def arrival_count_too_great(mended):
    return ring(2, 2 if mended else 3)


@bug(
    DeadlockError,
    "of 1 arrival missing",
    "mbarrier_wait_parity(empty",
    threads=64,
    arguments=ints(32),
    origin="cutlass#2418",
)
def signalling_thread_hard_wired_to_the_producer_warp(mended):
    return ring(1, 1, signal=None if mended else 0)


def phases(first):
    def kernel(out):
        fresh(32)
        t = cuda.threadIdx.x
        for i in range(3):
            if t < 32:
                put(BUF + 4 * t, i)
                mbarrier.mbarrier_arrive(BAR)
            else:
                mbarrier.mbarrier_wait_parity(BAR, (first + i) & 1)
                out[t - 32] = get(BUF + 4 * (t - 32))
            cuda.syncthreads()

    return kernel


@bug(
    RaceError,
    "is read by|read it at",
    "wrote it at|is written by",
    "put, in store, called at",
    arguments=lambda: (np.zeros(32, np.int32),),
)
def wait_for_the_wrong_phase(mended):
    return phases(0 if mended else 1)


def copies(expected, count=2):
    def kernel(a, out):
        fresh(1)
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, expected)
            for i in range(count):
                bulk.cp_async_bulk_g2s(BUF + 128 * i, a.ctypes.data + 128 * i, 128, BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        out[t] = get(BUF + 4 * t)

    return kernel


@bug(
    DeadlockError,
    "256 bytes missing: 512 announced (expect_tx), 256 delivered",
    "announce the 256 bytes",
    arguments=ints(64),
    origin="tilelang#2644",
)
def expect_tx_multiplied_by_the_cluster_size(mended):
    return copies(256 if mended else 512)


@bug(
    SimError,
    "too few bytes announced|is read by",
    "are 128, the copies deliver 256|cp_async_bulk_g2s",
    arguments=ints(64),
)
def expect_tx_of_one_of_two_copies(mended):
    return copies(256 if mended else 128)


@bug(
    BarrierError,
    "missing fence.mbarrier_init",
    "cp_async_bulk_g2s",
    "fence_mbarrier_init",
    check=Initialised,
    arguments=ints(64),
)
def barrier_initialised_without_a_fence(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_init(BAR, 1)
            if mended:
                fence.fence_mbarrier_init()
        cuda.syncthreads()
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


@bug(BarrierError, "is not initialised", "mbarrier_init", "barrier", check=Initialised)
def barrier_used_before_the_block_has_met(mended):
    def kernel():
        t = cuda.threadIdx.x
        if t == 40:
            mbarrier.mbarrier_init(BAR, 64)
        if mended:
            cuda.syncthreads()
        mbarrier.mbarrier_arrive(BAR)

    return kernel


@bug(BarrierError, "live mbarrier", "(put, in store, called at", "mbarrier_inval", check=Races)
def barrier_overwritten_by_data(mended):
    def kernel():
        fresh(64)
        mbarrier.mbarrier_arrive(BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            if mended:
                mbarrier.mbarrier_inval(BAR)
            put(BAR, 1)

    return kernel


@bug(BarrierError, "named barrier 3", "128 threads", "the block has 96", threads=96)
def named_barrier_for_more_threads_than_there_are(mended):
    def kernel():
        sync.bar_sync(3, 96 if mended else 128)

    return kernel


@bug(DeadlockError, "named barrier 1", "32 of 64 threads have arrived", threads=96)
def named_barrier_that_one_warp_skips(mended):
    def kernel():
        warp = cuda.threadIdx.x // 32
        if warp == 0 or (mended and warp == 1):
            sync.bar_sync(1, 64)

    return kernel


@bug(
    RaceError, "is read by|read it at", "put, in store", "named barrier", threads=64, arguments=lambda: (np.zeros(64),)
)
def arrival_in_the_place_of_a_wait(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        if t < 32:
            put(BUF + 4 * t, t)
            sync.bar_arrive(1, 64) if mended else sync.bar_sync(1, 64)
        else:
            sync.bar_sync(1, 64) if mended else sync.bar_arrive(1, 64)
            out[t] = get(BUF + 4 * (t - 32))

    return kernel


@bug(DeadlockError, "setmaxnreg.inc to 240", "registers", threads=384)
def setmaxnreg_asks_for_more_than_the_block_has(mended):
    def kernel():
        if cuda.threadIdx.x < 128:
            registers.setmaxnreg(count=40, action="dec")
        elif mended:
            registers.setmaxnreg(count=232, action="inc")
        else:
            registers.setmaxnreg(count=240, action="inc")

    return kernel


@bug(DeadlockError, "again and again", "1 of 1 arrival missing", "mbarrier_test_wait_parity")
def spin_on_a_barrier_that_nobody_signals(mended):
    def kernel():
        fresh(1)
        if cuda.threadIdx.x == 33 and mended:
            mbarrier.mbarrier_arrive(BAR)
        if cuda.threadIdx.x < 32:
            while not mbarrier.mbarrier_test_wait_parity(BAR, 0):
                pass

    return kernel


@bug(DeadlockError, "cluster", "missing: warps 0-1", blocks=2, cluster=2)
def cluster_barrier_that_one_block_skips(mended):
    def kernel():
        fresh(1)
        if mended or cuda.blockIdx.x == 0:
            sync.cluster_arrive()
            sync.cluster_wait()
        else:
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


@bug(
    BarrierError,
    "nothing orders that after its initialisation|is not initialised",
    "mbarrier_arrive",
    check=Initialised,
    blocks=2,
    cluster=2,
)
def peer_signalled_before_its_barrier_is_made(mended):
    def kernel():
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        if t == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
        cuda.syncthreads()
        if mended:
            sync.cluster_arrive(sem="relaxed")
            sync.cluster_wait()
        if t == 0:
            mbarrier.mbarrier_arrive(cluster.mapa(BAR, 1 - rank), space="cluster")
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


def tested(test):
    """Thread 0 copies; all test the barrier by `test(mended)` and read."""

    def make(mended):
        def kernel(a, out):
            fresh(1)
            t = cuda.threadIdx.x
            if t == 0:
                mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
                bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
            done = test(BAR, 0)
            while mended and not done:
                done = test(BAR, 0)
            out[t] = get(BUF + 4 * t)
            mbarrier.mbarrier_wait_parity(BAR, 0)

        return kernel

    return make


@bug(RaceError, "cp_async_bulk_g2s", "gave False|must first wait on the barrier", arguments=ints(64))
def result_of_try_wait_ignored(mended):
    return tested(mbarrier.mbarrier_try_wait_parity)(mended)


@bug(RaceError, "cp_async_bulk_g2s", "gave False|must first wait on the barrier", arguments=ints(64))
def result_of_test_wait_ignored(mended):
    return tested(mbarrier.mbarrier_test_wait_parity)(mended)


@bug(
    DeadlockError, "32 of 64 arrivals missing", "in the phase before, but not in this one: warp 1", "exited",
    "mbarrier_arrive_drop", arguments=ints(64),
)  # fmt: skip
def threads_that_leave_without_a_last_arrival(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        fresh(64)
        if t >= 32:
            if mended:
                mbarrier.mbarrier_arrive_drop(BAR)
            else:
                mbarrier.mbarrier_arrive(BAR)
            return
        for i in range(3):
            mbarrier.mbarrier_arrive(BAR)
            mbarrier.mbarrier_wait_parity(BAR, i & 1)
        out[t] = 1

    return kernel


def supplied(meet=64, give=40):
    """Eight warps take what one copies, round by round, and each two of them meet."""
    full, empty = BAR, BAR + 8

    def kernel(a, out):
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_init(full, 1)
            mbarrier.mbarrier_init(empty, 256)
            fence.fence_mbarrier_init()
        cuda.syncthreads()
        if t < 128:
            registers.setmaxnreg(count=give, action="dec")
            for i in range(3 if t == 0 else 0):
                mbarrier.mbarrier_wait_parity(empty, i & 1 ^ 1)
                mbarrier.mbarrier_arrive_expect_tx(full, 1024)
                bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 1024, full)
        else:
            registers.setmaxnreg(count=232, action="inc")
            for i in range(3):
                mbarrier.mbarrier_wait_parity(full, i & 1)
                out[t - 128] += get(BUF + 4 * (t - 128))
                if i > 0:
                    sync.bar_sync(1 + t // 64, meet)
                mbarrier.mbarrier_arrive(empty)

    return kernel


def cause_bug(*words):
    return bug(DeadlockError, *words, "mbarrier at 0x408", threads=384, arguments=ints(256))


@cause_bug("nothing is in flight\n  warps 4-5 (64 threads) wait", "named barrier 3: 64 of 96 threads have arrived")
def named_barrier_that_stops_a_pipeline(mended):
    return supplied() if mended else supplied(meet=96)


@cause_bug("nothing is in flight\n  warps 8-11 (128|nothing is in flight\n  warps 4-7 (128", "setmaxnreg.inc to 232")
def registers_that_stop_a_pipeline(mended):
    return supplied() if mended else supplied(give=80)


@bug(DeadlockError, "thread 0 (warp 0) arrived in both", "nobody has waited for phase 0", check=Phases)
def a_barrier_of_one_to_which_two_arrive(mended):
    def kernel():
        fresh(1)
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_arrive(BAR)
            if not mended:
                mbarrier.mbarrier_arrive(BAR)
        cuda.syncthreads()
        mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel
