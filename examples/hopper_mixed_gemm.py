# SPDX-License-Identifier: Apache-2.0
"""A Hopper GEMM with weights of 8 bits in one plain @cuda.jit kernel: C = A @ B.T, A (M, K) in s8 or fp8, B (N, K) in
bf16 or f16, and C like B. All are contiguous along their second mode.

wgmma multiplies operands of one type, so the warpgroups widen A on its way: shared memory -> registers, where wgmma
may take A from. A warpgroup widens its next K tile while the tensor cores multiply this one. TMA, multicast and the
schedule are those of examples/hopper_gemm.py.

    python examples/hopper_mixed_gemm.py               4096^3 on a Hopper GPU, or a small problem in the simulator
    python examples/hopper_mixed_gemm.py --m 1000 --n 1048 --k 1024 --dtype e4m3*f16
"""

import math
import sys

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.kernels.gemm.output import Stores, of_warpgroup, partition
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.runtime import from_dlpack

import gemm_host
from gemm_host import DTYPES
from hopper_gemm import CLUSTER_M, GROUP_M, TILE_M, TILE_N, cover, operand, smem_layout

TILE_K, STAGES = 64, 4
STORE_N, STORE_STAGES = 64, 2
K_BLOCKS = TILE_K // 16
STORES = TILE_N // STORE_N
assert STORES % STORE_STAGES == 0, "the next tile's first piece must not take the last one's buffer"
CLUSTER = cute.make_layout((1, CLUSTER_M, 1, 1))  # V, M, N, K
SHARE_B = (1 << CLUSTER_M) - 1  # multicast to every CTA of the cluster
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
THREADS, CONSUMER_WARPS = 384, 8
STAGE_BYTES = TILE_M * TILE_K + TILE_N * TILE_K * 2
KINDS = ("s8*bf16", "s8*f16", "e4m3*bf16", "e4m3*f16", "e5m2*bf16", "e5m2*f16")


