# SPDX-License-Identifier: Apache-2.0
"""Inverses, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..seam import CuteError, Signal, divisor, settled
from ..seam.guards.kinds import Domain
from ..seam.marks.decorators import HOW_STATIC
from .algebra import composition
from .basis import ScaledBasis, basis_value, coord_zero
from .coalescing import Mode, coalesce, column_major, flat_layout, merged, modes_of
from .commuting import commuted
from .int_tuple import IntTuple, add, flatten_to_tuple, is_zero, mul, round_up, same, text
from .layout import ComposedLayout, Layout, concat, cosize, outer_of, size
from .modes import ONE
from .pure import pure
from .swizzle import Swizzle

__all__ = ["left_inverse", "max_common_layout", "max_common_vector", "nullspace", "right_inverse"]


@pure
def right_inverse(input: Domain) -> Any:
    """Find the longest layout R with input(R(i)) == i, following the static strides of `input`; 1:0 where none is 1.

    With basis strides, a mode for each mode of the coordinate. A negative stride is followed by its magnitude, and
    gives a negative one; strides of the other sign end what is followed.

    >>> cute.right_inverse(cute.make_layout((4, 8), stride=(8, 1)))
    (8,4):(4,1)
    """
    if input is None or isinstance(input, Swizzle):
        return input
    if isinstance(input, ComposedLayout):
        return _right_inverse_of_swizzled(input)
    layout = outer_of(input)
    if layout.maps_to_coordinates:
        return _basis_right_inverse(layout)
    return _follow(merged(modes_of(layout)))


def _follow(modes: Sequence[Mode]) -> Layout:
    """The modes in the order in which each continues the one before, from stride 1 on, and where they lie."""
    where = column_major(tuple(s for s, _ in modes), 1)
    out: list[Mode] = []
    reached: Any = 1
    sign = 0  # of the first stride: offsets of both signs would borrow from one another
    while True:
        found = [i for i, (_, d) in enumerate(modes) if type(d) is int and abs(d) == reached and d * sign >= 0]
        if not found:
            return flat_layout(merged(out))
        s, d = modes[found[0]]
        sign = d
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
        if not mine or same(found, ONE):
            return ONE
        return composition(flat_layout([(s, w) for s, _, w in mine]), found)  # type: ignore[no-any-return]

    return along(coord_zero(layout.stride), ())


@pure
def left_inverse(input: Domain) -> Any:
    """Find the layout L with L(input(i)) == i, for a layout `input` that reaches no offset twice.

    >>> cute.left_inverse(cute.make_layout((4, 8), stride=(8, 1)))
    (8,4):(4,1)
    """
    if input is None or isinstance(input, Swizzle):
        return input
    if isinstance(input, ComposedLayout):
        return _left_inverse_of_swizzled(input)
    return _invert_left(outer_of(input))


def _invert_left(layout: Layout) -> Layout:
    """Undo the strides in their order: between one stride and the next, offsets count one mode's coordinate."""
    modes = merged(modes_of(layout))
    where = [d for _, d in column_major(tuple(s for s, _ in modes), 1)]
    moving = [(d, s, w) for (s, d), w in zip(modes, where) if not is_zero(d)]
    if not all(type(d) is int for d, _, _ in moving):
        raise CuteError(f"left_inverse: a stride of {layout} is known only at run time: {HOW_STATIC}")
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


# ------------------------------------------------------------------ of swizzled layouts


def _right_inverse_of_swizzled(layout: ComposedLayout) -> Any:
    """i -> R(S(i)), with R of the outer layout, for as many i as S keeps among the elements of R."""
    swizzle = _swizzle_of(layout)
    if not is_zero(layout.offset):
        raise CuteError(
            f"right_inverse: {layout} has none: no element is known to lie at 0, for its offset, "
            f"{text(layout.offset)}, is not 0"
        )
    outer = right_inverse(layout.outer)
    n = _kept(swizzle, size(outer))
    moved = commuted(outer, swizzle) if isinstance(outer, Layout) and n is not None and same(n, size(outer)) else None
    return moved or (ONE if n is None else ComposedLayout(outer, 0, ComposedLayout(swizzle, 0, Layout(n, 1))))


def _left_inverse_of_swizzled(layout: ComposedLayout) -> Any:
    """x -> L(S(x) - offset), with L of the outer layout."""
    swizzle = _swizzle_of(layout)
    outer = left_inverse(layout.outer)
    moved = commuted(outer, swizzle) if isinstance(outer, Layout) and is_zero(layout.offset) else None
    reached = round_up(add(layout.offset, cosize(layout.outer)), _block(swizzle))
    back = ComposedLayout(swizzle, 0, Layout(reached, 1))
    return moved or ComposedLayout(outer, mul(layout.offset, -1), back)


