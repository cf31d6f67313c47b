# SPDX-License-Identifier: Apache-2.0
"""Coalescing, composition and complement."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..seam import CuteError, Leaf, divisor
from .basis import ScaledBasis, checked
from .int_tuple import (
    IntTuple,
    ceil_div_leaf,
    ceil_div_steps,
    div,
    flatten_to_tuple,
    is_one,
    is_zero,
    mul,
    product,
    same,
    static_int,
    text,
    wrap,
)
from .layout import LAYOUTS, ComposedLayout, Layout, concat, cosize, get, on_outer, outer_of, rank, size
from .modes import ONE
from .pure import is_static, pure
from .swizzle import Swizzle, swizzle_of_masks

Mode = tuple[Any, Any]
"""An extent and its stride."""


# ------------------------------------------------------------------ coalescing


@pure
def coalesce(input: Any, *, target_profile: IntTuple = None) -> Any:
    """The same function on the integers with as few modes as possible; with a profile, mode by mode under it.

    Modes whose extent or stride is known only at run time are merged where they provably continue each other.
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
    """Adjacent modes that continue each other as one, extents of 1 dropped.

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
    """The flat layout of these modes: of rank 0 in shape for one, 1:0 for none."""
    if not modes:
        return ONE
    if len(modes) == 1:
        return Layout(*modes[0])
    shape, stride = zip(*modes)
    return Layout(shape, stride)


@pure
def filter_zeros(input: Any, *, target_profile: IntTuple = None) -> Any:
    """The layout with extent 1 wherever a stride is 0."""
    if isinstance(input, ComposedLayout):
        return on_outer(input, filter_zeros(input.outer, target_profile=target_profile))
    layout = outer_of(input)
    zeros = layout.stride if target_profile is None else target_profile
    return Layout(_ones_at_zeros(layout.shape, zeros), layout.stride)


def _ones_at_zeros(shape: IntTuple, stride: IntTuple) -> IntTuple:
    if isinstance(stride, tuple):
        return tuple(map(_ones_at_zeros, shape, stride))
    return _ones_like(shape) if is_zero(stride) else shape


def _ones_like(shape: IntTuple) -> IntTuple:
    return tuple(map(_ones_like, shape)) if isinstance(shape, tuple) else 1


@pure
def filter(input: Any, *, target_profile: IntTuple = None) -> Any:
    """The layout without its modes of stride 0 and extent 1, coalesced; with a profile, mode by mode under it."""
    if isinstance(input, ComposedLayout):
        return on_outer(input, filter(input.outer, target_profile=target_profile))
    if isinstance(target_profile, tuple):
        return _by_profile(filter, outer_of(input), target_profile)
    return coalesce(filter_zeros(input))


# ------------------------------------------------------------------ composition


@pure
def composition(lhs: Any, rhs: Any) -> Any:
    """The layout c -> lhs(rhs(c)), of rhs's shape or finer.

    rhs: a layout; or a tiler, applied mode by mode: a tuple of tilers, an integer n for n:1, None for the mode as it
    is. An error where a mode of `rhs` crosses modes of `lhs` in steps that do not divide, or known only at run time.
    """
    if isinstance(rhs, ComposedLayout):
        return _compose_with_composed(lhs, rhs)
    if isinstance(lhs, Swizzle):
        return ComposedLayout(lhs, 0, outer_of(rhs))
    if isinstance(lhs, ComposedLayout):
        if isinstance(rhs, Swizzle):
            raise CuteError(f"composition: {lhs} o {rhs}: the left side must be a plain layout")
        return on_outer(lhs, composition(lhs.outer, rhs))
    lhs = outer_of(lhs)
    if rhs is None:
        return lhs
    if isinstance(rhs, Swizzle):
        return _compose_with_swizzle(lhs, rhs)
    if isinstance(rhs, tuple):
        return tilewise(composition, lhs, rhs, "composition", drop=True)
    return compose(lhs, as_tile(rhs))


def as_tile(tiler: Any) -> Layout:
    """The layout that a tiler stands for: n:1 for an integer n."""
    if isinstance(tiler, Layout):
        return tiler
    n = tiler if isinstance(tiler, Leaf) else static_int(tiler, "tiler")
    return Layout(n, 0 if is_one(n) else 1)


def compose(lhs: Layout, rhs: Layout, rounding: bool = False, carrying: bool = False) -> Layout:
    """lhs o rhs, with what divisions and products of layouts allow beyond a composition.

    rounding: where the steps do not divide a mode that they cross, round up and stay in that mode: the last tile of a
    ragged mode reaches beyond it. carrying: the modes of `rhs` need not stay within the modes of `lhs` together.
    """
    try:
        return _compose(lhs, rhs.shape, rhs.stride, _Crossing(rounding, carrying, {}), ())
    except _Inadmissible as e:
        raise CuteError(f"composition: {lhs} o {rhs} is no layout: {e}") from None


def tilewise(f: Any, layout: Layout, tiler: tuple[Any, ...], name: str, drop: bool = False) -> Layout:
    """`f` of each mode of the layout with the tiler's; what the tiler does not reach stays (or is dropped)."""
    n = rank(layout)
    if len(tiler) > n:
        raise CuteError(f"{name}: the tiler {text(tiler)} has {len(tiler)} modes, the layout {layout} only {n}")
    parts = [f(get(layout, (i,)), t) for i, t in enumerate(tiler)]
    if not drop:
        parts += [get(layout, (i,)) for i in range(len(tiler), n)]
    return concat(parts)


