# SPDX-License-Identifier: Apache-2.0
"""The Hopper GEMM in the experimental API: the kernel takes A, B and C as plain tensors. C = A @ B.T, with A (M, K) and
B (N, K).

It is examples/hopper_gemm.py without atoms, tensor maps and byte counts: `tma_load` and `tma_store` take tiles of the
kernel's own arguments, shared memory comes from `allocate`, and the pipelines keep their states. Persistent and
warp-specialised, in clusters of two CTAs that share each tile of B by multicast.

    python examples/experimental_gemm.py                     4096^3 on a Hopper GPU, or a small problem in the simulator
    python examples/experimental_gemm.py --m 1000 --n 1048 --k 1016 --dtype f16 --majors mnn
    python examples/experimental_gemm.py --arch sm_90a --compile-only      PTX and cubin into out/, with no GPU
"""

import functools
import math
import sys
from typing import NamedTuple

import numba_cute as cute
from numba_cute import arch, experimental as ext, utils
from numba_cute.experimental import OperationTypeEnum
from numba_cute.nvgpu import CopyUniversalOp, warp, warpgroup

import gemm_host
import hopper_gemm
from gemm_host import DTYPES, operand, problem
from hopper_gemm import CLUSTER_M, K_BLOCKS, ROW, STAGES, STORE_STAGES, THREADS, TILE_M, TILE_N

SMEM = cute.AddressSpace.smem
CLUSTER = cute.make_layout((1, CLUSTER_M, 1, 1))  # V, M, N, K
MULTICAST = OperationTypeEnum.SM90_TMA_LOAD_MULTICAST
CONSUMERS = THREADS - 128


class Form(NamedTuple):
    """All that the kernel knows when it is compiled."""

    dtype: cute.DType
    c_dtype: cute.DType
    tiled_mma: cute.TiledMma
    store: cute.CopyAtom
    a_layout: cute.ComposedLayout
    b_layout: cute.ComposedLayout
    c_layout: cute.ComposedLayout


