# SPDX-License-Identifier: Apache-2.0
"""Bugs of copies from shared to tensor memory, of shifts there, and of what moves 16 lanes."""

from numba import cuda

from numba_cute.isa.facts.bits import encode_address
from numba_cute.isa.rows import fence, mbarrier, tcgen05 as umma
from numba_cute.isa.rows.tcgen05_copy import tcgen05_cp, tcgen05_shift
from numba_cute.isa.rows.tcgen05_mma import Tcgen05Descriptor, tcgen05_mma_ts
from numba_cute.seam import CuteError
from numba_cute.sim import OutOfBoundsError, RaceError, UninitializedReadError

from .matrix_unit import B_DESC, DONE, FORM, FREE, once, quarter, regs, unit_bug
from .zoo import BUF, put

A_COLUMN = 32
ROWS = Tcgen05Descriptor(leading=128, stride=256).encode() + encode_address(BUF)


@cuda.jit(device=True)
def copy(at):
    """One thread: 128 rows of 32 bytes, which all threads have written (`fill`)."""
    tcgen05_cp(at, ROWS, shape="128x256b", cta_group=1)


@cuda.jit(device=True)
def load(t, d):
    x = regs(8)
    umma.tcgen05_fence_after()
    umma.tcgen05_ld(dst=x, taddr=d + quarter(t), shape="32x32b", num=8)
    umma.tcgen05_wait_ld()


@unit_bug(RaceError, "columns 0 to 7", "tcgen05_ld", "tcgen05_cp", "still writes it: nothing|still reads it: nothing")
def copy_read_before_the_commit_is_waited_for(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            copy(d)
            umma.tcgen05_commit(DONE, cta_group=1)
        if mended:
            mbarrier.mbarrier_wait_parity(DONE, 0)
        if t < 128:
            load(t, d)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(RaceError, "columns 32 to 39", "tcgen05_mma_ts", "tcgen05_cp", "nothing orders|tcgen05.commit")
def copied_operand_multiplied_by_another_thread(mended):
    """In the same thread no wait is needed."""

    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            copy(d + A_COLUMN)
            umma.tcgen05_commit(FREE, cta_group=1)
        if t == (128 if mended else 0):
            tcgen05_mma_ts(d, d + A_COLUMN, B_DESC, FORM, False, cta_group=1, kind="f16")
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        mbarrier.mbarrier_wait_parity(FREE, 0)

    return once(body, 64)


@unit_bug(RaceError, "tcgen05_cp", "still reads it", "is written by")
def source_of_a_copy_overwritten_before_the_commit_is_waited_for(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            copy(d)
            umma.tcgen05_commit(DONE, cta_group=1)
        if mended:
            mbarrier.mbarrier_wait_parity(DONE, 0)
        else:
            cuda.syncthreads()
        if t < 128:
            put(BUF + 16 * t, 0)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(RaceError, "missing fence.proxy.async", "tcgen05_cp")
def source_of_a_copy_written_without_a_proxy_fence(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            put(BUF, 0)
            if mended:
                fence.fence_proxy_async(space="shared::cta")
            copy(d)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(RaceError, "tcgen05_cp", "tcgen05_ld", "missing tcgen05.wait::ld|nothing orders")
def copy_to_columns_that_are_still_loaded(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            copy(d)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        x = regs(8)
        if t < 128:
            umma.tcgen05_fence_after()
            umma.tcgen05_ld(dst=x, taddr=d + quarter(t), shape="32x32b", num=8)
            if mended:
                umma.tcgen05_wait_ld()
            umma.tcgen05_fence_before()
        cuda.syncthreads()
        if t == 128:
            umma.tcgen05_fence_after()
            copy(d)
            umma.tcgen05_commit(FREE, cta_group=1)
        mbarrier.mbarrier_wait_parity(FREE, 0)
        if t < 128:
            umma.tcgen05_wait_ld()

    return once(body)


@unit_bug(RaceError, "lanes 32 to 62|lanes 32 to 63", "tcgen05_shift", "tcgen05_ld", "still reads it|still writes it")
def shift_of_lanes_that_a_warp_reads(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            copy(d)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        if t == 128:
            umma.tcgen05_fence_after()
            tcgen05_shift(d + (32 << 16), cta_group=1)
            umma.tcgen05_commit(FREE, cta_group=1)
        if 64 <= t < 96 if mended else 32 <= t < 64:
            load(t, d)
        mbarrier.mbarrier_wait_parity(FREE, 0)

    return once(body)


@unit_bug(UninitializedReadError, "tensor memory", "tcgen05_shift", "not all of it was written")
def shift_of_lanes_that_nobody_wrote(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            copy(d)
            umma.tcgen05_commit(FREE, cta_group=1)
            mbarrier.mbarrier_wait_parity(FREE, 0)
            umma.tcgen05_fence_after()
            tcgen05_shift(d + (0 if mended else 8), cta_group=1)
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(OutOfBoundsError, "columns 28 to 35 are written by tcgen05_cp", "only columns 0 to 31 are allocated")
def copy_beyond_the_allocation(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            copy(d + (24 if mended else 28))
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(OutOfBoundsError, "columns 32 to 35 are written by tcgen05_st", "only columns 0 to 31 are allocated")
def second_half_of_a_store_beyond_the_allocation(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 128:
            umma.tcgen05_st(d + quarter(t), regs(4, 1.0), shape="16x32bx2", num=4, split=28 if mended else 32)
            umma.tcgen05_wait_st()

    return once(body)


@unit_bug(CuteError, "is in lane 8, but this warp reaches lanes 0 to 31", "16x64b begins in lane 0 or 16")
def block_of_sixteen_lanes_that_begins_elsewhere(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t < 32:
            umma.tcgen05_st(d + ((16 if mended else 8) << 16), regs(2, 1.0), shape="16x64b", num=2)
            umma.tcgen05_wait_st()

    return once(body)
