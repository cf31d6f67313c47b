# SPDX-License-Identifier: Apache-2.0
"""Bugs of a barrier's life, phases and numbers, and of threads that wait in circles or spin."""

import numba
from numba import cuda

from numba_cute.isa.rows import bulk, fence, mbarrier, registers, sync, tma
from numba_cute.sim import BarrierError, DeadlockError, RaceError, SimError
from numba_cute.sim.checks.phases import Phases
from numba_cute.sim.checks.races import Races
from numba_cute.sim.checks.warpgroups import Warpgroups
from numba_cute.sim.hardware.address_spaces import SMEM_WINDOW

from .barriers import ints
from .zoo import BAR, BUF, bug, fresh, get, put


@bug(BarrierError, "invalidated", "nothing orders that after", "waits|arrives", check=Races)
def invalidated_while_others_may_still_wait(mended):
    def kernel():
        fresh(64)
        mbarrier.mbarrier_arrive(BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        if mended:
            cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_inval(BAR)

    return kernel


@bug(BarrierError, "initialised again while it is a barrier", "mbarrier_inval it first")
def initialised_again_without_inval(mended):
    def kernel():
        fresh(64)
        mbarrier.mbarrier_arrive(BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        cuda.syncthreads()
        if mended:
            if cuda.threadIdx.x == 0:
                mbarrier.mbarrier_inval(BAR)
            cuda.syncthreads()
        fresh(64)

    return kernel


@bug(BarrierError, "initialised again", "mbarrier_inval")
def initialised_by_every_warp(mended):
    def kernel():
        t = cuda.threadIdx.x
        if t == 0 or (t == 32 and not mended):
            mbarrier.mbarrier_init(BAR, 64)
        cuda.syncthreads()
        mbarrier.mbarrier_arrive(BAR)

    return kernel


@bug(BarrierError, "is not initialised", "waits|arrives")
def used_after_inval(mended):
    def kernel():
        fresh(64)
        mbarrier.mbarrier_arrive(BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_inval(BAR)
        cuda.syncthreads()
        if not mended:
            mbarrier.mbarrier_arrive(BAR)

    return kernel


@bug(RaceError, "is written by|wrote it", "mbarrier_inval|put, in store", "put a barrier between")
def memory_of_a_barrier_reused_before_all_know_of_its_end(mended):
    def kernel():
        t = cuda.threadIdx.x
        fresh(64)
        mbarrier.mbarrier_arrive(BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        cuda.syncthreads()
        if t == 0:
            mbarrier.mbarrier_inval(BAR)
        if mended:
            cuda.syncthreads()
        else:
            for _ in range(2):  # lets thread 0 go first in any order
                sync.bar_sync(1 + t // 32, 32)
        if t == 40:
            put(BAR, 1)

    return kernel


@bug(
    SimError, "live mbarrier|is written by|wrote it", "get, in load|put|mbarrier_init", check=Races, arguments=ints(64)
)
def barrier_read_as_data(mended):
    def kernel(a, out):
        fresh(64)
        out[cuda.threadIdx.x] = 0 if mended else get(BAR)

    return kernel


@bug(BarrierError, "live mbarrier", "tile|put|__setitem__|kernel", check=Races, arguments=ints(64))
def data_laid_over_a_barrier(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        fresh(64)
        put(BAR + (64 if mended else 0) + 4 * t, t)
        mbarrier.mbarrier_arrive(BAR)

    return kernel


@bug(BarrierError, "waits for parity 2", "neither 0 nor 1", arguments=ints(64))
def round_number_for_a_parity(mended):
    def kernel(a, out):
        fresh(64)
        for i in range(3):
            mbarrier.mbarrier_arrive(BAR)
            mbarrier.mbarrier_wait_parity(BAR, i & 1 if mended else i)
            cuda.syncthreads()

    return kernel


def handed(parity, rounds=4):
    """Warp 0 writes and arrives, warp 1 waits for `parity(i)` and reads, round by round through two barriers."""
    full, empty = BAR, BAR + 8

    def kernel(a, out):
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_init(full, 32)
            mbarrier.mbarrier_init(empty, 32)
        cuda.syncthreads()
        for i in range(rounds):
            if t < 32:
                mbarrier.mbarrier_wait_parity(empty, i & 1 ^ 1)
                put(BUF + 4 * t, i)
                mbarrier.mbarrier_arrive(full)
            else:
                mbarrier.mbarrier_wait_parity(full, parity(i))
                out[t - 32] += get(BUF + 4 * (t - 32))
                mbarrier.mbarrier_arrive(empty)

    parity = cuda.jit(device=True)(parity)
    return kernel


@bug(SimError, "is read by|is written by|more arrivals|nobody has waited|late", check=Phases, arguments=ints(64))
def phase_that_is_never_flipped(mended):
    return handed((lambda i: i & 1) if mended else (lambda i: 0))


@bug(SimError, "is read by|is written by|arrivals missing|more arrivals|uninitialised", arguments=ints(64))
def phase_that_starts_at_one(mended):
    return handed((lambda i: i & 1) if mended else (lambda i: i & 1 ^ 1))


@bug(SimError, "whole phase late", "a parity cannot tell them apart", check=Phases, arguments=ints(64))
def wait_a_whole_phase_late(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        fresh(32)
        fresh(32, BAR + 8)
        if t < 32:
            for i in range(2):
                mbarrier.mbarrier_arrive(BAR)
                if i == 0 and mended:
                    mbarrier.mbarrier_wait_parity(BAR + 8, 0)
                mbarrier.mbarrier_wait_parity(BAR, i)
        elif mended:
            mbarrier.mbarrier_wait_parity(BAR, 0)
            mbarrier.mbarrier_arrive(BAR + 8)
        else:
            for _ in range(100):
                sync.bar_warp_sync()
            while not mbarrier.mbarrier_test_wait_parity(BAR + 8, 1):
                pass
            late(t)

    @cuda.jit(device=True)
    def late(t):
        sync.bar_sync(1, 32)
        mbarrier.mbarrier_try_wait_parity(BAR, 0)

    return kernel


@bug(DeadlockError, "32 of 32 arrivals missing", "nobody ever arrived", "warp 0", "warp 1")
def two_warps_that_wait_for_each_other(mended):
    def kernel():
        t = cuda.threadIdx.x
        fresh(32)
        fresh(32, BAR + 8)
        mine, other = (BAR, BAR + 8) if t < 32 else (BAR + 8, BAR)
        if mended:
            mbarrier.mbarrier_arrive(mine)
        mbarrier.mbarrier_wait_parity(other, 0)
        if not mended:
            mbarrier.mbarrier_arrive(mine)

    return kernel


@bug(DeadlockError, "named barrier 1", "named barrier 2", "cycle")
def named_barriers_in_opposite_orders(mended):
    def kernel():
        t = cuda.threadIdx.x
        first = 1 if t < 32 or mended else 2
        sync.bar_sync(first, 64)
        sync.bar_sync(3 - first, 64)

    return kernel


@bug(
    BarrierError,
    "named barrier 1",
    "does not know that the use before has ended|arrives for 64",
    check=Races,
    threads=128,
)
def two_groups_on_one_named_barrier(mended):
    def kernel():
        sync.bar_sync(1 + (cuda.threadIdx.x // 64 if mended else 0), 64)

    return kernel


@bug(SimError, "named barrier 1", "arrived there already|does not know", check=Races, arguments=ints(64))
def producer_that_arrives_again_and_again_without_an_answer(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        for i in range(2):
            if t < 32:
                put(BUF + 128 * i + 4 * t, i)
                sync.bar_arrive(1, 64)
                if mended:
                    sync.bar_sync(2, 64)
            else:
                sync.bar_sync(1, 64)
                out[t] = get(BUF + 128 * i + 4 * (t - 32))
                if mended:
                    sync.bar_arrive(2, 64)

    return kernel


@bug(BarrierError, "named barrier 16 is not in 0 to 15")
def named_barrier_number_16(mended):
    return lambda: sync.bar_sync(15 if mended else 16, 64)


@bug(BarrierError, "named barrier 1", "48 threads is not a multiple of 32")
def named_barrier_of_48_threads(mended):
    return lambda: sync.bar_sync(1, 64 if mended else 48)


@bug(DeadlockError, "bar_sync", "lanes 16-31 of warp 0", threads=32)
def named_barrier_by_half_a_warp(mended):
    def kernel():
        if mended or cuda.threadIdx.x < 16:
            sync.bar_sync(1, 32)

    return kernel


@bug(DeadlockError, "setmaxnreg", "missing: warps 1-3|missing: warp", check=Warpgroups, threads=256)
def setmaxnreg_by_one_warp(mended):
    def kernel():
        t = cuda.threadIdx.x
        if t < 128:
            registers.setmaxnreg(count=40, action="dec")
        elif mended or t < 160:
            registers.setmaxnreg(count=232, action="inc")

    return kernel


@bug(DeadlockError, "setmaxnreg.inc to 232", "registers", threads=384)
def setmaxnreg_inc_without_a_dec_elsewhere(mended):
    def kernel():
        if cuda.threadIdx.x < 128:
            if mended:
                registers.setmaxnreg(count=40, action="dec")
        else:
            registers.setmaxnreg(count=232, action="inc")

    return kernel


@bug(DeadlockError, "setmaxnreg|syncthreads", check=Warpgroups, threads=256)
def setmaxnreg_in_a_branch_of_a_warpgroup(mended):
    def kernel():
        t = cuda.threadIdx.x
        if mended or t % 128 < 64:
            registers.setmaxnreg(count=40, action="dec")
        cuda.syncthreads()

    return kernel


@bug(DeadlockError, "again and again", "mbarrier_wait_parity", "cycle|missing", arguments=ints(64))
def some_wait_while_others_spin(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        fresh(1)
        if t < 32:
            while cuda.atomic.add(out, 0, 0) == 0:
                pass
            if t == 0:
                mbarrier.mbarrier_arrive(BAR)
        else:
            if mended and t == 32:
                cuda.atomic.add(out, 0, 1)
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


@bug(DeadlockError, "barrier at 0x408|BAR + 8", "128 bytes missing|1 of 1 arrival missing", arguments=ints(64))
def wait_on_the_barrier_of_another_stage(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        fresh(1)
        fresh(1, BAR + 8)
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 128)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 128, BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        if not mended:
            mbarrier.mbarrier_wait_parity(BAR + 8, 0)

    return kernel


@bug(RaceError, "missing fence.proxy.async|nothing orders", "cp_async_bulk_s2g", arguments=ints(64))
def proxy_fence_ahead_of_the_writes(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if not mended:
            fence.fence_proxy_async(space="shared::cta")
        put(BUF + 4 * t, t)
        if mended:
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    return kernel


@bug(RaceError, "missing fence.proxy.async", "rows (cuda.shared.array)", "cp_async_bulk_s2g", arguments=ints(64))
def shared_array_stored_without_a_proxy_fence(mended):
    def kernel(a, out):
        rows = cuda.shared.array(64, numba.int32)
        t = cuda.threadIdx.x
        rows[t] = t
        if mended:
            fence.fence_proxy_async()
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data, SMEM_WINDOW - 256, 256)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    return kernel
