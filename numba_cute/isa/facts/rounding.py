# SPDX-License-Identifier: Apache-2.0
"""Rounding as the hardware does it: once, from an exact value, and NaN to one canonical pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes

NAN16 = 0x7FFF
"""The NaN that f16 and bf16 arithmetic and conversions give (PTX ISA, "Half Precision Floating Point")."""


def exact_sum(a: Any, b: Any) -> Any:
    """a + b in double precision rounded to odd, so that rounding it again to a narrower type rounds once."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        s = a + b
        back = s - a
        lost = (a - (s - back)) + (b - back)  # Knuth's two-sum: what s lacks
        even = s.view(np.int64) & 1 == 0
        fix = np.isfinite(s) & (lost != 0) & even
        return np.where(fix, np.nextafter(s, np.where(lost > 0, np.inf, -np.inf)), s)


def fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of floats of at most 32 bits in double precision, rounded to odd: their products are exact."""
    with np.errstate(all="ignore"):
        product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    return exact_sum(product, c)


def unpacked(word: int, dtype: dtypes.DType) -> Any:
    """The two 16-bit floats of a word, low half first, in double precision."""
    return np.array([word], np.uint32).view(dtype.numpy).astype(np.float64)


def half_bits(values: Any, dtype: dtypes.DType) -> Any:
    """Doubles as the bits of 16-bit floats, rounded once to nearest even; NaN is canonical."""
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        bits = through_odd(values).astype(dtype.numpy) if dtype is dtypes.BFloat16 else values.astype(np.float16)
    return np.where(np.isnan(values), NAN16, bits.view(np.uint16)).astype(np.uint16)


def packed(values: Any, dtype: dtypes.DType) -> int:
    """Two doubles as one word, the first in its low half."""
    low, high = half_bits(values, dtype).tolist()
    return int(high << 16 | low)


def through_odd(values: Any) -> Any:
    """Doubles as floats rounded to odd: ml_dtypes narrows by way of float, and must not round there."""
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
        toward = np.where(np.abs(single.astype(np.float64)) > np.abs(values), np.float32(0), single)
        low = np.where(toward == single, single, np.nextafter(single, np.float32(0)))  # towards zero
        inexact = np.isfinite(values) & (low.astype(np.float64) != values)
        return np.where(inexact, (low.view(np.int32) | 1).view(np.float32), low).astype(np.float32)


def flushed(x: Any) -> Any:
    """Single-precision subnormals as zeros of their sign (.ftz)."""
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x).astype(np.float32)


def single(value: Any) -> float:
    """A double as a float, rounded to nearest even."""
    with np.errstate(all="ignore"):
        return float(np.float32(value))


def directed(value: Any, rnd: str) -> float:
    """A double as a float, rounded towards zero ("rz"), down ("rm") or up ("rp")."""
    exact = np.float64(value)
    with np.errstate(all="ignore"):
        near = np.float32(exact)
        toward = {"rz": np.float32(0), "rm": np.float32(-np.inf), "rp": np.float32(np.inf)}[rnd]
        beyond = np.abs(near) > np.abs(exact) if rnd == "rz" else near > exact if rnd == "rm" else near < exact
        return float(np.nextafter(near, toward) if np.isfinite(exact) and beyond else near)
