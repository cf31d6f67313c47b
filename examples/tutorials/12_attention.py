# SPDX-License-Identifier: Apache-2.0
"""Attention: the script of docs/tutorials."""

import math

import ml_dtypes
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack

QUERIES, BLOCK, D = 16, 16, 16
op = warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16))
tiled_mma = cute.make_tiled_mma(op)


@cuda.jit
def in_row(x, op):
    """Reduce over the four lanes that hold a row together."""
    x = op(x, arch.shuffle_sync_bfly(x, 2))
    return op(x, arch.shuffle_sync_bfly(x, 1))


@cuda.jit
def add(a, b):
    return a + b


@cuda.jit
def attention(q, k, v, out, tiled_mma, scale):
    """q (QUERIES, D), k (keys, D), v (D, keys), out (QUERIES, D)."""
    lane, _, _ = arch.thread_idx()
    mma = tiled_mma.get_slice(lane)
    tQ, tO = mma.partition_A(q), mma.partition_C(out)
    fQ = tiled_mma.make_fragment_A(tQ)
    cute.autovec_copy(tQ, fQ)
    o = tiled_mma.make_fragment_C(tO.shape)
    o.fill(0)
    # An accumulator has two rows of this thread, and of every eight columns two: (row, column).
    by_row = cute.make_layout((2, (2, D // 8)), stride=(2, (1, 4)))
    rows_of_o = cute.make_tensor(o.iterator, by_row)
    highest, total = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
    highest.fill(-math.inf)
    total.fill(0)

    for block in range(k.shape[0] // BLOCK):
        tK = mma.partition_B(cute.local_tile(k, (BLOCK, D), (block, 0)))
        tV = mma.partition_B(cute.local_tile(v, (D, BLOCK), (0, block)))
        fK, fV = tiled_mma.make_fragment_B(tK), tiled_mma.make_fragment_B(tV)
        cute.autovec_copy(tK, fK)
        cute.autovec_copy(tV, fV)
        scores = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((QUERIES, BLOCK)))
        scores.fill(0)
        cute.gemm(tiled_mma, scores, fQ, fK, scores)

        s = cute.make_tensor(scores.iterator, cute.make_layout((2, (2, BLOCK // 8)), stride=(2, (1, 4))))
        for r in cute.range_constexpr(2):
            top = in_row((s[r, None].load() * scale).reduce(cute.ReductionOp.MAX, highest[r]), cute.max)
            factor = cute.math.exp(highest[r] - top)
            p = cute.math.exp(s[r, None].load() * scale - top)
            s[r, None].store(p)
            total[r] = total[r] * factor + p.reduce(cute.ReductionOp.ADD, 0.0)
            rows_of_o[r, None].store(rows_of_o[r, None].load() * factor)
            highest[r] = top

        # P is an accumulator, and the second product wants it as its operand A. The registers are the same.
        p16 = cute.make_rmem_tensor(fQ.shape, cute.BFloat16)
        p16.store(scores.load().to(cute.BFloat16).reshape(fQ.shape))
        cute.gemm(tiled_mma, o, p16, fV, o)

    for r in cute.range_constexpr(2):
        rows_of_o[r, None].store(rows_of_o[r, None].load() / in_row(total[r], add))
    cute.autovec_copy(o, tO)


KEYS = 48
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((n, D)).astype(ml_dtypes.bfloat16) for n in (QUERIES, KEYS, KEYS))
out = np.zeros((QUERIES, D), np.float32)
scale = np.float32(1 / math.sqrt(D))
arguments = [from_dlpack(x) for x in (q, k, np.ascontiguousarray(v.T), out)]
cute.simulate(attention, arch="sm_80")[1, 32](*arguments, tiled_mma, scale)

q, k, v = (x.astype(float) for x in (q, k, v))
weights = np.exp(q @ k.T * scale)
want = weights / weights.sum(1, keepdims=True) @ v
error = np.abs(out - want).max()
assert error < 0.01, error  # P was rounded to bfloat16
print("right")
