# SPDX-License-Identifier: Apache-2.0
"""Bugs of tensor memory and the matrix unit of one CTA, from public reports of hangs and races on Blackwell."""

import numpy as np
from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa.rows import bulk, fence, mbarrier, sync, tcgen05 as umma
from numba_cute.isa.rows.tcgen05_copy import tcgen05_cp, tcgen05_shift
from numba_cute.isa.rows.tcgen05_mma import tcgen05_mma_ts
from numba_cute.sim import DeadlockError, RaceError, SimError
from numba_cute.sim.checks.phases import Phases
from numba_cute.sim.checks.races import Races
from numba_cute.sim.checks.tensor_fences import TensorFences

from .matrix_unit import B_DESC, DONE, FORM, FREE, SLOT, N, multiply, once, quarter, regs, result, unit_bug
from .tensor_copies import ROWS
from .zoo import BAR, BUF, get, put

ROUNDS = 4
FULL, EMPTY = BAR + 16, BAR + 32  # of two accumulators each
A_COLUMN = 32


def load(t, at, out, i):
    """Threads 0 to 127 read an accumulator, and have done with it."""
    sums = regs(N)
    umma.tcgen05_ld(dst=sums, taddr=at + quarter(t), shape="32x32b", num=N)
    umma.tcgen05_wait_ld()
    umma.tcgen05_fence_before()
    out[t, i % 2] = seam.current().vector(sums)[0]


load = cuda.jit(device=True)(load)


def stages(*missing):
    """Thread 128 multiplies into two accumulators by turns, and threads 0 to 127 read them: the tutorials' persistent
    kernel without its loads. `missing` names what is left out, or what is wrong."""

    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 0:
            for s in range(2):
                mbarrier.mbarrier_init(FULL + 8 * s, 1)
                mbarrier.mbarrier_init(EMPTY + 8 * s, 128)
            fence.fence_mbarrier_init()
        cuda.syncthreads()
        if t == 128:
            for i in range(ROUNDS):
                s, phase = i % 2, i // 2 % 2
                wanted = (i + 1) % 2 if "phase of the multiplier" in missing else phase ^ 1
                if "wait for empty" not in missing:
                    mbarrier.mbarrier_wait_parity(EMPTY + 8 * s, wanted)
                if "after in the multiplier" not in missing:
                    umma.tcgen05_fence_after()
                multiply(d + s * N, False)
                umma.tcgen05_commit(FULL + 8 * s, cta_group=1)
        elif t < 128:
            for i in range(ROUNDS):
                s, phase = i % 2, i // 2 % 2
                mbarrier.mbarrier_wait_parity(FULL + 8 * s, i % 2 if "phase of the reader" in missing else phase)
                umma.tcgen05_fence_after()
                if "load ahead of release" in missing:
                    umma.tcgen05_wait_ld()
                    umma.tcgen05_fence_before()
                    mbarrier.mbarrier_arrive(EMPTY + 8 * s)
                    load(t, d + s * N, out, i)
                elif "wait::ld ahead of release" in missing:
                    sums = regs(N)
                    umma.tcgen05_ld(dst=sums, taddr=d + s * N + quarter(t), shape="32x32b", num=N)
                    umma.tcgen05_fence_before()
                    mbarrier.mbarrier_arrive(EMPTY + 8 * s)
                    umma.tcgen05_wait_ld()
                    out[t, s] = seam.current().vector(sums)[0]
                else:
                    load(t, d + s * N, out, i)
                    mbarrier.mbarrier_arrive(EMPTY + 8 * s)

    return once(body, 64)


@unit_bug(
    RaceError, "tensor memory", "tcgen05_mma_ss", "tcgen05_ld", "missing tcgen05.fence::after_thread_sync",
    check=TensorFences, origin="https://github.com/tile-ai/tilelang/pull/1980: missing fences in the GEMMs for SM100",
)  # fmt: skip
def persistent_multiplier_without_a_fence_after_its_wait(mended):
    return stages() if mended else stages("after in the multiplier")


@unit_bug(
    SimError, "tensor memory|whole phase late", "tcgen05_ld|a parity cannot", "tcgen05_mma_ss|mbarrier", check=Races,
    origin="https://github.com/NVIDIA/cudnn-frontend/issues/652: the stage of the accumulator is released before the "
    "load that reads it",
)  # fmt: skip
def accumulator_stage_released_ahead_of_the_load(mended):
    return stages() if mended else stages("load ahead of release")


@unit_bug(
    RaceError, "tensor memory", "tcgen05_mma_ss", "tcgen05_ld", "missing tcgen05.wait::ld",
    origin="https://github.com/flashinfer-ai/flashinfer/issues/5334: a stage is released while tcgen05.ld is in flight",
)  # fmt: skip
def accumulator_stage_released_while_it_is_loaded(mended):
    return stages() if mended else stages("wait::ld ahead of release")


