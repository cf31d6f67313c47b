# SPDX-License-Identifier: Apache-2.0
"""Functions of `arch` that are no plain instruction: carries, conversions of packed numbers, floats' minima and maxima,
lane masks. In kernels, against Python and NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from ..nvgpu.test_warp_mma import tensor

U32, S32, F32, U64 = cute.Uint32, cute.Int32, cute.Float32, cute.Uint64
WORD = 0xFFFFFFFF


def number(words):
    """Rows of 32-bit words, lowest first, as Python's integers."""
    return [sum(int(w) << 32 * i for i, w in enumerate(row)) for row in words]


@cuda.jit
def long_integers(a, b, got):
    i, _, _ = arch.thread_idx()
    got[i, 0] = arch.add_cc(a[i, 0], b[i, 0])
    got[i, 1] = arch.addc(a[i, 1], b[i, 1])
    got[i, 2] = arch.addc(a[i, 2], b[i, 2])
    got[i, 3] = arch.addc(0, 0)
    got[i, 4] = arch.sub_cc(a[i, 0], b[i, 0])
    got[i, 5] = arch.subc(a[i, 1], b[i, 1])
    got[i, 6] = arch.subc(a[i, 2], b[i, 2])
    got[i, 7] = arch.subc(0, 0)
    got[i, 8] = arch.mad_cc(a[i, 0], b[i, 0], a[i, 1])
    got[i, 9] = arch.madc(a[i, 1], b[i, 1], a[i, 2])
    got[i, 10] = arch.addc(0, 0)
    wide = arch.add_cc(cute.Uint64(a[i, 0]) << 32 | cute.Uint64(a[i, 1]), cute.Uint64(b[i, 0]) << 32, 64)
    got[i, 11] = cute.Uint32(wide >> 32)
    got[i, 12] = cute.Uint32(arch.addc(0, 0, 64))


def expected_long(a, b):
    rows = []
    for (a0, a1, a2), (b0, b1, b2) in zip(a.tolist(), b.tolist()):
        x, y = (v[0] | v[1] << 32 | v[2] << 64 for v in ((a0, a1, a2), (b0, b1, b2)))
        total, less = x + y, (x - y) & (1 << 128) - 1
        low = (a0 * b0 & WORD) + a1
        high = (a1 * b1 & WORD) + a2 + (low >> 32)
        wide = (a0 << 32 | a1) + (b0 << 32)
        rows.append(
            [total >> 32 * i & WORD for i in range(4)] + [less >> 32 * i & WORD for i in range(4)]
            + [low & WORD, high & WORD, high >> 32, wide >> 32 & WORD, wide >> 64]
        )  # fmt: skip
    return np.array(rows, np.uint32)


def test_a_carry_goes_from_call_to_call(run, rng):
    a, b = rng.integers(0, 1 << 32, (2, 32, 3), dtype=np.uint32)
    a[::3] |= 0xFFFFFFF0
    b[::3, 0], a[1::4], b[1::4] = 0x10, 0, 1
    b[2::5, 1:] = ~a[2::5, 1:]  # so that carries run through
    got = np.empty((32, 13), np.uint32)
    want = expected_long(a, b)

    def check():
        np.testing.assert_array_equal(got, want)

    run(long_integers, 1, 32, [tensor(x, U32) for x in (a, b, got)], outputs=[got], check=check, arch="sm_80")


@cuda.jit
def carry_in_a_loop(a, b, got):
    """A sum of as many words as there are, its carry kept round a loop and past a branch."""
    i, _, _ = arch.thread_idx()
    got[i, 0] = arch.add_cc(a[i, 0], b[i, 0])
    for j in range(1, a.shape[1]):
        if i >= 0:
            got[i, j] = arch.addc(a[i, j], b[i, j])


