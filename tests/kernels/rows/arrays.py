# SPDX-License-Identifier: Apache-2.0
"""What tests of row kernels share: random rows, spreads to simulate, and what is near enough."""

import ml_dtypes
import numpy as np

from numba_cute.kernels.rows.plan import Spreading
from numba_cute.kernels.rows.spread import Spread

BF16, F16, F32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)
UNIT = {BF16: 2.0**-8, F16: 2.0**-11, F32: 2.0**-22}
"""What rounding to the type, and some in Float32 before, may be off by, of the greatest value."""

SPREADS = {
    "a part of a warp": (Spread(60, 4, 8, 2, 4), 5, 1),
    "a row each": (Spread(60, 4, 8, 2, 4, alone=True), 5, 2),
    "warps": (Spread(512, 8, 32, 2, 4), 6, 2),
    "warps with a ring": (Spread(256, 8, 32, 1, 4, 1, 2), 11, 1),
    "several warps, ragged, with a ring": (Spread(1000, 8, 64, 2, 2, 1, 2), 7, 1),
    "a cluster": (Spread(1024, 8, 32, 2, 1, 2), 5, 1),
    "a ragged cluster with a ring": (Spread(1000, 8, 64, 1, 1, 2, 2), 11, 1),
    "a cluster of one warp each": (Spread(512, 8, 32, 1, 1, 2, 1), 19, 1),
    "a cluster that reads again": (Spread(1000, 8, 64, 1, 1, 2, 1, True), 5, 5),
    "a cluster of even shares": (Spread(1000, 8, 64, 2, 1, 2, 0, False, 63), 5, 5),
    "teams that read again": (Spread(1000, 8, 64, 2, 2, 1, 1, True), 5, 3),
    "warps that read again": (Spread(248, 8, 32, 1, 2, 1, 1, True), 5, 3),
    "far rows": (Spread(1000, 8, 64, 2, 1, alone=True, far=True), 5, 5),
    "far rows, one element at a time": (Spread(333, 1, 64, 6, 1, alone=True, far=True), 5, 5),
    "one element at a time": (Spread(37, 1, 16, 3, 8), 9, 1),
}
"""By what they show: a spread, rows, and groups of blocks."""


def work(function, spread, groups, *static):
    """The work of a kernel with so many groups of blocks, or with one for each row where a team has one alone."""
    return Spreading(spread, groups).work(function, (*static, spread))


def near(got, want, dtype, terms=1.0):
    """Check each element to be `want` in float64 but for roundings to `dtype`; terms: of what size what was added."""
    got, want = np.asarray(got).astype(np.float64), np.asarray(want, np.float64)
    scale = max(1.0, float(np.abs(want).max(initial=0))) * terms
    assert not np.isnan(got).any() and np.abs(got - want).max(initial=0) <= UNIT[np.dtype(dtype)] * scale, (
        f"off by {np.abs(got - want).max()} of {scale}"
    )
