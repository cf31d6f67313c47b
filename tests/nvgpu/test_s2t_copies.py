# SPDX-License-Identifier: Apache-2.0
"""tcgen05.cp as operations: rows of shared memory in lanes of tensor memory, descriptors, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.isa.facts.tensor_memory import lane_stride
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, SmemLayoutAtomKind
from numba_cute.tensor.pointer import AddressSpace, Pointer
from numba_cute.tensor.tensor import Tensor

from . import s2t_kernels as kernels

F32, F16, U8 = cute.Float32, cute.Float16, cute.Uint8
LANES = np.arange(128)
# Of each operation: rows of the source, bytes of a row, and which row each lane gets (-1: none)
FORMS = {
    tcgen05.Cp128x256bOp: (128, 32, LANES),
    tcgen05.Cp128x128bOp: (128, 16, LANES),
    tcgen05.Cp4x256bOp: (4, 32, np.where(LANES % 32 == 0, LANES // 32, -1)),
    tcgen05.Cp4x32x128bOp: (32, 16, LANES % 32),
    tcgen05.Cp2x64x128b0213Op: (64, 16, LANES % 64),
    tcgen05.Cp2x64x128b0123Op: (64, 16, LANES // 64 * 32 + LANES % 32),
}


def layouts(op, dtype, steps, kind):
    """Tensor memory (rows, columns), shared memory of the same shape, in which rows that land twice stand once, the
    swizzle, and shared memory as it is laid out."""
    rows, size, got = FORMS[op]
    lane, columns = lane_stride(dtype.width), steps * size * 8 // dtype.width
    made = cute.tile_to_shape(tcgen05.make_smem_layout_atom(kind, dtype), (max(rows, 8), columns), (0, 1))
    outer, swizzle = made.outer, made.inner
    whole = cute.make_layout((128, columns), stride=(lane, 1))
    if rows == 128:
        return whole, outer, swizzle, made
    if rows == 4:
        four = cute.make_layout((4, columns), stride=(32 * lane, 1))
        return four, cute.composition(outer, (cute.make_layout(4), None)), swizzle, made
    groups = {32: ((32, 4), (1, 0)), 64: ((64, 2), (1, 0))}[rows]
    if op is tcgen05.Cp2x64x128b0123Op:
        groups = (32, 2, 2), (1, 0, 32)
    again = cute.make_layout(groups[0], stride=groups[1])
    return whole, cute.composition(outer, (again, None)), swizzle, made


CASES = [(op, U8, 1, 1, "K_INTER") for op in FORMS] + [
    pytest.param(tcgen05.Cp128x256bOp, F32, 4, 1, "K_SW128", marks=pytest.mark.slow),
    (tcgen05.Cp128x128bOp, F16, 2, 1, "K_SW32"),
    (tcgen05.Cp4x32x128bOp, U8, 2, 2, "K_INTER"),
    pytest.param(tcgen05.Cp4x256bOp, F16, 2, 1, "K_INTER", marks=pytest.mark.slow),
    pytest.param(tcgen05.Cp2x64x128b0213Op, F32, 3, 1, "K_INTER", marks=pytest.mark.slow),
    pytest.param(tcgen05.Cp2x64x128b0123Op, F16, 2, 2, "K_INTER", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("op, dtype, steps, ctas, kind", CASES)
def test_rows_land_in_lanes(run, rng, op, dtype, steps, ctas, kind):
    rows, size, got = FORMS[op]
    there, here, swizzle, made = layouts(op, dtype, steps, SmemLayoutAtomKind[kind])
    atom = cute.make_copy_atom(op(CtaGroup(ctas)), dtype)
    wide = steps * size * 8 // dtype.width
    matrix = rng.integers(0, 60, (ctas, max(rows, 8), wide)).astype(dtype.numpy)
    flat = np.zeros((ctas, cute.cosize(made.outer)), dtype.numpy)
    for r in range(max(rows, 8)):
        for c in range(wide):
            flat[:, made.outer((r, c))] = matrix[:, r, c]
    columns = max(32, steps * size // 4)
    want = np.zeros((ctas, 128, columns), np.uint32)
    held = np.ascontiguousarray(matrix).view(np.uint32)
    want[:, got >= 0, : held.shape[2]] = held[:, got[got >= 0]]
    out = np.zeros_like(want)
    kernel = kernels.copier(atom, there, here, swizzle, flat.shape[1], columns)
    run(kernel, (ctas, 1), kernels.THREADS, [flat, out], outputs=[out], arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(out, want))  # fmt: skip


def tensor(lay, dtype=U8, space=AddressSpace.tmem, swizzle=None):
    return Tensor(Pointer(dtype, space, 0, 0, 1024, swizzle), lay)


def scale_factors():
    """Four factors of each of 128 rows for each of 4 multiplies, as tcgen05.mma takes them: (tensor, shared memory)."""
    lane = lane_stride(8)
    there = cute.make_layout(((((32, 4), 4), (16, 4)), 1, 4), stride=((((lane, 4), 32 * lane), (0, 1)), 0, 16))
    here = cute.make_layout(((((32, 4), 1), (16, 4)), 1, 4, 2), stride=((((16, 4), 0), (0, 1)), 0, 512, 2048))
    return cute.filter_zeros(tensor(there)), cute.filter_zeros(tensor(here, space=AddressSpace.smem))


def test_scale_factors_are_copied_by_one_instruction_for_each_multiply():
    there, here = scale_factors()
    tiled = tcgen05.make_s2t_copy(atom(tcgen05.Cp4x32x128bOp), there)
    mine = tiled.get_slice(0)
    to = mine.partition_D(there)
    source = tcgen05.get_s2t_smem_desc_tensor(tiled, mine.partition_S(here))
    assert cute.size(to.shape[0]) == 2048 and cute.size(to.shape[1:]) == 4
    assert cute.size(source.shape) == 8 and sorted(source.layout(i) for i in range(8)) == [32 * i for i in range(8)]
    word = source.iterator.word()
    assert (word >> 32 & 0x3FFF, word >> 61) == (128 // 16, 0)  # 8 rows of 16 bytes follow each other


def atom(op, dtype=U8, ctas=1):
    return cute.make_copy_atom(op(CtaGroup(ctas)), dtype)


WHOLE = cute.make_layout((128, 16), stride=(lane_stride(8), 1))
REFUSED = [
    (lambda: tcgen05.Cp4x32x128bOp(1), "cta_group 1 must be CtaGroup.ONE or .TWO"),
    (lambda: atom(tcgen05.Cp128x128bOp, cute.Float64), "elements of Float64 have 64 bits"),
    (lambda: tcgen05.make_s2t_copy(atom(tcgen05.Cp128x256bOp), tensor(WHOLE)), "is not made of what Cp128x256bOp"),
    (lambda: tcgen05.make_s2t_copy(atom(tcgen05.Cp128x128bOp), tensor(WHOLE, space=AddressSpace.smem)),
     "must be a tensor in tensor memory"),
    (lambda: tcgen05.make_s2t_copy(atom(tcgen05.Cp128x128bOp, F16), tensor(WHOLE)), "elements of 8 bits, and the atom"),
    (lambda: tcgen05.make_s2t_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(), F32), tensor(WHOLE, F32)),
     "is no copy from shared to tensor memory"),
    (lambda: tcgen05.get_s2t_smem_desc_tensor(
        atom(tcgen05.Cp128x128bOp), tensor(cute.make_layout((64, 16), stride=(16, 1)), space=AddressSpace.smem)),
     "mode 0 of .* has 64 values"),
    (lambda: tcgen05.get_s2t_smem_desc_tensor(
        atom(tcgen05.Cp128x128bOp),
        tensor(cute.make_layout(((128, 16), 1), stride=((32, 1), 0)), space=AddressSpace.smem)),
     "a K-major operand has it at"),
    (lambda: tcgen05.make_umma_smem_desc(tensor(WHOLE, space=AddressSpace.smem).iterator, WHOLE, "m"),
     'major \'m\' must be "k" or "mn"'),
    (lambda: tcgen05.make_umma_smem_desc(tensor(WHOLE).iterator, WHOLE, "k"), "must lie in shared memory"),
    (lambda: tcgen05.make_umma_smem_desc(tensor(WHOLE, space=AddressSpace.smem).iterator, (128, 16), "k"),
     "must be a Layout of the tile"),
]  # fmt: skip


@pytest.mark.parametrize("make, why", REFUSED, ids=[why for _, why in REFUSED])
def test_what_there_is_not_is_refused(make, why):
    with pytest.raises(cute.CuteError, match=why):
        make()


@pytest.mark.parametrize("major, swizzle", [("k", "SW128"), ("k", "INTER"), ("mn", "SW64")])
def test_the_descriptor_of_a_tile_is_that_of_its_fragment(major, swizzle):
    majors = [tcgen05.OperandMajorMode.K if major == "k" else tcgen05.OperandMajorMode.MN] * 2
    one = tcgen05.MmaF16BF16Op(F16, F32, (128, 64), CtaGroup.ONE, tcgen05.OperandSource.SMEM, *majors)
    kind = tcgen05.make_smem_layout_atom(SmemLayoutAtomKind[f"{major.upper()}_{swizzle}"], F16)
    mma = cute.make_tiled_mma(one)
    lay = tcgen05.tile_to_mma_shape(kind, mma.partition_shape_A((128, 64)), (0, 1) if major == "k" else (1, 0))
    shared = tensor(lay.outer, F16, AddressSpace.smem, lay.inner)
    got = tcgen05.make_umma_smem_desc(shared.iterator, lay.outer[0], major)
    assert got.word() == mma.make_fragment_A(shared).iterator.word()
