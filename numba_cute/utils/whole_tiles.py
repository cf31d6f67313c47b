# SPDX-License-Identifier: Apache-2.0
"""`block_copy`: a whole tile by TMA, with no partitioning in the kernel."""

from __future__ import annotations

from typing import Any

from .. import layout
from ..atoms.copy import copy
from ..atoms.copy_atom import CopyAtom
from ..nvgpu.cpasync import TmaCopyOp, tma_partition
from ..seam import CuteError, Int, traced
from ..tensor.algebra import group_modes
from ..tensor.pointer import Pointer
from ..tensor.tensor import Tensor

__all__ = ["block_copy"]


@traced
def block_copy(
    atom: CopyAtom,
    src: Tensor,
    dst: Tensor,
    *,
    tma_bar_ptr: Pointer | None = None,
    mcast_mask: Int | None = None,
    cta_coord: Int = 0,
    cta_layout: Any = 1,
    cache_policy: Int | None = None,
) -> None:
    """Copy the tile `src` to the tile `dst` by a TMA atom: `cpasync.tma_partition` and `cute.copy` in one. A whole
    converged warp; it expects no bytes, commits nothing and waits for nothing.

    atom: of `make_tiled_tma_atom`. src, dst: one tile in shared memory, and the same tile of the tensor that
    make_tiled_tma_atom gave, as `local_tile` cuts it; which is which decides between load and store. cta_coord,
    cta_layout: of a multicast load, which of the CTAs that share the tile this is, and their numbering. tma_bar_ptr,
    mcast_mask, cache_policy: as for `cute.copy`. PTX cp.async.bulk.tensor, sm_90.
    """
    if not isinstance(atom, CopyAtom) or not isinstance(atom.op, TmaCopyOp):
        raise CuteError(f"block_copy: atom {atom!r} is not a TMA atom, as make_tiled_tma_atom makes it")
    for t, name in ((src, "src"), (dst, "dst")):
        if not isinstance(t, Tensor):
            raise CuteError(f"block_copy: {name} {t!r} is not a tensor")
    loads = isinstance(src.iterator, tuple)
    if loads == isinstance(dst.iterator, tuple):
        raise CuteError(
            f"block_copy: of src {src!r} and dst {dst!r} one must be in shared memory, and the other a part of the "
            "tensor that make_tiled_tma_atom gave"
        )
    smem, gmem = (_whole(t) for t in ((dst, src) if loads else (src, dst)))
    numbering = cta_layout if isinstance(cta_layout, layout.Layout) else layout.make_layout(cta_layout)
    in_smem, in_gmem = tma_partition(atom, cta_coord, numbering, smem, gmem)
    source, target = (in_gmem, in_smem) if loads else (in_smem, in_gmem)
    copy(atom, source, target, tma_bar_ptr=tma_bar_ptr, mcast_mask=mcast_mask, cache_policy=cache_policy)


def _whole(t: Tensor) -> Any:
    return group_modes(t, 0, layout.rank(t.layout))
