# SPDX-License-Identifier: Apache-2.0
"""Every kind of wgmma: operands laid out by the shared memory atoms, one instruction, against a float64 product."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import warpgroup
from numba_cute.seam import CuteError

from .test_warp_mma import small, tensor

F16, BF16, F32, TF32 = cute.Float16, cute.BFloat16, cute.Float32, cute.TFloat32
E4M3, E5M2 = cute.Float8E4M3FN, cute.Float8E5M2
S8, U8, S32 = cute.Int8, cute.Uint8, cute.Int32
SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
KINDS = warpgroup.SmemLayoutAtomKind
THREADS = 128


@cuda.jit
def multiply(tiled, negate, a_atom, b_atom, a, b, c):
    """c = a @ b.T, or its negative: the operands go to shared memory, and a from there to registers if it must."""
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    a_layout, b_layout = cute.tile_to_shape(a_atom, a.shape, (0, 1)), cute.tile_to_shape(b_atom, b.shape, (0, 1))
    sA = smem.allocate_tensor(a.element_type, a_layout.outer, 1024, a_layout.inner, "sA")
    sB = smem.allocate_tensor(b.element_type, b_layout.outer, 1024, b_layout.inner, "sB")
    for i in range(tidx, cute.size(a), THREADS):
        sA[i] = a[i]
    for i in range(tidx, cute.size(b), THREADS):
        sB[i] = b[i]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    mma = tiled.get_slice(tidx)
    tA, tC = mma.partition_A(sA), mma.partition_C(c)
    rA, rB, rC = tiled.make_fragment_A(tA), tiled.make_fragment_B(mma.partition_B(sB)), tiled.make_fragment_C(tC)
    fill_a(tiled, tA, rA)
    rC.fill(1)
    warpgroup.fence()
    first = signed(tiled, negate).set(warpgroup.Field.ACCUMULATE, False)
    cute.gemm(first, rC, rA, rB, rC)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.basic_copy(rC, tC)


@cute.seam.traced
def fill_a(tiled, tA, rA):
    """A's registers, where it has any."""
    if tiled.op.a_src is RMEM:
        cute.basic_copy(tA, rA)


@cute.seam.traced
def signed(tiled, negate):
    """The tiled MMA with the product's sign changed, where it can be."""
    return tiled.set(warpgroup.Field.NEGATE_A, True) if negate is NEGATE else tiled


NEGATE, KEEP = cute.Int8, cute.Int16  # static marks: a bool argument would be known only at run time


def run_wgmma(run, rng, op, kinds=(KINDS.K_SW32, KINDS.K_SW32), negate=False, types=None):
    a_type, b_type = types or (op.a_type, op.b_type)
    m, n, k = op.shape_mnk
    a, b = small(rng, (m, k), a_type), small(rng, (n, k), b_type)
    want = (-1 if negate else 1) * (a.astype(np.float64) @ b.astype(np.float64).T)
    run_operands(run, op, (a, b), want, kinds, negate, (a_type, b_type))


def run_operands(run, op, operands, want, kinds=(KINDS.K_SW32, KINDS.K_SW32), negate=False, types=None):
    (a, b), (a_type, b_type) = operands, types or (op.a_type, op.b_type)
    c = np.empty(want.shape, op.accumulator.numpy)

    def check():
        np.testing.assert_array_equal(c.astype(np.float64), want)

    layouts = [warpgroup.make_smem_layout_atom(kind, t) for kind, t in zip(kinds, (a_type, b_type))]
    args = [tensor(a, a_type), tensor(b, b_type), tensor(c, op.accumulator)]
    marks = NEGATE if negate else KEEP
    run(multiply, 1, THREADS, [cute.make_tiled_mma(op), marks, *layouts, *args], outputs=[c], check=check)


def name(x):
    if hasattr(x, "instruction_shape"):
        types = "_".join(d.ptx for d in (x.a_type, x.b_type, x.accumulator))
        return f"{types}_n{x.shape_mnk[1]}_{x.a_src.value}"
    return None


def ops():
    for src in (SMEM, RMEM):
        for ab, acc in ((F16, F32), (F16, F16), (BF16, F32)):
            yield warpgroup.MmaF16BF16Op(ab, acc, (64, 24, 16), src, K, K)
        yield warpgroup.MmaTF32Op((64, 40, 8), src)
        for a, b, acc in itertools.product((E4M3, E5M2), (E4M3, E5M2), (F32, F16)):
            yield warpgroup.MmaF8Op(a, b, acc, (64, 16, 32), src)
        for a, b in itertools.product((S8, U8), (S8, U8)):
            yield warpgroup.MmaI8Op(a, b, S32, (64, 24, 32), src)


