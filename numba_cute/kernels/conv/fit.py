# SPDX-License-Identifier: Apache-2.0
"""Images and filters in any order and of any number of channels, as the kernels take them: channels last, in vectors.

What lies otherwise is permuted, at the speed of memory. Channels that are no whole vectors, as an image's 3, are filled
up with zeros, to as few as make steps along W of whole vectors (4 at stride 2, 8 at stride 1 of 16 bits); then the taps
along W are folded into channels: an output pixel takes one run of each row of the image, kw times its channels long, so
that a filter of kh by kw taps becomes one of kh by 1. Those runs overlap, in a view, and need be no whole vectors: what
follows them, the next pixel's, is filled with zeros when it is copied. What lies outside of the image along W is zeros
that are written. Of 7 x 7 taps at stride 2 that makes 7 runs of 28 elements, and not 49 of 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import current, quotient, remainder, traced
from numba_cute.seam.ground.records import dataclass

from .. import entry
from ..moves.places import divisor
from .operands import Walk, whole

THREADS, BYTES = 256, 16


# ---------------------------------------------------------------- filled up


@traced
def element(source: Any, outer: tuple[Any, ...], place: Any, before: Any) -> Any:
    """Give an element of a row that is filled up, zero where there is none. source: (…, W, C). outer: which row. place:
    its column and its channel. before: columns of zeros before the row."""
    b, (w, c) = current(), (place[0] - before, place[1])
    (*_, width, channels), zero = source.shape, cute.Int32(0)
    inside = b.compare(">=", w, zero) & b.compare("<", w, width) & b.compare("<", c, channels)
    found = source[(*outer, b.select(inside, w, zero), b.select(inside, c, zero))]
    return b.select(inside, found, source.element_type(0))


@traced
def row_of(index: Any, divisors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give the coordinates of a row. divisors: by the extents of all modes but the first one."""
    out: tuple[Any, ...] = ()
    for by in reversed(divisors):
        index, own = by.divmod(index)
        out = (own, *out)
    return (index, *out)


@traced
def last(t: Any) -> Any:
    """Put the second mode of a tensor last."""
    return cute.make_tensor(t.iterator, cute.select(t.layout, mode=[0, *range(2, cute.rank(t)), 1]))


@cuda.jit
def fill(source, target, rows, vectors, each, before, channels: cute.Constexpr):
    thread, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    index = cute.Int32(block * THREADS + thread)
    if index < vectors:
        there, made = last(cute.make_tensor(source)), cute.make_tensor(target)
        row, vector = each.divmod(index)
        outer = row_of(row, rows)
        count = 8 * BYTES // there.element_type.width
        held = cute.make_rmem_tensor(count, there.element_type)
        for i in cute.range_constexpr(count):
            at = cute.Int32(vector * count + i)
            held[i] = element(there, outer, (quotient(at, channels), remainder(at, channels)), before)
        at = made.iterator + cute.Int64(index) * count
        place = cute.make_ptr(there.element_type, at.toint(), cute.AddressSpace.gmem, BYTES)
        cute.autovec_copy(held, cute.make_tensor(place, cute.make_layout(count)))


