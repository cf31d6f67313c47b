# SPDX-License-Identifier: Apache-2.0
"""Integers wrap around at run time, whatever an optimiser could make of sums that never do."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute

from ..engines import SIMULATOR_AND_GPU, on

ENDS = np.iinfo(np.int64)
X = np.array([1, ENDS.max, ENDS.min, ENDS.max // 4 + 2], np.int64)


@cuda.jit
def beyond(out, x):
    n = cute.Int64(x[cuda.threadIdx.x])
    out[cuda.threadIdx.x, 0] = cute.Int32(n + 1 > n)
    out[cuda.threadIdx.x, 1] = cute.Int32(n - 1 < n)
    out[cuda.threadIdx.x, 2] = cute.Int32(n * 4 == 4)


@pytest.mark.parametrize("engine", SIMULATOR_AND_GPU)
def test_sums_and_products_wrap(engine):
    out = np.zeros((len(X), 3), np.int32)
    on(engine, beyond)[1, len(X)](out, X)
    np.testing.assert_array_equal(out, np.stack([X + 1 > X, X - 1 < X, X * 4 == 4], 1))


def test_the_optimiser_is_promised_nothing():
    ptx = cute.compile(beyond, (np.zeros((4, 3), np.int32), X), arch="sm_90a").ptx
    assert sum("setp" in line and ".s64" in line for line in ptx.splitlines()) == 3
