# SPDX-License-Identifier: Apache-2.0
"""The usual set-up of a Hopper GEMM: its tiled MMA, its shared memory layouts, and how its results leave.

All are plain choices over `nvgpu.warpgroup` and `nvgpu.warp`, made on the host or in a kernel; none issues anything.
"""

from __future__ import annotations

from typing import Any

from .. import layout
from ..atoms.copy_atom import CopyAtom, make_copy_atom
from ..atoms.mma_atom import TiledMma, make_tiled_mma
from ..dtypes import BFloat16, DType, Float8E4M3FN, Float8E5M2, Float16, Int8, TFloat32, Uint8
from ..layout import ComposedLayout
from ..nvgpu import warp, warpgroup
from ..nvgpu.common import CopyUniversalOp
from ..nvgpu.warpgroup import OperandMajorMode, OperandSource, SmemLayoutAtomKind
from ..seam import CuteError, traced
from ..seam.guards.messages import how_static
from .layout_enum import LayoutEnum

__all__ = [
    "compute_tile_shape_or_override",
    "get_smem_layout_atom",
    "get_smem_store_op",
    "make_smem_layout_a",
    "make_smem_layout_b",
    "make_smem_layout_epi",
    "make_trivial_tiled_mma",
    "sm90_get_smem_layout_atom",
    "sm90_get_smem_store_op",
    "sm90_make_trivial_tiled_mma",
]

_FP8, _INT8 = (Float8E4M3FN, Float8E5M2), (Int8, Uint8)


def _need(ok: bool, what: str, message: str) -> None:
    if not ok:
        raise CuteError(f"sm90.{what}: {message}")


def _checked(what: str, order: Any, dtype: Any, name: str) -> None:
    _need(isinstance(order, LayoutEnum), what, f"{name} {order!r} is not a LayoutEnum; use LayoutEnum.from_tensor(t)")
    _need(isinstance(dtype, DType), what, f"element type {dtype!r} is not one; use one like cute.Float16")


@traced
def get_smem_layout_atom(layout: LayoutEnum, element_type: DType, major_mode_size: int) -> SmemLayoutAtomKind:
    """Choose the kind of shared memory layout with the widest swizzle that divides the tile.

    layout: ROW_MAJOR for a K-major tile, COL_MAJOR for an MN-major one. element_type: the elements. major_mode_size:
    elements of the tile along its contiguous mode, a multiple of 8.

    >>> utils.sm90.get_smem_layout_atom(utils.LayoutEnum.ROW_MAJOR, cute.Float16, 64)
    <SmemLayoutAtomKind.K_SW128: ('k', 3)>
    """
    _checked("get_smem_layout_atom", layout, element_type, "layout")
    size = major_mode_size
    _need(type(size) is int and size > 0 and size % 8 == 0, "get_smem_layout_atom",
          f"major_mode_size {size!r} must be a static multiple of 8 elements{how_static(size)}")  # fmt: skip
    major = "K" if layout is LayoutEnum.ROW_MAJOR else "MN"
    bits = size * element_type.width
    widest = next((name for unit, name in ((1024, "SW128"), (512, "SW64"), (256, "SW32")) if bits % unit == 0), "INTER")
    return SmemLayoutAtomKind[f"{major}_{widest}"]


def _staged(order: LayoutEnum, dtype: DType, shape: Any, target: Any = None, steps: Any = None) -> ComposedLayout:
    """The widest atom for a tile, `shape` without its stages, repeated over `target` in the order `steps`."""
    rows = order is LayoutEnum.ROW_MAJOR
    atom = warpgroup.make_smem_layout_atom(get_smem_layout_atom(order, dtype, shape[1 if rows else 0]), dtype)
    steps = steps if steps is not None else (0, 1, 2) if rows else (1, 0, 2)
    return layout.tile_to_shape(atom, shape if target is None else target, steps)  # type: ignore[no-any-return]


def _operand(what: str, order: Any, extent: int, tile: Any, dtype: Any, num_stages: Any) -> ComposedLayout:
    _checked(what, order, dtype, f"{what[-1]}_layout")
    ok = isinstance(tile, tuple) and len(tile) == 3
    _need(ok, what, f"mma_tiler_mnk {tile!r} must have 3 modes: M, N, K")
    _need(
        type(num_stages) is int and num_stages > 0,
        what,
        f"num_stages {num_stages!r} must be a static number >= 1{how_static(num_stages)}",
    )
    return _staged(order, dtype, (*layout.product_each((tile[extent], tile[2])), num_stages))


