# SPDX-License-Identifier: Apache-2.0
"""From the CuTe DSL: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack


class Saxpy:
    def __init__(self, threads):
        self.threads = threads

    @cute.jit
    def __call__(self, a: cute.Float32, x: cute.Tensor, y: cute.Tensor):
        grid = cute.ceil_div(cute.size(x), self.threads)
        self.kernel(a, x, y).launch(grid=[grid, 1, 1], block=[self.threads, 1, 1])

    @cute.kernel
    def kernel(self, a: cute.Float32, x: cute.Tensor, y: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        i = bidx * self.threads + tidx
        if i < cute.size(x):
            y[i] = a * x[i] + y[i]


x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
cute.simulate(Saxpy(32))(2.0, from_dlpack(x), from_dlpack(y))
np.testing.assert_array_equal(y, 2 * x + 1)


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = a * x[i] + y[i]


y = np.ones(100, np.float32)
cute.simulate(saxpy)[4, 32](np.float32(2), x, y)
np.testing.assert_array_equal(y, 2 * x + 1)


@cuda.jit
def first_above(x, limit, out):
    """The place of the first element between limit and 2 limit, or -1."""
    for i in range(x.shape[0]):
        if x[i] < 0:
            continue
        if limit < x[i] < 2 * limit:
            out[0] = i
            return
    out[0] = -1


out = np.zeros(1, np.int64)
cute.simulate(first_above)[1, 1](x, np.float32(10), out)
print(out[0])
