# SPDX-License-Identifier: Apache-2.0
"""Composition and complement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..seam import CuteError, Leaf, Signal, divisor, is_static, settled
from ..seam.guards.kinds import Domain, Tiler
from ..seam.marks.decorators import HOW_STATIC
from .basis import ScaledBasis, checked
from .coalescing import Mode, column_major, filter, flat_layout, merged, modes_of
from .commuting import commuted, keeps_clear
from .int_tuple import (
    IntTuple,
    ceil_div_leaf,
    ceil_div_number,
    ceil_div_steps,
    div,
    flatten_to_tuple,
    is_one,
    is_zero,
    mul,
    product,
    static_int,
    text,
    whole,
    wrap,
)
from .layout import LAYOUTS, ComposedLayout, Layout, concat, cosize, get, on_outer, outer_of, rank, size
from .leaves import valued
from .pure import pure
from .swizzle import Swizzle

__all__ = ["ceil_div", "complement"]

# ------------------------------------------------------------------ composition


@pure
def composition(lhs: Domain, rhs: Domain) -> Any:
    """Compose two layouts: c -> lhs(rhs(c)), of the shape of `rhs` or a finer one.

    lhs: a layout. rhs: a layout; or a tiler, applied mode by mode: a tuple of tilers, an integer n for n:1, None for
    the mode as it is. An error where a mode of `rhs` crosses modes of `lhs` in steps that do not divide, or that are
    known only at run time.

    >>> cute.composition(cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((2, 4)))
    (2,(2,2)):(8,(16,1))
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


def as_tile(tiler: Tiler) -> Layout:
    """Return the layout that a tiler stands for: n:1 for an integer n."""
    if isinstance(tiler, Layout):
        return tiler
    n = tiler if isinstance(tiler, Leaf) else static_int(tiler, "tiler")
    return Layout(n, 0 if is_one(n) else 1)


def compose(lhs: Layout, rhs: Layout) -> Layout:
    """Compose lhs o rhs, with the last mode of lhs not bounded; an error where the result is not a layout."""
    try:
        return compose_modes(merged(modes_of(lhs), keep_last=True), rhs, lhs)
    except Inadmissible as e:
        a, b = valued(lhs), valued(rhs)
        if a is not lhs or b is not rhs:
            return compose(a, b)
        raise CuteError(f"composition: {lhs} o {rhs} is not a layout: {e}") from None


def compose_modes(modes: list[Mode], rhs: Layout, lhs: Layout | None = None) -> Layout:
    """Compose the layout of `modes`, coalesced, with rhs. lhs: that layout, whose modes the basis strides of rhs
    name."""
    crossing = _Crossing(lhs, {(): modes or [(1, 0)]})
    found = _compose(rhs.shape, rhs.stride, crossing, ())
    if len(crossing.signs) > 1:
        crossing.check_signs()
    return found


def tilewise(f: Any, layout: Layout, tiler: tuple[Any, ...], name: str, drop: bool = False) -> Layout:
    """Apply `f` to each mode of the layout and that of the tiler; what the tiler does not reach stays (or with `drop`
    goes)."""
    n = rank(layout)
    if len(tiler) > n:
        raise CuteError(f"{name}: the tiler {text(tiler)} has {len(tiler)} modes, the layout {layout} only {n}")
    parts = [f(get(layout, (i,)), t) for i, t in enumerate(tiler)]
    if not drop:
        parts += [get(layout, (i,)) for i in range(len(tiler), n)]
    return concat(parts)


class Inadmissible(Exception):
    """The reason why two layouts do not compose."""


class _Crossing:
    """The reach of a composition's right side, its modes together, in each mode of its left side, upwards and
    downwards. Within a mode their offsets add up; if the sum would carry into the next mode, they do not."""

    def __init__(self, lhs: Layout | None, modes: dict[tuple[int, ...], list[Mode]]) -> None:
        self.lhs, self.modes = lhs, modes
        self.stepped: set[tuple[int, ...]] = set()
        self.reached: dict[Any, int] = {}
        self.signs: set[tuple[tuple[int, ...], int, int]] = set()

    def modes_at(self, path: tuple[int, ...]) -> list[Mode]:
        """The modes of the left side that lie at `path`, coalesced."""
        found = self.modes.get(path)
        if found is None:
            part = get(self.lhs, path)
            found = self.modes[path] = merged(modes_of(part), keep_last=True) or [(1, 0)]
        return found

    def step(self, path: tuple[int, ...]) -> None:
        """The right side steps through the mode at `path`, and through no other that it holds or that holds it."""
        if path in self.stepped:
            return
        for other in self.stepped:
            n = min(len(other), len(path))
            if other[:n] == path[:n]:
                holds = f"mode {list(path[:n])}" if n else "the whole"
                raise Inadmissible(
                    f"the right side steps through mode {list(other if len(other) > n else path)} of the left side and "
                    f"through {holds}, which holds it: choose strides along modes that do not hold one another"
                )
        self.stepped.add(path)

    def reach(self, path: tuple[int, ...], mode: int, by: int, bound: int, sign: int) -> None:
        """Count the offsets up to `by` within one mode, of extent `bound`."""
        if by == 0:
            return
        self.signs.add((path, mode, sign))
        total = self.reached[path, mode, sign] = self.reached.get((path, mode, sign), 0) + by
        if total >= bound:
            raise Inadmissible(
                f"the modes of the right side together reach {total} in its mode {mode}, of extent {bound}: choose "
                "modes that do not carry into the next one"
            )

    def check_signs(self) -> None:
        """Offsets of both signs add up within one mode alone: between two, their sum borrows."""
        for path in self.stepped:
            here = [(mode, sign) for at, mode, sign in self.signs if at == path]
            if len({sign for _, sign in here}) > 1 and len({mode for mode, _ in here}) > 1:
                raise Inadmissible("the right side steps both ways through its modes: choose strides of one sign")


