# SPDX-License-Identifier: Apache-2.0
"""B = A.T at the speed of memory, through swizzled shared memory; A is (M, N), both are row-major.

A block of 256 threads takes a tile of 64 x 64 floats (128 x 128 in bf16). Each thread loads a square of vectors of 16
bytes, transposes it in registers, and leaves it in shared memory, from where vectors of 16 bytes go out along the rows
of B. The swizzle spreads both over all banks. Tiles that stick out of the matrix move element by element.

    python examples/transpose.py                           1 GiB on a GPU, or a small simulated problem
    python examples/transpose.py --m 1000 --n 1001 --dtype bf16
"""

import math

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import CopyUniversalOp
from numba_cute.runtime import from_dlpack

import bandwidth

SIDE = 16  # of the square of threads
THREADS = SIDE * SIDE


@cuda.jit
def transpose(x, y, s_layout, swizzle, square, mirrored, tiler, store):
    """x (N, M) and y (M, N), mode 0 contiguous in both: y[m, n] = x[n, m]."""
    tidx, _, _ = cute.arch.thread_idx()
    bn, bm, _ = cute.arch.block_idx()
    tile, side = cute.size(tiler[0]), cute.size(square.shape[0])
    tn, tm = tidx % SIDE, tidx // SIDE
    mine = cute.local_tile(cute.local_tile(x, tiler, (bn, bm)), square.shape, (tn, tm))
    if (bn + 1) * tile <= x.shape[0] and (bm + 1) * tile <= x.shape[1]:
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(x.element_type, s_layout, 1024, swizzle, "tile")
        as_loaded = cute.make_rmem_tensor(square, x.element_type)
        cute.autovec_copy(mine, as_loaded)
        turned = cute.make_rmem_tensor(square, x.element_type)
        turned.store(cute.make_tensor(as_loaded.iterator, mirrored).load())
        cute.autovec_copy(turned, cute.local_tile(s, square.shape, (tm, tn)))
        cute.arch.sync_threads()
        thread = store.get_slice(tidx)
        cute.copy(store, thread.partition_S(s), thread.partition_D(cute.local_tile(y, tiler, (bm, bn))))
    else:
        n0, m0 = bn * tile + tn * side, bm * tile + tm * side
        for n in range(n0, min(n0 + side, x.shape[0])):
            for m in range(m0, min(m0 + side, x.shape[1])):
                y[m, n] = x[n, m]


def arguments(a, b):
    """Return the kernel's arguments for A (M, N) and B (N, M), row-major, and its grid."""
    x, y = from_dlpack(a.T, assumed_align=16), from_dlpack(b.T, assumed_align=16)
    dtype = x.element_type
    side = 128 // dtype.width
    tile = SIDE * side
    square, mirrored = cute.make_layout((side, side)), cute.make_layout((side, side), stride=(side, 1))
    # In shared memory, modes (m, n) of (element, place) each, places being those of threads: 8 places along m make 128
    # bytes, and 8 along n lie 128 bytes apart, so that the usual swizzle spreads each 8 over all banks.
    vectors = ((side, (8, 2)), (side, (8, 2)))
    s_layout = cute.make_layout(vectors, stride=((1, (side, 64 * side)), (256 * side, (8 * side, 128 * side))))
    swizzle = cute.make_swizzle(3, 4, 3)
    atom = cute.make_copy_atom(CopyUniversalOp(), dtype, num_bits_per_copy=128)
    store = cute.make_tiled_copy_tv(atom, cute.make_layout((SIDE, SIDE)), cute.make_layout((side, 1)))
    n, m = x.shape
    grid = (math.ceil(n / tile), math.ceil(m / tile))
    tiler = (cute.make_layout(tile), cute.make_layout(tile))
    return (x, y, s_layout, swizzle, square, mirrored, tiler, store), grid


def run_on_gpu(args, dtype):
    import torch

    m, n = args.m or bandwidth.GIB // (16384 * dtype.bytes), args.n or 16384
    a = bandwidth.device_random(m, n, dtype, 0)
    b = torch.full((n, m), float("nan"), device="cuda", dtype=a.dtype)
    kernel_args, grid = arguments(a, b)
    launch = cute.launch(transpose, grid=grid, block=THREADS).prepare(*kernel_args)
    launch()
    torch.cuda.synchronize()
    if not torch.equal(b, a.T):
        raise SystemExit("WRONG: some elements are not where torch has them")
    bandwidth.report(args, "transpose", (m, n), 0.0, launch, 2 * m * n * dtype.bytes, 0.90)


def simulate(args, dtype):
    m, n = args.m or 140, args.n or 150
    a = bandwidth.host_random(m, n, dtype, 0)
    b = np.full((n, m), np.nan, a.dtype)
    kernel_args, grid = arguments(a, b)
    bandwidth.simulate(transpose, grid, THREADS, kernel_args, f"transposing {m} x {n} {args.dtype}")
    if not np.array_equal(b, a.T):
        raise SystemExit("WRONG: some elements are not where NumPy has them")
    print("check passed: all elements are where NumPy has them")


def main():
    args = bandwidth.parser(__doc__).parse_args()
    (run_on_gpu if bandwidth.on_gpu(args) else simulate)(args, bandwidth.DTYPES[args.dtype])


if __name__ == "__main__":
    main()
