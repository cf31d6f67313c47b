# SPDX-License-Identifier: Apache-2.0
"""Fragments and local arrays of which some elements were never written: reading them is found where it matters, and
only there."""

import math

import numba
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim import UninitializedReadError, simulate

from .registers import NAMES_ONE_OF_SEVERAL, ORDERS, is_reported, is_silent, named, registry

BUGS = []
F32, F16 = cute.Float32, cute.Float16
N = 32


def line():
    return np.arange(4 * N, dtype=np.float32), np.zeros(4 * N, np.float32), 100


bug = registry(BUGS, line)


@bug("element 1 of the registers `frag`", "stored to global memory", "frag.fill(0)")
def element_that_no_load_reached(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        frag = cute.make_rmem_tensor(2, F32)
        frag[0] = a[t]
        if mended:
            frag[1] = a[t + N]
        out[t] = frag[0] + frag[1]

    return kernel


@bug("registers `frag`", "stored to global memory")
def predicated_copy_and_a_store_without_the_predicate(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        frag, pred = cute.make_rmem_tensor(4, F32), cute.make_rmem_tensor(4, cute.Boolean)
        for i in cute.range_constexpr(4):
            pred[i] = 4 * t + i < n
        src = cute.local_tile(cute.make_tensor(a, 4 * N), (4,), (t,))
        dst = cute.local_tile(cute.make_tensor(out, 4 * N), (4,), (t,))
        cute.basic_copy_if(pred, src, frag)
        frag.store(frag.load() * 2.0)
        if mended:
            cute.basic_copy_if(pred, frag, dst)
        else:
            cute.autovec_copy(frag, dst)

    return kernel


@bug("element (0, 1) of the registers `acc`", "in load", "stored to global memory")
def conversion_of_a_half_filled_fragment(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        acc, half = cute.make_rmem_tensor((2, 2), F32), cute.make_rmem_tensor((2, 2), F16)
        for i in cute.range_constexpr(2):
            acc[i, 0] = a[t]
        half.store(acc.load().to(F16))
        out[t] = half[0, 0] if mended else half[0, 1]

    return kernel


@bug("registers `src`", "stored to global memory")
def register_copy_carries_what_is_undefined(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        src, dst = cute.make_rmem_tensor(4, F32), cute.make_rmem_tensor(4, F32)
        src[0] = a[t]
        if mended:
            src[3] = a[t]
        cute.basic_copy(src, dst)
        out[t] = dst[0] + dst[3]

    return kernel


@bug("element (1, 1) of the registers `frag`")
def retiled_fragment_of_which_a_column_is_missing(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        frag = cute.make_rmem_tensor((2, 2), F32)
        frag[0, 0] = frag[1, 0] = frag[0, 1] = a[t]
        if mended:
            frag[1, 1] = 1.0
        flat = cute.make_tensor(frag.iterator, cute.make_layout(4))
        out[t] = flat[3]

    return kernel


@bug("registers `acc`", "decides a branch")
def branch_on_an_accumulator_that_was_not_cleared(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        acc = cute.make_rmem_tensor(1, F32)
        if mended:
            acc[0] = 0.0
        if acc[0] + a[t] > 3.0:
            out[t] = 1.0

    return kernel


@bug("registers `at`", "out[t] = a[at[0]]")
def index_that_was_not_set(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        at = cute.make_rmem_tensor(1, cute.Int32)
        if mended or t > 3:
            at[0] = t
        out[t] = a[at[0]]

    return kernel


@bug("registers `steps`", "is an index, an address or a count")
def count_of_a_loop_that_was_not_set(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        steps = cute.make_rmem_tensor(1, cute.Int32)
        if mended:
            steps[0] = 3
        for i in range(steps[0]):
            out[t] += a[t + i]

    return kernel


@bug("registers `acc`", "+= a[t + N * i]")
def sum_in_a_loop_that_starts_from_nothing(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        acc = cute.make_rmem_tensor(1, F32)
        if mended:
            acc.fill(0)
        for i in range(4):
            acc[0] += a[t + N * i]
        out[t] = acc[0]

    return kernel


@bug("registers `best`", "stored to global memory")
def reduction_of_a_vector_with_a_hole(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        best = cute.make_rmem_tensor(4, F32)
        for i in cute.range_constexpr(4 if mended else 3):
            best[i] = a[t + N * i]
        out[t] = best.load().reduce(cute.ReductionOp.MAX, -math.inf)

    return kernel


@bug("registers `x`", "stored to global memory")
def selection_by_a_mask_that_does_not_cover_it(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        x = cute.make_rmem_tensor(4, F32)
        x[0] = x[1] = a[t]
        index = cute.make_rmem_tensor(4, cute.Int32)
        for i in cute.range_constexpr(4):
            index[i] = i
        v = cute.where(index.load() < (2 if mended else 3), x.load(), 0.0)
        out[t] = v.reduce(cute.ReductionOp.ADD, 0.0)

    return kernel


@bug("registers `x`", "math.exp(x[0])")
def functions_and_types_pass_on_what_is_undefined(mended):
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        x = cute.make_rmem_tensor(2, F32)
        x[1] = a[t]
        low = np.log2(np.float32(max(float(abs(round(math.exp(x[0])))), 1.0)))
        high = np.log2(np.float32(max(float(abs(round(math.exp(x[1] / 100)))), 1.0)))
        out[t] = high if mended else low

    return kernel


@bug("stored to global memory", "self.scale * self.regs[1]")
def struct_whose_fragment_is_half_filled(mended):
    @cute.struct
    class Held:
        regs: object
        scale: F32

        def total(self):
            return self.scale * self.regs[0] + self.scale * self.regs[1]

    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        regs = cute.make_rmem_tensor(2, F32)
        regs[0] = a[t]
        if mended:
            regs[1] = 0.0
        held = Held(regs, 2.0)
        out[t] = held.total()

    return kernel


@bug("element 0 of the registers `v`", "shuffle_sync(v[0], t ^ 1)")
def shuffle_from_a_lane_that_has_nothing(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        v = cute.make_rmem_tensor(1, F32)
        if mended or t < 16:
            v[0] = a[t]
        got = cute.arch.shuffle_sync(v[0], t ^ 1)
        out[t] = got

    return kernel


@bug("registers `v`", "stored to shared memory")
def shared_memory_filled_from_a_fragment_with_a_hole(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        buf = cuda.shared.array(4 * N, numba.float32)
        v = cute.make_rmem_tensor(4, F32)
        for i in cute.range_constexpr(4 if mended else 3):
            v[i] = a[t + N * i]
        cute.autovec_copy(v, cute.local_tile(cute.make_tensor(buf, 4 * N), (4,), (t,)))
        cuda.syncthreads()
        out[t] = buf[t]

    return kernel


@bug("registers `v`", "in atomic_add")
def atomic_of_a_value_that_was_not_set(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        v = cute.make_rmem_tensor(1, F32)
        if mended:
            v[0] = a[t]
        cute.arch.atomic_add(cute.make_tensor(out, N).iterator, v[0])

    return kernel


@bug("element 2 of the local array `mine`", "mine[2]", "stored to global memory")
def local_array_with_a_hole(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        mine = cuda.local.array(4, numba.float32)
        for i in range(4 if mended else 2):
            mine[i] = a[t + i]
        out[t] = 2 * mine[2]

    return kernel


@bug("element (1, 1) of the local array `mine`", "decides a branch")
def local_array_of_two_modes_copied_within(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        mine = cuda.local.array((2, 2), numba.float32)
        mine[0, 0] = a[t]
        if mended:
            mine[1, 1] = 3.0
        mine[0, 1] = mine[1, 1]
        if mine[0, 1] > mine[0, 0]:
            out[t] = 1.0

    return kernel


@bug("local array `old`", "stored to global memory")
def local_array_copied_by_slices_and_iterated(mended):
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        old, new = cuda.local.array(4, numba.float32), cuda.local.array(4, numba.float32)
        for i in range(4 if mended else 3):
            old[i] = a[t + i]
        new[:] = old
        total = numba.float32(0)
        for x in new:
            total += x
        out[t] = total

    return kernel


@bug("registers `lut`", "stored to global memory")
def registers_indexed_by_what_was_loaded(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        lut = cute.make_rmem_tensor(64, F32)
        for i in cute.range_constexpr(64 if mended else 31):
            lut[i] = i
        out[t] = lut[np.int32(a[t])]

    return kernel


@bug("element 3 of the local array `mine`", "loaded through a tensor")
def tensor_made_of_a_local_array_with_a_hole(mended):
    @cuda.jit
    def kernel(a, out, n):
        t = cuda.threadIdx.x
        mine = cuda.local.array(4, numba.float32)
        for i in range(4 if mended else 3):
            mine[i] = a[t + i]
        regs = cute.make_rmem_tensor(4, F32)
        cute.autovec_copy(cute.make_tensor(mine, 4), regs)
        out[t] = regs[0]

    return kernel


@named(BUGS)
@pytest.mark.parametrize("options", ORDERS[:1], ids=str)
def test_it_is_reported_for_what_it_is(bug, options):
    is_reported(bug, options)


@named(BUGS)
@pytest.mark.parametrize("options", ORDERS[1:2], ids=str)
def test_the_mended_one_is_silent(bug, options):
    is_silent(bug, options)


@pytest.mark.skipif(not NAMES_ONE_OF_SEVERAL, reason="the line assigns two variables")
def test_the_whole_report():
    with pytest.raises(UninitializedReadError) as caught:
        BUGS[2].run(False)
    first, read, used, fix = str(caught.value).splitlines()
    assert "thread 0 (warp 0) uses element (0, 1) of the registers `acc`, which it has never written; made at" in first
    assert first.endswith("`acc, half = cute.make_rmem_tensor((2, 2), F32), cute.make_rmem_tensor((2, 2), F16)`")
    assert read.startswith("  it is read at tests") and read.endswith("`half.store(acc.load().to(F16))`")
    assert used.startswith("  what comes of it is stored to global memory at tests")
    assert used.endswith("`out[t] = half[0, 0] if mended else half[0, 1]`")
    assert fix.startswith("  fix: write it first (acc.fill(0)")


@pytest.mark.parametrize("library", [True, False], ids=["lanes as one", "lane by lane"])
def test_without_checks_what_nobody_wrote_is_poison(library):
    @cuda.jit
    def kernel(out, whole):
        t = cute.arch.lane_idx()
        if not library:
            print()
        regs, ints = cute.make_rmem_tensor(2, F32), cute.make_rmem_tensor(2, cute.Int32)
        mine = cuda.local.array(2, numba.float32)
        regs[0] = mine[0] = ints[0] = 1
        out[t] = regs[1] + regs[0]
        out[t + 32] = mine[1]
        whole[t] = ints[1]

    out, whole = np.zeros(64, np.float32), np.zeros(32, np.int32)
    simulate(kernel, checks=False)[1, 32](out, whole)
    assert np.isnan(out).all() and (whole == -1).all()


def test_only_the_check_of_uninitialised_reads_looks_at_registers():
    simulate(BUGS[0].make(False), checks=("races", "registers"))[1, 32](*line())


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_a_tiled_epilogue_with_bounds_is_silent(seed):
    """Loads, arithmetic, conversion and stores of whole fragments at the edge of a matrix, guarded alone in memory."""

    @cuda.jit
    def kernel(a, c, m):
        t = cuda.threadIdx.x
        src, dst = [cute.local_tile(cute.make_tensor(x, (8, 32)), (8, 1), (0, t)) for x in (a, c)]
        pred, old, acc = (
            cute.make_rmem_tensor((8, 1), cute.Boolean), cute.make_rmem_tensor((8, 1), F32),
            cute.make_rmem_tensor((8, 1), F32),
        )  # fmt: skip
        for i in cute.range_constexpr(8):
            pred[i] = i < m
        cute.basic_copy_if(pred, src, old)
        acc.fill(1)
        acc.store(acc.load() * 2.0 + old.load())
        half = cute.make_rmem_tensor((8, 1), F16)
        half.store(cute.where(acc.load() > 1000.0, 0.0, acc.load()).to(F16))
        wide = cute.make_rmem_tensor((8, 1), F32)
        wide.store(half.load().to(F32))
        cute.basic_copy_if(pred, wide, dst)

    a, c = np.arange(256, dtype=np.float32), np.full(256, -1, np.float32)
    simulate(kernel, seed=seed)[1, 32](a, c, 5)
    want = np.where(np.arange(256) % 8 < 5, a + 2, -1)
    np.testing.assert_array_equal(c, want)
