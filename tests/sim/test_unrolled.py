# SPDX-License-Identifier: Apache-2.0
"""Shared memory that an unrolled loop asks for: a piece for each copy of its body, as compiled; one in other loops."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda, int32

import numba_cute as cute
from numba_cute import arch

THREADS = 32


@cuda.jit
def pointers(out):
    t = cuda.threadIdx.x
    for i in cute.range_constexpr(3):
        s = cute.make_tensor(arch.alloc_smem(cute.Int32, THREADS), cute.make_layout(THREADS))
        s[t] = out[t] + i
        cuda.syncthreads()
        out[t] += s[THREADS - 1 - t]  # the next copy writes elsewhere: no barrier is needed


@cuda.jit
def arrays(out):
    t = cuda.threadIdx.x
    for i in cute.range_constexpr(3):
        s = cuda.shared.array(THREADS, int32)
        s[t] = out[t] + i
        cuda.syncthreads()
        out[t] += s[THREADS - 1 - t]


@cuda.jit
def kept(out):
    t = cuda.threadIdx.x
    found = ()
    for _ in cute.range_constexpr(3):
        found = found + (arch.alloc_smem(cute.Int32, THREADS),)
    for i in cute.range_constexpr(3):
        cute.make_tensor(found[i], cute.make_layout(THREADS))[t] = out[t] + i
    cuda.syncthreads()
    for i in cute.range_constexpr(3):
        out[t] += cute.make_tensor(found[i], cute.make_layout(THREADS))[THREADS - 1 - t]


@cuda.jit
def by_type(out):
    t = cuda.threadIdx.x
    for dtype in (cute.Int32, cute.Int64):
        s = cute.make_tensor(arch.alloc_smem(dtype, THREADS, 8), cute.make_layout(THREADS))
        s[t] = out[t]
        cuda.syncthreads()
        out[t] += s[THREADS - 1 - t]


@cuda.jit
def nested(out):
    t = cuda.threadIdx.x
    for i in cute.range_constexpr(1, 3):
        for _ in cute.range_constexpr(2):
            for k in range(2):
                s = cute.make_tensor(arch.alloc_smem(cute.Int32, THREADS * i), cute.make_layout(THREADS))
                s[t] = out[t] + k
                cuda.syncthreads()
                out[t] += s[THREADS - 1 - t]
                cuda.syncthreads()


def summed(x, added):
    for a in added:
        x = x + x[::-1] + a
    return x


X = np.arange(THREADS, dtype=np.int32)
WANT = {
    pointers: (summed(X, (0, 1, 2)), 3 * 4), arrays: (summed(X, (0, 1, 2)), 3 * 4),
    kept: (4 * X + 3 * (31 - 2 * X) + 3, 3 * 4), by_type: (summed(X, (0, 0)), 4 + 8),
    nested: (summed(X, (0, 1) * 4), 2 * (4 + 8)),
}  # fmt: skip


@pytest.mark.parametrize("kernel", WANT, ids=lambda k: k.py_func.__name__)
def test_each_copy_has_its_own(kernel):
    out = X.copy()
    cute.simulate(kernel)[1, THREADS](out)
    np.testing.assert_array_equal(out, WANT[kernel][0])


@pytest.mark.parametrize(
    "kernel", [nested, *(pytest.param(k, marks=pytest.mark.slow) for k in WANT if k is not nested)]
)
def test_a_compiled_kernel_has_as_much(kernel):
    assert cute.compile(kernel, (X,)).resources.shared == THREADS * WANT[kernel][1]
