# SPDX-License-Identifier: Apache-2.0
"""Random operands: all bit patterns, with those that matter more often than chance would have them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from numba_cute.isa.form.kinds import Kind, Operand

HALVES = np.array(
    [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF, 0x3F80, 0x7F80,
     0xFF80, 0x7F7F, 0x0080, 0x007F, 0x7FC0], np.uint16)  # fmt: skip
"""Zeros, subnormals, ones, extremes, infinities and NaNs of f16 and bf16."""
SINGLES = np.array(
    [0, 1 << 31, 1, 0x7FFFFF, 0x800000, 0x80000001, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000,
     0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x3F801000, 0x3F800FFF, 0x3F803000, 0x477FF000, 0x33000000, 0x43E00000,
     0x43E80000, 0x47600000, 0x47680000], np.uint32)  # fmt: skip
"""The same of f32, and numbers halfway between tf32, f16 and 8-bit ones."""
INTEGERS = np.array([0, 1, 2, 31, 32, 33, 63, 255, 256, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0x7FFFFF,
                     0x800000, 0xFFFFFF], np.uint32)  # fmt: skip


def any_words(rng: np.random.Generator, n: int) -> np.ndarray:
    """A third each of random bits, small integers of both signs and extremes, and pairs of 16-bit floats."""
    bits = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    small = np.where(rng.random(n) < 0.5, rng.choice(INTEGERS, n), rng.integers(-40, 40, n).astype(np.uint32))
    pairs = rng.choice(HALVES, (n, 2))
    near = rng.integers(0x3400, 0x4400, (n, 2)).astype(np.uint16)  # moderate numbers of both types
    pairs = np.where(rng.random((n, 2)) < 0.5, pairs, near ^ (rng.integers(0, 2, (n, 2)) << 15).astype(np.uint16))
    which = rng.integers(0, 3, n)
    return np.select([which == 0, which == 1], [bits, small], np.ascontiguousarray(pairs).view(np.uint32)[:, 0])


def any_floats(rng: np.random.Generator, n: int) -> np.ndarray:
    """The bits of random floats: any, moderate ones, and special ones."""
    which = rng.integers(0, 3, n)
    moderate = (rng.standard_normal(n) * np.exp2(rng.integers(-12, 12, n))).astype(np.float32).view(np.uint32)
    anything = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    return np.select([which == 0, which == 1], [anything, moderate], rng.choice(SINGLES, n))


def any_doubles(rng: np.random.Generator, n: int) -> np.ndarray:
    return (rng.standard_normal(n) * np.exp2(rng.integers(-40, 40, n))).view(np.uint32).reshape(n, 2)


def words(rng: np.random.Generator, kind: Kind, n: int) -> np.ndarray:
    """(n, words) for n lanes."""
    if kind.name == "f32":
        return any_floats(rng, n)[:, None]
    if kind.name == "f64":
        return any_doubles(rng, n)
    if kind.name == "pred":
        by_warp = np.repeat(rng.choice([0.0, 0.05, 0.5, 0.95, 1.0], -(-n // 32)), 32)[:n]
        return (rng.random(n) < by_warp).astype(np.uint32)[:, None]
    if kind.name == "u64":
        return np.stack([any_words(rng, n), any_words(rng, n)], 1)
    if kind.name == "u16":
        mixed = np.where(rng.random(n) < 0.3, rng.choice(HALVES, n), rng.integers(0, 1 << 16, n).astype(np.uint16))
        return mixed.astype(np.uint32)[:, None]
    return any_words(rng, n)[:, None]


def _bit(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 2, n).astype(np.uint32)


def _clamp(rng: np.random.Generator, n: int) -> np.ndarray:
    """shfl's: the last lane in bits 0 to 4, the segment mask in bits 8 to 12."""
    segment = rng.choice([0, 0, 16, 24, 28, 30], n)
    return (rng.choice([0, 31, 31, 15, 7], n) | segment << 8).astype(np.uint32)


def _alike(rng: np.random.Generator, n: int) -> np.ndarray:
    """Few different values in each warp; in some, one."""
    few = np.repeat(rng.choice([1, 2, 5], -(-n // 32)), 32)[:n]
    return (rng.integers(0, 1 << 30, n) % few + 7).astype(np.uint32)


def _radians(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(-np.pi, np.pi, n).astype(np.float32).view(np.uint32)


def _exponent(rng: np.random.Generator, n: int) -> np.ndarray:
    """Pairs of f16 whose powers of two are in range."""
    pair = rng.uniform(-13, 13, (n, 2)).astype(np.float16)
    return np.ascontiguousarray(pair).view(np.uint32)[:, 0]


def _exponent_bf16(rng: np.random.Generator, n: int) -> np.ndarray:
    pair = rng.uniform(-100, 100, (n, 2)).astype(ml_dtypes.bfloat16)
    return np.ascontiguousarray(pair).view(np.uint32)[:, 0]


def _everyone(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.full(n, 0xFFFFFFFF, np.uint32)


def _parts(rng: np.random.Generator, n: int) -> np.ndarray:
    """Masks of warps whose lanes fall into two parts, or are together: each lane's own part."""
    out = []
    for _ in range(-(-n // 32)):
        part = int(rng.choice([rng.integers(1, 1 << 32), 0x0000FFFF, 0x55555555, 0xFFFFFFFF]))
        out += [part if part >> lane & 1 else part ^ 0xFFFFFFFF for lane in range(32)]
    return np.array(out[:n], np.uint32)


def _place(rng: np.random.Generator, n: int) -> np.ndarray:
    """A bit's number or a count of bits: 0 to 255, as PTX says; of more, an H200 takes all 32 bits for 64-bit words."""
    return np.where(rng.random(n) < 0.7, rng.integers(0, 66, n), rng.integers(0, 256, n)).astype(np.uint32)


OF_OPERANDS: dict[tuple[str, str], Any] = {
    ("*", "carry_in"): _bit, ("*", "borrow_in"): _bit, ("shfl_sync", "clamp"): _clamp,
    ("match_any", "value"): _alike, ("match_all", "value"): _alike,
    ("shfl_sync", "membermask"): _everyone,  # beyond the mask: undefined
    ("*", "membermask"): _parts, ("sin_approx", "x"): _radians,
    **{(row, what): _place for row in ("bfe", "bfi") for what in ("start", "count")},
    ("cos_approx", "x"): _radians, ("ex2_f16x2", "x"): _exponent, ("ex2_bf16x2", "x"): _exponent_bf16,
}  # fmt: skip
"""Operands that have a domain of their own."""


def operand(rng: np.random.Generator, row: str, o: Operand, case: dict[str, Any], n: int) -> np.ndarray:
    """The words of one operand for n lanes, side by side."""
    special = OF_OPERANDS.get((row, o.name)) or OF_OPERANDS.get(("*", o.name))
    count = o.size(case)
    if special is not None:
        return np.stack([special(rng, n) for _ in range(count * (2 if o.kind.name in ("u64", "f64") else 1))], 1)
    return np.concatenate([words(rng, o.kind, n) for _ in range(count)], 1)
