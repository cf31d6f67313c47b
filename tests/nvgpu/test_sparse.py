# SPDX-License-Identifier: Apache-2.0
"""Every sparse matrix instruction: a random sparse A compressed on the host, compared with the float64 product."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, nvgpu, utils
from numba_cute.dtypes import Int4, Uint4
from numba_cute.isa.facts import sparse
from numba_cute.nvgpu import warp, warpgroup
from numba_cute.seam import CuteError

from .test_warp_mma import E2M1, by_words, factors, lane_words, pack, small, tensor
from .test_wgmma import fill_a

F16, BF16, F32 = cute.Float16, cute.BFloat16, cute.Float32
E4M3, E5M2 = cute.Float8E4M3FN, cute.Float8E5M2
S8, U8, S32 = cute.Int8, cute.Uint8, cute.Int32


def selectors(make, *cases):
    return [make(k, s) for k, count in cases for s in range(count)]


OPS = selectors(lambda k, s: warp.MmaF16BF16SparseOp(F16, F32, (16, 8, k), s), (32, 2), (16, 4))
OPS += selectors(lambda k, s: warp.MmaF16BF16SparseOp(F16, F16, (16, 8, k), s), (32, 1), (16, 1))
OPS += selectors(lambda k, s: warp.MmaF16BF16SparseOp(BF16, F32, (16, 8, k), s), (32, 1), (16, 1))
OPS += selectors(lambda k, s: warp.MmaTF32SparseOp((16, 8, k), s), (16, 2), (8, 4))
OPS += [warp.MmaFP8SparseOp(a, b) for a, b in itertools.product((E4M3, E5M2), (E4M3, E5M2))]
OPS += [warp.MmaI8SparseOp(a, b) for a, b in itertools.product((S8, U8), (S8, U8))]
OPS += selectors(lambda k, s: warp.MmaI8SparseOp(S8, S8, (16, 8, k), True, s), (64, 1), (32, 2))


def name(op):
    types = "_".join(d.ptx for d in (op.a_type, op.b_type, op.accumulator))
    return f"{types}_k{op.shape_mnk[2]}_s{op.selector}{'_sat' if getattr(op, 'saturate', False) else ''}"


def sparse_matrix(rng, dense, width):
    """`dense` with as many elements of each chunk set to zero as must be, and sometimes more."""
    size = sparse.chunk(width)
    unit = 2 if width == 4 else 1
    chunks = dense.reshape(len(dense), -1, size // unit, unit)
    order = rng.random(chunks.shape[:3]).argsort(-1)
    most = 1 if width == 32 else 2
    count = rng.choice([most, most, most - 1], chunks.shape[:2])
    return (chunks * (order < count[..., None])[..., None]).reshape(dense.shape).astype(dense.dtype)


@cuda.jit
def multiply(tiled, a, e, b, c):
    """c = A @ b.T of a sparse A: `a` its stored half, `e` its metadata."""
    tidx, _, _ = arch.thread_idx()
    mma = tiled.get_slice(tidx)
    tA, tE, tB, tC = mma.partition_A(a), mma.partition_E(e), mma.partition_B(b), mma.partition_C(c)
    rA, rB, rC = tiled.make_fragment_A(tA), tiled.make_fragment_B(tB), tiled.make_fragment_C(tC)
    rE = cute.make_fragment_like(tE)
    cute.basic_copy(tA, rA)
    cute.basic_copy(tE, rE)
    cute.basic_copy(tB, rB)
    rC.fill(1)
    cute.gemm(tiled.set(warp.Field.ACCUMULATE, False).set(warp.Field.METADATA, rE), rC, rA, rB, rC)
    cute.basic_copy(rC, tC)


def run_sparse(run, rng, op, tiled, shape):
    m, n, k = shape
    a = sparse_matrix(rng, small(rng, (m, k), op.a_type), op.a_type.width)
    b, c = small(rng, (n, k), op.b_type), np.empty((m, n), op.accumulator.numpy)
    values, words = nvgpu.compress(op, a)
    want = a.astype(np.float64) @ b.astype(np.float64).T

    def check():
        np.testing.assert_array_equal(c.astype(np.float64), want)

    target = "sm_89" if isinstance(op, warp.MmaFP8SparseOp) else "sm_80"
    args = [tensor(x, t) for x, t in ((values, op.a_type), (words, cute.Uint32), (b, op.b_type), (c, op.accumulator))]
    run(multiply, 1, tiled.size, [tiled, *args], outputs=[c], check=check, arch=target)


QUICK = [op for op in OPS if op.selector in (0, 2)][::2]
"""Of the forms, those that the default run takes; the others are slow for being many."""


@pytest.mark.parametrize(
    "op", [op if op in QUICK else pytest.param(op, marks=pytest.mark.slow) for op in OPS], ids=name
)
def test_one_instruction_is_a_float64_product(run, rng, op):
    run_sparse(run, rng, op, cute.make_tiled_mma(op), op.shape_mnk)


@pytest.mark.parametrize("groups", [(2, 1, 1), pytest.param((2, 2, 1), marks=pytest.mark.slow)], ids=str)
def test_a_tile_takes_a_word_of_metadata_for_each_instruction(run, rng, groups):
    op = warp.MmaF16BF16SparseOp(F16, F32, (16, 8, 32))
    run_sparse(run, rng, op, cute.make_tiled_mma(op, groups), (64, 32, 96))


@cuda.jit
def multiply_words(tiled, a_words, b_words, a, e, b, c):
    """The same of operands that lie in words of 8 elements: `a_words`, `b_words` partition them like the registers."""
    tidx, _, _ = arch.thread_idx()
    mma = tiled.get_slice(tidx)
    tA, tB, tC = a_words.get_slice(tidx).partition_A(a), b_words.get_slice(tidx).partition_B(b), mma.partition_C(c)
    k = tiled.shape_mnk[2]
    rA, rB = (
        tiled.make_fragment_A(mma.partition_shape_A((16, k // 2))),
        tiled.make_fragment_B(mma.partition_shape_B((8, k))),
    )
    rC, tE = tiled.make_fragment_C(tC), mma.partition_E(e)
    rE = cute.make_fragment_like(tE)
    cute.basic_copy(tA, rA)
    cute.basic_copy(tE, rE)
    cute.basic_copy(tB, rB)
    rC.fill(0)
    cute.gemm(tiled.set(warp.Field.METADATA, rE), rC, rA, rB, rC)
    cute.basic_copy(rC, tC)


I4 = [warp.MmaI4SparseOp(a, b) for a, b in itertools.product((Int4, Uint4), (Int4, Uint4))]
I4 += [warp.MmaI4SparseOp(Int4, Int4, (16, 8, 64), False, s) for s in (0, 1)]


@pytest.mark.parametrize(
    "op", [*I4[:1], *I4[-1:], *(pytest.param(op, marks=pytest.mark.slow) for op in I4[1:-1])], ids=name
)
def test_4_bit_integers_are_multiplied(run, rng, op):
    k = op.shape_mnk[2]
    a, b = (rng.integers(*((-8, 8) if t is Int4 else (0, 16)), (x, k)) for t, x in ((op.a_type, 16), (op.b_type, 8)))
    a = sparse_matrix(rng, a, 4)
    values, words = nvgpu.compress(op, a)
    c = np.empty((16, 8), np.int32)

    def check():
        np.testing.assert_array_equal(c, a @ b.T)

    tiles = [cute.make_tiled_mma(o) for o in (op, by_words(16, k // 16), by_words(16, 8))]
    args = [tensor(x, cute.Uint32) for x in (pack(values, 4), words, pack(b, 4))]
    run(multiply_words, 1, 32, [*tiles, *args, tensor(c, S32)], outputs=[c], check=check, arch="sm_80")


E2M1FN, UE8M0 = cute.Float4E2M1FN, cute.Float8E8M0FNU
BITS = {cute.Float6E2M3FN: 6, cute.Float6E3M2FN: 6, E2M1FN: 4}
PAIRS = list(itertools.product((E4M3, E5M2, *BITS), repeat=2))


@cuda.jit
def multiply_scaled(tiled, a_words, b_words, a, e, b, sfa, sfb, c):
    """`multiply_words` with each lane's factors."""
    tidx, _, _ = arch.thread_idx()
    mma = tiled.get_slice(tidx)
    tA, tB, tC = a_words.get_slice(tidx).partition_A(a), b_words.get_slice(tidx).partition_B(b), mma.partition_C(c)
    k = tiled.shape_mnk[2]
    rA = tiled.make_fragment_A(mma.partition_shape_A((16, k // 2)))
    rB = tiled.make_fragment_B(mma.partition_shape_B((8, k)))
    rC, tE = tiled.make_fragment_C(tC), mma.partition_E(e)
    rE = cute.make_fragment_like(tE)
    cute.basic_copy(tA, rA)
    cute.basic_copy(tE, rE)
    cute.basic_copy(tB, rB)
    rC.fill(0)
    scaled = tiled.set(warp.Field.SFA, sfa[tidx]).set(warp.Field.SFB, sfb[tidx])
    cute.gemm(scaled.set(warp.Field.METADATA, rE), rC, rA, rB, rC)
    cute.basic_copy(rC, tC)


@pytest.mark.parametrize("nv", [False, True], ids=["mxf4", "mxf4nvf4"])
def test_block_scaled_4_bit_floats_are_multiplied(run, rng, nv):
    op = warp.MmaMXF4NVF4SparseOp(E2M1FN, F32, E4M3) if nv else warp.MmaMXF4SparseOp(E2M1FN, F32, UE8M0)
    count = 4 if nv else 2
    a, b = sparse_matrix(rng, rng.integers(0, 16, (16, 128)), 4), rng.integers(0, 16, (8, 128))
    values, words = nvgpu.compress(op, a)
    (ca, fa), (cb, fb) = factors(rng, 16, count, nv), factors(rng, 8, count, nv)
    want = (E2M1[a] * np.repeat(fa, 128 // count, 1)) @ (E2M1[b] * np.repeat(fb, 128 // count, 1)).T
    c = np.empty((16, 8), np.float32)

    def check():
        np.testing.assert_array_equal(c, want.astype(np.float32))

    tiles = [cute.make_tiled_mma(o) for o in (op, by_words(16, 8), by_words(16, 8))]
    inputs = (pack(values, 4), words, pack(b, 4), lane_words(ca), lane_words(cb))
    args = [*tiles, *(tensor(x, cute.Uint32) for x in inputs), tensor(c, F32)]
    run(multiply_scaled, 1, 32, args, outputs=[c], check=check, arch="sm_120a")


@cuda.jit
def multiply_bytes(tiled, a, e, b, sfa, sfb, c):
    """The same of operands with a byte to an element."""
    tidx, _, _ = arch.thread_idx()
    mma = tiled.get_slice(tidx)
    tA, tE, tB, tC = mma.partition_A(a), mma.partition_E(e), mma.partition_B(b), mma.partition_C(c)
    rA, rB, rC = tiled.make_fragment_A(tA), tiled.make_fragment_B(tB), tiled.make_fragment_C(tC)
    rE = cute.make_fragment_like(tE)
    cute.basic_copy(tA, rA)
    cute.basic_copy(tE, rE)
    cute.basic_copy(tB, rB)
    rC.fill(0)
    cute.gemm(with_factors(tiled.set(warp.Field.METADATA, rE), sfa, sfb, tidx), rC, rA, rB, rC)
    cute.basic_copy(rC, tC)


@cute.seam.traced
def with_factors(tiled, sfa, sfb, tidx):
    if warp.Field.SFA not in tiled.op.fields:
        return tiled
    return tiled.set(warp.Field.SFA, sfa[tidx]).set(warp.Field.SFB, sfb[tidx])


def as_bytes(rng, shape, dtype):
    """Small numbers of a type: the bytes that hold them in registers, and their values."""
    if dtype in (E4M3, E5M2):
        values = small(rng, shape, dtype)
        return values.view(np.uint8), values.astype(np.float64)
    codes = rng.integers(0, 1 << BITS[dtype], shape).astype(np.uint8)
    return codes << (2 if dtype == E2M1FN else 0), codes.view(dtype.numpy).astype(np.float64)


@pytest.mark.parametrize("form", ["f32", "f16", "scaled"])
@pytest.mark.parametrize(
    "a_type, b_type",
    [p if i % 6 == 0 else pytest.param(*p, marks=pytest.mark.slow) for i, p in enumerate(PAIRS)],
    ids=str,
)
def test_floats_of_8_6_and_4_bits_are_multiplied(run, rng, a_type, b_type, form):
    acc = F16 if form == "f16" else F32
    op = (
        warp.MmaMXF8F6F4SparseOp(a_type, b_type, F32, UE8M0)
        if form == "scaled"
        else warp.MmaF8F6F4SparseOp(a_type, b_type, acc)
    )
    a, _ = as_bytes(rng, (16, 64), a_type)
    a = sparse_matrix(rng, a, 8)
    decoded = (a >> (2 if a_type == E2M1FN else 0)).view(a_type.numpy).astype(np.float64)
    b, b_values = as_bytes(rng, (8, 64), b_type)
    values, words = nvgpu.compress(op, a)
    (ca, fa), (cb, fb) = factors(rng, 16, 1, False), factors(rng, 8, 1, False)
    want = (decoded * fa) @ (b_values * fb).T if form == "scaled" else decoded @ b_values.T
    c = np.empty((16, 8), acc.numpy)

    def check():
        np.testing.assert_allclose(c.astype(np.float64), want, rtol=1e-3 if form == "f16" else 1e-6)

    held = [t if t in (E4M3, E5M2) else cute.Uint8 for t in (a_type, b_type)]
    args = [cute.make_tiled_mma(op), tensor(values.view(held[0].numpy), held[0]), tensor(words, cute.Uint32)]
    args += [tensor(b.view(held[1].numpy), held[1]), *(tensor(lane_words(x), cute.Uint32) for x in (ca, cb))]
    run(multiply_bytes, 1, 32, [*args, tensor(c, acc)], outputs=[c], check=check, arch="sm_120a")


@pytest.mark.parametrize("width, k", [(16, 32), (16, 16), (32, 16), (32, 8), (8, 64), (8, 32), (4, 128), (4, 64)])
@pytest.mark.parametrize("rows", [16, 64])
def test_each_bit_of_the_metadata_has_one_place(rows, width, k):
    chunks = k // sparse.chunk(width)
    used = set()
    for selector in range(16 // chunks):
        lane, bit = sparse.places(rows, k, width, selector)
        used |= set(zip(lane.ravel().tolist(), bit.ravel().tolist()))
    assert used == {(t, 4 * i) for t in range(2 * rows) for i in range(8)}


def test_too_many_elements_are_refused_by_place():
    a = np.zeros((16, 32))
    a[3, 8:11] = 1, 2, 3
    with pytest.raises(CuteError, match=r"a\[3, 8:12\] is \[1.0, 2.0, 3.0, 0.0\]; of 4 elements two may be"):
        nvgpu.compress(warp.MmaF16BF16SparseOp(F16, F32), a)


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: nvgpu.compress(warp.MmaTF32Op((16, 8, 8)), np.zeros((16, 16))), "not a sparse operation"),
        (lambda: nvgpu.compress(warp.MmaI8SparseOp(S8, S8), np.zeros((16, 32))), r"shape \(16, 32\); it must be"),
        (lambda: warp.MmaF16BF16SparseOp(BF16, F16), "acc_dtype Float16 must be Float32 for ab_dtype BFloat16"),
        (lambda: warp.MmaTF32SparseOp((16, 8, 4)), "shape_mnk"),
        (lambda: warp.MmaTF32SparseOp((16, 8, 16), 2), r"selector 2 must be 0 or 1 for shape_mnk \(16, 8, 16\)"),
        (lambda: warp.MmaI8SparseOp(S8, S8, selector=1), r"selector 1 must be 0 for shape_mnk \(16, 8, 64\)"),
        (lambda: warp.MmaFP8SparseOp(F16, E4M3), "a_dtype Float16 must be"),
        (lambda: warp.MmaI4SparseOp(S8, Int4), "a_dtype Int8 must be"),
        (lambda: warp.MmaF8F6F4SparseOp(F16, E4M3, F32), "a_dtype Float16 must be"),
        (lambda: warp.MmaF8F6F4SparseOp(E4M3, E4M3, BF16), "acc_dtype BFloat16 must be Float32 or Float16"),
        (lambda: warp.MmaMXF4SparseOp(E2M1FN, F32, E4M3), "sf_type Float8E4M3FN must be Float8E8M0FNU"),
        (lambda: warp.MmaMXF4NVF4SparseOp(E4M3, F32, E4M3), "ab_dtype Float8E4M3FN must be Float4E2M1FN"),
        (lambda: warp.MmaMXF8F6F4SparseOp(E4M3, E5M2, F16, UE8M0), "acc_dtype Float16 must be Float32"),
    ],
)  # fmt: skip
def test_what_the_hardware_lacks_is_refused_by_name(make, why):
    with pytest.raises(CuteError, match=why):
        make()


def test_a_product_without_metadata_is_refused(rng):
    op = warp.MmaTF32SparseOp()

    @cuda.jit
    def forgets(tiled):
        rA = tiled.make_fragment_A(tiled.partition_shape_A((16, 8)))
        rB = tiled.make_fragment_B(tiled.partition_shape_B((8, 16)))
        rC = tiled.make_fragment_C(tiled.partition_shape_C((16, 8)))
        cute.gemm(tiled, rC, rA, rB, rC)

    with pytest.raises(CuteError, match="needs A's metadata"):
        cute.simulate(forgets, arch="sm_80")[1, 32](cute.make_tiled_mma(op))


def test_metadata_that_means_nothing_is_explained(rng):
    op = warp.MmaTF32SparseOp()
    values, words = nvgpu.compress(op, np.zeros((16, 16), np.float32))
    words[0, 0, 5] = 0
    c = np.empty((16, 8), np.float32)
    b = np.zeros((8, 16), np.float32)
    args = [tensor(x, t)(lambda a: a) for x, t in ((values, cute.TFloat32), (words, cute.Uint32), (b, cute.TFloat32))]
    with pytest.raises(CuteError, match="metadata 0b0000 of row 1, columns 8 on .thread 5, bit 0. is none of 0b0100"):
        cute.simulate(multiply, arch="sm_80")[1, 32](cute.make_tiled_mma(op), *args, tensor(c, F32)(lambda a: a))


SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
KINDS = warpgroup.SmemLayoutAtomKind


@cuda.jit
def multiply_by_warpgroup(tiled, a_atom, b_atom, a, e, b, c):
    """c = A @ b.T of a sparse A: its stored half goes to shared memory, and from there to registers if it must."""
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    a_layout, b_layout = cute.tile_to_shape(a_atom, a.shape, (0, 1)), cute.tile_to_shape(b_atom, b.shape, (0, 1))
    sA = smem.allocate_tensor(a.element_type, a_layout.outer, 1024, a_layout.inner, "sA")
    sB = smem.allocate_tensor(b.element_type, b_layout.outer, 1024, b_layout.inner, "sB")
    for i in range(tidx, cute.size(a), 128):
        sA[i] = a[i]
    for i in range(tidx, cute.size(b), 128):
        sB[i] = b[i]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    mma = tiled.get_slice(tidx)
    tA, tE, tC = mma.partition_A(sA), mma.partition_E(e), mma.partition_C(c)
    rA, rB, rC = tiled.make_fragment_A(tA), tiled.make_fragment_B(mma.partition_B(sB)), tiled.make_fragment_C(tC)
    fill_a(tiled, tA, rA)
    rE = cute.make_fragment_like(tE)
    cute.basic_copy(tE, rE)
    rC.fill(1)
    warpgroup.fence()
    first = tiled.set(warpgroup.Field.ACCUMULATE, False).set(warpgroup.Field.METADATA, rE)
    cute.gemm(first, rC, rA, rB, rC)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.basic_copy(rC, tC)


def wgmma_ops():
    for src, sel in ((SMEM, 0), (SMEM, 1), (RMEM, 0)):
        yield warpgroup.MmaF16BF16SparseOp(F16, F32, (64, 24, 32), src, selector=sel)
        yield warpgroup.MmaTF32SparseOp((64, 40, 16), src, selector=sel)
    for src in (SMEM, RMEM):
        yield warpgroup.MmaF16BF16SparseOp(F16, F16, (64, 16, 32), src)
        yield warpgroup.MmaF16BF16SparseOp(BF16, F32, (64, 16, 32), src)
        yield warpgroup.MmaF8SparseOp(E4M3, E5M2, F32, (64, 16, 64), src)
        yield warpgroup.MmaF8SparseOp(E5M2, E4M3, F16, (64, 16, 64), src)
        yield warpgroup.MmaI8SparseOp(S8, U8, S32, (64, 24, 64), src)
    yield warpgroup.MmaF16BF16SparseOp(BF16, F32, (64, 64, 32), SMEM, MN, MN)
    yield warpgroup.MmaF16BF16SparseOp(F16, F32, (64, 64, 32), RMEM, K, MN)


def wgmma_name(op):
    majors = "".join(m.value[0] for m in (op.a_major_mode, op.b_major_mode))
    return f"{name(op)}_{op.a_src.value}_{majors}"


def run_wgmma(run, rng, op, tiled, shape, b_kind=KINDS.K_SW64):
    m, n, k = shape
    a = sparse_matrix(rng, small(rng, (m, k), op.a_type), op.a_type.width)
    b, c = small(rng, (n, k), op.b_type), np.empty((m, n), op.accumulator.numpy)
    values, words = nvgpu.compress(op, a)
    want = a.astype(np.float64) @ b.astype(np.float64).T

    def check():
        np.testing.assert_array_equal(c.astype(np.float64), want)

    a_kind = KINDS.K_SW32 if op.a_major_mode is K else KINDS.MN_SW128
    kinds = (a_kind, b_kind if op.b_major_mode is K else KINDS.MN_SW128)
    atoms = [warpgroup.make_smem_layout_atom(kind, t) for kind, t in zip(kinds, (op.a_type, op.b_type))]
    args = [tensor(x, t) for x, t in ((values, op.a_type), (words, cute.Uint32), (b, op.b_type), (c, op.accumulator))]
    run(multiply_by_warpgroup, 1, tiled.size, [tiled, *atoms, *args], outputs=[c], check=check)


QUICK_WGMMA = {0, 2, 4, 5, 6, 8, 10, 13, 16, 17}
"""The places in `wgmma_ops` of those that the default run takes."""


@pytest.mark.parametrize(
    "op",
    [op if i in QUICK_WGMMA else pytest.param(op, marks=pytest.mark.slow) for i, op in enumerate(wgmma_ops())],
    ids=wgmma_name,
)
def test_one_wgmma_is_a_float64_product(run, rng, op):
    run_wgmma(run, rng, op, cute.make_tiled_mma(op), op.shape_mnk)


NARROW = [
    warpgroup.MmaF16BF16SparseOp(F16, F32, (64, 24, 32), SMEM), warpgroup.MmaTF32SparseOp((64, 16, 16), RMEM),
    warpgroup.MmaI8SparseOp(S8, U8, S32, (64, 16, 64), SMEM),
]  # fmt: skip


@pytest.mark.parametrize(
    "op", [*NARROW[:2], *(pytest.param(op, marks=pytest.mark.slow) for op in NARROW[2:])], ids=wgmma_name
)
@pytest.mark.parametrize("kind", [KINDS.K_SW32, KINDS.K_INTER], ids=lambda k: k.name)
def test_b_may_be_wider_than_its_swizzle(run, rng, op, kind):
    _, n, k = op.shape_mnk
    run_wgmma(run, rng, op, cute.make_tiled_mma(op), (64, 2 * n, 2 * k), kind)


def test_a_tile_of_wgmmas_takes_a_word_of_metadata_for_each(run, rng):
    op = warpgroup.MmaF16BF16SparseOp(F16, F32, (64, 32, 32), SMEM)
    run_wgmma(run, rng, op, cute.make_tiled_mma(op), (128, 32, 96))


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: warpgroup.MmaTF32SparseOp((64, 8, 8), SMEM), r"must be \(64, n, 16\)"),
        (
            lambda: warpgroup.MmaF8SparseOp(E4M3, E4M3, F32, (64, 8), SMEM, MN),
            r"a_major_mode .* must be .*\.K$",
        ),
        (lambda: warpgroup.MmaI8SparseOp(S8, S8, S32, (64, 8), SMEM, selector=1), "selector 1 must be 0"),
        (lambda: warpgroup.MmaF16BF16SparseOp(F16, F32, (64, 8), SMEM, selector=2), "selector 2 must be 0 or 1"),
    ],
)
def test_what_wgmma_lacks_is_refused_by_name(make, why):
    with pytest.raises(CuteError, match=why):
        make()
