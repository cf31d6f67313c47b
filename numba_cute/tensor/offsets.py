# SPDX-License-Identifier: Apache-2.0
"""Find the offset of a coordinate: checked coordinates, the offsets that layouts give them, and iterators moved by
these."""

from __future__ import annotations

from typing import Any

from .. import dtypes, layout, seam
from ..layout import Layout
from ..layout.int_tuple import text
from ..layout.mapping import outside
from ..layout.pure import pure
from ..seam import CuteError
from .pointer import AddressSpace, Pointer, advance


def has_none(coord: Any) -> bool:
    """Return whether some leaf of `coord` is None, which marks a mode to keep."""
    return coord is None or (isinstance(coord, tuple) and any(map(has_none, coord)))


@pure
def check_coord(coord: Any, of: Any, bounded: bool = False) -> Any:
    """Return `coord`, which must have one mode for each of `of` (or be one integer) and, if `bounded`, lie within the
    shape as far as both are static: layouts are functions beyond their shape too, but memory ends there."""
    rank = layout.rank(of)
    if isinstance(coord, tuple) and len(coord) != rank:
        raise CuteError(f"coordinate {coord}: {len(coord)} modes, but {of} has {rank}; give one for each, None for all")
    path = outside(coord, layout.shape(of)) if bounded else None
    if path is not None:
        index, extent = layout.get(coord, path), layout.size(of, path)
        where = f"mode {list(path)}" if path else "it"
        raise CuteError(
            f"coordinate {text(coord)} is out of {of}: {where} takes 0 to {extent - 1}, and {index} is given"
        )
    return coord


@pure
def places(lay: Any) -> tuple[int, ...]:
    """Return where each element of a static layout lies, in coordinate order."""
    return tuple(int(layout.crd2idx(i, lay)) for i in range(int(layout.size(lay))))


@pure
def placed(lay: Any, coord: Any) -> Any:
    """Compute the offset of `coord` in `lay`."""
    return layout.crd2idx(coord, lay)


@pure
def sliced(lay: Any, coord: Any) -> tuple[Any, Any]:
    """Return the modes of `lay` marked None in `coord`, and the offset of the others."""
    return layout.slice_and_offset(coord, lay)


def add(iterator: Any, offset: Any) -> Any:
    """Move an iterator on: a pointer by elements, a coordinate by a coordinate, a descriptor by its own units."""
    if isinstance(iterator, Pointer):
        return advance(iterator, offset)
    if isinstance(iterator, tuple):
        return layout.add_coord(iterator, offset)
    return iterator + offset


def needs_64_bits(p: Any, lay: Any) -> bool:
    """Return whether an offset by a layout may exceed 31 bits (and a pointer can take more)."""
    if not isinstance(p, Pointer) or p.space not in (AddressSpace.gmem, AddressSpace.generic):
        return False
    if not isinstance(lay, Layout):
        return False
    return not seam.is_static(lay) or layout.cosize(lay) * p.dtype.width >= 8 << 31


def wide_offset(coord: Any, shape: Any, stride: Any) -> Any:
    """Compute the linear offset of a coordinate (None counts as 0), in 64 bits where it is known only at run time."""
    if coord is None:
        return 0
    if isinstance(shape, tuple):
        if not isinstance(coord, tuple):
            coord = layout.idx2crd(coord, shape)
        total: Any = 0
        for c, s, d in zip(coord, shape, stride):
            total = total + wide_offset(c, s, d)
        return total
    while isinstance(coord, tuple):
        if len(coord) != 1:
            raise CuteError(f"coordinate {coord} stands where the shape has {text(shape)}: give one integer")
        (coord,) = coord
    if isinstance(coord, int) and coord == 0:
        return 0
    return _wide(coord) * stride


def _wide(x: Any) -> Any:
    return x if seam.is_exact(x) else dtypes.Int64(x)
