# SPDX-License-Identifier: Apache-2.0
"""C = A + B at the speed of memory, for any shape (M, N), row-major.

Each thread holds a block of 4 vectors of 16 bytes of A and of B, so that 8 loads are in flight. Tiles that stick out of
the matrix are added element by element, where a predicate says that the element is there.

    python examples/elementwise.py                         1 GiB each of A, B, C on a GPU, or a small simulated problem
    python examples/elementwise.py --m 1000 --n 1001 --dtype bf16
"""

import math

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import CopyUniversalOp
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced

import bandwidth

THREADS = 256
ROWS = 4  # vectors of 16 bytes of each thread, below each other


@traced
def within(coords, shape):
    """Say which coordinates lie within a shape, as a tensor of Booleans in registers."""
    inside = cute.make_rmem_tensor(coords.shape, cute.Boolean)
    for i in range(cute.size(inside)):
        inside[i] = cute.elem_less(coords[i], shape)
    return inside


@cuda.jit
def add(a, b, c, copier):
    tidx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    thread, tiler = copier.get_slice(tidx), copier.tiler_mn
    mine_a = thread.partition_S(cute.local_tile(a, tiler, (by, bx)))
    mine_b = thread.partition_S(cute.local_tile(b, tiler, (by, bx)))
    mine_c = thread.partition_D(cute.local_tile(c, tiler, (by, bx)))
    regs_a, regs_b = cute.make_fragment_like(mine_a), cute.make_fragment_like(mine_b)
    regs_c = cute.make_fragment_like(mine_c)
    rows, columns = cute.size(tiler[0]), cute.size(tiler[1])
    if (by + 1) * rows <= c.shape[0] and (bx + 1) * columns <= c.shape[1]:
        cute.autovec_copy(mine_a, regs_a)
        cute.autovec_copy(mine_b, regs_b)
        regs_c.store(regs_a.load() + regs_b.load())
        cute.autovec_copy(regs_c, mine_c)
    else:
        where = thread.partition_S(cute.local_tile(cute.make_identity_tensor(c.shape), tiler, (by, bx)))
        inside = within(where, c.shape)
        regs_a.fill(0)
        regs_b.fill(0)
        cute.basic_copy_if(inside, mine_a, regs_a)
        cute.basic_copy_if(inside, mine_b, regs_b)
        regs_c.store(regs_a.load() + regs_b.load())
        cute.basic_copy_if(inside, regs_c, mine_c)


def arguments(a, b, c):
    """Return the kernel's arguments for three matrices of one shape and type, and its grid."""
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    values = 128 // tensors[0].element_type.width
    lanes = cute.make_layout((THREADS // 32, 32), stride=(32, 1))
    block = cute.make_layout((ROWS, values), stride=(values, 1))
    atom = cute.make_copy_atom(CopyUniversalOp(), tensors[0].element_type, num_bits_per_copy=128)
    tiler = (THREADS // 32 * ROWS, 32 * values)
    m, n = tensors[2].shape
    grid = (math.ceil(n / tiler[1]), math.ceil(m / tiler[0]))
    return (*tensors, cute.make_tiled_copy_tv(atom, lanes, block)), grid


def run_on_gpu(args, dtype):
    import torch

    m, n = args.m or bandwidth.GIB // (16384 * dtype.bytes), args.n or 16384
    a, b = bandwidth.device_random(m, n, dtype, 0), bandwidth.device_random(m, n, dtype, 1)
    c = torch.full_like(a, float("nan"))
    kernel_args, grid = arguments(a, b, c)
    launch = cute.launch(add, grid=grid, block=THREADS).prepare(*kernel_args)
    launch()
    torch.cuda.synchronize()
    if not torch.equal(c, a + b):
        raise SystemExit("WRONG: some sums differ from torch's")
    bandwidth.report(args, "elementwise", (m, n), 0.0, launch, 3 * m * n * dtype.bytes, 0.95)


def simulate(args, dtype):
    m, n = args.m or 50, args.n or 300
    a, b = bandwidth.host_random(m, n, dtype, 0), bandwidth.host_random(m, n, dtype, 1)
    c = np.full_like(a, np.nan)
    kernel_args, grid = arguments(a, b, c)
    bandwidth.simulate(add, grid, THREADS, kernel_args, f"adding {m} x {n} {args.dtype}")
    if not np.array_equal(c, (a.astype(np.float32) + b.astype(np.float32)).astype(c.dtype)):
        raise SystemExit("WRONG: some sums differ from NumPy's")
    print("check passed: all sums are NumPy's")


def main():
    args = bandwidth.parser(__doc__).parse_args()
    (run_on_gpu if bandwidth.on_gpu(args) else simulate)(args, bandwidth.DTYPES[args.dtype])


if __name__ == "__main__":
    main()
