# SPDX-License-Identifier: Apache-2.0
"""Narrow weights from shared memory into the A registers of a wgmma of wider operands, converted on the way."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import CopyUniversalOp, warpgroup
from numba_cute.seam import CuteError

from .test_warp_mma import small, tensor

BF16, F16, F32, S8, E4M3 = cute.BFloat16, cute.Float16, cute.Float32, cute.Int8, cute.Float8E4M3FN
SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
MAJOR = warpgroup.OperandMajorMode
KINDS = warpgroup.SmemLayoutAtomKind
N, K, THREADS = 16, 32, 128


@cuda.jit
def multiply(tiled, atom, a_layout, b_layout, a, b, c):
    """c = a.to(b's type) @ b.T: `atom` copies what lies next to each other in a thread's fragment."""
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(a.element_type, a_layout.outer, 1024, a_layout.inner, "sA")
    sB = smem.allocate_tensor(b.element_type, b_layout.outer, 1024, b_layout.inner, "sB")
    for i in range(tidx, cute.size(a), THREADS):
        sA[i] = a[i]
    for i in range(tidx, cute.size(b), THREADS):
        sB[i] = b[i]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    mma, copy = tiled.get_slice(tidx), cute.make_tiled_copy_A(atom, tiled).get_slice(tidx)
    rA = tiled.make_fragment_A(tiled.partition_shape_A(a.shape))
    narrow = cute.make_fragment_like(rA, a.element_type)
    cute.copy(atom, copy.partition_S(sA), copy.retile(narrow))
    rA.store(narrow.load().to(b.element_type))
    tC = mma.partition_C(c)
    rB, rC = tiled.make_fragment_B(mma.partition_B(sB)), tiled.make_fragment_C(tC)
    warpgroup.fence()
    cute.gemm(tiled.set(warpgroup.Field.ACCUMULATE, False), rC, rA, rB, rC)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.basic_copy(rC, tC)


def run_mixed(run, rng, narrow, wide, groups=1):
    op = warpgroup.MmaF16BF16Op(wide, F32, (64, N, 16), RMEM, MAJOR.K, MAJOR.K)
    tiled = cute.make_tiled_mma(op, (1, 1, 1))
    a, b, c = small(rng, (64 * groups, K), narrow), small(rng, (N, K), wide), np.empty((64 * groups, N), np.float32)

    def check():
        np.testing.assert_array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)

    def tile(kind, dtype, rows):
        return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, dtype), (rows, K), (0, 1))

    layouts = [tile(KINDS.K_SW32, narrow, 64 * groups), tile(KINDS.K_SW64, wide, N)]
    atom = cute.make_copy_atom(CopyUniversalOp(), narrow, 16)  # two elements: what a fragment has in a row
    args = [tiled, atom, *layouts, tensor(a, narrow), tensor(b, wide), tensor(c, F32)]
    run(multiply, 1, THREADS, args, outputs=[c], check=check)


@pytest.mark.parametrize("narrow, wide", [(S8, BF16), (E4M3, F16)], ids=str)
def test_narrow_weights_are_widened_into_the_registers_of_a(run, rng, narrow, wide):
    run_mixed(run, rng, narrow, wide)


def test_a_tile_of_two_fragments_along_m(run, rng):
    run_mixed(run, rng, S8, BF16, 2)


def fragment_order(tiled, rows, k):
    """A layout (rows, k) in which what a thread holds of A lies together: for weights that are stored so beforehand."""
    tile = tiled.get_tile_size(2)
    tv = tiled.tv_layout_A_tiled
    threads, values, steps = cute.size(tv, mode=[0]), cute.size(tv, mode=[1]), k // tile
    place = cute.make_layout((threads, values), stride=(values * steps, 1))
    one = cute.composition(place, cute.right_inverse(tv))
    one = cute.composition(one, cute.make_layout((64, tile)))
    down, along = one.shape, one.stride
    each = threads * values * steps
    return cute.make_layout(
        ((down[0], rows // 64), (down[1], steps)), stride=((along[0], each), (along[1], values))
    )  # fmt: skip


@cuda.jit
def multiply_ordered(tiled, a_layout, b_layout, a, b, c):
    """The same of weights in fragment order: a thread reads 16 bytes at once."""
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(a.element_type, a_layout, 1024, None, "sA")
    sB = smem.allocate_tensor(b.element_type, b_layout.outer, 1024, b_layout.inner, "sB")
    for i in range(tidx, cute.size(a), THREADS):
        sA[i] = a[i]
    for i in range(tidx, cute.size(b), THREADS):
        sB[i] = b[i]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    mma = tiled.get_slice(tidx)
    tA, tC = mma.partition_A(sA), mma.partition_C(c)
    narrow = cute.make_fragment_like(tA)
    cute.autovec_copy(tA, narrow)
    rA = tiled.make_fragment_A(tA)
    rA.store(narrow.load().to(b.element_type))
    rB, rC = tiled.make_fragment_B(mma.partition_B(sB)), tiled.make_fragment_C(tC)
    warpgroup.fence()
    cute.gemm(tiled.set(warpgroup.Field.ACCUMULATE, False), rC, rA, rB, rC)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.basic_copy(rC, tC)


def ordered(narrow, wide):
    op = warpgroup.MmaF16BF16Op(wide, F32, (64, N, 16), RMEM, MAJOR.K, MAJOR.K)
    tiled = cute.make_tiled_mma(op)
    b_layout = cute.tile_to_shape(warpgroup.make_smem_layout_atom(KINDS.K_SW64, wide), (N, K), (0, 1))
    return tiled, fragment_order(tiled, 64, K), b_layout


@pytest.mark.parametrize("narrow, wide", [(S8, BF16), (E4M3, F16)], ids=str)
def test_weights_in_fragment_order_are_read_16_bytes_at_once(run, rng, narrow, wide):
    tiled, *layouts = ordered(narrow, wide)
    a, b, c = small(rng, (64, K), narrow), small(rng, (N, K), wide), np.empty((64, N), np.float32)

    def check():
        np.testing.assert_array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)

    args = [tiled, *layouts, tensor(a, narrow), tensor(b, wide), tensor(c, F32)]
    run(multiply_ordered, 1, THREADS, args, outputs=[c], check=check)


def test_the_machine_code_reads_fragments_in_vectors():
    tiled, *layouts = ordered(S8, BF16)
    arrays = [np.zeros((64, K), np.int8), np.zeros((N, K), BF16.numpy), np.zeros((64, N), np.float32)]
    tensors = [tensor(x, t)(lambda a: a) for x, t in zip(arrays, (S8, BF16, F32))]
    compiled = cute.compile(multiply_ordered, (tiled, *layouts, *tensors), arch="sm_90a")
    assert compiled.ptx.count("ld.shared.v4") == 1  # 16 bytes a thread


@pytest.mark.parametrize("major", [MAJOR.K, MAJOR.MN])
def test_a_in_registers_has_no_major_mode(major):
    """PTX ISA: of wgmma with A in registers only B has a transpose bit."""
    make = lambda m: warpgroup.MmaF16BF16Op(BF16, F32, (64, 16, 16), RMEM, m, MAJOR.MN)  # noqa: E731
    op = make(major)
    assert op.traits() == make(MAJOR.K).traits()
    assert op.row() == make(MAJOR.K).row()


def test_other_types_are_k_major_wherever_they_lie():
    for src in (SMEM, RMEM):
        with pytest.raises(CuteError, match=r"a_major_mode .* must be .*\.K$"):
            warpgroup.MmaF8Op(E4M3, E4M3, F32, (64, 16, 32), src, MAJOR.MN, MAJOR.K)
