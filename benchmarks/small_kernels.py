# SPDX-License-Identifier: Apache-2.0
"""Ten small kernels, and how many calls of Python compiling them takes: a number that a loaded machine does not change.

Each is compiled once, fresh, in a process that has compiled another; `compile_time --calls` runs it.
"""

import cProfile
import pstats

import numpy as np
from numba import cuda

import numba_cute as cute

ARRAY, MATRIX = np.zeros(1024, np.float32), np.zeros((64, 64), np.float32)


def _helper(a, b):
    return a * b + 1


@cuda.jit
def ones(out):
    out[cute.arch.thread_idx()[0]] = 1.0


@cuda.jit
def helped(x, out):
    i = cuda.grid(1)
    if i < cute.size(cute.make_layout((4, 8))):
        out[i] = _helper(x[i], 2.0)


@cuda.jit
def transposed(x, out):
    t = cuda.threadIdx.x
    layout = cute.make_layout((8, 8), stride=(8, 1))
    for j in cute.range_constexpr(8):
        out[layout((t, j))] = x[layout((j, t))]


@cuda.jit
def shared(x, out):
    t, _, _ = cute.arch.thread_idx()
    tile = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 128), cute.make_layout((32, 4)))
    for j in range(4):
        tile[t, j] = x[t * 4 + j]
    cute.arch.sync_threads()
    for j in range(4):
        out[t * 4 + j] = tile[31 - t, j]


@cuda.jit
def registers(a, out):
    t, r = cuda.threadIdx.x, cute.make_rmem_tensor((4,), cute.Float32)
    r.fill(0.0)
    for j in cute.range_constexpr(4):
        r[j] = a[t, j] * 2
    out[t, 0] = r[0] + r[1] + r[2] + r[3]


@cuda.jit
def tiled(a, b, out):
    src, dst = cute.local_tile(a, (16, 16), (1, 2)), cute.local_tile(b, (16, 16), (1, 2))
    i = cuda.threadIdx.x
    for j in range(16):
        dst[i, j] = src[i, j]
    out[i] = 0


@cuda.jit
def looped(a, out):
    i, n = cuda.grid(1), 0
    while n < 10:
        if a[i] > n:
            n += 2
        else:
            n += 1
    out[i] = cute.arch.shuffle_sync(n, 0)


@cuda.jit
def copied(a, out):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    t, r = cuda.threadIdx.x, cute.make_rmem_tensor((4,), cute.Float32)
    cute.copy(atom, cute.zipped_divide(a, (1, 4))[((0, None), (t, 0))], r)
    out[t] = r[3]


@cuda.jit
def weighted(a, out, n):
    i = cuda.grid(1)
    if i < n:
        total = cute.Float32(0)
        for j in range(n):
            total += cute.Float32(a[j]) * cute.Float32(j)
        out[i] = total


@cuda.jit
def by_warps(a, out):
    warp, lane = cute.arch.make_warp_uniform(cute.arch.warp_idx()), cute.arch.lane_idx()
    total = cute.arch.warp_reduction_sum(a[warp * 32 + lane])
    if warp == 0:
        out[lane] = total


def kernels():
    """Each kernel with its arguments."""
    tensor = cute.runtime.from_dlpack(MATRIX)
    return [
        (ones, (ARRAY,)), (helped, (ARRAY, ARRAY)), (transposed, (ARRAY, ARRAY)), (shared, (ARRAY, ARRAY)),
        (registers, (MATRIX, MATRIX)), (tiled, (tensor, tensor, ARRAY)), (looped, (ARRAY, ARRAY)),
        (copied, (tensor, ARRAY)), (weighted, (ARRAY, ARRAY, 100)), (by_warps, (ARRAY, ARRAY)),
    ]  # fmt: skip


def calls():
    """The calls of Python, its builtins too, that compiling each takes, by name."""
    found = {}
    for kernel, args in kernels():
        profile = cProfile.Profile()
        profile.enable()
        cute.compile(kernel, args, arch="sm_90a")
        profile.disable()
        found[kernel.py_func.__name__] = pstats.Stats(profile).total_calls
    return found
