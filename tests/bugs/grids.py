# SPDX-License-Identifier: Apache-2.0
"""Bugs between the blocks of a grid: flags, locks and counters in global memory, their fences and scopes."""

import numba
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.isa import ld_global_nc
from numba_cute.isa.rows import bulk, fence, mbarrier, tma
from numba_cute.runtime import from_dlpack
from numba_cute.sim import DeadlockError, RaceError

from .zoo import BAR, BUF, bug, fresh, get, put


def zeros(*counts):
    return lambda: tuple(np.zeros(n, np.int32) for n in counts)


def flagged(write, *, release="release", acquire="acquire", scope="gpu", meet=True):
    """Block 0 writes 32 numbers by `write(t, data)` and raises a flag; block 1 waits for the flag and reads them."""

    def kernel(data, flag, out):
        t = cuda.threadIdx.x
        if cuda.blockIdx.x == 0:
            write(t, data)
            if meet:
                cuda.syncthreads()
            if t == 0:
                arch.atomic_exch(flag.iterator, 1, sem=release, scope=scope)
        else:
            if t == 0:
                while arch.load(flag.iterator, cute.Int32, sem=acquire, scope=scope) == 0:
                    pass
            cuda.syncthreads()
            out[t] = data[t]

    write = cuda.jit(device=True)(write)
    return kernel


def flag_bug(*words):
    def arguments():
        return np.zeros(32, np.int32), from_dlpack(np.zeros(1, np.int32)), np.zeros(32, np.int32)

    return bug(RaceError, *words, blocks=2, threads=32, arguments=arguments)


def plainly(t, data):
    data[t] = t


def by_tma(wait_for_all):
    def write(t, data):
        put(BUF + 4 * t, t)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(data.ctypes.data, BUF, 128)
            tma.cp_async_bulk_commit_group()
            if wait_for_all:
                tma.cp_async_bulk_wait_group(n=0)
            else:
                tma.cp_async_bulk_wait_group(n=0, read=True)

    return write


@flag_bug("global memory data", "of block (1, 0, 0)", "the atomic at", "acquires nothing", 'sem="acquire"')
def flag_that_is_read_without_acquire(mended):
    return flagged(plainly, acquire="acquire" if mended else "relaxed")


@flag_bug("global memory data", "the atomic at", "arch.atomic_exch", "releases nothing", 'sem="release"')
def flag_that_is_raised_without_release(mended):
    return flagged(plainly, release="release" if mended else "relaxed")


@flag_bug("global memory data", "does not hold it", "must first meet all that wrote (cuda.syncthreads())")
def flag_raised_before_all_have_written(mended):
    return flagged(plainly, meet=mended)


@flag_bug("atomics (scope cluster)", "not one step for each other", 'scope="gpu"')
def flag_at_cluster_scope_between_clusters(mended):
    return flagged(plainly, scope="gpu" if mended else "cluster")


@flag_bug("cp_async_bulk_s2g", "global memory data", "cp.async.bulk.wait_group (not only .read)", "tells others")
def flag_raised_while_a_store_is_under_way(mended):
    return flagged(by_tma(mended))


def counted(*missing, block_fence=False):
    """Each block writes its part and counts itself; the last one adds up all parts."""

    def kernel(parts, done, out):
        last = cuda.shared.array(1, numba.int32)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        if "late" not in missing:
            parts[i] = i
        if "meet" not in missing:
            cuda.syncthreads()
        if t == 0:
            if block_fence:
                cuda.threadfence_block()
            elif "before" not in missing:
                cuda.threadfence()
            last[0] = cuda.atomic.add(done, 0, 1) == cuda.gridDim.x - 1
            if "after" not in missing:
                cuda.threadfence()
        if "late" in missing:
            parts[i] = i
        cuda.syncthreads()
        if last[0] and t == 0:
            for j in range(parts.size):
                out[0] += parts[j]

    return kernel


def count_bug(*words):
    return bug(RaceError, "global memory parts", *words, blocks=3, threads=32, arguments=zeros(96, 1, 1))


@count_bug("must first meet all that wrote (cuda.syncthreads())", "parts[i] = i")
def block_counted_before_all_its_threads_have_written(mended):
    return counted() if mended else counted("meet")


