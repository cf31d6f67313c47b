# SPDX-License-Identifier: Apache-2.0
"""Mistakes with matrix instructions: mma, wgmma and tcgen05."""

import numpy as np

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import tcgen05, warp, warpgroup

from .form import mistake

F16, F32, BF16 = cute.Float16, cute.Float32, cute.BFloat16
K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
OP = warpgroup.MmaF16BF16Op(F16, F32, (64, 64, 16), SMEM, K, K)
SW128 = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, F16)
K_MAJOR = cute.tile_to_shape(SW128, (64, 64), (0, 1))
WARP = warp.MmaF16BF16Op(F16, F32, (16, 8, 16))


@mistake("must be Float16 or BFloat16")
def wgmma_of_single_precision(x):
    warpgroup.MmaF16BF16Op(F32, F32, (64, 64, 16), SMEM, K, K)  # wrong


@mistake("must be Float32 for")
def wgmma_of_bfloat16_into_half(x):
    warpgroup.MmaF16BF16Op(BF16, F16, (64, 64, 16), SMEM, K, K)  # wrong


@mistake("must be (64, n, 16)")
def wgmma_of_128_rows(x):
    warpgroup.MmaF16BF16Op(F16, F32, (128, 64, 16), SMEM, K, K)  # wrong


@mistake("multiple of 8")
def wgmma_of_60_columns(x):
    warpgroup.MmaF16BF16Op(F16, F32, (64, 60, 16), SMEM, K, K)  # wrong


@mistake("must be OperandMajorMode")
def wgmma_of_a_major_mode_by_name(x):
    warpgroup.MmaF16BF16Op(F16, F32, (64, 64, 16), SMEM, "K", K)  # wrong


@mistake("is not a matrix operation")
def tiled_mma_of_a_text(x):
    cute.make_tiled_mma("wgmma")  # wrong


@mistake("must have 3 static modes")
def atoms_in_two_modes(x):
    cute.make_tiled_mma(OP, (2, 1))  # wrong


@mistake("must have 3 entries")
def permutation_of_one_mode(x):
    cute.make_tiled_mma(OP, (1, 1, 1), (64,))  # wrong


@mistake("is not a tensor")
def partition_of_a_shape_by_mma(x):
    cute.make_tiled_mma(OP).get_slice(0).partition_A((64, 64))  # wrong


@mistake("swizzle")
def wgmma_operand_without_swizzle(x):
    s = utils.SmemAllocator().allocate_tensor(F16, (64, 64), 1024)
    tiled = cute.make_tiled_mma(OP)
    tiled.make_fragment_A(tiled.get_slice(0).partition_A(s))  # wrong


@mistake("must be aligned to 32 bytes for its 128-byte swizzle")
def wgmma_operand_off_its_lines(x):
    s = utils.SmemAllocator().allocate_tensor(F16, K_MAJOR.outer, 1024, K_MAJOR.inner)
    tiled = cute.make_tiled_mma(OP)
    part = cute.domain_offset((0, 8), s)
    tiled.make_fragment_A(tiled.get_slice(0).partition_A(part))  # wrong


@mistake("elements are BFloat16")
def wgmma_operand_of_another_type(x):
    s = utils.SmemAllocator().allocate_tensor(BF16, K_MAJOR.outer, 1024, K_MAJOR.inner)
    tiled = cute.make_tiled_mma(OP)
    tiled.make_fragment_A(tiled.get_slice(0).partition_A(s))  # wrong


@mistake("must lie in shared memory")
def wgmma_operand_in_registers(x):
    cute.make_tiled_mma(OP).make_fragment_A(cute.make_rmem_tensor((4, 1, 1), F16))  # wrong


@mistake("must be a partitioned tensor")
def wgmma_operand_that_is_a_shape(x):
    cute.make_tiled_mma(OP).make_fragment_B((64, 1, 4))  # wrong


@mistake("has shape", block=128)
def gemm_of_another_accumulator(x):
    s = utils.SmemAllocator().allocate_tensor(F16, K_MAJOR.outer, 1024, K_MAJOR.inner)
    tiled = cute.make_tiled_mma(OP)
    a = tiled.make_fragment_A(tiled.get_slice(0).partition_A(s))
    b = tiled.make_fragment_B(tiled.get_slice(0).partition_B(s))
    d = cute.make_rmem_tensor(((2, 2, 8), 2, 1), F32)
    cute.gemm(tiled, d, a, b, d)  # wrong


