# SPDX-License-Identifier: Apache-2.0
"""The usual set-up of a Blackwell GEMM: its tiled MMA, its shared memory layouts, its loads, and the parts in which its
results leave.

All are plain choices over `nvgpu.tcgen05` and `nvgpu.cpasync`, made on the host or in a kernel; none issues anything.
"""

from __future__ import annotations

from typing import Any

from .. import layout
from ..atoms.copy_atom import CopyAtom, TiledCopy, make_copy_atom
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
    Float32,
    Int8,
    Int32,
    TFloat32,
    Uint8,
)
from ..isa.facts.tensor_memory import REPETITIONS
from ..layout import ComposedLayout, Layout
from ..nvgpu import tcgen05, warp
from ..nvgpu.blackwell.smem_layouts import make_smem_layout_atom, widest_kind
from ..nvgpu.common import CopyUniversalOp, CtaGroup
from ..nvgpu.cpasync import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp
from ..nvgpu.tcgen05 import OperandMajorMode, OperandSource, Pack, Repetition, SmemLayoutAtomKind
from ..seam import CuteError, traced
from ..seam.guards.messages import how_static
from .layout_enum import LayoutEnum
from .sm100_blockscaled import make_blockscaled_trivial_tiled_mma

__all__ = [
    "cluster_shape_to_tma_atom_A",
    "cluster_shape_to_tma_atom_B",
    "cluster_shape_to_tma_atom_SFB",
    "compute_epilogue_tile_shape",
    "get_smem_layout_atom_ab",
    "get_smem_layout_atom_epi",
    "get_smem_store_op",
    "get_tmem_load_op",
    "make_blockscaled_trivial_tiled_mma",
    "make_smem_layout",
    "make_smem_layout_a",
    "make_smem_layout_atom",
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
    _need(
        type(extent) is int and extent > 0,
        what,
        f"extent {extent!r} of the contiguous mode must be static{how_static(extent)}",
    )
    return widest_kind(major, element_type, extent)


@traced
def get_smem_layout_atom_ab(
    major_mode: OperandMajorMode, element_type: DType, smem_shape_mn_k: tuple[int, int]
) -> SmemLayoutAtomKind:
    """Choose the kind of an operand's shared memory layout with the widest swizzle that divides the tile.

    major_mode: the contiguous mode. element_type: the elements; of 32 bits and MN-major take the swizzle in atoms of 32
    bytes. smem_shape_mn_k: the tile in shared memory, (M or N, K). Raises CuteError where rows are not of whole 16
    bytes.

    >>> K = nvgpu.OperandMajorMode.K
    >>> utils.get_smem_layout_atom_ab(K, cute.Float16, (128, 64))
    <SmemLayoutAtomKind.K_SW128: ('k', 1024, S<3,4,3>)>
    """
    what = "get_smem_layout_atom_ab"
    _is(what, "major_mode", major_mode, OperandMajorMode)
    _is(what, "element_type", element_type, DType)
    _need(isinstance(smem_shape_mn_k, tuple) and len(smem_shape_mn_k) == 2, what,
          f"smem_shape_mn_k {smem_shape_mn_k!r} must have 2 modes: M or N, and K")  # fmt: skip
    extent = layout.size(smem_shape_mn_k[1 if major_mode is OperandMajorMode.K else 0])
    return _widest(what, major_mode.name, element_type, extent)


def _contiguous(tile: Any) -> int:
    """Return the number of elements of one mode of a tile that are contiguous, from the first on."""
    lay = tile if isinstance(tile, Layout) else layout.make_layout(tile)
    return int(layout.size(layout.coalesce(layout.right_inverse(lay)), (0,)))


@traced
def get_smem_layout_atom_epi(
    layout_d: LayoutEnum, element_type: DType, epi_tile: tuple[Any, Any]
) -> SmemLayoutAtomKind:
    """Choose the kind of shared memory layout through which results leave, of the widest swizzle that divides what is
    contiguous in the tile: of a split tile, such as N (32, 2):(1, 64) of a pair, the part that a box of TMA can take.

    layout_d: the order of D, a LayoutEnum; ROW_MAJOR is N-major. element_type: the elements. epi_tile: (M, N), numbers
    or layouts. Raises CuteError where rows are not of whole 16 bytes.

    >>> utils.get_smem_layout_atom_epi(utils.LayoutEnum.ROW_MAJOR, cute.Float16, (128, 32))
    <SmemLayoutAtomKind.K_SW64: ('k', 512, S<2,4,3>)>
    """
    what = "get_smem_layout_atom_epi"
    _is(what, "layout_d", layout_d, LayoutEnum)
    _is(what, "element_type", element_type, DType)
    _need(isinstance(epi_tile, tuple) and len(epi_tile) == 2, what, f"epi_tile {epi_tile!r} must have 2 modes: M, N")
    rows = layout_d.is_n_major_c()
    extent = _contiguous(epi_tile[1 if rows else 0])
    return _widest(what, "K" if rows else "MN", element_type, extent)


@traced
def make_smem_layout(
    leading_mode: OperandMajorMode, smem_tile_shape: tuple[int, int], element_type: DType, num_stages: int
) -> ComposedLayout:
    """Make the shared memory layout of a tile as TMA and the matrix unit take it, (M or N, K, stages), in the widest
    swizzle that divides it: `make_smem_layout_a` without an operation.

    leading_mode: the contiguous mode, a member of OperandMajorMode. smem_tile_shape: (M or N, K). element_type: the
    elements. num_stages: a static count. Raises CuteError where rows are not of whole 16 bytes.

    >>> K = nvgpu.OperandMajorMode.K
    >>> utils.make_smem_layout(K, (128, 64), cute.Float16, 2)
    S<3,4,3> o 0 o ((8,16),(64,1),(1,2)):((64,512),(1,0),(0,8192))
    """
    kind = get_smem_layout_atom_ab(leading_mode, element_type, smem_tile_shape)
    _need(type(num_stages) is int and num_stages > 0, "make_smem_layout",
          f"num_stages {num_stages!r} must be a static number >= 1{how_static(num_stages)}")  # fmt: skip
    order = (0, 1, 2) if leading_mode is OperandMajorMode.K else (1, 0, 2)
    shape = (*layout.product_each(smem_tile_shape), num_stages)
    return layout.tile_to_shape(make_smem_layout_atom(kind, element_type), shape, order)  # type: ignore[no-any-return]


def _operand(
    what: str, operand: str, tiled_mma: Any, tile: Any, dtype: Any, num_stages: Any, k_major: Any
) -> ComposedLayout:
    _is(what, "tiled_mma", tiled_mma, TiledMma)
    _is(what, "element type", dtype, DType)
    ok = isinstance(tile, tuple) and len(tile) == 3
    _need(ok, what, f"mma_tiler_mnk {tile!r} must have 3 modes: M, N, K")
    _need(
        type(num_stages) is int and num_stages > 0,
        what,
        f"num_stages {num_stages!r} must be a static number >= 1{how_static(num_stages)}",
    )
    _need(k_major in (None, True, False), what, f"is_k_major {k_major!r} must be None, True or False")
    m, n, k = layout.product_each((tile[0], 1, tile[2]) if operand == "A" else (1, *tile[1:]))
    one = tuple(map(tiled_mma.get_tile_size, (0, 1, 2)))
    wrong = [
        name for name, x, y in zip("MNK", (m, n, k), one) if x % y and name in f"{'M' if operand == 'A' else 'N'}K"
    ]
    _need(not wrong, what, f"mma_tiler_mnk {tile}: {' and '.join(wrong)} must be multiples of tiled_mma's, {one}")
    if operand == "A":
        stored = k // tiled_mma.atom.traits.sparsity
        shape, major = tiled_mma.partition_shape_A((m, stored)), tiled_mma.op.a_major_mode
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
    divides it; of a sparse A its stored half.

    tiled_mma: a tiled tcgen05 operation. mma_tiler_mnk: the tile (M, N, K) of all its CTAs, N of any value, None too.
    a_dtype: the elements. num_stages: a static count. is_k_major: taken in place of the operation's major mode, where
    given. Allocate it with `layout.outer` and `swizzle=layout.inner`, 128-byte aligned. Raises CuteError for a tile
    that it does not divide.

    >>> K, ONE = nvgpu.OperandMajorMode.K, nvgpu.CtaGroup.ONE
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.Float16, cute.Float16, K, K, cute.Float32, ONE, (128, 64))
    >>> utils.sm100.make_smem_layout_a(mma, (128, 64, 64), cute.Float16, 2)
    S<3,4,3> o 0 o ((128,16),1,4,2):((64,1),0,16,8192)
    """
    return _operand("make_smem_layout_a", "A", tiled_mma, mma_tiler_mnk, a_dtype, num_stages, is_k_major)


@traced
def make_smem_layout_b(
    tiled_mma: TiledMma, mma_tiler_mnk: tuple[int, int, int], b_dtype: DType, num_stages: int,
    is_k_major: bool | None = None,
) -> ComposedLayout:  # fmt: skip
    """Make the shared memory layout of a CTA's part of B, ((N, K), rest N, rest K, stages), in the widest swizzle that
    divides it. tiled_mma, mma_tiler_mnk, b_dtype, num_stages, is_k_major: as for `make_smem_layout_a`, but M is of any
    value.

    >>> K, ONE = nvgpu.OperandMajorMode.K, nvgpu.CtaGroup.ONE
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.Float16, cute.Float16, K, K, cute.Float32, ONE, (128, 64))
    >>> utils.sm100.make_smem_layout_b(mma, (128, 64, 64), cute.Float16, 2)
    S<3,4,3> o 0 o ((64,16),1,4,2):((64,1),0,16,4096)
    """
    return _operand("make_smem_layout_b", "B", tiled_mma, mma_tiler_mnk, b_dtype, num_stages, is_k_major)


@traced
def make_smem_layout_epi(
    epi_dtype: DType, epi_layout: LayoutEnum, epi_tile: tuple[Any, Any], epi_stage: int
) -> ComposedLayout:
    """Make the shared memory layout through which results leave, (epi M, epi N, stages), in the widest swizzle that
    divides the tile.

    epi_dtype: the elements. epi_layout: the order of D, a LayoutEnum; ROW_MAJOR is N-major. epi_tile: (M, N), numbers
    or layouts. epi_stage: a static count of stages. Raises CuteError where rows are not of whole 16 bytes.

    >>> row = utils.LayoutEnum.ROW_MAJOR
    >>> utils.blackwell_helpers.make_smem_layout_epi(cute.Float16, row, (128, 32), 2)
    S<2,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))
    """
    what = "make_smem_layout_epi"
    kind = get_smem_layout_atom_epi(epi_layout, epi_dtype, epi_tile)
    _need(
        type(epi_stage) is int and epi_stage > 0,
        what,
        f"epi_stage {epi_stage!r} must be a static number >= 1{how_static(epi_stage)}",
    )
    shape = layout.product_each(tuple(layout.shape(t) for t in epi_tile))
    order = (0, 1, 2) if epi_layout.is_n_major_c() else (1, 0, 2)
    atom = tcgen05.make_smem_layout_atom(kind, epi_dtype)
    return layout.tile_to_shape(atom, (*shape, epi_stage), order)  # type: ignore[no-any-return]


def _target_columns(m: int, n: int, types: list[DType]) -> int:
    """Return the number of columns that leave at once: without a source a fixed number of results, with one the number
    that its memory allows."""
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

    >>> utils.compute_epilogue_tile_shape((128, 128, 64), False, utils.LayoutEnum.ROW_MAJOR, cute.Float16)
    (128:1, 32:1)
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


_WIDE, _ROWS, _HALVES = tcgen05.Ld16x256bOp, tcgen05.Ld32x32bOp, tcgen05.Ld16x32bx2Op
_LOADS: dict[tuple[int, int, int, bool], Any] = {
    (32, 32, 16, True): _WIDE, (32, 32, 16, False): tcgen05.Ld16x128bOp,
    (32, 32, 32, True): _ROWS, (32, 32, 32, False): _ROWS,
    (32, 16, 16, True): _WIDE, (32, 16, 16, False): _WIDE, (32, 16, 32, True): _WIDE, (32, 16, 32, False): _ROWS,
    (32, 8, 16, True): _WIDE, (32, 8, 16, False): _HALVES, (32, 8, 32, True): _WIDE, (32, 8, 32, False): _ROWS,
    (32, 6, 32, True): _ROWS, (32, 6, 32, False): _ROWS, (32, 4, 32, True): _ROWS, (32, 4, 32, False): _ROWS,
    (16, 16, 16, True): tcgen05.Ld16x128bOp, (16, 16, 16, False): tcgen05.Ld16x128bOp,
    (16, 16, 32, True): tcgen05.Ld16x128bOp, (16, 16, 32, False): _ROWS,
}  # fmt: skip
"""By the bits of accumulators and of D, a warp's lanes, and whether D is M-major: the load whose threads hold what the
widest stores to shared memory take: stmatrix by 16 lanes, or 16 bytes of a row."""


@traced
def get_tmem_load_op(
    cta_tile_shape: tuple[Any, ...],
    layout_d: LayoutEnum,
    elem_ty_d: DType,
    elem_ty_acc: DType,
    epi_tile: tuple[Any, Any],
    use_2cta_instrs: bool,
) -> CopyAtom:
    """Choose the load of accumulators from tensor memory whose registers suit the stores of D, as long as a part has
    columns.

    cta_tile_shape: the CTA's tile, (M, N, …). layout_d, elem_ty_d: the order, a LayoutEnum, and type of D. elem_ty_acc:
    the accumulators' type. epi_tile: the part (M, N) that leaves at once, numbers or layouts. use_2cta_instrs: whether
    pairs multiply. Raises CuteError for types that do not go together, or columns that no load divides. PTX tcgen05.ld,
    sm_100f.

    >>> row = utils.LayoutEnum.ROW_MAJOR
    >>> atom = utils.sm100.get_tmem_load_op((128, 64, 64), row, cute.Float16, cute.Float32, (128, 32), False)
    >>> atom.op
    Ld32x32bOp(repeat=<Repetition.x32: 32>, pack=<Pack.NONE: 1>)
    """
    what = "get_tmem_load_op"
    _is(what, "layout_d", layout_d, LayoutEnum)
    _is(what, "elem_ty_d", elem_ty_d, DType)
    _is(what, "elem_ty_acc", elem_ty_acc, DType)
    _need(isinstance(cta_tile_shape, tuple) and len(cta_tile_shape) >= 2, what,
          f"cta_tile_shape {cta_tile_shape!r} must have at least 2 modes: M, N")  # fmt: skip
    _need(isinstance(epi_tile, tuple) and len(epi_tile) == 2, what, f"epi_tile {epi_tile!r} must have 2 modes: M, N")
    m = layout.size(cta_tile_shape[0])
    _need(m in (64, 128), what, f"cta_tile_shape {cta_tile_shape!r}: M must be 64 or 128, the rows of one CTA")
    lanes = 16 if m == 64 and not use_2cta_instrs else 32
    columns = layout.size(layout.shape(epi_tile[1])) // (2 if m == 64 and use_2cta_instrs else 1)
    op = _LOADS.get((elem_ty_acc.width, elem_ty_d.width, lanes, layout_d.is_m_major_c()))
    _need(op is not None, what, f"no load of {lanes} lanes of {elem_ty_acc!r} accumulators suits stores of "
          f"{elem_ty_d!r}: they are of 32 bits, or both types of 16")  # fmt: skip
    block: Any = op.shape  # type: ignore[union-attr]
    unit = block.columns * block.halves * 32 // elem_ty_acc.width
    fits = [n for n in REPETITIONS if n <= block.most and columns % (n * unit) == 0]
    _need(bool(fits), what, f"epi_tile {epi_tile!r}: {columns} columns for a warp are no multiple of {unit}")
    pack = Pack.PACK_16b_IN_32b if elem_ty_acc.width == 16 else Pack.NONE
    return make_copy_atom(op(Repetition(fits[-1]), pack), elem_ty_acc)  # type: ignore[misc]


@traced
def get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: DType, elem_ty_acc: DType, tiled_tmem_load: TiledCopy
) -> CopyAtom:
    """Choose the widest store to shared memory of what a load from tensor memory left in registers: stmatrix where its
    threads hold such matrices, else the widest plain ones.

    layout_d, elem_ty_d: the order, a LayoutEnum, and type of D in shared memory. elem_ty_acc: the accumulators' type.
    tiled_tmem_load: the load, as `get_tmem_load_op` chooses it, tiled. `make_tiled_copy_D` of it tiles the store. PTX
    stmatrix, sm_90; of 8-bit elements sm_100f.

    >>> row = utils.LayoutEnum.ROW_MAJOR
    >>> load = utils.sm100.get_tmem_load_op((128, 64, 64), row, cute.Float16, cute.Float32, (128, 32), False)
    >>> place = cute.make_ptr(cute.Float32, 0, cute.AddressSpace.tmem, assumed_align=16)
    >>> acc = cute.make_tensor(place, cute.make_layout((128, 32), stride=(65536, 1)))
    >>> tiled = nvgpu.tcgen05.make_tmem_copy(load, acc)
    >>> utils.blackwell_helpers.get_smem_store_op(row, cute.Float16, cute.Float32, tiled).op
    CopyUniversalOp()
    """
    what = "get_smem_store_op"
    _is(what, "layout_d", layout_d, LayoutEnum)
    _is(what, "elem_ty_d", elem_ty_d, DType)
    _is(what, "elem_ty_acc", elem_ty_acc, DType)
    if tcgen05.is_tmem_load(tiled_tmem_load):
        lanes, bits, repeat, pack = tcgen05.get_tmem_copy_properties(tiled_tmem_load)
        columns, rows = layout_d.is_m_major_c(), layout_d.is_n_major_c()
        case = (elem_ty_acc.width, elem_ty_d.width, lanes, bits, pack)
        if case in _BY_STMATRIX or (rows and case == (32, 32, 16, 128, Pack.NONE)):
            return make_copy_atom(warp.StMatrix8x8x16bOp(columns, min(4, 2 * repeat)), elem_ty_d)
        if columns and case == (32, 8, 16, 256, Pack.NONE):
            return make_copy_atom(warp.StMatrix16x8x8bOp(True, min(4, repeat)), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)


_BY_STMATRIX = {(32, 16, 16, 256, Pack.NONE), (16, 16, 16, 128, Pack.PACK_16b_IN_32b)}
"""The bits of accumulators and of D, and the loads, whose registers are matrices of 8 by 8 16-bit elements."""


@traced
def cluster_shape_to_tma_atom_A(cluster_shape_mnk: Any, atom_thr_id: Any) -> Any:  # noqa: N802
    """Choose the TMA load of A: multicast if the cluster has several blocks along N.

    cluster_shape_mnk: (M, N) or (M, N, K). atom_thr_id: `tiled_mma.thr_id`; of a pair, the bytes complete on its first
    block's barrier. Raises CuteError for other shapes. PTX cp.async.bulk.tensor, sm_90 (sm_100f of a pair).

    >>> type(utils.cluster_shape_to_tma_atom_A((1, 2, 1), cute.make_layout(1))).__name__
    'CopyBulkTensorTileG2SMulticastOp'
    """
    _, n, blocks = _blocks("cluster_shape_to_tma_atom_A", cluster_shape_mnk, atom_thr_id)
    return _load(n > 1, blocks)


@traced
def cluster_shape_to_tma_atom_B(cluster_shape_mnk: Any, atom_thr_id: Any) -> Any:  # noqa: N802
    """Choose the TMA load of B: multicast if the cluster has several blocks, or pairs, along M. cluster_shape_mnk,
    atom_thr_id: as for `cluster_shape_to_tma_atom_A`.

    >>> type(utils.cluster_shape_to_tma_atom_B((2, 1, 1), cute.make_layout(1))).__name__
    'CopyBulkTensorTileG2SMulticastOp'
    """
    m, _, blocks = _blocks("cluster_shape_to_tma_atom_B", cluster_shape_mnk, atom_thr_id)
    return _load(m > blocks, blocks)


@traced
def cluster_shape_to_tma_atom_SFB(cluster_shape_mnk: Any, atom_thr_id: Any) -> Any:  # noqa: N802
    """Choose the TMA load of B's scale factors, which both blocks of a pair need whole: multicast if the cluster has
    several blocks along M. cluster_shape_mnk, atom_thr_id: as for `cluster_shape_to_tma_atom_A`.

    >>> one = nvgpu.tcgen05.CtaGroup.ONE
    >>> utils.sm100.cluster_shape_to_tma_atom_SFB((2, 1, 1), cute.make_layout(1))
    CopyBulkTensorTileG2SMulticastOp(cta_group=<CtaGroup.ONE: 1>)
    """
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

    >>> K, ONE = nvgpu.OperandMajorMode.K, nvgpu.CtaGroup.ONE
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.Float16, cute.Float16, K, K, cute.Float32, ONE, (128, 64))
    >>> mma.shape_mnk
    (128, 64, 16)
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
    elif a_dtype == b_dtype and a_dtype in (TFloat32, Float32):  # of floats the low bits are ignored
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
