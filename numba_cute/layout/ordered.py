# SPDX-License-Identifier: Apache-2.0
"""Compact layouts in a given order of their modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..seam import CuteError
from ..seam.guards.kinds import Domain
from .basis import checked
from .int_tuple import IntTuple, flatten_to_tuple, is_zero, product, static_int, text
from .layout import Layout, compact, outer_of
from .pure import pure

__all__ = ["make_layout_like", "make_ordered_layout"]


@pure
def make_ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    """Make the compact layout of `shape` in which the mode with the least `order` is contiguous, the next follows, ...

    order: static integers, weakly congruent to `shape`; a mode of several extents is column-major in itself.

    >>> cute.make_ordered_layout((4, 8, 2), (2, 1, 0))
    (4,8,2):(16,2,1)
    """
    shape, order = checked(shape, "shape"), checked(order, "order")
    flat = list(_leaves_with_order(shape, order, shape, order))
    return Layout(shape, _ordered_strides(shape, order, flat))


def _leaves_with_order(s: IntTuple, o: IntTuple, shape: IntTuple, order: IntTuple) -> Any:
    if not isinstance(o, tuple):
        yield product(s), static_int(o, "order")
    elif not isinstance(s, tuple) or len(s) != len(o):
        raise CuteError(f"order={text(order)} does not match shape={text(shape)}: give one rank of order for each mode")
    else:
        for x, y in zip(s, o):
            yield from _leaves_with_order(x, y, shape, order)


def _ordered_strides(s: IntTuple, o: IntTuple, flat: Sequence[tuple[Any, int]]) -> IntTuple:
    if isinstance(o, tuple):
        return tuple(_ordered_strides(x, y, flat) for x, y in zip(s, o))
    return compact(s, product(tuple(n for n, rank_of in flat if rank_of < o)))


@pure
def make_layout_like(input: Domain) -> Layout:
    """Make a compact layout of the shape of the layout `input`, its modes in the order of the strides there; stride 0
    stays 0.

    Strides known only at run time count as larger than the static ones.

    >>> cute.make_layout_like(cute.make_layout((4, 8), stride=(16, 2)))
    (4,8):(8,1)
    """
    layout = outer_of(input)
    strides, shapes = flatten_to_tuple(layout.stride), flatten_to_tuple(layout.shape)
    known = sorted({abs(d) for d in strides if type(d) is int})
    order = [known.index(abs(d)) if type(d) is int else len(known) + i for i, d in enumerate(strides)]
    taking = [1 if is_zero(d) else s for s, d in zip(shapes, strides)]
    flat = list(zip(taking, order))
    new = iter([_ordered_strides(s, o, flat) for s, o in flat])
    return Layout(layout.shape, _refill(layout.shape, new))


def _refill(profile: IntTuple, leaves: Any) -> IntTuple:
    return tuple(_refill(p, leaves) for p in profile) if isinstance(profile, tuple) else next(leaves)


@pure
def each_held_once(lay: Layout) -> Layout:
    """Make the layout of registers for what the layout `lay` holds once: its shape, column-major, with stride 0 where
    it has it."""
    held = 1

    def stride(shape: Any, given: Any) -> Any:
        nonlocal held
        if isinstance(shape, tuple):
            return tuple(stride(s, d) for s, d in zip(shape, given))
        if type(given) is int and given == 0:
            return 0
        at, held = held, held * shape
        return at

    return Layout(lay.shape, stride(lay.shape, lay.stride))
