# SPDX-License-Identifier: Apache-2.0
"""A Blackwell GEMM in one plain @cuda.jit kernel: C = A @ B.T, with A (M, K) and B (N, K).

Persistent and warp-specialised: one warp feeds shared memory by TMA, one issues tcgen05.mma, and four take the results
from tensor memory, where two accumulators let them store one tile while the next is multiplied. One CTA multiplies 128
rows, or a pair of CTAs 256 together; CTAs of a larger cluster share operands by multicast. The schedule is static, or
clusters that are done take over the work of those that have not started ("cluster launch control").

It has run in the simulator and through the assembler; on Blackwell itself it has not run.

    python examples/blackwell_gemm.py                               a small problem, in the simulator
    python examples/blackwell_gemm.py --ctas 2 --cluster 2x2 --schedule clc --dtype e4m3
    python examples/blackwell_gemm.py --compile-only --ctas 2       PTX and cubin for sm_100a into out/, with no GPU
"""

import functools
import math
import sys
from typing import NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, make_tiled_tma_atom_A, make_tiled_tma_atom_B, tcgen05
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.utils import sm100

import gemm_host
from gemm_host import DTYPES, cover, operand

TILE_M, TILE_N, ROW = 128, 128, 128  # what a CTA makes of C, of ROW bytes along K at a time: one swizzle
STAGES, ACC_STAGES, STORE_STAGES, RESPONSES = 4, 2, 2, 2
EPILOGUE_WARPS, MMA_WARP, TMA_WARP, SCHEDULER_WARP, WARPS = 4, 4, 5, 6, 7
THREADS = 32 * WARPS
TARGET = "sm_100a"
ONE = CooperativeGroup(Agent.Thread)


class Plan(NamedTuple):
    """A cut of a problem. ctas: 1 or 2, which multiply together. cluster: CTAs along M and N. dynamic: whether the
    schedule is cluster launch control's."""

    ctas: int = 1
    cluster: tuple[int, int] = (1, 1)
    dynamic: bool = False


USUAL = Plan()
ROWS = utils.LayoutEnum.ROW_MAJOR  # of C


@cuda.jit
def next_static(scheduler, responses):
    scheduler.advance_to_next_work()
    return scheduler.get_current_work()


@cuda.jit
def next_dynamic(scheduler, responses):
    response = responses.wait_and_advance()
    work = scheduler.get_current_work(response.index)
    response.release()
    return work


