# SPDX-License-Identifier: Apache-2.0
"""Every mma.sync: fragments filled through the atom's layouts, one instruction, compared with a float64 product."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa
from numba_cute.dtypes import Float4E2M1FN, Float6E2M3FN, Float6E3M2FN, Float8E8M0FNU, Int4, Uint4
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

F16, BF16, F32 = cute.Float16, cute.BFloat16, cute.Float32
E4M3, E5M2 = cute.Float8E4M3FN, cute.Float8E5M2
S8, U8 = cute.Int8, cute.Uint8


def product(*choices):
    return list(itertools.product(*choices))


OPS = [warp.MmaF16BF16Op(F16, acc, (16, 8, k)) for acc, k in product((F16, F32), (8, 16))]
OPS += [warp.MmaF16BF16Op(BF16, F32, (16, 8, k)) for k in (8, 16)]
OPS += [warp.MmaTF32Op((16, 8, k)) for k in (4, 8)]
OPS += [warp.MmaF64Op(s) for s in ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16))]
OPS += [warp.MmaFP8Op(ab, acc, (16, 8, k)) for ab, acc, k in product((E4M3, E5M2), (F16, F32), (16, 32))]
OPS += [
    warp.MmaI8Op(a, b, s, sat)
    for a, b, s, sat in product((S8, U8), (S8, U8), ((16, 8, 32), (16, 8, 16), (8, 8, 16)), (False, True))
]


def target(op):
    return "sm_89" if isinstance(op, warp.MmaFP8Op) else "sm_90" if op.shape_mnk[0] == 16 and is_f64(op) else "sm_80"


def is_f64(op):
    return isinstance(op, warp.MmaF64Op)


def name(op):
    types = "_".join(d.ptx for d in (op.a_type, op.b_type, op.accumulator))
    return f"{types}_{'x'.join(map(str, op.shape_mnk))}{'_sat' if getattr(op, 'saturate', False) else ''}"


@cuda.jit
def multiply(tiled, keep, a, b, c, d):
    """d = a @ b.T + (c if keep else 0)."""
    tidx, _, _ = arch.thread_idx()
    mma = tiled.get_slice(tidx)
    tA, tB, tC, tD = mma.partition_A(a), mma.partition_B(b), mma.partition_C(c), mma.partition_C(d)
    rA, rB, rC = tiled.make_fragment_A(tA), tiled.make_fragment_B(tB), tiled.make_fragment_C(tC)
    cute.basic_copy(tA, rA)
    cute.basic_copy(tB, rB)
    cute.basic_copy(tC, rC)
    cute.gemm(tiled.set(warp.Field.ACCUMULATE, keep), rC, rA, rB, rC)
    cute.basic_copy(rC, tD)


def small(rng, shape, dtype):
    """Small integers: exact in every type, and so are the sums of their products."""
    low = 0 if dtype.kind == "uint" else -3
    return rng.integers(low, 4, shape).astype(dtype.numpy)


def tensor(array, dtype):
    return lambda place: cute.recast_tensor(from_dlpack(place(array)), dtype)


@pytest.mark.parametrize("op", OPS, ids=name)
def test_one_instruction_is_a_float64_product(run, rng, op):
    m, n, k = op.shape_mnk
    a, b = small(rng, (m, k), op.a_type), small(rng, (n, k), op.b_type)
    c = small(rng, (m, n), op.accumulator)
    d = np.empty((m, n), op.accumulator.numpy)
    keep = bool(rng.integers(2))
    want = a.astype(np.float64) @ b.astype(np.float64).T + keep * c.astype(np.float64)

    def check():
        np.testing.assert_array_equal(d.astype(np.float64), want)

    args = [tensor(a, op.a_type), tensor(b, op.b_type), tensor(c, op.accumulator), tensor(d, op.accumulator)]
    run(multiply, 1, 32, [cute.make_tiled_mma(op), keep, *args], outputs=[d], check=check, arch=target(op))


@cuda.jit
def multiply_beside(tiled, a, b, c, d, after):
    """d = a @ b.T + c with c and d in registers of their own, and `after` = c as it is then."""
    tidx, _, _ = arch.thread_idx()
    mma = tiled.get_slice(tidx)
    tA, tB, tC, tD = mma.partition_A(a), mma.partition_B(b), mma.partition_C(c), mma.partition_C(d)
    rA, rB, rC = tiled.make_fragment_A(tA), tiled.make_fragment_B(tB), tiled.make_fragment_C(tC)
    rD = cute.make_fragment_like(rC)
    cute.basic_copy(tA, rA)
    cute.basic_copy(tB, rB)
    cute.basic_copy(tC, rC)
    cute.gemm(tiled, rD, rA, rB, rC)
    cute.basic_copy(rD, tD)
    cute.basic_copy(rC, mma.partition_C(after))


@pytest.mark.parametrize("op", [warp.MmaF16BF16Op(F16, F32, (16, 8, 16)), warp.MmaI8Op(S8, S8, (16, 8, 32))], ids=name)
def test_what_is_added_may_be_another_fragment(run, rng, op):
    m, n, k = 32, 16, 2 * op.shape_mnk[2]
    a, b = small(rng, (m, k), op.a_type), small(rng, (n, k), op.b_type)
    c = small(rng, (m, n), op.accumulator)
    d, after = np.empty_like(c), np.empty_like(c)

    def check():
        np.testing.assert_array_equal(d, a.astype(np.float64) @ b.astype(np.float64).T + c)
        np.testing.assert_array_equal(after, c)

    types = (op.a_type, op.b_type, op.accumulator, op.accumulator, op.accumulator)
    args = [tensor(x, t) for x, t in zip((a, b, c, d, after), types)]
    run(multiply_beside, 1, 32, [cute.make_tiled_mma(op), *args], outputs=[d, after], check=check, arch=target(op))


@pytest.mark.parametrize("saturate", [False, True])
def test_an_integer_sum_wraps_or_clamps(run, saturate):
    op = warp.MmaI8Op(S8, S8, (16, 8, 32), saturate)
    a, b = np.full((16, 32), 127, np.int8), np.full((8, 32), 127, np.int8)
    c = np.full((16, 8), (1 << 31) - 1, np.int32)
    d = np.empty_like(c)
    exact = np.int64(c[0, 0]) + 32 * 127 * 127
    want = (1 << 31) - 1 if saturate else exact - (1 << 32)

    def check():
        assert (d == want).all()

    args = [tensor(x, t) for x, t in ((a, S8), (b, S8), (c, cute.Int32), (d, cute.Int32))]
    run(multiply, 1, 32, [cute.make_tiled_mma(op), True, *args], outputs=[d], check=check, arch="sm_80")


def test_tf32_ignores_the_low_bits_of_a_float(run):
    op = warp.MmaTF32Op((16, 8, 8))
    low = np.float32(1) + np.float32(2.0**-11)
    a, b = np.full((16, 8), low, np.float32), np.ones((8, 8), np.float32)
    d = np.empty((16, 8), np.float32)

    def check():
        assert (d == 8).all()

    args = [tensor(x, t) for x, t in ((a, cute.TFloat32), (b, cute.TFloat32), (d.copy() * 0, F32), (d, F32))]
    run(multiply, 1, 32, [cute.make_tiled_mma(op), False, *args], outputs=[d], check=check, arch="sm_80")


@cuda.jit
def multiply_words(tiled, by_word, sfa, sfb, a, b, c):
    """c = a @ b.T of operands that lie in words of 32 bits: `by_word` partitions those like the registers."""
    tidx, _, _ = arch.thread_idx()
    words = by_word.get_slice(tidx)
    tA, tB = words.partition_A(a), words.partition_B(b)
    rA = tiled.make_fragment_A(tiled.partition_shape_A((tiled.shape_mnk[0], tiled.shape_mnk[2])))
    rB = tiled.make_fragment_B(tiled.partition_shape_B((8, tiled.shape_mnk[2])))
    cute.basic_copy(tA, rA)
    cute.basic_copy(tB, rB)
    tC = tiled.get_slice(tidx).partition_C(c)
    rC = tiled.make_fragment_C(tC)
    rC.fill(0)
    cute.gemm(scaled(tiled, sfa, sfb, tidx), rC, rA, rB, rC)
    cute.basic_copy(rC, tC)


@cute.seam.traced
def scaled(tiled, sfa, sfb, tidx):
    """The tiled MMA with this lane's factors, where it takes any."""
    if warp.Field.SFA not in tiled.op.fields:
        return tiled
    return tiled.set(warp.Field.SFA, sfa[tidx]).set(warp.Field.SFB, sfb[tidx])


