# SPDX-License-Identifier: Apache-2.0
"""The usual set-up of a Blackwell GEMM: its tiled MMA, its shared memory layouts, its loads, and the parts in which its
results leave.

All are plain choices over `nvgpu.tcgen05` and `nvgpu.cpasync`, made on the host or in a kernel; none issues anything.
"""

from __future__ import annotations

from typing import Any

from .. import layout
from ..atoms.mma_atom import TiledMma, make_tiled_mma
from ..dtypes import (
    BFloat16,
    DType,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Int8,
    Int32,
    TFloat32,
    Uint8,
)
from ..layout import ComposedLayout
from ..nvgpu import tcgen05
from ..nvgpu.blackwell.smem_layouts import widest_kind
from ..nvgpu.common import CtaGroup
from ..nvgpu.cpasync import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp
from ..nvgpu.tcgen05 import OperandMajorMode, OperandSource, SmemLayoutAtomKind
from ..seam import CuteError, traced
from .layout_enum import LayoutEnum
from .sm100_blockscaled import make_blockscaled_trivial_tiled_mma

__all__ = [
    "cluster_shape_to_tma_atom_A",
    "cluster_shape_to_tma_atom_B",
    "cluster_shape_to_tma_atom_SFB",
    "compute_epilogue_tile_shape",
    "get_smem_layout_atom_ab",
    "get_smem_layout_atom_epi",
    "make_blockscaled_trivial_tiled_mma",
    "make_smem_layout_a",
    "make_smem_layout_b",
    "make_smem_layout_epi",
    "make_trivial_tiled_mma",
]

_FLOATS = (Float8E4M3FN, Float8E5M2, Float6E2M3FN, Float6E3M2FN, Float4E2M1FN)


def _need(ok: bool, what: str, message: str) -> None:
    if not ok:
        raise CuteError(f"sm100.{what}: {message}")


def _is(what: str, name: str, value: Any, kind: type) -> None:
    _need(isinstance(value, kind), what, f"{name} {value!r} is not a {kind.__name__}")


def _widest(what: str, major: str, element_type: DType, extent: Any) -> SmemLayoutAtomKind:
    """The kind of the widest rows that divide `extent` contiguous elements."""
    _need(type(extent) is int and extent > 0, what, f"extent {extent!r} of the contiguous mode must be static")
    return widest_kind(major, element_type, extent)


@traced
def get_smem_layout_atom_ab(
    major_mode: OperandMajorMode, element_type: DType, smem_shape_mn_k: tuple[int, int]
) -> SmemLayoutAtomKind:
    """Choose the kind of an operand's shared memory layout with the widest swizzle that divides the tile.

    major_mode: the contiguous mode. element_type: the elements; of 32 bits and MN-major take the swizzle in atoms of 32
    bytes. smem_shape_mn_k: the tile in shared memory, (M or N, K). Raises CuteError where rows are not of whole 16
    bytes.
    """
    what = "get_smem_layout_atom_ab"
    _is(what, "major_mode", major_mode, OperandMajorMode)
    _is(what, "element_type", element_type, DType)
    _need(isinstance(smem_shape_mn_k, tuple) and len(smem_shape_mn_k) == 2, what,
          f"smem_shape_mn_k {smem_shape_mn_k!r} must have 2 modes: M or N, and K")  # fmt: skip
    extent = layout.size(smem_shape_mn_k[1 if major_mode is OperandMajorMode.K else 0])
    return _widest(what, major_mode.name, element_type, extent)


@traced
def get_smem_layout_atom_epi(
    layout_d: LayoutEnum, element_type: DType, epi_tile: tuple[Any, Any]
) -> SmemLayoutAtomKind:
    """Choose the kind of shared memory layout through which results leave, of the widest swizzle that divides the tile.

    layout_d: the order of D, a LayoutEnum; ROW_MAJOR is N-major. element_type: the elements. epi_tile: (M, N), numbers
    or layouts. Raises CuteError where rows are not of whole 16 bytes.
    """
    what = "get_smem_layout_atom_epi"
    _is(what, "layout_d", layout_d, LayoutEnum)
    _is(what, "element_type", element_type, DType)
    _need(isinstance(epi_tile, tuple) and len(epi_tile) == 2, what, f"epi_tile {epi_tile!r} must have 2 modes: M, N")
    rows = layout_d.is_n_major_c()
    extent = layout.size(layout.shape(epi_tile[1 if rows else 0]))
    return _widest(what, "K" if rows else "MN", element_type, extent)


