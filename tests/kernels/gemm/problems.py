# SPDX-License-Identifier: Apache-2.0
"""Problems of grouped, block-scaled and mixed GEMMs, in NumPy: operands, and what they must give, in float64."""

import numpy as np

import numba_cute as cute
from numba_cute.kernels.gemm import pack

BLOCK = 128


def spread(scales, *along):
    """One scale for each element, of those that stand for BLOCK elements along these modes."""
    for mode in along:
        scales = np.repeat(scales, BLOCK, mode)
    return scales.astype(np.float64)


def grouped(rows, n, k, dtype, *, scaled=False, b_turned=False, beyond=3):
    """A, B, ends, scales (a pair, or nothing), a poisoned C, and what it must be. rows: of each group. beyond: rows
    after the last group's, of which C's keep what they hold. b_turned: B is contiguous along N."""
    rng = np.random.default_rng(0)
    total, groups = sum(rows) + beyond, len(rows)
    a = rng.standard_normal((total, k), dtype=np.float32).astype(dtype.numpy)
    b = rng.standard_normal((groups, n, k), dtype=np.float32).astype(dtype.numpy)
    if b_turned:
        b = np.ascontiguousarray(b.transpose(0, 2, 1)).transpose(0, 2, 1)
    wide_a, wide_b, scales = a.astype(np.float64), b.astype(np.float64), ()
    if scaled:
        blocks_k, blocks_n = -(-k // BLOCK), -(-n // BLOCK)
        scales = (
            rng.random((total, blocks_k), np.float32) + 0.1,
            rng.random((groups, blocks_n, blocks_k), np.float32) + 0.1,
        )
        wide_a, wide_b = wide_a * spread(scales[0], 1)[:, :k], wide_b * spread(scales[1], 1, 2)[:, :n, :k]
    ends = np.cumsum(rows).astype(np.int32)
    c = np.full((total, n), np.nan, (dtype if dtype.width == 16 else cute.BFloat16).numpy)
    want, first = np.full((total, n), np.nan), 0
    for group, end in enumerate(ends):
        want[first:end] = wide_a[first:end] @ wide_b[group].T
        first = end
    return a, b, ends, scales, c, want


def mixed(m, n, k, dtype, *, zeros=False, signed=True, group_size=BLOCK):
    """X, the packed weights, a poisoned C, and what it must be."""
    rng = np.random.default_rng(0)
    least, kind = (-8, np.int8) if signed else (0, np.uint8)
    groups = 1 if group_size == -1 else -(-k // group_size)
    x = rng.standard_normal((m, k), dtype=np.float32).astype(dtype.numpy)
    w = rng.integers(least, least + 16, (n, k)).astype(kind)
    scales = (rng.random((n, groups)) + 0.1).astype(dtype.numpy)
    zero = rng.integers(least, least + 16, (n, groups)).astype(kind) if zeros else None
    wider = lambda f: f.astype(np.float32).repeat(k if group_size == -1 else group_size, 1)[:, :k]  # noqa: E731
    less = wider(zero) if zeros else 0
    wide = ((w - less) * wider(scales)).astype(np.float32).astype(dtype.numpy)  # rounded once, as there
    c = np.full((m, n), np.nan, dtype.numpy)
    weights = pack.int4_weights(w, scales, zero, group_size=group_size)
    return x, weights, c, x.astype(np.float64) @ wide.astype(np.float64).T


def wrong(got, want, scale, kept=1e-5):
    """Where a result is off by more than its own rounding, and `kept` of the product of the operands' norms."""
    unit = 2.0**-8 if got.dtype.name == "bfloat16" else 2.0**-11
    got = got.astype(np.float64)
    off = ~(np.abs(got - want) <= unit * np.abs(want) + kept * scale)
    return np.argwhere(off & ~(np.isnan(got) & np.isnan(want)))
