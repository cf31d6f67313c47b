# SPDX-License-Identifier: Apache-2.0
"""Right kernels of several blocks that hand data over in unusual ways: not a word, in any order."""

import warnings

import numba
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.isa.rows import bulk, cluster, fence, mbarrier, memory, sync, tma
from numba_cute.runtime import from_dlpack
from numba_cute.sim import simulate

from .zoo import BAR, BUF, OUT, fresh, get, put

ORDERS = [{}, {"seed": 0}, *(pytest.param(o, marks=pytest.mark.slow) for o in
          ({"async_mode": "eager"}, *({"seed": s} for s in range(1, 8))))]  # fmt: skip


def look_back(status, out):
    """Each block adds its count to its predecessor's sum, which comes packed with its flag in one word."""
    b, t = cuda.blockIdx.x, cuda.threadIdx.x
    before = cuda.shared.array(1, numba.int64)
    if t == 0:
        word = 1
        while b > 0:
            word = arch.load(status.iterator + (b - 1), cute.Int64, sem="relaxed", scope="gpu")
            if word != 0:
                break
        before[0] = word >> 1
        arch.store(status.iterator + b, (((word >> 1) + 32) << 1) | 1, sem="relaxed", scope="gpu")
    cuda.syncthreads()
    out[32 * b + t] = before[0] + t


def relaxed_loads_beside_plain_ones(status, out):
    i = cuda.grid(1)
    zero = arch.load(status.iterator, cute.Int64, sem="relaxed", scope="gpu") if i % 2 else status[0]
    out[i] = zero + i


def atomics_read_by_an_atomic(status, out):
    """No fence: the sum itself is only touched by atomics, each block's before it counts itself."""
    t = cuda.threadIdx.x
    arch.atomic_add(status.iterator, 1)
    cuda.syncthreads()
    if t == 0 and arch.atomic_add(status.iterator + 1, 1) == 2:
        out[95] = arch.atomic_add(status.iterator, 0) - 1
    if cuda.grid(1) < 95:
        out[cuda.grid(1)] = cuda.grid(1)


def fences_around_relaxed_flags(status, out):
    """Block 0 writes all, fences, and raises flags; the others wait, fence, and read."""
    b, t = cuda.blockIdx.x, cuda.threadIdx.x
    if b == 0:
        for i in range(3):
            status[1 + 32 * i + t] = 32 * i + t
        cuda.syncthreads()
        if t == 0:
            arch.fence_acq_rel_gpu()
            arch.store(status.iterator, 1, sem="relaxed", scope="gpu")
    else:
        if t == 0:
            while arch.load(status.iterator, cute.Int64, sem="relaxed", scope="gpu") == 0:
                cuda.nanosleep(100)
            arch.fence_acq_rel_gpu()
        cuda.syncthreads()
    out[32 * b + t] = status[1 + 32 * b + t]


