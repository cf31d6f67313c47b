# SPDX-License-Identifier: Apache-2.0
"""Bugs between ranks: flags in a peer's memory, their fences and scopes, copies to peers, waits for ranks."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.isa.rows import bulk, fence, tma
from numba_cute.runtime import from_multicast, from_symmetric
from numba_cute.sim import DeadlockError, OutOfBoundsError, PerRank, RaceError, UninitializedReadError, symmetric
from numba_cute.utils import distributed

from .zoo import BUF, bug, fresh, get, put

N = 32


def given(ranks, *shapes, dtype=cute.Int32):
    """The rank, how many there are, and for each shape symmetric memory as a tensor of all ranks'."""

    def arguments():
        made = [from_symmetric(symmetric(shape, dtype, ranks)) for shape in shapes]
        return PerRank(*range(ranks)), ranks, *made

    return arguments


def between(error, *words, ranks=2, shapes=(N, 4, N), **more):
    more.setdefault("arguments", given(ranks, *shapes))
    return bug(error, *words, ranks=ranks, threads=N, **more)


def raised(flags, to, at=0, value=1, sem="release", scope="sys"):
    arch.store(flags[None, to].iterator + at, cute.Int32(value), sem=sem, scope=scope)


def awaited(flags, rank, at=0, value=1, sem="acquire", scope="sys"):
    while arch.load(flags[None, rank].iterator + at, cute.Int32, sem=sem, scope=scope) < value:
        pass


def handed_over(*, sem="release", acquire="acquire", store="sys", load="sys", system=None):
    """Each rank writes to the next one's memory, raises a flag there, waits for its own, and reads. system: the fence
    that each thread executes after it has written: of system scope, of GPU scope (False), or none."""

    def kernel(rank, ranks, data, flags, out):
        t, to = cuda.threadIdx.x, (rank + 1) % ranks
        data[t, to] = rank + t
        if cute.const_expr(system is not None):
            if cute.const_expr(system):
                cuda.threadfence_system()
            else:
                cuda.threadfence()
        cuda.syncthreads()
        if t == 0:
            raised(flags, to, sem=sem, scope=store)
            awaited(flags, rank, sem=acquire, scope=load)
        cuda.syncthreads()
        out[t, rank] = data[t, rank]

    return kernel


@between(RaceError, "global memory", "of rank 1", "which told this rank, releases nothing", 'scope="sys"')
def a_peers_flag_that_is_raised_without_a_system_fence(mended):
    return handed_over(sem="relaxed", system=True if mended else None)


@between(RaceError, "released it at a scope that does not reach rank", "cuda.threadfence_system()", ranks=4)
def a_peers_flag_that_is_raised_after_a_fence_of_gpu_scope(mended):
    return handed_over(sem="relaxed", system=mended)


@between(RaceError, "gpu scope does not reach rank", 'use scope="sys"')
def a_peers_flag_that_is_stored_at_gpu_scope(mended):
    return handed_over(store="sys" if mended else "gpu")


@between(RaceError, "gpu scope does not reach rank", 'use scope="sys"')
def a_peers_flag_that_is_read_at_gpu_scope(mended):
    return handed_over(load="sys" if mended else "gpu")


@between(RaceError, "released it, but the atomic at", "acquires nothing", "threadfence_system")
def a_peers_flag_that_is_read_without_acquire(mended):
    return handed_over(acquire="acquire" if mended else "relaxed")


@between(RaceError, "of rank", "gpu scope does not reach rank", 'use scope="sys"', ranks=4)
def a_counter_of_all_ranks_at_gpu_scope(mended):
    def kernel(rank, ranks, data, flags, out):
        if cuda.threadIdx.x == 0:
            arch.atomic_add(flags[None, 0].iterator, 1, sem="relaxed", scope="sys" if mended else "gpu")

    return kernel


@between(RaceError, "gpu scope does not reach rank", 'use scope="sys"')
def a_peers_counter_by_numbas_atomics(mended):
    """They are of GPU scope."""

    def kernel(rank, ranks, data, flags, out):
        if cuda.threadIdx.x == 0:
            if cute.const_expr(mended):
                arch.atomic_add(flags[None, 0].iterator, 1, scope="sys")
            else:
                cuda.atomic.add(flags, (0, 0), 1)

    return kernel


@between(RaceError, "of rank 0", "nothing orders rank", ranks=4)
def two_ranks_that_write_the_same_element(mended):
    def kernel(rank, ranks, data, flags, out):
        t = cuda.threadIdx.x
        if t < 8:
            data[8 * rank + t if cute.const_expr(mended) else t, 0] = rank

    return kernel


@between(RaceError, "is read by|is written by", "nothing orders rank", "of rank", "nothing orders rank", ranks=4)
def a_wait_for_the_wrong_rank(mended):
    def kernel(rank, ranks, data, flags, out):
        t, to = cuda.threadIdx.x, (rank + 1) % ranks
        data[t, to] = rank
        cuda.syncthreads()
        if t == 0:
            for r in range(ranks):
                raised(flags, r, at=rank)
            awaited(flags, rank, at=(rank - 1) % ranks if cute.const_expr(mended) else (rank + 1) % ranks)
        cuda.syncthreads()
        out[t, rank] = data[t, rank]

    return kernel


