# SPDX-License-Identifier: Apache-2.0
"""Blackwell GEMMs in the experimental API: C = A @ B.T, with A (M, K) and B (N, K); the kernel takes plain tensors.

One block, or a pair, makes a tile: a warp loads A and B by TMA, one multiplies into tensor memory, four take the
results from there and store them by TMA. Larger clusters share operands by multicast.

They have run in the simulator and through the assembler; on Blackwell itself they have not run.

    python examples/experimental_blackwell_gemm.py                      a small problem, in the simulator
    python examples/experimental_blackwell_gemm.py --ctas 2 --cluster 2x2 --dtype e4m3
    python examples/experimental_blackwell_gemm.py --compile-only --ctas 2      PTX and cubin for sm_100a into out/
"""

import functools
import math
import sys

from blackwell_gemm import STAGES, STORE_STAGES, TILE_M, TILE_N, Plan, form_of

import numba_cute as cute
from numba_cute import arch, experimental as ext
from numba_cute.experimental import OperationTypeEnum
from numba_cute.nvgpu import CopyUniversalOp, tcgen05
from numba_cute.utils import sm100

import gemm_host
from gemm_host import DTYPES, operand

SMEM, TMEM, RMEM = cute.AddressSpace.smem, cute.AddressSpace.tmem, cute.AddressSpace.rmem
EPILOGUE_WARPS, MMA_WARP, TMA_WARP, WARPS = 4, 4, 5, 6
THREADS, ACC_STAGES = 32 * WARPS, 1
TARGET = "sm_100a"
ROWS = cute.utils.LayoutEnum.ROW_MAJOR  # of C
LOADS = {
    (1, False): OperationTypeEnum.SM90_TMA_LOAD,
    (1, True): OperationTypeEnum.SM90_TMA_LOAD_MULTICAST,
    (2, False): OperationTypeEnum.SM100_TMA_LOAD_2SM,
    (2, True): OperationTypeEnum.SM100_TMA_LOAD_2SM_MULTICAST,
}
MULTIPLIES = {1: OperationTypeEnum.SM100_MMA_1SM_SS, 2: OperationTypeEnum.SM100_MMA_2SM_SS}


def make_mainloop(load, multiply, vmnk, multicast):
    """Return what makes the pipeline of shared memory."""
    create = ext.TMAToUMMAPipeline.create_with_mask if multicast else ext.TMAToUMMAPipeline.create

    @cute.jit
    def mainloop():
        return create(num_stages=STAGES, tma_operation_type=load, mma_operation_type=multiply, cluster_layout_vmnk=vmnk)

    return mainloop


def make_epilogue(cta_tile, epi_tile, ctas, acc_type, c_type):
    """Store a tile in pieces by the four epilogue warps: tensor memory -> registers -> shared memory -> (TMA) -> C.

    cta_tile: a block's tile (M, N, K)."""
    load = sm100.get_tmem_load_op(cta_tile, ROWS, c_type, acc_type, epi_tile, ctas == 2)

    @cute.jit
    def epilogue(acc, sC, gC):
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        tAcc, gC_pieces = cute.flat_divide(acc, epi_tile), cute.flat_divide(gC, epi_tile)
        t2r = tcgen05.make_tmem_copy(load, tAcc[None, None, 0, 0])
        r2s = cute.make_tiled_copy_D(cute.make_copy_atom(CopyUniversalOp(), c_type), t2r)
        registers = ext.make_t2r_rmem_layout(t2r, gC_pieces, tidx)
        rAcc, rC = ext.allocate(acc_type, RMEM, registers), ext.allocate(c_type, RMEM, registers)
        stores = ext.TMAStorePipeline(stages=STORE_STAGES, arv_count=32 * EPILOGUE_WARPS, barrier_id=1, tma_warp_id=0)
        for piece in cute.range_constexpr(cute.size(tAcc, mode=[3])):
            ext.partition_and_copy(t2r.get_slice(tidx), tAcc[None, None, 0, piece], rAcc)
            rC.store(rAcc.load().to(c_type))
            stores.acquire_sync()
            buffer = sC[None, None, stores.get_index()]
            ext.partition_and_copy(r2s.get_slice(tidx), rC, buffer)
            stores.commit_sync()
            if warp == 0:
                ext.tma_store(buffer, gC_pieces[None, None, 0, piece])
            stores.release_advance()
        stores.tail()

    return epilogue


