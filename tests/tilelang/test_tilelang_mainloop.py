# SPDX-License-Identifier: Apache-2.0
"""Mainloops with TileLang's functions, equal to the bit with the same loops on `numba_cute.arch` and `cute.copy`.

One is Hopper's: a thread loads by TMA, a warpgroup multiplies by wgmma, TMA stores. The other is Ampere's: all threads
load by cp.async and multiply by mma.sync, with mbarriers or groups between."""

from __future__ import annotations

from types import FunctionType

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.tilelang import cpasync as tl

TILE, K_TILE, STAGES = 64, 64, 3
STAGE_BYTES = 2 * TILE * K_TILE * 2
CONSUMERS, PRODUCER = 128, 32


# ------------------------------------------------------------------ TMA and wgmma


@cuda.jit
def tma_by_tilelang(tma_a, mA, tma_b, mB, tma_c, mC, mma, layout, c_layout, k_tiles):
    t, _, _ = arch.thread_idx()
    bm, bn, _ = arch.block_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, layout.outer, 1024, layout.inner)
    sB = smem.allocate_tensor(cute.BFloat16, layout.outer, 1024, layout.inner)
    sC = smem.allocate_tensor(cute.Float32, c_layout, 1024)
    full, empty = smem.allocate_array(cute.Int64, STAGES), smem.allocate_array(cute.Int64, STAGES)
    if t == 0:
        for s in range(STAGES):
            tl.mbarrier_init(full + s, 1)
            tl.mbarrier_init(empty + s, CONSUMERS // 32)
        tl.fence_barrier_init()
    arch.sync_threads()
    if t >= CONSUMERS:
        if t == CONSUMERS:
            tl.prefetch_tma_descriptor(tma_a)
            tl.prefetch_tma_descriptor(tma_b)
            for k in range(k_tiles):
                s = k % STAGES
                tl.mbarrier_wait(empty + s, (k // STAGES + 1) % 2)
                tl.arrive_and_expect_tx(full + s, STAGE_BYTES)
                tl.tma_load(tma_a, full + s, sA[None, None, s], (K_TILE * k, TILE * bm))
                tl.tma_load(tl.extract_tensormap_ptr(tma_b), full + s, sB[None, None, s], (K_TILE * k, TILE * bn))
    else:
        thread = mma.get_slice(t)
        tCrA, tCrB = mma.make_fragment_A(thread.partition_A(sA)), mma.make_fragment_B(thread.partition_B(sB))
        acc = mma.make_fragment_C(mma.partition_shape_C((TILE, TILE)))
        acc.fill(0)
        adds = mma.set(warpgroup.Field.ACCUMULATE, True)
        for k in range(k_tiles):
            s = k % STAGES
            tl.mbarrier_wait(full + s, k // STAGES % 2)
            warpgroup.fence()
            for kb in cute.range_constexpr(K_TILE // 16):
                cute.gemm(adds, acc, tCrA[None, None, kb, s], tCrB[None, None, kb, s], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            if t % 32 == 0:
                tl.mbarrier_arrive(empty + s)
        cute.autovec_copy(acc, thread.partition_C(sC))
        tl.fence_proxy_async()
        arch.barrier(barrier_id=1, number_of_threads=CONSUMERS)
        if t == 0:
            tl.tma_store(tma_c, sC, (TILE * bn, TILE * bm))
            tl.tma_store_arrive()
            tl.tma_store_wait(0)


@cuda.jit
def tma_by_arch(tma_a, mA, tma_b, mB, tma_c, mC, mma, layout, c_layout, k_tiles):
    t, _, _ = arch.thread_idx()
    bm, bn, _ = arch.block_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, layout.outer, 1024, layout.inner)
    sB = smem.allocate_tensor(cute.BFloat16, layout.outer, 1024, layout.inner)
    sC = smem.allocate_tensor(cute.Float32, c_layout, 1024)
    full, empty = smem.allocate_array(cute.Int64, STAGES), smem.allocate_array(cute.Int64, STAGES)
    if t == 0:
        for s in range(STAGES):
            arch.mbarrier_init(full + s, 1)
            arch.mbarrier_init(empty + s, CONSUMERS // 32)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    gA = cute.group_modes(cute.local_tile(mA, (TILE, K_TILE), (bm, None)), 0, 2)
    gB = cute.group_modes(cute.local_tile(mB, (TILE, K_TILE), (bn, None)), 0, 2)
    gC = cute.group_modes(cute.local_tile(mC, (TILE, TILE), (bm, bn)), 0, 2)
    if t >= CONSUMERS:
        tAsA, tAgA = cpasync.tma_partition(tma_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), gA)
        tBsB, tBgB = cpasync.tma_partition(tma_b, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), gB)
        for k in range(k_tiles):
            s = k % STAGES
            arch.mbarrier_wait(empty + s, (k // STAGES + 1) % 2)
            if arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(full + s, STAGE_BYTES)
            arch.sync_warp()
            cute.copy(tma_a, tAgA[None, k], tAsA[None, s], tma_bar_ptr=full + s)
            cute.copy(tma_b, tBgB[None, k], tBsB[None, s], tma_bar_ptr=full + s)
    else:
        thread = mma.get_slice(t)
        tCrA, tCrB = mma.make_fragment_A(thread.partition_A(sA)), mma.make_fragment_B(thread.partition_B(sB))
        acc = mma.make_fragment_C(mma.partition_shape_C((TILE, TILE)))
        acc.fill(0)
        adds = mma.set(warpgroup.Field.ACCUMULATE, True)
        for k in range(k_tiles):
            s = k % STAGES
            arch.mbarrier_wait(full + s, k // STAGES % 2)
            warpgroup.fence()
            for kb in cute.range_constexpr(K_TILE // 16):
                cute.gemm(adds, acc, tCrA[None, None, kb, s], tCrB[None, None, kb, s], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            if t % 32 == 0:
                arch.mbarrier_arrive(empty + s)
        cute.autovec_copy(acc, thread.partition_C(sC))
        arch.fence_proxy("async.shared", space="cta")
        arch.barrier(barrier_id=1, number_of_threads=CONSUMERS)
        if t < 32:
            tCsC, tCgC = cpasync.tma_partition(tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), gC)
            cute.copy(tma_c, tCsC, tCgC)
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)


def tma_arguments(a, b, c, k_tiles):
    kind = warpgroup.SmemLayoutAtomKind.K_SW128
    atom = warpgroup.make_smem_layout_atom(kind, cute.BFloat16)
    layout = cute.tile_to_shape(atom, (TILE, K_TILE, STAGES), (0, 1, 2))
    c_layout = cute.make_layout((TILE, TILE), stride=(TILE, 1))
    stage = cute.slice_(layout, (None, None, 0))
    load, put = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    major, smem = warpgroup.OperandMajorMode.K, warpgroup.OperandSource.SMEM
    op = warpgroup.MmaF16BF16Op(cute.BFloat16, cute.Float32, (64, TILE, 16), smem, major, major)
    mma = cute.make_tiled_mma(op)

    def made(operation, array, box, index):
        def make(place):
            tiler = (TILE, TILE) if array is c else (TILE, K_TILE)
            return cpasync.make_tiled_tma_atom(operation, from_dlpack(place(array), 16), box, tiler)[index]

        return make

    pairs = [made(op, x, box, i) for op, x, box in ((load, a, stage), (load, b, stage), (put, c, c_layout))
             for i in (0, 1)]  # fmt: skip
    return [*pairs, mma, layout, c_layout, k_tiles]


# ------------------------------------------------------------------ cp.async and mma.sync

ROW = 32  # elements of K in a tile of the second loop
TILED = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16)), (2, 2, 1), (32, 32, 16))
COPY = cute.make_tiled_copy_tv(
    cute.make_copy_atom(cpasync.CopyG2SOp(), cute.BFloat16, num_bits_per_copy=128),
    cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8)),
)  # fmt: skip
BUFFER = cute.make_layout((TILE, ROW, STAGES), stride=(ROW + 8, 1, TILE * (ROW + 8)))


@cute.jit
def multiply(acc, sA, sB, s, t):
    thread = TILED.get_slice(t)
    a, b = thread.partition_A(sA[None, None, s]), thread.partition_B(sB[None, None, s])
    ra, rb = TILED.make_fragment_A(a), TILED.make_fragment_B(b)
    cute.autovec_copy(a, ra)
    cute.autovec_copy(b, rb)
    cute.gemm(TILED, acc, ra, rb, acc)


@cuda.jit
def cp_async_by_tilelang(a, b, c, k_tiles):
    t, _, _ = arch.thread_idx()
    bm, bn, _ = arch.block_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, BUFFER, 16)
    sB = smem.allocate_tensor(cute.BFloat16, BUFFER, 16)
    ready = smem.allocate_array(cute.Int64, STAGES)
    if t == 0:
        for s in range(STAGES):
            tl.mbarrier_init(ready + s, 128)
    arch.sync_threads()
    gC = cute.local_tile(c, (TILE, TILE), (bm, bn))
    thread = TILED.get_slice(t)
    acc = TILED.make_fragment_C(thread.partition_C(gC))
    acc.fill(0)
    row, column = t // 4, t % 4 * 8
    for k in range(k_tiles + STAGES - 1):
        if k < k_tiles:
            s = k % STAGES
            for half in cute.range_constexpr(2):
                r = row + 32 * half
                at = (TILE * bm + r) * (ROW * k_tiles) + ROW * k + column
                tl.cp_async_gs(16, sA.iterator, BUFFER((r, column, s)), a.iterator, at)
                at = (TILE * bn + r) * (ROW * k_tiles) + ROW * k + column
                tl.cp_async_gs_conditional(16, sB.iterator, BUFFER((r, column, s)), b.iterator, at, r < TILE)
            tl.mbarrier_cp_async_arrive_noinc(ready + s)
        tl.cp_async_commit()
        if k >= STAGES - 1:
            s = (k - STAGES + 1) % STAGES
            tl.mbarrier_wait(ready + s, (k - STAGES + 1) // STAGES % 2)
            multiply(acc, sA, sB, s, t)
            arch.sync_threads()
    tl.cp_async_wait(0)
    cute.autovec_copy(acc, thread.partition_C(gC))


@cuda.jit
def cp_async_by_arch(a, b, c, k_tiles):
    t, _, _ = arch.thread_idx()
    bm, bn, _ = arch.block_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.BFloat16, BUFFER, 16)
    sB = smem.allocate_tensor(cute.BFloat16, BUFFER, 16)
    gA = cute.local_tile(a, (TILE, ROW), (bm, None))
    gB = cute.local_tile(b, (TILE, ROW), (bn, None))
    gC = cute.local_tile(c, (TILE, TILE), (bm, bn))
    thread, mine = TILED.get_slice(t), COPY.get_slice(t)
    tAgA, tAsA = mine.partition_S(gA), mine.partition_D(sA)
    tBgB, tBsB = mine.partition_S(gB), mine.partition_D(sB)
    acc = TILED.make_fragment_C(thread.partition_C(gC))
    acc.fill(0)
    for k in range(k_tiles + STAGES - 1):
        if k < k_tiles:
            cute.copy(COPY, tAgA[None, None, None, k], tAsA[None, None, None, k % STAGES])
            cute.copy(COPY, tBgB[None, None, None, k], tBsB[None, None, None, k % STAGES])
        arch.cp_async_commit_group()
        if k >= STAGES - 1:
            arch.cp_async_wait_group(STAGES - 1)
            arch.sync_threads()
            multiply(acc, sA, sB, (k - STAGES + 1) % STAGES, t)
            arch.sync_threads()
    cute.autovec_copy(acc, thread.partition_C(gC))


def cp_async_arguments(a, b, c, k_tiles):
    return [*(lambda place, x=x: from_dlpack(place(x), 16) for x in (a, b, c)), k_tiles]


# ------------------------------------------------------------------ both give the same bits

LOOPS = {
    "TMA, wgmma": (tma_by_tilelang, tma_by_arch, tma_arguments, K_TILE, CONSUMERS + PRODUCER, "sm_90a"),
    "cp.async, mma.sync": (cp_async_by_tilelang, cp_async_by_arch, cp_async_arguments, ROW, 128, "sm_90a"),
}


@pytest.mark.parametrize("loop", ["TMA, wgmma", pytest.param("cp.async, mma.sync", marks=pytest.mark.slow)])
def test_a_mainloop_by_tilelang_gives_the_bits_of_one_by_arch(run, rng, loop):
    k_tiles = STAGES + 1
    theirs, ours, arguments, tile_k, threads, target = LOOPS[loop]
    a, b = (rng.standard_normal((n * TILE, tile_k * k_tiles)).astype(ml_dtypes.bfloat16) for n in (2, 1))
    results = {}
    for name, kernel in (("tilelang", theirs), ("arch", ours)):
        c = np.zeros((2 * TILE, TILE), np.float32)

        def check(name=name, c=c):
            results[name] = c.copy()

        run(kernel, (2, 1), threads, arguments(a, b, c, k_tiles), outputs=[c], check=check, arch=target)
    if results:
        want = a.astype(np.float64) @ b.astype(np.float64).T
        np.testing.assert_allclose(results["tilelang"], want, rtol=1e-4, atol=1e-3)
        np.testing.assert_array_equal(results["tilelang"].view(np.uint32), results["arch"].view(np.uint32))


@pytest.mark.parametrize("kernel", [tma_by_tilelang, tma_by_arch], ids=["tilelang", "arch"])
def test_both_loops_are_made_of_the_same_instructions(kernel):
    a, b = (np.zeros((2 * TILE, K_TILE), ml_dtypes.bfloat16) for _ in range(2))
    given = tma_arguments(a, b, np.zeros((2 * TILE, 2 * TILE), np.float32), 1)
    args = tuple(x(lambda array: array) if isinstance(x, FunctionType) else x for x in given)
    compiled = cute.compile(kernel, args)
    for instruction in ("cp.async.bulk.tensor.2d.shared", "wgmma.mma_async", "mbarrier.init", "mbarrier.arrive",
                        "mbarrier.try_wait", "cp.async.bulk.tensor.2d.global", "fence.proxy.async"):  # fmt: skip
        assert instruction in compiled.ptx, instruction
    assert compiled.resources.local == 0