# copies


def sent(copy, *, whole=True):
    """Each rank copies 128 bytes of shared memory to the next by `copy(to)`, then raises a flag."""

    def kernel(rank, ranks, data, flags, out):
        t, to = cuda.threadIdx.x, (rank + 1) % ranks
        put(BUF + 4 * t, rank + t)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            copy(data, rank, to)
            tma.cp_async_bulk_commit_group()
            if cute.const_expr(whole):
                tma.cp_async_bulk_wait_group(n=0)
            else:
                tma.cp_async_bulk_wait_group(n=0, read=True)
            raised(flags, to)
            awaited(flags, rank)
        cuda.syncthreads()
        out[t, rank] = data[t, rank]

    copy = cuda.jit(device=True)(copy)
    return kernel


def to_next(data, rank, to):
    bulk.cp_async_bulk_s2g(data[None, to].iterator.toint(), BUF, 128)


@between(
    RaceError, "cp_async_bulk_s2g", "nothing orders rank|before the copy was known", "(not only .read)|read it at",
    "of rank",
)  # fmt: skip
def a_flag_that_is_raised_when_a_copy_to_a_peer_has_only_read(mended):
    return sent(to_next, whole=mended)


@between(RaceError, "cp_reduce_async_bulk", "gpu scope", "PTX ISA", shapes=(2 * N, 4, N))
def two_ranks_that_add_to_one_place_by_bulk_copies(mended):
    def kernel(rank, ranks, data, flags, out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, rank + t)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            at = data[None, 0].iterator + (rank * N if cute.const_expr(mended) else 0)
            bulk.cp_reduce_async_bulk_s2g(at.toint(), BUF, 128, op="add", type="s32")
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    return kernel


@between(RaceError, "missing fence.proxy.async", "of rank", ", block (0, 0, 0) wrote it with the generic proxy")
def a_copy_of_what_a_peer_wrote_without_a_proxy_fence(mended):
    def kernel(rank, ranks, data, flags, out):
        t, to = cuda.threadIdx.x, (rank + 1) % ranks
        fresh(1)
        data[t, to] = rank + t
        if cute.const_expr(mended):
            fence.fence_proxy_async(space="global")
        cuda.syncthreads()
        if t == 0:
            raised(flags, to)
            awaited(flags, rank)
            if cute.const_expr(mended):
                fence.fence_proxy_async(space="global")
            fetched(data[None, rank].iterator.toint())
        cuda.syncthreads()
        out[t, rank] = get(BUF + 4 * t)

    return kernel


@cuda.jit(device=True)
def fetched(address):
    from_here = 1024
    arch.mbarrier_arrive_and_expect_tx(cute.make_ptr(cute.Int64, from_here, cute.AddressSpace.smem), 128)
    bulk.cp_async_bulk_g2s(BUF, address, 128, from_here)
    arch.mbarrier_wait(cute.make_ptr(cute.Int64, from_here, cute.AddressSpace.smem), 0)


# waits


def signals(ranks, slots=1):
    def arguments():
        flags = from_symmetric(symmetric((slots + 1, ranks), cute.Int32, ranks))
        return PerRank(*range(ranks)), PerRank(*(distributed.Signals(flags, r) for r in range(ranks)))

    return arguments


@between(
    DeadlockError, "cycle: rank 0 waits for rank 1 waits for rank 0", "rank 0 waits for signals of rank 0",
    "that rank 1 has not set: rank 1 waits too", arguments=signals(2),
)  # fmt: skip
def two_ranks_that_each_wait_first(mended):
    def kernel(rank, signals):
        if cuda.threadIdx.x == 0:
            other = 1 - rank
            if cute.const_expr(mended):
                signals.put(other, 0, 1)
                signals.wait(other, 0, 1)
            else:
                signals.wait(other, 0, 1)
                signals.put(other, 0, 1)
        cuda.syncthreads()

    return kernel


@between(DeadlockError, "that rank 2 has not set: rank 2 has ended", ranks=4, arguments=signals(4))
def a_rank_that_ends_without_a_signal(mended):
    def kernel(rank, signals):
        if cuda.threadIdx.x == 0:
            if rank != 2 or cute.const_expr(mended):
                for r in range(4):
                    if r != rank:
                        signals.put(r, 0, 1)
            if rank != 2:
                signals.wait(2, 0, 1)
        cuda.syncthreads()

    return kernel


@between(DeadlockError, "rank 1 waits for flags of rank 1", "that no rank sets any more: rank 0 has ended", ranks=4)
def a_flag_that_no_rank_raises(mended):
    def kernel(rank, ranks, data, flags, out):
        if cuda.threadIdx.x == 0:
            if rank == 0:
                if cute.const_expr(mended):
                    raised(flags, 1, value=2)
            if rank == 1:
                while arch.load(flags[None, 1].iterator, cute.Int32, sem="acquire", scope="sys") != 2:
                    pass

    return kernel


