# SPDX-License-Identifier: Apache-2.0
"""TMA of tiles of a tensor whose map is made for the kernel: what the map must say follows from the tile in shared
memory, which the kernel alone knows; the host makes it of the tensor that the launch passes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import isa, layout, seam
from ...arch.index import block_idx, grid_dim
from ...arch.warp import elect_one, sync_warp
from ...atoms.copy import copy
from ...atoms.copy_atom import CopyAtom
from ...dtypes import DType, Int32, Int64, Uint8, Uint32, Uint64
from ...isa.facts.tensormap import TensorMapRecord
from ...isa.facts.tensormap_bits import BYTES
from ...layout import Layout, make_layout
from ...seam import CuteError
from ...seam.ground.records import dataclass
from ...seam.guards.messages import how_static
from ...tensor.algebra import filter_zeros, group_modes
from ...tensor.pointer import AddressSpace, Pointer, check_writable
from ...tensor.tensor import Tensor
from .new_map import NewTensorMap
from .partition import tma_partition
from .tma import global_pointer, in_shared, internal_of, multicast_slice, record_of, split_swizzle
from .tma_dims import Dim, coordinate_strides, dims_of, orders
from .tma_form import check_type, in_dims
from .tma_ops import TmaCopyOp

BEFORE, BEHIND = 48 << 10, 256 << 10
"""By how many bytes shared memory may lie before the dynamic one (static), and behind where that begins."""
_MOST = 5
"""Dimensions of a tensor map."""


@dataclass(frozen=True)
class MapForm:
    """The form of a tensor map besides its tensor: known when a kernel is compiled.

    dtype: the type that TMA takes the elements for. unpacked: elements below a byte take a byte each in shared memory.
    dims: which modes of the tensor each dimension is made of. box: elements of a copy along each. swizzle: of shared
    memory, as TMA names it."""

    dtype: DType
    unpacked: bool
    dims: tuple[Dim, ...]
    box: tuple[int, ...]
    swizzle: str

    def record(self, tensor: Tensor) -> TensorMapRecord:
        """Make the map of `tensor`, whose address, extents and strides are known. Raises CuteError for a tensor that
        TMA cannot copy."""
        ptr = global_pointer(tensor)
        steps = [1] * len(self.dims)
        made, _ = record_of(
            ptr, self.dtype, self.unpacked, tensor.layout, list(self.dims), list(self.box), steps,
            {"swizzle": self.swizzle},
        )  # fmt: skip
        if not isinstance(made, TensorMapRecord):
            raise CuteError(made.why)
        return made


@dataclass(frozen=True)
class Tile:
    """A tile of a tensor, as TMA copies it.

    base: the whole tensor. coordinates: where the tile begins, and its modes: a tensor of coordinates of `base`.
    by_value: from the coordinates of shared memory's layout to those of the tile, as layouts of coordinates of `base`;
    None: both have the same order. maps: what the backend knows the maps of `base` by."""

    base: Tensor
    coordinates: Tensor
    by_value: Any
    maps: Any


def shared_tile(t: Any, what: str, name: str) -> Tensor:
    """Refuse anything but a static tile of shared memory."""
    ok = isinstance(t, Tensor) and isinstance(t.iterator, Pointer) and t.iterator.space is AddressSpace.smem
    if not ok or not isinstance(t.layout, Layout) or not seam.is_static((t.layout.shape, t.layout.stride)):
        raise CuteError(
            f"{what}: {name} {t!r} must be a static tile of shared memory, as allocate gives it, with its stage chosen"
            f"{how_static(t)}"
        )
    return t  # type: ignore[no-any-return]


def tile_bytes(smem: Tensor) -> int:
    """Count the bytes that a copy of a whole tile brings to shared memory."""
    lay = layout.filter_zeros(smem.layout)
    return int(layout.size(lay)) * smem.element_type.width // 8


def copy_tile(
    what: str, op: TmaCopyOp, tile: Tile, smem: Tensor, *, bar: Any = None, mask: Any = None, policy: Any = None,
    part: Any = 0, parts: int = 1, internal_type: DType | None = None,
) -> None:  # fmt: skip
    """Copy a whole tile between shared memory and a tensor by TMA. A whole converged warp, of which one lane issues.

    op: a TMA operation. bar: the mbarrier of a load. mask: the blocks that a multicast reaches. policy: an L2 policy
    word. part, parts: which of so many parts of the tile this block copies. internal_type: the type that TMA takes the
    elements for. Raises CuteError for what TMA cannot copy."""
    if op.writes:
        check_writable(tile.base.iterator, what)
    coords = tile.coordinates
    by_value = coords.layout if tile.by_value is None else tile.by_value
    if not seam.is_static(by_value.shape) or layout.size(by_value) != layout.size(smem.layout):
        raise CuteError(
            f"{what}: the tile {by_value.shape} does not have as many elements as shared memory, {smem.layout}: take "
            "tiles of the shape that shared memory was laid out for"
        )
    try:
        atom, strides = _atom(op, tile, by_value, smem, parts, internal_type)
    except CuteError as e:
        raise CuteError(f"{what}: {str(e).removeprefix('make_tiled_tma_atom: ')}") from None
    shape = tile.base.shape
    start = layout.crd2idx(coords.iterator, Layout(shape, strides))
    begins = layout.add_coord((0,) * len(atom.tma_modes or ()), start)
    source = Tensor(begins, Layout(by_value.shape, in_dims(by_value.stride, strides)))
    tiles = _whole(smem), _whole(source)
    s, g = tma_partition(atom, part, make_layout(parts), *tiles)
    if layout.size(layout.filter_zeros(smem.layout)) != layout.size(smem.layout):
        s, g = filter_zeros(s), filter_zeros(g)
    if op.writes:
        copy(atom, s, g, cache_policy=policy)
    else:
        copy(atom, g, s, tma_bar_ptr=bar, mcast_mask=mask, cache_policy=policy)


def _whole(t: Tensor) -> Tensor:
    return group_modes(t, 0, layout.rank(t.layout))  # type: ignore[no-any-return]


def _atom(
    op: TmaCopyOp, tile: Tile, by_value: Layout, smem: Tensor, parts: int, internal_type: DType | None
) -> tuple[CopyAtom, Any]:
    """The atom that copies a tile, and the strides by which coordinates of the tensor are those of its map."""
    ptr, gmem = tile.base.iterator, tile.base.layout
    dtype = internal_type or ptr.dtype
    unpacked, ratio = internal_of(dtype, ptr.dtype)
    name = "src" if op.writes else "dst"
    of_shared = in_shared(ptr.dtype, internal_type, unpacked, ratio)
    check_type(smem.element_type, of_shared, name, "the tensor holds", ptr.dtype)
    swizzle = smem.iterator.swizzle
    name, plain = split_swizzle(
        smem.layout if swizzle is None else layout.make_composed_layout(swizzle, 0, smem.layout)
    )
    dims = dims_of(gmem, plain, by_value, _MOST, ratio, ptr.dtype.width)
    _check_contiguous(gmem, dims[0])
    box = [dim.box for dim in dims]
    form = MapForm(dtype, unpacked, tuple(dims), tuple(multicast_slice(box, parts)), name)
    held = (internal_type or Uint8) if unpacked else ptr.dtype
    elements = layout.product(tuple(box)) * ratio
    if tile.maps is not None and tile.maps.made:
        address = _made_here(form, tile.base, smem, op.writes)
    else:
        address = seam.current().tensor_map(tile.maps, form, tile.base)
    op = op if ratio == 1 else replace(op, recast=ratio)
    atom = CopyAtom(op, held, elements * held.width, address, orders(gmem, dims))
    return atom, coordinate_strides(gmem, dims, [1] * len(dims), 1)


def _made_here(form: MapForm, base: Tensor, smem: Tensor, stores: bool) -> Any:
    """Write the map of a tensor that the kernel made to memory of this line and block, and give its address. A whole
    converged warp.

    There is one place for each tile that shared memory has room for: whoever loads a tile again has waited for the load
    before, and so nobody reads a map that changes. Of a tile that is stored again this lane waits here."""
    b, size = seam.current(), tile_bytes(smem)
    base_address, of_block = b.map_room(1 + (BEFORE + BEHIND) // size)
    x, y, z = block_idx()
    nx, ny, _ = grid_dim()
    tile = seam.quotient(Int32(Uint32(smem.iterator.address) + BEFORE - Uint32(b.smem_base())), size)
    block = Int64(x) + Int64(nx) * (Int64(y) + Int64(ny) * Int64(z))
    address = Uint64(base_address) + Uint64(block * of_block + Int64(tile) * BYTES)
    new = NewTensorMap(
        form.dtype, form.unpacked, form.dims, form.box, (1,) * len(form.dims), form.swizzle, "zero", base
    )

    def write() -> None:
        if stores:
            isa.cp_async_bulk_commit_group()
            isa.cp_async_bulk_wait_group(n=0, read=True)
        new.write("gmem", address)
        isa.fence_proxy_tensormap_release(scope="cta")

    b.when(elect_one(), write)
    sync_warp()
    isa.fence_proxy_tensormap_acquire(address, scope="cta")
    return address


def _check_contiguous(gmem: Layout, dim: Dim) -> None:
    """An error unless the innermost mode is known to be contiguous."""
    first = dim.modes[0]
    stride, extent = layout.basis_get(first, gmem.stride), layout.basis_get(first, gmem.shape)
    if not (type(stride) is int and stride == 1) and not (type(extent) is int and extent == 1):
        raise CuteError(
            f"the tensor {gmem} has stride {stride} along the mode that is contiguous in shared memory; it must be a "
            "static 1: both must have the same major mode; mark_layout_dynamic(leading_dim=…) keeps it static"
        )