def _swizzle_of(layout: ComposedLayout) -> Swizzle:
    if not isinstance(layout.inner, Swizzle):
        raise CuteError(f"{layout} has no inverse here: its inner function {layout.inner} is not a swizzle")
    return layout.inner


def _block(swizzle: Swizzle) -> int:
    """The size of the aligned blocks of offsets, each of which the swizzle permutes in itself."""
    return 1 << swizzle.z_mask.bit_length()


def _kept(swizzle: Swizzle, n: Any) -> Any:
    """Return the number of offsets from 0 on that the swizzle is known to keep below `n`: all, whole blocks, or those
    that it does not move. None if nothing is known of a run-time `n`."""
    block, still = _block(swizzle), swizzle.y_mask & -swizzle.y_mask
    if divisor(n) % block == 0 or swizzle.bits == 0:
        return n
    return max(n - n % block, min(n, still)) if type(n) is int else None


# ------------------------------------------------------------------ what two layouts share


@pure
def max_common_layout(a: Domain, b: Domain) -> Layout:
    """Find the longest layout R with a(R(i)) == i == b(R(i)): elements that lie together, and alike, in `a` and in `b`.

    A swizzle keeps together what lies within its lowest bits, wherever these are aligned; there the two are equal but
    for where they start.

    >>> cute.max_common_layout(cute.make_layout((4, 8)), cute.make_layout((4, 8), stride=(1, 16)))
    4:1
    """
    together = 0
    for x in (a, b):
        if isinstance(x, ComposedLayout):
            if not isinstance(x.inner, Swizzle):
                return ONE
            if x.inner.bits:
                together = math.gcd(together, 1 << x.inner.base, divisor(x.offset))
    common = merged(_identity_part(outer_of(a), right_inverse(outer_of(b))))
    return flat_layout(_first(common, together) if together else common)


def _first(modes: Sequence[Mode], n: int) -> list[Mode]:
    """The first modes, the last of them in part: as many elements as there are below `n`, and divide it."""
    out: list[Mode] = []
    for s, d in modes:
        here = math.gcd(s, n)
        if here > 1:
            out.append((here, d))
        if here < s:
            break
        n //= here
    return out


def _identity_part(a: Layout, inverse: Layout) -> list[Mode]:
    """The first modes of `inverse`, the last of them in part, that `a` maps to consecutive offsets."""
    out: list[Mode] = []
    reached = 1
    for s, d in modes_of(inverse):
        most = s if type(s) is int else math.gcd(divisor(s), _MOST_PROMISED)
        for n in _divisors(most):
            try:
                part = coalesce(composition(a, Layout(n, d)))
            except (CuteError, Signal) as e:
                settled(e)
                continue
            if same(part, Layout(n, reached)):
                out.append((n, d))
                reached *= n
                break
        else:
            return out
        if type(s) is not int or n < s:
            return out
    return out


def _divisors(n: int) -> list[int]:
    """All that divide `n` but 1, the largest first."""
    found, prime = [1], 2
    while n > 1:
        if prime * prime > n:
            prime = n
        powers = 1
        while n % prime == 0:
            n //= prime
            powers += 1
        found = [d * prime**k for d in found for k in range(powers)]
        prime += 1
    return sorted(found, reverse=True)[:-1]


_MOST_PROMISED = 128
"""The most that is used of the known divisor of a run-time extent: 16 bytes of the narrowest type."""


@pure
def max_common_vector(a: Domain, b: Domain) -> int:
    """Count the elements that lie together, and alike, in the layouts `a` and `b`: the size of `max_common_layout(a,
    b)`.

    >>> cute.max_common_vector(cute.make_layout((4, 8)), cute.make_layout((4, 8), stride=(1, 16)))
    4
    """
    return size(max_common_layout(a, b))  # type: ignore[no-any-return]


@pure
def nullspace(layout: Domain) -> Layout:
    """Return the layout of the coordinates of `layout` that map to where 0 does because their stride is 0.

    >>> cute.nullspace(cute.make_layout((4, 8), stride=(1, 0)))
    8:4
    """
    layout = outer_of(layout)
    shape, stride = flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)
    zero = [m for m, d in zip(column_major(shape, 1), stride) if is_zero(d)]
    return flat_layout(zero)
