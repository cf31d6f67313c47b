# SPDX-License-Identifier: Apache-2.0
"""Inverses, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..seam import CuteError, divisor
from .algebra import Mode, coalesce, column_major, commuted, composition, flat_layout, merged, modes_of
from .basis import ScaledBasis, basis_value, coord_zero
from .int_tuple import IntTuple, flatten_to_tuple, is_zero, mul, text
from .layout import ComposedLayout, Layout, concat, outer_of, size
from .modes import ONE
from .pure import pure
from .swizzle import Swizzle


@pure
def right_inverse(input: Any) -> Any:
    """The longest layout R found with input(R(i)) == i. Follows the static strides; 1:0 where none is 1.

    With basis strides, a mode for each mode of the coordinate. A negative stride is followed by its magnitude, and
    gives a negative one: right where no other mode is beside it.
    """
    if input is None or isinstance(input, Swizzle):
        return input
    if isinstance(input, ComposedLayout):
        return _invert_composed(input, right_inverse)
    if input.maps_to_coordinates:
        return _basis_right_inverse(input)
    return _follow(merged(modes_of(input)))


def _follow(modes: Sequence[Mode]) -> Layout:
    """The modes in the order in which each continues the one before, from stride 1 on, and where they lie."""
    where = column_major(tuple(s for s, _ in modes), 1)
    out: list[Mode] = []
    reached: Any = 1
    while True:
        found = [i for i, (_, d) in enumerate(modes) if type(d) is int and abs(d) == reached]
        if not found:
            return flat_layout(merged(out))
        s, d = modes[found[0]]
        out.append((s, mul(where[found[0]][1], -1 if d < 0 else 1)))
        if type(s) is not int or s == 1 or reached == s * abs(d):
            return flat_layout(merged(out))
        reached = s * abs(d)


def _basis_right_inverse(layout: Layout) -> Layout:
    modes = merged(modes_of(layout))
    where = column_major(tuple(s for s, _ in modes), 1)

    def along(zero: IntTuple, path: tuple[int, ...]) -> Layout:
        if isinstance(zero, tuple):
            return concat([along(z, (*path, i)) for i, z in enumerate(zero)])
        mine = [
            (s, basis_value(d), w)
            for (s, d), (_, w) in zip(modes, where)
            if isinstance(d, ScaledBasis) and d.mode == path
        ]
        found = _follow([(s, d) for s, d, _ in mine])
        # `found` speaks of the modes of this path alone; in the whole layout they lie at `where`.
        if not mine or found == ONE:
            return ONE
        return composition(flat_layout([(s, w) for s, _, w in mine]), found)  # type: ignore[no-any-return]

    return along(coord_zero(layout.stride), ())


@pure
def left_inverse(input: Any) -> Any:
    """The layout L with L(input(i)) == i, for a layout that reaches no offset twice."""
    if input is None or isinstance(input, Swizzle):
        return input
    if isinstance(input, ComposedLayout):
        return _invert_composed(input, left_inverse)
    return _invert_left(outer_of(input))


def _invert_left(layout: Layout) -> Layout:
    """Undo the strides in their order: between one stride and the next, offsets count one mode's coordinate."""
    modes = merged(modes_of(layout))
    where = [d for _, d in column_major(tuple(s for s, _ in modes), 1)]
    moving = [(d, s, w) for (s, d), w in zip(modes, where) if not is_zero(d)]
    if not all(type(d) is int for d, _, _ in moving):
        raise CuteError(f"left_inverse: a stride of {layout} is known only at run time: static strides are needed")
    out: list[Mode] = []
    before, position, reached, extent = 1, 0, 1, 1
    for d, s, w in sorted(moving, key=lambda m: m[0]):
        if d < 0 or d % before or type(reached) is int and d < reached:
            raise CuteError(
                f"left_inverse: {layout} has none that is a layout: its stride {d} must be a multiple of the stride "
                f"{before} below it, and beyond what that one reaches ({text(reached)})"
            )
        out.append((d // before, position))
        before, position, reached, extent = d, w, mul(d, s), s
    return flat_layout(merged([*out, (extent, position)]))


def _invert_composed(layout: ComposedLayout, inverse: Any) -> Any:
    if not isinstance(layout.inner, Swizzle):
        raise CuteError(f"{layout} has no inverse here: its inner function {layout.inner} is no swizzle")
    outer = inverse(layout.outer)
    moved = commuted(outer, layout.inner) if is_zero(layout.offset) else None
    unswizzled = ComposedLayout(layout.inner, 0, Layout(layout.inner.period, 1))
    return moved or ComposedLayout(outer, mul(layout.offset, -1), unswizzled)


# ------------------------------------------------------------------ what two layouts share


@pure
def max_common_layout(a: Any, b: Any) -> Layout:
    """The longest layout R found with a(R(i)) == i == b(R(i)): elements that lie together, and alike, in both.

    A swizzle keeps together what lies within its lowest bits, wherever these are aligned.
    """
    together = 0
    for x in (a, b):
        if isinstance(x, ComposedLayout):
            if not isinstance(x.inner, Swizzle):
                return ONE
            together = math.gcd(together, 1 << x.inner.base) if x.inner.bits else together
    common = flat_layout(merged(_identity_part(outer_of(a), right_inverse(outer_of(b)))))
    if together == 0 or together >= size(common):
        return common
    return composition(common, math.gcd(size(common), together))  # type: ignore[no-any-return]


def _identity_part(a: Layout, inverse: Layout) -> list[Mode]:
    """The first modes of `inverse`, the last of them in part, that `a` maps to consecutive offsets."""
    out: list[Mode] = []
    reached = 1
    for s, d in modes_of(inverse):
        most = s if type(s) is int else math.gcd(divisor(s), _MOST_PROMISED)
        for n in (n for n in range(most, 1, -1) if most % n == 0):
            try:
                part = coalesce(composition(a, Layout(n, d)))
            except CuteError:
                continue
            if part == Layout(n, reached):
                out.append((n, d))
                reached *= n
                break
        else:
            return out
        if type(s) is not int or n < s:
            return out
    return out


_MOST_PROMISED = 128
"""Of an extent known only at run time this much at most is used of what divides it: 16 bytes of the narrowest type."""


@pure
def max_common_vector(a: Any, b: Any) -> int:
    """How many elements lie together, and alike, in both layouts: the size of `max_common_layout`."""
    return size(max_common_layout(a, b))  # type: ignore[no-any-return]


@pure
def nullspace(input: Any) -> Layout:
    """The layout of the coordinates that map to 0 because their stride is 0: one for each element of a class."""
    layout = outer_of(input)
    shape, stride = flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)
    zero = [m for m, d in zip(column_major(shape, 1), stride) if is_zero(d)]
    return flat_layout(zero)
