# SPDX-License-Identifier: Apache-2.0
"""Kernels that multiply one tile by block-scaled and by sparse tcgen05.mma operations: operands, factors and metadata
by plain stores, results as words."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, seam, utils
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import Field, OperandSource
from numba_cute.utils import blockscaled_layout as blockscaled

from .umma_kernels import THREADS, meet, parts, read_words, result_words, smem_layout, write_words

A_COLUMN, SFA_COLUMN, SFB_COLUMN, META_COLUMN = 256, 320, 384, 448


def held(op, dtype):
    """The type of the elements of shared memory that an operand is read from."""
    if dtype.width < 8 and not op.packed:
        return cute.Uint8
    return cute.Float32 if dtype == cute.TFloat32 else dtype


def bits_of_a(op):
    """How many bits an element of A takes in tensor memory."""
    return op.a_type.width if op.packed else max(op.a_type.width, 8)


def is_scaled(op):
    return Field.SFA in op.fields


def factor_layouts(op, tile):
    """Where the factors of A and of B lie in tensor memory, and how many columns these take."""
    mma, vec = cute.make_tiled_mma(op), op.sf_vec_size
    found = []
    for name, make in (("sfa", blockscaled.make_tmem_layout_sfa), ("sfb", blockscaled.make_tmem_layout_sfb)):
        smem = getattr(blockscaled, f"make_smem_layout_{name}")(mma, tile, vec, 1)
        found.append(make(mma, tile, vec, cute.slice_(smem, (None, None, None, 0))))
    return found


def factor_words(op, tile, factors, operand):
    """Factors (rows, K / vec), as bytes, as words of the CTAs' tensor memory (CTAs, 128, columns)."""
    ctas, m = op.cta_group.value, op.shape_mnk[0]
    rows, chunks = len(factors), factors.shape[1] // 4
    each = []
    for c in range(ctas):
        mine = factors[c * rows // ctas : (c + 1) * rows // ctas] if operand == "A" else factors
        halves = 2 if operand == "B" and (ctas, m) == (2, 128) else 1
        share = len(mine) // halves
        columns = -(-share // 32)
        if operand == "A" or halves == 1:
            columns = -(-share // 128) * 4
        else:
            columns = -(-len(mine) // 128) * 2
        words = np.full((4, 32, chunks * columns, 4), 0x55, np.uint8)
        for r in range(len(mine)):
            half, i = divmod(r, share)
            for q in range(4):
                if halves == 1 or q // 2 == half:
                    for chunk in range(chunks):
                        words[q, i % 32, chunk * columns + i // 32] = mine[r, 4 * chunk : 4 * chunk + 4]
        each.append(words.reshape(128, -1).view(np.uint32))
    return np.stack(each)


def factor_offset(op, tile, operand, i):
    """Where the factors of the i-th 96 elements of K begin, in factors: not a layout's stride, for they cross words."""
    chunk, byte = divmod(i * op.shape_mnk[2] // op.sf_vec_size, 4)
    columns = 4 * -(-tile[1] // 128) if operand == "B" else 4
    return 4 * columns * chunk + byte


def product_of(op, tile, swizzles, lists, more):
    """What one warp does: the products of a tile, block of K by block of K or in one call, and their commit."""
    m, n, k = tile
    mma, group, scaled = cute.make_tiled_mma(op), op.cta_group, is_scaled(op)
    acc_layout = mma.make_fragment_C(mma.partition_shape_C((m, n))).layout
    shape_a, in_tmem = mma.partition_shape_A((m, k // op.sparsity)), op.a_src is OperandSource.TMEM
    by_layout = scaled and op.shape_mnk[2] != 96
    lay_sfa, lay_sfb = factor_layouts(op, tile) if by_layout else (cute.make_layout(1), cute.make_layout(1))
    mask, steps = 3 if group.value == 2 else None, k // op.shape_mnk[2]
    (lay_a, type_a, _), (lay_b, type_b, _) = layouts(op, tile, swizzles)

    @seam.traced
    def product(tmem, r_a, r_b, bar):
        s_a = cute.make_tensor(cute.recast_ptr(r_a.iterator, lay_a.inner, type_a), lay_a.outer)
        s_b = cute.make_tensor(cute.recast_ptr(r_b.iterator, lay_b.inner, type_b), lay_b.outer)
        made = mma.set(Field.ACCUMULATE, False)
        for name, value in more.items():
            made = made.set(Field[name], value)
        acc = cute.make_tensor(cute.recast_ptr(tmem, dtype=op.accumulator), acc_layout)
        if scaled:
            sfa = cute.make_tensor(cute.recast_ptr(tmem + SFA_COLUMN, dtype=op.factor_type), lay_sfa)
            sfb = cute.make_tensor(cute.recast_ptr(tmem + SFB_COLUMN, dtype=op.factor_type), lay_sfb)
        if in_tmem:
            part = made.make_fragment_A(shape_a)
            f_a = cute.make_tensor(cute.recast_ptr(tmem + A_COLUMN, dtype=part.element_type), part.layout)
        else:
            f_a = made.make_fragment_A(s_a)
        f_b = made.make_fragment_B(s_b)
        if lists:
            cute.gemm(made, acc, [f_a, sfa], [f_b, sfb], acc)
        else:
            for i in range(steps):
                at = (None, None, i)
                if by_layout:
                    made = made.set(Field.SFA, sfa[at].iterator).set(Field.SFB, sfb[at].iterator)
                elif scaled:
                    made = made.set(Field.SFA, sfa.iterator + factor_offset(op, tile, "A", i))
                    made = made.set(Field.SFB, sfb.iterator + factor_offset(op, tile, "B", i))
                if op.sparsity == 2:
                    column = META_COLUMN + i * op.metadata_places()[2][2]
                    made = made.set(Field.METADATA, cute.recast_ptr(tmem + column, dtype=cute.Uint32))
                cute.gemm(made, acc, f_a[at], f_b[at], acc)
                made = made.set(Field.ACCUMULATE, True)
        tcgen05.commit(bar, mask, group)

    return product


def layouts(op, tile, swizzles):
    """Of A and of B in shared memory: the layout and type of their elements, and the layout of their bytes."""
    mma, (m, n, k), found = cute.make_tiled_mma(op), tile, []
    shapes = mma.partition_shape_A((m, k // op.sparsity)), mma.partition_shape_B((n, k))
    for shape, dtype, major, swizzle in zip(
        shapes, (op.a_type, op.b_type), (op.a_major_mode.name, op.b_major_mode.name), swizzles
    ):
        (mn, k), *rest = shape
        raw = smem_layout(((mn, k * held(op, dtype).width // 8), *rest), cute.Uint8, major, swizzle)
        found.append((smem_layout(shape, held(op, dtype), major, swizzle), held(op, dtype), raw))
    return found


def more_columns(op, tile):
    """How many columns a CTA has of A's factors, of B's, and of metadata."""
    (m, n, k), ctas = tile, op.cta_group.value
    meta = k // op.shape_mnk[2] * op.metadata_places()[2][2] if op.sparsity == 2 else 0
    if not is_scaled(op):
        return 0, 0, meta
    chunks = k // op.sf_vec_size // 4
    paired = (ctas, op.shape_mnk[0]) == (2, 128)
    return chunks * 4 * -(-m // (128 * ctas)), chunks * 4 * -(-n // 128) // (1 + paired), meta


@seam.traced
def write_columns(regs, first, count, step, tmem, column, warp):
    """Some of this warp's words, `step` columns at a time."""
    for j in range(0, count, step):
        some = cute.make_tensor(regs.iterator + first + j, cute.make_layout(step))
        write_words(some, tmem + column + j, warp, step)


def multiply(op, tile, swizzles=("SW128", "SW128"), lists=False, **fields):
    """A kernel (a, b, factors, out) of one tile: operands as bytes by `parts`; factors, metadata, out, and A in
    tensor memory, as words (CTAs, 128, columns). fields: the atom's."""
    ctas, in_tmem, words = op.cta_group.value, op.a_src is OperandSource.TMEM, result_words(op, tile)
    (_, _, raw_a), (_, _, raw_b) = layouts(op, tile, swizzles)
    size_a, size_b, part = cute.size(raw_a.outer), cute.size(raw_b.outer), min(words, 64)
    a_words, (count_a, count_b, meta) = tile[2] // op.sparsity * bits_of_a(op) // 32, more_columns(op, tile)
    product, count = product_of(op, tile, swizzles, lists, fields), count_a + count_b + meta

    @cute.cluster_shape(ctas, 1)
    @cuda.jit
    def kernel(a, b, factors, out):
        tid, warp = cuda.threadIdx.x, arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        r_a = smem.allocate_tensor(cute.Uint8, raw_a.outer, 1024, raw_a.inner)
        r_b = smem.allocate_tensor(cute.Uint8, raw_b.outer, 1024, raw_b.inner)
        bar, slot = smem.allocate_array(cute.Int64, 1), smem.allocate_array(cute.Int32, 1)
        if tid == 0:
            arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        if not in_tmem:
            for i in range(tid, size_a, THREADS):
                r_a[i] = a[rank, i]
        for i in range(tid, size_b, THREADS):
            r_b[i] = b[rank, i]
        arch.fence_proxy("async.shared", space="cta")
        pipeline.pipeline_init_arrive((ctas, 1))
        pipeline.pipeline_init_wait((ctas, 1))
        if warp == 0:
            arch.alloc_tmem(512, slot, ctas == 2)  # both CTAs have started
        meet()
        tmem = arch.retrieve_tmem_ptr(cute.Float32, 16, slot)
        got, more = cute.make_rmem_tensor(part, cute.Uint32), cute.make_rmem_tensor(count + a_words, cute.Uint32)
        got.fill(0)
        for i in cute.range_constexpr(words // part):
            write_words(got, tmem + i * part, warp, part)
        for j in cute.range_constexpr(count):
            more[j] = factors[rank, tid, j]
        write_columns(more, 0, count_a, 4, tmem, SFA_COLUMN, warp)
        write_columns(more, count_a, count_b, 2, tmem, SFB_COLUMN, warp)
        write_columns(more, count_a + count_b, meta, 1, tmem, META_COLUMN, warp)
        if in_tmem:
            for j in cute.range_constexpr(a_words):
                more[count + j] = a[rank, tid, j]
            write_columns(more, count, a_words, 8, tmem, A_COLUMN, warp)
        meet()
        if warp == 0 and rank == 0:
            product(tmem, r_a, r_b, bar)
        arch.mbarrier_wait(bar, 0)
        for i in cute.range_constexpr(words // part):
            read_words(got, tmem + i * part, warp, part)
            for j in cute.range_constexpr(part):
                out[rank, tid, i * part + j] = got[j]
        meet()
        if warp == 0:
            arch.dealloc_tmem(tmem, 512, ctas == 2)

    return kernel


def parts_in_bytes(op, x, rows, k_of_one, dtype):
    """A matrix of bytes (MN, K bytes) as the CTAs' threads store it."""
    return parts(x, rows, k_of_one * held(op, dtype).width // 8, op.cta_group.value)
