# SPDX-License-Identifier: Apache-2.0
"""A GEMM for Ampere and later in one plain @cuda.jit kernel: C = A @ B.T, with A (M, K) and B (N, K), both row-major.

Each of 8 warps copies its share of the next tiles to swizzled shared memory by cp.async, several stages ahead, takes
fragments out by ldmatrix while the tensor cores still work on those before, and multiplies with mma.sync. Predicates
guard ragged edges, so that any M and N will do; rows of A and B are multiples of 16 bytes.

    python examples/ampere_gemm.py                     4096^3 on a GPU, or a small problem in the simulator
    python examples/ampere_gemm.py --m 1000 --n 1048 --k 1016 --dtype tf32
    python examples/ampere_gemm.py --arch sm_80 --compile-only      PTX and cubin into out/, with no GPU
"""

import math
import sys

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import CopyUniversalOp, cpasync, warp
from numba_cute.runtime import from_dlpack

import gemm_host

TILE_M, TILE_N, ROW_BYTES = 128, 256, 128  # ROW_BYTES of K make a tile: a row is one swizzle of 128 bytes
STAGES = 3
K_BLOCKS = ROW_BYTES // 32  # an mma.sync takes 32 bytes of K
WARPS_M, WARPS_N = 2, 4
THREADS = 32 * WARPS_M * WARPS_N
GROUP_M = 16  # tiles along M that are done side by side, so that they share B in L2
SWIZZLE = cute.Swizzle(3, 4, 3)

# What is multiplied, what is summed and stored as, and the instruction.
F32, I32 = cute.Float32, cute.Int32
KINDS = {
    "bf16": (cute.BFloat16, cute.BFloat16, warp.MmaF16BF16Op(cute.BFloat16, F32, (16, 8, 16))),
    "f16": (cute.Float16, cute.Float16, warp.MmaF16BF16Op(cute.Float16, F32, (16, 8, 16))),
    "tf32": (cute.TFloat32, F32, warp.MmaTF32Op((16, 8, 8))),
    "s8": (cute.Int8, I32, warp.MmaI8Op(cute.Int8, cute.Int8, (16, 8, 32))),
}


