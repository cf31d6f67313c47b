# SPDX-License-Identifier: Apache-2.0
"""Dividing layouts into tiles, and the part of a tile or of a thread."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, is_static, traced
from ..seam.guards.kinds import Domain, Tiler
from .algebra import Gaps, Inadmissible, as_tile, compose_modes, tilewise
from .coalescing import Mode, flat_layout, merged, modes_of
from .int_tuple import IntTuple, ceil_div_leaf, ceil_div_steps, is_one, mul, product, product_each, round_up, text, wrap
from .layout import ComposedLayout, Layout, concat, on_outer, outer_of, rank, shape, size
from .mapping import dice_modes
from .pure import pure
from .slices import slice_and_offset

__all__ = ["inner_partition", "outer_partition"]


@pure
def logical_divide(target: Domain, tiler: Tiler) -> Any:
    """Split each mode of the layout `target` into (tile, rest): target o (tile, complement(tile, size(target))).

    tiler: a layout for the whole; a tuple of tilers, mode by mode; an integer n for n:1; None for a mode as it is. A
    tile that does not divide rounds up: the last one reaches beyond the layout. An error where tile and rest are no
    layout, or leave elements out.

    >>> cute.logical_divide(cute.make_layout(24), 4)
    (4,6):(1,4)
    """
    if isinstance(target, ComposedLayout):
        return on_outer(target, logical_divide(target.outer, tiler))
    target = outer_of(target)
    if tiler is None:
        return target
    if isinstance(tiler, tuple):
        return tilewise(logical_divide, target, tiler, "logical_divide")
    return _divide(target, as_tile(tiler))


def _divide(target: Layout, tile: Layout) -> Layout:
    gaps = Gaps(tile)
    try:
        if gaps.hole is not None and not (is_static(target.shape) and size(target) <= gaps.hole):
            raise Inadmissible(
                f"no tile reaches element {gaps.hole}: choose strides of the tile that are multiples of what lies below"
            )
        modes = merged(modes_of(target), keep_last=True)
        if len(modes) > 1:
            modes = _of_whole_tiles(modes, gaps.reached)
        rest = gaps.complement(tuple([s for s, _ in modes]))
        return compose_modes(modes, concat((tile, flat_layout(rest))))
    except Inadmissible as e:
        raise CuteError(f"logical_divide: {target} by {tile} is not a layout: {e}") from None


def _of_whole_tiles(modes: list[Mode], block: Any) -> list[Mode]:
    """The modes of a layout, the one within which tiles of `block` elements end rounded up to whole tiles.

    That is how CuTe covers a layout of several modes by tiles that do not divide it. It is refused where it takes more
    tiles than the elements fill, as for each tile that divides the layout as a whole but not that mode.
    """
    within = block
    for i, (s, d) in enumerate(modes[:-1]):
        if type(within) is not int or type(s) is not int or s % within == 0:
            return modes  # of whole tiles, or what only the composition can decide
        if within % s == 0:
            within //= s
        elif within > s:
            return modes
        else:
            shape = tuple([s for s, _ in modes])
            tiles, counted = ceil_div_leaf(product(shape), block), product(ceil_div_steps(shape, block))
            if type(tiles) is not int or tiles != counted:
                raise Inadmissible(
                    f"tiles of {block} elements do not divide its mode {i}, of extent {s}, and rounding that up takes "
                    f"{text(counted)} tiles, but {text(tiles)} hold its elements: choose a tile that divides the mode, "
                    "or tile each mode by itself"
                )
            return [*modes[:i], (round_up(s, within), d), *modes[i + 1 :]]
    return modes


def zip_by(t: IntTuple, guide: Any) -> tuple[IntTuple, IntTuple]:
    """Gather the pairs at the leaves of `guide` in `t`: ((a0,a1,..),(b0,b1,..,rest..))."""
    if not isinstance(guide, tuple):
        if not isinstance(t, tuple) or len(t) != 2:
            raise CuteError(f"the tiler leaves the mode {text(t)} as it is, which is not a pair: give its whole extent")
        return t[0], t[1]
    pairs = [zip_by(x, g) for x, g in zip(t, guide)]
    return tuple(p[0] for p in pairs), (*(p[1] for p in pairs), *t[len(guide) :])


def zipped(layout: Layout, guide: Any) -> Layout:
    """Return the layout of `zip_by`."""
    (s0, s1), (d0, d1) = zip_by(layout.shape, guide), zip_by(layout.stride, guide)
    return Layout((s0, s1), (d0, d1))


@pure
def zipped_divide(target: Domain, tiler: Tiler) -> Any:
    """Divide the layout `target` by `tiler` as `logical_divide` does, into ((tiles), (rests)): the tile of every mode
    gathered in mode 0, what repeats it in mode 1.

    >>> cute.zipped_divide(cute.make_layout((4, 8), stride=(8, 1)), (2, 4))
    ((2,4),(2,2)):((8,1),(16,4))
    """
    if isinstance(target, ComposedLayout):
        return on_outer(target, zipped_divide(target.outer, tiler))
    return zipped(logical_divide(target, tiler), tiler)


@pure
def tiled_divide(target: Domain, tiler: Tiler) -> Any:
    """Divide `target` by `tiler` into ((tiles), rest, rest, ...): as `zipped_divide`, its mode 1 unpacked.

    >>> cute.tiled_divide(cute.make_layout((8, 8)), (4, 2))
    ((4,2),2,4):((1,8),4,16)
    """
    return unpacked(zipped_divide(target, tiler), False)


@pure
def flat_divide(target: Domain, tiler: Tiler) -> Any:
    """Divide `target` by `tiler` into (tile, tile, ..., rest, rest, ...): as `zipped_divide`, both modes unpacked.

    >>> cute.flat_divide(cute.make_layout((8, 8)), (4, 2))
    (4,2,2,4):(1,8,4,16)
    """
    return unpacked(zipped_divide(target, tiler), True)


def unpacked(layout: Domain, both: bool) -> Any:
    if isinstance(layout, ComposedLayout):
        return on_outer(layout, unpacked(layout.outer, both))

    def open_(t: IntTuple) -> IntTuple:
        return (*(wrap(t[0]) if both else (t[0],)), *wrap(t[1]))

    return Layout(open_(layout.shape), open_(layout.stride))


# ------------------------------------------------------------------ parts


@traced
def local_tile(layout: Domain, tiler: Tiler, coord: IntTuple, proj: IntTuple = None) -> tuple[Any, Any]:
    """Take one tile of a layout, and its offset: the tile modes, then those rest modes where `coord` is None.

    layout: what `tiler` divides. coord: a coordinate of the rests, or an integer. proj: the modes of `tiler` and
    `coord` to use, the others None; what `coord` has beyond them stays.
    """
    if proj is not None:
        tiler, coord = dice_modes(proj, tiler), projected(coord, proj)
    return inner_partition(layout, tiler, coord)


def projected(coord: IntTuple, proj: IntTuple) -> IntTuple:
    """Return the modes of `coord` that `proj` does not mark None, and those beyond it."""
    if not (isinstance(coord, tuple) and isinstance(proj, tuple) and len(coord) > len(proj)):
        return dice_modes(proj, coord)
    kept = dice_modes(proj, coord[: len(proj)])
    return (*(kept if isinstance(kept, tuple) else (kept,)), *coord[len(proj) :])


@traced
def inner_partition(layout: Domain, tiler: Tiler, coord: IntTuple) -> tuple[Any, Any]:
    """Take the tile at `coord` of the rests of `zipped_divide(layout, tiler)`, and its offset.

    >>> cute.inner_partition(cute.make_layout((8, 8)), (4, 4), (1, 0))
    ((4,4):(1,8), 4)
    """
    tiles = _open_tiles(layout, tiler)
    return slice_and_offset(((None,) * rank(tiles, 0), _padded(coord, rank(tiles, 1))), tiles)


@traced
def outer_partition(layout: Domain, tiler: Tiler, coord: IntTuple) -> tuple[Any, Any]:
    """Take the element at `coord` of each tile of `zipped_divide(layout, tiler)`, and its offset.

    >>> cute.outer_partition(cute.make_layout((8, 8)), (4, 4), (1, 0))
    ((2,2):(4,32), 1)
    """
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
def local_partition(layout: Domain, tiler: Layout, index: Any, proj: IntTuple = 1) -> tuple[Any, Any]:
    """Take the elements of thread `index` when the threads of layout `tiler` cover `layout` tile by tile, and their
    offset. proj: the modes of `tiler` to use, the others None; 1 for all."""
    numbers_threads(tiler)
    extents, coord = product_each(shape(tiler)), tiler.get_flat_coord(index)
    return outer_partition(layout, dice_modes(proj, extents), dice_modes(proj, coord))


@pure
def numbers_threads(threads: Layout) -> None:
    """Refuse a static layout of threads that does not number all its places, from 0 on: elements at the others would
    go to no thread."""
    modes = sorted([(d, s) for s, d in modes_of(outer_of(threads)) if not is_one(s)], key=lambda m: _known(m[0]))
    reached: Any = 1
    for d, s in modes:
        if is_static((d, s, reached)) and d != reached:
            raise CuteError(
                f"local_partition: the threads {threads} must be numbered from 0 to {text(size(threads) - 1)}, each at "
                "one place: choose compact strides"
            )
        reached = mul(s, d)


def _known(x: Any) -> int:
    return x if type(x) is int else 1 << 62
