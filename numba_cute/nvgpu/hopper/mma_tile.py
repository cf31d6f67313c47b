# SPDX-License-Identifier: Apache-2.0
"""TMA atoms for the operands of a matrix instruction: the tile is as the instruction takes it apart."""

from __future__ import annotations

from typing import Any

from ... import layout
from ...atoms.mma_atom import TiledMma
from ...atoms.op import OPERAND_MODES
from ...dtypes import DType
from ...layout import ComposedLayout, Layout
from ...seam import CuteError
from ...seam.hooks.casting import derived
from ...tensor.tensor import Tensor
from .tma import TmaInfo, global_pointer, one_stage, split_swizzle, tma_info
from .tma_ops import TmaCopyOp

__all__ = ["make_tiled_tma_atom_A", "make_tiled_tma_atom_B", "make_tiled_tma_atom_C"]

_SHARED_ALONG = {"A": 2, "B": 1}
"""The mode of (V, M, N, K) along which blocks need the same tile."""


def thread_tile(tiled_mma: TiledMma, operand: str, tile: Layout) -> Layout:
    """Give the coordinates of an operand's tile as the first thread of `tiled_mma` takes it apart, (MMA, MMA_X,
    MMA_Y)."""
    frg = tiled_mma.thrfrg(operand, tile)[1]
    return layout.make_layout((frg[0], *(frg[1][i] for i in range(layout.rank(frg[1])))))


def mma_tile(tiled_mma: TiledMma, operand: str, tile: Layout, smem: Layout) -> tuple[Layout, Layout]:
    """Give the coordinates of an operand's tile in the order of shared memory, and that layout without its stages:
    whole, (X, Y), or as the first thread of `tiled_mma` takes it apart, (MMA, MMA_X, MMA_Y)."""
    parts = thread_tile(tiled_mma, operand, tile)
    for coords in (parts, tile):
        plain = one_stage(smem, layout.rank(coords))
        if layout.rank(plain) == layout.rank(coords) and layout.size(plain) == layout.size(coords):
            return coords, plain
    raise CuteError(
        f"make_tiled_tma_atom_{operand}: smem_layout {smem} must hold a tile of shape {tile.shape}, or its parts "
        f"(MMA, MMA_{operand}, …) of shape {parts.shape}; further modes are stages"
    )


def _atom(
    gmem_tensor: Tensor, operand: str, op: Any, smem_layout: Any, mma_tiler_mnk: Any, tiled_mma: Any,
    cluster_shape_vmnk: Any, internal_type: DType | None,
) -> TmaInfo:  # fmt: skip
    what = f"make_tiled_tma_atom_{operand}"
    if not isinstance(op, TmaCopyOp) or not isinstance(tiled_mma, TiledMma):
        raise CuteError(f"{what}: op {op!r} must be a TMA operation and tiled_mma {tiled_mma!r} a TiledMma")
    if not isinstance(mma_tiler_mnk, tuple) or len(mma_tiler_mnk) != 3:
        raise CuteError(f"{what}: mma_tiler_mnk {mma_tiler_mnk!r} must be (M, N, K)")
    ptr = global_pointer(gmem_tensor)
    x, y = OPERAND_MODES[operand]
    identity = layout.make_identity_layout(gmem_tensor.shape)
    tile = layout.composition(identity, (mma_tiler_mnk[x], mma_tiler_mnk[y]))
    swizzle, plain = split_swizzle(smem_layout)
    tile, plain = mma_tile(tiled_mma, operand, tile, plain)
    shared = 1
    if op.multicast and cluster_shape_vmnk is not None and operand in _SHARED_ALONG:
        shared = int(layout.size(cluster_shape_vmnk[_SHARED_ALONG[operand]]))
    options = {"swizzle": swizzle}
    return tma_info(op, gmem_tensor, ptr, smem_layout, plain, tile, shared, internal_type, None, options)


