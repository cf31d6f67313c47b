# SPDX-License-Identifier: Apache-2.0
"""Kernels that multiply one tile by tcgen05.mma operations: operands by plain stores, results as words."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, pipeline, seam, utils
from numba_cute.isa.facts import tensor_memory
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import Field, OperandSource

THREADS = 128


def held(dtype):
    """The type of the elements of shared memory that an operand of `dtype` is read from."""
    return cute.Float32 if dtype == dtypes.TFloat32 else cute.Uint8 if dtype.width < 8 else dtype


@seam.traced
def fence_before():
    isa.tcgen05_fence_before()


@seam.traced
def fence_after():
    isa.tcgen05_fence_after()


@seam.traced
def meet():
    """All threads of the CTAs, and their work on tensor memory."""
    isa.tcgen05_fence_before()
    arch.cluster_arrive()
    arch.cluster_wait()
    isa.tcgen05_fence_after()


@seam.traced
def read_words(regs, ptr, warp, num):
    """This warp's 32 lanes of `num` columns, after the barrier that said that they are complete."""
    isa.tcgen05_fence_after()
    dst = seam.Regs(regs.iterator.address, dtypes.Uint32, 0, num)
    isa.tcgen05_ld(dst=dst, taddr=ptr.address + ((warp * 32) << 16), shape="32x32b", num=num)
    isa.tcgen05_wait_ld()


@seam.traced
def write_words(regs, ptr, warp, num):
    src = seam.Regs(regs.iterator.address, dtypes.Uint32, regs.iterator.offset, num)
    isa.tcgen05_st(taddr=ptr.address + ((warp * 32) << 16), src=src, shape="32x32b", num=num)
    isa.tcgen05_wait_st()


def smem_layout(shape, dtype, major, swizzle):
    kind = tcgen05.SmemLayoutAtomKind[f"{major}_{swizzle}"]
    order = (0, 1) if major == "K" else (1, 0)
    return tcgen05.tile_to_mma_shape(tcgen05.make_smem_layout_atom(kind, dtype), shape, order)


def result_words(op, tile):
    """How many columns the product of a tile takes, to a power of two."""
    mma = cute.make_tiled_mma(op)
    lay = mma.make_fragment_C(mma.partition_shape_C(tile[:2])).layout
    return 1 << (tensor_memory.column_count(lay, op.accumulator.width) - 1).bit_length()


def product_of(op, tile, negate, twice):
    """What one warp does: the products of a tile, and their commit."""
    m, n, k = tile
    mma, group = cute.make_tiled_mma(op), op.cta_group
    shape_a = mma.partition_shape_A((m, k))
    acc_layout = mma.make_fragment_C(mma.partition_shape_C((m, n))).layout
    in_tmem, floats = op.a_src is OperandSource.TMEM, Field.NEGATE_A in op.fields
    mask, a_at = 3 if group.value == 2 else None, 256 * 32 // op.a_type.width

    @seam.traced
    def product(tmem, s_a, s_b, bar):
        made = mma.set(Field.ACCUMULATE, False)
        if floats:
            made = made.set(Field.NEGATE_A, negate[0]).set(Field.NEGATE_B, negate[1])
        acc = cute.make_tensor(tmem, acc_layout)
        if in_tmem:
            part = made.make_fragment_A(shape_a)
            f_a = cute.make_tensor(cute.recast_ptr(tmem, dtype=part.element_type) + a_at, part.layout)
        else:
            f_a = made.make_fragment_A(s_a)
        f_b = made.make_fragment_B(s_b)
        cute.gemm(made, acc, f_a, f_b, acc)
        if twice:
            cute.gemm(made.set(Field.ACCUMULATE, True), acc, f_a, f_b, acc)
        tcgen05.commit(bar, mask, group)

    return product


def multiply(op, tile, swizzles=("SW128", "SW128"), negate=(False, False), twice=False):
    """A kernel (a, b, out) of one tile (M, N, K); each CTA's part of a and b as `parts` gives it, out (CTAs, 128,
    words). A in tensor memory comes as words (CTAs, 128, K * width / 32). twice: the product is added once more."""
    m, n, k = tile
    ctas, mma = op.cta_group.value, cute.make_tiled_mma(op)
    shape_a, shape_b = mma.partition_shape_A((m, k)), mma.partition_shape_B((n, k))
    type_a, type_b, acc_type = held(op.a_type), held(op.b_type), op.accumulator
    lay_a = smem_layout(shape_a, type_a, op.a_major_mode.name, swizzles[0])
    lay_b = smem_layout(shape_b, type_b, op.b_major_mode.name, swizzles[1])
    in_tmem, words, a_words = op.a_src is OperandSource.TMEM, result_words(op, tile), k * op.a_type.width // 32
    columns, size_a, size_b, product = 512, cute.size(shape_a), cute.size(shape_b), product_of(op, tile, negate, twice)

    @cute.cluster_shape(ctas, 1)
    @cuda.jit
    def kernel(a, b, out):
        tid, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(type_a, lay_a.outer, 1024, lay_a.inner)
        s_b = smem.allocate_tensor(type_b, lay_b.outer, 1024, lay_b.inner)
        bar, slot = smem.allocate_array(cute.Int64, 1), smem.allocate_array(cute.Int32, 1)
        if tid == 0:
            arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        if not in_tmem:
            for i in range(tid, size_a, THREADS):
                s_a[i] = a[rank, i]
        for i in range(tid, size_b, THREADS):
            s_b[i] = b[rank, i]
        arch.fence_proxy("async.shared", space="cta")
        pipeline.pipeline_init_arrive((ctas, 1))
        pipeline.pipeline_init_wait((ctas, 1))
        if warp == 0:
            arch.alloc_tmem(columns, slot, ctas == 2)
            fence_before()
        arch.sync_threads()
        fence_after()
        tmem = arch.retrieve_tmem_ptr(acc_type, 16, slot)
        got = cute.make_rmem_tensor(words, cute.Uint32)
        for j in cute.range_constexpr(words):
            got[j] = 0
        write_words(got, tmem, warp, words)  # lanes that no product reaches are read too
        if in_tmem:
            regs = cute.make_rmem_tensor(a_words, cute.Uint32)
            for j in cute.range_constexpr(a_words):
                regs[j] = a[rank, tid, j]
            write_words(regs, tmem + 256 * 32 // acc_type.width, warp, a_words)
        meet()
        if warp == 0 and rank == 0:
            product(tmem, s_a, s_b, bar)
        arch.mbarrier_wait(bar, 0)
        read_words(got, tmem, warp, words)
        for j in cute.range_constexpr(words):
            out[rank, tid, j] = got[j]
        meet()
        if warp == 0:
            arch.dealloc_tmem(tmem, columns, ctas == 2)

    return kernel


def parts(x, rows, k_of_one, ctas):
    """A matrix (MN, K) as the CTAs' threads store it: for each its elements in the order of ((mn, k), rest MN, rest K).
    rows: of one multiply, of all its CTAs."""
    mn, k = x.shape
    blocks = x.reshape(mn // rows, ctas, rows // ctas, k // k_of_one, k_of_one)  # rest MN, CTA, mn, rest K, k
    return np.ascontiguousarray(blocks.transpose(1, 3, 0, 4, 2)).reshape(ctas, -1)
