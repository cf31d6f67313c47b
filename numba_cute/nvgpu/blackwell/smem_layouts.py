# SPDX-License-Identifier: Apache-2.0
"""Layouts of shared memory that tcgen05.mma reads: atoms, and tiles of them cut up as the multiplies take them."""

from __future__ import annotations

from typing import Any

from ... import layout
from ...dtypes import DType
from ...layout import ComposedLayout, Layout, Swizzle, make_composed_layout, make_layout
from ...layout.pure import pure
from ...seam import CuteError, StaticEnum, known_as, traced

__all__ = ["SmemLayoutAtomKind", "make_smem_layout_atom", "tile_to_mma_shape"]


class SmemLayoutAtomKind(StaticEnum):
    """Name a shared memory layout that tcgen05.mma reads.

    MN or K: the contiguous dimension. INTER, SW32, SW64, SW128: the bytes of a swizzled row (INTER: 16, not
    swizzled), permuted in chunks of 16 bytes; SW128_32B: rows of 128 bytes in chunks of 32, for MN-major operands of
    32-bit elements.

    >>> [member.name for member in nvgpu.tcgen05.SmemLayoutAtomKind]
    ['MN_INTER', 'MN_SW32', 'MN_SW64', 'MN_SW128', 'MN_SW128_32B', 'K_INTER', 'K_SW32', 'K_SW64', 'K_SW128']
    """

    MN_INTER = ("mn", 128, Swizzle(0, 4, 3))
    MN_SW32 = ("mn", 256, Swizzle(1, 4, 3))
    MN_SW64 = ("mn", 512, Swizzle(2, 4, 3))
    MN_SW128 = ("mn", 1024, Swizzle(3, 4, 3))
    MN_SW128_32B = ("mn", 1024, Swizzle(2, 5, 2))
    K_INTER = ("k", 128, Swizzle(0, 4, 3))
    K_SW32 = ("k", 256, Swizzle(1, 4, 3))
    K_SW64 = ("k", 512, Swizzle(2, 4, 3))
    K_SW128 = ("k", 1024, Swizzle(3, 4, 3))


@traced
@known_as("cute_nvgpu.tcgen05")
def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: DType) -> ComposedLayout:
    """Make the smallest tile of a shared memory layout, 8 rows of 16, 32, 64 or 128 bytes: S o 0 o (MN, K).

    kind: which. element_type: the operand's. The swizzle counts bytes: allocate with `layout.outer` and
    `swizzle=layout.inner`, 128-byte aligned. Raises CuteError for another `kind`.

    >>> nvgpu.tcgen05.make_smem_layout_atom(nvgpu.tcgen05.SmemLayoutAtomKind.K_SW128, cute.BFloat16)
    S<3,4,3> o 0 o (8,64):(64,1)
    """
    if not isinstance(kind, SmemLayoutAtomKind):
        raise CuteError(f"make_smem_layout_atom: kind {kind!r} is not a member of tcgen05.SmemLayoutAtomKind")
    major, bits, swizzle = kind.value
    row = bits // element_type.width
    outer = make_layout((row, 8), stride=(1, row)) if major == "mn" else make_layout((8, row), stride=(row, 1))
    return make_composed_layout(swizzle, 0, outer)


@traced
@known_as("cute_nvgpu.tcgen05")
def tile_to_mma_shape(atom: Any, mma_tile_shape: Any, order: Any = None) -> Any:
    """Tile `atom` over an operand and cut it up as multiplies take it: ((MN, K), rest MN, rest K, stages…).

    atom: a layout or swizzled layout of two modes (MN, K). mma_tile_shape: ((MN, K) of one multiply, how often along
    MN, how often along K, stages…), as `partition_shape_A` gives it. order: of the modes MN, K, stages…, in which the
    atom is repeated, smallest first; by default 0, 1, 2, …. Raises CuteError where the atom does not divide the tile.

    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.Float16, K, K, cute.Float32, one, (128, 64))
    >>> atom = nvgpu.tcgen05.make_smem_layout_atom(nvgpu.tcgen05.SmemLayoutAtomKind.K_SW128, cute.Float16)
    >>> nvgpu.tcgen05.tile_to_mma_shape(atom, (*tiled.partition_shape_A((128, 64)), 2))
    S<3,4,3> o 0 o ((128,16),1,4,2):((64,1),0,16,8192)
    """
    one = mma_tile_shape[0] if isinstance(mma_tile_shape, tuple) and len(mma_tile_shape) >= 3 else None
    if not isinstance(one, tuple) or len(one) != 2:
        raise CuteError(
            f"tile_to_mma_shape: mma_tile_shape {mma_tile_shape!r} must be ((MN, K), rest MN, rest K, stages…)"
        )
    order = tuple(range(len(mma_tile_shape) - 1)) if order is None else order
    if isinstance(atom, ComposedLayout):
        return make_composed_layout(atom.inner, atom.offset, _tiled(atom.outer, mma_tile_shape, order))
    return _tiled(atom, mma_tile_shape, order)


@pure
def _tiled(atom: Layout, shape: Any, order: tuple[int, ...]) -> Layout:
    (mn, k), rest_mn, rest_k, *stages = shape
    extents = (layout.size(mn) * layout.size(rest_mn), layout.size(k) * layout.size(rest_k), *stages)
    whole = layout.tile_to_shape(atom, extents, order)
    if layout.product_each(whole.shape) != extents:
        raise CuteError(
            f"tile_to_mma_shape: mma_tile_shape {shape} is not made of whole atoms of shape "
            f"{layout.product_each(atom.shape)}: give multiples of it, or a smaller atom"
        )
    parts = layout.tiled_divide(whole, (layout.make_layout(layout.size(mn)), layout.make_layout(layout.size(k))))
    stages_of_one_mode = [layout.coalesce(parts[i]) for i in range(3, layout.rank(parts))]
    return layout.make_layout((parts[0], parts[1], parts[2], *stages_of_one_mode))


def widest_kind(major: str, element_type: DType, extent: int) -> SmemLayoutAtomKind:
    """Choose the layout of the widest rows that divide `extent`, an operand's contiguous elements.

    major: "MN" or "K". element_type: the operand's. Raises CuteError where `extent` makes no rows of 16 bytes.
    """
    bits = extent * element_type.width
    if major == "MN" and element_type.width == 32 and bits % 1024 == 0:
        return SmemLayoutAtomKind.MN_SW128_32B
    for unit, name in ((1024, "SW128"), (512, "SW64"), (256, "SW32"), (128, "INTER")):
        if bits % unit == 0:
            return SmemLayoutAtomKind[f"{major}_{name}"]
    raise CuteError(
        f"{extent} contiguous elements of {element_type} are {bits} bits: shared memory of an operand needs a multiple "
        f"of 128, which {128 // element_type.width} elements make"
    )
