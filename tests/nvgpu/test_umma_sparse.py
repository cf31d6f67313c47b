# SPDX-License-Identifier: Apache-2.0
"""Sparse tcgen05.mma as an operation: legal forms, and products in the simulator and through the assembler."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import nvgpu
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from numba_cute.seam import CuteError

from . import scaled_kernels as kernels
from .test_umma import results
from .test_umma_scaled import factors, in_bytes, name_of, words_in_tmem

F16, BF16, F32, S8 = cute.Float16, cute.BFloat16, cute.Float32, cute.Int8
E4M3, E5M2, E2M1, E3M2 = cute.Float8E4M3FN, cute.Float8E5M2, cute.Float4E2M1FN, cute.Float6E3M2FN
K, MN = OperandMajorMode.K, OperandMajorMode.MN
SMEM, TMEM = OperandSource.SMEM, OperandSource.TMEM
SLOW = pytest.mark.slow
SCALED = (tcgen05.MmaMXF8SparseOp, tcgen05.MmaMXF8F6F4SparseOp, tcgen05.MmaMXF4SparseOp, tcgen05.MmaMXF4NVF4SparseOp)
FORMS = [
    (tcgen05.MmaF16BF16SparseOp, (F16, F32)), (tcgen05.MmaF16BF16SparseOp, (BF16, F32)), (tcgen05.MmaTF32SparseOp, ()),
    (tcgen05.MmaFP8SparseOp, (E4M3, F32)), (tcgen05.MmaF8F6F4SparseOp, (E2M1, E3M2, F32)),
    (tcgen05.MmaI8SparseOp, (S8,)), (tcgen05.MmaMXF8SparseOp, (E5M2,)), (tcgen05.MmaMXF8F6F4SparseOp, (E3M2, E4M3)),
    (tcgen05.MmaMXF4SparseOp, ()), (tcgen05.MmaMXF4NVF4SparseOp, (E4M3,)),
]  # fmt: skip


def operation(cls, types, shape, ctas=1, source=SMEM, majors=(K, K)):
    last = () if cls in SCALED[2:] else majors
    return cls(*types, shape, CtaGroup(ctas), source, *last)


def half_zero(rng, op, rows, k):
    """A matrix of small integers, as sparse as the operation takes it."""
    unit = {32: (2, 1, 1), 4: (8, 2, 2)}.get(op.stored_bits, (4, 2, 1))
    size, kept, together = unit
    a = rng.integers(-2, 3, (rows, k // size, size // together, together)).astype(float)
    order = np.argsort(rng.random((rows, k // size, size // together)), axis=-1)
    np.put_along_axis(a, order[..., kept:, None], 0.0, 2)
    return a.reshape(rows, k)


def check_product(run, rng, op, tile, arch="sm_100a", **options):
    m, n, k = tile
    ctas, one = op.cta_group.value, op.shape_mnk
    a, b = half_zero(rng, op, m, k), rng.integers(-2, 3, (n, k)).astype(float)
    stored, words = nvgpu.compress(op, a)
    want, extra = a @ b.T, []
    if isinstance(op, SCALED):
        each = op.sf_vec_size
        (fa, ca), (fb, cb) = (factors(rng, op, (rows, k // each)) for rows in (m, n))
        want = (a * np.repeat(fa, each, 1)) @ (b * np.repeat(fb, each, 1)).T
        extra = [kernels.factor_words(op, tile, c, x) for c, x in ((ca, "A"), (cb, "B"))]
    if op.a_src is TMEM:
        a_in = words_in_tmem(op, stored)
    else:
        a_in = kernels.parts_in_bytes(op, in_bytes(op, stored, op.a_type), one[0], one[2] // 2, op.a_type)
    b_in = kernels.parts_in_bytes(op, in_bytes(op, b, op.b_type), one[1], one[2], op.b_type)
    meta = words[0].transpose(1, 2, 0, 3).reshape(ctas, 128, -1)
    more = np.concatenate([*extra, meta], -1)
    out = np.zeros((ctas, 128, kernels.result_words(op, tile)), np.uint32)

    def check():
        assert np.array_equal(results(op, out, tile), want)

    kernel = kernels.multiply(op, tile, **options)
    run(kernel, (ctas, 1), 128, [a_in, b_in, more, out], outputs=[out], check=check, arch=arch)


@pytest.mark.parametrize(
    ("cls", "types"), [pytest.param(*f, marks=() if i in (0, 3) else SLOW) for i, f in enumerate(FORMS)],
    ids=name_of,
)  # fmt: skip
def test_each_type_multiplies_what_numpy_does(run, rng, cls, types):
    op = operation(cls, types, (128, 32))
    steps = 8 if isinstance(op, SCALED) and op.sf_vec_size == 64 and op.packed else 4
    check_product(run, rng, op, (128, 32, steps * op.shape_mnk[2]))


@pytest.mark.parametrize(("cls", "types"), [FORMS[0], pytest.param(*FORMS[3], marks=SLOW)], ids=name_of)
@pytest.mark.parametrize(("m", "ctas"), [(64, 1), *(pytest.param(m, 2, marks=SLOW) for m in (128, 256))])
@pytest.mark.parametrize("source", [SMEM, TMEM], ids=name_of)
def test_rows_lie_in_the_lanes_of_each_data_path(run, rng, cls, types, m, ctas, source):
    op = operation(cls, types, (m, 32), ctas, source)
    check_product(run, rng, op, (m, 32, 4 * op.shape_mnk[2]))


@pytest.mark.parametrize("run", ["simulator"], indirect=True)
def test_a_pair_takes_bytes_of_both_ctas_where_one_says_that_they_are_meant(run, rng):
    """Both CTAs write bytes; the one that multiplies reads them as halves."""
    op = operation(*FORMS[0], (128, 32), 2, TMEM)
    check_product(run, rng, op, (128, 32, op.shape_mnk[2]), swizzles=("SW32", "SW32"))


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: operation(tcgen05.MmaF16BF16SparseOp, (BF16, F16), (128, 64)), "acc_dtype"),
        (lambda: operation(tcgen05.MmaF16BF16SparseOp, (F16, F32), (128, 64, 16)), "instruction_shape"),
        (lambda: operation(tcgen05.MmaMXF8SparseOp, (E4M3,), (128, 64), 2), "must be \\(256, n, 64\\)"),
        (lambda: operation(tcgen05.MmaMXF4SparseOp, (), (128, 64, 64)), "instruction_shape"),
        (
            lambda: nvgpu.compress(operation(tcgen05.MmaTF32SparseOp, (), (64, 8)), np.ones((64, 16))),
            "one may be other",
        ),
    ],
)
def test_what_the_hardware_lacks_is_refused_with_the_rule(make, rule):
    with pytest.raises(CuteError, match=rule):
        make()


def test_shared_memory_has_the_stored_half_of_a():
    op = operation(tcgen05.MmaF16BF16SparseOp, (F16, F32), (128, 64))
    mma = cute.make_tiled_mma(op)
    a = cute.utils.sm100.make_smem_layout_a(mma, (128, 64, 128), F16, 2)
    b = cute.utils.sm100.make_smem_layout_b(mma, (128, 64, 128), F16, 2)
    assert cute.size(a) == 128 * 64 * 2 and cute.size(b) == 64 * 128 * 2
    assert a.outer.shape == ((128, 16), 1, 4, 2) and b.outer.shape == ((64, 32), 1, (2, 2), 2)