def test_a_carry_is_kept_round_a_loop(run, rng):
    a, b = rng.integers(0, 1 << 32, (2, 32, 6), dtype=np.uint32)
    b[:, 1:] = np.where(rng.random((32, 5)) < 0.7, ~a[:, 1:], b[:, 1:])
    got = np.empty((32, 6), np.uint32)
    want = [(x + y) & (1 << 192) - 1 for x, y in zip(number(a), number(b))]

    def check():
        assert number(got) == want

    run(carry_in_a_loop, 1, 32, [tensor(x, U32) for x in (a, b, got)], outputs=[got], check=check, arch="sm_80")


@cuda.jit
def small_products(a, b, got):
    i, _, _ = arch.thread_idx()
    got[i, 0] = cute.Uint32(arch.mul24(a[i], b[i]))
    got[i, 1] = cute.Uint32(arch.mul24(a[i], b[i], True))
    got[i, 2] = arch.mul24(a[i], b[i], False, False)
    got[i, 3] = arch.mul24(a[i], b[i], True, False)
    got[i, 4] = cute.Uint32(arch.mad24(a[i], b[i], 0xFFFFFFFF))
    got[i, 5] = arch.mad24(a[i], b[i], 12345, True, False)


def test_products_of_24_bits(run, rng):
    a, b = rng.integers(0, 1 << 32, (2, 32), dtype=np.uint32)
    got = np.empty((32, 6), np.uint32)
    low, high = [], []
    for x, y in zip(a.tolist(), b.tolist()):
        u, v = x & 0xFFFFFF, y & 0xFFFFFF
        s, t = ((w ^ 0x800000) - 0x800000 for w in (u, v))
        low.append([s * t, s * t >> 16, u * v, u * v >> 16, s * t - 1, (u * v >> 16) + 12345])
    want = np.array([[w & WORD for w in row] for row in low], np.uint32)
    assert not high

    def check():
        np.testing.assert_array_equal(got, want)

    run(small_products, 1, 32, [tensor(x, U32) for x in (a, b, got)], outputs=[got], check=check, arch="sm_80")


@cuda.jit
def extremes(a, b, got):
    i, _, _ = arch.thread_idx()
    got[i, 0] = arch.fmax(a[i], b[i])
    got[i, 1] = arch.fmin(a[i], b[i])
    got[i, 2] = arch.fmax(a[i], b[i], nan=True)
    got[i, 3] = arch.fmin(a[i], b[i], nan=True)
    got[i, 4] = arch.fmax(a[i], b[i], abs=True)
    got[i, 5] = arch.fmin(a[i], b[i], ftz=True)
    got[i, 6] = arch.rcp_approx(a[i])
    got[i, 7] = arch.exp2(b[i])


def test_minima_and_maxima_of_floats(run):
    special = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    a, b = (np.ascontiguousarray(x.ravel()) for x in np.meshgrid(special, special))
    got = np.empty((64, 8), np.float32)
    with np.errstate(all="ignore"):
        plain, flat = (a, b), [np.where(np.abs(x) < 2.0**-126, np.copysign(0, x), x) for x in (a, b)]
        want = [np.fmax(*plain), np.fmin(*plain), np.maximum(*plain), np.minimum(*plain)]
        sign = np.where(np.signbit(a) != np.signbit(b), np.float32(-1), np.float32(1))
        want += [sign * np.fmax(np.abs(a), np.abs(b)), np.fmin(*flat), 1 / flat[0], np.exp2(flat[1])]

    def check():
        np.testing.assert_allclose(got, np.stack(want, 1), rtol=3e-7)
        zeros = (a == 0) & (b == 0)
        signs = np.signbit(got[:, :2][zeros])
        both, either = (np.signbit(a) & np.signbit(b))[zeros], (np.signbit(a) | np.signbit(b))[zeros]
        np.testing.assert_array_equal(signs, np.stack([both, either], 1))  # +0 counts as more than -0

    run(extremes, 1, 64, [tensor(x, F32) for x in (a, b, got)], outputs=[got], check=check)


