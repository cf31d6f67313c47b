# SPDX-License-Identifier: Apache-2.0
"""Repeating layouts, and what is built from repetitions."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, is_static
from ..seam.guards.kinds import Domain, Tiler
from .algebra import Gaps, Inadmissible, as_tile, compose_modes, composition, tilewise
from .basis import checked
from .coalescing import coalesce, flat_layout, merged
from .divides import unpacked, zipped
from .int_tuple import IntTuple, ceil_div_leaf, mul, product_each, text, wrap
from .inverses import right_inverse
from .layout import ComposedLayout, Layout, concat, cosize, domain, make_layout, on_outer, outer_of, rank, size
from .modes import append_ones
from .ordered import make_ordered_layout
from .pure import pure

__all__ = [
    "blocked_product", "flat_product", "logical_product", "make_layout_tv", "raked_product", "tile_to_shape",
    "tiled_product", "zipped_product",
]  # fmt: skip


@pure
def logical_product(block: Domain, tiler: Tiler) -> Any:
    """Repeat `block` as `tiler` lays it out: (block, repetition), disjoint where the tiler's modes fit those that
    `block` leaves free.

    tiler: a layout; a tuple of tilers, mode by mode; an integer n for n:1; None for a mode as it is.

    >>> cute.logical_product(cute.make_layout(4), cute.make_layout(3))
    (4,3):(1,4)
    """
    if isinstance(block, ComposedLayout):
        return on_outer(block, logical_product(block.outer, tiler))
    block = outer_of(block)
    if tiler is None:
        return block
    if isinstance(tiler, tuple):
        return tilewise(logical_product, block, tiler, "logical_product")
    tile = as_tile(tiler)
    modes = Gaps(block).complement(mul(size(block), cosize(tile)), keep_last=True)
    free = flat_layout(modes)
    try:
        return concat((block, compose_modes(merged(modes, keep_last=True), tile, free)))
    except Inadmissible as e:
        raise CuteError(
            f"logical_product: {block} by {tile} is not a layout: of the composition with {free}, which the block "
            f"leaves free, {e}"
        ) from None


@pure
def zipped_product(block: Domain, tiler: Tiler) -> Any:
    """Repeat `block` over `tiler` as `logical_product` does, into ((blocks), (repetitions)): those of every mode
    gathered.

    >>> cute.zipped_product(cute.make_layout((2, 2)), cute.make_layout(3))
    ((2,2),3):((1,2),4)
    """
    if isinstance(block, ComposedLayout):
        return on_outer(block, zipped_product(block.outer, tiler))
    return zipped(logical_product(block, tiler), tiler)


@pure
def tiled_product(block: Domain, tiler: Tiler) -> Any:
    """Repeat `block` over `tiler` into ((blocks), repetition, repetition, ...): as `zipped_product`, its mode 1
    unpacked.

    >>> cute.tiled_product(cute.make_layout((2, 2)), cute.make_layout(3))
    ((2,2),3):((1,2),4)
    """
    return unpacked(zipped_product(block, tiler), False)


@pure
def flat_product(block: Domain, tiler: Tiler) -> Any:
    """Repeat `block` over `tiler` into (block, block, ..., repetition, ...): as `zipped_product`, both modes
    unpacked.

    >>> cute.flat_product(cute.make_layout((2, 2)), cute.make_layout(3))
    (2,2,3):(1,2,4)
    """
    return unpacked(zipped_product(block, tiler), True)


def _paired(block: Layout, tiler: Layout, block_first: bool) -> Layout:
    """The product of the two, padded to one rank, with mode i of both in mode i."""
    n = max(rank(block), rank(tiler))
    result = logical_product(_padded(block, n), _padded(tiler, n))

    def pair(t: IntTuple) -> IntTuple:
        return tuple(zip(*t)) if block_first else tuple(zip(t[1], t[0]))

    return Layout(pair(result.shape), pair(result.stride))


def _padded(layout: Layout, n: int) -> Layout:
    layout = Layout(wrap(layout.shape), wrap(layout.stride))
    return append_ones(layout, n)  # type: ignore[no-any-return]


@pure
def blocked_product(block: Domain, tiler: Layout) -> Any:
    """Repeat `block` over `tiler`, mode by mode: mode i is (block_i, tiler_i), whole blocks side by side.

    >>> cute.blocked_product(cute.make_layout((2, 2)), cute.make_layout((2, 3)))
    ((2,2),(2,3)):((1,4),(2,8))
    """
    if isinstance(block, ComposedLayout):
        return on_outer(block, blocked_product(block.outer, tiler))
    return _paired(outer_of(block), outer_of(tiler), True)


@pure
def raked_product(block: Domain, tiler: Layout) -> Any:
    """Spread `block` over `tiler`, mode by mode: mode i is (tiler_i, block_i), the blocks interleaved.

    >>> cute.raked_product(cute.make_layout((2, 2)), cute.make_layout((2, 3)))
    ((2,2),(3,2)):((4,1),(8,2))
    """
    if isinstance(block, ComposedLayout):
        return on_outer(block, raked_product(block.outer, tiler))
    result = _paired(outer_of(block), outer_of(tiler), False)
    return coalesce(result, target_profile=(1,) * rank(result))


@pure
def tile_to_shape(atom: Any, trg_shape: IntTuple, order: IntTuple) -> Any:
    """Repeat the layout `atom` until it covers `trg_shape`, in the given order of modes; rounds up to whole atoms.

    order: as in `make_ordered_layout`: the mode with the least is repeated first. Raises CuteError for a swizzled atom,
    of which a static tile of shared memory is made, where whole ones do not make `trg_shape`.

    >>> cute.tile_to_shape(cute.make_layout((4, 2)), (8, 8), (0, 1))
    ((4,2),(2,4)):((1,8),(4,16))
    """
    if isinstance(atom, ComposedLayout):
        made = tile_to_shape(atom.outer, trg_shape, order)
        asked, got = product_each(wrap(checked(trg_shape, "trg_shape"))), product_each(made.shape)
        if is_static((asked, got)) and asked != got:
            raise CuteError(
                f"tile_to_shape: trg_shape={text(trg_shape)} is not made of whole atoms of shape "
                f"{text(product_each(atom.outer.shape))}: give multiples of it, or a smaller atom"
            )
        return on_outer(atom, made)
    atom, trg_shape = outer_of(atom), wrap(checked(trg_shape, "trg_shape"))
    if rank(atom) > len(trg_shape):
        raise CuteError(f"tile_to_shape: the atom {atom} has more modes than trg_shape={text(trg_shape)}")
    atom = _padded(atom, len(trg_shape))
    counts = tuple(map(ceil_div_leaf, product_each(trg_shape), product_each(atom.shape)))
    return blocked_product(atom, make_ordered_layout(counts, order))


@pure
def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[IntTuple, Layout]:
    """Lay threads and their values over a tile: (tiler_mn, layout_tv), the tile that the threads of `thr_layout`, each
    with the values of `val_layout`, cover, and the layout from (thread, value) to the tile's coordinates.

    Both must be compact: n threads are 0 to n - 1.

    >>> cute.make_layout_tv(cute.make_layout((4, 2)), cute.make_layout((2, 2)))
    ((8, 4), ((4,2),(2,2)):((2,16),(1,8)))
    """
    check_not_empty("make_layout_tv", "thr_layout", thr_layout)
    check_not_empty("make_layout_tv", "val_layout", val_layout)
    covered = raked_product(thr_layout, val_layout)
    inverse = right_inverse(covered)
    if is_static(covered) and size(inverse) != size(covered):
        raise CuteError(
            f"make_layout_tv: thr_layout {thr_layout} and val_layout {val_layout} must be compact: each number below "
            "the size must be one thread, or one value"
        )
    by_thread = make_layout((size(thr_layout), size(val_layout)))
    return product_each(domain(covered)), composition(inverse, by_thread)


def check_not_empty(what: str, name: str, given: Any) -> None:
    """Refuse a layout, or a tuple of layouts, that has an extent of 0: no thread, or nothing for it, would be left."""
    sizes = tuple(map(size, given)) if isinstance(given, tuple) else (size(given),)
    if any(is_static(n) and n < 1 for n in sizes):
        raise CuteError(f"{what}: {name} {given} is empty: give extents of at least 1")
