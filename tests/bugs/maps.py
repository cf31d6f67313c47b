# SPDX-License-Identifier: Apache-2.0
"""Bugs of tensor maps that a kernel changes in global memory: release, acquire, order, and maps in use."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.isa.facts.tensormap import TensorMapRecord
from numba_cute.isa.facts.tensormap_bits import BYTES, pack
from numba_cute.isa.rows import fence, mbarrier, sync, tensormap_update as update, tma
from numba_cute.sim import RaceError, SimError
from numba_cute.sim.checks.races import Races

from .zoo import BAR, BUF, bug, get

ROWS = np.arange(2 * 64, dtype=np.float32)


def arguments():
    """A map of the first 64 numbers, in an array of global memory, and where the result goes."""
    rows = ROWS.copy()
    raw = np.zeros(3 * BYTES, np.uint8)
    start = -raw.ctypes.data % BYTES
    record = TensorMapRecord(cute.Float32, rows.ctypes.data, (64,), (), (64,))
    raw[start : start + BYTES] = pack(record)
    return raw[start : start + BYTES], rows, np.zeros(64, np.int32)


def changed(*missing):
    """Thread 0 turns the map to the other 64 numbers, and (after the block has met) thread 32 copies by it."""

    def kernel(map, rows, out):
        t = cuda.threadIdx.x
        at = map.ctypes.data
        if t == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
        cuda.syncthreads()
        if t == 32 and "in use" in missing:
            update.fence_proxy_tensormap_acquire(at, scope="gpu")
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            tma.cp_async_bulk_tensor_g2s(BUF, at, (0,), BAR, rank=1)
        cuda.syncthreads()
        if t == 0:
            update.tensormap_replace(at, rows.ctypes.data + 256, space="gmem", field="global_address")
            if "release" not in missing:
                update.fence_proxy_tensormap_release(scope="gpu")
        if "barrier" not in missing:
            cuda.syncthreads()
        if t == 32 and "in use" not in missing:
            if "acquire" not in missing:
                update.fence_proxy_tensormap_acquire(at, scope="gpu")
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            tma.cp_async_bulk_tensor_g2s(BUF, at, (0,), BAR, rank=1)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        out[t] = get(BUF + 4 * t)

    return kernel


def map_bug(error, *words, **more):
    return bug(error, *words, arguments=arguments, **more)


@map_bug(RaceError, "missing tensor-map acquire", "fence_tma_desc_acquire")
def map_used_without_an_acquire(mended):
    return changed() if mended else changed("acquire")


@map_bug(RaceError, "missing tensor-map release", "fence_tma_desc_release")
def map_changed_without_a_release(mended):
    return changed() if mended else changed("release")


@map_bug(SimError, "global memory map|tensor map", "is read by|is written by|was not released|has changed", check=Races)
def map_acquired_before_it_is_published(mended):
    return changed() if mended else changed("barrier")


@map_bug(RaceError, "global memory map", "cp_async_bulk_tensor_g2s", "still reads it", "tensormap_replace")
def map_changed_while_a_copy_uses_it(mended):
    return changed() if mended else changed("in use")


@map_bug(SimError, "not a tensor map|tensor map at")
def array_passed_for_a_map(mended):
    def kernel(map, rows, out):
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
        sync.bar_sync(0)
        if t == 0:
            at = map.ctypes.data if mended else out.ctypes.data & -128
            if mended:
                update.fence_proxy_tensormap_acquire(at, scope="gpu")
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
            tma.cp_async_bulk_tensor_g2s(BUF, at, (0,), BAR, rank=1)
        mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel
