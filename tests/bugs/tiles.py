# SPDX-License-Identifier: Apache-2.0
"""Bugs of TMA's tiles and reductions: bytes, proxies, what is still being stored, alignment."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.isa.facts.tensormap import TensorMapRecord
from numba_cute.isa.rows import bulk, fence, mbarrier, tma
from numba_cute.sim import DeadlockError, RaceError

from .barriers import ints
from .zoo import BAR, BUF, bug, fresh, put


def tile_map(rows=16, columns=16, box=(16, 8), address=None, swizzle="none", a=None):
    record = TensorMapRecord(
        dtype=cute.Float32, address=a.ctypes.data if address is None else address, dims=(columns, rows),
        strides_bytes=(columns * 4,), box=box, swizzle=swizzle,
    )  # fmt: skip
    return record


_TILE = np.arange(256, dtype=np.float32)
_GOAL = np.zeros(256, np.float32)


def tiles():
    a, out = _TILE.copy(), _GOAL.copy()
    return tile_map(a=a), tile_map(a=out), a, out


def tiled(expect=512, dst=BUF, wait=True, proxy=True, second=8):
    """Thread 0 loads two boxes by TMA, all double them, thread 0 stores them."""

    def kernel(load, store, a, out):
        fresh(1)
        t = cuda.threadIdx.x
        for i in range(2):
            if t == 0:
                mbarrier.mbarrier_arrive_expect_tx(BAR, expect)
                tma.cp_async_bulk_tensor_g2s(dst, load, (0, 8 * i), BAR, rank=2)
            mbarrier.mbarrier_wait_parity(BAR, i)
            for k in range(2):
                put(dst + 4 * (t + 64 * k), i)
            if proxy:
                fence.fence_proxy_async(space="shared::cta")
            cuda.syncthreads()
            if t == 0:
                tma.cp_async_bulk_tensor_s2g(store, (0, second * i), dst, rank=2)
                tma.cp_async_bulk_commit_group()
                if wait:
                    tma.cp_async_bulk_wait_group(n=0, read=True)
        if t == 0:
            tma.cp_async_bulk_wait_group(n=0, read=True)

    return kernel


@bug(DeadlockError, "bytes missing", "512 delivered|announce the 512 bytes", arguments=tiles)
def tma_box_of_other_bytes_than_announced(mended):
    return tiled() if mended else tiled(expect=1024)


@bug(RaceError, "missing fence.proxy.async", "cp_async_bulk_tensor_s2g", arguments=tiles)
def tma_box_changed_and_stored_without_a_proxy_fence(mended):
    return tiled() if mended else tiled(proxy=False)


@bug(RaceError, "cp_async_bulk_tensor_g2s", "cp_async_bulk_tensor_s2g", "still reads it", arguments=tiles)
def tma_load_into_a_box_that_is_still_being_stored(mended):
    return tiled() if mended else tiled(wait=False)


@bug(RaceError, "global memory", "cp_async_bulk_tensor_s2g", "has still to write it", arguments=tiles)
def two_tma_stores_into_one_box(mended):
    return tiled() if mended else tiled(second=0)


@bug(Exception, "TMA load: dst", "multiple of 128", arguments=tiles)
def tma_box_at_a_misaligned_address(mended):
    return tiled() if mended else tiled(dst=BUF + 16)


@bug(RaceError, "larger than its stage", "bytes: here 512, 0x900 to 0xaff; there 512, 0x800 to 0x9ff", arguments=tiles)
def boxes_that_are_larger_than_their_stages(mended):
    def kernel(load, store, a, out):
        fresh(1)
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 1024)
            for i in range(2):
                tma.cp_async_bulk_tensor_g2s(BUF + (512 if mended else 256) * i, load, (0, 8 * i), BAR, rank=2)
        mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


@bug(RaceError, "global memory out", "cp_reduce_async_bulk_s2g", "cp.async.bulk.wait_group", arguments=ints(64))
def sum_read_before_the_reduction_is_done(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            bulk.cp_reduce_async_bulk_s2g(out.ctypes.data, BUF, 256, op="add", type="s32")
            tma.cp_async_bulk_commit_group()
            if mended:
                tma.cp_async_bulk_wait_group(n=0)
            a[0] = out[5]
            tma.cp_async_bulk_wait_group(n=0)

    return kernel
