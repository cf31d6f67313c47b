# SPDX-License-Identifier: Apache-2.0
"""A block-scaled Blackwell GEMM in the experimental API: C = (A * SFA) @ (B * SFB).T, where each 32 (mxf8, mxf4) or 16
(nvf4) elements along K have one factor. The kernel takes A, B, their factors and C as plain tensors.

One block, or a pair, makes a tile: a warp loads tiles and factors by TMA, one takes the factors to tensor memory and
multiplies, four store the results. Of a pair each block holds its half of A, of A's factors and of B, and all of B's
factors, of which each loads a half for both.

It has run in the simulator and through the assembler; on Blackwell itself it has not run.

    python examples/experimental_blockscaled_gemm.py                    a small problem, in the simulator
    python examples/experimental_blockscaled_gemm.py --dtype nvf4 --ctas 2
    python examples/experimental_blockscaled_gemm.py --compile-only     PTX and cubin for sm_100a into out/
"""

import functools
import math
import sys

import blackwell_blockscaled_gemm as blockscaled
from blackwell_blockscaled_gemm import KINDS, STAGES, STORE_STAGES, TILE_M, TILE_N, one
from experimental_blackwell_gemm import (
    EPILOGUE_WARPS,
    LOADS,
    MMA_WARP,
    MULTIPLIES,
    SMEM,
    TARGET,
    THREADS,
    TMA_WARP,
    TMEM,
)

import numba_cute as cute
from numba_cute import arch, experimental as ext
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup
from numba_cute.runtime import from_dlpack
from numba_cute.utils import blockscaled_layout

import gemm_host

FACTORS = cute.Int16  # TMA takes two factors for one element


def make_load(ctas, sfb_vmnk):
    """Make what loads B's factors, which both blocks of a pair need: whole, or half of them for both."""
    kind = LOADS[ctas, ctas == 2]

    @cute.jit
    def load(src, dst, full, at):
        if ctas == 1:
            ext.tma_load(src, dst, full, cta_v_map=at, internal_type=FACTORS)
        else:
            ext.tma_load_multicast(
                src, dst, full, vmnk_layout=sfb_vmnk, multicast_mode=1, cta_v_map=at, tma_operation_type=kind,
                internal_type=FACTORS,
            )  # fmt: skip

    return load


