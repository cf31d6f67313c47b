# SPDX-License-Identifier: Apache-2.0
"""Proxies and work in flight: kernels that order their accesses pass without a word, the others are reported."""

import numpy as np
import pytest
from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa.facts.bits import WgmmaDescriptor
from numba_cute.isa.rows import bulk, fence, mbarrier, sync, tma, wgmma
from numba_cute.sim import OutOfBoundsError, RaceError, simulate

BAR, BUF = 1024, 2048
F32, BF16 = dtypes.Float32, dtypes.BFloat16


def put(at, value):
    seam.current().store(dtypes.Int32, "smem", at, (value,), 4)


def get(at):
    return seam.current().load(dtypes.Int32, "smem", at, 1, 4)[0]


def make_store(fence_by):
    """64 threads write, thread 0 stores with TMA; `fence_by` says who fences, and when."""

    def kernel(out):
        t = cuda.threadIdx.x
        if fence_by == "all, too early":
            fence.fence_proxy_async(space="shared::cta")
        put(BUF + 4 * t, t)
        if fence_by == "all" or (fence_by == "warp 0" and t < 32):
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 0:
            if fence_by == "the reader, after the barrier":
                fence.fence_proxy_async()
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 256)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0, read=True)
        cuda.syncthreads()
        put(BUF + 4 * t, -1)

    return kernel


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("fence_by", ["all", "the reader, after the barrier"])
def test_fenced_writes_reach_the_async_proxy(fence_by, seed):
    out = np.zeros(64, np.int32)
    simulate(make_store(fence_by), seed=seed)[1, 64, 0, 4096](out)
    np.testing.assert_array_equal(out, np.arange(64))


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("fence_by", ["nobody", "warp 0", "all, too early"])
def test_a_missing_proxy_fence_is_named(fence_by, seed):
    with pytest.raises(RaceError, match=r"missing fence.proxy.async(.|\n)*put(.|\n)*fence_proxy"):
        simulate(make_store(fence_by), seed=seed)[1, 64, 0, 4096](np.zeros(64, np.int32))


def test_data_of_one_copy_may_feed_another_without_a_fence():
    def kernel(a, out):
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
            mbarrier.mbarrier_arrive_expect_tx(BAR, 64)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 64, BAR)
            mbarrier.mbarrier_wait_parity(BAR, 0)
            assert get(BUF) == 7
            bulk.cp_async_bulk_s2g(out.ctypes.data, BUF, 64)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0, read=True)

    a, out = np.full(16, 7, np.int32), np.zeros(16, np.int32)
    simulate(kernel)[1, 32, 0, 4096](a, out)
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize(
    ("touch", "words"),
    [(lambda: get(BUF), "is read by thread 0"), (lambda: put(BUF, 1), "is written by thread 0")],
    ids=["read", "write"],
)
def test_touching_what_a_copy_has_still_to_write(touch, words):
    def kernel(a):
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
            mbarrier.mbarrier_arrive_expect_tx(BAR, 64)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 64, BAR)
            touch()

    with pytest.raises(RaceError, match=words + r"(.|\n)*cp_async_bulk_g2s(.|\n)*has still to write it"):
        simulate(kernel)[1, 32, 0, 4096](np.zeros(16, np.int32))


def make_wgmma(wait, wait_first):
    """A = ones(64, 16), B = ones(8, 16), each as 8x8 core matrices of 128 bytes."""
    desc = WgmmaDescriptor(start=BUF, leading=128, stride=256, base_offset=0, swizzle=0).encode()

    def kernel(out):
        b = seam.current()
        t = cuda.threadIdx.x
        b.store(BF16, "smem", BUF + 16 * t, (1.0,) * 8, 16)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        acc = seam.Regs(b.registers(F32, 4), F32, 0, 4)
        b.fill(acc, 2.0)
        wgmma.wgmma_fence()
        for _ in range(2):
            wgmma.wgmma_ss(acc, desc, desc, True, n=8, ab="bf16", trans_a=0, trans_b=0, scale_a=1, scale_b=1)
            wgmma.wgmma_commit_group()
        if wait_first:
            put(BUF + 16 * t, 0)
        if wait:
            wgmma.wgmma_wait_group(n=0)
        for i, x in enumerate(b.vector(acc)):
            out[t, i] = x

    return kernel


@pytest.mark.parametrize("seed", [None, 1])
def test_wgmma_accumulates_in_registers(seed):
    out = np.full((128, 4), np.nan, np.float32)
    simulate(make_wgmma(True, False), seed=seed)[1, 128, 0, 8192](out)
    np.testing.assert_array_equal(out, 34)


def test_accumulators_read_before_wait_group():
    with pytest.raises(RaceError, match=r"accumulator registers are read by(.|\n)*wgmma_ss(.|\n)*wait_group"):
        simulate(make_wgmma(False, False))[1, 128, 0, 8192](np.zeros((128, 4), np.float32))


def test_operands_overwritten_before_wait_group():
    with pytest.raises(RaceError, match=r"is written by(.|\n)*wgmma_ss(.|\n)*still reads it"):
        simulate(make_wgmma(True, True))[1, 128, 0, 8192](np.zeros((128, 4), np.float32))


def test_registers_allocated_by_some_threads_only_do_not_matter():
    whole = make_wgmma(True, False)

    def kernel(out):
        if cuda.threadIdx.x == 3:
            seam.current().registers(F32, 4)  # from here on its files lie elsewhere than its neighbours'
        whole(out)

    out = np.full((128, 4), np.nan, np.float32)
    simulate(kernel)[1, 128, 0, 8192](out)
    np.testing.assert_array_equal(out, 34)


def test_shared_memory_out_of_bounds_names_the_nearest_buffer():
    def kernel():
        put(BUF + 4096, 1)

    with pytest.raises(OutOfBoundsError, match="4 bytes at 0x1800 .*4096 bytes of dynamic shared memory from 0x400"):
        simulate(kernel)[1, 1, 0, 4096]()


def test_shared_memory_starts_as_poison():
    def kernel(out):
        out[0] = seam.current().load(F32, "smem", BUF, 1, 4)[0]
        out[1] = seam.current().load(BF16, "smem", BUF, 1, 2)[0]
        sync.bar_warp_sync()

    out = np.zeros(2)
    simulate(kernel, checks="races")[1, 1, 0, 4096](out)
    assert np.isnan(out).all()
