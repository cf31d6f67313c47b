# SPDX-License-Identifier: Apache-2.0
"""Shared memory as wgmma reads it: its layouts and its descriptors."""

from __future__ import annotations

from ...dtypes import DType
from ...isa.facts.bits import WgmmaDescriptor
from ...layout import ComposedLayout, Swizzle, make_composed_layout, make_layout
from ...seam import CuteError, StaticEnum, known_as, traced
from ..common.smem_descriptor import DescriptorForm

__all__ = ["SmemLayoutAtomKind", "make_smem_layout_atom"]


class SmemLayoutAtomKind(StaticEnum):
    """A shared memory layout that wgmma reads: the contiguous dimension (MN or K), and the bytes of a swizzled row.

    >>> [member.name for member in nvgpu.warpgroup.SmemLayoutAtomKind]
    ['MN_INTER', 'MN_SW32', 'MN_SW64', 'MN_SW128', 'K_INTER', 'K_SW32', 'K_SW64', 'K_SW128']
    """

    MN_INTER = ("mn", 0)
    MN_SW32 = ("mn", 1)
    MN_SW64 = ("mn", 2)
    MN_SW128 = ("mn", 3)
    K_INTER = ("k", 0)
    K_SW32 = ("k", 1)
    K_SW64 = ("k", 2)
    K_SW128 = ("k", 3)


@traced
@known_as("cute_nvgpu.warpgroup")
def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: DType) -> ComposedLayout:
    """Make the smallest tile of a shared memory layout: 8 rows of 16, 32, 64 or 128 bytes, S o 0 o (rows, row).

    kind: the contiguous dimension and the bytes of a row, a member of SmemLayoutAtomKind; CuteError for others.
    element_type: the elements' type. The swizzle counts bytes: allocate with `layout.outer` and `swizzle=layout.inner`,
    128-byte aligned. On the host or in a kernel; it issues nothing.

    >>> nvgpu.warpgroup.make_smem_layout_atom(nvgpu.warpgroup.SmemLayoutAtomKind.K_SW128, cute.BFloat16)
    S<3,4,3> o 0 o (8,64):(64,1)
    """
    if not isinstance(kind, SmemLayoutAtomKind):
        raise CuteError(f"make_smem_layout_atom: kind {kind!r} is not a member of SmemLayoutAtomKind")
    major, bits = kind.value
    row = (128 << bits) // element_type.width
    outer = make_layout((row, 8), stride=(1, row)) if major == "mn" else make_layout((8, row), stride=(row, 1))
    return make_composed_layout(Swizzle(bits, 4, 3), 0, outer)


WGMMA = DescriptorForm(
    "wgmma", WgmmaDescriptor, {(b, 4, 3): 16 << b for b in (1, 2, 3)}, "warpgroup.make_smem_layout_atom"
)
"""Descriptors as wgmma has them."""