def _compose(shape: IntTuple, stride: IntTuple, crossing: _Crossing, path: tuple[int, ...]) -> Layout:
    if isinstance(shape, tuple):
        parts = [_compose(s, d, crossing, path) for s, d in zip(shape, stride)]
        return Layout(tuple([p.shape for p in parts]), tuple([p.stride for p in parts]))
    if isinstance(stride, ScaledBasis):
        return _compose(shape, stride.value, crossing, stride.mode)
    if is_zero(stride):
        return Layout(shape, 0)
    modes = crossing.modes_at(path)
    if is_one(shape):
        return Layout(1, _stride_of_one(modes, stride))
    crossing.step(path)
    if len(modes) == 1:
        return Layout(shape, mul(stride, modes[0][1]))
    return flat_layout(_compose_mode(modes, shape, stride, crossing, path))


def _stride_of_one(modes: Sequence[Mode], step: Any) -> Any:
    """The stride for an extent of 1, which no coordinate uses: as if the steps went on beyond all modes."""
    if len(modes) > 1 and not is_static((step, tuple(s for s, _ in modes))):
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
            crossing.reach(path, i, (extent - 1) * step, least, sign)
            return [*out, (extent, mul(mul(step, sign), d))]
        _must_be_static(i, s, d, "its extent", s)
        here = ceil_div_leaf(s, step)
        if divisor(extent) % here:
            _must_be_static(i, s, d, f"whether {here} divides how many steps there are", extent)
        if s % step or divisor(extent) % here:
            raise Inadmissible(
                f"{text(extent)} steps of {step} do not divide its mode {i}, {s}:{text(d)}: "
                "choose extents and strides that divide the modes they cross"
            )
        crossing.reach(path, i, (here - 1) * step, s, sign)
        out.append((here, mul(mul(step, sign), d)))
        extent, step = ceil_div_leaf(extent, here), 1
        if is_one(extent):
            return out
    crossing.signs.add((path, len(modes) - 1, sign))
    return [*out, (extent, mul(mul(step, sign), modes[-1][1]))]


def _must_be_static(mode: int, extent: Any, stride: Any, what: str, x: Any) -> None:
    if type(x) is not int:
        raise Inadmissible(
            f"mode {mode} of the left side, {text(extent)}:{text(stride)}, is crossed, and {what} is known only at run "
            "time: make it static, promise what divides it (cute.assume), or tile each mode by itself"
        )


def _compose_with_composed(lhs: Any, rhs: ComposedLayout) -> Any:
    """lhs o rhs with the inner function moved through a layout on the left, where that is the same function of all
    that rhs's outer layout reaches; else the two one after the other."""
    chained = ComposedLayout(lhs, 0, rhs)
    if not isinstance(lhs, Layout) or not is_zero(rhs.offset):
        return chained
    inner, outer = rhs.inner, rhs.outer
    domain = lhs if isinstance(inner, Swizzle) else inner
    if not isinstance(outer, Layout) or not _stays_within(outer, size(domain)):
        return chained
    try:
        moved = commuted(lhs, inner) if isinstance(inner, Swizzle) else composition(lhs, inner)
        return chained if moved is None else composition(moved, outer)
    except (CuteError, Signal) as e:
        settled(e)
        return chained


def _stays_within(layout: Layout, n: Any) -> bool:
    """Return whether all offsets of `layout` are known to lie in [0, n)."""
    if not is_static((layout, n)) or layout.maps_to_coordinates:
        return False
    return min(flatten_to_tuple(layout.stride), default=0) >= 0 and bool(cosize(layout) <= n)


def _compose_with_swizzle(lhs: Layout, rhs: Swizzle) -> ComposedLayout:
    moved = commuted(lhs, rhs)
    if moved is None:
        raise CuteError(
            f"composition: {lhs} o {rhs} is not a swizzle: the layout must map the swizzle's bits to bits in order"
        )
    return moved


# ------------------------------------------------------------------ complement


