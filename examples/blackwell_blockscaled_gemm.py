# SPDX-License-Identifier: Apache-2.0
"""A Blackwell GEMM of numbers in 8 or 4 bits that share scale factors: C = (A * SFA) @ (B * SFB).T.

The factors of 16 or 32 neighbours along K, of A (M, K) and of B (N, K), come through shared memory to tensor memory by
tcgen05.cp, which the matrix unit does in order with the multiplies that use them. All else is as in blackwell_gemm.py.

It has run in the simulator and through the assembler; on Blackwell itself it has not run.

    python examples/blackwell_blockscaled_gemm.py --dtype nvf4            a small problem, in the simulator
    python examples/blackwell_blockscaled_gemm.py --dtype mxf8 --ctas 2
    python examples/blackwell_blockscaled_gemm.py --compile-only          PTX and cubin for sm_100a into out/
"""

import functools
import math
import sys
from typing import NamedTuple

import numpy as np
from blackwell_gemm import (
    ACC_STAGES,
    EPILOGUE_WARPS,
    MMA_WARP,
    ONE,
    ROW,
    ROWS,
    STORE_STAGES,
    TARGET,
    TILE_M,
    TILE_N,
    TMA_WARP,
    make_epilogue,
    next_static,
    one,
)
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, make_tiled_tma_atom_A, make_tiled_tma_atom_B, tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack
from numba_cute.utils import blockscaled_layout, sm100

import gemm_host
from gemm_host import cover

STAGES, WARPS = 4, 6
THREADS = 32 * WARPS


class Kind(NamedTuple):
    """The parts of a number: elements, factors, and how many elements share one."""

    element: cute.DType
    factor: cute.DType
    vector: int


KINDS = {
    "mxf8": Kind(cute.Float8E4M3FN, cute.Float8E8M0FNU, 32),
    "mxf4": Kind(cute.Float4E2M1FN, cute.Float8E8M0FNU, 32),
    "nvf4": Kind(cute.Float4E2M1FN, cute.Float8E4M3FN, 16),
}
C_TYPE = cute.BFloat16
MOST = {cute.Float8E4M3FN: 448.0, cute.Float4E2M1FN: 6.0}  # the greatest number of each element type


class Form(NamedTuple):
    """All that the kernel knows when it is compiled. sfb_mma: how a CTA takes B's factors, all of them."""

    kind: Kind
    ctas: int
    tiled_mma: cute.TiledMma
    sfb_mma: cute.TiledMma
    tiler: tuple[int, int, int]
    epi_tile: tuple[cute.Layout, cute.Layout]