class _Inadmissible(Exception):
    """Why two layouts do not compose."""


@dataclasses.dataclass
class _Crossing:
    """What a composition may do, and how far the modes of its right side reach together in each mode of the left."""

    rounding: bool
    carrying: bool
    reached: dict[Any, int]
    signs: set[bool] = dataclasses.field(default_factory=set)

    def go(self, step: Any) -> None:
        if type(step) is int:
            self.signs.add(step < 0)
        if len(self.signs) > 1 and not self.carrying:
            raise _Inadmissible("the right side steps both ways through its modes: choose strides of one sign")

    def reach(self, path: tuple[int, ...], mode: int, by: int, bound: int) -> None:
        total = self.reached[path, mode] = self.reached.get((path, mode), 0) + by
        if total >= bound and not self.carrying:
            raise _Inadmissible(
                f"the modes of the right side together reach {total} in its mode {mode}, of extent {bound}: choose "
                "modes that do not carry into the next one"
            )


def _compose(lhs: Layout, shape: IntTuple, stride: IntTuple, crossing: _Crossing, path: Any) -> Layout:
    if isinstance(shape, tuple):
        parts = [_compose(lhs, s, d, crossing, path) for s, d in zip(shape, stride)]
        return Layout(tuple(p.shape for p in parts), tuple(p.stride for p in parts))
    if isinstance(stride, ScaledBasis):
        return _compose(get(lhs, stride.mode), shape, stride.value, crossing, stride.mode)
    if is_zero(stride):
        return Layout(shape, 0)
    modes = merged(modes_of(lhs), keep_last=True) or [(1, 0)]
    if len(modes) == 1:
        return Layout(shape, mul(stride, modes[0][1]))
    if is_one(shape):
        return Layout(1, _stride_of_one(modes, stride))
    crossing.go(stride)
    return flat_layout(_compose_mode(modes, shape, stride, crossing, path))


def _stride_of_one(modes: Sequence[Mode], step: Any) -> Any:
    """The stride for an extent of 1, which no coordinate uses: as if the steps went on beyond all modes."""
    if not is_static((step, tuple(s for s, _ in modes))):
        return 0
    for s, _ in modes[:-1]:
        step = ceil_div_leaf(abs(step), s) * (1 if step > 0 else -1)
    return mul(step, modes[-1][1])


def _compose_mode(modes: Sequence[Mode], extent: Any, step: Any, crossing: _Crossing, path: Any) -> list[Mode]:
    """The modes that `extent` steps of `step` make in a coalesced layout, whose last mode is not bounded."""
    sign = -1 if type(step) is int and step < 0 else 1
    step = mul(step, sign)
    out: list[Mode] = []
    for i, (s, d) in enumerate(modes[:-1]):
        if type(s) is int and divisor(step) % s == 0:
            step = div(step, s)
            continue
        _must_be_static(i, s, d, "the step", step)
        least = divisor(s)  # of an extent known only at run time, unless there are no elements at all
        if type(extent) is int and (extent - 1) * step < least:
            crossing.reach(path, i, (extent - 1) * step, least)
            return [*out, (extent, mul(mul(step, sign), d))]
        _must_be_static(i, s, d, "its extent", s)
        here = ceil_div_leaf(s, step)
        if divisor(extent) % here:
            _must_be_static(i, s, d, f"whether {here} divides how many steps there are", extent)
        if s % step and (not crossing.rounding or step > s) or divisor(extent) % here:
            raise _Inadmissible(
                f"{text(extent)} steps of {step} do not divide its mode {i}, {s}:{text(d)}: "
                "choose extents and strides that divide the modes they cross"
            )
        crossing.reach(path, i, (here - 1) * step, s)
        out.append((here, mul(mul(step, sign), d)))
        extent, step = ceil_div_leaf(extent, here), 1
        if is_one(extent):
            return out
    return [*out, (extent, mul(mul(step, sign), modes[-1][1]))]


