# SPDX-License-Identifier: Apache-2.0
"""Bits, packed arithmetic, atomics and warp exchanges against NumPy, in kernels."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import CuteError

from ..nvgpu.test_warp_mma import tensor

U32, S32, F32 = cute.Uint32, cute.Int32, cute.Float32


@cuda.jit
def bits(a, b, got):
    i, _, _ = arch.thread_idx()
    x, y = a[i], b[i]
    got[i, 0] = arch.prmt(x, y, 0x7351)
    got[i, 1] = arch.prmt(x, y, 0x0F8C)
    got[i, 2] = arch.lop3(x, y, 0x0F0F0F0F, 0xD8)
    got[i, 3] = arch.shf(y, x, i, "l")
    got[i, 4] = arch.shf(y, x, 40, "clamp_right")
    got[i, 5] = arch.bfe(x, i % 32, 7)
    got[i, 6] = arch.bfi(x, y, i % 32, 5)
    got[i, 7] = arch.brev(x)
    got[i, 8] = cute.Uint32(arch.clz(x))
    got[i, 9] = cute.Uint32(arch.popc(x))
    got[i, 10] = cute.Uint32(arch.bfind(x))
    got[i, 11] = arch.mul_hi(x, y)
    got[i, 12] = cute.Uint32(arch.add_sat_int(x, y))
    got[i, 13] = cute.Uint32(arch.sub_sat_int(x, y))
    got[i, 14] = cute.Uint32(arch.bfe(x, i % 32, 7, True))
    got[i, 15] = cute.Uint32(arch.mul_hi(x, y, True))


def expected_bits(i, x, y):
    mask = 0xFFFFFFFF
    both = y << 32 | x
    byte = [both >> 8 * k & 255 for k in range(8)]
    sx, sy = (v - (1 << 32) if v >> 31 else v for v in (x, y))

    def sign(k):
        return 255 * (byte[k] >> 7)

    def clamp(v):
        return max(-(1 << 31), min(v, (1 << 31) - 1)) & mask

    field = ((1 << 5) - 1) << i % 32 & mask
    signed_field = sx >> i % 32 & 127
    top = sx >> min(i % 32 + 6, 31) & 1
    return [
        byte[1] | byte[5] << 8 | byte[3] << 16 | byte[7] << 24,
        sign(4) | sign(0) << 8 | sign(7) << 16 | byte[0] << 24,
        _lut(0xD8, x, y, 0x0F0F0F0F),
        both << i % 32 >> 32 & mask,
        y,
        x >> i % 32 & 127,
        y & ~field | x << i % 32 & field,
        int(f"{x:032b}"[::-1], 2),
        32 - x.bit_length(),
        bin(x).count("1"),
        x.bit_length() - 1 & mask,
        x * y >> 32,
        clamp(sx + sy),
        clamp(sx - sy),
        (signed_field | (-1 << 7 if top else 0)) & mask,
        sx * sy >> 32 & mask,
    ]


def _lut(lut, a, b, c):
    return sum((lut >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32))


def test_bit_functions_are_what_python_says(run, rng):
    a, b = rng.integers(0, 1 << 32, (2, 32), dtype=np.uint32)
    a[:3], b[:3] = (0, 1, 0xFFFFFFFF), (0x80000000, 0x7FFFFFFF, 0xFFFFFFFF)
    got = np.empty((32, 16), np.uint32)
    want = np.array([expected_bits(i, int(x), int(y)) for i, (x, y) in enumerate(zip(a, b))], np.uint32)

    def check():
        np.testing.assert_array_equal(got, want)

    run(bits, 1, 32, [tensor(x, U32) for x in (a, b, got)], outputs=[got], check=check, arch="sm_80")


@cuda.jit
def halves(a, b, c, got):
    i, _, _ = arch.thread_idx()
    got[i, 0] = arch.fma_packed_f16x2(a[i], b[i], c[i])
    got[i, 1] = arch.fma_packed_bf16x2(a[i], b[i], c[i])
    got[i, 2] = arch.add_packed_f16x2(a[i], b[i])
    got[i, 3] = arch.sub_packed_f16x2(a[i], b[i])
    got[i, 4] = arch.add_packed_bf16x2(a[i], b[i])
    got[i, 5] = arch.sub_packed_bf16x2(a[i], b[i])


def test_two_halves_are_computed_at_once(run, rng):
    a, b, c = rng.integers(0x3C00, 0x4400, (3, 32, 2)).astype(np.uint16)  # moderate numbers of both types
    words = [np.ascontiguousarray(x).view(np.uint32)[:, 0].copy() for x in (a, b, c)]
    got = np.empty((32, 6), np.uint32)

    def of(kind, f):
        return f(*(x.view(kind).astype(np.float64) for x in (a, b, c))).astype(kind).view(np.uint32)[:, 0]

    half, brain = np.float16, ml_dtypes.bfloat16
    want = [of(half, lambda x, y, z: x * y + z), of(brain, lambda x, y, z: x * y + z)]
    for kind in (half, brain):
        want += [of(kind, lambda x, y, z: x + y), of(kind, lambda x, y, z: x - y)]

    def check():
        np.testing.assert_array_equal(got, np.stack(want, 1))

    run(halves, 1, 32, [tensor(x, U32) for x in (*words, got)], outputs=[got], check=check)


@cuda.jit
def pairs(a, b, c, got):
    i, _, _ = arch.thread_idx()
    x, y, z = (a[i, 0], a[i, 1]), (b[i, 0], b[i, 1]), (c[i, 0], c[i, 1])
    got[i, 0], got[i, 1] = arch.add_packed_f32x2(x, y)
    got[i, 2], got[i, 3] = arch.sub_packed_f32x2(x, y)
    got[i, 4], got[i, 5] = arch.mul_packed_f32x2(x, y)
    got[i, 6], got[i, 7] = arch.fma_packed_f32x2(x, y, z)


def test_two_floats_are_computed_at_once(run, rng):
    a, b, c = rng.standard_normal((3, 32, 2)).astype(np.float32)
    got = np.empty((32, 8), np.float32)
    exact = (np.longdouble(a) * b + c).astype(np.float32)

    def check():
        np.testing.assert_array_equal(got, np.concatenate([a + b, a - b, a * b, exact], 1))

    run(pairs, 1, 32, [tensor(x, F32) for x in (a, b, c, got)], outputs=[got], check=check, arch="sm_100a")


@cuda.jit
def atomics(cells, total, old):
    i, _, _ = arch.thread_idx()
    lane = cute.Int32(i)
    old[i] = arch.atomic_add(cells.iterator, lane + 1)
    arch.atomic_max(cells.iterator + 1, lane, scope="cta")
    arch.atomic_min(cells.iterator + 2, -lane, sem="acq_rel")
    arch.atomic_or(cells.iterator + 3, 1 << lane)
    arch.atomic_xor(cells.iterator + 4, lane)
    arch.atomic_and(cells.iterator + 5, ~(1 << lane))
    arch.atomic_cas(cells.iterator + 6, 7, lane)
    arch.atomic_exch(cells.iterator + 7, 5)
    arch.atomic_add(total.iterator, cute.Float32(1))


def test_atomics_lose_no_thread(run):
    first = np.array([0, 0, 0, 0, 0, -1, 8, 0], np.int32)
    cells, total, old = first.copy(), np.zeros(1, np.float32), np.empty(32, np.int32)

    def check():
        assert cells.tolist() == [528, 31, -31, -1, 0, 0, 8, 5] and total[0] == 32
        order = np.argsort(old)  # each saw the sum of those before it
        assert np.array_equal(np.cumsum(order + 1)[:-1], old[order][1:]) and old.min() == 0

    args = [tensor(cells, S32), tensor(total, F32), tensor(old, S32)]
    run(atomics, 1, 32, args, outputs=[old], inouts=[cells, total], check=check, arch="sm_80")


@cuda.jit
def exchanges(values, got):
    i, _, _ = arch.thread_idx()
    got[i, 0] = arch.match_sync(0xFFFFFFFF, values[i])
    got[i, 1] = arch.match_sync(0xFFFFFFFF, values[i], "all")
    got[i, 2] = cute.Uint32(arch.vote_uni_sync(values[i] < 100))
    got[i, 3] = cute.Uint32(arch.vote_uni_sync(values[i] < 1))


def test_lanes_find_their_equals(run, rng):
    values = rng.integers(0, 4, 32).astype(np.int32)
    got = np.empty((32, 4), np.uint32)
    same = ((values[:, None] == values) << np.arange(32, dtype=np.int64)).sum(1)
    want = np.stack([same, 0 * same, 1 + 0 * same, 0 * same], 1)

    def check():
        np.testing.assert_array_equal(got, want)

    run(exchanges, 1, 32, [tensor(values, S32), tensor(got, U32)], outputs=[got], check=check, arch="sm_80")


@cuda.jit
def wrong_atomic(x):
    arch.atomic_add(x.iterator, 1)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_an_atomic_that_there_is_not_is_refused(dtype):
    with pytest.raises(CuteError, match="atomic_add: ptr .* must point to Int32 or Uint32"):
        cute.simulate(wrong_atomic)[1, 1](cute.runtime.from_dlpack(np.zeros(4, dtype)))
