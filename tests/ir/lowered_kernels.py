# SPDX-License-Identifier: Apache-2.0
"""Kernels in the IR alone, which the passes lower: of a warp, a warpgroup and the matrix unit. `{name}` stands for the
type of an argument."""

from __future__ import annotations

import numpy as np

import numba_cute as cute
from numba_cute.compiler.inspection.inference import description_of_argument
from numba_cute.ir.library.types import type_of
from numba_cute.nvgpu import cpasync, tcgen05, warpgroup
from numba_cute.runtime import from_dlpack

THREAD = """
    %i = "gpu.thread_id"() <{{dimension = #gpu<dim x>}}> : () -> index
    %tid = arith.index_cast %i : index to i32"""

WARP = """
builtin.module attributes {{numba_cute.target = "sm_80"}} {{
  func.func @kernel(%a: {a}, %b: {b}, %c: {c}) attributes {{numba_cute.kernel}} {{
    THREAD
    %smem = numba_cute.utils.SmemAllocator
    %lay = numba_cute.make_layout (16, 32), stride = (32, 1)
    %sA = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %lay, 128
    %sB = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %lay, 128
    %g2s = numba_cute.nvgpu.make_copy_atom "CopyG2SOp", !f16, 128
    %thr = numba_cute.make_layout (8, 4), stride = (4, 1)
    %val = numba_cute.make_layout (1, 8)
    %copy = numba_cute.make_tiled_copy_tv %g2s, %thr, %val
    %load = numba_cute.TiledCopy.get_slice %copy, %tid
    %gA = numba_cute.partition_s %load, %a
    %dA = numba_cute.partition_d %load, %sA
    numba_cute.copy %copy, %gA, %dA
    %gB = numba_cute.partition_s %load, %b
    %dB = numba_cute.partition_d %load, %sB
    %pred = numba_cute.make_rmem_tensor (1, 2, 1), !i1
    numba_cute.Tensor.fill %pred, true
    numba_cute.copy %copy, %gB, %dB, pred = %pred
    numba_cute.arch.cp_async_commit_group
    numba_cute.arch.cp_async_wait_group 0
    numba_cute.arch.sync_warp
    %atom = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, [16, 8, 16], "SM80"
    %tiled = numba_cute.make_tiled_mma %atom, (1, 1, 1)
    %mma = numba_cute.TiledMma.get_slice %tiled, %tid
    %pA = numba_cute.ThrMma.partition_A %mma, %sA
    %pB = numba_cute.ThrMma.partition_B %mma, %sB
    %pC = numba_cute.ThrMma.partition_C %mma, %c
    %rA = numba_cute.mma_make_fragment_a %tiled, %pA
    %rB = numba_cute.mma_make_fragment_b %tiled, %pB
    %acc = numba_cute.mma_make_fragment_c %tiled, %pC
    %four = numba_cute.nvgpu.make_copy_atom "LdMatrix8x8x16bOp", !f16, num_matrices = 4
    %two = numba_cute.nvgpu.make_copy_atom "LdMatrix8x8x16bOp", !f16, num_matrices = 2
    %cA = numba_cute.make_tiled_copy_A %four, %tiled
    %cB = numba_cute.make_tiled_copy_B %two, %tiled
    %lA = numba_cute.TiledCopy.get_slice %cA, %tid
    %lB = numba_cute.TiledCopy.get_slice %cB, %tid
    %fromA = numba_cute.partition_s %lA, %sA
    %toA = numba_cute.ThrCopy.retile %lA, %rA
    %fromB = numba_cute.partition_s %lB, %sB
    %toB = numba_cute.ThrCopy.retile %lB, %rB
    numba_cute.copy %cA, %fromA, %toA
    numba_cute.copy %cB, %fromB, %toB
    %fresh = numba_cute.nvgpu.atom_set_value %tiled, "accum_c", false
    numba_cute.gemm %fresh, %acc, %rA, %rB, %acc
    numba_cute.autovec_copy %acc, %pC
    func.return
  }}
}}
"""

