# SPDX-License-Identifier: Apache-2.0
"""A GEMM at cuBLAS's speed: the script of docs/tutorials."""

import ml_dtypes
import numpy as np

import numba_cute as cute
from numba_cute.kernels.gemm.launches import simulate
from numba_cute.kernels.gemm.plan import Plan

M, N, K = 256, 64, 128
rng = np.random.default_rng(0)
a, b = (rng.standard_normal((rows, K)).astype(ml_dtypes.bfloat16) for rows in (M, N))
c = np.zeros((M, N), ml_dtypes.bfloat16)
simulate(a, b, c, cute.BFloat16, Plan(tile_n=64, sharers=2))

want = a.astype(float) @ b.astype(float).T
np.testing.assert_allclose(c.astype(float), want, rtol=2**-8, atol=1e-3)
print("right to bfloat16's rounding")
