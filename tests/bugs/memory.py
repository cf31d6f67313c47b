# SPDX-License-Identifier: Apache-2.0
"""Bugs of memory: what is not yet written, still being read, in the wrong proxy or scope, or another block's."""

import numba
import numpy as np
from numba import cuda

from numba_cute.isa.rows import bulk, cluster, fence, matrix, mbarrier, memory, sync, tma
from numba_cute.sim import OutOfBoundsError, RaceError, SimError, UninitializedReadError
from numba_cute.sim.checks.exits import Exits, ExitStores
from numba_cute.sim.checks.races import Races

from .barriers import ints
from .zoo import BAR, BUF, OUT, bug, fresh, get, put


@bug(
    RaceError,
    "missing fence.proxy.async",
    "put, in store, called at tests/bugs/memory.py",
    "cp_async_bulk_s2g",
    "fence_proxy(",
    arguments=lambda: (np.zeros(64, np.int32),),
    origin="flashkda#24",
)
def tma_store_without_a_proxy_fence(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        if mended:
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0, read=True)

    return kernel


def store(fence_first=True, barrier=True, commit=True, wait=True, then="nothing", full=False):
    """All threads write, thread 0 stores by TMA; then the buffer or the result is used."""

    def kernel(out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        if fence_first:
            fence.fence_proxy_async(space="shared::cta")
        if barrier:
            cuda.syncthreads()
        if not fence_first:
            fence.fence_proxy_async(space="shared::cta")
        if t == 0:
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
            if commit:
                tma.cp_async_bulk_commit_group()
            if wait and full:
                tma.cp_async_bulk_wait_group(n=0)
            elif wait:
                tma.cp_async_bulk_wait_group(n=0, read=True)
        cuda.syncthreads()
        if then == "write":
            put(BUF + 4 * t, 0)
        if then == "read":
            out[64 + t] = out[t]

    return kernel


def results():
    return (np.zeros(128, np.int32),)


@bug(
    RaceError,
    "is read by cp_async_bulk_s2g|cp_async_bulk_s2g issued",
    "put, in store",
    "nothing orders|still reads it",
    arguments=results,
)
def tma_store_without_a_barrier(mended):
    return store(barrier=mended)


@bug(RaceError, "missing fence.proxy.async", arguments=results)
def proxy_fence_after_the_barrier_in_the_writers(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        if mended:
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t != 0:
            fence.fence_proxy_async(space="shared::cta")
        else:
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0, read=True)

    return kernel


@bug(RaceError, "still reads it", "cp.async.bulk.wait_group.read", "is written by", arguments=results)
def buffer_reused_while_a_store_reads_it(mended):
    return store(wait=mended, then="write")


@bug(RaceError, "still reads it", "commit it", arguments=results)
def store_that_is_never_committed(mended):
    return store(commit=mended, then="write")


@bug(RaceError, "global memory out", "out[64 + t] = out[t]", "cp.async.bulk.wait_group", arguments=results)
def result_of_a_store_read_after_wait_group_read_only(mended):
    return store(full=mended, then="read")


@bug(
    RaceError,
    "exit: CTA 0",
    "cp_async_bulk_s2g",
    "may still use its shared memory",
    "wait_group.read 0",
    check=ExitStores,
    arguments=results,
)
def exit_while_a_store_reads(mended):
    return store(wait=mended)


def pipeline(wait=True, release=True):
    """Thread 0 copies rounds into two stages; warp 1 reads them."""

    def kernel(a, out):
        t = cuda.threadIdx.x
        if t == 0:
            for s in range(2):
                mbarrier.mbarrier_init(BAR + 8 * s, 1)
                mbarrier.mbarrier_init(BAR + 16 + 8 * s, 32)
            fence.fence_mbarrier_init()
        cuda.syncthreads()
        for i in range(6):
            s, phase = i % 2, i // 2 & 1
            if t == 0:
                if release:
                    mbarrier.mbarrier_wait_parity(BAR + 16 + 8 * s, phase ^ 1)
                mbarrier.mbarrier_arrive_expect_tx(BAR + 8 * s, 128)
                bulk.cp_async_bulk_g2s(BUF + 128 * s, a.ctypes.data + 128 * i, 128, BAR + 8 * s)
            elif t >= 32:
                if wait:
                    mbarrier.mbarrier_wait_parity(BAR + 8 * s, phase)
                out[32 * i + t - 32] = get(BUF + 128 * s + 4 * (t - 32))
                mbarrier.mbarrier_arrive(BAR + 16 + 8 * s)
        if t == 0:
            for s in range(2):
                mbarrier.mbarrier_wait_parity(BAR + 8 * s, 0)

    return kernel


@bug(
    RaceError,
    "is read by|read it at",
    "cp_async_bulk_g2s",
    "wait on the barrier",
    arguments=ints(192),
    origin="cutracer#106",
)
def data_used_without_waiting_for_the_copy(mended):
    return pipeline(wait=mended)


@bug(SimError, "is written by cp_async_bulk_g2s|more arrivals", "cp_async_bulk_g2s|expect_tx", arguments=ints(192))
def stage_filled_again_before_it_is_released(mended):
    return pipeline(release=mended)


@bug(RaceError, "missing fence.proxy.async", "is written through the async proxy", arguments=ints(64))
def copy_over_what_threads_wrote(mended):
    def kernel(a, out):
        fresh(1)
        t = cuda.threadIdx.x
        put(BUF + 4 * t, 0)
        if mended:
            fence.fence_proxy_async()
        cuda.syncthreads()
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        out[t] = get(BUF + 4 * t)

    return kernel


@bug(RaceError, "missing fence.proxy.async", "global memory a", "cp_async_bulk_g2s", arguments=ints(64))
def global_memory_written_then_copied_without_a_proxy_fence(mended):
    def kernel(a, out):
        fresh(1)
        t = cuda.threadIdx.x
        a[t] = 2 * t
        if mended:
            fence.fence_proxy_async()
        else:
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        out[t] = get(BUF + 4 * t)

    return kernel


# ---------------------------------------------------------------- threads


@bug(
    RaceError,
    "is read by|read it at",
    "wrote it|is written by",
    "cuda.shared.array",
    "cuda.syncthreads()",
    arguments=ints(64),
)
def shared_array_read_without_syncthreads(mended):
    def kernel(a, out):
        tile = cuda.shared.array(64, numba.int32)
        t = cuda.threadIdx.x
        tile[t] = a[t]
        if mended:
            cuda.syncthreads()
        out[t] = tile[63 - t]

    return kernel


@bug(RaceError, "tile[t] = a[t] + i", "tile[63 - t]", arguments=ints(64))
def shared_array_overwritten_while_others_read(mended):
    def kernel(a, out):
        tile = cuda.shared.array(64, numba.int32)
        t = cuda.threadIdx.x
        for i in range(2):
            tile[t] = a[t] + i
            cuda.syncthreads()
            out[t] += tile[63 - t]
            if mended:
                cuda.syncthreads()

    return kernel


@bug(RaceError, "is read by|read it", "cuda.syncwarp()", threads=32, arguments=ints(32))
def lanes_of_a_warp_without_syncwarp(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        if mended:
            cuda.syncwarp()
        out[t] = get(BUF + 4 * (t ^ 1))

    return kernel


@bug(RaceError, "is read by ldmatrix", "put, in store", "cuda.syncwarp()", threads=32)
def ldmatrix_without_syncwarp(mended):
    def kernel():
        t = cuda.threadIdx.x
        for i in range(4):
            put(BUF + 4 * (t + 32 * i), i)
        if mended:
            sync.bar_warp_sync()
        matrix.ldmatrix(addr=BUF + 16 * t, num=1, trans=False)

    return kernel


@bug(UninitializedReadError, "nobody has written it", "get, in load, called at", arguments=ints(64))
def shared_memory_that_nobody_wrote(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        cuda.syncthreads()
        if t == 0:
            out[0] = get(BUF + 252) if mended else get(BUF + 256)

    return kernel


@bug(RaceError, "global memory out", "nothing orders blocks of a grid", "cuda.atomic", blocks=2, arguments=ints(64))
def blocks_add_to_one_element(mended):
    def kernel(a, out):
        if cuda.threadIdx.x == 0:
            if mended:
                cuda.atomic.add(out, 0, 1)
            else:
                out[0] += 1

    return kernel


def last_block():
    return np.zeros(4, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)


@bug(RaceError, "global memory parts", "nothing orders blocks", blocks=4, threads=32, arguments=last_block)
def last_block_reads_the_others_without_threadfence(mended):
    def kernel(parts, done, out):
        b = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            parts[b] = b + 1
            if mended:
                cuda.threadfence()
            if cuda.atomic.add(done, 0, 1) == 3:
                if mended:
                    cuda.threadfence()
                out[0] = parts[0] + parts[1] + parts[2] + parts[3]

    return kernel


@bug(OutOfBoundsError, "of an array of shape (64,)", "out[t] = 1", check=Races, threads=96, arguments=ints(64))
def index_beyond_the_end(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if not mended or t < 64:
            out[t] = 1

    return kernel


# ---------------------------------------------------------------- clusters


@bug(OutOfBoundsError, "CTA 2 is outside the cluster", blocks=2, cluster=2, arguments=ints(64), origin="cutlass#3658")
def multicast_to_a_block_outside_the_cluster(mended):
    def kernel(a, out):
        fresh(1)
        sync.cluster_arrive()
        sync.cluster_wait()
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            if cuda.blockIdx.x == 0:
                bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR, 3 if mended else 5)
            mbarrier.mbarrier_wait_parity(BAR, 0)
        sync.cluster_arrive()
        sync.cluster_wait()

    return kernel


@bug(
    RaceError,
    "CTA scope",
    "mbarrier_arrive",
    "memory.st(",
    blocks=2,
    cluster=2,
    arguments=ints(2),
    origin="cutlass#3643",
)
def peer_signalled_at_cta_scope(mended):
    def kernel(a, out):
        fresh(1)
        sync.cluster_arrive()
        sync.cluster_wait()
        rank = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            memory.st(cluster.mapa(BUF, 1 - rank), [100 + rank], space="dsmem", width=32)
            if mended:
                mbarrier.mbarrier_arrive(cluster.mapa(BAR, 1 - rank), space="cluster")
                mbarrier.mbarrier_wait_parity(BAR, 0, scope="cluster")
            else:
                mbarrier.mbarrier_arrive(cluster.mapa(BAR, 1 - rank), space="cluster", scope="cta")
                mbarrier.mbarrier_wait_parity(BAR, 0)
            out[rank] = get(BUF)

    return kernel


@bug(
    RaceError,
    "is read by|read it",
    "memory.st(",
    blocks=2,
    cluster=2,
    arguments=ints(2),
    origin="cutlass#3324",
)
def peers_data_that_is_never_waited_for(mended):
    def kernel(a, out):
        rank = cuda.blockIdx.x
        put(BUF, 0) if cuda.threadIdx.x == 0 else None
        sync.cluster_arrive()
        sync.cluster_wait()
        if cuda.threadIdx.x == 0:
            memory.st(cluster.mapa(BUF, 1 - rank), [100 + rank], space="dsmem", width=32)
        if mended:
            sync.cluster_arrive()
            sync.cluster_wait()
        if cuda.threadIdx.x == 0:
            out[rank] = get(BUF)
        sync.cluster_arrive()
        sync.cluster_wait()

    return kernel


@bug(RaceError, "has started", "cluster_wait", blocks=2, cluster=2, arguments=ints(2))
def peers_memory_used_before_it_has_started(mended):
    def kernel(a, out):
        rank = cuda.blockIdx.x
        if mended:
            sync.cluster_arrive()
            sync.cluster_wait()
        if cuda.threadIdx.x == 0:
            memory.st(cluster.mapa(OUT, 1 - rank), [rank], space="dsmem", width=32)
        sync.cluster_arrive()
        sync.cluster_wait()

    return kernel


@bug(
    RaceError,
    "exit: CTA",
    "may still access its shared memory",
    "cluster_arrive",
    check=Exits,
    blocks=2,
    cluster=2,
    arguments=ints(2),
)
def exit_while_a_peer_writes_here(mended):
    def kernel(a, out):
        rank = cuda.blockIdx.x
        sync.cluster_arrive()
        sync.cluster_wait()
        if cuda.threadIdx.x == 0:
            memory.st(cluster.mapa(OUT, 1 - rank), [rank], space="dsmem", width=32)
        if mended:
            sync.cluster_arrive()
            sync.cluster_wait()

    return kernel


@bug(RaceError, "st_async", "wait on the barrier", blocks=2, cluster=2, arguments=ints(2))
def st_async_that_is_not_waited_for(mended):
    def kernel(a, out):
        fresh(1)
        sync.cluster_arrive()
        sync.cluster_wait()
        rank, t = cuda.blockIdx.x, cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 4)
            cluster.st_async(cluster.mapa(BUF, 1 - rank), [7], cluster.mapa(BAR, 1 - rank))
            if mended:
                mbarrier.mbarrier_wait_parity(BAR, 0)
            out[rank] = get(BUF)
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel
