# SPDX-License-Identifier: Apache-2.0
"""utils.gemm.sm100: products of each data path leave in each order and type, by TMA and directly."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.nvgpu import CopyUniversalOp, tcgen05, warp
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource, Pack, Repetition
from numba_cute.runtime import from_dlpack
from numba_cute.utils import LayoutEnum, sm100
from numba_cute.utils.gemm.sm100 import transform_partitioned_tensor_layout

from . import epilogue_kernels as kernels

F16, F32, S8 = cute.Float16, cute.Float32, cute.Int8
ROW, COL = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
SLOW = pytest.mark.slow


def operation(cls, types, shape, ctas=1):
    k = OperandMajorMode.K
    return cls(*types, shape, CtaGroup(ctas), OperandSource.SMEM, k, k)


HALF = lambda shape, ctas=1, acc=F32: operation(tcgen05.MmaF16BF16Op, (F16, acc), shape, ctas)  # noqa: E731
BYTES = lambda shape, ctas=1: operation(tcgen05.MmaI8Op, (S8,), shape, ctas)  # noqa: E731
CASES = [
    pytest.param(HALF((128, 64)), 64, F16, ROW, marks=SLOW, id="128-f16-row"),
    pytest.param(HALF((128, 64)), 64, F16, COL, id="128-f16-col"),
    pytest.param(HALF((128, 64)), 64, F32, COL, marks=SLOW, id="128-f32-col"),
    pytest.param(HALF((64, 64)), 64, F32, ROW, id="64-f32-row"),
    pytest.param(HALF((64, 64)), 64, F16, COL, marks=SLOW, id="64-f16-col"),
    pytest.param(HALF((64, 64), 1, F16), 64, F16, ROW, id="64-f16-f16-row"),
    pytest.param(HALF((128, 64), 1, F16), 64, F16, ROW, marks=SLOW, id="128-f16-f16-row"),
    pytest.param(HALF((256, 64), 2), 64, F16, ROW, marks=SLOW, id="256-pair-f16-row"),
    pytest.param(HALF((128, 64), 2), 64, F32, ROW, id="128-pair-f32-row"),
    pytest.param(HALF((128, 64), 2), 64, F16, COL, marks=SLOW, id="128-pair-f16-col"),
    pytest.param(BYTES((128, 64)), 128, S8, COL, id="128-s8-col"),
    pytest.param(BYTES((64, 64)), 128, S8, ROW, marks=SLOW, id="64-s8-row"),
]


DIRECT = {"64-f32-row"}


def ways():
    """Each case by TMA, and directly: of those a few at first."""
    for case in CASES:
        yield pytest.param(*case.values, True, marks=case.marks, id=f"{case.id}-tma")
        marks = case.marks if case.id in DIRECT else SLOW
        yield pytest.param(*case.values, False, marks=marks, id=f"{case.id}-direct")


@pytest.mark.parametrize("op, k, c_type, order, by_tma", list(ways()))
def test_results_leave(run, rng, op, k, c_type, order, by_tma):
    p = kernels.Problem(op, k, c_type, order)
    a, b, want = kernels.operands(p, rng)
    # C is (M, N) with N contiguous in rows, or M
    c = np.zeros(want.shape if order is ROW else want.T.shape, c_type.numpy)
    mine = c if order is ROW else c.T
    kernel = kernels.gemm(p, by_tma)
    args = [a, b, (lambda place: p.tma(place(mine))) if by_tma else (lambda place: from_dlpack(place(mine)))]
    run(kernel, (p.ctas, 1), kernels.THREADS, args, outputs=[c], arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(mine.astype(np.float64), want))  # fmt: skip


def test_an_operation_is_applied_and_each_thread_may_release(run, rng):
    p = kernels.Problem(HALF((128, 32)), 64, F32, ROW)
    a, b, want = kernels.operands(p, rng)
    c = np.zeros(want.shape, np.float32)
    kernel = kernels.gemm(p, False, kernels.doubled, each_thread=True)
    run(kernel, 1, kernels.THREADS, [a, b, lambda place: from_dlpack(place(c))], outputs=[c], arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(c.astype(np.float64), 2 * want))  # fmt: skip


@pytest.mark.parametrize("shared", [pytest.param(0, marks=SLOW, id="apart"), pytest.param(32, id="overlapping")])
def test_what_lies_outside_of_the_result_is_not_written(run, rng, shared):
    p = kernels.Problem(HALF((128, 64)), 64, F32, ROW)
    a, b, want = kernels.operands(p, rng)
    rows, columns = 120, want.shape[1] - 9
    c = np.zeros((rows, columns), np.float32)
    kernel = kernels.gemm(p, False, bounded=True, shared=shared)
    run(kernel, 1, kernels.THREADS, [a, b, lambda place: from_dlpack(place(c))], outputs=[c], arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(c.astype(np.float64), want[:rows, :columns]))  # fmt: skip


def loaded(shape, order, c_type, acc, pair=False):
    """The load that is chosen, and the store of what it loads."""
    tile = sm100.compute_epilogue_tile_shape(shape, pair, order, c_type)
    atom = sm100.get_tmem_load_op(shape, order, c_type, acc, tile, pair)
    return atom, sm100.get_smem_store_op(order, c_type, acc, atom)


STMATRIX, STMATRIX8, PLAIN = warp.StMatrix8x8x16bOp, warp.StMatrix16x8x8bOp, CopyUniversalOp


@pytest.mark.parametrize("shape, order, c_type, acc, pair, load, store", [
    ((128, 64, 64), ROW, F16, F32, False, tcgen05.Ld32x32bOp(Repetition.x32), PLAIN()),
    ((128, 64, 64), COL, F16, F32, False, tcgen05.Ld16x256bOp(Repetition.x4), STMATRIX(True, 4)),
    ((128, 8, 64), COL, F16, F32, False, tcgen05.Ld16x256bOp(Repetition.x1), STMATRIX(True, 2)),
    ((64, 256, 64), ROW, F32, F32, False, tcgen05.Ld16x128bOp(Repetition.x16), STMATRIX(False, 4)),
    ((64, 256, 64), COL, F32, F32, False, tcgen05.Ld16x256bOp(Repetition.x8), PLAIN()),
    ((128, 32, 64), COL, S8, cute.Int32, False, tcgen05.Ld16x256bOp(Repetition.x4), STMATRIX8(True, 4)),
    ((64, 64, 64), ROW, S8, cute.Int32, False, tcgen05.Ld16x32bx2Op(Repetition.x32), PLAIN()),
    ((64, 64, 64), ROW, F16, F16, True, tcgen05.Ld32x32bOp(Repetition.x16, Pack.PACK_16b_IN_32b), PLAIN()),
    ((64, 64, 64), COL, F16, F16, False, tcgen05.Ld16x128bOp(Repetition.x8, Pack.PACK_16b_IN_32b), STMATRIX(True, 4)),
])  # fmt: skip
def test_loads_and_stores_suit_each_other(shape, order, c_type, acc, pair, load, store):
    got = loaded(shape, order, c_type, acc, pair)
    assert (got[0].op, got[0].value_type, got[1].op, got[1].value_type) == (load, acc, store, c_type)


@pytest.mark.parametrize("call, why", [
    (lambda: sm100.get_tmem_load_op((128, 64), ROW, F32, F16, (128, 64), False), "suits stores of Float32"),
    (lambda: sm100.get_tmem_load_op((96, 64), ROW, F16, F32, (96, 64), False), "M must be 64 or 128"),
    (lambda: sm100.get_tmem_load_op((128, 4), COL, F16, F32, (128, 4), False), "4 columns for a warp are no multiple"),
    (lambda: sm100.get_tmem_load_op((128, 64), "row", F16, F32, (128, 64), False), "layout_d 'row' is not a LayoutE"),
    (lambda: transform_partitioned_tensor_layout(cute.make_layout((4, 4))), "must have modes"),
])  # fmt: skip
def test_what_no_epilogue_has_is_refused(call, why):
    with pytest.raises(cute.CuteError, match=why):
        call()