def pack(elements, bits):
    """Integers (rows, k) of `bits` bits in words: the first along k lowest."""
    per = 32 // bits
    codes = elements.astype(np.int64) & ((1 << bits) - 1)
    return (codes.reshape(len(codes), -1, per) << (bits * np.arange(per))).sum(-1).astype(np.uint32)


NO_FACTORS = np.zeros(32, np.uint32)


def run_words(run, op, a, b, want, accumulator, sfa=NO_FACTORS, sfb=NO_FACTORS, arch="sm_80"):
    m = op.shape_mnk[0]
    c = np.empty((m, 8), accumulator.numpy)
    by_word = cute.make_tiled_mma(by_words(m, a.shape[1]))
    args = [tensor(x, t) for x, t in ((sfa, cute.Uint32), (sfb, cute.Uint32), (a, cute.Uint32), (b, cute.Uint32))]

    def check():
        np.testing.assert_array_equal(c.astype(np.float64), want)

    args = [cute.make_tiled_mma(op), by_word, *args, tensor(c, accumulator)]
    run(multiply_words, 1, 32, args, outputs=[c], check=check, arch=arch)


def by_words(m, k_words):
    """An operation whose fragments lie as those of words do."""
    return warp.MmaF64Op((8, 8, 4)) if m == 8 else warp.MmaTF32Op((16, 8, k_words))


