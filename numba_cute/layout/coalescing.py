# SPDX-License-Identifier: Apache-2.0
"""Coalescing: a layout as a list of modes, and the fewest that make the same function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..seam import CuteError
from ..seam.guards.kinds import Domain
from .int_tuple import IntTuple, flatten_to_tuple, is_one, is_zero, mul, same, text, wrap
from .layout import ComposedLayout, Layout, concat, get, on_outer, outer_of, rank
from .modes import ONE
from .pure import pure

Mode = tuple[Any, Any]
"""An extent and its stride."""


@pure
def coalesce(input: Domain, *, target_profile: IntTuple = None) -> Any:
    """Simplify `input`, a layout, to as few modes as possible: the same function of integers.

    Modes whose extent or stride is known only at run time are merged where they provably continue each other.
    target_profile: a tuple, to coalesce mode by mode under it, so that the result keeps that many modes.

    >>> cute.coalesce(cute.make_layout((2, (4, 8))))
    64:1
    """
    if isinstance(input, ComposedLayout):
        return on_outer(input, coalesce(input.outer, target_profile=target_profile))
    layout = outer_of(input)
    if isinstance(target_profile, tuple):
        return _by_profile(coalesce, layout, target_profile)
    return flat_layout(merged(modes_of(layout)))


def _by_profile(f: Any, layout: Layout, profile: tuple[Any, ...]) -> Layout:
    n = rank(layout)
    if len(profile) > n:
        raise CuteError(f"target_profile={text(profile)} has more modes than the layout {layout}")
    parts = [f(get(layout, (i,)), target_profile=p) for i, p in enumerate(profile)]
    return concat(parts + [get(layout, (i,)) for i in range(len(profile), n)])


def modes_of(layout: Layout) -> list[Mode]:
    return list(zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)))


def merged(modes: Sequence[Mode], keep_last: bool = False, keep_static: bool = False) -> list[Mode]:
    """Merge adjacent modes that continue each other, and drop extents of 1.

    keep_last: keep the last mode's stride even at extent 1, for a function that is called beyond its domain.
    keep_static: keep a static extent apart from one known only at run time, so that it stays static.
    """
    out: list[Mode] = []
    for i, (s, d) in enumerate(modes):
        if is_one(s) and not (keep_last and i == len(modes) - 1):
            continue
        apart = out and keep_static and type(s) is not type(out[-1][0])
        if out and not apart and same(mul(out[-1][0], out[-1][1]), d):
            out[-1] = (mul(out[-1][0], s), out[-1][1])
        else:
            out.append((s, d))
    return out


def flat_layout(modes: Sequence[Mode]) -> Layout:
    """Make the flat layout of these modes: of rank 0 in shape for one, 1:0 for none."""
    if not modes:
        return ONE
    if len(modes) == 1:
        return Layout(*modes[0])
    shape, stride = zip(*modes)
    return Layout(shape, stride)


def column_major(shape: tuple[Any, ...], start: Any) -> list[Mode]:
    """Return the compact modes of these extents, the first of stride `start`."""
    out = []
    for s in shape:
        out.append((s, start))
        start = mul(start, s)
    return out


@pure
def filter_zeros(input: Domain, *, target_profile: IntTuple = None) -> Any:
    """Set the extent to 1 wherever a stride of the layout `input` is 0. target_profile: a tuple, to do so mode by mode
    under it.

    >>> cute.filter_zeros(cute.make_layout((4, 8), stride=(1, 0)))
    (4,1):(1,0)
    """
    if isinstance(input, ComposedLayout):
        return on_outer(input, filter_zeros(input.outer, target_profile=target_profile))
    layout = outer_of(input)
    zeros = layout.stride if target_profile is None else target_profile
    return Layout(_ones_at_zeros(layout.shape, zeros), layout.stride)


def _ones_at_zeros(shape: IntTuple, stride: IntTuple) -> IntTuple:
    if isinstance(stride, tuple):
        if rank(shape) != len(stride):
            raise CuteError(
                f"filter_zeros: {text(stride)} has {len(stride)} modes, and the shape {text(shape)} has not"
            )
        return tuple(map(_ones_at_zeros, wrap(shape), stride))
    return _ones_like(shape) if is_zero(stride) else shape


def _ones_like(shape: IntTuple) -> IntTuple:
    return tuple(map(_ones_like, shape)) if isinstance(shape, tuple) else 1


@pure
def filter(input: Domain, *, target_profile: IntTuple = None) -> Any:
    """Remove the modes of stride 0 and of extent 1 from the layout `input`, and coalesce it. target_profile: a tuple,
    to do so mode by mode under it.

    >>> cute.filter(cute.make_layout((4, 1, 8), stride=(1, 5, 0)))
    4:1
    """
    if isinstance(input, ComposedLayout):
        return on_outer(input, filter(input.outer, target_profile=target_profile))
    if isinstance(target_profile, tuple):
        return _by_profile(filter, outer_of(input), target_profile)
    return coalesce(filter_zeros(input))