@count_bug("nothing orders blocks", "after they have written")
def part_written_after_the_block_is_counted(mended):
    return counted() if mended else counted("late")


@count_bug("cuda.atomic.add(done, 0, 1)", "releases nothing", "cuda.threadfence()")
def block_counted_without_a_fence_before(mended):
    return counted() if mended else counted("before")


@count_bug("cuda.atomic.add(done, 0, 1)", "acquires nothing", "cuda.threadfence()")
def parts_read_without_a_fence_after_the_count(mended):
    return counted() if mended else counted("after")


@count_bug("at a scope that does not hold this one", "cuda.threadfence() (not threadfence_block)")
def block_counted_after_a_fence_of_block_scope(mended):
    return counted() if mended else counted(block_fence=True)


def grid_barrier(*missing):
    """All blocks meet three times at a counter, and read their neighbours' numbers of the round before."""

    def kernel(a, b, count):
        i, n = cuda.grid(1), cuda.gridsize(1)
        for k in range(3):
            source, target = (a, b) if k % 2 == 0 else (b, a)
            target[i] = source[(i + 32) % n] + 1
            if "enter" not in missing:
                cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                if "before" not in missing:
                    cuda.threadfence()
                cuda.atomic.add(count, 0, 1)
                while cuda.atomic.add(count, 0, 0) < 3 * (k + 1):
                    pass
                if "after" not in missing:
                    cuda.threadfence()
            if "leave" not in missing:
                cuda.syncthreads()

    return kernel


def grid_bug(*words):
    return bug(RaceError, "nothing orders blocks", *words, blocks=3, threads=32, arguments=zeros(96, 96, 1))


@grid_bug("must first meet")
def own_grid_barrier_that_threads_enter_one_by_one(mended):
    return grid_barrier() if mended else grid_barrier("enter")


@grid_bug("target[i] = source")
def own_grid_barrier_that_threads_do_not_leave_together(mended):
    return grid_barrier() if mended else grid_barrier("leave")


@grid_bug("cuda.atomic.add(count, 0, 1)", "releases nothing")
def own_grid_barrier_without_a_fence_before(mended):
    return grid_barrier() if mended else grid_barrier("before")


@grid_bug("acquires nothing")
def own_grid_barrier_without_a_fence_after(mended):
    return grid_barrier() if mended else grid_barrier("after")


def locked(acquire, release):
    def kernel(lock, out):
        if cuda.threadIdx.x % 32 == 0:
            while arch.atomic_cas(lock.iterator, 0, 1, sem=acquire, scope="gpu") != 0:
                pass
            out[0] += 1
            arch.atomic_exch(lock.iterator, 0, sem=release, scope="gpu")

    return kernel


def lock_bug(*words):
    def arguments():
        return from_dlpack(np.zeros(1, np.int32)), np.zeros(1, np.int32)

    return bug(RaceError, "global memory out", "out[0] += 1", *words, blocks=2, arguments=arguments)


@lock_bug("arch.atomic_cas", "acquires nothing")
def lock_that_is_taken_without_acquire(mended):
    return locked("acquire" if mended else "relaxed", "release")


@lock_bug("arch.atomic_exch", "releases nothing")
def lock_that_is_given_back_without_release(mended):
    return locked("acquire", "release" if mended else "relaxed")


@bug(
    RaceError, "atomics (scope cta)", "in two blocks", 'scope="gpu"', blocks=2,
    arguments=lambda: (from_dlpack(np.zeros(1, np.int32)),),
)  # fmt: skip
def counter_at_block_scope(mended):
    def kernel(counter):
        arch.atomic_add(counter.iterator, 1, scope="gpu" if mended else "cta")

    return kernel


@bug(
    RaceError, "is written by thread", "acc[t] = 0", "nothing orders", blocks=2, threads=32,
    arguments=lambda: (np.zeros(32, np.int32),),
    origin="review F1: the shadow forgot a plain access that its own thread follows by an atomic",
)  # fmt: skip
def sum_cleared_by_one_block_while_others_add(mended):
    def kernel(acc):
        t = cuda.threadIdx.x
        if cuda.blockIdx.x == 0 and not mended:
            acc[t] = 0
        cuda.atomic.add(acc, t, 1)

    return kernel