QUICK = {
    SMEM: [(F16, F32), (F16, F16), (BF16, F32), (TF32, F32), (E4M3, E5M2, F32), (S8, U8, S32)],
    RMEM: [(F16, F32), (TF32, F32), (E5M2, E4M3, F16), (U8, S8, S32)],
}
"""The types that the default run takes; the others are slow for being many."""


def sparing(all_ops):
    for op in all_ops:
        types = (op.a_type, op.b_type, op.accumulator)
        quick = {types, types[1:] if op.a_type is op.b_type else types} & set(QUICK[op.a_src])
        yield op if quick else pytest.param(op, marks=pytest.mark.slow)


@pytest.mark.parametrize("op", list(sparing(ops())), ids=name)
def test_one_instruction_is_a_float64_product(run, rng, op):
    run_wgmma(run, rng, op)


def bit_ops():
    return [warpgroup.MmaB1Op((64, 24, 256), SMEM), warpgroup.MmaB1Op((64, 16), RMEM)]


@pytest.mark.parametrize("op", bit_ops(), ids=name)
def test_bits_set_in_both_are_counted(run, rng, op):
    a, b = (rng.integers(0, 256, (x, 32), dtype=np.uint8) for x in op.shape_mnk[:2])
    bits = [np.unpackbits(x, axis=1).astype(np.float64) for x in (a, b)]
    run_operands(run, op, (a, b), bits[0] @ bits[1].T)


@pytest.mark.parametrize("kind", [KINDS.K_INTER, KINDS.K_SW32], ids=lambda k: k.name)
@pytest.mark.parametrize(
    "op",
    [
        warpgroup.MmaTF32Op((64, 8, 8), SMEM),
        pytest.param(warpgroup.MmaF8Op(E4M3, E5M2, F32, (64, 256, 32), SMEM), marks=pytest.mark.slow),
        warpgroup.MmaI8Op(S8, U8, S32, (64, 256, 32), SMEM),
    ],
    ids=name,
)
def test_shared_memory_layouts_are_read_alike(run, rng, op, kind):
    run_wgmma(run, rng, op, (kind, kind))


BOTH = [(KINDS.MN_SW128, KINDS.K_SW32), (KINDS.K_SW32, KINDS.MN_SW64), (KINDS.MN_INTER, KINDS.MN_SW32)]


@pytest.mark.parametrize("kinds", BOTH, ids=lambda x: f"{x[0].name}-{x[1].name}")
def test_16_bit_operands_are_read_in_both_majors(run, rng, kinds):
    majors = [K if k.value[0] == "k" else MN for k in kinds]
    run_wgmma(run, rng, warpgroup.MmaF16BF16Op(BF16, F32, (64, 64, 16), SMEM, *majors), kinds)


def test_tf32_is_read_from_floats_in_shared_memory(run, rng):
    run_wgmma(run, rng, warpgroup.MmaTF32Op((64, 16, 8), SMEM), types=(F32, F32))


@pytest.mark.parametrize("op", [warpgroup.MmaF16BF16Op(BF16, F32, (64, 16, 16), SMEM, K, K),
                                warpgroup.MmaTF32Op((64, 16, 8), RMEM),
                                warpgroup.MmaF8Op(E4M3, E4M3, F32, (64, 16, 32), SMEM)], ids=name)  # fmt: skip
def test_a_product_can_be_negated(run, rng, op):
    run_wgmma(run, rng, op, negate=True)


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: warpgroup.MmaTF32Op((64, 8, 16), SMEM), r"instruction_shape \(64, 8, 16\) must be \(64, n, 8\)"),
        (lambda: warpgroup.MmaF8Op(E4M3, E4M3, F32, (64, 8), SMEM, MN, K), r"a_major_mode .* must be .*\.K$"),
        (lambda: warpgroup.MmaF8Op(F16, E4M3, F32, (64, 8), SMEM), "a_dtype Float16 must be Float8E4M3FN"),
        (lambda: warpgroup.MmaB1Op((64, 24, 32), SMEM), r"must be \(64, n, 256\)"),
        (lambda: warpgroup.MmaI8Op(S8, S8, S32, (64, 40), SMEM), "must have n 8, 16, 24, or a multiple of 16"),
        (lambda: warpgroup.MmaI8Op(S8, S8, F32, (64, 32), SMEM), "acc_dtype Float32 must be Int32"),
        (lambda: cute.make_mma_atom(warpgroup.MmaI8Op(S8, S8, S32, (64, 32), SMEM)).set(
            warpgroup.Field.NEGATE_A, True), "field .*NEGATE_A.* is none that .* has: ACCUMULATE"),
    ],
)  # fmt: skip
def test_what_the_hardware_lacks_is_refused_by_name(make, why):
    with pytest.raises(CuteError, match=why):
        make()
