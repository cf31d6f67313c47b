# SPDX-License-Identifier: Apache-2.0
"""Bugs of asynchronous copies: cp.async and its groups and barriers, ldmatrix, TMA loads, stores and reductions."""

from numba import cuda

from numba_cute.isa.rows import bulk, copy_async, fence, matrix, mbarrier, sync, tma
from numba_cute.sim import BarrierError, DeadlockError, OutOfBoundsError, RaceError, SimError, UninitializedReadError
from numba_cute.sim.checks.exits import Exits
from numba_cute.sim.checks.races import Races

from .barriers import ints
from .zoo import BAR, BUF, OUT, bug, fresh, get, put

cp16 = dict(nbytes=16, cache="cg", prefetch=0)


def staged(*missing, groups=0):
    """Each of 32 threads copies 16 bytes a round into one of two stages, and reads its neighbour's."""

    def kernel(a, out):
        t = cuda.threadIdx.x
        for i in range(4):
            stage = BUF + 512 * (i % 2)
            copy_async.cp_async(stage + 16 * t, a.ctypes.data + 512 * i + 16 * t, **cp16)
            if "commit" not in missing:
                copy_async.cp_async_commit_group()
            if "wait" not in missing:
                copy_async.cp_async_wait_group(n=groups)
            if "barrier" not in missing:
                cuda.syncthreads()
            out[32 * i + t] = get(stage + 4 * (t ^ 1)) if "own" not in missing else get(stage + 16 * t)
        copy_async.cp_async_commit_group()
        copy_async.cp_async_wait_group(n=0)

    return kernel


def cp_bug(*words, **more):
    return bug(RaceError, *words, threads=32, arguments=ints(512), **more)


@cp_bug("cp_async", "has still to write it", "cp.async.wait_group", "is read by|read it")
def cp_async_that_is_never_waited_for(mended):
    return staged() if mended else staged("wait")


@cp_bug("cp_async", "has still to write it", "commit it", "is read by|read it")
def cp_async_that_is_never_committed(mended):
    return staged() if mended else staged("commit")


@cp_bug("cp_async", "has still to write it", "cp.async.wait_group")
def cp_async_wait_that_leaves_the_latest_group(mended):
    return staged() if mended else staged(groups=1)


@cp_bug("cp_async", "has still to write it", "cp.async.wait_group", "before this line")
def own_cp_async_read_without_a_wait(mended):
    return staged("own") if mended else staged("own", "wait")


@cp_bug("cp_async", "is read by|read it|has still to write it")
def cp_async_of_others_read_without_a_barrier(mended):
    return staged() if mended else staged("barrier")


@cp_bug("cp_async", "is written by|is read by", "get, in load|read it")
def cp_async_over_a_stage_that_is_still_read(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        for i in range(3):
            copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 512 * i + 16 * t, **cp16)
            copy_async.cp_async_commit_group()
            copy_async.cp_async_wait_group(n=0)
            cuda.syncthreads()
            out[32 * i + t] = get(BUF + 4 * (t ^ 1))
            if mended:
                cuda.syncthreads()

    return kernel


@cp_bug("global memory a", "cp_async", "has still to|still reads|is written by|is read by")
def source_of_a_cp_async_overwritten(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 16 * t, **cp16)
        copy_async.cp_async_commit_group()
        if mended:
            copy_async.cp_async_wait_group(n=0)
        a[4 * t] = 0
        copy_async.cp_async_wait_group(n=0)

    return kernel