@mistake(
    "is not d", block=128, only="simulator", other="", reason="compiled code takes d for c: see docs/differences.md"
)
def gemm_of_two_accumulators(x):
    s = utils.SmemAllocator().allocate_tensor(F16, K_MAJOR.outer, 1024, K_MAJOR.inner)
    tiled = cute.make_tiled_mma(OP)
    a = tiled.make_fragment_A(tiled.get_slice(0).partition_A(s))
    b = tiled.make_fragment_B(tiled.get_slice(0).partition_B(s))
    c, d = cute.make_rmem_tensor(((2, 2, 8), 1, 1), F32), cute.make_rmem_tensor(((2, 2, 8), 1, 1), F32)
    cute.gemm(tiled.set(warpgroup.Field.ACCUMULATE, True), d, a, b, c)  # wrong


@mistake("is neither an MmaAtom nor a TiledMma")
def gemm_by_a_copy_operation(x):
    r = cute.make_rmem_tensor((4, 1, 1), F32)
    cute.gemm(5, r, r, r, r)  # wrong


@mistake("is not a member")
def layout_atom_by_name(x):
    warpgroup.make_smem_layout_atom("K_SW128", F16)  # wrong


@mistake("Op: shape_mnk")
def mma_of_a_shape_that_is_not_there(x):
    warp.MmaF16BF16Op(F16, F32, (16, 8, 32))  # wrong


@mistake("Op: ab_dtype Int")
def mma_of_integers(x):
    warp.MmaF16BF16Op(cute.Int8, F32, (16, 8, 16))  # wrong


@mistake("in registers, as make_fragment_B makes it")
def mma_fragments_of_two_types(x):
    tiled = cute.make_tiled_mma(WARP)
    a, b = cute.make_rmem_tensor(((2, 2, 2), 1, 1), F16), cute.make_rmem_tensor(((2, 2), 1, 1), F32)
    c = cute.make_rmem_tensor(((2, 2), 1, 1), F32)
    cute.gemm(tiled, c, a, b, c)  # wrong


@mistake("consecutive registers of one instruction")
def mma_fragments_of_another_size(x):
    tiled = cute.make_tiled_mma(WARP)
    a, b = cute.make_rmem_tensor(((2, 2), 1, 1), F16), cute.make_rmem_tensor(((2, 2), 1, 1), F16)
    c = cute.make_rmem_tensor(((2, 2), 1, 1), F32)
    cute.gemm(tiled, c, a, b, c)  # wrong


@mistake("sm_90a", arch="sm_80")
def wgmma_on_ampere(x):
    warpgroup.fence()  # wrong


@mistake("sm_100", arch="sm_90a")
def tcgen05_on_hopper(x):
    arch.fence_view_async_tmem_load()  # wrong


@mistake("a, and the target is sm_", arch="sm_100a")
def wgmma_on_blackwell(x):
    warpgroup.fence()  # wrong


@mistake("use sm_90 or a later one as arch=, or an operation that sm_80 has", arch="sm_80")
def cluster_on_ampere(x):
    arch.cluster_arrive()  # wrong


@mistake("for cta_group CtaGroup.ONE", arch="sm_100a")
def tcgen05_of_a_shape_that_is_not_there(x):
    tcgen05.MmaF16BF16Op(F16, F32, (100, 64, 16), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM, K, K)  # wrong


@mistake("must be CtaGroup.ONE or .TWO", arch="sm_100a")
def tcgen05_of_a_group_that_is_not_there(x):
    tcgen05.MmaF16BF16Op(F16, F32, (128, 64, 16), 3, tcgen05.OperandSource.SMEM, K, K)  # wrong


@mistake("must be a power of two from", arch="sm_100a")
def tensor_memory_of_33_columns(x):
    p = utils.SmemAllocator().allocate_array(cute.Int32, 1)
    arch.alloc_tmem(33, p)  # wrong


@mistake("has: ACCUMULATE, NEGATE_A, NEGATE_B", lambda: np.zeros(64, np.float32))
def field_that_is_not_there(x):
    tiled = cute.make_tiled_mma(OP)
    tiled = tiled.set("ACCUMULATE", False)  # wrong
