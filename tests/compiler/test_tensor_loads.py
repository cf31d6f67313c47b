# SPDX-License-Identifier: Apache-2.0
"""Uses of what a load from tensor memory gives, ahead of any wait: compiled code and the simulator wait there."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.compiler.ground.tensor_loads import INSERTED, with_waits
from numba_cute.nvgpu import tcgen05

WAIT = INSERTED.strip()
LOAD = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x4), cute.Float32)
STORE = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x4), cute.Float32)
TILE = cute.make_layout((128, 4), stride=(65536, 1))


def function(*lines: str) -> str:
    return "\n".join((".visible .entry k()", "{", "\t.reg .b32 \t%r<9>;", *lines, "}", ""))


LD, WAITED = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];", "tcgen05.wait::ld.sync.aligned;"
USE, OTHER = "add.s32 %r4, %r1, 1;", "add.s32 %r5, %r3, 1;"
BOTH, COPY = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r6}, [%r3];", "mov.b32 %r7, %r2;"


@pytest.mark.parametrize(
    "lines, before",
    [
        ((LD, WAITED, USE), None),
        ((LD, OTHER), None),
        ((LD, OTHER, USE, USE), 2),
        ((LD, BOTH, USE, "add.s32 %r8, %r6, 1;"), 2),
        ((LD, LD.replace("%r3", "%r1")), 1),
        ((LD, LD), None),
        ((LD, COPY, "st.global.b32 [%rd1], %r7;"), 2),
        ((LD, COPY, WAITED, "st.global.b32 [%rd1], %r7;"), None),
        ((LD, COPY, "mov.b32 %r7, %r3;", "st.global.b32 [%rd1], %r7;"), None),
        ((LD, "@%p1 bra $L__BB0_2;", USE, "$L__BB0_2:", "ret;"), 1),
        ((LD, "$L__BB0_2:", USE, "@%p1 bra $L__BB0_2;"), 1),
        (("$L__BB0_1:", USE, LD, "@%p1 bra $L__BB0_1;", "ret;"), 1),
        ((LD, "@%p1 bra $L__BB0_2;", WAITED, "bra.uni $L__BB0_3;", "$L__BB0_2:", WAITED, "$L__BB0_3:", USE), None),
        ((LD, "@%p1 bra $L__BB0_2;", WAITED, "bra.uni $L__BB0_3;", "$L__BB0_2:", OTHER, "$L__BB0_3:", USE), 1),
        (("tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%r1, %r2}, %r6, [%r3];", "add.f32 %f1, %r6, %r6;"), 1),
    ],
)  # fmt: skip
def test_a_wait_is_put_in_where_a_way_to_a_use_has_none(lines, before):
    """before: the line ahead of which it stands; None for no wait."""
    want = function(*lines) if before is None else function(*lines[:before], INSERTED, *lines[before:])
    assert with_waits(function(*lines)) == want and with_waits(want) == want, "and it is all that is put in"


def moved(mode):
    """A kernel (x, out) that moves x (128, 4) by way of tensor memory, and waits for its load as `mode` says."""

    @cuda.jit
    def kernel(x, out):
        tid, _, _ = arch.thread_idx()
        tmem = utils.TmemAllocator(None, pipeline.NamedBarrier(1, 128), 0, False)
        there = tmem.reserve(32).allocate_tensor(TILE, cute.Float32)
        stored, loaded = cute.make_rmem_tensor((4, 1, 1), cute.Float32), cute.make_rmem_tensor((4, 1, 1), cute.Float32)
        for j in cute.range_constexpr(4):
            stored[j] = x[tid, j]
        cute.copy(STORE, stored, tcgen05.make_tmem_copy(STORE, there).get_slice(tid).partition_D(there))
        arch.fence_view_async_tmem_store()
        cute.copy(LOAD, tcgen05.make_tmem_copy(LOAD, there).get_slice(tid).partition_S(there), loaded)
        if cute.const_expr(mode == "fence"):
            arch.fence_view_async_tmem_load()
        if tid % 32 < 5 or mode != "branch":
            for j in cute.range_constexpr(4):
                out[tid, j] = loaded[j] + 1
        arch.sync_threads()
        tmem.relinquish_alloc_permit()
        tmem.free(there.iterator)

    return kernel


@pytest.mark.parametrize("mode", ["fence", "none", "branch"])
def test_what_is_loaded_is_there_where_it_is_used(mode):
    x, out = np.random.default_rng(0).random((128, 4), np.float32), np.zeros((128, 4), np.float32)
    kernel = moved(mode)
    cute.simulate(kernel, arch="sm_100a")[1, 128](x, out)
    there = np.arange(128)[:, None] % 32 < (5 if mode == "branch" else 32)
    np.testing.assert_array_equal(out, np.where(there, x + 1, 0))
    ptx = cute.compile(kernel, (x, out), arch="sm_100a").ptx
    assert ptx.count(WAIT) == 1
    between = ptx[ptx.index("tcgen05.ld.") : ptx.index(WAIT)]
    loaded = re.findall(r"%r\d+", between[: between.index("[")])
    assert not any(re.search(rf"{r}\b", line) for line in between.splitlines()[1:] for r in loaded)
    assert "bra" not in between, "all lanes come there together"
