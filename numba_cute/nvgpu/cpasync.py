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

from .. import isa, layout, seam
from ..arch.warp import elect_one
from ..copy_atom import CopyAtom, CopyTraits
from ..dtypes import DType, Uint16
from ..layout import make_layout
from ..layout.pure import pure
from ..pointer import AddressSpace, Pointer, shared_address
from ..seam import CuteError, static, traced
from ..tensor import Tensor, domain_offset
from .bulk import (
    CopyBulkG2SMulticastOp,
    CopyBulkG2SOp,
    CopyBulkS2GByteMaskOp,
    CopyBulkS2GOp,
    CopyBulkS2SOp,
    group_bulk_copy_modes,
)
from .common import LoadCacheMode, ReductionOp
from .cp_async import CopyG2SOp
from .tma import make_tiled_tma_atom

__all__ = [
    "CopyBulkG2SMulticastOp",
    "CopyBulkG2SOp",
    "CopyBulkS2GByteMaskOp",
    "CopyBulkS2GOp",
    "CopyBulkS2SOp",
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyG2SOp",
    "CopyReduceBulkTensorTileS2GOp",
    "LoadCacheMode",
    "create_tma_multicast_mask",
    "group_bulk_copy_modes",
    "make_tiled_tma_atom",
    "prefetch_descriptor",
    "tma_partition",
]


@pure
def _box_traits(elements: int) -> CopyTraits:
    tv = make_layout((1, elements), stride=(0, 1))
    return CopyTraits(make_layout(1), tv, tv, tv)


