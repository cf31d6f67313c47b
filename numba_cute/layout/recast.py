# SPDX-License-Identifier: Apache-2.0
"""Layouts seen in elements of another width."""

from __future__ import annotations

import math
from typing import Any

from ..seam import CuteError, divisor
from ..seam.guards.messages import how_static
from .basis import ScaledBasis
from .coalescing import flat_layout, merged, modes_of
from .int_tuple import IntTuple, ceil_div_leaf, is_one, is_zero, mul, static_int
from .layout import ComposedLayout, Layout, on_outer, outer_of, size
from .pure import pure
from .swizzle import Swizzle

__all__ = ["recast_layout"]


@pure
def recast_layout(new_type_bits: int, old_type_bits: int, src_layout: Any) -> Any:
    """View `src_layout`, of elements of `old_type_bits`, in elements of `new_type_bits`: the contiguous mode shrinks or
    grows, the other strides scale.

    An error where wider elements would not be made of whole runs of narrower ones. As in CuTe, a layout without a
    stride of 1 becomes the first narrower element of each wider one. What is known only at run time is taken to be a
    multiple, as of the rows of a matrix.

    >>> cute.recast_layout(32, 16, cute.make_layout((8, 4)))
    (4,4):(1,4)
    """
    wider, narrower = _scale(new_type_bits, old_type_bits)
    layout = src_layout if narrower == 1 else _down(src_layout, narrower)
    return layout if wider == 1 else _up(layout, wider)


@pure
def recast_elements(new_type_bits: int, old_type_bits: int, src_layout: Any) -> Any:
    """Call `recast_layout` for elements that lie in memory: an error, too, where the new ones would be other memory, or
    not all of it."""
    wider, narrower = _scale(new_type_bits, old_type_bits)
    if wider == narrower:
        return src_layout
    plain = outer_of(src_layout)
    modes = [(s, d) for s, d in modes_of(plain) if not is_one(s) and not is_zero(d)]
    if not any(type(d) is int and d == 1 for _, d in modes):
        if modes or narrower == 1 or not is_one(size(plain)):
            raise CuteError(
                f"elements of {old_type_bits} bits, laid out as {src_layout}, are not known to lie together, and are "
                f"no elements of {new_type_bits} bits: a mode of more than one element must have the static stride 1"
                f"{how_static(src_layout.stride)}"
            )
    single = iter([is_one(size(plain))])
    still = Layout(plain.shape, _moving(plain.shape, plain.stride, single))
    return recast_layout(new_type_bits, old_type_bits, _with_plain(src_layout, still))


def _moving(s: IntTuple, d: IntTuple, single: Any) -> IntTuple:
    """The strides, 0 for each extent of 1, where nothing moves; the first of a single element is 1."""
    if isinstance(s, tuple):
        return tuple([_moving(x, y, single) for x, y in zip(s, d)])
    return int(next(single, False)) if is_one(s) else d


def _with_plain(layout: Any, plain: Layout) -> Any:
    return on_outer(layout, _with_plain(layout.outer, plain)) if isinstance(layout, ComposedLayout) else plain


def _scale(new_type_bits: int, old_type_bits: int) -> tuple[int, int]:
    """(how many elements become one, how many one becomes), the least that do."""
    new, old = static_int(new_type_bits, "new_type_bits"), static_int(old_type_bits, "old_type_bits")
    if new <= 0 or old <= 0:
        raise CuteError(f"recast_layout: widths of {new} and {old} bits: give positive widths")
    common = math.gcd(new, old)
    return new // common, old // common


# ------------------------------------------------------------------ to wider elements