def _operand(
    what: str, operand: str, tiled_mma: Any, tile: Any, dtype: Any, num_stages: Any, k_major: Any
) -> ComposedLayout:
    _is(what, "tiled_mma", tiled_mma, TiledMma)
    _is(what, "element type", dtype, DType)
    ok = isinstance(tile, tuple) and len(tile) == 3
    _need(ok, what, f"mma_tiler_mnk {tile!r} must have 3 modes: M, N, K")
    _need(type(num_stages) is int and num_stages > 0, what, f"num_stages {num_stages!r} must be a static number >= 1")
    _need(k_major in (None, True, False), what, f"is_k_major {k_major!r} must be None, True or False")
    m, n, k = layout.product_each(tile)
    if operand == "A":
        shape, major = tiled_mma.partition_shape_A((m, k)), tiled_mma.op.a_major_mode
    else:
        shape, major = tiled_mma.partition_shape_B((n, k)), tiled_mma.op.b_major_mode
    if k_major is not None:
        major = OperandMajorMode.K if k_major else OperandMajorMode.MN
    (mn, kk), rest_mn, rest_k = shape
    kind = get_smem_layout_atom_ab(major, dtype, (mn * rest_mn, kk * rest_k))
    order = (0, 1, 2) if major is OperandMajorMode.K else (1, 0, 2)
    atom = tcgen05.make_smem_layout_atom(kind, dtype)
    return tcgen05.tile_to_mma_shape(atom, (*shape, num_stages), order)  # type: ignore[no-any-return]


@traced
def make_smem_layout_a(
    tiled_mma: TiledMma, mma_tiler_mnk: tuple[int, int, int], a_dtype: DType, num_stages: int,
    is_k_major: bool | None = None,
) -> ComposedLayout:  # fmt: skip
    """Make the shared memory layout of a CTA's part of A, ((M, K), rest M, rest K, stages), in the widest swizzle that
    divides it.

    tiled_mma: a tiled tcgen05 operation. mma_tiler_mnk: the tile (M, N, K) of all its CTAs. a_dtype: the elements.
    num_stages: a static count. is_k_major: taken in place of the operation's major mode, where given. Allocate it with
    `layout.outer` and `swizzle=layout.inner`, 1024-byte aligned. Raises CuteError for a tile that it does not divide.
    """
    return _operand("make_smem_layout_a", "A", tiled_mma, mma_tiler_mnk, a_dtype, num_stages, is_k_major)


@traced
def make_smem_layout_b(
    tiled_mma: TiledMma, mma_tiler_mnk: tuple[int, int, int], b_dtype: DType, num_stages: int,
    is_k_major: bool | None = None,
) -> ComposedLayout:  # fmt: skip
    """Make the shared memory layout of a CTA's part of B, ((N, K), rest N, rest K, stages), in the widest swizzle that
    divides it. tiled_mma, mma_tiler_mnk, b_dtype, num_stages, is_k_major: as for `make_smem_layout_a`."""
    return _operand("make_smem_layout_b", "B", tiled_mma, mma_tiler_mnk, b_dtype, num_stages, is_k_major)


@traced
def make_smem_layout_epi(
    epi_dtype: DType, epi_layout: LayoutEnum, epi_tile: tuple[Any, Any], epi_stage: int
) -> ComposedLayout:
    """Make the shared memory layout through which results leave, (epi M, epi N, stages), in the widest swizzle that
    divides the tile.

    epi_dtype: the elements. epi_layout: the order of D, a LayoutEnum; ROW_MAJOR is N-major. epi_tile: (M, N), numbers
    or layouts. epi_stage: a static count of stages. Raises CuteError where rows are not of whole 16 bytes.
    """
    what = "make_smem_layout_epi"
    kind = get_smem_layout_atom_epi(epi_layout, epi_dtype, epi_tile)
    _need(type(epi_stage) is int and epi_stage > 0, what, f"epi_stage {epi_stage!r} must be a static number >= 1")
    shape = layout.product_each(tuple(layout.shape(t) for t in epi_tile))
    order = (0, 1, 2) if epi_layout.is_n_major_c() else (1, 0, 2)
    atom = tcgen05.make_smem_layout_atom(kind, epi_dtype)
    return layout.tile_to_shape(atom, (*shape, epi_stage), order)  # type: ignore[no-any-return]


