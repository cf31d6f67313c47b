# SPDX-License-Identifier: Apache-2.0
"""A warp-specialised bf16 GEMM in raw instructions: C = A @ B.T with a 2x1 cluster and 128x256x64 tiles.

Each of its synchronising steps can be broken, so that tests see what the simulator says.
"""

from dataclasses import dataclass

import numpy as np
from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa.facts.bits import WgmmaDescriptor
from numba_cute.isa.rows import cluster, convert, fence, matrix, mbarrier, registers, sync, tma, wgmma
from numba_cute.sim import name_range, simulate

from .maps import map_of

BM, BN, BK, STAGES = 128, 256, 64, 3
A_BYTES, B_BYTES = BM * BK * 2, BN * BK * 2
STAGE = A_BYTES + B_BYTES
C_AT = 1024 + STAGES * STAGE
FULL = C_AT + BM * BN * 2
EMPTY = FULL + 8 * STAGES
SMEM = EMPTY + 8 * STAGES - 1024
BF16, F32 = dtypes.BFloat16, dtypes.Float32
DESC = WgmmaDescriptor(start=0, leading=0, stride=1024, base_offset=0, swizzle=128).encode()


@dataclass(frozen=True)
class Broken:
    """What to leave out or change."""

    release: bool = True
    fence: bool = True
    wait_full: bool = True
    wait_mma: bool = True
    wait_store: bool = True
    tx_more: int = 0
    init: bool = True


def make_produce(broken: Broken):
    def produce(a_map, b_map, k_tiles, m0, n0, rank):
        phase, stage = 1, 0
        for k in range(k_tiles):
            mbarrier.mbarrier_wait_parity(EMPTY + 8 * stage, phase)
            full, at = FULL + 8 * stage, 1024 + STAGE * stage
            mbarrier.mbarrier_arrive_expect_tx(full, STAGE + broken.tx_more)
            tma.cp_async_bulk_tensor_g2s(at, a_map, (k * BK, m0), full, rank=2)
            half = at + A_BYTES + rank * (B_BYTES // 2)
            tma.cp_async_bulk_tensor_g2s(half, b_map, (k * BK, n0 + rank * 128), full, cta_mask=3, rank=2)
            stage += 1
            if stage == STAGES:
                stage, phase = 0, phase ^ 1

    return produce


def make_consume(broken: Broken):
    def consume(acc, k_tiles, wg):
        phase, stage = 0, 0
        for k in range(k_tiles):
            if broken.wait_full:
                mbarrier.mbarrier_wait_parity(FULL + 8 * stage, phase)
            at = 1024 + STAGE * stage
            wgmma.wgmma_fence()
            for kk in range(BK // 16):
                a = DESC + ((at + wg * (A_BYTES // 2) + kk * 32) >> 4)
                b = DESC + ((at + A_BYTES + kk * 32) >> 4)
                wgmma.wgmma_ss(acc, a, b, k + kk > 0, n=BN, ab="bf16", trans_a=0, trans_b=0, scale_a=1, scale_b=1)
            wgmma.wgmma_commit_group()
            if broken.wait_mma:
                wgmma.wgmma_wait_group(n=0)
            if broken.release and cuda.threadIdx.x % 128 < 2:
                mbarrier.mbarrier_arrive(cluster.mapa(EMPTY + 8 * stage, cuda.threadIdx.x % 128), space="cluster")
            stage += 1
            if stage == STAGES:
                stage, phase = 0, phase ^ 1

    return consume


def make_epilogue(broken: Broken):
    def epilogue(acc, c_map, m0, n0, wg):
        b = seam.current()
        t = cuda.threadIdx.x % 128
        lane, warp = t % 32, t // 32
        row = wg * 64 + warp * 16 + lane % 16
        values = b.vector(acc)
        for j in range(BN // 16):
            words = tuple(
                [
                    convert.cvt_halves_f32(float(values[8 * j + 2 * i]), float(values[8 * j + 2 * i + 1]), type="bf16")
                    for i in range(4)
                ]
            )
            col = 16 * j + 8 * (lane // 16)
            at = C_AT + (col // 64) * (BM * 128) + row * 128 + (col % 64) * 2
            matrix.stmatrix(at, words, num=4, trans=False)
        if broken.fence:
            fence.fence_proxy_async(space="shared::cta")
        sync.bar_sync(1, 256)
        if wg == 0 and t == 0:
            for q in range(BN // 64):
                tma.cp_async_bulk_tensor_s2g(c_map, (n0 + 64 * q, m0), C_AT + q * BM * 128, rank=2)
            tma.cp_async_bulk_commit_group()
            if broken.wait_store:
                tma.cp_async_bulk_wait_group(n=0, read=True)
        sync.bar_sync(1, 256)
        if not broken.wait_store:
            b.store(F32, "smem", C_AT, (0.0,), 4)

    return epilogue


def make_kernel(broken: Broken):
    produce, consume, epilogue = make_produce(broken), make_consume(broken), make_epilogue(broken)

    def gemm(a_map, b_map, c_map, k_tiles):
        t = cuda.threadIdx.x
        rank = cluster.getctarank(cluster.mapa(0, cuda.blockIdx.x % 2))
        name_range(1024, STAGES * STAGE, "stages")
        name_range(C_AT, BM * BN * 2, "tile_c")
        name_range(FULL, 8 * STAGES, "mainloop.full")
        name_range(EMPTY, 8 * STAGES, "mainloop.empty")
        if t == 0 and broken.init:
            for s in range(STAGES):
                mbarrier.mbarrier_init(FULL + 8 * s, 1)
                mbarrier.mbarrier_init(EMPTY + 8 * s, 4)
            fence.fence_mbarrier_init()
        sync.cluster_arrive()
        sync.cluster_wait()
        m0, n0 = cuda.blockIdx.x * BM, cuda.blockIdx.y * BN
        if t < 128:
            registers.setmaxnreg(count=40, action="dec")
            if t == 0:
                produce(a_map, b_map, k_tiles, m0, n0, rank)
        else:
            registers.setmaxnreg(count=232, action="inc")
            acc = seam.Regs(seam.current().registers(F32, BN // 2), F32, 0, BN // 2)
            consume(acc, k_tiles, t // 128 - 1)
            epilogue(acc, c_map, m0, n0, t // 128 - 1)
        sync.cluster_arrive()
        sync.cluster_wait()

    return gemm


def run(m: int, n: int, k: int, rng: np.random.Generator, broken: Broken = Broken(), **options):  # noqa: B008
    """Simulate it on random data; gives the result and a float64 reference."""
    a, b = (rng.standard_normal((rows, k)).astype(BF16.numpy) for rows in (m, n))
    c = np.full((m, n), np.nan, BF16.numpy)
    maps = map_of(a, (BK, BM), swizzle="128B"), map_of(b, (BK, BN // 2), swizzle="128B"), map_of(c, (64, BM))
    grid = (2 * -(-m // (2 * BM)), -(-n // BN))
    simulate(make_kernel(broken), cluster=(2, 1), **options)[grid, 384, 0, SMEM](*maps, -(-k // BK))
    return c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T
