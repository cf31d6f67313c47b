# SPDX-License-Identifier: Apache-2.0
"""`tilelang.cpasync`: the calls of TileLang's CuTe DSL backend, in the simulator, the assembler, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.tilelang import cpasync as tl

ROWS, COLUMNS = 8, 32
BYTES = ROWS * COLUMNS * 4
TILE = cute.make_layout((ROWS, COLUMNS), stride=(COLUMNS, 1))
COUNT = 32


def source(rng):
    return rng.standard_normal((4 * ROWS, 2 * COLUMNS)).astype(np.float32)


def tensor(array):
    return lambda place: from_dlpack(place(array), assumed_align=16)


def atom(array, op, index=0):
    return lambda place: cpasync.make_tiled_tma_atom(op, from_dlpack(place(array), 16), TILE, (ROWS, COLUMNS))[index]


# ------------------------------------------------------------------ cp.async


@cuda.jit
def by_threads(src, dst, n):
    t, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    buffer = smem.allocate_tensor(cute.Float32, cute.make_layout((5, COUNT, 4), stride=(4 * COUNT, 4, 1)), 16)
    to, at = buffer.iterator + 4 * t, src.iterator + 4 * t
    step = 4 * COUNT
    for i in range(4):
        for j in range(5):
            buffer[j, t, i] = -1.0
    tl.cp_async_gs(16, to, at)
    tl.cp_async_gs(8, to, step, at, step)
    tl.cp_async_gs(4, buffer[2, t, None], src[2, t, None])
    tl.cp_async_commit()
    tl.cp_async_gs_conditional(16, to + 3 * step, at + 3 * step, t < n)
    tl.cp_async_shared_global(
        to + 4 * step, at + 4 * step, 16, cute.nvgpu.LoadCacheMode.GLOBAL, src_size=4 * (t % 5)
    )  # fmt: skip
    tl.cp_async_commit()
    tl.cp_async_wait(0)
    for i in range(4):
        for j in range(5):
            dst[j, t, i] = buffer[j, t, i]


def test_each_thread_copies_what_it_is_told(run, rng):
    src, dst = rng.standard_normal((5, COUNT, 4)).astype(np.float32), np.empty((5, COUNT, 4), np.float32)
    t, i = np.arange(COUNT)[:, None], np.arange(4)
    want = src.copy()
    want[1, :, 2:], want[2, :, 1:], want[3, 7:] = -1, -1, -1
    want[4] = np.where(i < t % 5, src[4], 0)

    def check():
        np.testing.assert_array_equal(dst, want)

    run(by_threads, 1, COUNT, [tensor(src), tensor(dst), 7], outputs=[dst], check=check, arch="sm_80")


@cuda.jit
def told_by_a_barrier(src, dst):
    t, _, _ = arch.thread_idx()
    bars = arch.alloc_smem(cute.Uint64, 2)
    buffer = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((COUNT, 4), stride=(4, 1)), 16)
    if t == 0:
        tl.mbarrier_init(bars, COUNT)
        tl.mbarrier_init(bars + 1, COUNT)
    tl.fence_barrier_init()
    arch.sync_threads()
    tl.cp_async_gs(size=8, dst=buffer.iterator + 4 * t, src=src.iterator + 4 * t)
    tl.mbarrier_cp_async_arrive_noinc(bars)
    tl.cp_async_gs(8, buffer.iterator, 4 * t + 2, src.iterator, 4 * t + 2)
    tl.mbarrier_cp_async_arrive(bars + 1)
    tl.mbarrier_arrive(bars + 1)
    tl.mbarrier_wait(bars, 0)
    tl.mbarrier_wait(mbar_ptr=bars + 1, phase=0)
    for i in range(4):
        dst[t, i] = buffer[(t + 1) % COUNT, i]


def test_barriers_tell_of_the_copies_of_all_threads(run, rng):
    src, dst = rng.standard_normal((COUNT, 4)).astype(np.float32), np.empty((COUNT, 4), np.float32)

    def check():
        np.testing.assert_array_equal(dst, np.roll(src, -1, 0))

    run(told_by_a_barrier, 1, COUNT, [tensor(src), tensor(dst)], outputs=[dst], check=check)


# ------------------------------------------------------------------ TMA


@cuda.jit
def boxes(load, store, add, sums):
    t, _, _ = arch.thread_idx()
    bar = arch.alloc_smem(cute.Uint64, 1)
    smem = utils.SmemAllocator().allocate_array(cute.Uint8, 2 * BYTES, 128)
    if t == 0:
        tl.prefetch_tma_descriptor(load)
        tl.mbarrier_init(bar, 1)
        tl.fence_barrier_init()
    arch.sync_threads()
    if t == 0:
        tl.arrive_and_expect_tx(bar, BYTES)
        tl.tma_load(load, bar, smem, (COLUMNS, ROWS))
        tl.mbarrier_expect_tx(bar, 0)
        tl.mbarrier_wait(bar, 0)
        tl.arrive_and_expect_tx(bar, BYTES)
        tl.tma_load(tl.extract_tensormap_ptr(load), bar, smem + BYTES, (0, 2 * ROWS), use_2cta=False)
        tl.mbarrier_wait(bar, 1)
        tl.tma_store(store, smem, (0, 0))
        tl.tma_reduce(add, smem + BYTES, (COLUMNS, ROWS))
        tl.tma_store_arrive()
        tl.tma_store_wait(0, read=True)
        tl.tma_store_wait(0, read=False)


def test_boxes_are_loaded_stored_and_added(run, rng):
    src, out = source(rng), np.empty((ROWS, COLUMNS), np.float32)
    sums = source(rng)
    want = sums.copy()
    want[ROWS : 2 * ROWS, COLUMNS:] += src[2 * ROWS : 3 * ROWS, :COLUMNS]
    args = [
        atom(src, cpasync.CopyBulkTensorTileG2SOp()), atom(out, cpasync.CopyBulkTensorTileS2GOp()),
        atom(sums, cpasync.CopyReduceBulkTensorTileS2GOp()), tensor(sums),
    ]  # fmt: skip

    def check():
        np.testing.assert_array_equal(out, src[ROWS : 2 * ROWS, COLUMNS:])
        np.testing.assert_array_equal(sums, want)

    run(boxes, 1, 32, args, outputs=[out], inouts=[sums], check=check)


def test_what_leaves_no_trace_in_memory_is_in_the_ptx(rng):
    ops = cpasync.CopyBulkTensorTileG2SOp, cpasync.CopyBulkTensorTileS2GOp, cpasync.CopyReduceBulkTensorTileS2GOp
    sums = source(rng)
    args = [*(atom(sums, op()) for op in ops), tensor(sums)]
    ptx = cute.compile(boxes, tuple(a(lambda array: array) for a in args), arch="sm_90a").ptx
    assert "prefetch.tensormap" in ptx and "mbarrier.expect_tx" in ptx


@cuda.jit
def plain_bytes(src, dst):
    t, _, _ = arch.thread_idx()
    bar = arch.alloc_smem(cute.Uint64, 1)
    smem = utils.SmemAllocator().allocate_array(cute.Uint8, BYTES, 128)
    if t == 0:
        tl.mbarrier_init(bar, 1)
        tl.fence_barrier_init()
        tl.arrive_and_expect_tx(bar, BYTES)
        tl.tma_load(smem, src.iterator, bar, BYTES)
        tl.mbarrier_wait(bar, 0)
        tl.tma_store(dst.iterator, smem, BYTES)
        tl.tma_store_arrive()
        tl.tma_store_wait(0)


def test_bytes_are_copied_without_a_tensor_map(run, rng):
    src, dst = rng.standard_normal(BYTES // 4).astype(np.float32), np.empty(BYTES // 4, np.float32)

    def check():
        np.testing.assert_array_equal(dst, src)

    run(plain_bytes, 1, 32, [tensor(src), tensor(dst)], outputs=[dst], check=check)


@cuda.jit
def pixels(load, dst):
    t, _, _ = arch.thread_idx()
    bar = arch.alloc_smem(cute.Uint64, 1)
    smem = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((8, 8), stride=(8, 1)), 128)
    if t == 0:
        tl.mbarrier_init(bar, 1)
        tl.fence_barrier_init()
        tl.arrive_and_expect_tx(bar, 256)
        tl.tma_load(load, bar, smem.iterator, (0, -1, -1, 0), im2col_offsets=(1, 2))
    arch.sync_threads()
    tl.mbarrier_wait(bar, 0)
    for i in range(t, 64, 32):
        dst[i // 8, i % 8] = smem[i // 8, i % 8]


def test_pixels_under_a_filter_tap_are_loaded(run, rng):
    image, dst = rng.standard_normal((1, 6, 6, 8)).astype(np.float32), np.empty((8, 8), np.float32)

    def load(place):
        t = from_dlpack(place(image), 16)
        whn = cute.make_layout(((6, 6, 1), 8), stride=((8, 48, 288), 1))
        return cpasync.make_im2col_tma_atom(
            cpasync.CopyBulkTensorIm2ColG2SOp(), cute.make_tensor(t.iterator, whn),
            cute.make_layout((8, 8), stride=(8, 1)), (8, 8), (-1, -1), (-1, -1), (1, 1), (1, 1), (1, 1), (0, 0), (1, 1),
        )[0]  # fmt: skip

    def check():
        want = np.zeros((8, 8), np.float32)
        for p in range(8):  # pixels (-1 + p % 6, -1 + p // 6), moved by the tap (1, 2)
            w, h = p % 6, p // 6 + 1
            want[p] = image[0, h, w]
        np.testing.assert_array_equal(dst, want)

    run(pixels, 1, 32, [load, tensor(dst)], outputs=[dst], check=check)


@cuda.jit
def in_pairs(load):
    bar = arch.alloc_smem(cute.Uint64, 1)
    smem = utils.SmemAllocator().allocate_array(cute.Uint8, BYTES, 128)
    tl.arrive_and_expect_tx(bar, BYTES, 0, arch.thread_idx()[0] == 0)
    tl.tma_load(load, bar, smem, (COLUMNS, ROWS), True)
    tl.mbarrier_arrive(bar, 1)


def test_a_pair_of_blocks_loads_for_one_barrier(rng):
    src = source(rng)
    load = atom(src, cpasync.CopyBulkTensorTileG2SOp())(lambda a: a)
    ptx = cute.compile(in_pairs, (load,), arch="sm_100a").ptx
    assert ".cta_group::2" in ptx and "mapa" in ptx


SMEM, GMEM = cute.AddressSpace.smem, cute.AddressSpace.gmem
WRONG = [
    (lambda s, g: tl.cp_async_gs(12, s, g), "cp_async_gs: size 12 must be static: 4, 8 or 16"),
    (lambda s, g: tl.cp_async_gs(16, g, g), "cp_async_gs: dst .* must be a Pointer to, or a Tensor in, smem"),
    (lambda s, g: tl.cp_async_gs(16, s, 0, g), r"give \(size, dst, src\), or"),
    (lambda s, g: tl.cp_async_gs_conditional(16, s), "cond is missing"),
    (lambda s, g: tl.cp_async_shared_global(s, g, 8, cute.nvgpu.LoadCacheMode.GLOBAL), "cp_size 8 must be 16"),
    (lambda s, g: tl.cp_async_shared_global(s, g, 8, cute.nvgpu.LoadCacheMode.NONE), "modifier .* must be"),
    (lambda s, g: tl.tma_load(g, s, s, (1, 2, 3, 4, 5, 6)), "crd .* has 6 coordinates"),
    (lambda s, g: tl.tma_store(3, s, (0,)), "tma_store: tma_desc 3 must be a Pointer"),
    (lambda s, g: tl.extract_tensormap_ptr(g), "is not a TMA atom"),
]


@pytest.mark.parametrize("call, why", WRONG, ids=[w[:30] for _, w in WRONG])
def test_what_cannot_be_is_refused(call, why):
    traced = cute.seam.traced(call)

    def kernel():
        traced(cute.make_ptr(cute.Uint8, 1024, SMEM, 16), cute.make_ptr(cute.Uint8, 4096, GMEM, 16))

    with pytest.raises(cute.CuteError, match=why):
        cute.simulate(kernel)[1, 1]()


def test_sizes_of_what_lies_in_memory():
    assert (tl.BYTES_PER_TENSORMAP, tl.BYTES_PER_POINTER) == (128, 8)