@cute.cluster_shape(CLUSTER_M, 1)
@cuda.jit(launch_bounds=(THREADS, 1))
def gemm(a_dtype, dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, a_layout, b_layout, c_layout, schedule):
    tidx, _, _ = arch.thread_idx()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    if warp_idx == 0:
        cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
        cpasync.prefetch_descriptor(tma_c)

    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(a_dtype, a_layout.outer, 1024, a_layout.inner, "sA")
    sB = smem.allocate_tensor(dtype, b_layout.outer, 1024, b_layout.inner, "sB")
    sC = smem.allocate_tensor(dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    barriers = smem.allocate_array(cute.Int64, 2 * STAGES, name="barriers")
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CLUSTER_M * CONSUMER_WARPS),
        tx_count=STAGE_BYTES,
        barrier_storage=barriers,
        cta_layout_vmnk=CLUSTER,
        tidx=tidx,
        mcast_mode_mn=(0, 1),  # B, along M
        name="mainloop",
    )
    producer, consumer = mainloop.make_participants()
    scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()

    gA = cute.local_tile(mA, (TILE_M, TILE_K), (None, None))
    gB = cute.local_tile(mB, (TILE_N, TILE_K), (None, None))
    tAsA, tAgA = partition(tma_a, sA, gA)
    tBsB, tBgB = partition(tma_b, sB, gB, rank, CLUSTER_M)
    k_tiles = tAgA.shape[2]

    if warp_idx < 4:
        arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if warp_idx == 0:
            while work.is_valid_tile:
                m, n, _ = work.tile_idx
                for k in range(k_tiles):
                    stage = producer.acquire_and_advance()
                    cute.copy(tma_a, tAgA[None, m, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                    cute.copy(
                        tma_b, tBgB[None, n, k], tBsB[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=SHARE_B
                    )
                    stage.commit()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            producer.tail()
    else:
        arch.setmaxregister_increase(CONSUMER_REGISTERS)
        group = cute.Int32((warp_idx - 4) // 4)
        mma = tiled_mma.get_slice(cute.Int32(tidx - 128))
        adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        tCsA = mma.partition_A(sA)  # what this thread widens
        tCrB = tiled_mma.make_fragment_B(tiled_mma.get_slice(cute.Int32(group * 128)).partition_B(sB))
        narrow = cute.make_rmem_tensor(tiled_mma.partition_shape_A((TILE_M, TILE_K)), a_dtype)
        next_wide = cute.make_rmem_tensor(tiled_mma.partition_shape_A((TILE_M, TILE_K)), dtype)
        wide = cute.make_rmem_tensor(tiled_mma.partition_shape_A((TILE_M, TILE_K)), dtype)
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_M, TILE_N)))

        store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
        sums = cute.make_tensor(acc.iterator, cute.make_layout((64 * STORE_N // 128, STORES)))
        gC = cute.local_tile(mC, (64, STORE_N), (None, None))
        tCsC, tCgC = partition(tma_c, of_warpgroup(sC, group), gC)
        stores = Stores.create(store, tiled_mma, sC, cute.Int32(tidx - 128), group, warp_idx % 4 == 0)

        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            stage = consumer.wait_and_advance()
            cute.autovec_copy(tCsA[None, None, None, stage.index], narrow)
            wide.store(narrow.load().to(dtype))
            for k in range(k_tiles):
                warpgroup.fence()
                first = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
                cute.gemm(first, acc, wide[None, None, 0], tCrB[None, None, 0, stage.index], acc)
                for kb in cute.range_constexpr(1, K_BLOCKS):
                    cute.gemm(adds, acc, wide[None, None, kb], tCrB[None, None, kb, stage.index], acc)
                warpgroup.commit_group()
                current = stage
                if k + 1 < k_tiles:  # widen the next, while the tensor cores read `wide`
                    stage = consumer.wait_and_advance()
                    cute.autovec_copy(tCsA[None, None, None, stage.index], narrow)
                    next_wide.store(narrow.load().to(dtype))
                warpgroup.wait_group(0)
                arch.sync_warp()  # one lane releases what all have read
                current.release()
                wide.store(next_wide.load())

            for piece in cute.range_constexpr(STORES):
                slot = piece % STORE_STAGES
                there = tCgC[None, 2 * m + group, STORES * n + piece]
                stores.put(sums[None, piece].load(), slot, tma_c, tCsC[None, slot], there)
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        stores.tail()


def arguments(a, b, c, most_clusters):
    """The kernel's arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a: (M, K) of 8 bits, b: (N, K) and c: (M, N) of one type of 16 bits; rows are multiples of 16 bytes.
    """
    a_dtype, dtype = (from_dlpack(x).element_type for x in (a, b))
    (tA, _), (tB, _), (tC, _) = operand(a, a_dtype), operand(b, dtype), operand(c, dtype)
    source, k_major = warpgroup.OperandSource.RMEM, warpgroup.OperandMajorMode.K
    op = warpgroup.MmaF16BF16Op(dtype, cute.Float32, (64, TILE_N, 16), source, k_major, k_major)
    tiled_mma = cute.make_tiled_mma(op, (TILE_M // 64, 1, 1))
    rows_of_64 = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW64, a_dtype)
    a_layout = cute.tile_to_shape(rows_of_64, (TILE_M, TILE_K, STAGES), (0, 1, 2))
    b_layout = smem_layout(dtype, 1, TILE_N, TILE_K, STAGES)
    c_layout = smem_layout(dtype, 1, TILE_M, STORE_N, STORE_STAGES)

    load, share = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileG2SMulticastOp()
    put, piece = cpasync.CopyBulkTensorTileS2GOp(), smem_layout(dtype, 1, 64, STORE_N)
    stage = (None, None, 0)
    tma_a, mA = cpasync.make_tiled_tma_atom(load, tA, cute.slice_(a_layout, stage), (TILE_M, TILE_K))
    tma_b, mB = cpasync.make_tiled_tma_atom(share, tB, cute.slice_(b_layout, stage), (TILE_N, TILE_K), CLUSTER_M)
    tma_c, mC = cpasync.make_tiled_tma_atom(put, tC, piece, (64, STORE_N))

    tiles_m, tiles_n = math.ceil(a.shape[0] / TILE_M), math.ceil(b.shape[0] / TILE_N)
    clusters_m = math.ceil(tiles_m / CLUSTER_M)
    rows, columns = clusters_m * CLUSTER_M * TILE_M, tiles_n * TILE_N
    mA, mB, mC = cover(mA, rows, a.shape[1]), cover(mB, columns, a.shape[1]), cover(mC, rows, columns)
    tiles = (cute.Int32(tiles_m), cute.Int32(tiles_n), 1)
    schedule = utils.PersistentTileSchedulerParams(tiles, (CLUSTER_M, 1, 1), GROUP_M // CLUSTER_M, False)
    work = clusters_m * tiles_n
    grid = schedule.get_grid_shape(math.ceil(work / math.ceil(work / most_clusters)))
    layouts = (a_layout, b_layout, c_layout)
    return (a_dtype, dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, *layouts, schedule), grid


def launcher(a, b, c):
    """A launch of the GEMM for arrays of the device, prepared: call it as often as you like."""
    args, grid = arguments(a, b, c, utils.HardwareInfo().get_max_active_clusters(CLUSTER_M))
    return cute.launch(gemm, grid=grid, block=THREADS).prepare(*args)


def simulate(a, b, c, **options):
    """Run the GEMM in the simulator, on one cluster."""
    args, grid = arguments(a, b, c, 1)
    cute.simulate(gemm, **options)[grid, THREADS](*args)


def main():
    options = gemm_host.parser(__doc__, KINDS, "sm_90a", "256 x 512 x 128")
    args = options.parse_args()
    a_dtype, dtype = (DTYPES[x] for x in args.dtype.split("*"))
    gpu = not (args.simulate or args.compile_only) and gemm_host.has_gpu((9, 0), (9, 0))
    small = (256, 512, 128)
    m, n, k = (getattr(args, x) or (4096 if gpu or args.compile_only else d) for x, d in zip("mnk", small, strict=True))
    if k % 16:
        options.error(f"--k {k}: TMA needs rows of A of 16-byte multiples: a multiple of 16")
    if n % 8:
        options.error(f"--n {n}: TMA needs rows of C of 16-byte multiples: a multiple of 8")
    arrays = gemm_host.problem(m, n, k, dtype, a_dtype=a_dtype)
    if args.compile_only:
        gemm_host.compile_only(gemm, arguments(*arrays, 66)[0], f"hopper_mixed_gemm_{args.dtype}", args.arch)
    elif gpu:
        gemm_host.run_on_gpu(arrays, launcher, args.dtype)
    else:
        gemm_host.simulate(arrays, lambda: simulate(*arrays, progress=sys.stderr.isatty()), args.dtype)


if __name__ == "__main__":
    main()