def make_kernel(form):
    """The kernel of a `blackwell_gemm.Form`: what it holds is static in the kernel."""
    plan, tiled_mma, tiler = form.plan, form.tiled_mma, form.tiler
    a_type, b_type, acc_type, c_type = form.a_type, form.b_type, form.acc_type, form.c_type
    a_layout, b_layout, c_layout = form.a_layout, form.b_layout, form.c_layout
    ctas, cluster = plan.ctas, plan.cluster
    vmnk = cute.tiled_divide(cute.make_layout((*cluster, 1)), (tiled_mma.thr_id.shape,))
    multicast = math.prod(cluster) > ctas
    load, multiply = LOADS[ctas, multicast], MULTIPLIES[ctas]
    acc_layout = ext.make_tmem_layout_acc(tiled_mma, tiler, ACC_STAGES)
    a_tile, b_tile = (tiler[0] // ctas, tiler[2]), (tiler[1] // ctas, tiler[2])
    make_pipeline = make_mainloop(load, multiply, vmnk, multicast)
    epilogue = make_epilogue(form.cta_tile, form.epi_tile, ctas, acc_type, c_type)

    @cute.cluster_shape(*cluster)
    @ext.kernel(launch_bounds=(THREADS, 1))
    def gemm(mA, mB, mC):
        m, n, _ = arch.block_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        leads = m % ctas == 0
        sA = ext.allocate(a_type, SMEM, a_layout, alignment=1024, name="sA")
        sB = ext.allocate(b_type, SMEM, b_layout, alignment=1024, name="sB")
        sC = ext.allocate(c_type, SMEM, c_layout, alignment=1024, name="sC")
        acc = ext.allocate(acc_type, TMEM, acc_layout, is2cta=ctas == 2)
        mainloop = make_pipeline()
        results = ext.UMMAtoAsyncPipeline.create(
            num_stages=ACC_STAGES, mma_operation_type=multiply, consumer=OperationTypeEnum.SM100_COPY_T2R,
            consumer_arv_count=32 * EPILOGUE_WARPS * ctas, cluster_layout_vmnk=vmnk,
        )  # fmt: skip
        gA, gB = cute.zipped_divide(mA, a_tile), cute.zipped_divide(mB, b_tile)
        k_tiles = cute.size(gA, mode=[1, 1])

        if warp == TMA_WARP:
            a_map = ext.get_cta_v_map_ab(mA, tiler, tiled_mma, "A")
            b_map = ext.get_cta_v_map_ab(mB, tiler, tiled_mma, "B")
            for k in range(k_tiles):
                stage, i = mainloop.producer_acquire_and_get_stage()
                full = ext.get_mbarrier(stage)
                tile_a, tile_b = gA[(None, None), (m, k)], gB[(None, None), (ctas * n + m % ctas, k)]
                if multicast:
                    ext.tma_load_multicast(
                        tile_a, sA[None, None, None, i], full, vmnk_layout=vmnk, multicast_mode=2, cta_v_map=a_map,
                        tma_operation_type=load,
                    )  # fmt: skip
                    ext.tma_load_multicast(
                        tile_b, sB[None, None, None, i], full, vmnk_layout=vmnk, multicast_mode=1, cta_v_map=b_map,
                        tma_operation_type=load,
                    )  # fmt: skip
                else:
                    ext.tma_load(tile_a, sA[None, None, None, i], full, cta_v_map=a_map, tma_operation_type=load)
                    ext.tma_load(tile_b, sB[None, None, None, i], full, cta_v_map=b_map, tma_operation_type=load)
                mainloop.producer_commit_and_advance()
            mainloop.producer_tail()

        if warp == MMA_WARP and leads:
            _, tile = results.producer_acquire_and_get_stage()
            into = acc[None, None, None, tile]
            for k in range(k_tiles):
                _, i = mainloop.consumer_wait_and_get_stage()
                for kb in cute.range_constexpr(tiler[2] // tiled_mma.shape_mnk[2]):
                    atom = cute.make_mma_atom(tiled_mma.op).set(tcgen05.Field.ACCUMULATE, k > 0 or kb > 0)
                    a = cute.append_ones(sA[None, None, kb, i], up_to_rank=3)
                    b = cute.append_ones(sB[None, None, kb, i], up_to_rank=3)
                    ext.dot(atom, a, b, into)
                mainloop.consumer_release_and_advance()
            results.producer_commit_and_advance()
            results.producer_tail()

        if warp < EPILOGUE_WARPS:
            _, tile = results.consumer_wait_and_get_stage()
            gC = cute.zipped_divide(mC, (TILE_M, tiler[1]))
            epilogue(acc[(None, None), 0, 0, tile], sC, gC[(None, None), (m, n)])
            results.consumer_release_and_advance()

    return gemm


kernel_of = functools.cache(make_kernel)


def arguments(a, b, c, dtype, plan):
    """The kernel, its arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a: (M, K), b: (N, K), c: (M, N), each contiguous along either mode by multiples of 16 bytes.
    """
    tC, c_mode = operand(c, gemm_host.RESULTS[dtype])
    if c_mode == 0:  # the same, seen from the other side
        a, b, (tC, _) = b, a, operand(c.T, tC.element_type)
    (tA, a_mode), (tB, b_mode) = operand(a, dtype), operand(b, dtype)
    form = form_of(plan, dtype, tC.element_type, a_mode, b_mode)
    tiles = math.ceil(a.shape[0] / TILE_M), math.ceil(b.shape[0] / TILE_N)
    grid = tuple(math.ceil(t / c) * c for t, c in zip(tiles, plan.cluster, strict=True))  # whole clusters
    return kernel_of(form), (tA, tB, tC), grid


def simulate(a, b, c, dtype, plan, **options):
    """Run the GEMM in the simulator."""
    kernel, args, grid = arguments(a, b, c, dtype, plan)
    cute.simulate(kernel, arch=TARGET, **options)[grid, THREADS](*args)


def main():
    options = gemm_host.parser(__doc__, tuple(DTYPES), TARGET, "256 x 256 x 256")
    options.add_argument("--majors", default="kkn", help="the mode along which A, B and C are contiguous: kkn to mnm")
    options.add_argument("--ctas", type=int, choices=(1, 2), default=1, help="blocks that multiply together")
    options.add_argument("--cluster", help="blocks along M x N, as 4x2; default: those that multiply together")
    args = options.parse_args()
    dtype = DTYPES[args.dtype]
    plan = Plan(args.ctas, tuple(int(x) for x in (args.cluster or f"{args.ctas}x1").split("x")))
    m, n, k = (getattr(args, x) or small for x, small in zip("mnk", (256, 256, 256), strict=True))
    arrays = gemm_host.problem(m, n, k, dtype, majors=args.majors)
    if args.compile_only:
        kernel, made, _ = arguments(*arrays, dtype, plan)
        gemm_host.compile_only(kernel, made, f"experimental_blackwell_gemm_{args.dtype}_{args.ctas}", args.arch)
        return
    run = lambda: simulate(*arrays, dtype, plan, progress=sys.stderr.isatty())  # noqa: E731
    gemm_host.simulate(arrays, run, f"{args.dtype}, {plan}")


if __name__ == "__main__":
    main()