@bug(Exception, "cp.async", "must be a multiple of the 16 bytes", threads=32, arguments=ints(512))
def misaligned_cp_async(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        copy_async.cp_async(BUF + 16 * t, a.ctypes.data + (16 if mended else 4) * t, **cp16)
        copy_async.cp_async_commit_group()
        copy_async.cp_async_wait_group(n=0)

    return kernel


@bug(OutOfBoundsError, "global memory", "beyond the end of a", "cp_async", threads=32, arguments=ints(64))
def cp_async_beyond_the_end(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if not mended or t < 16:
            copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 16 * t, **cp16)
        copy_async.cp_async_commit_group()
        copy_async.cp_async_wait_group(n=0)

    return kernel


def signalled(count=32, arrive="noinc", wait=True, also=False):
    """32 threads copy and let an mbarrier tell; warp 1 reads."""

    def kernel(a, out):
        fresh(count)
        t = cuda.threadIdx.x
        if t < 32:
            copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 16 * t, **cp16)
            if arrive == "noinc":
                copy_async.cp_async_mbarrier_arrive_noinc(BAR)
            elif arrive == "inc":
                copy_async.cp_async_mbarrier_arrive(BAR)
            if also:
                mbarrier.mbarrier_arrive(BAR)
        elif wait:
            mbarrier.mbarrier_wait_parity(BAR, 0)
            out[t - 32] = get(BUF + 4 * (t - 32))

    return kernel


@bug(RaceError, "cp_async", "has still to write it|is read by", arguments=ints(128))
def plain_arrival_for_a_cp_async(mended):
    return signalled() if mended else signalled(arrive="none", also=True)


@bug(DeadlockError, "32 of 64 arrivals missing", "arrived in this phase: warp 0", arguments=ints(128))
def noinc_that_the_count_counts_twice(mended):
    return signalled(32) if mended else signalled(64)


@bug(DeadlockError, "32 of 32 arrivals missing|arrivals missing", "mbarrier_wait_parity", arguments=ints(128))
def cp_async_arrive_without_noinc_and_no_arrival(mended):
    return signalled(32, "inc", also=True) if mended else signalled(32, "inc")


@bug(SimError, "more arrivals|has still to write it|more arrive in a round", check=Races, arguments=ints(128))
def noinc_and_an_arrival_as_well(mended):
    return signalled(64, also=True) if mended else signalled(32, also=True)


@bug(RaceError, "put, in store", "is read by|read it", arguments=ints(128))
def plain_store_published_by_a_cp_async_arrival(mended):
    def kernel(a, out):
        fresh(32 if not mended else 64)
        t = cuda.threadIdx.x
        if t < 32:
            put(BUF + 1024 + 4 * t, t)
            copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 16 * t, **cp16)
            copy_async.cp_async_mbarrier_arrive_noinc(BAR)
            if mended:
                mbarrier.mbarrier_arrive(BAR)
        else:
            mbarrier.mbarrier_wait_parity(BAR, 0)
            out[t - 32] = get(BUF + 1024 + 4 * (t - 32))

    return kernel


# ---------------------------------------------------------------- ldmatrix, stmatrix


@bug(OutOfBoundsError, "misaligned", "16", threads=32)
def ldmatrix_with_misaligned_rows(mended):
    def kernel():
        t = cuda.threadIdx.x
        for i in range(8):
            put(BUF + 4 * (t + 32 * i), i)
        sync.bar_warp_sync()
        matrix.ldmatrix(addr=BUF + (16 if mended else 8) * t, num=1, trans=False)

    return kernel


@bug(OutOfBoundsError, "shared memory", "ldmatrix|accesses 16 bytes", threads=32)
def ldmatrix_row_outside_of_shared_memory(mended):
    def kernel():
        t = cuda.threadIdx.x
        for i in range(8):
            put(BUF + 4 * (t + 32 * i), i)
        sync.bar_warp_sync()
        matrix.ldmatrix(addr=BUF + 16 * t if mended or t != 7 else 1024 + 8192, num=1, trans=False)

    return kernel


@bug(UninitializedReadError, "ldmatrix", "nobody has written it", threads=32)
def ldmatrix_of_a_tile_that_is_not_filled(mended):
    def kernel():
        t = cuda.threadIdx.x
        for i in range(4 if mended else 2):
            put(BUF + 4 * (t + 32 * i), i)
        sync.bar_warp_sync()
        matrix.ldmatrix(addr=BUF + 16 * t, num=4, trans=False)

    return kernel