@pure
def complement(input: Domain, cotarget: Any = None) -> Layout:
    """Return the layout that reaches what `input` does not, disjoint from it but for 0, and ordered.

    input: a layout of static strides, or of one mode. cotarget: how far to reach: a size, a shape or a layout; by
    default cosize(input). Rounds up where it is not a multiple.

    >>> cute.complement(cute.make_layout(4, stride=2), 16)
    (2,2):(1,8)
    """
    layout = outer_of(input)
    if isinstance(input, ComposedLayout) and not keeps_clear(input):
        raise CuteError(
            f"complement: {input} has no known complement: a swizzled layout has its outer layout's, if "
            "it has no offset and its extents and strides are powers of two"
        )
    if cotarget is None:
        cotarget = cosize(filter(layout))
    target = cotarget.shape if isinstance(cotarget, LAYOUTS) else checked(cotarget, "cotarget")
    gaps = Gaps(layout)
    found = flat_layout(gaps.complement(target))
    if gaps.hole is not None:
        both, wanted = mul(size(found), size(filter(layout))), product(target)
        if not is_static((both, wanted)) or both < wanted:
            raise CuteError(
                f"complement: {layout} has none up to {text(wanted)}: no layout fills the gap at {gaps.hole}; choose "
                "strides that are multiples of what lies below them"
            )
    return found


def _no_gaps(layout: Any, stride: int, below: int) -> str:
    """Write the message for a layout of which a mode of `stride` overlaps that of the stride `below`."""
    if stride < 1:
        return f"complement: {layout} has a negative stride, {stride}: none exists; reverse what it lays out"
    return (
        f"complement: {layout} has none that is a layout: the mode of stride {stride} begins within the reach of that "
        f"of stride {below}, and is no multiple of it; choose strides that are multiples of what lies below them"
    )


class Gaps:
    """The gaps that a layout leaves in the block of offsets over which it spreads.

    modes: the layout that steps through it. reached: the size of the block. hole: the first offset of the block that
    neither reaches, where a stride is not a multiple of what lies below it; None where there is none, as far as is
    known.
    """

    def __init__(self, layout: Layout) -> None:
        modes = merged([m for m in modes_of(layout) if not is_zero(m[1])])
        if layout.maps_to_coordinates:
            raise CuteError(
                f"complement: {layout} reaches coordinates, and only offsets have one: give integer strides"
            )
        if len(modes) > 1 and any([type(d) is not int for _, d in modes]):
            raise CuteError(f"complement: a stride of {layout} is known only at run time: {HOW_STATIC}")
        if any([is_zero(s) for s, _ in modes]):
            raise CuteError(f"complement: {layout} is empty: give extents of at least 1")
        self.modes: list[Mode] = []
        self.reached: Any = 1
        self.hole: int | None = None
        before = 1
        for s, d in modes if len(modes) == 1 else sorted(modes, key=lambda m: m[1]):
            if type(self.reached) is not int:
                raise CuteError(
                    f"complement: an extent of {layout} below its stride {text(d)} is known only at run time: "
                    f"{HOW_STATIC}"
                )
            gap = div(d, self.reached)
            if type(gap) is int and gap < 1:  # the mode overlaps the ones before: beyond it there is room again
                if d < 1 or d % before:
                    raise CuteError(_no_gaps(layout, d, before))
                self.reached = self.reached + d * (s - 1)
                continue
            if type(gap) is int and self.hole is None and gap * self.reached != d:
                self.hole = gap * self.reached
            self.modes.append((gap, self.reached))
            self.reached, before = mul(d, s), d

    def complement(self, target: IntTuple, keep_last: bool = False) -> list[Mode]:
        """The modes that step through the gaps, and by whole blocks up to `target`. keep_last: the steps by blocks are
        the last mode even if there is one block: where the steps go on, beyond the target, they are by blocks."""
        blocks = column_major(flatten_to_tuple(ceil_div_steps(target, self.reached)), self.reached)
        return merged(self.modes + blocks, keep_last, keep_static=True)


@pure
def ceil_div(input: IntTuple, tiler: Tiler) -> IntTuple:
    """Count the tiles that cover `input`: give the shape of the rest mode when a layout of that shape is divided by
    `tiler`.

    input: a shape or a layout. tiler: an integer, a layout, or a tuple of tilers for the first modes.

    >>> cute.ceil_div((100, 64), (32, 32))
    (4, 2)
    """
    if isinstance(tiler, tuple):
        input = wrap(input)
        if len(tiler) > len(input):
            raise CuteError(f"ceil_div: tiler={text(tiler)} has more modes than input={text(input)}")
        return tuple(map(ceil_div, input, tiler)) + input[len(tiler) :]
    if isinstance(tiler, int) and tiler <= 0:
        raise CuteError(f"ceil_div: tiler={tiler} must be positive")
    if isinstance(input, (int, Leaf)) and isinstance(tiler, (int, Leaf)):
        return ceil_div_number(whole(input, "input"), tiler)
    if isinstance(input, ScaledBasis):
        raise CuteError(f"ceil_div: input={input} is a stride, not an extent: give a shape or a layout")
    return complement(as_tile(tiler), product(input)).shape