def passed_on(third):
    """Block 0 releases a number; thread 0 of block 1 sees the flag and changes it; thread 32 sees that and reads."""

    def kernel(data, flag, out):
        t = cuda.threadIdx.x
        if cuda.blockIdx.x == 0:
            if t == 0:
                data[0] = 7
                arch.store(flag.iterator, 1, sem="release", scope="gpu")
        else:
            if t == 0:
                while arch.load(flag.iterator, cute.Int32, sem="relaxed", scope="gpu") == 0:
                    pass
                third(flag)
            cuda.syncthreads()
            if t == 32:
                while arch.load(flag.iterator, cute.Int32, sem="acquire", scope="gpu") < 2:
                    pass
                out[0] = data[0]

    third = cuda.jit(device=True)(third)
    return kernel


@bug(
    RaceError, "global memory data", "nothing orders blocks", blocks=2,
    arguments=lambda: (np.zeros(1, np.int32), from_dlpack(np.zeros(1, np.int32)), np.zeros(1, np.int32)),
)  # fmt: skip
def released_flag_overwritten_by_another_thread(mended):
    def update(flag):
        arch.atomic_add(flag.iterator, 1, scope="gpu")  # an update continues what was released

    def overwrite(flag):
        arch.store(flag.iterator, 2, sem="relaxed", scope="gpu")

    return passed_on(update if mended else overwrite)


@flag_bug("missing fence.proxy.async", "global memory data", "of block (0, 0, 0)", 'fence_proxy("async.global")')
def other_blocks_data_copied_by_tma_without_a_proxy_fence(mended):
    def kernel(data, flag, out):
        t = cuda.threadIdx.x
        fresh(1)
        if cuda.blockIdx.x == 0:
            data[t] = t
            if mended:
                fence.fence_proxy_async(space="global")
            cuda.syncthreads()
            if t == 0:
                arch.store(flag.iterator, 1, sem="release", scope="gpu")
        else:
            if t == 0:
                while arch.load(flag.iterator, cute.Int32, sem="acquire", scope="gpu") == 0:
                    pass
                mbarrier.mbarrier_arrive_expect_tx(BAR, 128)
                bulk.cp_async_bulk_g2s(BUF, data.ctypes.data, 128, BAR)
            mbarrier.mbarrier_wait_parity(BAR, 0)
            out[t] = get(BUF + 4 * t)

    return kernel


@bug(
    RaceError, "global memory sums", "cp_reduce_async_bulk_s2g", "cp.async.bulk.wait_group", blocks=2, threads=32,
    arguments=zeros(32, 1, 32),
)  # fmt: skip
def sums_read_while_another_block_still_adds(mended):
    def kernel(sums, done, out):
        last = cuda.shared.array(1, numba.int32)
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_reduce_async_bulk_s2g(sums.ctypes.data, BUF, 128, op="add", type="s32")
            tma.cp_async_bulk_commit_group()
            if mended:
                tma.cp_async_bulk_wait_group(n=0)
            else:
                tma.cp_async_bulk_wait_group(n=0, read=True)
            cuda.threadfence()
            last[0] = cuda.atomic.add(done, 0, 1) == 1
            cuda.threadfence()
        cuda.syncthreads()
        if last[0]:
            out[t] = sums[t]

    return kernel


@bug(
    RaceError, "global memory a", "through the read-only cache", "in the same launch", "an ordinary load",
    threads=32, arguments=lambda: (from_dlpack(np.zeros(32, np.int32)), np.zeros(32, np.int32)),
)  # fmt: skip
def read_only_load_of_what_the_kernel_writes(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        other = a.iterator + (31 - t)
        a[t] = t
        cuda.syncthreads()
        if mended:
            out[t] = other.load()
        else:
            out[t] = ld_global_nc(other.address, width=32, count=1)

    return kernel


@bug(DeadlockError, "block (0, 0, 0)", "block (1, 0, 0)", "likewise", "again and again", blocks=2, arguments=zeros(2))
def two_blocks_that_wait_for_each_other(mended):
    def kernel(flags):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            if mended:
                cuda.atomic.add(flags, b, 1)
            while cuda.atomic.add(flags, 1 - b, 0) == 0:
                pass
            if not mended:
                cuda.atomic.add(flags, b, 1)

    return kernel