def plan(t: Any, made: Any, before: int, channels: int) -> Any:
    """Plan to fill rows up. t: (N, C, …). made: (N, …, row), dense, a row of which has so many `channels` for each
    column, `before` columns of zeros, those of t, and zeros up to its end."""
    length, count = made.shape[-1], BYTES * 8 // entry.element_type(t).width
    vectors = math.prod(made.shape) // count
    rows = tuple(map(divisor, made.shape[1:-1]))
    return entry.Work(
        fill, math.ceil(vectors / THREADS), THREADS,
        static=(rows, cute.Int32(vectors), divisor(length // count), cute.Int32(before), channels),
    )  # fmt: skip


FILL = entry.Planned(plan, "convolution")


def filled(t: Any, row: int, before: int, channels: int) -> Any:
    """Give (N, C, …, W) as (N, …, row), filled up. row: elements of one. before, channels: as of `plan`."""
    outer = (t.shape[0], *t.shape[2:-1])
    made = entry.pytorch().empty((*outer, row), dtype=t.dtype, device=t.device)
    FILL((t.detach(), made), (before, channels))
    return made


# ---------------------------------------------------------------- in order


def fits(t: Any) -> bool:
    """Say whether images lie as the kernels take them: channels in vectors that begin at their multiples."""
    unit, last = BYTES // t.element_size(), t.movedim(1, -1)
    steps = [s for n, s in zip(last.shape, last.stride()) if n > 1]
    return (
        t.shape[1] % unit == 0
        and (t.shape[1] == 1 or last.stride(-1) == 1)
        and not any(s % unit for s in steps[:-1])
        and t.data_ptr() % BYTES == 0
    )


def in_order(t: Any, dense: bool = False) -> Any:
    """Give (N, C, …) with its channels last, a copy if need be. dense: with nothing between them."""
    good = t.movedim(1, -1).is_contiguous() and t.data_ptr() % BYTES == 0 if dense else fits(t)
    order = (0, *range(2, t.ndim), 1)
    if good:
        return t
    from ..moves.permute import PERMUTE

    return PERMUTE(t.detach(), order).movedim(-1, 1)


def dense(t: Any) -> Any:
    """Give (N, C, …) with its channels last and nothing between them, a copy if need be."""
    return in_order(t, True)


def as_it_lies(t: Any, bring: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give what brings tensors that lie as `t` does: `bring`, or no call of it where they need none."""
    bare = t.detach()
    return (lambda t: t.detach()) if bring(bare) is bare else lambda t: bring(t.detach())


def padded(weight: Any, channels: int) -> Any:
    """Give filters (outputs, C, …) with so many channels, the further ones of zeros, channels last."""
    rows = filled(weight, weight.shape[-1] * channels, 0, channels)
    return rows.view(*rows.shape[:-1], weight.shape[-1], channels).movedim(-1, 1)


@dataclass(frozen=True)
class Fit:
    """Bring images and filters to the kernels. walk: over what the images become. images, filters: make that of them.
    back: gives of a gradient of what the filters become theirs, a view."""

    walk: Walk
    images: Callable[[Any], Any]
    filters: Callable[[Any], Any]
    back: Callable[[Any], Any]


def fit(x: Any, taps: tuple[int, ...], walk: Walk) -> Fit:
    """Say how images, and filters with them, go to the kernels. x: (N, C, …, W). walk: of the filter."""
    channels, unit = x.shape[1], BYTES // x.element_size()
    if channels % unit == 0:
        return Fit(walk, in_order, dense, lambda dw: dw)
    if walk.dilation[-1] > 1:
        return _filled_up(channels, whole(channels, unit), walk)
    each = next(n for n in range(channels, channels + unit) if n * walk.stride[-1] % unit == 0)
    return _folded(channels, each, unit, walk)


def _filled_up(channels: int, each: int, walk: Walk) -> Fit:
    """More channels alone."""
    return Fit(walk, lambda x: padded(x, each), lambda w: padded(w, each), lambda dw: dw[:, :channels])


def _folded(channels: int, each: int, unit: int, walk: Walk) -> Fit:
    """The taps along W in channels. each: channels of a pixel."""
    taps, step, before = walk.taps[-1], walk.stride[-1], walk.before[-1]
    run = whole(taps * each, unit)

    def images(x: Any) -> Any:
        count = walk.out(tuple(x.shape[2:]))[-1]
        rows = filled(x, (count - 1) * step * each + run, before, each)
        shape, strides = (*rows.shape[:-1], count, taps * each), (*rows.stride()[:-1], step * each, 1)
        return rows.as_strided(shape, strides).movedim(-1, 1)

    def filters(w: Any) -> Any:
        return filled(w, run, 0, each).unsqueeze(-2).movedim(-1, 1)

    def back(dw: Any) -> Any:
        own = dw.movedim(1, -1)[..., 0, : taps * each]
        return own.unflatten(-1, (taps, each))[..., :channels].movedim(-1, 1)

    one = lambda numbers, last: (*numbers[:-1], last)  # noqa: E731
    return Fit(
        Walk(
            one(walk.taps, 1), one(walk.stride, 1), one(walk.before, 0), one(walk.after, 0), one(walk.dilation, 1)
        ),
        images, filters, back,
    )  # fmt: skip