def make_tiled_tma_atom_A(  # noqa: N802 - CuTe's name
    op: TmaCopyOp,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    mma_tiler_mnk: Any,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: Any = None,
    *,
    internal_type: DType | None = None,
) -> TmaInfo:
    """Make the TMA atom of `op` that loads tiles of operand A, `gmem_tensor` (M, K), as `tiled_mma` takes them from
    shared memory, and the tensor of its coordinates.

    smem_layout: of a tile (M, K), or of its parts (MMA, MMA_M, MMA_K); further modes are stages. mma_tiler_mnk: the
    tile (M, N, K). cluster_shape_vmnk: blocks of a cluster; those along N share a tile if `op` is multicast.
    internal_type: the type that TMA takes the elements for, of the same width. Call it on the host; pass both results
    to the kernel. Raises CuteError for layouts that do not hold the tile, and as cpasync.make_tiled_tma_atom does.
    PTX cp.async.bulk.tensor, sm_90.

    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.Float16, K, K, cute.Float32, one, (128, 64))
    >>> a = cute.runtime.from_dlpack(np.zeros((256, 128), np.float16), assumed_align=16)
    >>> smem = utils.sm100.make_smem_layout_a(tiled, (128, 64, 64), cute.Float16, 1)
    >>> op = nvgpu.cpasync.CopyBulkTensorTileG2SOp()
    >>> atom, coords = nvgpu.make_tiled_tma_atom_A(op, a, cute.select(smem, [0, 1, 2]), (128, 64, 64), tiled)
    >>> coords
    Tensor((0, 0), (256,128):(1@1,1@0))
    """
    given = (op, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type)
    return derived(_atom, gmem_tensor, "A", *given)  # type: ignore[no-any-return]


def make_tiled_tma_atom_B(  # noqa: N802
    op: TmaCopyOp,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    mma_tiler_mnk: Any,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: Any = None,
    *,
    internal_type: DType | None = None,
) -> TmaInfo:
    """Make the TMA atom of `op` that loads tiles of operand B, `gmem_tensor` (N, K), as `tiled_mma` takes them from
    shared memory, and the tensor of its coordinates. smem_layout, mma_tiler_mnk, cluster_shape_vmnk, internal_type: as
    of make_tiled_tma_atom_A, but blocks of the cluster along M share a tile. PTX cp.async.bulk.tensor, sm_90.

    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.Float16, K, K, cute.Float32, one, (128, 64))
    >>> b = cute.runtime.from_dlpack(np.zeros((192, 128), np.float16), assumed_align=16)
    >>> smem = utils.sm100.make_smem_layout_b(tiled, (128, 64, 64), cute.Float16, 1)
    >>> op = nvgpu.cpasync.CopyBulkTensorTileG2SOp()
    >>> atom, coords = nvgpu.make_tiled_tma_atom_B(op, b, cute.select(smem, [0, 1, 2]), (128, 64, 64), tiled)
    >>> coords
    Tensor((0, 0), (192,128):(1@1,1@0))
    """
    given = (op, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type)
    return derived(_atom, gmem_tensor, "B", *given)  # type: ignore[no-any-return]


def make_tiled_tma_atom_C(  # noqa: N802
    op: TmaCopyOp,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    mma_tiler_mnk: Any,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: Any = None,
    *,
    internal_type: DType | None = None,
) -> TmaInfo:
    """Make the TMA atom of `op`, a load or store, for tiles of C or D, `gmem_tensor` (M, N), and the tensor of its
    coordinates. smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type: as of make_tiled_tma_atom_A,
    but no block shares a tile. PTX cp.async.bulk.tensor, sm_90.

    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.Float16, K, K, cute.Float32, one, (128, 64))
    >>> c = cute.runtime.from_dlpack(np.zeros((256, 192), np.float16), assumed_align=16)
    >>> smem = cute.make_layout((128, 64), stride=(64, 1))
    >>> op = nvgpu.cpasync.CopyBulkTensorTileS2GOp()
    >>> atom, coords = nvgpu.make_tiled_tma_atom_C(op, c, smem, (128, 64, 64), tiled)
    >>> coords
    Tensor((0, 0), (256,192):(1@1,1@0))
    """
    given = (op, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type)
    return derived(_atom, gmem_tensor, "C", *given)  # type: ignore[no-any-return]