@cuda.jit
def masks(got):
    i, _, _ = arch.thread_idx()
    got[i, 0] = arch.lanemask_eq()
    got[i, 1] = arch.lanemask_le()
    got[i, 2] = arch.lanemask_lt()
    got[i, 3] = arch.lanemask_ge()
    got[i, 4] = arch.lanemask_gt()
    got[i, 5] = cute.Uint32(arch.warpsize())
    got[i, 6] = cute.Uint32(arch.aggr_smem_size() - arch.total_smem_size())
    got[i, 7] = cute.Uint32(arch.get_dyn_smem_size() <= arch.total_smem_size())
    got[i, 8] = cute.Uint32(arch.gridid() == arch.gridid())
    start, timer = arch.clock(), arch.globaltimer_lo()
    got[i, 9] = cute.Uint32(arch.clock() - start >= 0) + cute.Uint32(arch.globaltimer_lo() - timer >= 0)


def test_lane_masks_and_sizes(run):
    got = np.empty((64, 10), np.uint32)
    t = np.arange(64, dtype=np.uint64) % 32
    bit = np.uint64(1) << t
    want = [bit, 2 * bit - 1, bit - 1, (1 << 32) - bit, (1 << 32) - 2 * bit]
    want = [w.astype(np.uint32) for w in want] + [np.full(64, v, np.uint32) for v in (32, 1024, 1, 1, 2)]

    def check():
        np.testing.assert_array_equal(got, np.stack(want, 1))

    run(masks, 1, 64, [tensor(got, U32)], outputs=[got], check=check)


@cuda.jit
def widened(ints, bf16, f32, few, scalar, i4, f4, halves, words, pairs, tf32):
    i, _, _ = arch.thread_idx()
    bf16[i, None].store(arch.cvt_i8_bf16_intrinsic(ints[i, None].load(), 8))
    quad = ints[i, None].load()
    f = arch.cvt_i8x4_to_f32x4((quad[0], quad[1], quad[2], quad[3]))
    f32[i, 0] = f[0]
    f32[i, 1] = f[1]
    f32[i, 2] = f[2]
    f32[i, 3] = f[3]
    two = arch.cvt_i8x2_to_bf16x2((quad[4], quad[5]))
    few[i, 0] = two[0]
    few[i, 1] = two[1]
    scalar[i] = arch.cvt_i8_bf16(quad[6])
    i4[i, None].store(arch.cvt_i4_bf16_intrinsic(words[i, None].load(), 8))
    f4[i, None].store(arch.cvt_f4e2m1_f16_intrinsic(words[i, None].load(), 8))
    x = halves[i, None].load()
    pairs[i, None].store(arch.cvt_f32x2_bf16x2(x))
    tf32[i] = arch.cvt_f32_tf32(x[0])


def test_small_numbers_are_widened_exactly(run, rng):
    ints = rng.integers(-128, 128, (32, 8)).astype(np.int8)
    words = rng.integers(0, 1 << 32, (32, 1), dtype=np.uint32)
    halves = (rng.standard_normal((32, 2)) * 100).astype(np.float32)
    brain, half = ml_dtypes.bfloat16, np.float16
    bf16, few, scalar = np.empty((32, 8), brain), np.empty((32, 2), brain), np.empty(32, brain)
    f32, i4, f4 = np.empty((32, 4), np.float32), np.empty((32, 8), brain), np.empty((32, 8), half)
    pairs, tf32 = np.empty((32, 2), brain), np.empty(32, np.float32)
    digits = (words >> np.arange(0, 32, 4, dtype=np.uint32) & 15).astype(np.uint8)

    def check():
        np.testing.assert_array_equal(bf16.astype(np.int32), ints)
        np.testing.assert_array_equal(f32, ints[:, :4])
        np.testing.assert_array_equal(few.astype(np.int32), ints[:, 4:6])
        np.testing.assert_array_equal(scalar.astype(np.int32), ints[:, 6])
        np.testing.assert_array_equal(i4.astype(np.int32), (digits.astype(np.int32) ^ 8) - 8)
        np.testing.assert_array_equal(f4, digits.view(ml_dtypes.float4_e2m1fn).astype(half))
        np.testing.assert_array_equal(pairs.view(np.uint16), halves.astype(brain).view(np.uint16))
        bits = halves[:, 0].copy().view(np.uint32)
        np.testing.assert_array_equal(tf32.view(np.uint32), (bits + 0x1000) & 0xFFFFE000)

    arrays = [ints, bf16, f32, few, scalar, i4, f4, halves, words, pairs, tf32]
    args = [lambda place, a=a: from_dlpack(place(a)) for a in arrays]
    outs = [bf16, f32, few, scalar, i4, f4, pairs, tf32]
    run(widened, 1, 32, args, outputs=outs, check=check)