def _target_columns(m: int, n: int, types: list[DType]) -> int:
    """How many columns leave at once: without a source a fixed number of results, with one what its memory allows."""
    bits = max(t.width for t in types)
    if len(types) == 1:
        return (8192 if bits == 4 else 4096) // m
    if bits == 32:
        return 16 if m > 64 and n <= 128 else 32
    return 32 if bits == 16 and n <= 128 else 64


@traced
def compute_epilogue_tile_shape(
    cta_tile_shape: tuple[Any, ...],
    use_2cta_instrs: bool,
    layout_d: LayoutEnum,
    elem_ty_d: DType,
    layout_c: LayoutEnum | None = None,
    elem_ty_c: DType | None = None,
) -> Any:
    """Choose the part (M, N) of a CTA's tile that leaves at once, as two layouts.

    cta_tile_shape: the CTA's tile, (M, N, …). use_2cta_instrs: whether pairs multiply: 64 rows of each CTA then lie in
    128 lanes, half of the columns in 64 of them. layout_d, elem_ty_d: the order and type of D; layout_c, elem_ty_c: of
    a source that is loaded, None without one. Raises CuteError for a tile of other than 64 or 128 rows, or of too few
    columns.
    """
    what = "compute_epilogue_tile_shape"
    _is(what, "layout_d", layout_d, LayoutEnum)
    _is(what, "elem_ty_d", elem_ty_d, DType)
    _need((layout_c is None) == (elem_ty_c is None), what, "layout_c and elem_ty_c must be given together")
    operands = [(layout_d, elem_ty_d)]
    if layout_c is not None and elem_ty_c is not None:
        _is(what, "layout_c", layout_c, LayoutEnum)
        _is(what, "elem_ty_c", elem_ty_c, DType)
        operands.append((layout_c, elem_ty_c))
    _need(isinstance(cta_tile_shape, tuple) and len(cta_tile_shape) >= 2, what,
          f"cta_tile_shape {cta_tile_shape!r} must have at least 2 modes: M, N")  # fmt: skip
    m, n = layout.product_each(cta_tile_shape[:2])
    _need(m in (64, 128), what, f"cta_tile_shape {cta_tile_shape!r}: M must be 64 or 128, the rows of one CTA")
    halves = 2 if m == 64 and use_2cta_instrs else 1
    least = [8 if o.is_m_major_c() else 128 if t.width == 6 else 128 // t.width for o, t in operands]
    fewest = max(least) * halves
    _need(n >= fewest, what, f"cta_tile_shape {cta_tile_shape!r}: N must be at least {fewest} for these types")
    columns = min(n, max(_target_columns(m, n, [t for _, t in operands]), fewest))
    columns = columns if n % columns == 0 else n
    by_half = layout.make_layout((columns // halves, halves), stride=(1, n // halves))
    return layout.make_layout(m), layout.coalesce(by_half)


def _blocks(what: str, cluster: Any, atom_thr_id: Any) -> tuple[int, int, int]:
    """(the cluster's extents along M and N, the blocks that multiply together)"""
    ok = isinstance(cluster, tuple) and len(cluster) in (2, 3)
    _need(ok, what, f"cluster_shape_mnk {cluster!r} must be (M, N) or (M, N, K)")
    m, n = layout.product_each(cluster[:2])
    blocks = layout.size(atom_thr_id)
    _need(blocks in (1, 2), what, f"atom_thr_id {atom_thr_id!r} must have 1 or 2 blocks: it is tiled_mma.thr_id")
    _need(m % blocks == 0, what, f"cluster_shape_mnk {cluster!r}: M must be a multiple of the pair's {blocks} blocks")
    return m, n, blocks


def _load(multicast: bool, blocks: int) -> Any:
    group = CtaGroup(blocks)
    return CopyBulkTensorTileG2SMulticastOp(cta_group=group) if multicast else CopyBulkTensorTileG2SOp(cta_group=group)


@traced
def cluster_shape_to_tma_atom_A(cluster_shape_mnk: Any, atom_thr_id: Any) -> Any:  # noqa: N802
    """Choose the TMA load of A: multicast if the cluster has several blocks along N.

    cluster_shape_mnk: (M, N) or (M, N, K). atom_thr_id: `tiled_mma.thr_id`; of a pair, the bytes complete on its first
    block's barrier. Raises CuteError for other shapes. PTX cp.async.bulk.tensor, sm_90 (sm_100f of a pair).
    """
    _, n, blocks = _blocks("cluster_shape_to_tma_atom_A", cluster_shape_mnk, atom_thr_id)
    return _load(n > 1, blocks)


@traced
def cluster_shape_to_tma_atom_B(cluster_shape_mnk: Any, atom_thr_id: Any) -> Any:  # noqa: N802
    """Choose the TMA load of B: multicast if the cluster has several blocks, or pairs, along M. cluster_shape_mnk,
    atom_thr_id: as for `cluster_shape_to_tma_atom_A`."""
    m, _, blocks = _blocks("cluster_shape_to_tma_atom_B", cluster_shape_mnk, atom_thr_id)
    return _load(m > blocks, blocks)


@traced
def cluster_shape_to_tma_atom_SFB(cluster_shape_mnk: Any, atom_thr_id: Any) -> Any:  # noqa: N802
    """Choose the TMA load of B's scale factors, which both blocks of a pair need whole: multicast if the cluster has
    several blocks along M. cluster_shape_mnk, atom_thr_id: as for `cluster_shape_to_tma_atom_A`."""
    m, _, blocks = _blocks("cluster_shape_to_tma_atom_SFB", cluster_shape_mnk, atom_thr_id)
    return _load(m > 1, blocks)


@traced
def make_trivial_tiled_mma(
    a_dtype: DType,
    b_dtype: Any,
    a_leading_mode: Any,
    b_leading_mode: Any,
    acc_dtype: Any,
    cta_group: Any,
    mma_tiler_mn: Any = None,
    a_source: OperandSource = OperandSource.SMEM,
) -> TiledMma:
    """Make the tcgen05.mma of these types and this tile, for one CTA or a pair.

    a_dtype, b_dtype: both Float16, BFloat16 or TFloat32, both Int8 or Uint8, or each a float of 8, 6 or 4 bits;
    acc_dtype: as the operation has it. a_leading_mode, b_leading_mode: the contiguous modes of A and B, members of
    OperandMajorMode. cta_group: a member of CtaGroup. mma_tiler_mn: (M, N) of one multiply, of all its CTAs. a_source:
    SMEM or TMEM. Without b_dtype (the others move up by one) both operands are of a_dtype. Raises CuteError for what
    the operation has not. PTX tcgen05.mma, sm_100f.
    """
    what = "make_trivial_tiled_mma"
    if isinstance(b_dtype, OperandMajorMode):
        if mma_tiler_mn is not None:
            a_source = mma_tiler_mn
        b_dtype, a_leading_mode, b_leading_mode, acc_dtype, cta_group, mma_tiler_mn = (
            a_dtype, b_dtype, a_leading_mode, b_leading_mode, acc_dtype, cta_group,
        )  # fmt: skip
    for name, value, kind in (("a_dtype", a_dtype, DType), ("b_dtype", b_dtype, DType), ("acc_dtype", acc_dtype, DType),
                              ("a_leading_mode", a_leading_mode, OperandMajorMode),
                              ("b_leading_mode", b_leading_mode, OperandMajorMode), ("cta_group", cta_group, CtaGroup),
                              ("a_source", a_source, OperandSource)):  # fmt: skip
        _is(what, name, value, kind)
    ok = isinstance(mma_tiler_mn, tuple) and len(mma_tiler_mn) == 2
    _need(ok, what, f"mma_tiler_mn {mma_tiler_mn!r} must be (M, N), the tile of one multiply")
    rest = mma_tiler_mn, cta_group, a_source, a_leading_mode, b_leading_mode
    if a_dtype == b_dtype and a_dtype in (Float16, BFloat16):
        op: Any = tcgen05.MmaF16BF16Op(a_dtype, acc_dtype, *rest)
    elif a_dtype == b_dtype and a_dtype in (Int8, Uint8):
        _need(acc_dtype == Int32, what, f"acc_dtype {acc_dtype!r} must be Int32 for {a_dtype!r}")
        op = tcgen05.MmaI8Op(a_dtype, *rest)
    elif a_dtype == b_dtype == TFloat32:
        _need(acc_dtype.name == "Float32", what, f"acc_dtype {acc_dtype!r} must be Float32 for TFloat32")
        op = tcgen05.MmaTF32Op(*rest)
    elif a_dtype in _FLOATS and b_dtype in _FLOATS:
        op = tcgen05.MmaF8F6F4Op(a_dtype, b_dtype, acc_dtype, *rest)
    else:
        raise CuteError(
            f"sm100.{what}: no tcgen05.mma multiplies {a_dtype!r} by {b_dtype!r}: both Float16, both BFloat16, both "
            "TFloat32, both Int8, both Uint8, or each a float of 8, 6 or 4 bits"
        )
    return make_tiled_mma(op)