def _traits(what: str, dtype: DType, num_bits: int) -> CopyTraits:
    if num_bits == 0:
        raise CuteError(f"{what}: a TMA atom is made by cpasync.make_tiled_tma_atom, on the host")
    return _box_traits(num_bits // dtype.width)


def _coordinates(t: Tensor, what: str) -> tuple[Any, ...]:
    if not isinstance(t.iterator, tuple):
        raise CuteError(f"copy: {what} {t!r} must be a part of the tensor that make_tiled_tma_atom gave")
    return t.iterator


def _shared(t: Tensor, what: str) -> Any:
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.smem:
        raise CuteError(f"copy: {what} {t!r} must lie in shared memory")
    if p.alignment % 128:
        raise CuteError(f"copy: {what} {t!r} must be aligned to 128 bytes; allocate it with byte_alignment=1024")
    return p.address


def _no_predicate(pairs: Any) -> None:
    if any(p is not None for _, _, p in pairs):
        raise CuteError("copy: pred is not for TMA, which leaves out what lies outside the tensor by itself")


def _load(atom: CopyAtom, pairs: Any, bar: Any, mask: Any, policy: Any) -> None:
    """Issue the loads by one lane of the warp."""
    if bar is None:
        raise CuteError("copy: a TMA load needs tma_bar_ptr, the mbarrier that its bytes complete on")
    _no_predicate(pairs)
    bar = shared_address(bar, "copy: tma_bar_ptr")
    args = [(_shared(d, "dst"), _coordinates(s, "src")) for s, d, _ in pairs]
    extra = () if policy is None else (policy,)
    if mask is None:
        row = isa.cp_async_bulk_tensor_g2s if policy is None else isa.cp_async_bulk_tensor_g2s_hint
    else:
        extra = (Uint16(mask), *extra)
        multicast, hint = isa.cp_async_bulk_tensor_g2s_multicast, isa.cp_async_bulk_tensor_g2s_multicast_hint
        row = multicast if policy is None else hint

    def issue() -> None:
        for dst, at in args:
            row(dst, atom.tensor_map, at, bar, *extra, rank=len(at))

    seam.current().when(elect_one(), issue)


def _prefetch(atom: CopyAtom, tensors: list[Tensor]) -> None:
    def issue() -> None:
        for t in tensors:
            at = _coordinates(t, "src")
            isa.cp_async_bulk_prefetch_tensor(atom.tensor_map, at, rank=len(at))

    seam.current().when(elect_one(), issue)


@static
class CopyBulkTensorTileG2SOp:
    """TMA load of a box of a tensor from global to shared memory. PTX cp.async.bulk.tensor, sm_90."""

    multicast = False

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits("CopyBulkTensorTileG2SOp", dtype, num_bits)

    def issue_tma(self, atom: CopyAtom, pairs: Any, bar: Any, mask: Any, policy: Any) -> None:
        if mask is not None:
            raise CuteError("copy: mcast_mask needs an atom of CopyBulkTensorTileG2SMulticastOp()")
        _load(atom, pairs, bar, None, policy)

    def issue_prefetch(self, atom: CopyAtom, tensors: list[Tensor]) -> None:
        _prefetch(atom, tensors)


@static
class CopyBulkTensorTileG2SMulticastOp:
    """TMA load of a box to the same place in several blocks of a cluster. PTX cp.async.bulk.tensor, sm_90."""

    multicast = True

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits("CopyBulkTensorTileG2SMulticastOp", dtype, num_bits)

    def issue_tma(self, atom: CopyAtom, pairs: Any, bar: Any, mask: Any, policy: Any) -> None:
        if mask is None:
            raise CuteError("copy: a multicast load needs mcast_mask; make it with cpasync.create_tma_multicast_mask")
        _load(atom, pairs, bar, mask, policy)

    def issue_prefetch(self, atom: CopyAtom, tensors: list[Tensor]) -> None:
        _prefetch(atom, tensors)


def _stores(pairs: Any, bar: Any, mask: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """(shared address, coordinates) of each store."""
    if bar is not None or mask is not None:
        raise CuteError("copy: tma_bar_ptr and mcast_mask are for TMA loads; wait for a store by its bulk group")
    _no_predicate(pairs)
    return [(_shared(s, "src"), _coordinates(d, "dst")) for s, d, _ in pairs]


@static
class CopyBulkTensorTileS2GOp:
    """TMA store of a box from shared memory to a tensor in global memory. PTX cp.async.bulk.tensor, sm_90."""

    multicast = False

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits("CopyBulkTensorTileS2GOp", dtype, num_bits)

    def issue_tma(self, atom: CopyAtom, pairs: Any, bar: Any, mask: Any, policy: Any) -> None:
        args = _stores(pairs, bar, mask)

        def issue() -> None:
            for src, at in args:
                if policy is None:
                    isa.cp_async_bulk_tensor_s2g(atom.tensor_map, at, src, rank=len(at))
                else:
                    isa.cp_async_bulk_tensor_s2g_hint(atom.tensor_map, at, src, policy, rank=len(at))

        seam.current().when(elect_one(), issue)


@static
class CopyReduceBulkTensorTileS2GOp:
    """TMA store that combines each element with what is there, atomically and in no order.
    PTX cp.reduce.async.bulk.tensor, sm_90."""

    reduction_kind: ReductionOp = ReductionOp.ADD

    multicast = False

    def __post_init__(self) -> None:
        if not isinstance(self.reduction_kind, ReductionOp):
            raise CuteError(
                f"CopyReduceBulkTensorTileS2GOp: reduction_kind {self.reduction_kind!r} is not a member of ReductionOp"
            )

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits("CopyReduceBulkTensorTileS2GOp", dtype, num_bits)

    def issue_tma(self, atom: CopyAtom, pairs: Any, bar: Any, mask: Any, policy: Any) -> None:
        if policy is not None:
            raise CuteError("copy: cache_policy is not for reductions")
        args = _stores(pairs, bar, mask)
        kind = self.reduction_kind.value

        def issue() -> None:
            for src, at in args:
                isa.cp_reduce_async_bulk_tensor_s2g(atom.tensor_map, at, src, rank=len(at), op=kind)

        seam.current().when(elect_one(), issue)


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
