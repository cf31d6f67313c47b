# SPDX-License-Identifier: Apache-2.0
"""The usual set-up of an Ampere or Ada GEMM: mma.sync, and ldmatrix from swizzled shared memory.

Shared memory is laid out as for Hopper: rows of 16 to 128 bytes, swizzled so that the eight rows of an ldmatrix lie in
different banks. All are plain choices, made on the host or in a kernel; none issues anything.
"""

from __future__ import annotations

from typing import Any

from ..atoms.copy_atom import CopyAtom, make_copy_atom
from ..atoms.mma_atom import TiledMma, make_tiled_mma
from ..dtypes import BFloat16, DType, Float8E4M3FN, Float8E5M2, Float16, Float32, Float64, Int8, Int32, TFloat32, Uint8
from ..nvgpu import warp
from ..nvgpu.common import CopyUniversalOp
from ..seam import CuteError, traced
from .layout_enum import LayoutEnum
from .sm90 import get_smem_layout_atom, make_smem_layout_a, make_smem_layout_b, make_smem_layout_epi

__all__ = [
    "get_smem_layout_atom",
    "get_smem_load_op",
    "get_smem_store_op",
    "make_smem_layout_a",
    "make_smem_layout_b",
    "make_smem_layout_epi",
    "make_trivial_tiled_mma",
]


def _order(what: str, order: Any, dtype: Any) -> None:
    if not isinstance(order, LayoutEnum):
        raise CuteError(f"sm80.{what}: layout {order!r} is not a LayoutEnum; use LayoutEnum.from_tensor(t)")
    if not isinstance(dtype, DType):
        raise CuteError(f"sm80.{what}: element type {dtype!r} is not one; use one like cute.Float16")


@traced
def get_smem_load_op(layout: LayoutEnum, element_type: DType) -> CopyAtom:
    """Make the atom that loads an operand, (M, K) or (N, K), for mma.sync: ldmatrix of 4 matrices, transposed where the
    operand is MN-major and its elements have 16 bits; one element at a time for other MN-major operands.

    layout: the operand's order, a LayoutEnum; ROW_MAJOR is K-major. element_type: its elements. PTX ldmatrix, sm_75.

    >>> utils.sm80.get_smem_load_op(utils.LayoutEnum.ROW_MAJOR, cute.Float16).layout_dst_tv
    (32,(2,4)):(2,(1,64))
    """
    _order("get_smem_load_op", layout, element_type)
    k_major = layout is LayoutEnum.ROW_MAJOR
    if element_type.width in (8, 16, 32) and (k_major or element_type.width == 16):
        return make_copy_atom(warp.LdMatrix8x8x16bOp(not k_major, 4), element_type)
    return make_copy_atom(CopyUniversalOp(), element_type, element_type.width)


@traced
def get_smem_store_op(layout_d: LayoutEnum, elem_ty_d: DType, elem_ty_acc: DType) -> CopyAtom:
    """Make the atom that stores accumulators: the two neighbours along N that a thread holds at once where D is
    N-major, else one element. (stmatrix came with sm_90.)

    layout_d: the order of D, a LayoutEnum. elem_ty_d: the type that is stored. elem_ty_acc: the accumulators' type.

    >>> utils.sm80.get_smem_store_op(utils.LayoutEnum.ROW_MAJOR, cute.Float16, cute.Float32).num_bits
    32
    """
    _order("get_smem_store_op", layout_d, elem_ty_d)
    pair = 2 if layout_d.is_n_major_c() else 1
    return make_copy_atom(CopyUniversalOp(), elem_ty_d, pair * elem_ty_d.width)


@traced
def make_trivial_tiled_mma(
    a_dtype: DType, b_dtype: DType, acc_dtype: DType, atom_layout_mnk: Any, permutation_mnk: Any = None
) -> TiledMma:
    """Make the widest mma.sync of these types, tiled over `atom_layout_mnk` = (m, n, k) warps.

    a_dtype, b_dtype, acc_dtype: A and B both Float16, BFloat16 or one fp8 type into Float32 (or Float16, but of
    BFloat16); TFloat32 into Float32; Float64; or Int8 and Uint8 into Int32. permutation_mnk: as for `make_tiled_mma`;
    by default 16 rows of A and 16 of B for each warp, as an ldmatrix of 4 matrices loads. PTX mma.sync, sm_80; sm_89
    for fp8.

    >>> utils.sm80.make_trivial_tiled_mma(cute.Float16, cute.Float16, cute.Float32, (2, 2, 1)).size
    128
    """
    op = _op(a_dtype, b_dtype, acc_dtype)
    if permutation_mnk is None and isinstance(atom_layout_mnk, tuple) and len(atom_layout_mnk) == 3:
        m, n, k = atom_layout_mnk
        permutation_mnk = (op.shape_mnk[0] * m, 2 * op.shape_mnk[1] * n, op.shape_mnk[2] * k)
    return make_tiled_mma(op, atom_layout_mnk, permutation_mnk)


def _op(a: Any, b: Any, acc: Any) -> Any:
    same = a == b
    if same and a in (Float16, BFloat16):
        return warp.MmaF16BF16Op(a, acc, (16, 8, 16))
    if same and a in (Float8E4M3FN, Float8E5M2):
        return warp.MmaFP8Op(a, acc, (16, 8, 32))
    if same and a == TFloat32 and acc == Float32:
        return warp.MmaTF32Op((16, 8, 8))
    if same and a == acc == Float64:
        return warp.MmaF64Op((8, 8, 4))
    if a in (Int8, Uint8) and b in (Int8, Uint8) and acc == Int32:
        return warp.MmaI8Op(a, b, (16, 8, 32))
    raise CuteError(
        f"sm80.make_trivial_tiled_mma: no mma.sync multiplies {a!r} by {b!r} into {acc!r}: both Float16, BFloat16, or "
        "one fp8 type, into Float32 (or Float16 of Float16 and fp8); both TFloat32 into Float32; both Float64 into "
        "Float64; each of Int8 and Uint8 into Int32"
    )
