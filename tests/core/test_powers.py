# SPDX-License-Identifier: Apache-2.0
"""Powers of two (ue8m0): the instructions of sm_100 that convert them, and the conversions that are made of these."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import isa, seam
from numba_cute.runtime import from_dlpack

E8M0 = ml_dtypes.float8_e8m0fnu
ROUNDS = [("rp", True), ("rp", False), ("rz", True), ("rz", False)]


def tensor(array):
    return lambda place: from_dlpack(place(array))


def floats(rng):
    """Of every exponent, powers of two and what lies beside them, both signs, zero, infinity and NaN."""
    powers = np.exp2(np.arange(-149, 128, dtype=np.float64)).astype(np.float32)
    near = np.concatenate([powers, np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(np.inf))])
    odd = np.array([0, np.inf, np.nan, np.finfo(np.float32).max], np.float32)
    x = np.concatenate([near, -near, odd, -odd, rng.standard_normal(100).astype(np.float32)])
    return np.resize(x, (len(x) + 63) // 64 * 64)


def powers_of(x, round, saturates):
    """By definition, in float64, whose logarithms of powers of two are exact here."""
    out = np.zeros(x.shape, np.int64)
    for i, v in enumerate(np.abs(x.astype(np.float64))):
        if np.isnan(v):
            out[i] = 255
        elif v == 0:
            out[i] = 0
        elif np.isinf(v):
            out[i] = 254 if saturates else 255
        else:
            fraction, exponent = np.frexp(v)  # v = fraction * 2 ** exponent, 0.5 <= fraction < 1
            power = exponent if round == "rp" and fraction > 0.5 else exponent - 1
            out[i] = np.clip(power + 127, 0, 254 if saturates else 255)
    return out.astype(np.uint8)


@pytest.mark.parametrize(("round", "saturates"), ROUNDS)
def test_floats_become_powers_by_each_rounding(run, rng, round, saturates):
    x = floats(rng)
    out = np.zeros((len(x) // 2, 2), np.uint16)

    @seam.traced
    def both(a, b, word):
        how = {"round": round, "saturates": saturates}
        return isa.cvt_ue8m0_f32(a, b, **how), isa.cvt_ue8m0_bf16(word, **how)

    @cuda.jit
    def kernel(x, words, out):
        i = cuda.grid(1)
        one, two = both(x[2 * i], x[2 * i + 1], words[i])
        out[i, 0] = one
        out[i, 1] = two

    brain = (x.view(np.uint32) >> 16 << 16).view(np.float32)  # cut off to bf16
    words = brain.view(np.uint32)[0::2] >> 16 | brain.view(np.uint32)[1::2]

    def check():
        np.testing.assert_array_equal(out[:, 0].copy().view(np.uint8), powers_of(x, round, saturates))
        np.testing.assert_array_equal(out[:, 1].copy().view(np.uint8), powers_of(brain, round, saturates))

    run(kernel, len(x) // 64, 32, [x, words, out], outputs=[out], check=check, arch="sm_100a")


@cuda.jit
def there_and_back(codes, wide, back):
    """Eight elements a thread."""
    i = cuda.threadIdx.x
    x = codes[i, None].load().to(cute.Float32)
    wide[i, None].store(x)
    back[i, None].store(x.to(cute.Float8E8M0FNU))


def test_all_powers_go_to_floats_and_back(run):
    codes = np.arange(256, dtype=np.uint8).reshape(32, 8).view(E8M0)
    wide, back = np.zeros((32, 8), np.float32), np.zeros((32, 8), np.uint8).view(E8M0)

    def check():
        np.testing.assert_array_equal(wide, codes.astype(np.float32))
        np.testing.assert_array_equal(back.view(np.uint8), codes.view(np.uint8))

    args = [tensor(codes), tensor(wide), tensor(back)]
    run(there_and_back, 1, 32, args, outputs=[wide, back], check=check, arch="sm_100a")


def test_blackwell_converts_them_by_its_instructions():
    args = [from_dlpack(np.zeros((32, 8), t)) for t in (E8M0, np.float32, E8M0)]
    ptx = cute.compile(there_and_back, args, arch="sm_100a").ptx
    assert ptx.count("cvt.rn.bf16x2.ue8m0x2") == 4 and ptx.count("cvt.rp.satfinite.ue8m0x2.f32") == 4
    assert "ue8m0x2" not in cute.compile(there_and_back, args, arch="sm_90a").ptx