def _up(layout: Any, n: int) -> Any:
    """`n` elements become one."""
    if isinstance(layout, Swizzle):
        return _lowered(layout, n)
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.offset, tuple) or type(layout.offset) is int and layout.offset % n:
            raise CuteError(f"recast_layout: the offset {layout.offset} of {layout} is not a multiple of {n} elements")
        return ComposedLayout(_inner(layout.inner, n, True), layout.offset // n, _up(layout.outer, n))
    layout = outer_of(layout)
    _made_of_runs(layout, n)
    shape, stride = _up_modes(layout.shape, layout.stride, n)
    return Layout(shape, stride)


def _made_of_runs(layout: Layout, n: int) -> None:
    """Refuse what is not made of whole runs of `n` elements that lie together and in order: the modes below stride n
    must be such runs, and the others step from one to another."""
    modes = [(s, d) for s, d in modes_of(layout) if not is_one(s) and not is_zero(d)]
    for _, d in modes:
        if isinstance(d, ScaledBasis):
            raise CuteError(
                f"recast_layout: the basis stride {d} counts coordinates, not elements: recast the tensor itself"
            )
        if type(d) is int and abs(d) >= n and d % n:
            _refuse(layout, n, f"its stride {d} is not a multiple of {n}")
    run: Any = 1
    for s, d in sorted([m for m in modes if type(m[1]) is int and abs(m[1]) < n], key=lambda m: m[1]):
        if type(run) is not int or d != run or n % d:
            _refuse(layout, n, f"its stride {d} is neither a multiple of {n} nor a step of a run of so many")
        run = mul(s, d)
        if type(run) is int and run % n and n % run:
            _refuse(layout, n, f"a run of {run} of them is not whole")
    if modes and type(run) is int and run % n:
        _refuse(layout, n, "none of its strides is 1" if run == 1 else f"only {run} of them lie together")


def _refuse(layout: Layout, n: int, why: str) -> None:
    raise CuteError(
        f"recast_layout: {n} elements of {layout} do not make one: {why}; the contiguous extent and the other strides "
        f"must be multiples of {n}"
    )


def _up_modes(s: IntTuple, d: IntTuple, n: int) -> tuple[IntTuple, IntTuple]:
    if isinstance(s, tuple):
        pairs = [_up_modes(x, y, n) for x, y in zip(s, d)]
        return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    if is_zero(d):
        return s, d
    if type(d) is int:
        step = ceil_div_leaf(abs(d), n)
        return ceil_div_leaf(s, ceil_div_leaf(n, abs(d))), step if d > 0 else -step
    return s, d // n


@pure
def upcast(layout: Layout, n: int) -> Layout:
    """Count in blocks of `n` where `layout` counts offsets: which block each of its elements lies in, with one
    coordinate for those that share it. Each stride must divide `n` or be a multiple, and so must what its mode spans;
    blocks need not be full."""
    for s, d in modes_of(layout):
        if type(d) is not int or d % n == 0 or is_one(s):
            continue
        if d < 0 or n % d or type(s) is int and s * d % n and n % (s * d):
            raise CuteError(
                f"upcast: {n} must be a multiple of the stride {d} of {layout}, or divide it, with its mode"
            )
    shape, stride = _up_modes(layout.shape, layout.stride, n)
    return Layout(shape, stride)


# ------------------------------------------------------------------ to narrower elements


def _down(layout: Any, n: int) -> Any:
    """One element becomes `n`."""
    if isinstance(layout, Swizzle):
        return layout if layout.bits == 0 else Swizzle(layout.bits, layout.base + _log2(n), layout.shift)
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(_inner(layout.inner, n, False), mul(layout.offset, n), _down(layout.outer, n))
    layout = outer_of(layout)
    unit = [d for s, d in modes_of(layout) if type(d) is int and abs(d) == 1 and not is_one(s)]
    if unit not in ([], [1]):
        raise CuteError(
            f"recast_layout: an element of {layout} has no place for the {n} that it becomes: one mode must have "
            "stride 1, and no other 1 or -1"
        )
    shape, stride = _down_modes(layout.shape, layout.stride, n)
    return Layout(shape, stride)


def _down_modes(s: IntTuple, d: IntTuple, n: int) -> tuple[IntTuple, IntTuple]:
    if isinstance(s, tuple):
        pairs = [_down_modes(x, y, n) for x, y in zip(s, d)]
        return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    if type(d) is int and d == 1:
        return mul(s, n), d
    return s, mul(d, n)


# ------------------------------------------------------------------ composed layouts


def _inner(inner: Any, n: int, up: bool) -> Any:
    """The inner function of a composed layout, recast: from elements counted in other units too. A layout must keep
    the `n` of them together: its first mode steps by one through whole runs."""
    if isinstance(inner, Swizzle):
        return _up(inner, n) if up else _down(inner, n)
    if isinstance(inner, ComposedLayout):
        offset = mul(inner.offset, n) if not up else inner.offset // n if divisor(inner.offset) % n == 0 else None
        if offset is None:
            raise CuteError(f"recast_layout: the offset {inner.offset} of {inner} is not a multiple of {n} elements")
        return ComposedLayout(_inner(inner.inner, n, up), offset, _inner(inner.outer, n, up))
    (s, d), *others = merged(modes_of(inner), keep_last=True) or [(1, 1)]
    whole = not up or all(divisor(x) % n == 0 for x in (s, *(d for _, d in others))) or not others
    if type(d) is not int or d != 1 or not whole or inner.maps_to_coordinates:
        raise CuteError(
            f"recast_layout: the inner layout {inner} of a composed one must begin with a mode of stride 1, and {n} "
            "must divide its extent and the other strides"
        )
    if up:
        return flat_layout([(ceil_div_leaf(s, n), 1), *((s, d // n) for s, d in others)])
    return flat_layout([(mul(s, n), 1), *((s, mul(d, n)) for s, d in others)])


def _log2(n: int) -> int:
    if n & (n - 1):
        raise CuteError(f"recast_layout: a swizzle cannot scale by {n}: use widths whose ratio is a power of two")
    return n.bit_length() - 1


def _lowered(swizzle: Swizzle, n: int) -> Swizzle:
    """The swizzle with its bit fields moved down, which must not move elements within what becomes one."""
    base = swizzle.base - _log2(n)
    if swizzle.bits and base < 0:
        raise CuteError(
            f"recast_layout: {swizzle} moves single elements, and {n} of them become one: its base must be at least "
            f"{_log2(n)}"
        )
    return swizzle if swizzle.bits == 0 else Swizzle(swizzle.bits, base, swizzle.shift)
