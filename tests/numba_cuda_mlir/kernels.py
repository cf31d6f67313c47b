# SPDX-License-Identifier: Apache-2.0
"""Kernels as a user of numba-cuda-mlir writes them, in the words that numba-cuda has too."""

import numpy as np
from numba_cuda_mlir import cuda
from numba_cuda_mlir.cuda import float32

import numba_cute as cute

LANES = cute.make_layout(32)
TWO = 2


@cuda.jit(device=True)
def squared(x):
    return x * x


@cuda.jit
def plain(x):
    x[cuda.grid(1)] = TWO


@cuda.jit
def late(x):
    defined_below(x)


@cuda.jit
def given(layout, x):
    i = cuda.grid(1)
    x[i] = layout(i)


@cuda.jit(device=True)
def defined_below(x):
    x[cuda.threadIdx.x] = cute.size(LANES)


def names(x, n):
    """Name what kernels use most."""
    i = cuda.grid(1)
    s = cuda.shared.array(32, cuda.float32)
    mine = cuda.local.array(2, dtype=float32)
    s[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    mine[0] = s[31 - cuda.threadIdx.x]
    mine[1] = squared(mine[0])
    sums = cuda.shfl_xor_sync(0xFFFFFFFF, mine[1], 1) + cuda.popc(n) + cuda.libdevice.sqrtf(float32(TWO))
    cuda.syncwarp()
    cuda.atomic.add(x, cute.arch.thread_idx()[0], sums + cuda.warpsize + cuda.laneid + cuda.blockDim.x)


def of_names():
    """Return what `names` makes of 0, 1, … of 32, and of 3."""
    x = np.arange(32, dtype=np.float32)
    sums = (31 - x[np.arange(32) ^ 1]) ** 2 + 2 + np.sqrt(np.float32(2))
    return x + sums + 32 + np.arange(32) + 32