I4 = product((Int4, Uint4), (Int4, Uint4), ((16, 8, 64), (16, 8, 32), (8, 8, 32)))


@pytest.mark.parametrize("a_type, b_type, shape", I4, ids=str)
def test_4_bit_integers_are_multiplied(run, rng, a_type, b_type, shape):
    op = warp.MmaI4Op(a_type, b_type, shape)
    a, b = (
        rng.integers(*((-8, 8) if t is Int4 else (0, 16)), (x, shape[2])) for t, x in ((a_type, shape[0]), (b_type, 8))
    )
    run_words(run, op, pack(a, 4), pack(b, 4), (a @ b.T).astype(np.float64), cute.Int32)


@pytest.mark.parametrize("bit_op", ["xor", "and"])
@pytest.mark.parametrize("shape", [(16, 8, 256), (16, 8, 128), (8, 8, 128)], ids=str)
def test_bits_are_counted(run, rng, shape, bit_op):
    op = warp.MmaB1Op(shape, bit_op)
    a, b = rng.integers(0, 2, (shape[0], shape[2])), rng.integers(0, 2, (8, shape[2]))
    both = a[:, None] ^ b[None] if bit_op == "xor" else a[:, None] & b[None]
    run_words(run, op, pack(a, 1), pack(b, 1), both.sum(-1).astype(np.float64), cute.Int32)


E2M1 = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)


def factors(rng, rows, count, nv):
    """Random factors (rows, count) and the bytes that stand for them."""
    codes = rng.integers(126, 130, (rows, count)) if not nv else rng.integers(0x34, 0x3D, (rows, count))
    view = ml_dtypes.float8_e4m3fn if nv else ml_dtypes.float8_e8m0fnu
    return codes, codes.astype(np.uint8).view(view).astype(np.float64)