@bug(RaceError, "ldmatrix", "cp_async", "has still to write it", threads=32, arguments=ints(128))
def ldmatrix_before_cp_async_is_done(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 16 * t, **cp16)
        copy_async.cp_async_commit_group()
        if mended:
            copy_async.cp_async_wait_group(n=0)
        sync.bar_warp_sync()
        matrix.ldmatrix(addr=BUF + 16 * t, num=4, trans=False)
        copy_async.cp_async_wait_group(n=0)

    return kernel


@bug(DeadlockError, "ldmatrix", "lanes 16-31", threads=32)
def ldmatrix_by_half_a_warp(mended):
    def kernel():
        t = cuda.threadIdx.x
        for i in range(4):
            put(BUF + 4 * (t + 32 * i), i)
        sync.bar_warp_sync()
        if mended or t < 16:
            matrix.ldmatrix(addr=BUF + 16 * t, num=2, trans=False)

    return kernel


@bug(RaceError, "missing fence.proxy.async", "stmatrix", "cp_async_bulk_s2g", threads=32, arguments=ints(128))
def tma_store_of_what_stmatrix_wrote_without_a_proxy_fence(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        matrix.stmatrix(BUF + 16 * t, (t, t, t, t), num=4, trans=False)
        if mended:
            fence.fence_proxy_async(space="shared::cta")
        sync.bar_warp_sync()
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 512)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0, read=True)

    return kernel


# ---------------------------------------------------------------- bulk copies and TMA


def stored(between):
    """All write, fence and meet; thread 0 stores; `between(t, a, out)` comes before the full wait."""

    def kernel(a, out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
            tma.cp_async_bulk_commit_group()
        between(t, a, out)

    between = cuda.jit(device=True)(between)
    return kernel


@bug(RaceError, "cp_async_bulk_s2g", "still reads it|still use", "wait_group", arguments=ints(64))
def wait_for_the_store_in_another_thread(mended):
    def between(t, a, out):
        if t == (0 if mended else 32):
            tma.cp_async_bulk_wait_group(n=0, read=True)
        cuda.syncthreads()
        put(BUF + 4 * t, 0)

    return stored(between)


@bug(RaceError, "cp_async_bulk_s2g", "still reads it|still use", "is written by", arguments=ints(64))
def wait_for_the_store_leaves_one_group(mended):
    def between(t, a, out):
        if t == 0:
            if mended:
                tma.cp_async_bulk_wait_group(n=0, read=True)
            else:
                tma.cp_async_bulk_wait_group(n=1, read=True)
        cuda.syncthreads()
        put(BUF + 4 * t, 0)

    return stored(between)


@bug(RaceError, "cp_async_bulk_s2g", "is written by|is read by", "nothing orders|still", arguments=ints(64))
def buffer_reused_by_others_before_the_issuer_has_told_them(mended):
    def between(t, a, out):
        if t == 0:
            tma.cp_async_bulk_wait_group(n=0, read=True)
        if mended:
            cuda.syncthreads()
        put(BUF + 4 * t, 0)

    return stored(between)


@bug(RaceError, "global memory out", "cp_async_bulk_s2g", "wait_group", arguments=ints(64))
def stored_result_overwritten_by_threads(mended):
    def between(t, a, out):
        if t == 0:
            if mended:
                tma.cp_async_bulk_wait_group(n=0)
            else:
                tma.cp_async_bulk_wait_group(n=0, read=True)
        cuda.syncthreads()
        out[t] = 0

    return stored(between)


@bug(RaceError, "global memory out", "cp_async_bulk_g2s|cp_async_bulk_s2g", arguments=ints(64))
def stored_result_loaded_again_by_tma(mended):
    def between(t, a, out):
        if t == 0:
            if mended:
                tma.cp_async_bulk_wait_group(n=0)
            else:
                tma.cp_async_bulk_wait_group(n=0, read=True)
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_g2s(OUT, out.ctypes.data, 256, BAR)
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return stored(between)


@bug(RaceError, "global memory out", "nothing orders blocks", "of block (0, 0, 0)", blocks=2, arguments=ints(64))
def blocks_store_to_one_place(mended):
    def kernel(a, out):
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        if t < 32:
            put(BUF + 4 * t, t)
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data + (128 * b if mended else 0), BUF, 128)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    return kernel


