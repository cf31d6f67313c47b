# SPDX-License-Identifier: Apache-2.0
"""Bugs of two CTAs that allocate, copy and multiply together (cta_group 2), from public reports of hangs and races."""

import numpy as np
from numba import cuda

from numba_cute import seam
from numba_cute.isa.facts.bits import encode_address
from numba_cute.isa.rows import cluster, fence, mbarrier, sync, tcgen05 as umma
from numba_cute.isa.rows.tcgen05_copy import tcgen05_cp
from numba_cute.isa.rows.tcgen05_mma import Tcgen05Descriptor, Tcgen05Instruction, tcgen05_mma_ss, tcgen05_mma_ts
from numba_cute.sim import DeadlockError, RaceError, SimError
from numba_cute.sim.checks.exits import Exits
from numba_cute.sim.checks.races import Races
from numba_cute.sim.checks.tensor_frees import TensorFrees

from .matrix_unit import A_DESC, B_AT, DONE, FREE, SLOT, THREADS, M, N, fill, quarter, regs
from .tensor_copies import ROWS
from .zoo import BAR, BUF, bug, get, put

B_DESC = Tcgen05Descriptor(leading=N // 2 * 16, stride=128, swizzle=0).encode() + encode_address(B_AT)
FORM = Tcgen05Instruction(d=1, a=1, b=1, n=N, m=2 * M).encode()
MINE = BAR + 16  # a barrier of each CTA
BOTH = 3  # the mask of the two
A_COLUMN = 32


def pair_bug(error, *words, origin, **launch):
    launch = {"threads": THREADS, "arch": "sm_100a", "smem": 16384, "blocks": 2, "cluster": 2, **launch}
    return bug(error, *words, origin=origin, arguments=lambda: (np.zeros((2 * M, 2), np.float32),), **launch)


def meet():
    sync.cluster_arrive()
    sync.cluster_wait()


def barriers(t, readers):
    """In each CTA: operands of ones, DONE for commits, FREE for so many readers, MINE for one arrival."""
    fill(t)
    fence.fence_proxy_async(space="shared::cta")
    if t == 0:
        mbarrier.mbarrier_init(DONE, 1)
        mbarrier.mbarrier_init(FREE, readers)
        mbarrier.mbarrier_init(MINE, 1)
        fence.fence_mbarrier_init()


def multiply(d, use_acc):
    """One thread of the even CTA: for both."""
    tcgen05_mma_ss(d, A_DESC, B_DESC, FORM, use_acc, cta_group=2, kind="f16")


def commit(bar, mask):
    umma.tcgen05_commit(bar, mask, cta_group=2)


def load(t, d, out, i):
    """Threads 0 to 127 of a CTA read their part of the accumulator."""
    sums = regs(N)
    umma.tcgen05_fence_after()
    umma.tcgen05_ld(dst=sums, taddr=d + quarter(t), shape="32x32b", num=N)
    umma.tcgen05_wait_ld()
    umma.tcgen05_fence_before()
    out[cuda.blockIdx.x * M + t, i] = seam.current().vector(sums)[0]


meet, barriers, multiply, commit, load = (cuda.jit(device=True)(f) for f in (meet, barriers, multiply, commit, load))


def both(body, readers=2 * M, columns=32):
    """The last warp of each CTA allocates, all run `body(t, rank, d, out)`, the CTAs meet, and the warp frees."""

    def kernel(out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        barriers(t, readers)
        meet()
        if t >= M:
            umma.tcgen05_alloc(SLOT, columns, cta_group=2)
        meet()
        d = get(SLOT)
        body(t, rank, d, out)
        meet()
        if t >= M:
            umma.tcgen05_dealloc(d, columns, cta_group=2)

    return kernel


STARTS = (
    "https://github.com/NVIDIA/cutlass/pull/3316: the tutorials 04 and 05 for two SMs; "
    "https://github.com/tile-ai/tilelang/issues/2644 (C12)"
)


@pair_bug(RaceError, "tcgen05.alloc", "nothing says that this CTA has started", "cluster_arrive", origin=STARTS)
def pair_allocates_before_its_peer_has_started(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        if mended:
            meet()
        if t < 32:
            umma.tcgen05_alloc(SLOT, 32, cta_group=2)
        meet()
        if t < 32:
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=2)

    return kernel


@pair_bug(
    RaceError, "tcgen05.dealloc", "nothing orders that after the tcgen05.alloc of its peer", "launch failure",
    origin="https://github.com/NVIDIA/cutlass/issues/3435: unspecified launch failure, 25 of 25 runs on a B300",
)  # fmt: skip
def pair_frees_before_its_peer_has_allocated(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        meet()
        if t < 32:
            umma.tcgen05_alloc(SLOT, 32, cta_group=2)
            sync.bar_warp_sync()
        if mended:
            meet()
        if t < 32:
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=2)

    return kernel


@pair_bug(
    RaceError, "freed by tcgen05_dealloc", "tcgen05_ld|tcgen05_mma_ss", "of CTA", check=TensorFrees,
    origin="https://github.com/triton-lang/triton/pull/9498 and facebookexperimental/triton/pull/1707: no barrier of "
    "the two CTAs ahead of the deallocation",
)  # fmt: skip
def pair_frees_while_its_peer_reads(mended):
    def kernel(out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        barriers(t, 1)
        meet()
        if t >= M:
            umma.tcgen05_alloc(SLOT, 32, cta_group=2)
        meet()
        d = get(SLOT)
        if t == M and rank == 0:
            multiply(d, False)
            commit(DONE, BOTH)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        if t < M:
            load(t, d, out, 0)
        if mended:
            meet()
        else:
            cuda.syncthreads()
        if t >= M:
            umma.tcgen05_dealloc(d, 32, cta_group=2)

    return kernel


@pair_bug(
    RaceError, "exit: CTA 1", "tcgen05_commit", "may still use its shared memory", check=Exits,
    origin="https://github.com/sgl-project/sglang/issues/32907 (mended in pull 32954): a CTA of the pair exits while "
    "the other's multicast commit is on its way; triton-lang/triton/pull/10656",
)  # fmt: skip
def cta_exits_while_the_last_stage_is_released_to_it(mended):
    @cuda.jit(device=True)
    def body(t, rank, d, out):
        if t == M and rank == 0:
            multiply(d, False)
            commit(DONE, BOTH)
            commit(FREE, BOTH)  # the stage of shared memory: nobody fills it again
        mbarrier.mbarrier_wait_parity(DONE, 0)
        if t < M:
            load(t, d, out, 0)
        if mended or rank == 0:
            mbarrier.mbarrier_wait_parity(FREE, 0)

    return both(body, 1)


@pair_bug(
    SimError, "of CTA 1", "tcgen05_commit|invalidated", "is not initialised|may still use|wait for it", check=Races,
    origin="https://github.com/triton-lang/triton/pull/10409: the peer invalidates the barrier that a commit signals",
)  # fmt: skip
def barrier_of_the_peer_invalidated_ahead_of_the_commit(mended):
    @cuda.jit(device=True)
    def body(t, rank, d, out):
        if t == M and rank == 0:
            multiply(d, False)
            commit(DONE, BOTH)
        if rank == 0 or mended:
            mbarrier.mbarrier_wait_parity(DONE, 0)
        cuda.syncthreads()
        if t == 0 and rank == 1:
            mbarrier.mbarrier_inval(DONE)

    return both(body, 1)


@pair_bug(
    DeadlockError, "mbarrier", "of CTA 1", "1 of 1 arrival",
    origin="https://github.com/tile-ai/tilelang/pull/1882: a completion barrier of a pair is to be seen by both",
)  # fmt: skip
def commit_that_tells_the_even_cta_alone(mended):
    @cuda.jit(device=True)
    def body(t, rank, d, out):
        if t == M and rank == 0:
            multiply(d, False)
            commit(DONE, BOTH if mended else 1)
        if t < M:
            mbarrier.mbarrier_wait_parity(DONE, 0)
            load(t, d, out, 0)
        elif rank == 0:
            mbarrier.mbarrier_wait_parity(DONE, 0)

    return both(body, 1)


@pair_bug(
    RaceError, "tensor memory of CTA 1", "tcgen05_mma_ss", "tcgen05_ld", "nothing orders the two",
    origin="https://github.com/deepseek-ai/DeepGEMM/issues/368: why the barrier of an empty accumulator counts the "
    "readers of both CTAs",
)  # fmt: skip
def accumulator_overwritten_when_only_one_cta_has_read_it(mended):
    @cuda.jit(device=True)
    def body(t, rank, d, out):
        for i in range(2):
            if t == M and rank == 0:
                if i:
                    mbarrier.mbarrier_wait_parity(FREE, 0, scope="cluster")
                    umma.tcgen05_fence_after()
                multiply(d, False)
                commit(DONE, BOTH)
            mbarrier.mbarrier_wait_parity(DONE, i)
            if t < M:
                load(t, d, out, i)
                if i == 0 and (mended or rank == 0):
                    mbarrier.mbarrier_arrive(cluster.mapa(FREE, 0), space="cluster", scope="cluster")

    return both(body, 2 * M if mended else M)


@pair_bug(
    RaceError, "tensor memory of CTA 1", "tcgen05_mma_ts", "tcgen05_st", "nothing orders the two",
    origin="https://github.com/facebookexperimental/triton/pull/1553: the CTAs have to meet after the stores and ahead "
    "of the multiply",
)  # fmt: skip
def pair_multiplies_what_the_peer_has_yet_to_store(mended):
    @cuda.jit(device=True)
    def body(t, rank, d, out):
        if t < M:
            umma.tcgen05_st(d + A_COLUMN + quarter(t), regs(8, 1.0), shape="32x32b", num=8)
            umma.tcgen05_wait_st()
            umma.tcgen05_fence_before()
        if mended:
            meet()
        else:
            cuda.syncthreads()
        if t == M and rank == 0:
            umma.tcgen05_fence_after()
            tcgen05_mma_ts(d, d + A_COLUMN, B_DESC, FORM, False, cta_group=2, kind="f16")
            commit(DONE, BOTH)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return both(body, 1, 64)


@pair_bug(
    RaceError, "tcgen05_mma_ss", "put, in store", 'scope="cluster"', check=Races,
    origin="https://github.com/Dao-AILab/quack/issues/63: the peer says with a release of CTA scope that its half of "
    "the operands is there",
)  # fmt: skip
def peer_that_releases_its_operands_at_cta_scope(mended):
    @cuda.jit(device=True)
    def body(t, rank, d, out):
        if t == 0 and rank == 1:
            put(BUF, 0)
            fence.fence_proxy_async(space="shared::cta")
            leader = cluster.mapa(MINE, 0)
            if mended:
                mbarrier.mbarrier_arrive(leader, space="cluster", scope="cluster")
            else:
                mbarrier.mbarrier_arrive(leader, space="cluster", scope="cta")
        if t == M and rank == 0:
            mbarrier.mbarrier_wait_parity(MINE, 0, scope="cluster")
            multiply(d, False)
            commit(DONE, BOTH)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return both(body, 1)


@pair_bug(
    RaceError, "tcgen05_cp", "nothing orders the two", "columns 0 to 7",
    origin="https://github.com/triton-lang/triton/pull/9460: scale factors are copied by one CTA for both",
)  # fmt: skip
def copy_of_a_pair_issued_by_both(mended):
    @cuda.jit(device=True)
    def body(t, rank, d, out):
        if t == M and (rank == 0 or not mended):
            tcgen05_cp(d, ROWS, shape="128x256b", cta_group=2)
            commit(cluster.mapa(DONE, rank), 1 << rank)
        if rank == 0 or not mended:
            mbarrier.mbarrier_wait_parity(DONE, 0)

    return both(body, 1)


@pair_bug(
    SimError, "tcgen05_commit", "has cta_group 1, but tcgen05_alloc", "has cta_group 2",
    origin="https://github.com/tile-ai/tilelang/pull/2287: illegal instruction, for the multiply and the commit differ",
)  # fmt: skip
def commit_for_one_cta_of_a_multiply_for_two(mended):
    @cuda.jit(device=True)
    def body(t, rank, d, out):
        if t == M and rank == 0:
            multiply(d, False)
            if mended:
                commit(DONE, BOTH)
            else:
                umma.tcgen05_commit(DONE, BOTH, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return both(body, 1)


ISA = "PTX ISA, tcgen05.alloc: one warp of each of the two CTAs allocates and frees"


@pair_bug(SimError, "cta_group 2", "CTA 1", "ended without it|which has not come to it", origin=ISA)
def pair_of_which_one_cta_allocates(mended):
    def kernel(out):
        t, rank = cuda.threadIdx.x, cuda.blockIdx.x
        meet()
        if t < 32 and (mended or rank == 0):
            umma.tcgen05_alloc(SLOT, 32, cta_group=2)
        meet()
        if t < 32 and (mended or rank == 0):
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=2)

    return kernel


@pair_bug(SimError, "32", "64 columns|allocates 64", "the two allocate together, as many columns", origin=ISA)
def pair_that_allocates_different_sizes(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        columns = 64 if mended else 64 >> cuda.blockIdx.x
        meet()
        if t < 32:
            umma.tcgen05_alloc(SLOT, columns, cta_group=2)
        meet()
        if t < 32:
            umma.tcgen05_dealloc(get(SLOT), columns, cta_group=2)

    return kernel


@pair_bug(SimError, "tcgen05_alloc", "cta_group 2, but the cluster's size is 1", origin=ISA, blocks=1, cluster=1)
def pair_in_a_cluster_of_one(mended):
    def kernel(out):
        group = 1 if mended else 2
        if cuda.threadIdx.x < 32:
            umma.tcgen05_alloc(SLOT, 32, cta_group=group)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=group)

    return kernel
