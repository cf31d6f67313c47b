# SPDX-License-Identifier: Apache-2.0
"""Whole kernels written in the IR alone: right in the simulator, assembled, and with the PTX of the same in Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack

pytest.importorskip("xdsl")

from numba_cute import ir
from numba_cute.ir.kernels import to_kernel

from ..ptx_digests import normalised

TARGET = "sm_80"


def kernel_of(source):
    module = ir.parse(source, "kernel.mlir")
    again = ir.parse(str(module), "again.mlir")
    assert str(again) == str(module)
    return to_kernel(module)


def ptx_of(kernel, args):
    """The PTX of a kernel, whatever the kernel is called."""
    compiled = cute.compile(kernel, args, arch=TARGET)
    return normalised(compiled.ptx.replace(compiled.name, "kernel"))


def same_ptx(kernel, python, args):
    assert ptx_of(kernel, args).splitlines() == ptx_of(python, args).splitlines()


COPY = """
!src = !cute.memref<f32, gmem, align<16>, "(32,64):(64,1)">
func.func @copy(%src: !src, %dst: !src) {
  %idx = numba_cute.arch.thread_idx
  %t = numba_cute.slice %idx, 0
  %op = numba_cute.nvgpu.CopyUniversalOp
  %atom = numba_cute.make_copy_atom %op, !f32, num_bits_per_copy = 128
  %threads = numba_cute.make_layout (8, 16), stride = (16, 1)
  %values = numba_cute.make_layout (1, 4)
  %tiled = numba_cute.make_tiled_copy_tv %atom, %threads, %values
  %mine = numba_cute.TiledCopy.get_slice %tiled, %t
  %from = numba_cute.ThrCopy.partition_S %mine, %src
  %to = numba_cute.ThrCopy.partition_D %mine, %dst
  numba_cute.copy %tiled, %from, %to
  func.return
}
"""


@cuda.jit
def copy(src, dst):
    t, _, _ = arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 16), stride=(16, 1)), cute.make_layout((1, 4)))
    mine = tiled.get_slice(t)
    cute.copy(tiled, mine.partition_S(src), mine.partition_D(dst))


def test_a_copy(rng):
    src, dst = rng.random((32, 64), np.float32), np.zeros((32, 64), np.float32)
    args = from_dlpack(src, assumed_align=16), from_dlpack(dst, assumed_align=16)
    kernel = kernel_of(COPY)
    cute.simulate(kernel, arch=TARGET)[1, 128](*args)
    np.testing.assert_array_equal(dst, src)
    assert "ld.global.v4" in cute.compile(kernel, args, arch=TARGET).ptx
    same_ptx(kernel, copy, args)


SAXPY = """
!t = !cute.memref<f32, gmem, "?{i64}:1">
func.func @saxpy(%a: f32, %x: !t, %y: !t, %n: i64) {
  %idx = numba_cute.arch.thread_idx
  %bid = numba_cute.arch.block_idx
  %tx = numba_cute.slice %idx, 0
  %bx = numba_cute.slice %bid, 0
  %c64 = arith.constant 64 : i64
  %block = arith.extsi %bx : i32 to i64
  %o = arith.muli %block, %c64 : i64
  %thread = arith.extsi %tx : i32 to i64
  %i = arith.addi %o, %thread : i64
  %inside = arith.cmpi slt, %i, %n : i64
  scf.if %inside {
    %xi = numba_cute.load_element %x, (%i)
    %p = arith.mulf %a, %xi : f32
    %yi = numba_cute.load_element %y, (%i)
    %s = arith.addf %p, %yi : f32
    numba_cute.store_element %y, (%i), %s
  }
  func.return
}
"""


@cuda.jit
def saxpy(a, x, y, n):
    tx, _, _ = arch.thread_idx()
    bx, _, _ = arch.block_idx()
    i = bx * 64 + tx
    if i < n:
        y[i] = a * x[i] + y[i]


def test_saxpy(rng):
    x, y = rng.random(200, np.float32), rng.random(200, np.float32)
    want = np.float32(2.5) * x + y
    args = np.float32(2.5), *(from_dlpack(v).mark_layout_dynamic() for v in (x, y)), 200
    kernel = kernel_of(SAXPY)
    cute.simulate(kernel, arch=TARGET)[4, 64](*args)
    np.testing.assert_allclose(y, want, rtol=1e-6)
    same_ptx(kernel, saxpy, args)


REDUCE = """
!x = !cute.memref<f32, gmem, "1024:1">
!y = !cute.memref<f32, gmem, "1:1">
func.func @reduce(%x: !x, %y: !y) attributes {numba_cute.kernel} {
  %idx = numba_cute.arch.thread_idx
  %t = numba_cute.slice %idx, 0
  %pointer = numba_cute.arch.alloc_smem !f32, 4
  %layout = numba_cute.make_layout 4
  %sums = numba_cute.make_tensor %pointer, %layout
  %zero = arith.constant 0.0 : f32
  %lo = arith.constant 0 : i32
  %eight = arith.constant 8 : i32
  %one = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %mine = scf.for %k = %lo to %eight step %one iter_args(%sum = %zero) -> (f32) : i32 {
    %row = arith.muli %k, %c128 : i32
    %i = arith.addi %row, %t : i32
    %v = numba_cute.load_element %x, (%i)
    %next = arith.addf %sum, %v : f32
    scf.yield %next : f32
  }
  %sixteen = arith.constant 16 : i32
  %warp, %done = scf.while (%sum = %mine, %step = %sixteen) : (f32, i32) -> (f32, i32) {
    %more = arith.cmpi sgt, %step, %lo : i32
    scf.condition(%more) %sum, %step : f32, i32
  } do {
  ^bb0(%sum: f32, %step: i32):
    %other = func.call @across(%sum, %step) : (f32, i32) -> f32
    %next = arith.addf %sum, %other : f32
    %half = arith.shrsi %step, %one : i32
    scf.yield %next, %half : f32, i32
  }
  %c31 = arith.constant 31 : i32
  %lane = arith.andi %t, %c31 : i32
  %first = arith.cmpi eq, %lane, %lo : i32
  %five = arith.constant 5 : i32
  %w = arith.shrsi %t, %five : i32
  scf.if %first {
    numba_cute.store_element %sums, (%w), %warp
  }
  numba_cute.arch.sync_threads
  %leader = arith.cmpi eq, %t, %lo : i32
  scf.if %leader {
    %four = arith.constant 4 : i32
    %total = scf.for %k = %lo to %four step %one iter_args(%sum = %zero) -> (f32) : i32 {
      %v = numba_cute.load_element %sums, (%k)
      %next = arith.addf %sum, %v : f32
      scf.yield %next : f32
    }
    numba_cute.store_element %y, (0), %total
  }
  func.return
}
func.func private @across(%v: f32, %step: i32) -> f32 {
  %other = numba_cute.arch.shuffle_sync_bfly %v, %step
  func.return %other : f32
}
"""


def test_a_reduction_through_shared_memory(rng):
    x, y = rng.integers(-8, 9, 1024).astype(np.float32), np.zeros(1, np.float32)
    kernel = kernel_of(REDUCE)
    args = from_dlpack(x), from_dlpack(y)
    cute.simulate(kernel, arch=TARGET)[1, 128](*args)
    assert y[0] == x.sum()
    compiled = cute.compile(kernel, args, arch=TARGET)
    assert "shfl.sync.bfly" in compiled.ptx and "barrier.cta.sync" in compiled.ptx


def test_a_race_is_reported_with_the_line_of_the_ir(rng):
    kernel = to_kernel(ir.parse(REDUCE.replace("  numba_cute.arch.sync_threads\n", ""), "race.mlir"))
    args = from_dlpack(np.ones(1024, np.float32)), from_dlpack(np.zeros(1, np.float32))
    with pytest.raises(cute.sim.RaceError, match=r"race\.mlir:\d+ \(reduce.*`%v = numba_cute\.load_element %sums"):
        cute.simulate(kernel, arch=TARGET)[1, 128](*args)


GEMM = """
!a = !cute.memref<f16, gmem, align<16>, "(64,64):(64,1)">
!b = !cute.memref<f16, gmem, align<16>, "(32,64):(64,1)">
!c = !cute.memref<f32, gmem, align<16>, "(64,32):(32,1)">
builtin.module attributes {numba_cute.target = "sm_80"} {
  func.func @gemm(%a: !a, %b: !b, %c: !c) attributes {numba_cute.kernel, numba_cute.launch_bounds = [128]} {
    %idx = numba_cute.arch.thread_idx
    %tx = numba_cute.slice %idx, 0
    %bid = numba_cute.arch.block_idx
    %bx = numba_cute.slice %bid, 0
    %by = numba_cute.slice %bid, 1
    %op = numba_cute.nvgpu.warp.MmaF16BF16Op !f16, !f32, (16, 8, 16)
    %tiled = numba_cute.make_tiled_mma %op, (2, 2, 1)
    %mma = numba_cute.TiledMma.get_slice %tiled, %tx
    %gA = numba_cute.local_tile %a, (32, 16), (%bx, _)
    %tA = numba_cute.ThrMma.partition_A %mma, %gA
    %gB = numba_cute.local_tile %b, (16, 16), (%by, _)
    %tB = numba_cute.ThrMma.partition_B %mma, %gB
    %gC = numba_cute.local_tile %c, (32, 16), (%bx, %by)
    %tC = numba_cute.ThrMma.partition_C %mma, %gC
    %tA0 = numba_cute.slice %tA, (_, _, _, 0)
    %rA = numba_cute.TiledMma.make_fragment_A %tiled, %tA0
    %tB0 = numba_cute.slice %tB, (_, _, _, 0)
    %rB = numba_cute.TiledMma.make_fragment_B %tiled, %tB0
    %rC = numba_cute.TiledMma.make_fragment_C %tiled, %tC
    numba_cute.Tensor.fill %rC, 0
    %lo = arith.constant 0 : i64
    %hi = arith.constant 4 : i64
    %one = arith.constant 1 : i64
    scf.for %k = %lo to %hi step %one : i64 {
      %tAk = numba_cute.slice %tA, (_, _, _, %k)
      numba_cute.basic_copy %tAk, %rA
      %tBk = numba_cute.slice %tB, (_, _, _, %k)
      numba_cute.basic_copy %tBk, %rB
      numba_cute.gemm %tiled, %rC, %rA, %rB, %rC
    }
    numba_cute.basic_copy %rC, %tC
    func.return
  }
}
"""


@cuda.jit(launch_bounds=(128,))
def gemm(a, b, c):
    tx, _, _ = arch.thread_idx()
    bx, by, _ = arch.block_idx()
    tiled = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1))
    mma = tiled.get_slice(tx)
    tA = mma.partition_A(cute.local_tile(a, (32, 16), (bx, None)))
    tB = mma.partition_B(cute.local_tile(b, (16, 16), (by, None)))
    tC = mma.partition_C(cute.local_tile(c, (32, 16), (bx, by)))
    rA, rB = tiled.make_fragment_A(tA[None, None, None, 0]), tiled.make_fragment_B(tB[None, None, None, 0])
    rC = tiled.make_fragment_C(tC)
    rC.fill(0)
    for k in range(4):
        cute.basic_copy(tA[None, None, None, k], rA)
        cute.basic_copy(tB[None, None, None, k], rB)
        cute.gemm(tiled, rC, rA, rB, rC)
    cute.basic_copy(rC, tC)


def test_a_gemm(rng):
    a, b = (rng.integers(-3, 4, (m, 64)).astype(np.float16) for m in (64, 32))
    c = np.full((64, 32), math.nan, np.float32)
    args = tuple(from_dlpack(x, assumed_align=16) for x in (a, b, c))
    kernel = kernel_of(GEMM)
    cute.simulate(kernel, arch=TARGET)[(2, 2), 128](*args)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in cute.compile(kernel, args, arch=TARGET).ptx
    same_ptx(kernel, gemm, args)


OF_NUMBA = """
func.func @k(%a: !numba.array<f32, 2, C>, %out: !numba.array<f32, 1, C>) attributes {numba_cute.kernel} {
  %g = numba.call @"numba.cuda:grid" 1
  %lane = numba.value @"numba.cuda:laneid"
  %v = numba.get_item %a, (%g, 1)
  %shape = numba.get_attr %a, "shape"
  %n = numba_cute.slice %shape, 1
  %double = numba.binary "*", %v, 2.0
  %less = numba.binary "neg", %double
  %f = numba_cute.cast %n : i64 -> f32
  %sum = arith.addf %v, %f : f32
  %row = numba.get_item %a, %g
  numba.set_item %row, 0, %less
  %old = numba.call @"numba.cuda:atomic.add" %out, 0, %sum
  func.return
}
"""


def test_numbas_own(rng):
    a, out = rng.integers(0, 9, (32, 2)).astype(np.float32), np.zeros(1, np.float32)
    first = a.copy()
    kernel = kernel_of(OF_NUMBA)
    cute.simulate(kernel, arch=TARGET)[1, 32](a, out)
    np.testing.assert_array_equal(a, np.stack([-2 * first[:, 1], first[:, 1]], 1))
    assert out[0] == (first[:, 1] + 2).sum()
    assert "atom" in cute.compile(kernel, (a, out), arch=TARGET).ptx


OBJECTS = """
!out = !cute.memref<i32, gmem, "(32,4):(4,1)">
func.func @k(%out: !out, %n: i32) attributes {numba_cute.kernel} {
  %idx = numba_cute.arch.thread_idx
  %t = numba_cute.slice %idx, 0
  %l = numba_cute.static : !cute.layout<"(4,8):(8,1)">
  %c = numba_cute.method "__call__" of %l, %t
  numba_cute.store_element %out, (%t, 0), %c
  %pair = numba_cute.make_tuple (%t, 3, (%n, 4))
  %wide = numba_cute.cast %pair : !cute.int_tuple<"(?,3,(?,4))"> -> !cute.int_tuple<"(?{i64},?{i64},(?,4))">
  %three = numba_cute.slice %wide, 1
  %inner = numba_cute.slice %wide, 2
  %again = numba_cute.slice %inner, 0
  %m = arith.trunci %three : i64 to i32
  %sum = arith.addi %m, %again : i32
  numba_cute.store_element %out, (%t, 1), %sum
  %state = numba_cute.pipeline.make_pipeline_state @"numba_cute.pipeline.state:PipelineUserType.Producer", 4
  numba_cute.method "advance" of %state
  numba_cute.set_attr %state, "count", 7
  %i = numba_cute.get_attr %state, "index"
  %count = numba_cute.get_attr %state, "count"
  numba_cute.store_element %out, (%t, 2), %i
  %pointer = numba_cute.get_attr %out, "iterator"
  %next = numba_cute.binary "+", %pointer, 3
  %one = numba_cute.make_tensor %next, 128
  %stride = numba_cute.get_attr %out, "stride"
  %s = numba_cute.binary "*", %t, 4
  numba_cute.store_element %one, (%s), %count
  func.return
}
"""


def test_objects():
    out = np.zeros((32, 4), np.int32)
    kernel = kernel_of(OBJECTS)
    cute.simulate(kernel, arch=TARGET)[1, 32](from_dlpack(out), np.int32(5))
    i = np.arange(32)
    np.testing.assert_array_equal(out, np.stack([i % 4 * 8 + i // 4, i * 0 + 8, i * 0 + 1, i * 0 + 7], 1))
    cute.compile(kernel, (from_dlpack(out), np.int32(5)), arch=TARGET)
