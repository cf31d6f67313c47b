# SPDX-License-Identifier: Apache-2.0
"""Bugs around tensor memory and tcgen05: waits, fences, commits, allocation, operands, accumulators."""

import numpy as np
from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa.facts.bits import encode_address
from numba_cute.isa.rows import bulk, fence, mbarrier, sync, tcgen05 as umma
from numba_cute.isa.rows.tcgen05_mma import Tcgen05Descriptor, Tcgen05Instruction, tcgen05_mma_ss
from numba_cute.sim import DeadlockError, OutOfBoundsError, RaceError, SimError, UninitializedReadError
from numba_cute.sim.checks.initialised import Initialised
from numba_cute.sim.checks.races import Races
from numba_cute.sim.checks.tensor_fences import TensorFences

from .zoo import BAR, BUF, bug, get, put

BF16, F32 = dtypes.BFloat16, dtypes.Float32
M, N = 128, 32
B_AT = BUF + 4096
A_DESC = Tcgen05Descriptor(leading=M * 16, stride=128, swizzle=0).encode() + encode_address(BUF)
B_DESC = Tcgen05Descriptor(leading=N * 16, stride=128, swizzle=0).encode() + encode_address(B_AT)
FORM = Tcgen05Instruction(d=1, a=1, b=1, n=N, m=M).encode()
SLOT, DONE, FREE = BAR + 64, BAR, BAR + 8
THREADS = 160  # warps 0 to 3 read the accumulator, thread 128 multiplies


def result():
    return (np.zeros((M, 2), np.float32),)


def multiply(d, use_acc):
    tcgen05_mma_ss(d, A_DESC, B_DESC, FORM, use_acc, cta_group=1, kind="f16")


def fill(t):
    """All 160 threads: ones in both operands."""
    for at in range(t, 320, THREADS):
        seam.current().store(BF16, "smem", BUF + 16 * at, (1.0,) * 8, 16)