def lane_words(codes):
    """Factors' bytes as each lane's word: row r in lane 4 * (r % 8) + r // 8; the other lanes' are not used."""
    words = np.full(32, 0xA5A5A5A5, np.uint32)
    for r, row in enumerate(codes):
        words[4 * (r % 8) + r // 8] = sum(int(x) << (8 * i) for i, x in enumerate(row))
    return words


@pytest.mark.parametrize("nv", [False, True], ids=["mxf4", "mxf4nvf4"])
def test_block_scaled_4_bit_floats_are_multiplied(run, rng, nv):
    op = warp.MmaMXF4NVF4Op(Float4E2M1FN, F32, E4M3) if nv else warp.MmaMXF4Op(Float4E2M1FN, F32, Float8E8M0FNU)
    count = 4 if nv else 2
    a, b = rng.integers(0, 16, (16, 64)), rng.integers(0, 16, (8, 64))
    (ca, fa), (cb, fb) = factors(rng, 16, count, nv), factors(rng, 8, count, nv)
    want = (E2M1[a] * np.repeat(fa, 64 // count, 1)) @ (E2M1[b] * np.repeat(fb, 64 // count, 1)).T
    want = want.astype(np.float32).astype(np.float64)
    run_words(run, op, pack(a, 4), pack(b, 4), want, F32, lane_words(ca), lane_words(cb), "sm_120a")


@pytest.mark.parametrize("ab", [E4M3, E5M2], ids=str)
def test_block_scaled_8_bit_floats_are_multiplied(run, rng, ab):
    op = warp.MmaMXF8Op(ab, F32, Float8E8M0FNU)
    a, b = small(rng, (16, 32), ab), small(rng, (8, 32), ab)
    (ca, fa), (cb, fb) = factors(rng, 16, 1, False), factors(rng, 8, 1, False)
    want = (a.astype(np.float64) * fa) @ (b.astype(np.float64) * fb).T
    c = np.empty((16, 8), np.float32)

    def check():
        np.testing.assert_array_equal(c, want)

    args = [tensor(lane_words(ca), cute.Uint32), tensor(lane_words(cb), cute.Uint32)]
    args += [tensor(a, ab), tensor(b, ab), tensor(c, F32)]
    tiled = cute.make_tiled_mma(op)
    run(multiply_words, 1, 32, [tiled, tiled, *args], outputs=[c], check=check, arch="sm_120a")


NARROW = {E4M3: 0, E5M2: 0, Float6E2M3FN: 0, Float6E3M2FN: 0, Float4E2M1FN: 2}
"""How far up an element lies in its byte."""


def narrow_bytes(rng, shape, dtype):
    """Small numbers, and the bytes that stand for them."""
    numbers = rng.integers(-2, 3, shape).astype(dtype.numpy)
    return numbers.astype(np.float64), (numbers.view(np.uint8) << NARROW[dtype]).astype(np.uint8)


def run_narrow(run, rng, op, scales=()):
    m, n, k = op.shape_mnk
    (a, a_bytes), (b, b_bytes) = narrow_bytes(rng, (m, k), op.a_type), narrow_bytes(rng, (n, k), op.b_type)
    for matrix, (_, factor) in zip((a, b), scales):
        matrix *= factor
    c = np.empty((m, n), op.accumulator.numpy)

    def check():
        np.testing.assert_array_equal(c.astype(np.float64), a @ b.T)

    words = [lane_words(codes) for codes, _ in scales] or [NO_FACTORS, NO_FACTORS]
    tiled = cute.make_tiled_mma(op)
    held = [op.held(x) for x in "AB"]
    args = [*(tensor(w, cute.Uint32) for w in words), tensor(a_bytes, held[0]), tensor(b_bytes, held[1])]
    run(
        multiply_words,
        1,
        32,
        [tiled, tiled, *args, tensor(c, op.accumulator)],
        outputs=[c],
        check=check,
        arch="sm_120a",
    )


PAIRS = sorted(product(NARROW, NARROW), key=str)


@pytest.mark.parametrize("acc", [F32, F16], ids=str)
@pytest.mark.parametrize("a_type, b_type", PAIRS[::7], ids=str)
def test_narrow_floats_are_multiplied(run, rng, a_type, b_type, acc):
    run_narrow(run, rng, warp.MmaF8F6F4Op(a_type, b_type, acc))


@pytest.mark.parametrize("a_type, b_type", sorted(warp.MXF8F6F4_SUPPORTED_PAIRS, key=str)[::5], ids=str)
def test_block_scaled_mixed_floats_are_multiplied(run, rng, a_type, b_type):
    op = warp.MmaMXF8F6F4Op(a_type, b_type, F32, Float8E8M0FNU)
    run_narrow(run, rng, op, (factors(rng, 16, 1, False), factors(rng, 8, 1, False)))


@pytest.mark.parametrize("a_type, b_type", PAIRS, ids=str)
def test_supported_pairs_are_those_that_are_accepted(a_type, b_type):
    if (a_type, b_type) in warp.MXF8F6F4_SUPPORTED_PAIRS:
        assert warp.MmaMXF8F6F4Op(a_type, b_type, F32, Float8E8M0FNU).row()[0] is isa.mma_mxf8f6f4
    else:
        with pytest.raises(CuteError, match="use MmaMXF8Op|use MmaMXF4Op"):
            warp.MmaMXF8F6F4Op(a_type, b_type, F32, Float8E8M0FNU)


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: warp.MmaF8F6F4Op(F16, E4M3, F32), "a_dtype Float16 must be Float8E4M3FN"),
        (lambda: warp.MmaF16BF16Op(F32, F32, (16, 8, 16)), "ab_dtype Float32 must be Float16 or BFloat16"),
        (lambda: warp.MmaF16BF16Op(BF16, F16, (16, 8, 16)), "acc_dtype Float16 must be Float32 for ab_dtype BFloat16"),
        (lambda: warp.MmaF16BF16Op(F16, F32, (16, 8, 32)), r"shape_mnk \(16, 8, 32\) must be"),
        (lambda: warp.MmaTF32Op((16, 8, 16)), "shape_mnk"),
        (lambda: warp.MmaFP8Op(F16, F32, (16, 8, 32)), "ab_dtype Float16 must be Float8E4M3FN or Float8E5M2"),
        (lambda: warp.MmaI8Op(S8, cute.Int32), "b_dtype Int32 must be Int8 or Uint8"),
        (lambda: warp.MmaB1Op(bit_op="or"), "bit_op 'or' must be"),
        (lambda: warp.MmaMXF4NVF4Op(Float4E2M1FN, F32, Float8E8M0FNU), "sf_type Float8E8M0FNU must be Float8E4M3FN"),
        (lambda: warp.MmaMXF8F6F4Op(E4M3, E5M2, F32, Float8E8M0FNU), "use MmaMXF8Op"),
        (lambda: warp.MmaMXF8F6F4Op(Float4E2M1FN, Float4E2M1FN, F32, Float8E8M0FNU), "use MmaMXF4Op"),
    ],
)
def test_what_the_hardware_lacks_is_refused_by_name(make, why):
    with pytest.raises(CuteError, match=why):
        make()


def test_an_operation_of_a_later_target_is_refused_for_an_earlier_one():
    op = warp.MmaFP8Op(E4M3, F32, (16, 8, 32))
    arrays = [np.zeros(s, t.numpy) for s, t in (((16, 32), E4M3), ((8, 32), E4M3), ((16, 8), F32), ((16, 8), F32))]
    with pytest.raises(CuteError, match="mma_f32_fp8 needs sm_89"):
        cute.compile(multiply, (cute.make_tiled_mma(op), True, *map(from_dlpack, arrays)), arch="sm_80")


def test_mixed_narrow_operands_are_bytes():
    op = warp.MmaMXF8F6F4Op(Float6E2M3FN, E4M3, F32, Float8E8M0FNU)
    assert op.traits().a == warp.MmaMXF8Op(E4M3, F32, Float8E8M0FNU).traits().a
