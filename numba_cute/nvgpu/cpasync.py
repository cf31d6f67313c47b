# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies between global and shared memory: by each thread (`CopyG2SOp`, cp.async, sm_80), and by the TMA
unit (the others, sm_90).

A load completes its bytes on an mbarrier in each block that receives them, and somebody must have said to expect
them. A store belongs to its thread's bulk group: `arch.cp_async_bulk_commit_group` closes it,
`arch.cp_async_bulk_wait_group` waits. Before a store reads what threads wrote, each of them calls
`arch.fence_proxy("async.shared", space="cta")`, and then comes a barrier.
"""

from __future__ import annotations

from typing import Any

from .. import isa, layout
from ..atoms.copy_atom import CopyAtom
from ..dtypes import Uint16
from ..layout import make_layout
from ..layout.pure import pure
from ..seam import CuteError, traced
from ..tensor.tensor import Tensor, domain_offset
from .ampere import cp_async as _cp_async
from .ampere.cp_async import *
from .common import CtaGroup as CtaGroup, LoadCacheMode as LoadCacheMode, ReductionOp as ReductionOp
from .hopper import (
    bulk as _bulk,
    dsmem as _dsmem,
    im2col as _im2col,
    tensor_map as _tensor_map,
    tma as _tma,
    tma_ops as _tma_ops,
)
from .hopper.bulk import *
from .hopper.dsmem import *
from .hopper.im2col import *
from .hopper.tensor_map import *
from .hopper.tma import *
from .hopper.tma_ops import *

__all__ = [
    "CtaGroup", "LoadCacheMode", "ReductionOp", "create_tma_multicast_mask", "prefetch_descriptor", "tma_partition",
]  # fmt: skip
__all__ += _cp_async.__all__
__all__ += _bulk.__all__
__all__ += _dsmem.__all__
__all__ += _im2col.__all__
__all__ += _tensor_map.__all__
__all__ += _tma.__all__
__all__ += _tma_ops.__all__


@traced
def tma_partition(
    atom: CopyAtom, cta_coord: Any, cta_layout: Any, smem_tensor: Tensor, gmem_tensor: Tensor
) -> tuple[Tensor, Tensor]:
    """The parts of a tile that this block copies by `atom`: (smem part, gmem part), ((box, boxes), rest…) each.

    cta_coord, cta_layout: which of the blocks that share a multicast tile this is, and their numbering; 0 and
    make_layout(1) without multicast. smem_tensor, gmem_tensor: mode 0 is the whole tile (`group_modes`)."""
    cta_layout = cta_layout if isinstance(cta_layout, layout.Layout) else make_layout(cta_layout)
    for t, name in ((smem_tensor, "smem_tensor"), (gmem_tensor, "gmem_tensor")):
        if not isinstance(t, Tensor):
            raise CuteError(f"tma_partition: {name} {t!r} is not a tensor")
    tile = smem_tensor.layout[0]
    if layout.size(gmem_tensor.layout, (0,)) != layout.size(tile):
        raise CuteError(
            f"tma_partition: mode 0 of gmem_tensor {gmem_tensor.layout} and of smem_tensor {smem_tensor.layout} must "
            "both be the whole tile; group their tile modes with group_modes(t, 0, n)"
        )
    elements = layout.size(atom.layout_src_tv, (1,))
    parts = layout.cosize(cta_layout)
    by_box, by_part = tile_by_box(tile, elements, 1), tile_by_box(tile, elements, parts)
    part = layout.crd2idx(cta_coord, cta_layout)
    return _by_boxes(smem_tensor, by_box, by_part, part), _by_boxes(gmem_tensor, by_box, by_part, part)


@pure
def tile_by_box(tile: Any, elements: int, parts: int) -> Any:
    """From ((element of a part of a box, part), box) to the tile's coordinate, in the order of shared memory."""
    inverse = layout.right_inverse(layout.get_nonswizzle_portion(tile))
    whole = layout.tile_to_shape(layout.make_layout((inverse,)), layout.size(tile), (0,))
    return layout.logical_divide(layout.coalesce(whole), layout.make_layout((elements // parts, parts)))


def _by_boxes(t: Tensor, by_box: Any, by_part: Any, part: Any) -> Tensor:
    """The tile by boxes, starting at this block's part (its stride is static, so that the alignment stays known)."""
    rest = layout.rank(t.layout) - 1
    whole = layout.coalesce(layout.composition(t.layout, (by_box, *(None,) * rest)), target_profile=((1, 1),))
    by_parts = Tensor(t.iterator, layout.composition(t.layout, (by_part, *(None,) * rest)))
    return Tensor(domain_offset((((0, part), 0), *(0,) * rest), by_parts).iterator, whole)


@traced
def create_tma_multicast_mask(cta_layout_vmnk: Any, cta_coord_vmnk: Any, mcast_mode: int) -> Any:
    """The blocks (Uint16, one bit for each rank) that lie along mode `mcast_mode` through `cta_coord_vmnk`: those that
    share this block's part of a multicast tile."""
    return Uint16(layout.make_layout_image_mask(cta_layout_vmnk, cta_coord_vmnk, mcast_mode))


@traced
def prefetch_descriptor(tma_atom: CopyAtom) -> None:
    """Fetch the atom's tensor map ahead of its first use. One thread or warp. PTX prefetch.tensormap, sm_90."""
    if tma_atom.tensor_map is None:
        raise CuteError(f"prefetch_descriptor: {tma_atom!r} is not a TMA atom")
    isa.prefetch_tensormap(tma_atom.tensor_map)