@pytest.mark.parametrize("options", ORDERS, ids=str)
@pytest.mark.parametrize(
    "kernel",
    [look_back, relaxed_loads_beside_plain_ones, atomics_read_by_an_atomic, fences_around_relaxed_flags],
    ids=lambda k: k.__name__,
)
def test_blocks_not_a_word(kernel, options):
    out = np.full(96, -1, np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(kernel, **options)[3, 32](from_dlpack(np.zeros(97, np.int64)), out)
    np.testing.assert_array_equal(out, np.arange(96))


def ring_of_blocks(out):
    """Each block sends numbers to the other by st.async, two rounds ahead, and gives back what it has read."""
    t, rank = cuda.threadIdx.x, cuda.blockIdx.x
    full, empty = BAR, BAR + 16
    if t == 0:
        for s in range(2):
            mbarrier.mbarrier_init(full + 8 * s, 1)
            mbarrier.mbarrier_init(empty + 8 * s, 32)
        fence.fence_mbarrier_init()
    sync.cluster_arrive()
    sync.cluster_wait()
    total = 0
    for i in range(5):
        s, phase = i % 2, i // 2 & 1
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(full + 8 * s, 128)
        mbarrier.mbarrier_wait_parity(empty + 8 * s, phase ^ 1, scope="cluster")
        to = BUF + 128 * s + 4 * t
        cluster.st_async(cluster.mapa(to, 1 - rank), [10 * i + t], cluster.mapa(full + 8 * s, 1 - rank))
        mbarrier.mbarrier_wait_parity(full + 8 * s, phase)
        total += get(to)
        mbarrier.mbarrier_arrive(cluster.mapa(empty + 8 * s, 1 - rank), space="cluster")
    out[32 * rank + t] = total - 100 - 4 * t
    sync.cluster_arrive()
    sync.cluster_wait()


def split_cluster_barrier(out):
    """Own memory that no peer touches is used between the arrival and the wait."""
    t, rank = cuda.threadIdx.x, cuda.blockIdx.x
    put(BUF + 4 * t, t)
    sync.cluster_arrive()
    put(OUT + 4 * t, 2 * t)
    own = get(OUT + 4 * t)
    sync.cluster_wait()
    theirs = memory.ld(cluster.mapa(BUF + 4 * t, 1 - rank), space="dsmem", width=32)
    sync.cluster_arrive()
    out[32 * rank + t] = own + theirs - 2 * t
    sync.cluster_wait()


def stores_from_two_buffers(out):
    t, rank = cuda.threadIdx.x, cuda.blockIdx.x
    for i in range(4):
        at = BUF + 128 * (i % 2)
        if t == 0:
            tma.cp_async_bulk_wait_group(n=1, read=True)
        cuda.syncwarp()
        put(at + 4 * t, t + i - 3)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncwarp()
        if t == 0:
            if i == 3:
                tma.cp_async_bulk_wait_group(n=0)  # the same place as the store before
            bulk.cp_async_bulk_s2g(out.ctypes.data + 128 * rank, at, 128) if i > 1 else None
            tma.cp_async_bulk_commit_group()
    if t == 0:
        tma.cp_async_bulk_wait_group(n=0, read=True)


def barrier_of_all_by_tests(out):
    """An mbarrier in the place of syncthreads, tested in a loop that sleeps."""
    rows = cuda.shared.array(32, numba.int32)
    t = cuda.threadIdx.x
    fresh(32)
    for i in range(4):
        rows[t] = t + i
        mbarrier.mbarrier_arrive(BAR)
        while not mbarrier.mbarrier_try_wait_parity(BAR, 0):
            cuda.nanosleep(10)
        out[32 * cuda.blockIdx.x + 31 - t] = rows[31 - t] - i
        mbarrier.mbarrier_arrive(BAR)
        mbarrier.mbarrier_wait_parity(BAR, 1)


@pytest.mark.parametrize("options", ORDERS, ids=str)
@pytest.mark.parametrize(
    "kernel",
    [ring_of_blocks, split_cluster_barrier, stores_from_two_buffers, barrier_of_all_by_tests],
    ids=lambda k: k.__name__,
)
def test_clusters_not_a_word(kernel, options):
    out = np.full(64, -1, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(kernel, cluster=2, **options)[2, 32, 0, 8192](out)
    np.testing.assert_array_equal(out, np.tile(np.arange(32), 2))


def one_fences_the_proxy_and_another_copies(data, flag, out):
    t = cuda.threadIdx.x
    fresh(1)
    if cuda.blockIdx.x == 0:
        if t < 32:
            data[t] = t
        cuda.syncthreads()
        if t == 40:
            arch.store(flag.iterator, 1, sem="release", scope="gpu")
    else:
        if t == 0:
            while arch.load(flag.iterator, cute.Int32, sem="acquire", scope="gpu") == 0:
                pass
            fence.fence_proxy_async()
        cuda.syncthreads()
        if t == 32:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 128)
            bulk.cp_async_bulk_g2s(BUF, data.ctypes.data, 128, BAR)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        if t < 32:
            out[t] = get(BUF + 4 * t)


def one_waits_for_the_store_and_another_tells(data, flag, out):
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        if t < 32:
            put(BUF + 4 * t, t)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_async_bulk_s2g(data.ctypes.data, BUF, 128)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)
        cuda.syncthreads()
        if t == 40:
            arch.fence_acq_rel_gpu()
            arch.store(flag.iterator, 1, sem="relaxed", scope="gpu")
    else:
        if t == 0:
            while arch.load(flag.iterator, cute.Int32, sem="acquire", scope="gpu") == 0:
                pass
        cuda.syncthreads()
        if t < 32:
            out[t] = data[t]


@pytest.mark.parametrize("options", ORDERS, ids=str)
@pytest.mark.parametrize(
    "kernel",
    [one_fences_the_proxy_and_another_copies, one_waits_for_the_store_and_another_tells],
    ids=lambda k: k.__name__,
)
def test_tma_between_blocks_not_a_word(kernel, options):
    data, out = np.zeros(32, np.int32), np.full(32, -1, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(kernel, **options)[2, 64, 0, 8192](data, from_dlpack(np.zeros(1, np.int32)), out)
    np.testing.assert_array_equal(out, np.arange(32))
