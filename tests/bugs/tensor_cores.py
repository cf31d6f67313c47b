# SPDX-License-Identifier: Apache-2.0
"""Bugs around wgmma: its fences, groups, operands and accumulators."""

import numpy as np
from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa.facts.bits import WgmmaDescriptor
from numba_cute.isa.rows import copy_async, fence, wgmma
from numba_cute.sim import RaceError
from numba_cute.sim.checks.races import Races
from numba_cute.sim.checks.registers import Registers

from .zoo import BUF, bug, put

F32, BF16 = dtypes.Float32, dtypes.BFloat16
DESC = WgmmaDescriptor(start=BUF, leading=128, stride=256, base_offset=0, swizzle=0).encode()
FORM = dict(n=8, ab="bf16", trans_a=0, trans_b=0, scale_a=1, scale_b=1)


def multiply(*missing):
    """ones(64, 16) @ ones(8, 16).T twice; `missing` names the steps that are left out."""

    def kernel(out):
        b, t = seam.current(), cuda.threadIdx.x
        b.store(BF16, "smem", BUF + 16 * t, (1.0,) * 8, 16)
        if "proxy fence" not in missing:
            fence.fence_proxy_async(space="shared::cta")
        if "barrier" not in missing:
            cuda.syncthreads()
        acc = seam.Regs(b.registers(F32, 4), F32, 0, 4)
        for i in range(2):
            b.fill(acc, 0.0)
            if "wgmma fence" not in missing or (i == 0 and "second only" in missing):
                wgmma.wgmma_fence()
            wgmma.wgmma_ss(acc, DESC, DESC, True, **FORM)
            if "commit" not in missing:
                wgmma.wgmma_commit_group()
            if "wait" not in missing:
                wgmma.wgmma_wait_group(n=1 if "wait for all" in missing else 0)
            out[t, i] = b.vector(acc)[0]
        if "wait" in missing:
            wgmma.wgmma_wait_group(n=0)

    return kernel


def sums():
    return (np.zeros((128, 2), np.float32),)


def wgmma_bug(*words, check=Registers):
    return bug(RaceError, *words, check=check, threads=128, arguments=sums)


@wgmma_bug("missing wgmma.fence", "wgmma_ss", "before the first wgmma")
def no_wgmma_fence(mended):
    return multiply() if mended else multiply("wgmma fence")


@wgmma_bug("missing wgmma.fence", "since the accumulator's registers were last touched")
def no_wgmma_fence_after_clearing_the_accumulator(mended):
    return multiply() if mended else multiply("wgmma fence", "second only")


@wgmma_bug("accumulator registers are read", "wgmma_ss", "wgmma.wait_group")
def accumulator_read_before_the_wait(mended):
    return multiply() if mended else multiply("wait")


@wgmma_bug("accumulator registers are read", "wgmma.commit_group")
def wgmma_that_is_not_committed(mended):
    return multiply() if mended else multiply("commit")


@wgmma_bug("accumulator registers are read")
def wait_that_leaves_the_last_group(mended):
    return multiply() if mended else multiply("wait for all")


@wgmma_bug("missing fence.proxy.async", "wgmma_ss", check=Races)
def operands_written_without_a_proxy_fence(mended):
    return multiply() if mended else multiply("proxy fence")


@wgmma_bug("is read by wgmma_ss", "nothing orders", check=Races)
def operands_read_before_all_have_written_them(mended):
    return multiply() if mended else multiply("barrier")


@wgmma_bug("is written by", "wgmma_ss", "still reads it", "wgmma.wait_group", check=Races)
def operand_overwritten_before_the_wait(mended):
    def kernel(out):
        b, t = seam.current(), cuda.threadIdx.x
        b.store(BF16, "smem", BUF + 16 * t, (1.0,) * 8, 16)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        acc = seam.Regs(b.registers(F32, 4), F32, 0, 4)
        wgmma.wgmma_fence()
        wgmma.wgmma_ss(acc, DESC, DESC, False, **FORM)
        wgmma.wgmma_commit_group()
        if mended:
            wgmma.wgmma_wait_group(n=0)
            cuda.syncthreads()
        put(BUF + 16 * t, 0)
        wgmma.wgmma_wait_group(n=0)

    return kernel


@wgmma_bug("operand registers are written", "wgmma_rs", "still reads them")
def a_fragment_changed_before_the_wait(mended):
    def kernel(out):
        b, t = seam.current(), cuda.threadIdx.x
        b.store(BF16, "smem", BUF + 16 * t, (1.0,) * 8, 16)
        fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        acc = seam.Regs(b.registers(F32, 4), F32, 0, 4)
        a = seam.Regs(b.registers(dtypes.Uint32, 4), dtypes.Uint32, 0, 4)
        b.fill(a, 0)
        wgmma.wgmma_fence()
        form = {k: v for k, v in FORM.items() if k != "trans_a"}
        wgmma.wgmma_rs(acc, a, DESC, False, **form)
        wgmma.wgmma_commit_group()
        if mended:
            wgmma.wgmma_wait_group(n=0)
        b.fill(a, 1)
        wgmma.wgmma_wait_group(n=0)

    return kernel


@bug(
    RaceError, "missing fence.proxy.async", "wgmma_ss", "copy_async.cp_async(", threads=128,
    arguments=lambda: (np.zeros(1024, BF16.numpy), np.zeros(128, np.float32)),
)  # fmt: skip
def operands_brought_by_cp_async_without_a_proxy_fence(mended):
    def kernel(a, out):
        b, t = seam.current(), cuda.threadIdx.x
        copy_async.cp_async(BUF + 16 * t, a.ctypes.data + 16 * t, nbytes=16, cache="cg", prefetch=0)
        copy_async.cp_async_commit_group()
        copy_async.cp_async_wait_group(n=0)
        if mended:
            fence.fence_proxy_async(space="shared::cta")
        cuda.syncthreads()
        acc = seam.Regs(b.registers(F32, 4), F32, 0, 4)
        b.fill(acc, 0.0)
        wgmma.wgmma_fence()
        wgmma.wgmma_ss(acc, DESC, DESC, True, **FORM)
        wgmma.wgmma_commit_group()
        wgmma.wgmma_wait_group(n=0)
        out[t] = b.vector(acc)[0]

    return kernel