@bug(UninitializedReadError, "cp_async_bulk_s2g", "nobody has written it", arguments=ints(64))
def store_of_more_than_was_written(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 32 or mended:
            put(BUF + 4 * t, t)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    return kernel


def loaded(expect=256, nbytes=256, bar=BAR, dst=BUF, src=0, waits=1, arrive=True):
    """Thread 0 loads by a bulk copy; all wait and read."""

    def kernel(a, out):
        fresh(1)
        fresh(1, BAR + 8)
        t = cuda.threadIdx.x
        if t == 0:
            if arrive:
                mbarrier.mbarrier_arrive_expect_tx(BAR, expect)
            else:
                mbarrier.mbarrier_expect_tx(BAR, expect)
            bulk.cp_async_bulk_g2s(dst, a.ctypes.data + src, nbytes, bar)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        out[t] = get(dst + 4 * t)

    return kernel


@bug(DeadlockError, "256 bytes missing", "0 delivered", arguments=ints(64))
def copy_that_signals_another_barrier(mended):
    return loaded() if mended else loaded(bar=BAR + 8)


@bug(DeadlockError, "1 of 1 arrival missing", arguments=ints(64))
def expect_tx_without_an_arrival(mended):
    return loaded() if mended else loaded(arrive=False)


@bug(OutOfBoundsError, "global memory", "beyond the end of a", "cp_async_bulk_g2s", arguments=ints(64))
def bulk_copy_beyond_the_end_of_global_memory(mended):
    return loaded() if mended else loaded(src=16)


@bug(OutOfBoundsError, "shared memory", "cp_async_bulk_g2s", arguments=ints(64))
def bulk_copy_beyond_the_end_of_shared_memory(mended):
    return loaded() if mended else loaded(dst=1024 + 8192 - 128)


@bug(Exception, "cp.async.bulk", "multiple of 16", arguments=ints(64))
def bulk_copy_of_an_odd_number_of_bytes(mended):
    return loaded() if mended else loaded(nbytes=252, expect=252)


@bug(Exception, "cp.async.bulk", "multiple of 16", arguments=ints(68))
def bulk_copy_from_a_misaligned_source(mended):
    return loaded() if mended else loaded(src=4)


@bug(BarrierError, "live mbarrier", "cp_async_bulk_g2s", check=Races, arguments=ints(64))
def bulk_copy_over_its_own_barrier(mended):
    return loaded() if mended else loaded(dst=BAR - 0)


@bug(SimError, "has still to write it|more arrivals|too few bytes|arrives twice", threads=32, arguments=ints(64))
def every_lane_issues_the_copy(mended):
    def kernel(a, out):
        fresh(1)
        t = cuda.threadIdx.x
        if t == 0 or not mended:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


@bug(RaceError, "has still to write it", "cp_async_bulk_g2s", "wait on the barrier", arguments=ints(128))
def two_copies_into_one_buffer(mended):
    def kernel(a, out):
        fresh(1)
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 512)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
            bulk.cp_async_bulk_g2s(BUF + (256 if mended else 128), a.ctypes.data + 256, 256, BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


@bug(SimError, "exit: CTA 0|bytes missing", "cp_async_bulk_g2s|128 bytes", check=Exits, arguments=ints(64))
def exit_before_the_copy_has_landed(mended):
    def kernel(a, out):
        fresh(1)
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
            if mended:
                mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


@bug(
    RaceError, "missing fence.proxy.async", "cp_async_bulk_s2g", "copy_async.cp_async(", threads=32, arguments=ints(128)
)
def tma_store_of_what_cp_async_brought_without_a_proxy_fence(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 16 * t, **cp16)
        copy_async.cp_async_commit_group()
        copy_async.cp_async_wait_group(n=0)
        if mended:
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 512)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    return kernel
