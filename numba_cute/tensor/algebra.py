# SPDX-License-Identifier: Apache-2.0
"""The layout algebra over tensors: each function takes a layout (or a shape), or a tensor and then works on its
layout, keeping the iterator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .. import layout
from ..layout import ComposedLayout, IntTuple, Layout, size_in_bytes as bytes_of
from ..layout.divides import numbers_threads, projected
from ..seam import CuteError, Int, traced
from ..seam.guards.kinds import Domain, Tiler
from .offsets import check_coord, has_none
from .tensor import Tensor, slice_tensor

__all__ = [
    "append_ones", "coalesce", "composition", "cosize", "depth", "filter", "filter_zeros", "flat_divide", "flatten",
    "front", "group_modes", "is_static", "leading_dim", "local_partition", "local_tile", "logical_divide",
    "prepend_ones", "rank", "select", "shape", "size", "size_in_bytes", "slice_", "stride", "tiled_divide",
    "zipped_divide",
]  # fmt: skip

_PLAIN = (Layout, ComposedLayout, Tensor, tuple, int)
F = TypeVar("F", bound=Callable[..., Any])


def _unwrap(x: Any) -> Any:
    """The layout in a tensor; the shape of anything else that has one (a TiledMma has a thread layout)."""
    if isinstance(x, (Layout, ComposedLayout, tuple, int)):
        return x
    inner = getattr(x, "layout", None)
    return inner if isinstance(inner, (Layout, ComposedLayout)) else x


def _first(fn: Any) -> str:
    """The name of a function's first parameter."""
    return next(iter(inspect.signature(fn).parameters))


def _query(fn: F) -> F:
    """`fn` of a layout, for tensors too."""
    first = _first(fn)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args:
            return fn(_unwrap(args[0]), *args[1:], **kwargs)
        return fn(**{n: _unwrap(v) if n == first else v for n, v in kwargs.items()})

    return traced(call)  # type: ignore[return-value]


def _transform(fn: F) -> F:
    """`fn` from a layout to a layout, for tensors too."""

    first = _first(fn)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        a = args[0] if args else kwargs.get(first)
        if not isinstance(a, Tensor):
            return fn(*args, **kwargs)
        if args:
            return a._relaid(lambda lay: fn(lay, *args[1:], **kwargs))
        return a._relaid(lambda lay: fn(**{**kwargs, first: lay}))

    return traced(call)  # type: ignore[return-value]


rank = _query(layout.rank)
depth = _query(layout.depth)
cosize = _query(layout.cosize)
shape = _query(layout.shape)
stride = _query(layout.stride)
front = _query(layout.front)
is_static = _query(layout.is_static)
leading_dim = _query(layout.leading_dim)

append_ones = _transform(layout.append_ones)
prepend_ones = _transform(layout.prepend_ones)
flatten = _transform(layout.flatten)
coalesce = _transform(layout.coalesce)
group_modes = _transform(layout.group_modes)
select = _transform(layout.select)
filter = _transform(layout.filter)
filter_zeros = _transform(layout.filter_zeros)
composition = _transform(layout.composition)
logical_divide = _transform(layout.logical_divide)
zipped_divide = _transform(layout.zipped_divide)
tiled_divide = _transform(layout.tiled_divide)
flat_divide = _transform(layout.flat_divide)


@traced
def size(a: Domain, mode: IntTuple = ()) -> Any:
    """Count the elements of `a`, a shape, layout or tensor, or of its mode `mode` (a path); of a tiled copy or MMA the
    threads.

    >>> cute.size(cute.make_layout((4, 8))), cute.size((4, 8), mode=[1])
    (32, 8)
    """
    threads = None if isinstance(a, _PLAIN) else getattr(a, "thread_count", None)
    if threads is not None:
        return threads
    return layout.size(_unwrap(a), mode) if mode != () else layout.size(_unwrap(a))


@traced
def size_in_bytes(dtype: Any, layout: Domain) -> Any:
    """Count the bytes that `layout`, a layout or tensor, spans with `dtype` elements, up to its last one; 0 for
    None.

    >>> cute.size_in_bytes(cute.Float16, cute.make_layout((64, 8)))
    1024
    """
    return bytes_of(dtype, _unwrap(layout))


@traced
def slice_(src: Domain, coord: IntTuple) -> Any:
    """Keep the modes of `src` (a layout, tensor or tuple) that `coord` marks None.

    >>> cute.slice_(cute.make_layout((4, 8), stride=(8, 1)), (None, 3))
    (4):(8)
    """
    if isinstance(src, Tensor):
        return slice_tensor(src, check_coord(coord, src.layout))
    return layout.slice_(src, coord)


@traced
def local_tile(input: Domain, tiler: Tiler, coord: IntTuple, proj: Any = None) -> Any:
    """Take the tile of `input` (a tensor or layout) at `coord`: its modes are the tile's, then those marked None in
    `coord`.

    tiler: a tile for each mode. coord: which tile, mode by mode; None keeps the mode of tiles. proj: marks with 1 the
    modes of tiler and coord that apply to `input` and drops those marked None: (1, None, 1) takes A's (M, K) of MNK;
    what coord has beyond it, as of batches, stays.

    >>> cute.local_tile(cute.make_layout((8, 8)), (4, 2), (1, None))
    (4,2,4):(1,8,16)
    """
    if proj is not None:
        tiler, coord = layout.dice(tiler, proj), projected(coord, proj)
    tiled = _opened(zipped_divide(input, tiler))
    tile_modes = (None,) * layout.rank(shape(tiled)[0])
    rest = shape(tiled)[1]
    if isinstance(coord, tuple):
        if len(coord) > layout.rank(rest):
            raise CuteError(f"local_tile: coord {coord} has more modes than the {layout.rank(rest)} of tiles, {rest}")
        coord = coord + (None,) * (layout.rank(rest) - len(coord))
    return _index(tiled, (tile_modes, coord))


@traced
def local_partition(target: Domain, tiler: Tiler, index: Int, proj: Any = None) -> Any:
    """Take the elements of `target` (a tensor or layout) that belong to thread `index` of the threads laid out by
    `tiler`: one element of each tile of the shape of `tiler`. proj: as for `local_tile`, applied to `tiler`.

    >>> cute.local_partition(cute.make_identity_tensor((8, 4)), cute.make_layout((4, 2)), 5)
    Tensor((1, 1), (2,2):(4@0,2@1))
    """
    threads = tiler if isinstance(tiler, Layout) else layout.make_layout(tiler)
    numbers_threads(threads)
    if proj is not None:
        threads = layout.dice(threads, proj)
    tiled = _opened(zipped_divide(target, layout.product_each(threads.shape)))
    coord = threads.get_flat_coord(index)
    tile_rank = layout.rank(shape(tiled)[0])
    coord = coord if isinstance(coord, tuple) else (coord,)
    coord = coord + (None,) * (tile_rank - len(coord))
    return _index(tiled, (coord, (None,) * layout.rank(shape(tiled)[1])))


@_transform
def _opened(lay: Any) -> Any:
    """Both modes of a zipped divide as tuples, so that slices can open them."""
    if isinstance(lay, ComposedLayout):
        return layout.make_composed_layout(lay.inner, lay.offset, _opened(lay.outer))
    return Layout(tuple(map(layout.wrap, lay.shape)), tuple(map(layout.wrap, lay.stride)))


def _index(a: Any, coord: Any) -> Any:
    if isinstance(a, Tensor):
        return slice_tensor(a, coord) if has_none(coord) else a[coord]
    return layout.slice_(a, coord)
