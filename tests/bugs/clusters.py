# SPDX-License-Identifier: Apache-2.0
"""Bugs among the blocks of a cluster: barriers, distributed shared memory, multicast, exits, cancelled launches."""

import numpy as np
from numba import cuda

from numba_cute.isa import atom
from numba_cute.isa.rows import bulk, clc, cluster, fence, mbarrier, memory, sync
from numba_cute.sim import BarrierError, DeadlockError, OutOfBoundsError, RaceError, SimError, UninitializedReadError
from numba_cute.sim.checks.exits import Exits
from numba_cute.sim.checks.initialised import Initialised
from numba_cute.sim.checks.races import Races

from .barriers import ints
from .zoo import BAR, BUF, OUT, bug, fresh, get, put


def meet():
    sync.cluster_arrive()
    sync.cluster_wait()


meet = cuda.jit(device=True)(meet)


def pair(error, *words, n=64, **more):
    return bug(error, *words, blocks=2, cluster=2, arguments=ints(n), **more)


@pair(RaceError, "memory.st(", "is read by|read it", "put a barrier between them|nothing orders")
def cluster_barrier_between_write_and_read_left_out(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        meet()
        memory.st(cluster.mapa(BUF + 4 * t, 1 - rank), [t], space="dsmem", width=32)
        if mended:
            meet()
        else:
            cuda.syncthreads()
        if rank == 0:
            out[t] = get(BUF + 4 * t)
        meet()

    return kernel


@pair(RaceError, "put, in store", "memory.ld(", "is read by|read it")
def peers_memory_read_before_the_peer_has_written_it(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        if not mended:
            meet()
        put(BUF + 4 * t, t)
        if mended:
            meet()
        if rank == 0:
            out[t] = memory.ld(cluster.mapa(BUF + 4 * t, 1), space="dsmem", width=32)
        meet()

    return kernel


@pair(RaceError, "put, in store", "memory.ld(", "is read by|read it|is written by")
def relaxed_arrival_for_data(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        put(BUF + 4 * t, t)
        if mended:
            sync.cluster_arrive()
        else:
            sync.cluster_arrive(sem="relaxed")
        sync.cluster_wait()
        if rank == 0:
            out[t] = memory.ld(cluster.mapa(BUF + 4 * t, 1), space="dsmem", width=32)
        meet()

    return kernel


@pair(RaceError, "exit: CTA 1", "memory.ld(", "cluster_arrive and cluster_wait at the end", check=Exits)
def exit_while_a_peer_reads_here(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        put(BUF + 4 * t, t)
        meet()
        if rank == 0:
            out[t] = memory.ld(cluster.mapa(BUF + 4 * t, 1), space="dsmem", width=32)
        if mended:
            meet()

    return kernel


@pair(RaceError, "exit: CTA 1", "memory.ld(", "cluster_arrive and cluster_wait at the end", check=Exits)
def exit_long_before_a_peer_reads_here(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        put(BUF + 4 * t, t)
        meet()
        if rank == 0:
            for _ in range(50):
                cuda.syncthreads()
            out[t] = memory.ld(cluster.mapa(BUF + 4 * t, 1), space="dsmem", width=32)
        if mended:
            meet()

    return kernel


@pair(SimError, "exit: CTA 1", "mbarrier_arrive", check=Exits)
def arrival_at_a_peer_that_may_have_exited(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        fresh(1)
        meet()
        if rank == 0 and t == 0:
            mbarrier.mbarrier_arrive(cluster.mapa(BAR, 1), space="cluster")
        if rank == 1 and mended:
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


def multicast(*missing):
    """Block 0 copies to both; each waits for its own part."""

    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        fresh(1)
        if "meet" not in missing:
            meet()
        if t == 0 and "expect" not in missing or t == 0 and rank == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 128 if "half" in missing else 256)
        if "expected" in missing:
            meet()
        if t == 0 and rank == 0:
            mask = 1 if "mask" in missing else 3
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR, mask)
        if "wait" not in missing or rank == 0:
            mbarrier.mbarrier_wait_parity(BAR, 0)
            out[64 * rank + t] = get(BUF + 4 * t)
        if "end" in missing:
            return

    return kernel


@pair(SimError, "has started|is not initialised|nothing orders", "cluster", check=Initialised, n=128)
def multicast_before_the_peers_barrier_is_made(mended):
    return multicast() if mended else multicast("meet")


@pair(DeadlockError, "256 bytes missing", "0 delivered", n=128)
def multicast_mask_without_the_peer(mended):
    return multicast() if mended else multicast("mask")


@pair(DeadlockError, "CTA 1", "1 of 1 arrival missing", n=128)
def peer_of_a_multicast_that_expects_nothing(mended):
    return multicast() if mended else multicast("expect")


@pair(SimError, "too few bytes announced|128 bytes too many|has still to write it", n=128)
def multicast_bytes_of_one_block(mended):
    return multicast() if mended else multicast("half")


@pair(SimError, "exit: CTA 1|bytes missing", "cp_async_bulk_g2s|256 bytes", check=Exits, n=128)
def peer_of_a_multicast_that_exits_without_waiting(mended):
    return multicast() if mended else multicast("wait")


def multicast_ring(release):
    """Block 0 fills one stage of both blocks again and again; `release` says who frees it where."""
    full, empty = BAR, BAR + 8

    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        if t == 0:
            mbarrier.mbarrier_init(full, 1)
            mbarrier.mbarrier_init(empty, 2 if release == "both" else 1)
            fence.fence_mbarrier_init()
        meet()
        for i in range(3):
            if t == 0:
                mbarrier.mbarrier_arrive_expect_tx(full, 128)
                if rank == 0:
                    if release != "nobody":
                        mbarrier.mbarrier_wait_parity(empty, i & 1 ^ 1)
                    bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 128, full, 3)
            if t < 32:
                mbarrier.mbarrier_wait_parity(full, i & 1)
                out[32 * rank + t] = get(BUF + 4 * t)
                sync.bar_warp_sync()
                if t == 0 and (rank == 0 or release == "both"):
                    mbarrier.mbarrier_arrive(cluster.mapa(empty, 0), space="cluster")
        meet()

    return kernel


@pair(SimError, "cp_async_bulk_g2s|more arrivals", "CTA 1|is written by|is read by|too few bytes", check=Races)
def multicast_over_a_stage_that_the_peer_still_reads(mended):
    return multicast_ring("both" if mended else "own")


@pair(BarrierError, "barrier.cluster", "arrives twice")
def two_cluster_arrivals_in_a_row(mended):
    def kernel(a, out):
        sync.cluster_arrive()
        if not mended:
            sync.cluster_arrive()
        sync.cluster_wait()

    return kernel


@pair(DeadlockError, "barrier.cluster", "missing: warp 1")
def cluster_barrier_that_one_warp_skips(mended):
    def kernel(a, out):
        fresh(1)
        if mended or cuda.threadIdx.x < 32:
            meet()
        else:
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


@pair(DeadlockError, "cluster_arrive", "lanes 0-15|lanes 16-31")
def cluster_barrier_in_a_branch_of_a_warp(mended):
    def kernel(a, out):
        if mended or cuda.threadIdx.x % 32 < 16:
            meet()

    return kernel


@pair(UninitializedReadError, "CTA 1", "memory.ld(", "nobody has written it")
def peers_memory_that_nobody_wrote(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        if rank == 0 or mended:
            put(BUF + 4 * t, t)
        meet()
        if rank == 0:
            out[t] = memory.ld(cluster.mapa(BUF + 4 * t, 1), space="dsmem", width=32)
        meet()

    return kernel


@pair(OutOfBoundsError, "shared memory", "accesses 4 bytes")
def peers_memory_beyond_its_end(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        meet()
        at = BUF if mended else 1024 + 8192
        memory.st(cluster.mapa(at + 4 * t, 1 - rank), [t], space="dsmem", width=32)
        meet()

    return kernel


@pair(RaceError, "missing fence.proxy.async", "cp_async_bulk_s2s", n=128)
def copy_to_a_peer_of_what_threads_wrote_without_a_proxy_fence(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        fresh(1)
        put(BUF + 4 * t, t)
        if mended:
            fence.fence_proxy_async(space="shared::cta")
        meet()
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_s2s(cluster.mapa(OUT, 1 - rank), BUF, 256, cluster.mapa(BAR, 1 - rank))
        mbarrier.mbarrier_wait_parity(BAR, 0)
        out[64 * rank + t] = get(OUT + 4 * t)
        meet()

    return kernel


@pair(SimError, "cp_async_bulk_s2s", "exit: CTA|still", check=Exits, n=128)
def exit_while_the_copy_to_a_peer_reads(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        fresh(1)
        put(BUF + 4 * t, t)
        fence.fence_proxy_async(space="shared::cta")
        meet()
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            bulk.cp_async_bulk_s2s(cluster.mapa(OUT, 1 - rank), BUF, 256, cluster.mapa(BAR, 1 - rank))
        mbarrier.mbarrier_wait_parity(BAR, 0)
        out[64 * rank + t] = get(OUT + 4 * t)
        if mended:
            meet()

    return kernel


@pair(RaceError, "CTA scope", "mbarrier_wait_parity|acquire.cluster")
def waiting_at_cta_scope_for_a_peers_data(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        fresh(1)
        meet()
        if t == 0:
            memory.st(cluster.mapa(BUF, 1 - rank), [rank], space="dsmem", width=32)
            mbarrier.mbarrier_arrive(cluster.mapa(BAR, 1 - rank), space="cluster")
            if mended:
                mbarrier.mbarrier_wait_parity(BAR, 0, scope="cluster")
            else:
                mbarrier.mbarrier_wait_parity(BAR, 0)
            out[rank] = get(BUF)
        meet()

    return kernel


# ---------------------------------------------------------------- cancelled launches


def persistent(*missing):
    """One block does the work of those that it takes over."""

    def kernel(out):
        t = cuda.threadIdx.x
        fresh(1)
        block, phase = cuda.blockIdx.x, 0
        work = True
        while work:
            if t == 0:
                if "expect" not in missing:
                    mbarrier.mbarrier_arrive_expect_tx(BAR, 16)
                clc.clc_try_cancel(BUF, BAR)
            out[block, t] = 1
            if "wait" not in missing:
                mbarrier.mbarrier_wait_parity(BAR, phase)
            x, _, _, valid = clc.clc_query(BUF)
            if "proxy fence" not in missing:
                fence.fence_proxy_async(space="shared::cta")
            if "barrier" not in missing:
                cuda.syncthreads()
            phase ^= 1
            block, work = x, valid
        if "again" in missing:
            if t == 0:
                mbarrier.mbarrier_arrive_expect_tx(BAR, 16)
                clc.clc_try_cancel(BUF, BAR)
            mbarrier.mbarrier_wait_parity(BAR, phase)

    return kernel


def clc_bug(error, *words, **more):
    return bug(error, *words, blocks=4, arch="sm_100a", arguments=lambda: (np.zeros((4, 64), np.int32),), **more)


@clc_bug(SimError, "clc_query|clc_try_cancel", "has still to write it|nothing orders", check=Races)
def response_read_before_it_has_come(mended):
    return persistent() if mended else persistent("wait")


@clc_bug(DeadlockError, "1 of 1 arrival missing", "too many")
def response_that_nobody_expects(mended):
    return persistent() if mended else persistent("expect")


@clc_bug(
    SimError,
    "clc_try_cancel|whole phase late",
    "is written by|is read by|whole phase late|still",
    "clc_query|phase",
    check=Races,
)
def response_overwritten_before_all_have_read_it(mended):
    return persistent() if mended else persistent("barrier")


@clc_bug(SimError, "clc_try_cancel", "none was left", check=Races)
def another_request_after_none_was_left(mended):
    return persistent() if mended else persistent("again")


# ---------------------------------------------------------------- atomics and arrivals in a peer's memory


@pair(DeadlockError, "CTA 1", "1 of 1 arrival missing", "arrived at the same address of its own CTA", "needs mapa")
def arrival_meant_for_a_peer_without_mapa(mended):
    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        fresh(1)
        meet()
        if t == 0 and rank == 0:
            mbarrier.mbarrier_arrive(cluster.mapa(BAR, 1) if mended else BAR, space="cluster")
        if rank == 1:
            mbarrier.mbarrier_wait_parity(BAR, 0, scope="cluster")
        meet()

    return kernel


def tallied(scope="cluster", together=True):
    """All threads of both blocks count in block 0's memory, whose thread 0 reads the sum."""

    def kernel(a, out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        if t == 0:
            put(BUF, 0)
        meet()
        atom(cluster.mapa(BUF, 0), 1, op="add", type="u32", sem="relaxed", scope=scope, space="dsmem")
        if together:
            meet()
        else:
            cuda.syncthreads()
        if rank == 0 and t == 0:
            out[0] = get(BUF)
        meet()

    return kernel


@pair(RaceError, "atom(", "is read by|read it", "CTA 1", "cluster_arrive and cluster_wait")
def tally_of_a_cluster_read_after_a_barrier_of_one_block(mended):
    return tallied(together=mended)


@pair(RaceError, "atom(", "atomics (scope cta)", "not one step for each other")
def tally_of_a_cluster_at_block_scope(mended):
    return tallied("cluster" if mended else "cta")