def make_kernel(form):
    """The kernel of a form."""
    dtype, c_dtype, tiled_mma, store, a_layout, b_layout, c_layout = form
    tile_k, store_n = 8 * ROW // dtype.width, 8 * ROW // c_dtype.width
    stores_of_tile = TILE_N // store_n

    @cute.cluster_shape(CLUSTER_M, 1)
    @ext.kernel(launch_bounds=(THREADS, 1))
    def gemm(mA, mB, mC, schedule):
        tidx, _, _ = arch.thread_idx()
        warp_idx = arch.make_warp_uniform(arch.warp_idx())
        sA = ext.allocate(dtype, SMEM, a_layout, alignment=1024)
        sB = ext.allocate(dtype, SMEM, b_layout, alignment=1024)
        sC = ext.allocate(c_dtype, SMEM, c_layout, alignment=1024)
        mainloop = ext.TMAToAsyncPipeline.create(
            num_stages=STAGES,
            consumer=OperationTypeEnum.SM90_MMA_SS,
            consumer_arv_count=CONSUMERS,
            tma_operation_type=MULTICAST,
            cluster_layout_vmnk=CLUSTER,
            mcast_mode_mn=(0, 1),  # B, along M
        )
        scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
        work = scheduler.initial_work_tile_info()
        gA = cute.zipped_divide(mA, (TILE_M, tile_k))  # (tile, (tiles M, tiles K))
        gB = cute.zipped_divide(mB, (TILE_N, tile_k))
        k_tiles = cute.size(gA, mode=[1, 1])

        if warp_idx < 4:
            arch.setmaxregister_decrease(hopper_gemm.PRODUCER_REGISTERS)
            if warp_idx == 0:
                while work.is_valid_tile:
                    m, n, _ = work.tile_idx
                    for k in range(k_tiles):
                        stage, i = mainloop.producer_acquire_and_get_stage()
                        full = ext.get_mbarrier(stage)
                        ext.tma_load(gA[(None, None), (m, k)], sA[None, None, i], full)
                        ext.tma_load_multicast(
                            gB[(None, None), (n, k)], sB[None, None, i], full, vmnk_layout=CLUSTER, multicast_mode=1
                        )
                        mainloop.producer_commit_and_advance()
                    scheduler.advance_to_next_work()
                    work = scheduler.get_current_work()
                mainloop.producer_tail()
        else:
            arch.setmaxregister_increase(hopper_gemm.CONSUMER_REGISTERS)
            group = cute.Int32((warp_idx - 4) // 4)  # which consumer warpgroup: rows 64 * group of the tile
            mma = tiled_mma.get_slice(cute.Int32(group * 128))
            adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            tCrA = tiled_mma.make_fragment_A(mma.partition_A(sA))
            tCrB = tiled_mma.make_fragment_B(mma.partition_B(sB))
            acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_M, TILE_N)))

            # How the accumulators leave, in pieces of 64 x ROW bytes: registers -> shared memory -> (TMA) -> C
            to_smem = cute.make_tiled_copy_S(store, cute.make_tiled_copy_C_atom(store, tiled_mma))
            to_smem = to_smem.get_slice(cute.Int32(tidx - 128))
            rC = ext.allocate(c_dtype, cute.AddressSpace.rmem, (64 * store_n // 128,))
            pieces = cute.make_tensor(acc.iterator, cute.make_layout((64 * store_n // 128, stores_of_tile)))
            gC = cute.zipped_divide(mC, (64, store_n))
            sC_group = cute.local_tile(sC, (64, store_n), (group, 0))
            stores = ext.TMAStorePipeline(
                stages=STORE_STAGES, arv_count=128, barrier_id=1 + group, tma_warp_id=4 + 4 * group
            )

            while work.is_valid_tile:
                m, n, _ = work.tile_idx
                previous, _ = mainloop.consumer_wait_and_get_stage()
                for k in range(k_tiles):
                    stage, i = mainloop.consumer_wait_and_get_stage()
                    warpgroup.fence()
                    first = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
                    ext.dot(first, tCrA[None, None, 0, i], tCrB[None, None, 0, i], acc)
                    for kb in cute.range_constexpr(1, K_BLOCKS):
                        ext.dot(adds, tCrA[None, None, kb, i], tCrB[None, None, kb, i], acc)
                    warpgroup.commit_group()
                    warpgroup.wait_group(1)  # the tensor cores may still read this stage, but not the one before
                    if k > 0:
                        mainloop.consumer_release(previous)
                    previous = stage
                    mainloop.consumer_advance()
                warpgroup.wait_group(0)
                mainloop.consumer_release(previous)

                for piece in cute.range_constexpr(stores_of_tile):
                    rC.store(pieces[None, piece].load().to(c_dtype))
                    stores.acquire_sync()
                    buffer = sC[None, None, stores.get_index()]
                    ext.partition_and_copy(to_smem, rC, buffer)
                    stores.commit_sync()
                    if warp_idx % 4 == 0:
                        tile = gC[(None, None), (2 * m + group, stores_of_tile * n + piece)]
                        ext.tma_store(sC_group[None, None, stores.get_index()], tile)
                    stores.release_advance()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            stores.tail()

    return gemm


kernel_of = functools.cache(make_kernel)


def arguments(a, b, c, dtype, most_clusters):
    """The kernel, its arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a: (M, K), b: (N, K), c: (M, N), each contiguous along either mode (along K, where dtype has not 16 bits) by
    multiples of 16 bytes.
    """
    tC, c_mode = operand(c, gemm_host.RESULTS[dtype])
    if c_mode == 0:  # the same, seen from the other side
        a, b, (tC, _) = b, a, operand(c.T, tC.element_type)
    (tA, a_mode), (tB, b_mode) = operand(a, dtype), operand(b, dtype)
    form = form_of(dtype, tC.element_type, a_mode, b_mode)
    tiles_m, tiles_n = math.ceil(a.shape[0] / TILE_M), math.ceil(b.shape[0] / TILE_N)
    tiles = (cute.Int32(math.ceil(tiles_m / CLUSTER_M) * CLUSTER_M), cute.Int32(tiles_n), 1)
    swizzle = hopper_gemm.GROUP_M // CLUSTER_M
    schedule = utils.PersistentTileSchedulerParams(tiles, (CLUSTER_M, 1, 1), swizzle, False)
    work = math.ceil(tiles_m / CLUSTER_M) * tiles_n
    clusters = math.ceil(work / math.ceil(work / most_clusters))
    return kernel_of(form), (tA, tB, tC, schedule), schedule.get_grid_shape(clusters)


@functools.cache
def form_of(dtype, c_dtype, a_mode, b_mode):
    """The form of a problem; a_mode, b_mode: along which A and B are contiguous."""
    majors = [warpgroup.OperandMajorMode.K if mode == 1 else warpgroup.OperandMajorMode.MN for mode in (a_mode, b_mode)]
    tile_k, store_n = 8 * ROW // dtype.width, 8 * ROW // c_dtype.width
    narrow = warp.StMatrix8x8x16bOp(False, 4), c_dtype
    store = cute.make_copy_atom(*(narrow if c_dtype.width == 16 else (CopyUniversalOp(), c_dtype, 64)))
    return Form(
        dtype, c_dtype, cute.make_tiled_mma(hopper_gemm.mma_op(dtype, TILE_N, *majors), (TILE_M // 64, 1, 1)), store,
        hopper_gemm.smem_layout(dtype, a_mode, TILE_M, tile_k, STAGES),
        hopper_gemm.smem_layout(dtype, b_mode, TILE_N, tile_k, STAGES),
        hopper_gemm.smem_layout(c_dtype, 1, TILE_M, store_n, STORE_STAGES),
    )  # fmt: skip


def launcher(a, b, c, dtype):
    """A launch of the GEMM for arrays of the device, prepared: call it as often as you like."""
    kernel, args, grid = arguments(a, b, c, dtype, utils.HardwareInfo().get_max_active_clusters(CLUSTER_M))
    return cute.launch(kernel, grid=grid, block=THREADS).prepare(*args)


def simulate(a, b, c, dtype, **options):
    """Run the GEMM in the simulator, on one cluster."""
    kernel, args, grid = arguments(a, b, c, dtype, 1)
    cute.simulate(kernel, **options)[grid, THREADS](*args)


def main():
    options = gemm_host.parser(__doc__, tuple(DTYPES), "sm_90a", "256 x 512 x 128")
    options.add_argument("--majors", default="kkn", help="the mode along which A, B and C are contiguous: kkn to mnm")
    args = options.parse_args()
    dtype = DTYPES[args.dtype]
    gpu = not (args.simulate or args.compile_only) and gemm_host.has_gpu((9, 0), (9, 0))
    small = (256, 512, 128)
    m, n, k = (getattr(args, x) or (4096 if gpu or args.compile_only else d) for x, d in zip("mnk", small, strict=True))
    arrays = problem(m, n, k, dtype, majors=args.majors)
    if args.compile_only:
        kernel, made, _ = arguments(*arrays, dtype, 66)
        gemm_host.compile_only(kernel, made, f"experimental_gemm_{args.dtype}", args.arch)
    elif gpu:
        gemm_host.run_on_gpu(arrays, lambda a, b, c: launcher(a, b, c, dtype), f"{args.dtype}, {args.majors}")
    else:
        run = lambda: simulate(*arrays, dtype, progress=sys.stderr.isatty())  # noqa: E731
        gemm_host.simulate(arrays, run, f"{args.dtype}, {args.majors}")


if __name__ == "__main__":
    main()