@unit_bug(
    SimError, "tensor memory|whole phase late", "tcgen05_mma_ss|a parity cannot", "tcgen05_ld|mbarrier", check=Races,
    origin="https://github.com/triton-lang/triton/pull/7509: the wait for an empty accumulator in a persistent kernel",
)  # fmt: skip
def second_use_of_an_accumulator_stage_without_a_wait(mended):
    return stages() if mended else stages("wait for empty")


@unit_bug(
    SimError, "mbarrier at|tensor memory", "whole phase late|nothing orders|missing|a parity",
    check=Races,
    origin="https://github.com/facebookexperimental/triton/pull/1864: slot and phase counted apart; a persistent "
    "kernel deadlocks after the first tile",
)  # fmt: skip
def phase_of_the_reader_counted_apart_from_its_stage(mended):
    return stages() if mended else stages("phase of the reader")


@unit_bug(
    DeadlockError, "mbarrier at", "waits|wait", "128 of 128 arrivals missing|1 of 1 arrival",
    origin="https://github.com/tile-ai/tilelang/pull/1910: parities of the empty barriers of the attention for SM100",
)  # fmt: skip
def phase_of_the_multiplier_counted_apart_from_its_stage(mended):
    return stages() if mended else stages("phase of the multiplier")


@unit_bug(
    Exception, "nobody has waited for phase|still writes it|still reads it", "tcgen05_commit|missing tcgen05.commit|by",
    check=Phases,
    origin="https://github.com/tile-ai/tilelang/pull/2360: barriers of one arrival, at which every lane of the "
    "multiplying warp arrives",
)  # fmt: skip
def commit_by_every_lane(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            multiply(d, False)
        if t == 128 if mended else t >= 128:
            umma.tcgen05_commit(DONE, cta_group=1)
        if t == 128:
            mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(
    RaceError, "missing fence.proxy.async", "tcgen05_mma_ss", "put, in store",
    origin="https://github.com/sgl-project/sglang/pull/39124: a tile that threads widen between two multiplies; wrong "
    "in 86 of 100 runs on a B300",
)  # fmt: skip
def operand_rewritten_between_two_multiplies_without_a_proxy_fence(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            multiply(d, False)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        put(BUF + 16 * t, 0)
        if mended:
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        if t == 128:
            multiply(d, True)
            umma.tcgen05_commit(FREE, cta_group=1)
        mbarrier.mbarrier_wait_parity(FREE, 0)

    return once(body)


@unit_bug(
    RaceError, "columns 32 to 39", "tcgen05_mma_ts", "tcgen05_mma_ss", "multiplies run in order only",
    origin="https://github.com/triton-lang/triton/issues/10821 and pull 10993: an accumulator that another "
    "multiply reads",
)  # fmt: skip
def accumulator_that_the_next_multiply_takes_as_its_operand(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            multiply(d + A_COLUMN, False)
            if mended:
                umma.tcgen05_commit(FREE, cta_group=1)
                mbarrier.mbarrier_wait_parity(FREE, 0)
                umma.tcgen05_fence_after()
            tcgen05_mma_ts(d, d + A_COLUMN, B_DESC, FORM, False, cta_group=1, kind="f16")
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body, 64)


@unit_bug(
    RaceError, "columns 32 to 39", "tcgen05_mma_ts", "tcgen05_st", "missing tcgen05.wait::st",
    origin="https://github.com/triton-lang/triton/pull/11464: tcgen05.wait is for a warp, but another reads what "
    "it stored",
)  # fmt: skip
def operand_of_which_one_warp_alone_waits_for_its_stores(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 128:
            umma.tcgen05_st(d + A_COLUMN + quarter(t), regs(8, 1.0), shape="32x32b", num=8)
            if t < 32 or mended:
                umma.tcgen05_wait_st()
            umma.tcgen05_fence_before()
        cuda.syncthreads()
        if t == 128:
            umma.tcgen05_fence_after()
            tcgen05_mma_ts(d, d + A_COLUMN, B_DESC, FORM, False, cta_group=1, kind="f16")
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        if t < 128:
            umma.tcgen05_wait_st()

    return once(body, 64)


@unit_bug(
    RaceError, "tcgen05_alloc", "bulk", "is written by|wrote it|is read by", check=Races,
    arguments=lambda: (np.ones(512, dtypes.BFloat16.numpy), *result()),
    origin="https://github.com/facebookexperimental/triton/pull/1449: tcgen05.alloc writes its address into a tile "
    "that TMA fills",
)  # fmt: skip
def address_of_the_allocation_within_a_tile(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        slot = SLOT if mended else BUF
        if t == 0:
            mbarrier.mbarrier_init(DONE, 1)
            fence.fence_mbarrier_init()
        cuda.syncthreads()
        if t == 128:
            mbarrier.mbarrier_arrive_expect_tx(DONE, 1024)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 1024, DONE)
        if t < 32:
            umma.tcgen05_alloc(slot, 32, cta_group=1)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(slot), 32, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return kernel


@unit_bug(
    RaceError, "columns 0 to 7", "tcgen05_cp", "a copy need not run after an earlier copy",
    origin='PTX ISA, "Pipelined tcgen05 Instructions"; '
    "https://github.com/triton-lang/triton/pull/6019: scale factors, and how much order of copies to count on",
)  # fmt: skip
def scale_factors_copied_over_those_that_no_multiply_has_read(mended):
    """With a multiply between that reads them, the three run in order."""

    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            tcgen05_cp(d, ROWS, shape="128x256b", cta_group=1)
            if mended:
                tcgen05_mma_ts(d + 32, d, B_DESC, FORM, False, cta_group=1, kind="f16")
            tcgen05_cp(d, ROWS, shape="128x256b", cta_group=1)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body, 64)


ISA = 'PTX ISA, "Pipelined tcgen05 Instructions"'


@unit_bug(RaceError, "columns 0 to 7", "tcgen05_shift", "tcgen05_cp", "a shift need not run after", origin=ISA)
def shift_of_what_the_same_thread_has_just_copied(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            tcgen05_cp(d, ROWS, shape="128x256b", cta_group=1)
            if mended:
                umma.tcgen05_commit(FREE, cta_group=1)
                mbarrier.mbarrier_wait_parity(FREE, 0)
                umma.tcgen05_fence_after()
            tcgen05_shift(d, cta_group=1)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(RaceError, "tcgen05_cp", "tcgen05_mma_ss", "a copy need not run after an earlier multiply", origin=ISA)
def copy_into_the_accumulator_of_a_multiply_before(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            multiply(d, False)
            if mended:
                umma.tcgen05_commit(FREE, cta_group=1)
                mbarrier.mbarrier_wait_parity(FREE, 0)
                umma.tcgen05_fence_after()
            tcgen05_cp(d, ROWS, shape="128x256b", cta_group=1)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(
    SimError, "tcgen05_mma_ss", "nothing orders that after tcgen05.alloc|none are allocated", check=Races,
    origin="https://github.com/facebookexperimental/triton/pull/1449: users that take tensor memory to begin at 0",
)  # fmt: skip
def address_taken_to_be_zero_before_the_allocation(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        seam.current().store(dtypes.BFloat16, "smem", BUF + 16 * t, (1.0,) * 8, 16)
        seam.current().store(dtypes.BFloat16, "smem", BUF + 16 * (t + 160), (1.0,) * 8, 16)
        fence.fence_proxy_async(space="shared::cta")
        if t == 0:
            mbarrier.mbarrier_init(DONE, 1)
            fence.fence_mbarrier_init()
        cuda.syncthreads()
        if t < 32:
            umma.tcgen05_alloc(SLOT, N, cta_group=1)
        if mended:
            cuda.syncthreads()
        if t == 128:
            multiply(0, False)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        cuda.syncthreads()
        if t < 32:
            umma.tcgen05_dealloc(get(SLOT), N, cta_group=1)

    return kernel


ORDER = 'PTX ISA, tcgen05.alloc: "The number of columns allocated should not increase"'


@unit_bug(SimError, "64 columns", "32 were allocated before", "allocate the largest first", origin=ORDER)
def allocation_larger_than_the_one_before(mended):
    def kernel(out):
        first, second = (64, 32) if mended else (32, 64)
        if cuda.threadIdx.x < 32:
            umma.tcgen05_alloc(SLOT, first, cta_group=1)
            umma.tcgen05_alloc(SLOT + 16, second, cta_group=1)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(SLOT), first, cta_group=1)
            umma.tcgen05_dealloc(get(SLOT + 16), second, cta_group=1)

    return kernel


@unit_bug(
    SimError, "another warp of this CTA has allocated before", "one warp makes all", origin="PTX ISA, tcgen05.alloc"
)
def allocations_by_two_warps(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        if t < 32:
            umma.tcgen05_alloc(SLOT, 32, cta_group=1)
            if mended:
                umma.tcgen05_alloc(SLOT + 16, 32, cta_group=1)
        cuda.syncthreads()
        if 32 <= t < 64 and not mended:
            umma.tcgen05_alloc(SLOT + 16, 32, cta_group=1)
        cuda.syncthreads()
        if t < 32:
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=1)
            umma.tcgen05_dealloc(get(SLOT + 16), 32, cta_group=1)

    return kernel
