# SPDX-License-Identifier: Apache-2.0
"""Operands and accumulators of matrix instructions of which some elements were never written."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, utils
from numba_cute.nvgpu import warp, warpgroup
from numba_cute.runtime import from_dlpack

from .registers import ORDERS, is_reported, is_silent, named, registry

BUGS = []
F16, F32 = cute.Float16, cute.Float32
OP = warp.MmaF16BF16Op(F16, F32, (16, 8, 16))
TILED = cute.make_tiled_mma(OP)
GMMA = {
    src: cute.make_tiled_mma(
        warpgroup.MmaF16BF16Op(F16, F32, (64, 8, 16), src, warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.K)
    )
    for src in (warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM)
}
SMEM, RMEM = GMMA.values()
ATOM = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW32, F16)


def product(m=16, n=8, k=16):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(1, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return from_dlpack(a), from_dlpack(b), from_dlpack(np.zeros((m, n), np.float32))


bug = registry(BUGS, product)


@bug("registers `rC`", "mma_f32 accumulates onto it", "stored to global memory", "rC.fill(0)")
def accumulators_that_were_not_cleared(mended):
    @cuda.jit
    def kernel(a, b, c):
        mma = TILED.get_slice(cuda.threadIdx.x)
        tA, tB, tC = mma.partition_A(a), mma.partition_B(b), mma.partition_C(c)
        rA, rB, rC = TILED.make_fragment_A(tA), TILED.make_fragment_B(tB), TILED.make_fragment_C(tC)
        cute.basic_copy(tA, rA)
        cute.basic_copy(tB, rB)
        if mended:
            rC.fill(0)
        cute.gemm(TILED, rC, rA, rB, rC)
        cute.basic_copy(rC, tC)

    return kernel


@bug("registers `rA`", "mma_f32 multiplies by it", "stored to global memory")
def operand_of_which_a_copy_left_rows_out(mended):
    """Rows 8 to 15 are beyond the matrix: what they make must not be stored."""

    @cuda.jit
    def kernel(a, b, c):
        mma = TILED.get_slice(cuda.threadIdx.x)
        at = mma.partition_A(cute.make_identity_tensor((16, 16)))
        to = mma.partition_C(cute.make_identity_tensor((16, 8)))
        tA, tB, tC = mma.partition_A(a), mma.partition_B(b), mma.partition_C(c)
        rA, rB, rC = TILED.make_fragment_A(tA), TILED.make_fragment_B(tB), TILED.make_fragment_C(tC)
        for i in cute.range_constexpr(cute.size(rA)):
            if at[i][0] < 8:
                rA[i] = tA[i]
        cute.basic_copy(tB, rB)
        rC.fill(0)
        cute.gemm(TILED, rC, rA, rB, rC)
        for i in cute.range_constexpr(cute.size(rC)):
            if not mended or to[i][0] < 8:
                tC[i] = rC[i]

    return kernel


@bug("registers `rB`", "mma_f32 multiplies by it")
def operand_of_which_the_last_k_are_missing(mended):
    @cuda.jit
    def kernel(a, b, c):
        mma = TILED.get_slice(cuda.threadIdx.x)
        at = mma.partition_B(cute.make_identity_tensor((8, 16)))
        tA, tB, tC = mma.partition_A(a), mma.partition_B(b), mma.partition_C(c)
        rA, rB, rC = TILED.make_fragment_A(tA), TILED.make_fragment_B(tB), TILED.make_fragment_C(tC)
        cute.basic_copy(tA, rA)
        if mended:
            rB.fill(0)
        for i in cute.range_constexpr(cute.size(rB)):
            if at[i][1] < 12:
                rB[i] = tB[i]
        rC.fill(0)
        cute.gemm(TILED, rC, rA, rB, rC)
        cute.basic_copy(rC, tC)

    return kernel


@bug("element 4 of the registers `c`", "mma_f32 accumulates onto it")
def accumulators_loaded_by_a_predicate_and_stored_without(mended):
    """The accumulators start from C, of which columns beyond the matrix are not loaded."""

    @cuda.jit
    def kernel(a, b, out):
        t = cuda.threadIdx.x
        c, x, y = cute.make_rmem_tensor(8, F32), cute.make_rmem_tensor(8, F16), cute.make_rmem_tensor(4, F16)
        for i in cute.range_constexpr(4):
            c[i] = 1.0
        x.fill(1)
        y.fill(1)
        for half in cute.range_constexpr(2):
            part = cute.make_tensor(c.iterator + 4 * half, cute.make_layout(4))
            cute.mma_atom_call(cute.make_mma_atom(OP), part, x, y, part)
        for i in cute.range_constexpr(4 if mended else 5):
            out[t % 16, t // 16 + 2 * i if i < 4 else 7] = c[i]

    return kernel


@bug("registers `acc`", "mma_s32 accumulates onto it")
def integer_accumulators_that_were_not_cleared(mended):
    def kernel(a, b, out):
        acc = cute.make_rmem_tensor(4, cute.Int32)
        if mended:
            acc.fill(0)
        isa.mma.mma_s32(regs(acc), (1, 1, 1, 1), (1, 1), m=16, k=32, a_type="s8", b_type="u8", saturate=False)
        if cuda.threadIdx.x == 0 and acc[2] == 7:
            out[0, 0] = 1.0

    return kernel


@cute.seam.traced
def regs(t):
    return cute.seam.Regs(t.iterator.address, t.iterator.dtype, 0, cute.size(t))


def wide():
    return product(64, 8, 32)


@bug("registers `acc`", "wgmma_ss accumulates onto it", "ACCUMULATE False for the first k block",
     arguments=wide, threads=128)  # fmt: skip
def wgmma_whose_first_k_block_accumulates(mended):
    @cuda.jit
    def kernel(a, b, c):
        t = cuda.threadIdx.x
        smem = utils.SmemAllocator()
        a_layout, b_layout = cute.tile_to_shape(ATOM, (64, 32), (0, 1)), cute.tile_to_shape(ATOM, (8, 32), (0, 1))
        sA = smem.allocate_tensor(F16, a_layout.outer, 1024, a_layout.inner, "sA")
        sB = smem.allocate_tensor(F16, b_layout.outer, 1024, b_layout.inner, "sB")
        for i in range(t, 64 * 32, 128):
            sA[i] = a[i]
        for i in range(t, 8 * 32, 128):
            sB[i] = b[i]
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_threads()
        mma = SMEM.get_slice(t)
        tC = mma.partition_C(c)
        rA, rB = SMEM.make_fragment_A(mma.partition_A(sA)), SMEM.make_fragment_B(mma.partition_B(sB))
        acc = SMEM.make_fragment_C(tC)
        first = SMEM.set(warpgroup.Field.ACCUMULATE, not mended)
        warpgroup.fence()
        cute.gemm(first, acc, rA[None, None, 0], rB[None, None, 0], acc)
        cute.gemm(SMEM.set(warpgroup.Field.ACCUMULATE, True), acc, rA[None, None, 1], rB[None, None, 1], acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.basic_copy(acc, tC)

    return kernel


@bug("registers `rA`", "wgmma_rs multiplies by it", "stored to global memory", arguments=lambda: product(64),
     threads=128)  # fmt: skip
def wgmma_with_an_operand_in_registers_of_which_rows_are_missing(mended):
    @cuda.jit
    def kernel(a, b, c):
        t = cuda.threadIdx.x
        smem = utils.SmemAllocator()
        b_layout = cute.tile_to_shape(ATOM, (8, 16), (0, 1))
        sB = smem.allocate_tensor(F16, b_layout.outer, 1024, b_layout.inner, "sB")
        for i in range(t, 8 * 16, 128):
            sB[i] = b[i]
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_threads()
        mma = RMEM.get_slice(t)
        tA, tC = mma.partition_A(a), mma.partition_C(c)
        at = mma.partition_A(cute.make_identity_tensor((64, 16)))
        to = mma.partition_C(cute.make_identity_tensor((64, 8)))
        rA, rB, acc = RMEM.make_fragment_A(tA), RMEM.make_fragment_B(mma.partition_B(sB)), RMEM.make_fragment_C(tC)
        for i in cute.range_constexpr(cute.size(rA)):
            if at[i][0] < 56:
                rA[i] = tA[i]
        warpgroup.fence()
        cute.gemm(RMEM.set(warpgroup.Field.ACCUMULATE, False), acc, rA, rB, acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        for i in cute.range_constexpr(cute.size(acc)):
            if not mended or to[i][0] < 56:
                tC[i] = acc[i]

    return kernel


@bug("registers `words`", "is an operand of stmatrix")
def stmatrix_of_a_fragment_with_a_hole(mended):
    def kernel(a, b, c):
        t = cuda.threadIdx.x
        smem = utils.SmemAllocator()
        tile = smem.allocate_tensor(F16, cute.make_layout((8, 16), stride=(16, 1)), 128, None, "tile")
        words = cute.make_rmem_tensor(4, F16)
        for i in cute.range_constexpr(4 if mended else 3):
            words[i] = t
        row = cute.make_tensor(tile.iterator + t % 8 * 16 + t // 8 % 2 * 8, cute.make_layout(8))
        isa.matrix.stmatrix(row.iterator.toint(), regs(words), num=2, trans=False)
        arch.sync_threads()
        c[t % 16, t // 16] = tile[t % 8, 0]

    return kernel


@bug("registers `v`", "is an operand of tcgen05_st", arch="sm_100a")
def tensor_memory_filled_from_registers_with_a_hole(mended):
    def kernel(a, b, c):
        smem = utils.SmemAllocator()
        held = smem.allocate_tensor(cute.Uint32, cute.make_layout(1), 16, None, "held")
        isa.tcgen05.tcgen05_alloc(held.iterator.toint(), 32, cta_group=1)
        v = cute.make_rmem_tensor(2, cute.Uint32)
        for i in cute.range_constexpr(2 if mended else 1):
            v[i] = 3
        arch.sync_threads()
        isa.tcgen05.tcgen05_st(held[0], regs(v), shape="32x32b", num=2)
        isa.tcgen05.tcgen05_wait_st()
        isa.tcgen05.tcgen05_dealloc(held[0], 32, cta_group=1)

    return kernel


@bug("registers `vote`", "vote_ballot", "decides a branch")
def vote_of_a_predicate_that_was_not_set(mended):
    @cuda.jit
    def kernel(a, b, c):
        t = cuda.threadIdx.x
        vote = cute.make_rmem_tensor(1, cute.Boolean)
        if mended or t > 0:
            vote[0] = t > 3
        found = arch.vote_ballot_sync(vote[0])
        if found != 0:
            c[t % 16, t // 16] = 1.0

    return kernel


@bug("registers `pair`", "stored to global memory", arch="sm_100a")
def packed_addition_of_which_one_half_is_undefined(mended):
    @cuda.jit
    def kernel(a, b, c):
        t = cuda.threadIdx.x
        pair = cute.make_rmem_tensor(2, F32)
        pair[0] = 1.0
        low, high = arch.add_packed_f32x2((pair[0], pair[1]), (1.0, 2.0))
        c[t % 16, t // 16] = low if mended else high

    return kernel


@named(BUGS)
@pytest.mark.parametrize("options", ORDERS[:1], ids=str)
def test_it_is_reported_for_what_it_is(bug, options):
    is_reported(bug, options)


@named(BUGS)
@pytest.mark.parametrize("options", ORDERS[1:2], ids=str)
def test_the_mended_one_is_silent(bug, options):
    is_silent(bug, options)
