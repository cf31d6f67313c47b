# SPDX-License-Identifier: Apache-2.0
"""wgmma: matrix multiply-accumulate by a warpgroup (128 threads), reading shared memory asynchronously. sm_90a.

The order: `fence()`, `cute.gemm(…)` for each step, `commit_group()`, `wait_group(n)` before the accumulator is read
or the operands' memory is overwritten. All threads of the warpgroup call each of these, converged.
"""

from ..atoms.op import Field
from .common import OperandMajorMode, OperandSource
from .hopper.descriptor import SmemLayoutAtomKind, make_smem_layout_atom
from .hopper.warpgroup_mma import (
    MmaB1Op,
    MmaF8Op,
    MmaF16BF16Op,
    MmaI8Op,
    MmaTF32Op,
    commit_group,
    fence,
    wait_group,
)
from .hopper.warpgroup_sparse import MmaF8SparseOp, MmaF16BF16SparseOp, MmaI8SparseOp, MmaTF32SparseOp

__all__ = [
    "Field",
    "MmaB1Op",
    "MmaF16BF16Op",
    "MmaF16BF16SparseOp",
    "MmaF8Op",
    "MmaF8SparseOp",
    "MmaI8Op",
    "MmaI8SparseOp",
    "MmaTF32Op",
    "MmaTF32SparseOp",
    "OperandMajorMode",
    "OperandSource",
    "SmemLayoutAtomKind",
    "commit_group",
    "fence",
    "make_smem_layout_atom",
    "wait_group",
]