WARPGROUP = """
builtin.module attributes {{numba_cute.target = "sm_90a"}} {{
  func.func @kernel(%tmaA: {tma_a}, %mA: {a}, %tmaB: {tma_b}, %mB: {b}, %tmaC: {tma_c}, %mC: {c},
      %lay: {lay}, %outer: {outer}, %inner: {inner}) attributes {{numba_cute.kernel}} {{
    THREAD
    %zero = arith.constant 0 : i32
    %thirtytwo = arith.constant 32 : i32
    %smem = numba_cute.utils.SmemAllocator
    %sA = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %outer, 1024, %inner
    %sB = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %outer, 1024, %inner
    %layC = numba_cute.make_layout (64, 64), stride = (64, 1)
    %sC = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f32, %layC, 1024
    %bar = numba_cute.utils.SmemAllocator.allocate_array %smem, !i64
    %first = arith.cmpi eq, %tid, %zero : i32
    scf.if %first {{
      numba_cute.nvgpu.mbarrier_init %bar, 1
      numba_cute.arch.mbarrier_init_fence
      numba_cute.arch.mbarrier_arrive_and_expect_tx %bar, 16384
    }}
    numba_cute.arch.sync_threads
    %warp0 = arith.cmpi slt, %tid, %thirtytwo : i32
    scf.if %warp0 {{
      %one = numba_cute.make_layout 1
      %groupA = numba_cute.group_modes %sA, 0, 2
      %groupB = numba_cute.group_modes %sB, 0, 2
      %tileA = numba_cute.group_modes %mA, 0, 2
      %tileB = numba_cute.group_modes %mB, 0, 2
      numba_cute.copy %tmaA, %tileA, %groupA, tma_bar_ptr = %bar
      numba_cute.copy %tmaB, %tileB, %groupB, tma_bar_ptr = %bar
    }}
    numba_cute.nvgpu.mbarrier_wait %bar, 0
    %atom = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, [64, 64, 16], "SM90"
    %tiled = numba_cute.make_tiled_mma %atom, (1, 1, 1)
    %mma = numba_cute.TiledMma.get_slice %tiled, %tid
    %pA = numba_cute.ThrMma.partition_A %mma, %sA
    %pB = numba_cute.ThrMma.partition_B %mma, %sB
    %pC = numba_cute.ThrMma.partition_C %mma, %sC
    %fA = numba_cute.mma_make_fragment_a %tiled, %pA
    %fB = numba_cute.mma_make_fragment_b %tiled, %pB
    %acc = numba_cute.mma_make_fragment_c %tiled, %pC
    numba_cute.nvgpu.warpgroup.fence
    %fresh = numba_cute.nvgpu.atom_set_value %tiled, "accum_c", false
    numba_cute.gemm %fresh, %acc, %fA, %fB, %acc
    numba_cute.nvgpu.warpgroup.commit_group
    numba_cute.nvgpu.warpgroup.wait_group 0
    numba_cute.autovec_copy %acc, %pC
    numba_cute.arch.fence_proxy "async.shared", space = "cta"
    numba_cute.arch.sync_threads
    scf.if %warp0 {{
      %groupC = numba_cute.group_modes %sC, 0, 2
      %tileC = numba_cute.group_modes %mC, 0, 2
      numba_cute.copy %tmaC, %groupC, %tileC
      numba_cute.arch.cp_async_bulk_commit_group
      numba_cute.arch.cp_async_bulk_wait_group 0
    }}
    func.return
  }}
}}
"""