@traced
def make_smem_layout_a(
    a_layout: LayoutEnum, mma_tiler_mnk: tuple[int, int, int], a_dtype: DType, num_stages: int
) -> ComposedLayout:
    """Make the shared memory layout of A, (M, K, stages), in the widest swizzle that divides the tile.

    a_layout: the order of A in global memory, a LayoutEnum; ROW_MAJOR is K-major. mma_tiler_mnk: the CTA's tile (M, N,
    K). a_dtype: the elements. num_stages: a static count. Allocate it with `layout.outer` and `swizzle=layout.inner`,
    128-byte aligned.

    >>> utils.sm90.make_smem_layout_a(utils.LayoutEnum.ROW_MAJOR, (64, 64, 64), cute.BFloat16, 2)
    S<3,4,3> o 0 o ((8,8),(64,1),(1,2)):((64,512),(1,0),(0,4096))
    """
    return _operand("make_smem_layout_a", a_layout, 0, mma_tiler_mnk, a_dtype, num_stages)


@traced
def make_smem_layout_b(
    b_layout: LayoutEnum, mma_tiler_mnk: tuple[int, int, int], b_dtype: DType, num_stages: int
) -> ComposedLayout:
    """Make the shared memory layout of B, (N, K, stages), in the widest swizzle that divides the tile.

    b_layout: the order of B, an (N, K) matrix, in global memory; ROW_MAJOR is K-major. mma_tiler_mnk, b_dtype,
    num_stages: as for `make_smem_layout_a`.

    >>> utils.sm90.make_smem_layout_b(utils.LayoutEnum.ROW_MAJOR, (64, 32, 64), cute.BFloat16, 2)
    S<3,4,3> o 0 o ((8,4),(64,1),(1,2)):((64,512),(1,0),(0,2048))
    """
    return _operand("make_smem_layout_b", b_layout, 1, mma_tiler_mnk, b_dtype, num_stages)


@traced
def make_smem_layout_epi(
    epi_dtype: DType,
    epi_layout: LayoutEnum,
    epi_tile: tuple[Any, Any],
    epi_stage: int,
    smem_trg_shape: Any = None,
    smem_order: Any = None,
) -> ComposedLayout:
    """Make the shared memory layout through which results leave, (epi M, epi N, stages), in the widest swizzle that
    divides the tile.

    epi_dtype: the elements. epi_layout: the order of D in global memory; ROW_MAJOR is N-major. epi_tile: (M, N),
    numbers or layouts. epi_stage: a static count of stages. smem_trg_shape: the shape to cover, by default (*epi_tile,
    epi_stage). smem_order: the order in which the atom is repeated along it, by default the contiguous mode last of the
    two.

    >>> utils.sm90.make_smem_layout_epi(cute.BFloat16, utils.LayoutEnum.ROW_MAJOR, (64, 32), 2)
    S<2,4,3> o 0 o ((8,8),(32,1),(1,2)):((32,256),(1,0),(0,2048))
    """
    what = "make_smem_layout_epi"
    _checked(what, epi_layout, epi_dtype, "epi_layout")
    _need(isinstance(epi_tile, tuple) and len(epi_tile) == 2, what, f"epi_tile {epi_tile!r} must have 2 modes: M, N")
    _need(
        type(epi_stage) is int and epi_stage > 0,
        what,
        f"epi_stage {epi_stage!r} must be a static number >= 1{how_static(epi_stage)}",
    )
    shape = layout.product_each(tuple(layout.shape(t) for t in epi_tile))
    return _staged(epi_layout, epi_dtype, (*shape, epi_stage), smem_trg_shape, smem_order)


@traced
def get_smem_store_op(layout_d: LayoutEnum, elem_ty_d: DType, elem_ty_acc: DType) -> CopyAtom:
    """Make the atom that stores accumulators to shared memory: stmatrix of 4 matrices for 16-bit elements, transposed
    where D is M-major; else one element at a time.

    layout_d: the order of D, a LayoutEnum. elem_ty_d: the type that is stored. elem_ty_acc: the accumulators' type. PTX
    stmatrix, sm_90.

    >>> utils.get_smem_store_op(utils.LayoutEnum.ROW_MAJOR, cute.Float16, cute.Float32).op
    StMatrix8x8x16bOp(transpose=False, num_matrices=4)
    """
    _checked("get_smem_store_op", layout_d, elem_ty_d, "layout_d")
    _need(isinstance(elem_ty_acc, DType), "get_smem_store_op", f"elem_ty_acc {elem_ty_acc!r} is not an element type")
    if elem_ty_d.width == 16 and elem_ty_acc.width <= 32:
        return make_copy_atom(warp.StMatrix8x8x16bOp(layout_d.is_m_major_c(), 4), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)