def make_kernel(form):
    """The kernel of a `blackwell_blockscaled_gemm.Form`: what it holds is static in the kernel."""
    (element, factor, vector), ctas, tiled_mma, sfb_mma, tiler, _ = form
    layouts = blockscaled.layouts_of(form)
    a_layout, b_layout, sfa_layout, sfb_layout, _ = layouts
    blocks = cute.make_layout((ctas, 1, 1))
    vmnk, sfb_vmnk = (cute.tiled_divide(blocks, (mma.thr_id.shape,)) for mma in (tiled_mma, sfb_mma))
    load, multiply, load_sfb = LOADS[ctas, False], MULTIPLIES[ctas], make_load(ctas, sfb_vmnk)
    acc_layout = ext.make_tmem_layout_acc(tiled_mma, tiler, 1)
    sfa_tmem = blockscaled_layout.make_tmem_layout_sfa(tiled_mma, tiler, vector, one(sfa_layout))
    sfb_tmem = blockscaled_layout.make_tmem_layout_sfb(tiled_mma, tiler, vector, one(sfb_layout))
    to_tmem = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(CtaGroup(ctas)), factor)
    cta_tile = (TILE_M, *tiler[1:])
    a_tile, b_tile, sfb_tile = (TILE_M, tiler[2]), (TILE_N // ctas, tiler[2]), (TILE_N, tiler[2])
    k_blocks = tiler[2] // tiled_mma.shape_mnk[2]

    @cute.cluster_shape(ctas)
    @ext.kernel(launch_bounds=(THREADS, 1))
    def gemm(mA, mB, mSFA, mSFB, mC):
        m, n, _ = arch.block_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        part = m % ctas  # of the pair
        sA = ext.allocate(element, SMEM, a_layout, alignment=1024, name="sA")
        sB = ext.allocate(element, SMEM, b_layout, alignment=1024, name="sB")
        sSFA = ext.allocate(factor, SMEM, sfa_layout, alignment=1024, name="sSFA")
        sSFB = ext.allocate(factor, SMEM, sfb_layout, alignment=1024, name="sSFB")
        acc = ext.allocate(cute.Float32, TMEM, acc_layout, is2cta=ctas == 2)
        tSFA = ext.allocate(factor, TMEM, sfa_tmem, is2cta=ctas == 2)
        tSFB = ext.allocate(factor, TMEM, sfb_tmem, is2cta=ctas == 2)
        mainloop = ext.TMAToUMMAPipeline.create(
            num_stages=STAGES, tma_operation_type=load, mma_operation_type=multiply, cluster_layout_vmnk=vmnk
        )
        results = ext.UMMAtoAsyncPipeline.create(
            num_stages=1, mma_operation_type=multiply, consumer_arv_count=32 * EPILOGUE_WARPS * ctas,
            cluster_layout_vmnk=vmnk,
        )  # fmt: skip
        gA, gB = cute.zipped_divide(mA, a_tile), cute.zipped_divide(mB, b_tile)
        gSFA, gSFB = cute.zipped_divide(mSFA, a_tile), cute.zipped_divide(mSFB, sfb_tile)
        k_tiles = cute.size(gA, mode=[1, 1])

        if warp == TMA_WARP:
            a_map = ext.get_cta_v_map_ab(mA, tiler, tiled_mma, "A")
            b_map = ext.get_cta_v_map_ab(mB, tiler, tiled_mma, "B")
            sfa_map = ext.get_cta_v_map_ab(mSFA, tiler, tiled_mma, "SFA")
            sfb_map = ext.get_cta_v_map_ab(mSFB, cta_tile, sfb_mma, "SFB")
            for k in range(k_tiles):
                stage, i = mainloop.producer_acquire_and_get_stage()
                full, at = ext.get_mbarrier(stage), (None, None, None, i)
                tile_a, tile_b = gA[(None, None), (m, k)], gB[(None, None), (ctas * n + part, k)]
                factors_a, factors_b = gSFA[(None, None), (m, k, 0)], gSFB[(None, None), (n, k, 0)]
                ext.tma_load(tile_a, sA[at], full, cta_v_map=a_map, tma_operation_type=load)
                ext.tma_load(tile_b, sB[at], full, cta_v_map=b_map, tma_operation_type=load)
                ext.tma_load(
                    factors_a, sSFA[at], full, cta_v_map=sfa_map, tma_operation_type=load, internal_type=FACTORS
                )
                load_sfb(factors_b, sSFB[at], full, sfb_map)
                mainloop.producer_commit_and_advance()
            mainloop.producer_tail()

        if warp == MMA_WARP and part == 0:
            _, tile = results.producer_acquire_and_get_stage()
            into = acc[None, None, None, tile]
            tSFA_rows, tSFB_rows = cute.filter_zeros(tSFA), cute.filter_zeros(tSFB)
            copy_a = tcgen05.make_s2t_copy(to_tmem, tSFA_rows).get_slice(0)
            copy_b = tcgen05.make_s2t_copy(to_tmem, tSFB_rows).get_slice(0)
            sSFA_rows, sSFB_rows = cute.filter_zeros(sSFA), cute.filter_zeros(sSFB)
            for k in range(k_tiles):
                _, i = mainloop.consumer_wait_and_get_stage()
                ext.partition_and_copy(copy_a, sSFA_rows[None, None, None, i], tSFA_rows)
                ext.partition_and_copy(copy_b, sSFB_rows[None, None, None, i], tSFB_rows)
                for kb in cute.range_constexpr(k_blocks):
                    atom = cute.make_mma_atom(tiled_mma.op).set(tcgen05.Field.ACCUMULATE, k > 0 or kb > 0)
                    a, b = sA[None, None, kb, i], sB[None, None, kb, i]
                    ext.dot_block_scaled(atom, a, tSFA[None, None, kb], b, tSFB[None, None, kb], into)
                mainloop.consumer_release_and_advance()
            results.producer_commit_and_advance()
            results.producer_tail()

        if warp < EPILOGUE_WARPS:
            _, tile = results.consumer_wait_and_get_stage()
            stores = ext.TMAStorePipeline(
                stages=STORE_STAGES, arv_count=32 * EPILOGUE_WARPS, barrier_id=1, tma_warp_id=0
            )
            ext.epilogue_tma_store(cta_tile, ctas == 2, acc[(None, None), 0, 0, tile], mC, (m, n), stores, 0)
            stores.tail()
            results.consumer_release_and_advance()

    return gemm


kernel_of = functools.cache(make_kernel)


def arguments(p, kind, ctas=1):
    """The kernel, its arguments and grid for a `blackwell_blockscaled_gemm.Problem`."""
    (m, n), k = p.c.shape, p.a.shape[1] * 8 // kind.element.width
    sfa, sfb = (blockscaled.factors_of(x, rows, k, kind) for x, rows in ((p.sfa, m), (p.sfb, n)))
    tC = from_dlpack(p.c, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    args = (blockscaled.operand(p.a, kind.element), blockscaled.operand(p.b, kind.element), sfa, sfb, tC)
    grid = math.ceil(m / (TILE_M * ctas)) * ctas, math.ceil(n / TILE_N)  # whole pairs
    return kernel_of(blockscaled.form_of(kind, ctas)), args, grid


def simulate(p, kind, ctas=1, **options):
    """Run the GEMM in the simulator."""
    kernel, args, grid = arguments(p, kind, ctas)
    cute.simulate(kernel, arch=TARGET, **options)[grid, THREADS](*args)


def main():
    options = gemm_host.parser(__doc__, tuple(KINDS), TARGET, "256 x 256 x 512")
    options.add_argument("--ctas", type=int, choices=(1, 2), default=1, help="blocks that multiply together")
    args = options.parse_args()
    kind = KINDS[args.dtype]
    m, n, k = (getattr(args, x) or small for x, small in zip("mnk", (256, 256, 512), strict=True))
    p, a, b = blockscaled.problem(m, n, k, kind)
    if args.compile_only:
        kernel, made, _ = arguments(p, kind, args.ctas)
        gemm_host.compile_only(kernel, made, f"experimental_{args.dtype}_gemm_{args.ctas}", args.arch)
        return
    print(f"simulating {m} x {n} x {k} {args.dtype}, {args.ctas} blocks together")
    simulate(p, kind, args.ctas, progress=sys.stderr.isatty())
    print(f"relative error against float64: {gemm_host.check(a, b, p.c):.2e}")


if __name__ == "__main__":
    main()
