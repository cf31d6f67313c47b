# SPDX-License-Identifier: Apache-2.0
"""Slices of tuples and layouts.

A slice of a swizzled layout is a plain layout where the swizzle does not make its modes depend on one another, as in
CuTe (CUTLASS, include/cute/swizzle_layout.hpp) and in the published dialect of the CuTe DSL: what is fixed says which
strides go up and which down. Here it is so where that is known to be the same function; elsewhere the swizzle stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..seam import divisor, is_static, traced
from ..seam.guards.kinds import Domain
from .basis import add_coord
from .coalescing import Mode, modes_of
from .commuting import reached_bits
from .int_tuple import IntTuple, add, flatten_to_tuple, is_one, is_zero, signed
from .layout import ComposedLayout, Layout, outer_of
from .mapping import dice_modes, index, slice_modes
from .modes import modewise
from .swizzle import Swizzle

__all__ = ["dice", "slice_and_offset"]


@traced
def slice_(src: Domain, coord: IntTuple) -> Any:
    """Keep the modes of `src`, a tuple or layout, where `coord` is None: of a layout the first that `slice_and_offset`
    gives."""
    if isinstance(src, ComposedLayout):
        return slice_and_offset(coord, src)[0]
    return modewise(lambda t: slice_modes(coord, t), src)


@traced
def dice(src: Domain, dicer: IntTuple) -> Any:
    """Keep the modes of `src`, a tuple or layout, where `dicer` is not None: what `slice_` leaves out.

    >>> cute.dice(cute.make_layout((4, 8)), (1, None))
    (4):(1)
    """
    return modewise(lambda t: dice_modes(dicer, t), src)


@traced
def slice_and_offset(coord: IntTuple, src: Domain) -> tuple[Any, Any]:
    """Return the layout of the modes of `src` where `coord` is None, and the offset of the other modes.

    Of a swizzled layout they are a plain layout, of run-time strides if the coordinate is known only at run time, where
    no two bits that the swizzle joins are left to them; elsewhere the part of the offset that meets the swizzle stays
    in the layout. A coordinate that is known only at run time must lie within the shape.

    >>> cute.slice_and_offset((2, None), cute.make_layout((4, 8), stride=(8, 1)))
    ((8):(1), 16)
    """
    if not isinstance(src, ComposedLayout):
        return modewise(lambda t: slice_modes(coord, t), src), outer_of(src)(coord)
    if isinstance(src.inner, Swizzle) and isinstance(src.outer, Layout) and not src.outer.maps_to_coordinates:
        return _of_swizzled(src.inner, src.offset, src.outer, coord)
    rest, offset = slice_and_offset(coord, src.outer)
    return ComposedLayout(src.inner, add_coord(src.offset, offset), rest), 0


# ------------------------------------------------------------------ swizzled layouts


def _of_swizzled(swizzle: Swizzle, offset: Any, outer: Layout, coord: IntTuple) -> tuple[Any, Any]:
    kept = Layout(slice_modes(coord, outer.shape), slice_modes(coord, outer.stride))
    if all(c is None for c in flatten_to_tuple(coord)):
        return ComposedLayout(swizzle, offset, kept), 0
    if swizzle.bits == 0:
        return kept, add(offset, outer(coord))
    far, near = (index(coord, outer.shape, _strides(outer.stride, swizzle.period, of)) for of in (True, False))
    whole = add(offset, near)
    fixed = [_mode(2, offset), *_fixed(coord, outer.shape, outer.stride)]
    reached = whole if type(whole) is int else reached_bits(fixed, swizzle.period.bit_length() - 1)
    bits = _bits(modes_of(kept), swizzle)
    apart = bits is not None and not bits & reached
    if apart and not _joined(bits, swizzle):  # type: ignore[arg-type]
        return _Straight(swizzle, signed(whole), reached).layout(kept), add(far, swizzle(whole))
    if not apart or not is_zero(offset):
        return ComposedLayout(swizzle, whole, kept), far
    fields = swizzle.y_mask | swizzle.z_mask
    return ComposedLayout(swizzle, near & fields, kept), add(far, near & ~fields)


def _strides(stride: IntTuple, period: int, multiples: bool) -> IntTuple:
    """The strides that are (or are not) known to be multiples of `period`; 0 in place of the others."""
    if isinstance(stride, tuple):
        return tuple(_strides(d, period, multiples) for d in stride)
    return stride if (divisor(stride) % period == 0) == multiples else 0


def _fixed(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> Iterator[Mode]:
    """List the modes of what a coordinate, which lies within the shape, adds up to. A static one is a mode of two."""
    if coord is None:
        return
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        for c, s, d in zip(coord, shape, stride):
            yield from _fixed(c, s, d)
        return
    while isinstance(coord, tuple):
        (coord,) = coord
    if type(coord) is int and is_static((shape, stride)):
        yield 2, index(coord, shape, stride)
    else:
        yield from map(_mode, flatten_to_tuple(shape), flatten_to_tuple(stride))


_UNKNOWN = 1 << 64
"""More than any extent: a number known only at run time is so many of what divides it, as far as is known."""


def _mode(extent: Any, stride: Any) -> Mode:
    if not is_static(stride):
        return _UNKNOWN, divisor(stride)
    return (extent if type(extent) is int else _UNKNOWN), stride


def _bits(modes: Sequence[Mode], swizzle: Swizzle) -> int | None:
    """The bits below a swizzle's period that are set in offsets of these modes, where each is one of one mode alone,
    and each that the swizzle reads or changes counts by itself; None elsewhere."""
    period, found = swizzle.period, 0
    for s, d in modes:
        if is_one(s) or divisor(d) % period == 0:
            continue
        if type(s) is not int or type(d) is not int or d < 0:
            return None
        single = s & s - 1 == 0 and d & d - 1 == 0
        bits = reached_bits([(s, d)], period.bit_length() - 1)
        if bits & found or not single and bits & (swizzle.y_mask | swizzle.z_mask):
            return None
        found |= bits
    return found


def _partner(bit: int, swizzle: Swizzle) -> int:
    """The bit that a swizzle changes by this one, or that it reads for it; 0 of others."""
    up = swizzle.shift if bit & swizzle.z_mask else -swizzle.shift if bit & swizzle.y_mask else None
    return 0 if up is None else bit << up if up > 0 else bit >> -up


def _joined(bits: int, swizzle: Swizzle) -> bool:
    """Say whether some bit is changed by another one of these."""
    return any(bits & _partner(bit, swizzle) for bit in _single(bits))


def _single(bits: int) -> Iterator[int]:
    while bits:
        yield bits & -bits
        bits &= bits - 1


class _Straight:
    """A swizzle of offsets that begin at `whole`, and have further bits than it, none of which is changed by another
    one. reached: the bits that `whole` may have.

    A bit of the offset that is changed counts downwards where `whole` has the one that is read for it; and one that is
    read moves the one that it changes, downwards where `whole` has that.
    """

    def __init__(self, swizzle: Swizzle, whole: Any, reached: int) -> None:
        self.swizzle, self.whole, self.reached = swizzle, whole, reached

    def layout(self, kept: Layout) -> Layout:
        return Layout(*self._modes(kept.shape, kept.stride))

    def _modes(self, shape: Any, stride: Any) -> tuple[Any, Any]:
        if isinstance(shape, tuple):
            parts = [self._modes(s, d) for s, d in zip(shape, stride)]
            return tuple(s for s, _ in parts), tuple(d for _, d in parts)
        fields = self.swizzle.y_mask | self.swizzle.z_mask
        if not is_static((shape, stride)) or not (shape - 1) * stride & fields or stride % self.swizzle.period == 0:
            return shape, stride
        modes: list[Mode] = []
        for i in range(shape.bit_length() - 1):
            step = self._step(stride << i)
            s, d = modes[-1] if modes else (1, step)
            if type(step) is type(d) is int and step == s * d:
                modes[-1:] = [(2 * s, d)]
            else:
                modes.append((2, step))
        return modes[0] if len(modes) == 1 else tuple(zip(*modes))  # type: ignore[return-value]

    def _step(self, bit: int) -> Any:
        """By how much this bit of an offset moves it."""
        other = _partner(bit, self.swizzle)
        moved, kept = (other, bit) if bit & self.swizzle.y_mask else (bit, 0)
        if not other & self.reached:
            return kept + moved
        if type(self.whole) is int:
            return kept - moved
        return kept + moved - _rescaled(self.whole & other, other, 2 * moved)


def _rescaled(x: Any, old: int, new: int) -> Any:
    """`x`, which is 0 or the bit `old`, as 0 or the bit `new`."""
    return x * (new // old) if new >= old else x >> (old // new).bit_length() - 1
