# SPDX-License-Identifier: Apache-2.0
"""wgmma: matrix multiply-accumulate by a warpgroup (128 threads), reading shared memory asynchronously. sm_90a.

The order: `fence()`, `cute.gemm(…)` for each step, `commit_group()`, `wait_group(n)` before the accumulator is read
or the operands' memory is overwritten. All threads of the warpgroup call each of these, converged.
"""

from __future__ import annotations

from .. import isa
from ..atoms.mma_atom import Field as Field
from ..dtypes import DType
from ..layout import ComposedLayout, Swizzle, make_composed_layout, make_layout
from ..seam import CuteError, StaticEnum, traced
from .common import OperandMajorMode as OperandMajorMode
from .hopper import warpgroup_mma as _warpgroup_mma, warpgroup_sparse as _warpgroup_sparse
from .hopper.warpgroup_mma import *
from .hopper.warpgroup_sparse import *

__all__ = [
    "Field", "OperandMajorMode", "SmemLayoutAtomKind", "commit_group", "fence", "make_smem_layout_atom", "wait_group",
]  # fmt: skip
__all__ += _warpgroup_mma.__all__
__all__ += _warpgroup_sparse.__all__


class SmemLayoutAtomKind(StaticEnum):
    """Shared memory layouts that wgmma reads: the contiguous dimension (MN or K), and the bytes of a swizzled row."""

    MN_INTER = ("mn", 0)
    MN_SW32 = ("mn", 1)
    MN_SW64 = ("mn", 2)
    MN_SW128 = ("mn", 3)
    K_INTER = ("k", 0)
    K_SW32 = ("k", 1)
    K_SW64 = ("k", 2)
    K_SW128 = ("k", 3)


@traced
def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: DType) -> ComposedLayout:
    """The smallest tile of a shared memory layout: 8 rows of 16, 32, 64 or 128 bytes, S o 0 o (rows, row).

    The swizzle counts bytes: allocate with `layout.outer` and `swizzle=layout.inner`, 1024-byte aligned."""
    if not isinstance(kind, SmemLayoutAtomKind):
        raise CuteError(f"make_smem_layout_atom: kind {kind!r} is not a member of SmemLayoutAtomKind")
    major, bits = kind.value
    row = (128 << bits) // element_type.width
    outer = make_layout((row, 8), stride=(1, row)) if major == "mn" else make_layout((8, row), stride=(row, 1))
    return make_composed_layout(Swizzle(bits, 4, 3), 0, outer)


@traced
def fence() -> None:
    """Order accesses to accumulators and A registers before the next wgmma. It does not order shared memory.
    PTX wgmma.fence, sm_90a."""
    isa.wgmma_fence()


@traced
def commit_group() -> None:
    """Close the group of wgmmas issued since the last one. PTX wgmma.commit_group, sm_90a."""
    isa.wgmma_commit_group()


@traced
def wait_group(group: int) -> None:
    """Wait until at most the `group` (0 to 7) latest groups are incomplete. PTX wgmma.wait_group, sm_90a."""
    if type(group) is not int or not 0 <= group <= 7:
        raise CuteError(f"warpgroup.wait_group: group {group!r} must be a static number in [0, 7]")
    isa.wgmma_wait_group(n=group)
