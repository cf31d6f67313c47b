# SPDX-License-Identifier: Apache-2.0
"""Puzzle 20. The online softmax.

The sum of exp(x) over a long row, relative to its greatest element, in one pass: the greatest element is not known
before the end. When it grows from `highest` to `top`, what was summed is multiplied by exp of what?
"""

import numpy as np
from numba import cuda

import numba_cute as cute


@cuda.jit
def log_of_sum(x, out):
    row = cuda.grid(1)
    highest, total = cute.Float32(-1e30), cute.Float32(0)
    for j in range(x.shape[1]):
        top = max(highest, x[row, j])
        total = total * cute.math.exp(___) + cute.math.exp(x[row, j] - top)
        highest = top
    out[row] = highest + cute.math.log(total)


x = np.random.default_rng(0).standard_normal((32, 20), dtype=np.float32) * 30
out = np.zeros(32, np.float32)
cute.simulate(log_of_sum)[1, 32](x, out)
m = x.astype(float).max(1)
np.testing.assert_allclose(out, m + np.log(np.exp(x - m[:, None]).sum(1)), rtol=1e-5)

print("right")