@cuda.jit
def extended(packed, got):
    i, _, _ = arch.thread_idx()
    got[i, None].store(arch.sext_unpacked_i4_i8_intrinsic(packed[i, None].load(), 6))
    arch.nanosleep(100)


def test_four_bits_in_a_byte_are_extended_by_their_sign(run, rng):
    values = rng.integers(-8, 8, (32, 6)).astype(np.int8)
    packed = ((values & 15) | (rng.integers(0, 16, values.shape) << 4)).astype(np.uint8)
    got = np.empty_like(values)

    def check():
        np.testing.assert_array_equal(got, values)

    args = [lambda place, a=a: from_dlpack(place(a)) for a in (packed, got)]
    run(extended, 1, 32, args, outputs=[got], check=check)


@cuda.jit
def shuffled(words, got):
    i, _, _ = arch.thread_idx()
    got[i, None].store(arch.cvt_i4_bf16_intrinsic(words[i, None].load(), 8, True))


def test_shuffled_nibbles_come_out_in_order(run, rng):
    values = rng.integers(-8, 8, (32, 8))
    order = np.array([0, 2, 1, 3, 4, 6, 5, 7])
    digits = (values[:, order] & 15).astype(np.uint32)
    words = (digits << np.arange(0, 32, 4, dtype=np.uint32)).sum(1, dtype=np.uint32)[:, None]
    got = np.empty((32, 8), ml_dtypes.bfloat16)

    def check():
        np.testing.assert_array_equal(got.astype(np.int64), values)

    args = [lambda place, a=a: from_dlpack(place(a)) for a in (words, got)]
    run(shuffled, 1, 32, args, outputs=[got], check=check, arch="sm_80")


@cuda.jit
def fused(a, b, c, got):
    i, _, _ = arch.thread_idx()
    got[i] = arch.fma_f16(a[i], b[i], c[i])


def test_a_half_is_fused_and_rounded_once(run, rng):
    a, b, c = (rng.standard_normal((3, 32)) * 4).astype(np.float16)
    got = np.empty(32, np.float16)
    want = (a.astype(np.float64) * b + c).astype(np.float16)

    def check():
        np.testing.assert_array_equal(got, want)

    args = [lambda place, x=x: from_dlpack(place(x)) for x in (a, b, c, got)]
    run(fused, 1, 32, args, outputs=[got], check=check, arch="sm_80")


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: arch.add_cc(1, 2, 16), "add_cc: width 16 must be 32 or 64"),
        (lambda: arch.fmax(1.0, 2.0, nan=1), "must be static: True or False"),
        (lambda: arch.cvt_i8x4_to_f32x4((1, 2)), "has 16 bits, but the elements to convert have 32"),
        (lambda: arch.shf(1, 2, 3, "up"), "kind 'up' is none of 'l', 'r'"),
        (lambda: arch.alloc_smem(F32, 0), "size_in_elems 0 must be a static number, at least 1"),
        (lambda: arch.get_max_tmem_alloc_cols("sm_90"), "'sm_90' has no tensor memory"),
    ],
)
def test_what_cannot_be_is_refused(call, why):
    traced = cute.seam.traced(call)

    def kernel():
        traced()

    with pytest.raises(CuteError, match=why):
        cute.simulate(kernel)[1, 1]()


def test_tensor_memory_has_512_columns_of_which_32_are_the_least():
    assert (arch.get_max_tmem_alloc_cols("sm_100"), arch.get_min_tmem_alloc_cols("sm_103a")) == (512, 32)
