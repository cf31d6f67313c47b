# SPDX-License-Identifier: Apache-2.0
"""No matrix instruction is forgotten: each row of the table is what a tested operation issues, and says its target."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import isa
from numba_cute.dtypes import Float4E2M1FN, Float8E8M0FNU
from numba_cute.isa import TABLE, supports
from numba_cute.nvgpu import warp, warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from ..nvgpu import test_ldmatrix, test_matrices, test_sparse, test_warp_mma, test_wgmma

F16, F32, S8 = cute.Float16, cute.Float32, cute.Int8
E4M3, E5M2 = cute.Float8E4M3FN, cute.Float8E5M2
SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM

MATRIX = sorted(
    name
    for name in TABLE
    if name.startswith(("mma_", "wgmma_", "ldmatrix", "stmatrix", "movmatrix"))
    and name not in ("wgmma_fence", "wgmma_commit_group", "wgmma_wait_group", "wgmma_wait_group_after")
)


def warp_operations():
    yield from (*test_warp_mma.OPS, *test_sparse.OPS, *test_sparse.I4)
    yield from (warp.MmaI4Op(*case) for case in test_warp_mma.I4)
    yield from (warp.MmaB1Op(bit_op=op) for op in ("xor", "and"))
    yield warp.MmaMXF4Op(Float4E2M1FN, F32, Float8E8M0FNU)
    yield warp.MmaMXF4NVF4Op(Float4E2M1FN, F32, E4M3)
    yield warp.MmaMXF8Op(E4M3, F32, Float8E8M0FNU)
    yield from (op(E4M3, E5M2, acc) for op in (warp.MmaF8F6F4Op, warp.MmaF8F6F4SparseOp) for acc in (F32, F16))
    yield warp.MmaMXF4SparseOp(Float4E2M1FN, F32, Float8E8M0FNU)
    yield warp.MmaMXF4NVF4SparseOp(Float4E2M1FN, F32, E4M3)
    yield warp.MmaMXF8F6F4SparseOp(E4M3, E5M2, F32, Float8E8M0FNU)


def warpgroup_operations():
    yield from (*test_wgmma.ops(), *test_wgmma.bit_ops(), *test_sparse.wgmma_ops())


def rows_with_a_test():
    rows = {op.row()[0].name for op in warp_operations()}
    rows |= {op.row()[0].name for op in warpgroup_operations()}
    rows |= {"ldmatrix", "stmatrix", "ldmatrix_m16n16_b8", "stmatrix_m16n8_b8"}  # test_ldmatrix
    rows |= {"ldmatrix_m8n16_unpack", "ldmatrix_m16n16_unpack"}
    return rows | {"movmatrix"}  # test_matrices


def test_every_matrix_row_is_issued_by_a_tested_operation():
    assert test_ldmatrix.BYTES and test_matrices.test_movmatrix_transposes
    assert sorted(rows_with_a_test() & set(MATRIX)) == MATRIX


def every_operation():
    seen = {}
    for op in (*warp_operations(), *warpgroup_operations()):
        seen.setdefault(op.row()[0].name, op)
    return sorted(seen.items())


TARGETS = ("sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_120a")


@pytest.mark.parametrize("name, op", every_operation(), ids=lambda x: x if isinstance(x, str) else "")
def test_an_operation_is_refused_for_each_target_that_it_does_not_claim(name, op):
    """By the row's name and its target, when the kernel is typed."""
    row = TABLE[name]
    refused = [t for t in TARGETS if not supports(t, row.target)]
    assert refused or row.target in ("sm_75", "sm_80")
    for target in refused:

        class Typing:
            arch = target

            def issue(self, instr, statics, operands):
                from numba_cute.compiler.emit.tracer import Tracer

                return Tracer.issue(self, instr, statics, operands)

        with cute.seam.running(Typing()), pytest.raises(CuteError, match=f"{name} needs {row.target.split('|')[0]}"):
            row(*(0 for o in row.operands), **op.row()[1])


@pytest.mark.parametrize(
    "op, target, least",
    [
        (warp.MmaFP8Op(E4M3, F16, (16, 8, 32)), "sm_80", "sm_89"),
        (warp.MmaF64Op((16, 8, 4)), "sm_80", "sm_90"),
        (warp.MmaF8F6F4Op(E4M3, E5M2, F32), "sm_90a", "sm_120f"),
    ],
    ids=["fp8", "f64", "f8f6f4"],
)
def test_a_kernel_is_refused_by_the_operation_s_least_target(op, target, least):
    (m, n, k), types = op.shape_mnk, (op.held("A"), op.held("B"), op.accumulator)
    shapes = ((m, k), (n, k), (m, n), (m, n))
    arrays = [np.zeros(s, t.numpy) for s, t in zip(shapes, (*types, op.accumulator))]
    with pytest.raises(CuteError, match=f"needs {least}"):
        cute.compile(
            test_warp_mma.multiply, (cute.make_tiled_mma(op), True, *map(from_dlpack, arrays)), arch=target
        )  # fmt: skip


def test_wgmma_is_refused_but_for_sm_90a():
    assert {TABLE[r].target for r in MATRIX if r.startswith("wgmma")} == {"sm_90a"}
    assert all(isa.TABLE[r].doc for r in MATRIX)