def _must_be_static(mode: int, extent: Any, stride: Any, what: str, x: Any) -> None:
    if type(x) is not int:
        raise _Inadmissible(
            f"mode {mode} of the left side, {text(extent)}:{text(stride)}, is crossed, and {what} is known only at run "
            "time: make it static, promise what divides it (cute.assume), or tile each mode by itself"
        )


def _compose_with_composed(lhs: Any, rhs: ComposedLayout) -> Any:
    if isinstance(lhs, (Swizzle, ComposedLayout)):
        return ComposedLayout(lhs, 0, rhs)
    if not is_zero(rhs.offset):
        return ComposedLayout(lhs, 0, rhs)
    return composition(composition(lhs, rhs.inner), rhs.outer)


def _compose_with_swizzle(lhs: Layout, rhs: Swizzle) -> ComposedLayout:
    moved = commuted(lhs, rhs)
    if moved is None:
        raise CuteError(
            f"composition: {lhs} o {rhs} is no swizzle: the layout must map the swizzle's bits to bits in order"
        )
    return moved


def commuted(lhs: Layout, swizzle: Swizzle) -> ComposedLayout | None:
    """lhs o S as S' o lhs, where lhs maps the swizzle's bit fields to bit fields; None where it does not."""
    if not is_static(lhs) or lhs.maps_to_coordinates:
        return None
    moved = swizzle_of_masks(lhs(swizzle.y_mask), lhs(swizzle.z_mask))
    if moved is None or any(moved(lhs(i)) != lhs(swizzle(i)) for i in range(min(size(lhs), 2 * swizzle.period))):
        return None
    return ComposedLayout(moved, 0, lhs)


# ------------------------------------------------------------------ complement


@pure
def complement(input: Any, cotarget: Any = None) -> Layout:
    """The layout that reaches what `input` does not, up to `cotarget` (a size, a shape, a layout; by default
    cosize(input)): disjoint but for 0, and ordered. Rounds up where the target is not a multiple.

    Needs static strides, but for a layout of one mode.
    """
    layout = outer_of(input)
    if cotarget is None:
        cotarget = cosize(filter(layout))
    target = cotarget.shape if isinstance(cotarget, LAYOUTS) else checked(cotarget, "cotarget")
    modes = [(s, d) for s, d in merged(modes_of(filter_zeros(layout))) if not is_zero(d)]
    if len(modes) > 1 and any(type(d) is not int for _, d in modes):
        raise CuteError(f"complement: a stride of {layout} is known only at run time: static strides are needed")
    out: list[Mode] = []
    reached: Any = 1
    before = 1
    for s, d in modes if len(modes) == 1 else sorted(modes, key=lambda m: m[1]):
        gap = div(d, reached)
        if type(gap) is int and gap < 1:  # the mode overlaps the ones before: beyond it there is room again
            if d < 1 or d % before:
                raise CuteError(f"complement: {layout} reaches offsets twice or has negative strides: none exists")
            reached = reached + d * (s - 1)
            continue
        out.append((gap, reached))
        reached, before = mul(d, s), d
    rest = column_major(flatten_to_tuple(ceil_div_steps(target, reached)), reached)
    return flat_layout(merged(out + rest, keep_static=True))


def column_major(shape: tuple[Any, ...], start: Any) -> list[Mode]:
    out = []
    for s in shape:
        out.append((s, start))
        start = mul(start, s)
    return out


@pure
def ceil_div(input: IntTuple, tiler: Any) -> IntTuple:
    """How many tiles cover `input`: the shape of the rest mode when a layout of that shape is divided by `tiler`.

    tiler: an integer, a layout, or a tuple of tilers for the first modes.
    """
    if isinstance(tiler, tuple):
        input = wrap(input)
        if len(tiler) > len(input):
            raise CuteError(f"ceil_div: tiler={text(tiler)} has more modes than input={text(input)}")
        return tuple(map(ceil_div, input, tiler)) + input[len(tiler) :]
    if isinstance(input, int) and isinstance(tiler, int):
        if tiler <= 0:
            raise CuteError(f"ceil_div: tiler={tiler} must be positive")
        return -(-input // tiler)
    return complement(as_tile(tiler), product(input)).shape