UNIT = """
builtin.module attributes {{numba_cute.target = "sm_100a"}} {{
  func.func @kernel(%a: {a}, %b: {b}, %out: {out}, %outerA: {outer_a}, %outerB: {outer_b},
      %inner: {inner}) attributes {{numba_cute.kernel}} {{
    THREAD
    %thirtytwo = arith.constant 32 : i32
    %zero = arith.constant 0 : i32
    %smem = numba_cute.utils.SmemAllocator
    %sA = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %outerA, 1024, %inner
    %sB = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %outerB, 1024, %inner
    %bar = numba_cute.utils.SmemAllocator.allocate_array %smem, !i64
    %slot = numba_cute.utils.SmemAllocator.allocate_array %smem, !i32
    %warp0 = arith.cmpi slt, %tid, %thirtytwo : i32
    %first = arith.cmpi eq, %tid, %zero : i32
    scf.if %first {{
      numba_cute.nvgpu.mbarrier_init %bar, 1
      numba_cute.arch.mbarrier_init_fence
    }}
    %rowA = numba_cute.slice %a, (%tid, _)
    %myA = numba_cute.slice %sA, ((%tid, _), 0, _)
    numba_cute.autovec_copy %rowA, %myA
    scf.if %warp0 {{
      %rowB = numba_cute.slice %b, (%tid, _)
      %myB = numba_cute.slice %sB, ((%tid, _), 0, _)
      numba_cute.autovec_copy %rowB, %myB
      numba_cute.arch.alloc_tmem 32, %slot
    }}
    numba_cute.arch.fence_proxy "async.shared", space = "cta"
    numba_cute.arch.tcgen05_fence_before_thread_sync
    numba_cute.arch.sync_threads
    numba_cute.arch.tcgen05_fence_after_thread_sync
    %unit = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, [128, 32, 16], "SM100"
    %tiled = numba_cute.make_tiled_mma %unit
    %fA = numba_cute.mma_make_fragment_a %tiled, %sA
    %fB = numba_cute.mma_make_fragment_b %tiled, %sB
    %tmem = numba_cute.arch.retrieve_tmem_ptr !f32, 16, %slot
    %shape = numba_cute.TiledMma.partition_shape_C %tiled, (128, 32)
    %like = numba_cute.mma_make_fragment_c %tiled, %shape
    %layD = numba_cute.get_attr %like, "layout"
    %acc = numba_cute.make_tensor %tmem, %layD
    scf.if %warp0 {{
      %fresh = numba_cute.nvgpu.atom_set_value %tiled, "accum_c", false
      numba_cute.gemm %fresh, %acc, %fA, %fB, %acc
      numba_cute.nvgpu.tcgen05.commit %bar
    }}
    numba_cute.nvgpu.mbarrier_wait %bar, 0
    numba_cute.arch.tcgen05_fence_after_thread_sync
    %load = numba_cute.nvgpu.make_copy_atom "Ld32x32bOp", !f32,
    repeat = @"numba_cute.nvgpu.blackwell.copies:Repetition.x32"
    %part = numba_cute.slice %acc, (_, 0, 0)
    %copy = numba_cute.nvgpu.tcgen05.make_tmem_copy %load, %part
    %mine = numba_cute.TiledCopy.get_slice %copy, %tid
    %there = numba_cute.partition_s %mine, %part
    %flat = numba_cute.group_modes %out, 0, 2
    %to = numba_cute.partition_d %mine, %flat
    %toShape = numba_cute.get_attr %to, "shape"
    %got = numba_cute.make_rmem_tensor %toShape, !f32
    numba_cute.copy %copy, %there, %got
    numba_cute.arch.fence_view_async_tmem_load
    numba_cute.autovec_copy %got, %to
    numba_cute.arch.tcgen05_fence_before_thread_sync
    numba_cute.arch.sync_threads
    scf.if %warp0 {{
      numba_cute.arch.dealloc_tmem %tmem, 32
    }}
    func.return
  }}
}}
"""


def text_of(template, **arguments):
    """The text of a kernel for such arguments, in the order of its parameters."""
    types = {name: type_of(description_of_argument(x)) for name, x in arguments.items()}
    return template.replace("THREAD", THREAD.strip()).format(**types)


def numbers(rng, *shapes):
    return [rng.integers(-3, 4, s).astype(np.float16) for s in shapes]


def of_a_warp(rng):
    """(text, arguments, what they are in memory: a, b and c) of a product by one warp."""
    a, b = numbers(rng, (16, 32), (16, 32))
    c = np.zeros((16, 16), np.float32)
    tensors = {n: from_dlpack(x, assumed_align=16) for n, x in (("a", a), ("b", b), ("c", c))}
    return text_of(WARP, **tensors), tuple(tensors.values()), (a, b, c)


def of_a_warpgroup(rng):
    """The same of a product by one warpgroup, with TMA."""
    a, b = numbers(rng, (64, 64), (64, 64))
    c = np.zeros((64, 64), np.float32)
    kind = warpgroup.SmemLayoutAtomKind.K_SW128
    lay = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, cute.Float16), (64, 64), (0, 1))
    loads, stores = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    plain = cute.make_layout((64, 64), stride=(64, 1))
    given = {}
    for name, array, op, smem in (("a", a, loads, lay), ("b", b, loads, lay), ("c", c, stores, plain)):
        tensor = from_dlpack(array, assumed_align=16)
        given[f"tma_{name}"], given[name] = cpasync.make_tiled_tma_atom(op, tensor, smem, array.shape)
    given |= {"lay": lay, "outer": lay.outer, "inner": lay.inner}
    return text_of(WARPGROUP, **given), tuple(given.values()), (a, b, c)


def of_the_matrix_unit(rng):
    """The same of a product by the matrix unit."""
    a, b = numbers(rng, (128, 64), (32, 64))
    c = np.zeros((128, 32), np.float32)
    mma = cute.make_tiled_mma(
        tcgen05.MmaF16BF16Op(
            cute.Float16, cute.Float32, (128, 32, 16), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM,
            tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.K,
        )
    )  # fmt: skip
    atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, cute.Float16)
    shapes = mma.partition_shape_A((128, 64)), mma.partition_shape_B((32, 64))
    lays = [tcgen05.tile_to_mma_shape(atom, s, (0, 1)) for s in shapes]
    tensors = {n: from_dlpack(x, assumed_align=16) for n, x in (("a", a), ("b", b), ("out", c))}
    given = {**tensors, "outer_a": lays[0].outer, "outer_b": lays[1].outer, "inner": lays[0].inner}
    return text_of(UNIT, **given), tuple(given.values()), (a, b, c)