def quarter(t):
    return (t // 32 % 4 * 32) << 16


fill, multiply, quarter = (cuda.jit(device=True)(f) for f in (fill, multiply, quarter))


def rounds(*missing):
    """Two products one after the other in one accumulator; `missing` names the steps that are left out."""

    def kernel(out):
        t = cuda.threadIdx.x
        b = seam.current()
        fill(t)
        if "proxy fence" not in missing:
            fence.fence_proxy_async(space="shared::cta")
        if t == 0:
            mbarrier.mbarrier_init(DONE, 1)
            mbarrier.mbarrier_init(FREE, 128)
            if "init fence" not in missing:
                fence.fence_mbarrier_init()
        if t >= 128:
            umma.tcgen05_alloc(SLOT, N, cta_group=1)
        cuda.syncthreads()
        d = get(SLOT)
        regs = seam.Regs(b.registers(F32, N), F32, 0, N)
        for i in range(2):
            if t == 128:
                if i and "wait for the reader" not in missing:
                    mbarrier.mbarrier_wait_parity(FREE, 0)
                if i and "after in the multiplier" not in missing:
                    umma.tcgen05_fence_after()
                multiply(d, "clear" in missing)
                if "commit" not in missing:
                    umma.tcgen05_commit(DONE, cta_group=1)
            elif t < 128:
                if "wait" not in missing and "commit" not in missing:
                    mbarrier.mbarrier_wait_parity(DONE, i)
                if "after in the reader" not in missing:
                    umma.tcgen05_fence_after()
                umma.tcgen05_ld(dst=regs, taddr=d + quarter(t), shape="32x32b", num=N)
                if "wait::ld" not in missing:
                    umma.tcgen05_wait_ld()
                if "read" not in missing and "read early" not in missing:
                    out[t, i] = b.vector(regs)[0]
                if "before in the reader" not in missing:
                    umma.tcgen05_fence_before()
                mbarrier.mbarrier_arrive(FREE)
                if "read early" in missing:
                    out[t, i] = b.vector(regs)[0]
        if t < 128:
            umma.tcgen05_wait_ld()
        if "barrier before dealloc" not in missing:
            cuda.syncthreads()
        if t >= 128 and "dealloc" not in missing:
            umma.tcgen05_dealloc(d, N, cta_group=1)

    return kernel


def unit_bug(error, *words, **launch):
    launch = {"threads": THREADS, "arch": "sm_100a", "smem": 16384, "arguments": result, **launch}
    return bug(error, *words, **launch)


@unit_bug(RaceError, "tensor memory", "tcgen05_mma_ss", "commit|still reads it: nothing orders")
def accumulator_read_before_the_commit_is_waited_for(mended):
    return rounds() if mended else rounds("wait")


@unit_bug(RaceError, "tensor memory", "tcgen05_mma_ss", "commit|still reads it: nothing orders")
def multiply_that_is_never_committed(mended):
    return rounds() if mended else rounds("commit")


@unit_bug(RaceError, "tensor memory", "missing tcgen05.fence::after_thread_sync", "tcgen05_ld", check=TensorFences)
def no_fence_after_the_wait_in_the_reader(mended):
    return rounds() if mended else rounds("after in the reader")


@unit_bug(RaceError, "tensor memory", "missing tcgen05.fence::after_thread_sync", "tcgen05_mma_ss", check=TensorFences)
def no_fence_after_the_wait_in_the_multiplier(mended):
    return rounds() if mended else rounds("after in the multiplier")


@unit_bug(RaceError, "tensor memory", "missing tcgen05.fence::before_thread_sync", "tcgen05_ld", check=TensorFences)
def no_fence_before_the_reader_arrives(mended):
    return rounds() if mended else rounds("before in the reader")


@unit_bug(RaceError, "tensor memory", "tcgen05_ld", "missing tcgen05.wait::ld")
def accumulator_handed_back_before_the_load_is_done(mended):
    return rounds() if mended else rounds("wait::ld", "read")


@unit_bug(RaceError, "tensor memory", "tcgen05_ld", "missing tcgen05.wait::ld")
def accumulator_handed_back_before_what_was_loaded_is_used(mended):
    return rounds("read early") if mended else rounds("wait::ld", "read early")


@unit_bug(
    SimError, "tensor memory|whole phase late", "tcgen05_ld|tcgen05_mma_ss|a parity cannot",
    "nothing orders|need not be complete|a parity cannot tell", check=Races,
)  # fmt: skip
def accumulator_overwritten_before_it_is_read(mended):
    return rounds() if mended else rounds("wait for the reader")


@unit_bug(UninitializedReadError, "tensor memory", "tcgen05_mma_ss", "must not accumulate")
def first_multiply_accumulates(mended):
    return rounds() if mended else rounds("clear")


@unit_bug(RaceError, "missing fence.proxy.async", "tcgen05_mma_ss")
def umma_operands_written_without_a_proxy_fence(mended):
    return rounds() if mended else rounds("proxy fence")


@unit_bug(SimError, "missing fence.mbarrier_init", "tcgen05_commit", check=Initialised)
def commit_to_a_barrier_without_an_init_fence(mended):
    return rounds() if mended else rounds("init fence")


@unit_bug(SimError, "32 columns", "still allocated", "tcgen05_alloc", "tcgen05.dealloc")
def tensor_memory_never_given_back(mended):
    return rounds() if mended else rounds("dealloc")


@unit_bug(SimError, "freed|only columns|none are allocated", "tcgen05_dealloc|tcgen05_ld|tcgen05_mma")
def tensor_memory_given_back_while_others_read(mended):
    return rounds() if mended else rounds("barrier before dealloc")


def once(body, columns=32):
    """Warp 0 allocates, all run `body(t, d)`, warp 0 frees."""

    def kernel(out):
        t = cuda.threadIdx.x
        fill(t)
        fence.fence_proxy_async(space="shared::cta")
        if t == 0:
            mbarrier.mbarrier_init(DONE, 1)
            mbarrier.mbarrier_init(FREE, 1)
            fence.fence_mbarrier_init()
        if t < 32:
            umma.tcgen05_alloc(SLOT, columns, cta_group=1)
        cuda.syncthreads()
        body(t, get(SLOT), out)
        cuda.syncthreads()
        if t < 32:
            umma.tcgen05_dealloc(get(SLOT), columns, cta_group=1)

    return kernel


def regs(n, fill_with=None):
    b = seam.current()
    r = seam.Regs(b.registers(F32, n), F32, 0, n)
    if fill_with is not None:
        b.fill(r, fill_with)
    return r


@unit_bug(RaceError, "tensor memory", "tcgen05_st", "missing tcgen05.wait::st")
def store_read_back_without_a_wait(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 128:
            x, y = regs(4, 1.0), regs(4)
            umma.tcgen05_st(d + quarter(t), x, shape="32x32b", num=4)
            if mended:
                umma.tcgen05_wait_st()
            umma.tcgen05_ld(dst=y, taddr=d + quarter(t), shape="32x32b", num=4)
            umma.tcgen05_wait_ld()
            out[t, 0] = seam.current().vector(y)[0]

    return once(body)


@unit_bug(RaceError, "tensor memory", "tcgen05_ld", "missing tcgen05.wait::ld")
def load_overwritten_by_a_store_without_a_wait(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 128:
            x, y = regs(4, 1.0), regs(4)
            umma.tcgen05_st(d + quarter(t), x, shape="32x32b", num=4)
            umma.tcgen05_wait_st()
            umma.tcgen05_ld(dst=y, taddr=d + quarter(t), shape="32x32b", num=4)
            if mended:
                umma.tcgen05_wait_ld()
            umma.tcgen05_st(d + quarter(t), x, shape="32x32b", num=4)
            umma.tcgen05_wait_st()
            umma.tcgen05_wait_ld()

    return once(body)


@unit_bug(RaceError, "tensor memory", "tcgen05_st", "tcgen05.wait::st|before_thread_sync")
def accumulator_preset_by_threads_without_a_wait(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 128:
            x = regs(N, 1.0)
            umma.tcgen05_st(d + quarter(t), x, shape="32x32b", num=N)
            if mended:
                umma.tcgen05_wait_st()
            umma.tcgen05_fence_before()
        cuda.syncthreads()
        if t == 128:
            umma.tcgen05_fence_after()
            multiply(d, True)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(RaceError, "tensor memory", "tcgen05_mma_ss", "nothing orders|tcgen05.commit")
def two_threads_multiply_into_one_accumulator(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            multiply(d, False)
            umma.tcgen05_commit(DONE, cta_group=1)
            umma.tcgen05_fence_before()
        if mended:
            cuda.syncthreads()
        if t == 0:
            umma.tcgen05_fence_after()
            multiply(d, True)
            umma.tcgen05_commit(FREE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        mbarrier.mbarrier_wait_parity(FREE, 0)

    return once(body)


@unit_bug(RaceError, "tcgen05_mma_ss", "still reads it", "is written by")
def umma_operand_overwritten_before_the_commit_is_waited_for(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            multiply(d, False)
            umma.tcgen05_commit(DONE, cta_group=1)
        if mended:
            mbarrier.mbarrier_wait_parity(DONE, 0)
        else:
            cuda.syncthreads()
        put(BUF + 16 * t, 0)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(RaceError, "tensor memory", "tcgen05_mma_ss", "commit")
def commit_by_another_thread(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            multiply(d, False)
        if t == (128 if mended else 129):
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        if t < 128:
            x = regs(N)
            umma.tcgen05_fence_after()
            umma.tcgen05_ld(dst=x, taddr=d + quarter(t), shape="32x32b", num=N)
            umma.tcgen05_wait_ld()

    return once(body)


@unit_bug(RaceError, "tensor memory", "tcgen05_mma_ss", "commit")
def commit_ahead_of_the_last_multiply(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            multiply(d, False)
            if mended:
                multiply(d, True)
            umma.tcgen05_commit(DONE, cta_group=1)
            if not mended:
                multiply(d, True)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        if t < 128:
            x = regs(N)
            umma.tcgen05_fence_after()
            umma.tcgen05_ld(dst=x, taddr=d + quarter(t), shape="32x32b", num=N)
            umma.tcgen05_wait_ld()

    return once(body)


@unit_bug(UninitializedReadError, "tensor memory", "tcgen05_ld", "not all of it was written")
def columns_read_that_nobody_wrote(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 128:
            x, y = regs(4, 1.0), regs(4)
            umma.tcgen05_st(d + quarter(t), x, shape="32x32b", num=4)
            umma.tcgen05_wait_st()
            umma.tcgen05_ld(dst=y, taddr=d + quarter(t) + (0 if mended else 8), shape="32x32b", num=4)
            umma.tcgen05_wait_ld()

    return once(body)


@unit_bug(OutOfBoundsError, "columns 16 to 47", "only columns 0 to 31 are allocated")
def columns_beyond_the_allocation(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 128:
            x = regs(N, 1.0)
            umma.tcgen05_st(d + quarter(t) + (0 if mended else 16), x, shape="32x32b", num=N)
            umma.tcgen05_wait_st()

    return once(body)


@unit_bug(Exception, "lane 0", "this warp reaches lanes 32 to 63|this warp reaches lanes 64 to 95|lanes 96 to 127")
def lanes_of_another_warp(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 128:
            x = regs(4, 1.0)
            umma.tcgen05_st(d + (quarter(t) if mended else 0), x, shape="32x32b", num=4)
            umma.tcgen05_wait_st()

    return once(body)


@unit_bug(SimError, "relinquish", "tcgen05.alloc")
def allocation_after_the_permit_is_given_up(mended):
    def kernel(out):
        if cuda.threadIdx.x < 32:
            if not mended:
                umma.tcgen05_relinquish_alloc_permit(cta_group=1)
            umma.tcgen05_alloc(SLOT, 32, cta_group=1)
            if mended:
                umma.tcgen05_relinquish_alloc_permit(cta_group=1)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=1)

    return kernel


@unit_bug(SimError, "48 columns", "power of two")
def allocation_of_48_columns(mended):
    def kernel(out):
        if cuda.threadIdx.x < 32:
            n = 64 if mended else 48
            umma.tcgen05_alloc(SLOT, n, cta_group=1)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(SLOT), n, cta_group=1)

    return kernel


@unit_bug(SimError, "tcgen05.dealloc", "64 columns", "32 columns were allocated there")
def freeing_more_than_was_allocated(mended):
    def kernel(out):
        if cuda.threadIdx.x < 32:
            umma.tcgen05_alloc(SLOT, 32, cta_group=1)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(SLOT), 32 if mended else 64, cta_group=1)

    return kernel


@unit_bug(DeadlockError, "tcgen05.alloc of 512 columns")
def two_allocations_that_do_not_fit(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        if t < 32:
            umma.tcgen05_alloc(SLOT, 512, cta_group=1)
            sync.bar_warp_sync()
            if mended:
                umma.tcgen05_dealloc(get(SLOT), 512, cta_group=1)
            umma.tcgen05_alloc(SLOT + 16, 512, cta_group=1)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(SLOT + 16), 512, cta_group=1)

    return kernel


@unit_bug(RaceError, "is read by|read it", "tcgen05_alloc")
def address_read_before_the_allocation_is_published(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        if t < 32:
            umma.tcgen05_alloc(SLOT, 32, cta_group=1)
        if mended:
            cuda.syncthreads()
        if t >= 32:
            out[t - 32, 0] = get(SLOT)
        cuda.syncthreads()
        if t < 32:
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=1)

    return kernel


@unit_bug(DeadlockError, "tcgen05_alloc", "lanes")
def allocation_by_one_lane(mended):
    def kernel(out):
        t = cuda.threadIdx.x
        if t < 32 if mended else t == 0:
            umma.tcgen05_alloc(SLOT, 32, cta_group=1)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=1)

    return kernel


@unit_bug(
    SimError,
    "tcgen05_mma_ss",
    "is read by|has still to write|nothing orders",
    check=Races,
    arguments=lambda: (np.ones(2560, BF16.numpy), np.zeros((M, 2), np.float32)),
)
def multiply_before_the_copy_of_its_operand_has_landed(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t == 0:
            mbarrier.mbarrier_init(DONE, 1)
            mbarrier.mbarrier_init(FREE, 1)
            fence.fence_mbarrier_init()
        if t < 32:
            umma.tcgen05_alloc(SLOT, 32, cta_group=1)
        cuda.syncthreads()
        if t == 128:
            mbarrier.mbarrier_arrive_expect_tx(FREE, 5120)
            bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 5120, FREE)
            if mended:
                mbarrier.mbarrier_wait_parity(FREE, 0)
            multiply(get(SLOT), False)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(FREE, 0)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        cuda.syncthreads()
        if t < 32:
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=1)

    return kernel
