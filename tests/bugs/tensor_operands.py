# SPDX-License-Identifier: Apache-2.0
"""Bugs of multiplies whose first operand lies in tensor memory, of CTA groups, and of 64 rows."""

from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa.rows import mbarrier, sync, tcgen05 as umma
from numba_cute.isa.rows.tcgen05_mma import Tcgen05Instruction, tcgen05_mma_ss, tcgen05_mma_ts
from numba_cute.sim import RaceError, SimError, UninitializedReadError
from numba_cute.sim.checks.tensor_fences import TensorFences

from .matrix_unit import A_DESC, B_DESC, DONE, FORM, SLOT, N, multiply, once, quarter, regs, unit_bug
from .zoo import get

A_COLUMN = 32


def from_tensor_memory(*missing):
    """128 threads store the first operand, thread 128 multiplies, and the threads read the result."""

    @cuda.jit(device=True)
    def body(t, d, out):
        b = seam.current()
        if t < 128:
            words = seam.Regs(b.registers(dtypes.Uint32, 8), dtypes.Uint32, 0, 8)
            b.fill(words, 0x3F803F80)
            umma.tcgen05_st(d + A_COLUMN + quarter(t), words, shape="32x32b", num=8)
            if "wait" not in missing:
                umma.tcgen05_wait_st()
            if "before" not in missing:
                umma.tcgen05_fence_before()
        cuda.syncthreads()
        if t == 128:
            if "after" not in missing:
                umma.tcgen05_fence_after()
            tcgen05_mma_ts(d, d + A_COLUMN, B_DESC, FORM, False, cta_group=1, kind="f16")
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)
        if t < 128:
            umma.tcgen05_fence_after()
            sums = regs(N)
            umma.tcgen05_ld(dst=sums, taddr=d + quarter(t), shape="32x32b", num=N)
            umma.tcgen05_wait_ld()
            out[t, 0] = b.vector(sums)[0]

    return once(body, 64)


def operand_bug(*words, **named):
    return unit_bug(RaceError, "columns 32 to 39", "tcgen05_mma_ts", "tcgen05_st", *words, **named)


@operand_bug("missing tcgen05.wait::st")
def operand_stored_without_a_wait(mended):
    return from_tensor_memory() if mended else from_tensor_memory("wait")


@operand_bug("missing tcgen05.fence::before_thread_sync", check=TensorFences)
def operand_stored_without_a_fence_before(mended):
    return from_tensor_memory() if mended else from_tensor_memory("before")


@operand_bug("missing tcgen05.fence::after_thread_sync", check=TensorFences)
def operand_multiplied_without_a_fence_after(mended):
    return from_tensor_memory() if mended else from_tensor_memory("after")


@unit_bug(RaceError, "tcgen05_mma_ss", "thread 129 (warp 4)|thread 1", "tensor memory")
def multiply_by_every_lane(mended):
    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128 if mended else t >= 128:
            multiply(d, False)
        if t == 128:
            umma.tcgen05_commit(DONE, cta_group=1)
        mbarrier.mbarrier_wait_parity(DONE, 0)

    return once(body)


@unit_bug(SimError, "tcgen05_dealloc", "has cta_group 2, but tcgen05_alloc", "all tcgen05 instructions of a kernel")
def one_kernel_with_both_cta_groups(mended):
    def kernel(out):
        if cuda.threadIdx.x < 32:
            umma.tcgen05_alloc(SLOT, 32, cta_group=1)
            sync.bar_warp_sync()
            umma.tcgen05_dealloc(get(SLOT), 32, cta_group=1 if mended else 2)

    return kernel


@unit_bug(UninitializedReadError, "from lane", "tcgen05_ld", "M = 64", "is stored to global memory")
def lanes_that_a_multiply_of_64_rows_leaves_out(mended):
    form = Tcgen05Instruction(d=1, a=1, b=1, n=N, m=64).encode()

    @cuda.jit(device=True)
    def body(t, d, out):
        if t == 128:
            tcgen05_mma_ss(d, A_DESC, B_DESC, form, False, cta_group=1, kind="f16")
            umma.tcgen05_commit(DONE, cta_group=1)
        if t < 128:
            y = regs(4)
            mbarrier.mbarrier_wait_parity(DONE, 0)
            umma.tcgen05_fence_after()
            umma.tcgen05_ld(dst=y, taddr=d + quarter(t), shape="32x32b", num=4)
            umma.tcgen05_wait_ld()
            if t % 32 < (16 if mended else 32):
                out[t, 0] = seam.current().vector(y)[1]
            umma.tcgen05_fence_before()

    return once(body)
