# SPDX-License-Identifier: Apache-2.0
"""Parts of tiles that each block copies by TMA."""

from __future__ import annotations

from typing import Any

from ... import isa, layout
from ...atoms.copy_atom import CopyAtom
from ...dtypes import Uint16
from ...layout import Layout, make_layout
from ...layout.int_tuple import same as alike
from ...layout.pure import pure
from ...seam import CuteError, is_static, known_as, traced
from ...tensor.tensor import Tensor, domain_offset
from .tma_form import check_memory

__all__ = ["create_tma_multicast_mask", "prefetch_descriptor", "tma_partition"]


_GROUP = "group the tile's modes: cute.group_modes(smem_tile, 0, n) and cute.group_modes(gmem_tile, 0, n)"


@traced
@known_as("cute_nvgpu.cpasync")
def tma_partition(
    atom: CopyAtom, cta_coord: Any, cta_layout: Layout | int, smem_tensor: Tensor, gmem_tensor: Tensor
) -> tuple[Tensor, Tensor]:
    """Give the parts of a tile that this block copies by the TMA atom `atom`: (smem part, gmem part), each
    ((box, boxes), rest…).

    cta_coord, cta_layout: which of the blocks that share a multicast tile this is, and their numbering; 0 and
    make_layout(1) without multicast. smem_tensor, gmem_tensor: the tile in shared memory, and of the tensor that
    make_tiled_tma_atom gave; mode 0 is the whole tile (`group_modes`). Raises CuteError if the tiles differ in size,
    and for shared memory of another element type or swizzle than the atom was made for.

    >>> from numba_cute.nvgpu import cpasync
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
    >>> def kernel(atom, coords):
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=128), box)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_init_fence()
    ...         arch.mbarrier_arrive_and_expect_tx(bar, 32)
    ...     arch.sync_warp()
    ...     tile = cute.group_modes(cute.local_tile(coords, (2, 4), (1, 1)), 0, 2)
    ...     to, source = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
    ...     cute.copy(atom, source, to, tma_bar_ptr=bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     if arch.lane_idx() == 0:
    ...         print(s[0, 0])
    >>> cute.simulate(kernel)[1, 32](atom, coords)
    20.0
    """
    cta_layout = cta_layout if isinstance(cta_layout, Layout) else make_layout(cta_layout)
    for t, name in ((smem_tensor, "smem_tensor"), (gmem_tensor, "gmem_tensor")):
        if not isinstance(t, Tensor):
            raise CuteError(f"tma_partition: {name} {t!r} is not a tensor")
    check_memory(atom, smem_tensor, "tma_partition: smem_tensor")
    tile = smem_tensor.layout[0]
    if not alike(layout.size(gmem_tensor.layout, (0,)), layout.size(tile)):
        raise CuteError(
            f"tma_partition: mode 0 of gmem_tensor {gmem_tensor.layout} and of smem_tensor {smem_tensor.layout} must "
            f"both be the whole tile; {_GROUP}"
        )
    elements = layout.size(atom.layout_src_tv, (1,))
    if is_static(tile.shape) and int(layout.size(tile)) % elements:
        raise CuteError(
            f"tma_partition: mode 0 of smem_tensor {smem_tensor.layout} has {layout.size(tile)} elements, but a box of "
            f"the atom has {elements}: mode 0 must be the whole tile; {_GROUP}"
        )
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
@known_as("cute_nvgpu.cpasync")
def create_tma_multicast_mask(cta_layout_vmnk: Layout, cta_coord_vmnk: Any, mcast_mode: int) -> Any:
    """Make the mask of the blocks that share this block's part of a multicast tile: a Uint16, one bit for each rank.

    cta_layout_vmnk: the ranks of the cluster's blocks. cta_coord_vmnk: this block. mcast_mode: the mode (0 to 3) along
    which the blocks lie that share the tile. Raises CuteError for more than the 16 blocks that a cluster may have.

    >>> bin(nvgpu.cpasync.create_tma_multicast_mask(cute.make_layout((1, 2, 2, 1)), (0, 1, 0, 0), 2))
    '0b1010'
    """
    if layout.size(cta_layout_vmnk) > 16:
        raise CuteError(f"create_tma_multicast_mask: {cta_layout_vmnk} has more blocks than the 16 of a cluster")
    return Uint16(layout.make_layout_image_mask(cta_layout_vmnk, cta_coord_vmnk, mcast_mode))


@traced
@known_as("cute_nvgpu.cpasync")
def prefetch_descriptor(tma_atom: CopyAtom) -> None:
    """Fetch the tensor map of `tma_atom` ahead of its first use. One thread or warp. Raises CuteError for an atom
    without one. PTX prefetch.tensormap, sm_90.

    >>> from numba_cute.nvgpu import cpasync
    >>> x = cute.runtime.from_dlpack(np.zeros((64, 64), np.float16), assumed_align=16)
    >>> box = cute.make_layout((32, 32), stride=(32, 1))
    >>> atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, box, (32, 32))
    >>> cute.simulate(lambda atom: cpasync.prefetch_descriptor(atom))[1, 32](atom)
    """
    if tma_atom.tensor_map is None:
        raise CuteError(f"prefetch_descriptor: {tma_atom!r} is not a TMA atom")
    isa.prefetch_tensormap(tma_atom.tensor_map)
