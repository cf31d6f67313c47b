# SPDX-License-Identifier: Apache-2.0
"""What the simulator makes of texts of PTX: each instruction against NumPy, or what the PTX ISA says of it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.compat.cutlass import dialects as llvm
from numba_cute.runtime import from_dlpack
from tests.nvgpu.test_tma_modes import aligned

F, I = cute.Float32, cute.Int32  # noqa: E741


def simulated(text: str, constraints: str, types: tuple, inputs: np.ndarray, result) -> np.ndarray:
    """What a text gives for each column of inputs, one lane each."""
    out = np.zeros(inputs.shape[1], np.uint32)
    x, y = (from_dlpack(np.ascontiguousarray(r)) for r in (inputs[0], inputs[-1]))
    first, last = types[0], types[-1]

    @cute.kernel
    def one(out: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        made = llvm.inline_asm(result, [cute.recast_tensor(x, first)[i]], text, constraints)
        cute.recast_tensor(out, result)[i] = made

    @cute.kernel
    def two(out: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        read = [cute.recast_tensor(x, first)[i], cute.recast_tensor(y, last)[i]]
        made = llvm.inline_asm(result, read, text, constraints)
        cute.recast_tensor(out, result)[i] = made

    cute.simulate(one if len(types) == 1 else two)[1, inputs.shape[1]](from_dlpack(out), x, y)
    return out


X = np.array([0.25, -1.5, 3.0, 100.0], np.float32)
Y = np.array([2.0, 0.5, -4.0, 1e-3], np.float32)
N = np.array([3, -5, 1 << 30, 0], np.int32)
M = np.array([1, 7, 2, 31], np.int32)


@pytest.mark.parametrize("text, constraints, inputs, result, want", [
    ("add.f32 $0, $1, $2;", "=f,f,f", (X, Y), F, X + Y),
    ("mul.rn.f32 $0, $1, $2;", "=f,f,f", (X, Y), F, X * Y),
    ("neg.f32 $0, $1;", "=f,f", (X,), F, -X),
    ("add.s32 $0, $1, $2;", "=r,r,r", (N, M), I, N + M),
    ("and.b32 $0, $1, $2;", "=r,r,r", (N, M), I, N & M),
    ("xor.b32 $0, $1, $2;", "=r,r,r", (N, M), I, N ^ M),
    ("mov.b32 $0, $1;", "=r,f", (X,), I, X.view(np.int32)),
    ("{ .reg .s32 a; mov.b32 a, $1; shl.b32 a, a, 1; mov.b32 $0, a; }", "=r,r", (N,), I, N << 1),
    ("{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, 1, 0, p; }", "=r,r,r", (N, M), I, (N < M).astype(np.int32)),
    ("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, $1; mov.b32 $0, {hi, lo}; }", "=r,r", (N,), I,
     (N.view(np.uint32) >> 16 | N.view(np.uint32) << 16).view(np.int32)),
    ("{ .reg .v2 .b16 v; mov.b32 v, $1; mov.b32 $0, {v.y, v.x}; }", "=r,r", (N,), I,
     (N.view(np.uint32) >> 16 | N.view(np.uint32) << 16).view(np.int32)),
    ("{ .reg .pred p; setp.lt.s32 p, $1, 0; mov.b32 $0, 1; @p mov.b32 $0, 2; @!p add.s32 $0, $0, 4; }", "=r,r", (N,), I,
     np.where(N < 0, 2, 5).astype(np.int32)),
    ("{ .reg .pred p; .reg .s32 i; mov.s32 i, 3; mov.b32 $0, $1; L: shl.b32 $0, $0, 1; sub.s32 i, i, 1; "
     "setp.ne.s32 p, i, 0; @p bra L; }", "=r,r", (N,), I, N << 3),
    (".reg .b64 kept_<2>; mov.b64 kept_1, {$1, $1}; mov.b64 {_, $0}, kept_1;", "=r,r", (N,), I, N),
    ("mul.hi.u32 $0, $1, $2;", "=r,r,r", (N, M), I,
     (N.view(np.uint32).astype(np.uint64) * M.view(np.uint32) >> 32).astype(np.int32)),
    ("{ .reg .s64 w; mul.wide.s32 w, $1, $2; mov.b64 {_, $0}, w; }", "=r,r,r", (N, M), I,
     (N.astype(np.int64) * M >> 32).astype(np.int32)),
    ("mad.hi.s32 $0, $1, $2, 5;", "=r,r,r", (N, M), I, (N.astype(np.int64) * M >> 32).astype(np.int32) + 5),
    ("div.s32 $0, $1, $2;", "=r,r,r", (N, M), I, np.trunc(N / M).astype(np.int32)),
    ("rem.s32 $0, $1, $2;", "=r,r,r", (N, M), I, np.fmod(N, M).astype(np.int32)),
    ("min.s32 $0, $1, $2;", "=r,r,r", (N, M), I, np.minimum(N, M)),
    ("max.u32 $0, $1, $2;", "=r,r,r", (N, M), I, np.maximum(N.view(np.uint32), M.view(np.uint32))),
    ("max.f32 $0, $1, 0f7fc00000;", "=f,f", (X,), F, X),
    ("abs.f32 $0, $1;", "=f,f", (X,), F, abs(X)),
    ("shl.b32 $0, $1, $2;", "=r,r,r", (N, M + 30), I,
     np.array([1 << 31, 0, 0, 0], np.uint32)),
    ("shr.s32 $0, $1, $2;", "=r,r,r", (N, M + 30), I, N >> 31),
    ("popc.b32 $0, $1;", "=r,r", (M,), I, np.array([1, 3, 1, 5], np.int32)),
    ("bfind.u32 $0, $1;", "=r,r", (M,), I, np.array([0, 2, 1, 4], np.int32)),
    ("prmt.b32 $0, $1, $2, 0x0123;", "=r,r,r", (N, M), I, N.byteswap()),
    ("shf.l.wrap.b32 $0, $1, $1, 8;", "=r,r", (N,), I, N.view(np.uint32) << 8 | N.view(np.uint32) >> 24),
    ("lop3.b32 $0, $1, $2, $2, 0x96;", "=r,r,r", (N, M), I, N),
    ("{ .reg .pred p, q; setp.lt.and.s32 p|q, $1, 4, 1; or.pred p, p, q; selp.b32 $0, 1, 0, p; }", "=r,r", (N,), I,
     np.ones(4, np.int32)),
    ("{ .reg .pred p; setp.ne.f32 p, $1, 0f7fc00000; @p mov.b32 $0, 1; @!p mov.b32 $0, 2; }", "=r,f", (X,), I,
     np.full(4, 2, np.int32)),
    ("{ .reg .pred p; setp.neu.f32 p, $1, 0f7fc00000; selp.b32 $0, 1, 2, p; }", "=r,f", (X,), I, np.ones(4, np.int32)),
    ("cvt.rni.s32.f32 $0, $1;", "=r,f", (X,), I, np.rint(X).astype(np.int32)),
    ("cvt.rn.f32.s32 $0, $1;", "=f,r", (N,), F, N.astype(np.float32)),
    ("{ .reg .b16 h; cvt.rn.bf16.f32 h, $1; cvt.f32.bf16 $0, h; }", "=f,f", (X,), F,
     X.astype(ml_dtypes.bfloat16).astype(np.float32)),
    ("{ .reg .b32 p; cvt.rn.f16x2.f32 p, $1, $2; add.f16x2 p, p, p; mov.b32 $0, p; }", "=r,f,f", (X, Y), I,
     np.stack([Y + Y, X + X], 1).astype(np.float16).view(np.int32)[:, 0]),
    ("{ .reg .b64 p; mov.b64 p, {$1, $2}; fma.rn.f32x2 p, p, p, p; mov.b64 {_, $0}, p; }", "=f,f,f", (X, Y), F,
     (Y.astype(np.float64) * Y + Y).astype(np.float32)),
    ("shfl.sync.bfly.b32 $0, $1, 1, 31, 15;", "=r,r", (N,), I, N[[1, 0, 3, 2]]),
    ("mov.u32 $0, %laneid; bar.sync 0; fence.acq_rel.gpu; add.u32 $0, $0, $1;", "=r,r", (N,), I, N + np.arange(4)),
    ("{ .reg .b16 lo, hi; cvt.rn.satfinite.e4m3x2.f32 lo, $2, $1; mov.b32 $0, {lo, lo}; }", "=r,f,f", (X, Y), I, None),
])  # fmt: skip
def test_an_instruction_does_what_the_isa_says(text, constraints, inputs, result, want):
    types = tuple(F if x.dtype == np.float32 else I for x in inputs)
    got = simulated(text, constraints, types, np.stack([x.view(np.uint32) for x in inputs]), result)
    if want is None:  # two bytes, the first source in the upper one
        low, high = (np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8).astype(np.uint32)
                     for x in inputs)  # fmt: skip
        pair = low | high << 8
        want = pair | pair << 16
    np.testing.assert_array_equal(
        got, np.asarray(want).astype(want.dtype if want.dtype.itemsize == 4 else np.int32).view(np.uint32)
    )


@pytest.mark.parametrize("text, match", [
    ("sad.s32 $0, $1, $1, 1;", r"the simulator knows no 'sad.s32'"),
    ("cvt.s32.f32 $0, $1;", r"the simulator knows no 'cvt.s32.f32'"),
    ("mul.rz.f32 $0, $1, $1;", r"the simulator knows no 'mul.rz.f32'"),
])  # fmt: skip
def test_what_is_not_known_is_refused(text, match):
    with pytest.raises(cute.CuteError, match=match):
        simulated(text, "=r,r", (I,), np.stack([N.view(np.uint32)]), I)


def test_another_number_of_operands_is_refused():
    with pytest.raises(cute.CuteError, match="have 1 operands, and 2 come"):
        simulated("mov.b32 $0, $1;", "=r,r", (I, I), np.stack([N, M]).view(np.uint32), I)


@pytest.mark.parametrize("text, want", [
    ("{ .reg .u32 a, b; ld.global.v2.u32 {a, b}, [$1]; st.global.v2.u32 [$1], {b, a}; mov.u32 $0, 0; }", [2, 1, 3, 4]),
    ("{ .reg .u32 a; ld.volatile.global.u32 a, [$1 + 4]; st.global.cs.u32 [$1], a; mov.u32 $0, a; }", [2, 2, 3, 4]),
    ("red.global.add.u32 [$1], 7; mov.u32 $0, 0;", [8, 2, 3, 4]),
    ("atom.global.cas.b32 $0, [$1 + 8], 3, 9;", [1, 2, 9, 4]),
    ("atom.inc.u32 $0, [$1], 0;", [0, 2, 3, 4]),
])  # fmt: skip
def test_memory_is_read_and_written(text, want):
    x = np.array([1, 2, 3, 4], np.uint32)

    @cute.kernel
    def kernel(x: cute.Tensor):
        llvm.inline_asm(I, [cute.Int64(x.iterator.toint())], text, "=r,l")

    cute.simulate(kernel)[1, 1](from_dlpack(x))
    assert x.tolist() == want


@cute.kernel
def by_bulk(src: cute.Tensor, out: cute.Tensor):
    """out += 2 * src, through shared memory."""
    smem = utils.SmemAllocator()
    held = smem.allocate_tensor(cute.Float32, cute.make_layout(8), 16)
    bar = smem.allocate_array(cute.Int64, 1)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, 32)
        to, at = held.iterator.toint(), bar.toint()
        text = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];"
        llvm.inline_asm(None, [to, src.iterator, cute.Int32(32), at], text, "r,l,r,r", has_side_effects=True)
        arch.mbarrier_wait(bar, 0)
        add = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], $2;"
        for _ in range(2):
            llvm.inline_asm(None, [out.iterator, to, cute.Int32(32)], add, "l,r,r", has_side_effects=True)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


def test_bulk_copies_take_pointers():
    src, out = (aligned((8,), np.float32) for _ in range(2))
    src[:], out[:] = np.arange(8), 1
    args = [from_dlpack(x, assumed_align=16) for x in (src, out)]
    cute.simulate(by_bulk)[1, 32](*args)
    np.testing.assert_array_equal(out, 2 * src + 1)
    assert "cp.reduce.async.bulk" in cute.compile(by_bulk, *args, arch="sm_90").ptx


def test_inline_ptx_of_the_hook_runs_its_text():
    from numba_cute.compat.cutlass.arch import inline_ptx

    out = np.zeros(4, np.int32)

    @cute.kernel
    def kernel(out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        text = "{\n.reg .b32 t;\nadd.s32 t, {$r0}, {$r1};\nsub.s32 {$w0}, t, 1;\n}"
        out[i] = inline_ptx(text, write_only_types=(I,), read_only_args=[i, I(7)])

    cute.simulate(kernel)[1, 4](from_dlpack(out))
    assert out.tolist() == [6, 7, 8, 9]
