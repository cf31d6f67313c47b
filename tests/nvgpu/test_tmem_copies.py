# SPDX-License-Identifier: Apache-2.0
"""tcgen05.ld and tcgen05.st as operations: legal forms, layouts, and copies in the simulator and the assembler."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import pipeline, utils
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import Pack, Repetition, Unpack
from numba_cute.tensor.pointer import AddressSpace, Pointer
from numba_cute.tensor.tensor import Tensor

from . import tmem_kernels as kernels

F32, S32, F16, BF16, U8 = cute.Float32, cute.Int32, cute.Float16, cute.BFloat16, cute.Uint8
ROWS = {"16": (128, 64), "32": (128,)}  # rows of matrices that blocks of so many lanes make up


def packed(op):
    return Pack.PACK_16b_IN_32b if op in kernels.LOADS else Unpack.UNPACK_32b_IN_16b


def cases():
    """Each operation with some repetitions, types and matrices: operation, its arguments, type, rows, columns."""
    for op in (*kernels.LOADS, *kernels.STORES):
        wide = op.shape.columns * op.shape.halves  # 32-bit columns of one repetition
        for rows in ROWS[op.shape.name[:2]]:
            fast = rows == 128
            yield op, (Repetition(max(1, 16 // wide)),), F32, rows, 32, fast
            yield op, (Repetition.x2, packed(op)), F16, rows, 32, not fast or op.shape.lanes == 32
            yield op, (Repetition(max(1, 32 // wide)),), F32, rows, 32, False
            yield op, (Repetition.x1,), F32, rows, 32, False
            yield op, (Repetition.x2,), BF16, rows, 64, False
        yield op, (Repetition.x1,), U8, 128, 128, False
        yield op, (Repetition.x1,), S32, 128, 32, False


def marked():
    for *case, fast in cases():
        name = "-".join((case[0].__name__, *(f.name for f in case[1]), str(case[2]), *map(str, case[3:])))
        yield pytest.param(*case, id=name, marks=() if fast else pytest.mark.slow)


@pytest.mark.parametrize("op, fields, dtype, rows, columns", list(marked()))
def test_a_matrix_goes_to_and_from_tensor_memory(run, op, fields, dtype, rows, columns):
    lay = kernels.matrix(rows, columns, dtype.width, len(fields) > 1)
    held_columns = columns if len(fields) > 1 else columns * dtype.width // 32
    kernel = kernels.mover(op(*fields), dtype, lay, held_columns)
    rng = np.random.default_rng(0)
    held = rng.integers(0, 2**32, (128, held_columns), dtype=np.uint32)
    if dtype.width < 32:
        held &= 0x3B3B3B3B  # no NaN, whose bits a conversion to float64 need not keep
    elif dtype is F32:
        held = rng.random((128, held_columns), np.float32).view(np.uint32)
    if op in kernels.LOADS:
        out = np.zeros((rows, columns), dtype.numpy)
        want = kernels.as_matrix(held, lay, dtype)
        run(kernel, 1, kernels.THREADS, [held, out], outputs=[out], arch="sm_100a",
            check=lambda: np.testing.assert_array_equal(out, want))  # fmt: skip
    else:
        x = np.ascontiguousarray(kernels.as_matrix(held, lay, dtype))
        out = np.zeros((128, held_columns), np.uint32)
        run(kernel, 1, kernels.THREADS, [x, out], outputs=[out], arch="sm_100a",
            check=lambda: np.testing.assert_array_equal(kernels.as_matrix(out, lay, dtype), x))  # fmt: skip


def atom(op, dtype=F32):
    return cute.make_copy_atom(op, dtype)


def tensor(lay, dtype=F32, space=AddressSpace.tmem):
    return Tensor(Pointer(dtype, space, 0, 0, 16), lay)


def matrix(rows=128, columns=32, width=32, apart=False):
    return kernels.matrix(rows, columns, width, apart)


def test_a_copy_knows_its_properties():
    load, store = atom(tcgen05.Ld16x256bOp(Repetition.x8)), atom(tcgen05.St16x32bx2Op(Repetition.x2, packed(0)), F16)
    assert tcgen05.get_tmem_copy_properties(load) == (16, 256, 8, Pack.NONE)
    assert tcgen05.get_tmem_copy_properties(store) == (16, 32, 2, Unpack.UNPACK_32b_IN_16b)
    tiled = tcgen05.make_tmem_copy(atom(tcgen05.Ld32x32bOp(Repetition.x32)), tensor(matrix()))
    other = atom(cute.nvgpu.CopyUniversalOp())
    assert [tcgen05.is_tmem_load(x) for x in (load, store, tiled, other)] == [True, False, True, False]
    assert [tcgen05.is_tmem_store(x) for x in (load, store, tiled, other)] == [False, True, False, False]


@pytest.mark.parametrize("lay, dtype, columns", [
    (matrix(), F32, 32), (matrix(64, 48), F32, 48), (matrix(128, 32, 16), F16, 16),
    (matrix(128, 32, 16, True), F16, 32),
    (cute.make_layout((128, (32, 2)), stride=(1 << 16, (1, 64 << 16))), F32, 32), (matrix(128, 128, 8), U8, 32),
])  # fmt: skip
def test_the_columns_that_a_tensor_reaches(lay, dtype, columns):
    assert tcgen05.find_tmem_tensor_col_offset(tensor(lay, dtype)) == columns


REFUSED = [
    (lambda: tcgen05.Ld16x256bOp(Repetition.x64), "repeat Repetition.x64 must be Repetition.x1, .x2, .x4, .x8, .x1"),
    (lambda: tcgen05.Ld32x32bOp(32), "repeat 32 must be Repetition.x1"),
    (lambda: tcgen05.St16x128bOp(Repetition.x128), "repeat Repetition.x128 must be"),
    (lambda: tcgen05.Ld32x32bOp(Repetition.x1, Unpack.NONE), "pack Unpack.NONE must be Pack.NONE or"),
    (lambda: atom(tcgen05.Ld32x32bOp(pack=Pack.PACK_16b_IN_32b)), "is for elements of 16 bits, and Float32 has 32"),
    (lambda: atom(tcgen05.Ld32x32bOp(), cute.Float64), "elements of Float64 have 64 bits"),
    (lambda: tcgen05.make_tmem_copy(atom(tcgen05.Ld32x32bOp()), tensor(matrix(64))), "is not made of blocks"),
    (lambda: tcgen05.make_tmem_copy(atom(tcgen05.Ld32x32bOp(), F16), tensor(matrix(128, 8, 16, True), F16)),
     "is not made of blocks"),
    (lambda: tcgen05.make_tmem_copy(atom(tcgen05.Ld32x32bOp(Repetition.x64)), tensor(matrix())), "is not made of"),
    (lambda: tcgen05.make_tmem_copy(atom(tcgen05.Ld32x32bOp()), tensor(matrix(), F16)), "elements of 16 bits, and the"),
    (lambda: tcgen05.make_tmem_copy(atom(tcgen05.Ld32x32bOp()), tensor(matrix(), F32, AddressSpace.smem)),
     "must be a tensor in tensor memory"),
    (lambda: tcgen05.make_tmem_copy(atom(cute.nvgpu.CopyUniversalOp()), tensor(matrix())), "is not a load or store of"),
    (lambda: tcgen05.get_tmem_copy_properties(atom(cute.nvgpu.CopyUniversalOp())), "is not a load or store of"),
    (lambda: tcgen05.LdRed32x32bOp(Repetition.x1), "repeat Repetition.x1 must be Repetition.x2, .x4"),
    (lambda: tcgen05.LdRed32x32bOp(pack=Pack.PACK_16b_IN_32b), "must be Pack.NONE"),
    (lambda: atom(tcgen05.LdRed16x32bx2Op(nan=True), S32), "elements of Int32 must be Float32"),
    (lambda: atom(tcgen05.LdRed32x32bOp(), F16), "elements of Float16 must be Float32 or Int32 or Uint32"),
    (lambda: tcgen05.is_tmem_load(tcgen05.Ld32x32bOp()), "is neither a CopyAtom nor a TiledCopy"),
    (lambda: tcgen05.find_tmem_tensor_col_offset(tensor(matrix(), F32, AddressSpace.smem)), "tensor in tensor memory"),
]  # fmt: skip


@pytest.mark.parametrize("make, why", REFUSED, ids=[why for _, why in REFUSED])
def test_what_there_is_not_is_refused(make, why):
    with pytest.raises(cute.CuteError, match=why):
        make()


@cuda.jit
def within(out):
    """All is made in the kernel, as kernels of the CuTe DSL do, of an accumulator with its stages."""
    tid, _, _ = cute.arch.thread_idx()
    mma = kernels.MMA
    tmem = utils.TmemAllocator(barrier_for_retrieve=pipeline.NamedBarrier(1, 128))
    fragment = mma.make_fragment_C(cute.append(mma.partition_shape_C((128, 64)), 2))
    tmem.allocate(utils.get_num_tmem_alloc_cols(fragment))
    tmem.wait_for_alloc()
    acc = cute.make_tensor(tmem.retrieve_ptr(cute.Float32), fragment.layout)
    store = cute.make_copy_atom(tcgen05.copy.St32x32bOp(tcgen05.copy.Repetition(32)), cute.Float32)
    load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16, tcgen05.Pack.NONE), cute.Float32)
    where = mma.get_slice(0).partition_C(cute.make_identity_tensor((128, 64)))
    tiled_store = tcgen05.make_tmem_copy(store, acc[None, None, None, 0])
    thr_store = tiled_store.get_slice(tid)
    here = thr_store.partition_S(where)
    regs = cute.make_rmem_tensor(here.shape, cute.Float32)
    for i in cute.range_constexpr(64):
        regs[i] = here[i][0] * 100 + here[i][1]
    cute.copy(tiled_store, regs, thr_store.partition_D(acc)[None, None, None, None, 1])
    cute.arch.fence_view_async_tmem_store()
    tiled_load = tcgen05.make_tmem_copy(load, acc[(None, None), 0, 0, 0])
    thr_load = tiled_load.get_slice(tid)
    there = thr_load.partition_D(cute.make_identity_tensor((128, 64)))
    got = cute.make_rmem_tensor(there.shape, cute.Float32)
    cute.copy(tiled_load, thr_load.partition_S(acc[(None, None), 0, 0, 1]), got)
    cute.arch.fence_view_async_tmem_load()
    for i in cute.range_constexpr(64):
        out[there[i][0], there[i][1]] = got[i]
    tmem.wait_for_alloc()
    tmem.relinquish_alloc_permit()
    tmem.free(acc.iterator)


def test_an_accumulator_with_stages_is_copied_by_what_the_kernel_makes(run):
    out = np.zeros((128, 64), np.float32)
    want = np.arange(128)[:, None] * 100 + np.arange(64)
    run(within, 1, 128, [out], outputs=[out], arch="sm_100a", check=lambda: np.testing.assert_array_equal(out, want))


def copied(op, dtype, there, registers, register_type):
    """A kernel of one copy between a tensor of tensor memory and registers."""
    made, lay = cute.make_copy_atom(op, dtype), there.layout

    @cuda.jit
    def kernel():
        t = cute.make_tensor(cute.make_ptr(dtype, 0, AddressSpace.tmem, 16), lay)
        regs = cute.make_rmem_tensor(registers, register_type)
        cute.copy(made, t, regs)

    return kernel


@pytest.mark.parametrize("op, lay, registers, dtype, why", [
    (tcgen05.Ld32x32bOp(Repetition.x4), cute.make_layout(((4, 32), 1)), 4, F32, "but .* moves"),
    (tcgen05.Ld32x32bOp(Repetition.x4), cute.make_layout(((4, 32), 1), stride=((1, 1 << 16), 0)),
     cute.make_layout((4, 1), stride=(2, 1)), F32, "must be 4 consecutive registers"),
    (tcgen05.Ld32x32bOp(Repetition.x4), cute.make_layout(((4, 32), 1), stride=((1, 1 << 16), 0)),
     cute.make_layout((8, 1)), F32, "has 8 values|makes|8 elements"),
    (tcgen05.Ld32x32bOp(Repetition.x4), cute.make_layout(((4, 32), 1), stride=((1, 1 << 16), 0)),
     cute.make_layout((4, 1)), F16, "elements of 16 bits"),
])  # fmt: skip
def test_a_copy_that_the_instruction_cannot_do_is_refused(op, lay, registers, dtype, why):
    kernel = copied(op, F32, tensor(lay), registers, dtype)
    with pytest.raises(cute.CuteError, match=why):
        cute.simulate(kernel, arch="sm_100a")[1, 32]()


MIN, MAX = tcgen05.TmemLoadRedOp.MIN, tcgen05.TmemLoadRedOp.MAX
REDUCED = [
    (tcgen05.LdRed32x32bOp(Repetition.x8, redOp=MAX), F32, 128),
    (tcgen05.LdRed32x32bOp(Repetition.x32, redOp=MIN), S32, 128),
    (tcgen05.LdRed16x32bx2Op(Repetition.x4, redOp=MAX), cute.Uint32, 64),
    (tcgen05.LdRed32x32bOp(Repetition.x2, redOp=MIN, abs=True, nan=True), F32, 128),
]


@pytest.mark.parametrize("op, dtype, rows", REDUCED, ids=lambda x: getattr(type(x), "__name__", None))
def test_a_load_also_gives_the_extreme_of_each_thread(run, op, dtype, rows):
    lay, rng = kernels.matrix(rows, 32, 32, False), np.random.default_rng(0)
    held = rng.integers(0, 2**32, (128, 32), dtype=np.uint32)
    if dtype is F32:
        held = rng.standard_normal((128, 32)).astype(np.float32)
        if op.nan:
            held[5, 7] = np.nan
        held = held.view(np.uint32)
    whole = kernels.as_matrix(held, lay, dtype)
    each = op.repeat.value
    parts = np.abs(whole) if op.abs else whole
    if rows == 64:  # thread t and t + 16 of a warp have a half each of a row's columns
        parts = parts.reshape(4, 16, -1, 2, each).transpose(0, 3, 1, 2, 4).reshape(128, -1, each)
    want = getattr(np, op.redOp.value)(parts.reshape(128, -1, each), axis=2)
    out, red = np.zeros((rows, 32), dtype.numpy), np.zeros(want.shape, dtype.numpy)

    def check():
        np.testing.assert_array_equal(out, whole)
        np.testing.assert_array_equal(red, want)

    kernel = kernels.reducer(op, dtype, lay, 32)
    run(kernel, 1, kernels.THREADS, [held, out, red], outputs=[out, red], arch="sm_103a", check=check)


def test_a_load_with_reduction_needs_its_target():
    op, dtype, rows = REDUCED[0]
    kernel = kernels.reducer(op, dtype, kernels.matrix(rows, 32, 32, False), 32)
    args = [np.zeros((128, 32), np.uint32), np.zeros((128, 32), np.float32), np.zeros((128, 4), np.float32)]
    with pytest.raises(cute.CuteError, match="tcgen05_ld_red.* sm_103f"):
        cute.compile(kernel, tuple(args), arch="sm_100a")


@pytest.mark.parametrize("op, why", [
    (tcgen05.Ld32x32bOp(Repetition.x4), "dst is 2 tensors, but .* writes 1"),
    (tcgen05.LdRed32x32bOp(Repetition.x4), r"dst\[1\] .* must be 1 registers of Float32"),
])  # fmt: skip
def test_what_a_load_with_reduction_does_not_write_is_refused(op, why):
    made, lay = atom(op), cute.make_layout(((4, 32), 1), stride=((1, 1 << 16), 0))

    @cuda.jit
    def kernel():
        t = cute.make_tensor(cute.make_ptr(F32, 0, AddressSpace.tmem, 16), lay)
        cute.copy(made, t, (cute.make_rmem_tensor((4, 1), F32), cute.make_rmem_tensor((2, 1), F32)))

    with pytest.raises(cute.CuteError, match=why):
        cute.simulate(kernel, arch="sm_103a")[1, 32]()
