# SPDX-License-Identifier: Apache-2.0
"""Dividing layouts into tiles, and the part of a tile or of a thread."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, traced
from .algebra import as_tile, coalesce, complement, compose, tilewise
from .int_tuple import IntTuple, product_each, text, wrap
from .layout import ComposedLayout, Layout, concat, on_outer, outer_of, rank, shape
from .mapping import dice_modes
from .modes import slice_and_offset
from .pure import pure


@pure
def logical_divide(target: Any, tiler: Any) -> Any:
    """The layout with each mode split into (tile, rest). Tiles that do not divide round up.

    tiler: a layout for the whole; a tuple of tilers, mode by mode; an integer n for n:1; None for a mode as it is.
    """
    if isinstance(target, ComposedLayout):
        return on_outer(target, logical_divide(target.outer, tiler))
    target = outer_of(target)
    if tiler is None:
        return target
    if isinstance(tiler, tuple):
        return tilewise(logical_divide, target, tiler, "logical_divide")
    tile = as_tile(tiler)
    return compose(target, concat((tile, complement(tile, coalesce(target).shape))), rounding=True, carrying=True)


def zip_by(t: IntTuple, guide: Any) -> tuple[IntTuple, IntTuple]:
    """The pairs at the leaves of `guide` in `t`, gathered: ((a0,a1,..),(b0,b1,..,rest..))."""
    if not isinstance(guide, tuple):
        if not isinstance(t, tuple) or len(t) != 2:
            raise CuteError(f"the tiler leaves the mode {text(t)} as it is, which is no pair: give its whole extent")
        return t[0], t[1]
    pairs = [zip_by(x, g) for x, g in zip(t, guide)]
    return tuple(p[0] for p in pairs), (*(p[1] for p in pairs), *t[len(guide) :])


def zipped(layout: Layout, guide: Any) -> Layout:
    """The layout of `zip_by`."""
    (s0, s1), (d0, d1) = zip_by(layout.shape, guide), zip_by(layout.stride, guide)
    return Layout((s0, s1), (d0, d1))


@pure
def zipped_divide(target: Any, tiler: Any) -> Any:
    """((tiles), (rests)): the tile of every mode gathered in mode 0, what repeats it in mode 1."""
    if isinstance(target, ComposedLayout):
        return on_outer(target, zipped_divide(target.outer, tiler))
    return zipped(logical_divide(target, tiler), tiler)


@pure
def tiled_divide(target: Any, tiler: Any) -> Any:
    """((tiles), rest, rest, ...): as `zipped_divide`, its mode 1 unpacked."""
    return unpacked(zipped_divide(target, tiler), False)


@pure
def flat_divide(target: Any, tiler: Any) -> Any:
    """(tile, tile, ..., rest, rest, ...): as `zipped_divide`, both modes unpacked."""
    return unpacked(zipped_divide(target, tiler), True)


def unpacked(layout: Any, both: bool) -> Any:
    if isinstance(layout, ComposedLayout):
        return on_outer(layout, unpacked(layout.outer, both))

    def open_(t: IntTuple) -> IntTuple:
        return (*(wrap(t[0]) if both else (t[0],)), *wrap(t[1]))

    return Layout(open_(layout.shape), open_(layout.stride))


# ------------------------------------------------------------------ parts


@traced
def local_tile(layout: Any, tiler: Any, coord: IntTuple, proj: IntTuple = None) -> tuple[Any, Any]:
    """One tile of a layout, and its offset: the tile modes, then those rest modes where `coord` is None.

    coord: a coordinate of the rests, or an integer. proj: the modes of `tiler` and `coord` to use, the others None;
    what `coord` has beyond them stays.
    """
    if proj is not None:
        tiler, coord = dice_modes(proj, tiler), projected(coord, proj)
    return inner_partition(layout, tiler, coord)


def projected(coord: IntTuple, proj: IntTuple) -> IntTuple:
    """The modes of a coordinate that `proj` does not mark None, and those beyond it."""
    if not (isinstance(coord, tuple) and isinstance(proj, tuple) and len(coord) > len(proj)):
        return dice_modes(proj, coord)
    kept = dice_modes(proj, coord[: len(proj)])
    return (*(kept if isinstance(kept, tuple) else (kept,)), *coord[len(proj) :])


@traced
def inner_partition(layout: Any, tiler: Any, coord: IntTuple) -> tuple[Any, Any]:
    """The tile at `coord` of the rests of `zipped_divide(layout, tiler)`, and its offset."""
    tiles = _open_tiles(layout, tiler)
    return slice_and_offset(((None,) * rank(tiles, 0), _padded(coord, rank(tiles, 1))), tiles)


@traced
def outer_partition(layout: Any, tiler: Any, coord: IntTuple) -> tuple[Any, Any]:
    """What lies at `coord` of each tile of `zipped_divide(layout, tiler)`, and its offset."""
    tiles = _open_tiles(layout, tiler)
    return slice_and_offset((_padded(coord, rank(tiles, 0)), (None,) * rank(tiles, 1)), tiles)


@pure
def _open_tiles(layout: Any, tiler: Any) -> Any:
    """`zipped_divide`, with both modes tuples, so that slices can open them."""
    if isinstance(layout, ComposedLayout):
        return on_outer(layout, _open_tiles(layout.outer, tiler))
    tiles = zipped_divide(layout, tiler)
    return Layout(tuple(map(wrap, tiles.shape)), tuple(map(wrap, tiles.stride)))


def _padded(coord: IntTuple, n: int) -> IntTuple:
    return coord + (None,) * (n - len(coord)) if isinstance(coord, tuple) else coord


@traced
def local_partition(layout: Any, tiler: Layout, index: Any, proj: IntTuple = 1) -> tuple[Any, Any]:
    """The elements of thread `index` when the threads of layout `tiler` cover `layout` tile by tile, and their
    offset. proj: the modes of `tiler` to use, the others None; 1 for all."""
    extents, coord = product_each(shape(tiler)), tiler.get_flat_coord(index)
    return outer_partition(layout, dice_modes(proj, extents), dice_modes(proj, coord))