@traced
def compute_tile_shape_or_override(
    tile_shape_mnk: tuple[int, int, int],
    element_type: DType,
    is_cooperative: bool = False,
    epi_tile_override: Any = None,
) -> Any:
    """Choose the part (M, N) of a CTA's tile that goes through shared memory at once on its way out.

    tile_shape_mnk: the CTA's tile. element_type: the elements of D. is_cooperative: warpgroups share one tile: 128 rows
    and 32 columns; otherwise each takes 64 rows and 32 columns, 64 of 8-bit elements where N divides by 64. Never more
    than the tile has. epi_tile_override: taken instead, where given.

    >>> utils.sm90.compute_tile_shape_or_override((128, 256, 64), cute.BFloat16)
    (64, 32)
    """
    if epi_tile_override is not None:
        return epi_tile_override
    m, n, _ = layout.product_each(tile_shape_mnk)
    if is_cooperative:
        return min(128, m), min(32, n)
    return 64, min(64 if element_type.width == 8 and n % 64 == 0 else 32, n)


@traced
def make_trivial_tiled_mma(
    a_dtype: DType,
    b_dtype: DType,
    a_leading_mode: OperandMajorMode,
    b_leading_mode: OperandMajorMode,
    acc_dtype: DType,
    atom_layout_mnk: Any,
    tiler_mn: tuple[int, int],
    a_source: OperandSource = OperandSource.SMEM,
) -> TiledMma:
    """Make the wgmma of these types with N = tiler_mn[1], tiled over `atom_layout_mnk` warpgroups.

    a_dtype, b_dtype: both Float16, BFloat16 or TFloat32, each an fp8 type, or each Int8 or Uint8; acc_dtype: as the
    wgmma has it. a_leading_mode, b_leading_mode: the contiguous modes of A and B. Only 16-bit operands have the choice:
    those of tf32 and of 8 bits are read K-major, and making a fragment of memory that is not so is refused. tiler_mn:
    (64, N). a_source: the memory of A, an OperandSource. PTX wgmma.mma_async, sm_90a.

    >>> K = nvgpu.OperandMajorMode.K
    >>> mma = utils.sm90.make_trivial_tiled_mma(cute.Float16, cute.Float16, K, K, cute.Float32, (2, 1, 1), (64, 128))
    >>> mma.size
    256
    """
    what = "make_trivial_tiled_mma"
    for name, value, kind in (("a_dtype", a_dtype, DType), ("b_dtype", b_dtype, DType), ("acc_dtype", acc_dtype, DType),
                              ("a_leading_mode", a_leading_mode, OperandMajorMode),
                              ("b_leading_mode", b_leading_mode, OperandMajorMode)):  # fmt: skip
        _need(isinstance(value, kind), what, f"{name} {value!r} is not a {kind.__name__}")
    ok = isinstance(tiler_mn, tuple) and len(tiler_mn) == 2
    _need(ok, what, f"tiler_mn {tiler_mn!r} must be (64, N), the M and N of one wgmma")
    shape = (64, tiler_mn[1])
    if a_dtype in (Float16, BFloat16) and a_dtype == b_dtype:
        op: Any = warpgroup.MmaF16BF16Op(a_dtype, acc_dtype, shape, a_source, a_leading_mode, b_leading_mode)
    elif a_dtype in _FP8 and b_dtype in _FP8:
        op = warpgroup.MmaF8Op(a_dtype, b_dtype, acc_dtype, shape, a_source)
    elif a_dtype in _INT8 and b_dtype in _INT8:
        op = warpgroup.MmaI8Op(a_dtype, b_dtype, acc_dtype, shape, a_source)
    elif a_dtype == b_dtype == TFloat32:
        _need(acc_dtype.name == "Float32", what, f"acc_dtype {acc_dtype!r} must be Float32 for TFloat32")
        op = warpgroup.MmaTF32Op(shape, a_source)
    else:
        raise CuteError(
            f"sm90.{what}: no wgmma multiplies {a_dtype!r} by {b_dtype!r}: both Float16, both BFloat16, both TFloat32, "
            "or each of Float8E4M3FN and Float8E5M2, or each of Int8 and Uint8"
        )
    return make_tiled_mma(op, atom_layout_mnk)


# The CuTe DSL's older names
sm90_get_smem_layout_atom = get_smem_layout_atom
sm90_get_smem_store_op = get_smem_store_op
sm90_make_trivial_tiled_mma = make_trivial_tiled_mma