@between(OutOfBoundsError, "waits for rank", "the launch has 4 ranks", ranks=4, arguments=signals(4))
def a_wait_for_a_rank_that_is_none(mended):
    def kernel(rank, signals):
        if cuda.threadIdx.x == 0:
            to = (rank + 1) % 4
            signals.put(to, 0, 1)
            signals.wait((rank + 3) % 4 if cute.const_expr(mended) else rank + 4, 0, 1)

    return kernel


def data_and_signals(ranks):
    def arguments():
        data, out = (from_symmetric(symmetric(2 * N, cute.Int32, ranks)) for _ in range(2))
        return (*signals(ranks, 2)(), data, out)

    return arguments


@between(
    RaceError, "is read by|is written by", "nothing orders rank",
    "each use of the memory needs a flag, or an epoch, of its own", ranks=4, arguments=data_and_signals(4),
)  # fmt: skip
def an_epoch_that_is_used_again(mended):
    def kernel(rank, signals, data, out):
        t, to = cuda.threadIdx.x, (rank + 1) % 4
        for i in range(2):
            data[2 * t + i, to] = rank + i
            cuda.syncthreads()
            if t == 0:
                epoch = i + 1 if cute.const_expr(mended) else 1
                signals.put(to, 0, epoch)
                signals.wait((rank + 3) % 4, 0, epoch)
            cuda.syncthreads()
            out[t, rank] = data[2 * t + i, rank]

    return kernel


@between(RaceError, "is read by|is written by", "nothing orders rank", ranks=4, arguments=data_and_signals(4))
def a_buffer_that_is_filled_again_before_its_rank_has_read_it(mended):
    """The next rank's signal says that it may be filled again, without which a fast rank overtakes a slow one."""

    def kernel(rank, signals, data, out):
        t, to, before = cuda.threadIdx.x, (rank + 1) % 4, (rank + 3) % 4
        for i in range(2):
            data[t, to] = rank + i
            cuda.syncthreads()
            if t == 0:
                signals.put(to, 0, i + 1)
                signals.wait(before, 0, i + 1)
            cuda.syncthreads()
            out[t, rank] = data[t, rank]
            cuda.syncthreads()
            if t == 0 and cute.const_expr(mended):
                signals.put(before, 1, i + 1)
                signals.wait(to, 1, i + 1)
            cuda.syncthreads()

    return kernel


# memory


def alone():
    x = [np.zeros(N, np.int32) for _ in range(2)]
    addresses = [a.ctypes.data for a in x]
    return PerRank(0, 1), PerRank(*x), PerRank(*addresses), PerRank(*reversed(addresses))


@between(OutOfBoundsError, "x of rank 1 + 0 bytes", "memory of rank 1 alone", "from_symmetric", arguments=alone)
def a_peers_memory_that_is_not_symmetric(mended):
    def kernel(rank, x, own, other):
        if rank == 0 and cuda.threadIdx.x == 0:
            cute.make_ptr(cute.Int32, own if cute.const_expr(mended) else other, cute.AddressSpace.gmem).store(1)

    return kernel


def by_multicast():
    x = symmetric(N, cute.Float32, 4)
    return PerRank(*range(4)), from_symmetric(x), from_multicast(x, assumed_align=16)


@between(OutOfBoundsError, "the multicast mapping of x", "only multimem instructions", ranks=4, arguments=by_multicast)
def an_ordinary_store_to_a_multicast_mapping(mended):
    def kernel(rank, x, all_of_it):
        t = cuda.threadIdx.x
        if rank == 0 and t < 8:
            at = all_of_it.iterator + 4 * t
            if cute.const_expr(mended):
                distributed.multimem_st_4xb32(at, 1, 2, 3, 4)
            else:  # by its number: of the pointer itself it is refused before anything runs
                cute.make_ptr(cute.Float32, at.toint(), cute.AddressSpace.gmem).store(1.0)

    return kernel


@between(OutOfBoundsError, "which is in no multicast mapping", "from_multicast", ranks=4, arguments=by_multicast)
def multimem_on_an_ordinary_address(mended):
    def kernel(rank, x, all_of_it):
        if rank == 0 and cuda.threadIdx.x == 0:
            at = all_of_it.iterator if cute.const_expr(mended) else x.iterator
            distributed.multimem_ld_reduce_4xf32(at)

    return kernel


def to_be_filled(ranks):
    def arguments():
        return (*signals(ranks)(), from_symmetric(symmetric((ranks, N), cute.Float32, ranks, empty=True)))

    return arguments


@between(
    UninitializedReadError, "global memory data of rank 2 + ", "is read by", "of rank 2",
    "no rank has written it", ranks=4, arguments=to_be_filled(4),
)  # fmt: skip
def a_part_that_no_peer_has_written(mended):
    def kernel(rank, signals, data):
        t = cuda.threadIdx.x
        for to in range(4):
            if cute.const_expr(mended) or rank != 1 or to != 2:
                data[rank, t, to] = 1.0
        cuda.syncthreads()
        if t == 0:
            signals.meet(0, 1)
        cuda.syncthreads()
        if data[1, t, rank] < 0:
            data[1, t, rank] = 0.0

    return kernel