@functools.cache
def form_of(kind, ctas):
    K = OperandMajorMode.K

    def multiply(group, rows):
        return sm100.make_blockscaled_trivial_tiled_mma(
            kind.element, kind.element, K, K, kind.factor, kind.vector, group, (rows, TILE_N)
        )

    tiled_mma = multiply(CtaGroup(ctas), TILE_M * ctas)
    tiler = (TILE_M * ctas, TILE_N, 8 * ROW // kind.element.width)
    epi_tile = sm100.compute_epilogue_tile_shape((TILE_M, TILE_N, tiler[2]), ctas == 2, ROWS, C_TYPE)
    return Form(kind, ctas, tiled_mma, multiply(CtaGroup.ONE, TILE_M), tiler, epi_tile)


class Layouts(NamedTuple):
    """Of A, B, their factors and C in shared memory."""

    a: cute.ComposedLayout
    b: cute.ComposedLayout
    sfa: cute.Layout
    sfb: cute.Layout
    c: cute.ComposedLayout


@functools.cache
def layouts_of(form):
    of = form.tiled_mma, form.tiler
    vector = form.kind.vector
    return Layouts(
        sm100.make_smem_layout_a(*of, form.kind.element, STAGES),
        sm100.make_smem_layout_b(*of, form.kind.element, STAGES),
        blockscaled_layout.make_smem_layout_sfa(*of, vector, STAGES),
        blockscaled_layout.make_smem_layout_sfb(*of, vector, STAGES),
        sm100.make_smem_layout_epi(C_TYPE, ROWS, form.epi_tile, STORE_STAGES),
    )


def make_kernel(form):
    """The kernel of a form."""
    (element, factor, vector), ctas, tiled_mma, sfb_mma, tiler, epi_tile = form
    layouts = layouts_of(form)
    a_layout, b_layout, sfa_layout, sfb_layout, c_layout = layouts
    cluster = cute.tiled_divide(cute.make_layout((ctas, 1, 1)), (tiled_mma.thr_id.shape,))
    tx_count = ctas * sum(cute.size_in_bytes(t, one(x)) for t, x in zip((element, element, factor, factor), layouts))
    accumulators = tiled_mma.make_fragment_C((*tiled_mma.partition_shape_C(tiler[:2]), ACC_STAGES))
    acc_layout, acc_columns = accumulators.layout, ACC_STAGES * TILE_N
    sfa_tmem = blockscaled_layout.make_tmem_layout_sfa(tiled_mma, tiler, vector, one(sfa_layout))
    sfb_tmem = blockscaled_layout.make_tmem_layout_sfb(tiled_mma, tiler, vector, one(sfb_layout))
    sfa_columns = TILE_M // 32 * (tiler[2] // tiled_mma.shape_mnk[2])
    epilogue = make_epilogue((TILE_M, *tiler[1:]), epi_tile, ctas, cute.Float32, C_TYPE, next_static)
    share = (1 << ctas) - 1 if ctas == 2 else None
    to_tmem = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(CtaGroup(ctas)), factor)

    @cute.cluster_shape(ctas)
    @cuda.jit(launch_bounds=(THREADS, 1))
    def kernel(tma_a, mA, tma_b, mB, tma_sfa, mSFA, tma_sfb, mSFB, tma_c, mC, schedule):
        bidx, _, _ = arch.block_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        part = bidx % ctas  # of the pair
        leads = part == 0
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(element, a_layout.outer, 1024, a_layout.inner, "sA")
        sB = smem.allocate_tensor(element, b_layout.outer, 1024, b_layout.inner, "sB")
        sSFA = smem.allocate_tensor(factor, sfa_layout, 1024, name="sSFA")
        sSFB = smem.allocate_tensor(factor, sfb_layout, 1024, name="sSFB")
        sC = smem.allocate_tensor(C_TYPE, c_layout.outer, 1024, c_layout.inner, "sC")
        mainloop = pipeline.PipelineTmaUmma.create(
            num_stages=STAGES,
            producer_group=ONE,
            consumer_group=ONE,
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
        scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
        pipeline.pipeline_init_arrive(cluster)
        pipeline.pipeline_init_wait(cluster)
        work = scheduler.initial_work_tile_info()
        mma, mma_sfb = tiled_mma.get_slice(part), sfb_mma.get_slice(0)

        if warp == TMA_WARP:
            gA = mma.partition_A(cute.local_tile(mA, (tiler[0], tiler[2]), (None, None)))
            gB = mma.partition_B(cute.local_tile(mB, (tiler[1], tiler[2]), (None, None)))
            gSFA = mma.partition_A(cute.local_tile(mSFA, (tiler[0], tiler[2]), (None, None)))
            gSFB = mma_sfb.partition_B(cute.local_tile(mSFB, (tiler[1], tiler[2]), (None, None)))
            tAsA, tAgA = tma_parts(tma_a, 0, 1, sA, gA)
            tBsB, tBgB = tma_parts(tma_b, 0, 1, sB, gB)
            tAsSFA, tAgSFA = tma_parts(tma_sfa, 0, 1, sSFA, gSFA)
            tBsSFB, tBgSFB = tma_parts(tma_sfb, part, ctas, sSFB, gSFB)
            tAsSFA, tAgSFA = cute.filter_zeros(tAsSFA), cute.filter_zeros(tAgSFA)
            tBsSFB, tBgSFB = cute.filter_zeros(tBsSFB), cute.filter_zeros(tBgSFB)
            producer = mainloop.make_producer()
            while work.is_valid_tile:
                m, n, _ = work.tile_idx
                m //= ctas
                for k in range(tAgA.shape[2]):
                    stage = producer.acquire_and_advance()
                    i, bar = stage.index, stage.barrier
                    cute.copy(tma_a, tAgA[None, m, k], tAsA[None, i], tma_bar_ptr=bar)
                    cute.copy(tma_b, tBgB[None, n, k], tBsB[None, i], tma_bar_ptr=bar)
                    cute.copy(tma_sfa, tAgSFA[None, m, k, 0], tAsSFA[None, i], tma_bar_ptr=bar)
                    cute.copy(tma_sfb, tBgSFB[None, n, k, 0], tBsSFB[None, i], tma_bar_ptr=bar, mcast_mask=share)
                work = next_static(scheduler, None)
            producer.tail()

        if warp == MMA_WARP:
            tmem.wait_for_alloc()
            ptr = tmem.retrieve_ptr(cute.Float32)
            acc = cute.make_tensor(ptr, acc_layout)
            tSFA = cute.make_tensor(cute.recast_ptr(ptr + acc_columns, dtype=factor), sfa_tmem)
            tSFB = cute.make_tensor(cute.recast_ptr(ptr + acc_columns + sfa_columns, dtype=factor), sfb_tmem)
            copy_a, sSFA_rows, tSFA_rows = factors_to_tmem(to_tmem, sSFA, tSFA)
            copy_b, sSFB_rows, tSFB_rows = factors_to_tmem(to_tmem, sSFB, tSFB)
            fA, fB = tiled_mma.make_fragment_A(sA), tiled_mma.make_fragment_B(sB)
            consumer, full = mainloop.make_consumer(), results.make_producer()
            k_tiles = cute.ceil_div(mA.shape[1], tiler[2])
            while work.is_valid_tile:
                if leads:
                    tile = full.acquire_and_advance()
                    into = acc[None, None, None, tile.index]
                    for k in range(k_tiles):
                        stage = consumer.wait_and_advance()
                        cute.copy(copy_a, sSFA_rows[None, None, None, None, stage.index], tSFA_rows)
                        cute.copy(copy_b, sSFB_rows[None, None, None, None, stage.index], tSFB_rows)
                        adds = tiled_mma.set(tcgen05.Field.ACCUMULATE, k > 0)
                        block = (None, None, None, stage.index)
                        cute.gemm(adds, into, [fA[block], tSFA], [fB[block], tSFB], into)
                        stage.release()
                    tile.commit()
                work = next_static(scheduler, None)

        if warp < EPILOGUE_WARPS:
            tmem.allocate(512)
            tmem.wait_for_alloc()
            ptr = tmem.retrieve_ptr(cute.Float32)
            acc, gC = cute.make_tensor(ptr, acc_layout), cute.local_tile(mC, tiler[:2], (None, None))
            epilogue(acc, results.make_consumer(), sC, tma_c, mma.partition_C(gC), scheduler, None, work)
            tmem.relinquish_alloc_permit()
            tmem.free(ptr)

    return kernel


@cuda.jit
def tma_parts(atom, which, of, tile, source):
    """Partition a tile for the copies of one of `of` CTAs, in shared and in global memory."""
    return cpasync.tma_partition(
        atom, which, cute.make_layout(of), cute.group_modes(tile, 0, 3), cute.group_modes(source, 0, 3)
    )


@cuda.jit
def factors_to_tmem(atom, sSF, tSF):
    """The copy of factors from shared memory (by stages) to tensor memory, and what it copies."""
    compact = cute.filter_zeros(tSF)
    copy = tcgen05.make_s2t_copy(atom, compact)
    source = copy.get_slice(0).partition_S(cute.filter_zeros(sSF))
    return copy, tcgen05.get_s2t_smem_desc_tensor(copy, source), copy.get_slice(0).partition_D(compact)


class Problem(NamedTuple):
    """a (M, K), b (N, K), elements side by side in bytes; sfa, sfb, factors in the order of the hardware; c (M, N)."""

    a: np.ndarray
    b: np.ndarray
    sfa: np.ndarray
    sfb: np.ndarray
    c: np.ndarray


def factor_layout(rows, k, vector):
    """Return the place of the factor of an element (row, k, 0) of an operand."""
    return blockscaled_layout.tile_atom_to_shape_SF((rows, k, 1), vector)


def quantised(rng, rows, k, kind):
    """A random operand: its bytes, its factors in the order of the hardware, and its values in float64."""
    values = rng.standard_normal((rows, k // kind.vector, kind.vector), dtype=np.float32)
    least = np.abs(values).max(-1) / MOST[kind.element]  # with which no element overflows
    powers = kind.factor is cute.Float8E8M0FNU
    factors = (np.exp2(np.ceil(np.log2(least))) if powers else least).astype(kind.factor.numpy)
    scales = factors.astype(np.float32)
    elements = (values / np.where(scales == 0, 1, scales)[..., None]).astype(kind.element.numpy)
    lay = factor_layout(rows, k, kind.vector)
    stored = np.zeros(cute.cosize(lay), kind.factor.numpy)
    for row in range(rows):
        for block in range(k // kind.vector):
            stored[lay((row, block * kind.vector, 0))] = factors[row, block]
    exact = (elements.astype(np.float64) * scales.astype(np.float64)[..., None]).reshape(rows, k)
    return packed(elements.reshape(rows, k)), stored, exact


def packed(elements):
    """Elements as memory holds them: two of four bits in a byte, the first in its low bits."""
    codes = elements.view(np.uint8)
    if elements.dtype != cute.Float4E2M1FN.numpy:
        return codes
    return codes[:, ::2] | codes[:, 1::2] << 4


def problem(m, n, k, kind, seed=0):
    """A random problem with a poisoned C, and its A and B in float64."""
    rng = np.random.default_rng(seed)
    (a, sfa, exact_a), (b, sfb, exact_b) = (quantised(rng, rows, k, kind) for rows in (m, n))
    c = np.full((m, n), math.nan, C_TYPE.numpy)
    return Problem(a, b, sfa, sfb, c), exact_a, exact_b


def operand(array, dtype):
    """A tensor of the elements in an array of bytes; its extents are known at run time."""
    t = from_dlpack(array, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    return cute.recast_tensor(t, dtype)


def factors_of(array, rows, k, kind):
    """A tensor of an operand's factors."""
    ptr = cute.recast_ptr(from_dlpack(array, assumed_align=16).iterator, dtype=kind.factor)
    return cute.make_tensor(ptr, factor_layout(rows, k, kind.vector))


kernel_of = functools.cache(make_kernel)


def arguments(p, kind, most_clusters=1, ctas=1):
    """The kernel, its arguments and grid for arrays of the host (to simulate or compile) or of the device."""
    form = form_of(kind, ctas)
    layouts, thr_id, cluster = layouts_of(form), form.tiled_mma.thr_id, (ctas, 1)
    (m, n), k = p.c.shape, p.a.shape[1] * 8 // kind.element.width
    vmnk = cute.tiled_divide(cute.make_layout((*cluster, 1)), (thr_id.shape,)).shape
    sfb_vmnk = cute.tiled_divide(cute.make_layout((*cluster, 1)), (form.sfb_mma.thr_id.shape,)).shape
    load = sm100.cluster_shape_to_tma_atom_A(cluster, thr_id)
    load_sfb = sm100.cluster_shape_to_tma_atom_SFB(cluster, thr_id)
    sfa, sfb = (factors_of(x, rows, k, kind) for x, rows in ((p.sfa, m), (p.sfb, n)))
    whole = form.tiler, form.tiled_mma, vmnk
    tma_a, mA = make_tiled_tma_atom_A(load, operand(p.a, kind.element), one(layouts.a), *whole)
    tma_b, mB = make_tiled_tma_atom_B(load, operand(p.b, kind.element), one(layouts.b), *whole)
    tma_sfa, mSFA = make_tiled_tma_atom_A(load, sfa, one(layouts.sfa), *whole, internal_type=cute.Int16)
    tma_sfb, mSFB = make_tiled_tma_atom_B(
        load_sfb, sfb, one(layouts.sfb), (TILE_M, *form.tiler[1:]), form.sfb_mma, sfb_vmnk,
        internal_type=cute.Int16,
    )  # fmt: skip
    tC = from_dlpack(p.c, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    put = cpasync.CopyBulkTensorTileS2GOp()
    tma_c, mC = cpasync.make_tiled_tma_atom(put, tC, cute.select(layouts.c, mode=[0, 1]), form.epi_tile)
    tiles_m = math.ceil(math.ceil(m / TILE_M) / ctas) * ctas
    tiles_n = math.ceil(n / TILE_N)
    deep = math.ceil(k / form.tiler[2]) * form.tiler[2]
    mA, mB = cover(mA, tiles_m * TILE_M, deep), cover(mB, tiles_n * TILE_N, deep)
    mC = cover(mC, tiles_m * TILE_M, tiles_n * TILE_N)
    schedule = utils.PersistentTileSchedulerParams((cute.Int32(tiles_m), cute.Int32(tiles_n), 1), (*cluster, 1))
    args = (tma_a, mA, tma_b, mB, tma_sfa, mSFA, tma_sfb, mSFB, tma_c, mC, schedule)
    return kernel_of(form), args, schedule.get_grid_shape(most_clusters)


def simulate(p, kind, ctas=1, **options):
    """Run the GEMM in the simulator, on one cluster."""
    kernel, args, grid = arguments(p, kind, 1, ctas)
    cute.simulate(kernel, arch=TARGET, **options)[grid, THREADS](*args)


def main():
    options = gemm_host.parser(__doc__, tuple(KINDS), TARGET, "256 x 256 x 512")
    options.add_argument("--ctas", type=int, choices=(1, 2), default=1, help="CTAs that multiply together")
    args = options.parse_args()
    kind = KINDS[args.dtype]
    m, n, k = (getattr(args, x) or small for x, small in zip("mnk", (256, 256, 512), strict=True))
    p, a, b = problem(m, n, k, kind)
    if args.compile_only:
        kernel, made, _ = arguments(p, kind, 1, args.ctas)
        gemm_host.compile_only(kernel, made, f"blackwell_{args.dtype}_gemm_{args.ctas}", args.arch)
        return
    print(f"simulating {m} x {n} x {k} {args.dtype}, {args.ctas} CTAs together")
    simulate(p, kind, args.ctas, progress=sys.stderr.isatty())
    print(f"relative error against float64: {gemm_host.check(a, b, p.c):.2e}")


if __name__ == "__main__":
    main()
