# SPDX-License-Identifier: Apache-2.0
"""The root mean square of each row of A (M, N), row-major, at the speed of memory; in float32, for any shape.

A warp takes a row. Each lane holds 8 vectors of 16 bytes at a time; the lanes' sums meet by shuffles. What remains of
a row that these do not divide is summed element by element.

    python examples/reduce.py                              1 GiB on a GPU, or a small simulated problem
    python examples/reduce.py --m 1000 --n 1001 --dtype bf16
"""

import math

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack

import bandwidth

WARPS = 8
THREADS = 32 * WARPS
LOADS = 8  # vectors in flight in each lane
VECTOR = 16  # bytes


@cuda.jit
def root_mean_square(a, out, chunk):
    tidx, _, _ = cute.arch.thread_idx()
    bx, _, _ = cute.arch.block_idx()
    lane, m = tidx % 32, bx * WARPS + tidx // 32
    if m < a.shape[0]:
        row = a[m, None]
        length = cute.size(chunk)
        sums = cute.full(chunk.shape[0], 0.0, cute.Float32)
        for k in range(a.shape[1] // length):
            piece = cute.composition(cute.local_tile(row, (length,), (k,)), chunk)  # (vector, loads), lane
            mine = piece[None, lane]
            regs = cute.make_fragment_like(mine)
            cute.autovec_copy(mine, regs)
            values = regs.load().to(cute.Float32)
            sums = sums + values * values
        total = sums.reduce(cute.ReductionOp.ADD, 0.0)
        for n in range(a.shape[1] // length * length + lane, a.shape[1], 32):
            value = cute.Float32(row[n])
            total += value * value
        for step in cute.range_constexpr(5):
            total += cute.arch.shuffle_sync_bfly(total, 16 >> step)
        if lane == 0:
            out[m] = cute.math.sqrt(total / cute.Float32(a.shape[1]))


def arguments(a, out):
    """Return the kernel's arguments for A (M, N) and the M results in float32, and its grid."""
    a, out = from_dlpack(a, assumed_align=16), from_dlpack(out)
    values = VECTOR // a.element_type.bytes
    chunk = cute.make_layout(((values, LOADS), 32), stride=((1, 32 * values), values))
    return (a, out, chunk), (math.ceil(a.shape[0] / WARPS),)


def run_on_gpu(args, dtype):
    import torch

    m, n = args.m or bandwidth.GIB // (8192 * dtype.bytes), args.n or 8192
    a = bandwidth.device_random(m, n, dtype, 0)
    out = torch.full((m,), float("nan"), device="cuda")
    kernel_args, grid = arguments(a, out)
    launch = cute.launch(root_mean_square, grid=grid, block=THREADS).prepare(*kernel_args)
    launch()
    torch.cuda.synchronize()
    want = torch.cat([part.double().square().mean(1).sqrt() for part in a.split(4096)])
    error = bandwidth.greatest_error(out.double(), want, 1e-5)
    bandwidth.report(args, "reduce", (m, n), error, launch, m * n * dtype.bytes, 0.90)


def simulate(args, dtype):
    m, n = args.m or 10, args.n or 2600
    a = bandwidth.host_random(m, n, dtype, 0)
    out = np.full(m, np.nan, np.float32)
    kernel_args, grid = arguments(a, out)
    bandwidth.simulate(root_mean_square, grid, THREADS, kernel_args, f"the RMS of {m} rows of {n} {args.dtype}")
    want = np.sqrt((a.astype(np.float64) ** 2).mean(1))
    print(f"check passed, greatest error {bandwidth.greatest_error(out.astype(np.float64), want, 1e-5):.2e}")


def main():
    args = bandwidth.parser(__doc__).parse_args()
    (run_on_gpu if bandwidth.on_gpu(args) else simulate)(args, bandwidth.DTYPES[args.dtype])


if __name__ == "__main__":
    main()