def make_epilogue(cta_tile, epi_tile, ctas, acc_type, c_type, next_work):
    """Store a CTA's tiles by its four epilogue warps: tensor memory -> registers -> shared memory -> (TMA) -> C, in
    pieces of `epi_tile`."""
    assert cta_tile[1] // cute.size(epi_tile[1]) % STORE_STAGES == 0, "the next tile takes the other buffer"
    load = sm100.get_tmem_load_op(cta_tile, ROWS, c_type, acc_type, epi_tile, ctas == 2)

    @cuda.jit
    def epilogue(acc, ready, sC, tma_c, tCgC, scheduler, responses, work):
        thread, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        tAcc = cute.flat_divide(acc[(None, None), 0, 0, None], epi_tile)  # (piece M, piece N, 1, pieces, stages)
        gC = cute.flat_divide(tCgC[(None, None), 0, 0, None, None], epi_tile)  # the same of all tiles
        to_regs = tcgen05.make_tmem_copy(load, tAcc[None, None, 0, 0, 0])
        to_smem = cute.make_tiled_copy_D(sm100.get_smem_store_op(ROWS, c_type, acc_type, to_regs), to_regs)
        tTR_tAcc = to_regs.get_slice(thread).partition_S(tAcc)
        tRS_sC = to_smem.get_slice(thread).partition_D(sC)
        shape = to_regs.get_slice(thread).partition_D(gC)[None, None, None, 0, 0, 0, 0].shape
        rAcc, rC = cute.make_rmem_tensor(shape, acc_type), cute.make_rmem_tensor(shape, c_type)
        tCsC, tCgC = cpasync.tma_partition(
            tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2)
        )
        stores = pipeline.PipelineTmaStore.create(
            num_stages=STORE_STAGES, producer_group=CooperativeGroup(Agent.Thread, 32 * EPILOGUE_WARPS)
        )
        together = pipeline.NamedBarrier(2, 32 * EPILOGUE_WARPS)
        pieces = cute.size(tAcc, mode=[3])
        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            tile = ready.wait_and_advance()
            for piece in cute.range_constexpr(pieces):
                cute.copy(to_regs, tTR_tAcc[None, None, None, 0, piece, tile.index], rAcc)
                arch.fence_view_async_tmem_load()
                if piece == pieces - 1:
                    tile.release()
                rC.store(rAcc.load().to(c_type))
                if warp == 0:
                    stores.producer_acquire()  # the buffer has been read by the store before the last
                together.arrive_and_wait()
                buffer = piece % STORE_STAGES
                cute.copy(to_smem, to_smem.retile(rC), tRS_sC[None, None, None, buffer])
                arch.fence_proxy("async.shared", space="cta")
                together.arrive_and_wait()
                if warp == 0:
                    cute.copy(tma_c, tCsC[None, buffer], tCgC[None, 0, piece, m // ctas, n])
                    stores.producer_commit()
            work = next_work(scheduler, responses)
        if warp == 0:
            stores.producer_tail()

    return epilogue


def make_kernel(form):
    """The kernel of a `Form`: what it holds is static in the kernel."""
    plan, tiled_mma, tiler, epi_tile = form.plan, form.tiled_mma, form.tiler, form.epi_tile
    a_type, b_type, acc_type, c_type = form.a_type, form.b_type, form.acc_type, form.c_type
    a_layout, b_layout, c_layout = form.a_layout, form.b_layout, form.c_layout
    ctas, (cluster_m, cluster_n) = plan.ctas, plan.cluster
    cluster = cute.tiled_divide(cute.make_layout((cluster_m, cluster_n, 1)), (tiled_mma.thr_id.shape,))
    readers = cute.size(cluster, mode=[1]) + cute.size(cluster, mode=[2]) - 1
    tx_count = ctas * (cute.size_in_bytes(a_type, one(a_layout)) + cute.size_in_bytes(b_type, one(b_layout)))
    followers = 32 * (1 + cluster_m * cluster_n * (EPILOGUE_WARPS + 2))
    accumulators = tiled_mma.make_fragment_C((*tiled_mma.partition_shape_C(tiler[:2]), ACC_STAGES))
    acc_layout, columns = accumulators.layout, utils.get_num_tmem_alloc_cols(accumulators)
    next_work = next_dynamic if plan.dynamic else next_static
    epilogue = make_epilogue(form.cta_tile, epi_tile, ctas, acc_type, c_type, next_work)
    shared = cute.size(cluster) > 1

    @cute.cluster_shape(cluster_m, cluster_n)
    @cuda.jit(launch_bounds=(THREADS, 1))
    def kernel(tma_a, mA, tma_b, mB, tma_c, mC, schedule):
        tidx, _, _ = arch.thread_idx()
        bidx, _, _ = arch.block_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        part = bidx % ctas  # of the pair
        leads = part == 0
        place = cluster.get_flat_coord(rank)
        if warp == TMA_WARP:
            cpasync.prefetch_descriptor(tma_a)
            cpasync.prefetch_descriptor(tma_b)
            cpasync.prefetch_descriptor(tma_c)

        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(a_type, a_layout.outer, 1024, a_layout.inner, "sA")
        sB = smem.allocate_tensor(b_type, b_layout.outer, 1024, b_layout.inner, "sB")
        sC = smem.allocate_tensor(c_type, c_layout.outer, 1024, c_layout.inner, "sC")
        mainloop = pipeline.PipelineTmaUmma.create(
            num_stages=STAGES,
            producer_group=ONE,
            consumer_group=CooperativeGroup(Agent.Thread, readers),
            tx_count=tx_count,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
            cta_layout_vmnk=cluster,
            defer_sync=True,
            name="mainloop",
        )
        results = pipeline.PipelineUmmaAsync.create(
            num_stages=ACC_STAGES,
            producer_group=ONE,
            consumer_group=CooperativeGroup(Agent.Thread, 32 * EPILOGUE_WARPS * ctas),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * ACC_STAGES),
            cta_layout_vmnk=cluster,
            defer_sync=True,
            name="results",
        )
        tmem = utils.TmemAllocator(
            smem.allocate_array(cute.Int32, 1),
            barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * (EPILOGUE_WARPS + 1)),
            is_two_cta=ctas == 2,
            two_cta_tmem_dealloc_mbar_ptr=smem.allocate_array(cute.Int64, 1),
        )
        if plan.dynamic:
            answers = smem.allocate_array(cute.Int32, 4 * RESPONSES, 16)
            fetches = pipeline.PipelineClcFetchAsync.create(
                num_stages=RESPONSES,
                producer_group=ONE,
                consumer_group=CooperativeGroup(Agent.Thread, followers),
                barrier_storage=smem.allocate_array(cute.Int64, 2 * RESPONSES),
                cta_layout_vmnk=cluster,
                defer_sync=True,
                name="schedule",
            )
            scheduler = utils.ClcDynamicPersistentTileScheduler.create(
                schedule, arch.block_idx(), arch.grid_dim(), answers
            )
            asks, responses = fetches.make_participants()
        else:
            scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
            responses = None
        pipeline.pipeline_init_arrive(cluster)
        pipeline.pipeline_init_wait(cluster)
        work = scheduler.initial_work_tile_info()

        mma = tiled_mma.get_slice(part)
        gC = cute.local_tile(mC, tiler[:2], (None, None))

        if warp == TMA_WARP:
            # (tile, rest M, rest K) of this CTA: its part of the pair's tile, of which it fetches what others do not
            tCgA = mma.partition_A(cute.local_tile(mA, (tiler[0], tiler[2]), (None, None)))
            tCgB = mma.partition_B(cute.local_tile(mB, (tiler[1], tiler[2]), (None, None)))
            tAsA, tAgA = cpasync.tma_partition(
                tma_a, place[2], cute.make_layout(cute.size(cluster, mode=[2])), cute.group_modes(sA, 0, 3),
                cute.group_modes(tCgA, 0, 3),
            )  # fmt: skip
            tBsB, tBgB = cpasync.tma_partition(
                tma_b, place[1], cute.make_layout(cute.size(cluster, mode=[1])), cute.group_modes(sB, 0, 3),
                cute.group_modes(tCgB, 0, 3),
            )  # fmt: skip
            share_a, share_b = None, None
            if shared:
                share_a = cpasync.create_tma_multicast_mask(cluster, place, 2)
                share_b = cpasync.create_tma_multicast_mask(cluster, place, 1)
            producer = mainloop.make_producer()
            while work.is_valid_tile:
                m, n, _ = work.tile_idx
                for k in range(tAgA.shape[2]):
                    stage = producer.acquire_and_advance()
                    cute.copy(
                        tma_a, tAgA[None, m // ctas, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier,
                        mcast_mask=share_a,
                    )  # fmt: skip
                    cute.copy(
                        tma_b, tBgB[None, n, k], tBsB[None, stage.index], tma_bar_ptr=stage.barrier,
                        mcast_mask=share_b,
                    )  # fmt: skip
                work = next_work(scheduler, responses)
            producer.tail()

        if warp == MMA_WARP:
            tmem.wait_for_alloc()
            acc = cute.make_tensor(tmem.retrieve_ptr(acc_type), acc_layout)
            fA, fB = tiled_mma.make_fragment_A(sA), tiled_mma.make_fragment_B(sB)
            consumer, full = mainloop.make_consumer(), results.make_producer()
            k_tiles = cute.ceil_div(mA.shape[1], tiler[2])
            while work.is_valid_tile:
                if leads:
                    tile = full.acquire_and_advance()
                    into = acc[None, None, None, tile.index]
                    for k in range(k_tiles):
                        stage = consumer.wait_and_advance()
                        for kb in cute.range_constexpr(cute.size(fA, mode=[2])):
                            adds = tiled_mma.set(tcgen05.Field.ACCUMULATE, k > 0 or kb > 0)
                            into = acc[None, None, None, tile.index]
                            cute.gemm(
                                adds, into, fA[None, None, kb, stage.index], fB[None, None, kb, stage.index], into
                            )
                        stage.release()
                    tile.commit()
                work = next_work(scheduler, responses)

        if plan.dynamic:
            if warp == SCHEDULER_WARP and rank == 0:
                while work.is_valid_tile:
                    response = asks.acquire_and_advance()
                    scheduler.advance_to_next_work(response.barrier, response.index)
                    work = next_work(scheduler, responses)
                asks.tail()

        if warp < EPILOGUE_WARPS:
            tmem.allocate(columns)
            tmem.wait_for_alloc()
            ptr = tmem.retrieve_ptr(acc_type)
            acc = cute.make_tensor(ptr, acc_layout)
            epilogue(acc, results.make_consumer(), sC, tma_c, mma.partition_C(gC), scheduler, responses, work)
            tmem.relinquish_alloc_permit()
            tmem.free(ptr)

    return kernel


class Form(NamedTuple):
    """All that the kernel knows when it is compiled."""

    plan: Plan
    tiled_mma: cute.TiledMma
    tiler: tuple[int, int, int]  # of all CTAs that multiply together
    a_type: cute.DType
    b_type: cute.DType
    acc_type: cute.DType
    c_type: cute.DType
    a_layout: cute.ComposedLayout
    b_layout: cute.ComposedLayout
    c_layout: cute.ComposedLayout
    epi_tile: tuple[cute.Layout, cute.Layout]

    @property
    def cta_tile(self):
        m, n, k = self.tiler
        return m // self.plan.ctas, n, k


@functools.cache
def form_of(plan, dtype, c_type, a_mode, b_mode):
    """The form of a problem of `dtype`; a_mode, b_mode: along which A and B are contiguous."""
    majors = [tcgen05.OperandMajorMode.K if mode == 1 else tcgen05.OperandMajorMode.MN for mode in (a_mode, b_mode)]
    acc_type = cute.Int32 if dtype.is_integer else cute.Float32
    group = tcgen05.CtaGroup(plan.ctas)
    tiled_mma = sm100.make_trivial_tiled_mma(dtype, *majors, acc_type, group, (TILE_M * plan.ctas, TILE_N))
    tiler = (TILE_M * plan.ctas, TILE_N, 8 * ROW // dtype.width)
    epi_tile = sm100.compute_epilogue_tile_shape((TILE_M, TILE_N, tiler[2]), plan.ctas == 2, ROWS, c_type)
    return Form(
        plan, tiled_mma, tiler, dtype, dtype, acc_type, c_type,
        sm100.make_smem_layout_a(tiled_mma, tiler, dtype, STAGES),
        sm100.make_smem_layout_b(tiled_mma, tiler, dtype, STAGES),
        sm100.make_smem_layout_epi(c_type, ROWS, epi_tile, STORE_STAGES), epi_tile,
    )  # fmt: skip


def arguments(a, b, c, dtype, most_clusters, plan=USUAL):
    """The kernel, its arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a: (M, K), b: (N, K), c: (M, N), each contiguous along either mode by multiples of 16 bytes.
    """
    tC, c_mode = operand(c, gemm_host.RESULTS[dtype])
    if c_mode == 0:  # the same, seen from the other side
        a, b, (tC, _) = b, a, operand(c.T, tC.element_type)
    (tA, a_mode), (tB, b_mode) = operand(a, dtype), operand(b, dtype)
    form = form_of(plan, dtype, tC.element_type, a_mode, b_mode)
    cluster_m, cluster_n = plan.cluster
    thr_id = form.tiled_mma.thr_id
    load_a = sm100.cluster_shape_to_tma_atom_A(plan.cluster, thr_id)
    load_b = sm100.cluster_shape_to_tma_atom_B(plan.cluster, thr_id)
    vmnk = cute.tiled_divide(cute.make_layout((*plan.cluster, 1)), (thr_id.shape,)).shape
    tma_a, mA = make_tiled_tma_atom_A(load_a, tA, one(form.a_layout), form.tiler, form.tiled_mma, vmnk)
    tma_b, mB = make_tiled_tma_atom_B(load_b, tB, one(form.b_layout), form.tiler, form.tiled_mma, vmnk)
    put = cpasync.CopyBulkTensorTileS2GOp()
    tma_c, mC = cpasync.make_tiled_tma_atom(put, tC, cute.select(form.c_layout, mode=[0, 1]), form.epi_tile)

    tiles_m = math.ceil(math.ceil(a.shape[0] / TILE_M) / cluster_m) * cluster_m  # whole clusters
    tiles_n = math.ceil(math.ceil(b.shape[0] / TILE_N) / cluster_n) * cluster_n
    rows, columns = tiles_m * TILE_M, tiles_n * TILE_N
    k = math.ceil(a.shape[1] / form.tiler[2]) * form.tiler[2]
    mA, mB, mC = cover(mA, rows, k), cover(mB, columns, k), cover(mC, rows, columns)
    tiles = (cute.Int32(tiles_m), cute.Int32(tiles_n), 1)
    params = utils.ClcDynamicPersistentTileSchedulerParams if plan.dynamic else utils.PersistentTileSchedulerParams
    schedule = params(tiles, (*plan.cluster, 1))
    return kernel_of(form), (tma_a, mA, tma_b, mB, tma_c, mC, schedule), schedule.get_grid_shape(most_clusters)


kernel_of = functools.cache(make_kernel)


def one(staged):
    """The layout of one stage."""
    return cute.slice_(staged, (None, None, None, 0))


def simulate(a, b, c, dtype, plan=USUAL, clusters=1, **options):
    """Run the GEMM in the simulator, on so many clusters at most."""
    kernel, args, grid = arguments(a, b, c, dtype, clusters, plan)
    cute.simulate(kernel, arch=TARGET, **options)[grid, THREADS](*args)


def launcher(a, b, c, dtype, plan=USUAL):
    """A launch of the GEMM for arrays of the device, prepared: call it as often as you like."""
    most = utils.HardwareInfo().get_max_active_clusters(math.prod(plan.cluster))
    kernel, args, grid = arguments(a, b, c, dtype, most, plan)
    return cute.launch(kernel, grid=grid, block=THREADS).prepare(*args)


def main():
    options = gemm_host.parser(__doc__, tuple(DTYPES), "sm_100a", "384 x 256 x 256")
    options.add_argument("--majors", default="kkn", help="the mode along which A, B and C are contiguous: kkn to mnm")
    options.add_argument("--ctas", type=int, choices=(1, 2), default=1, help="CTAs that multiply together")
    options.add_argument("--cluster", help="CTAs along M x N, as 4x2; default: those that multiply together")
    options.add_argument("--schedule", choices=("static", "clc"), default="static")
    args = options.parse_args()
    dtype = DTYPES[args.dtype]
    cluster = tuple(int(x) for x in (args.cluster or f"{args.ctas}x1").split("x"))
    plan = Plan(args.ctas, cluster, args.schedule == "clc")
    gpu = not (args.simulate or args.compile_only) and gemm_host.has_gpu((10, 0), (10, 9))
    small = (384, 256, 256)
    m, n, k = (getattr(args, x) or (4096 if gpu or args.compile_only else d) for x, d in zip("mnk", small, strict=True))
    arrays = gemm_host.problem(m, n, k, dtype, majors=args.majors)
    if args.compile_only:
        kernel, made, _ = arguments(*arrays, dtype, 74, plan)
        gemm_host.compile_only(kernel, made, f"blackwell_gemm_{args.dtype}_{args.ctas}", args.arch)
    elif gpu:
        gemm_host.run_on_gpu(arrays, lambda a, b, c: launcher(a, b, c, dtype, plan), args.dtype)
    else:
        run = lambda: simulate(*arrays, dtype, plan, progress=sys.stderr.isatty())  # noqa: E731
        gemm_host.simulate(arrays, run, f"{args.dtype}, {plan}")


if __name__ == "__main__":
    main()