@cuda.jit(launch_bounds=(THREADS, 1))
def gemm(dtype, acc_dtype, out_dtype, mA, mB, mC, tiled_mma, copy_a, copy_b, store, a_layout, b_layout):
    tidx, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    m_extent, n_extent, k_extent = mA.shape[0], mB.shape[0], mA.shape[1]
    tiles_m, tiles_n = cute.ceil_div(m_extent, TILE_M), cute.ceil_div(n_extent, TILE_N)
    tile_k = a_layout.shape[1]
    k_tiles = cute.ceil_div(k_extent, tile_k)
    first = block // (GROUP_M * tiles_n) * GROUP_M
    rows = min(tiles_m - first, GROUP_M)
    in_group = block % (GROUP_M * tiles_n)
    m, n = cute.Int32(first + in_group % rows), cute.Int32(in_group // rows)

    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(dtype, a_layout, 1024, SWIZZLE, "sA")
    sB = smem.allocate_tensor(dtype, b_layout, 1024, SWIZZLE, "sB")
    gA = cute.local_tile(mA, (TILE_M, tile_k), (m, None))
    gB = cute.local_tile(mB, (TILE_N, tile_k), (n, None))
    cA = cute.local_tile(cute.make_identity_tensor(mA.shape), (TILE_M, tile_k), (m, None))
    cB = cute.local_tile(cute.make_identity_tensor(mB.shape), (TILE_N, tile_k), (n, None))

    # What this thread copies, and which rows of that there are
    thr_a, thr_b = copy_a.get_slice(tidx), copy_b.get_slice(tidx)
    tAgA, tAsA, tAcA = thr_a.partition_S(gA), thr_a.partition_D(sA), thr_a.partition_S(cA)
    tBgB, tBsB, tBcB = thr_b.partition_S(gB), thr_b.partition_D(sB), thr_b.partition_S(cB)
    a_rows = cute.make_rmem_tensor((1, cute.size(tAgA, [1]), 1), cute.Boolean)
    b_rows = cute.make_rmem_tensor((1, cute.size(tBgB, [1]), 1), cute.Boolean)
    a_now, b_now = cute.make_rmem_tensor_like(a_rows), cute.make_rmem_tensor_like(b_rows)
    for i in cute.range_constexpr(TILE_M * ROW_BYTES // 16 // THREADS):
        a_rows[0, i, 0] = tAcA[0, i, 0, 0][0] < m_extent
    for i in cute.range_constexpr(TILE_N * ROW_BYTES // 16 // THREADS):
        b_rows[0, i, 0] = tBcB[0, i, 0, 0][0] < n_extent

    # What this thread multiplies, and how it takes it out of shared memory
    mma = tiled_mma.get_slice(tidx)
    acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C((TILE_M, TILE_N)), acc_dtype)
    acc.fill(0)
    tCrA = tiled_mma.make_fragment_A(mma.partition_A(sA[None, None, 0]))
    tCrB = tiled_mma.make_fragment_B(mma.partition_B(sB[None, None, 0]))
    ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), dtype)
    load_a, load_b = cute.make_tiled_copy_A(ldmatrix, tiled_mma), cute.make_tiled_copy_B(ldmatrix, tiled_mma)
    thr_load_a, thr_load_b = load_a.get_slice(tidx), load_b.get_slice(tidx)
    tLsA, tLrA = thr_load_a.partition_S(sA), thr_load_a.retile(tCrA)
    tLsB, tLrB = thr_load_b.partition_S(sB), thr_load_b.retile(tCrB)

    # All stages but one are on their way before the loop begins
    for s in cute.range_constexpr(STAGES - 1):
        if s < k_tiles:
            tile = cute.Int32(s)  # not a static index: K may have fewer tiles, and then this branch is never taken
            inside = tAcA[0, 0, 0, tile][1] < k_extent
            for i in cute.range_constexpr(TILE_M * ROW_BYTES // 16 // THREADS):
                a_now[0, i, 0] = a_rows[0, i, 0] and inside
            for i in cute.range_constexpr(TILE_N * ROW_BYTES // 16 // THREADS):
                b_now[0, i, 0] = b_rows[0, i, 0] and inside
            cute.copy(copy_a, tAgA[None, None, None, tile], tAsA[None, None, None, s], pred=a_now)
            cute.copy(copy_b, tBgB[None, None, None, tile], tBsB[None, None, None, s], pred=b_now)
        arch.cp_async_commit_group()

    arch.cp_async_wait_group(STAGES - 2)
    arch.sync_threads()
    cute.copy(load_a, tLsA[None, None, 0, 0], tLrA[None, None, 0])
    cute.copy(load_b, tLsB[None, None, 0, 0], tLrB[None, None, 0])

    read, write = cute.Int32(0), cute.Int32(STAGES - 1)
    for k in range(k_tiles):
        for kb in cute.range_constexpr(K_BLOCKS):
            if kb == K_BLOCKS - 1:  # the next tile must be there, and all threads be done with the one before
                arch.cp_async_wait_group(STAGES - 2)
                arch.sync_threads()
                read = cute.Int32(0 if read == STAGES - 1 else read + 1)
            after = (kb + 1) % K_BLOCKS
            if kb < K_BLOCKS - 1 or k + 1 < k_tiles:
                cute.copy(load_a, tLsA[None, None, after, read], tLrA[None, None, after])
                cute.copy(load_b, tLsB[None, None, after, read], tLrB[None, None, after])
            if kb == 0:  # the stage that was read before this one takes the tile STAGES - 1 ahead
                ahead = cute.Int32(k + STAGES - 1)
                if ahead < k_tiles:
                    inside = tAcA[0, 0, 0, ahead][1] < k_extent
                    for i in cute.range_constexpr(TILE_M * ROW_BYTES // 16 // THREADS):
                        a_now[0, i, 0] = a_rows[0, i, 0] and inside
                    for i in cute.range_constexpr(TILE_N * ROW_BYTES // 16 // THREADS):
                        b_now[0, i, 0] = b_rows[0, i, 0] and inside
                    cute.copy(copy_a, tAgA[None, None, None, ahead], tAsA[None, None, None, write], pred=a_now)
                    cute.copy(copy_b, tBgB[None, None, None, ahead], tBsB[None, None, None, write], pred=b_now)
                arch.cp_async_commit_group()
                write = cute.Int32(0 if write == STAGES - 1 else write + 1)
            cute.gemm(tiled_mma, acc, tCrA[None, None, kb], tCrB[None, None, kb], acc)
    arch.cp_async_wait_group(0)

    # Neighbours along N are stored together, where both rows and columns exist
    gC = cute.local_tile(mC, (TILE_M, TILE_N), (m, n))
    cC = cute.local_tile(cute.make_identity_tensor(mC.shape), (TILE_M, TILE_N), (m, n))
    tCgC, tCcC = mma.partition_C(gC), mma.partition_C(cC)
    result = cute.make_rmem_tensor_like(acc, out_dtype)
    result.store(acc.load().to(out_dtype))
    for i in cute.range_constexpr(TILE_M // (16 * WARPS_M)):
        for j in cute.range_constexpr(TILE_N // (8 * WARPS_N)):
            for r in cute.range_constexpr(2):
                row, column = tCcC[(0, r), i, j]
                if row < m_extent and column < n_extent:
                    cute.copy(store, result[(None, r), i, j], tCgC[(None, r), i, j])


def arguments(a, b, c, kind):
    """The kernel's arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a: (M, K), b: (N, K), c: (M, N), all row-major; their shapes are static, one kernel each.
    """
    dtype, out_dtype, op = KINDS[kind]
    tA, tB, tC = (from_dlpack(x, assumed_align=16) for x in (a, b, c))
    tA, tB, tC = cute.recast_tensor(tA, dtype), cute.recast_tensor(tB, dtype), cute.recast_tensor(tC, out_dtype)
    tile_k, vector = ROW_BYTES * 8 // dtype.width, 128 // dtype.width
    tiled_mma = cute.make_tiled_mma(op, (WARPS_M, WARPS_N, 1), (16 * WARPS_M, 16 * WARPS_N, op.shape_mnk[2]))
    load = cute.make_copy_atom(cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL, zfill=True), dtype, 128)
    threads = cute.make_layout((THREADS * 16 // ROW_BYTES, ROW_BYTES // 16), stride=(ROW_BYTES // 16, 1))
    copy = cute.make_tiled_copy_tv(load, threads, cute.make_layout((1, vector)))
    store = cute.make_copy_atom(CopyUniversalOp(), out_dtype, 2 * out_dtype.width)
    a_layout = cute.make_layout((TILE_M, tile_k, STAGES), stride=(tile_k, 1, TILE_M * tile_k))
    b_layout = cute.make_layout((TILE_N, tile_k, STAGES), stride=(tile_k, 1, TILE_N * tile_k))
    grid = math.ceil(a.shape[0] / TILE_M) * math.ceil(b.shape[0] / TILE_N)
    return (dtype, op.accumulator, out_dtype, tA, tB, tC, tiled_mma, copy, copy, store, a_layout, b_layout), grid


def launcher(a, b, c, kind):
    """A launch of the GEMM for arrays of the device, prepared: call it as often as you like."""
    args, grid = arguments(a, b, c, kind)
    return cute.launch(gemm, grid=grid, block=THREADS).prepare(*args)


def simulate(a, b, c, kind, **options):
    """Run the GEMM in the simulator."""
    args, grid = arguments(a, b, c, kind)
    cute.simulate(gemm, **options)[grid, THREADS](*args)


def main():
    options = gemm_host.parser(__doc__, tuple(KINDS), "sm_80", "200 x 264 x 160")
    args = options.parse_args()
    gpu = not (args.simulate or args.compile_only) and gemm_host.has_gpu((8, 0))
    small = (200, 264, 160)
    m, n, k = (getattr(args, x) or (4096 if gpu or args.compile_only else d) for x, d in zip("mnk", small, strict=True))
    dtype = KINDS[args.dtype][0]
    step = 128 // dtype.width
    if k % step:
        options.error(f"--k {k}: cp.async needs rows of a multiple of 16 bytes: a multiple of {step}")
    if n % 2:
        options.error(f"--n {n}: two neighbours are stored together: a multiple of 2")
    arrays = gemm_host.problem(m, n, k, dtype)
    if args.compile_only:
        gemm_host.compile_only(gemm, arguments(*arrays, args.dtype)[0], f"ampere_gemm_{args.dtype}", args.arch)
    elif gpu:
        gemm_host.run_on_gpu(arrays, lambda a, b, c: launcher(a, b, c, args.dtype), args.dtype)
    else:
        run = lambda: simulate(*arrays, args.dtype, progress=sys.stderr.isatty())  # noqa: E731
        gemm_host.simulate(arrays, run, args.dtype)


if __name__ == "__main__":
    main()
