# SPDX-License-Identifier: Apache-2.0
"""From Triton: the script of docs/tutorials."""

import math

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch

WIDTH = 128  # the longest row, in a warp's registers: 4 values a lane
EACH = WIDTH // 32


@cuda.jit
def softmax(x, y):
    lane, _, _ = arch.thread_idx()
    row, _, _ = arch.block_idx()
    n = x.shape[1]
    values = cute.make_rmem_tensor(EACH, cute.Float32)
    values.fill(-math.inf)  # `other=`
    for j in cute.range_constexpr(EACH):
        if lane + 32 * j < n:  # `mask=`
            values[j] = x[row, lane + 32 * j]
    v = values.load()
    top = arch.warp_reduction_max(v.reduce(cute.ReductionOp.MAX, -math.inf))
    e = cute.math.exp(v - top)
    total = arch.warp_reduction_sum(e.reduce(cute.ReductionOp.ADD, 0.0))
    values.store(e / total)
    for j in cute.range_constexpr(EACH):
        if lane + 32 * j < n:
            y[row, lane + 32 * j] = values[j]


x = np.random.default_rng(0).standard_normal((3, 100), dtype=np.float32)
y = np.zeros_like(x)
cute.simulate(softmax)[3, 32](x, y)

e = np.exp(x.astype(float) - x.max(1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
print("right")
