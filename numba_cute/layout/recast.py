# SPDX-License-Identifier: Apache-2.0
"""Layouts seen in elements of another width."""

from __future__ import annotations

import math
from typing import Any

from ..seam import CuteError
from .basis import ScaledBasis
from .int_tuple import IntTuple, ceil_div_leaf, is_zero, mul, static_int
from .layout import ComposedLayout, Layout, outer_of
from .pure import pure
from .swizzle import IDENTITY, Swizzle


@pure
def recast_layout(new_type_bits: int, old_type_bits: int, src_layout: Any) -> Any:
    """`src_layout`, of elements of `old_type_bits`, in elements of `new_type_bits`: the contiguous mode shrinks or
    grows, the other strides scale. Strides must fit: what is not a multiple of the wider element rounds up."""
    new, old = static_int(new_type_bits, "new_type_bits"), static_int(old_type_bits, "old_type_bits")
    if new <= 0 or old <= 0:
        raise CuteError(f"recast_layout: widths of {new} and {old} bits: give positive widths")
    common = math.gcd(new, old)
    wider, narrower = new // common, old // common
    layout = src_layout if narrower == 1 else _down(src_layout, narrower)
    return layout if wider == 1 else _up(layout, wider)


def _up(layout: Any, n: int) -> Any:
    """`n` elements become one."""
    if isinstance(layout, Swizzle):
        return _shifted(layout, -_log2(n))
    if isinstance(layout, ComposedLayout):
        if type(layout.offset) is int and layout.offset % n:
            raise CuteError(f"recast_layout: the offset {layout.offset} of {layout} is no multiple of {n} elements")
        return ComposedLayout(_up(layout.inner, n), layout.offset // n, _up(layout.outer, n))
    layout = outer_of(layout)
    shape, stride = _up_modes(layout.shape, layout.stride, n)
    return Layout(shape, stride)


def _up_modes(s: IntTuple, d: IntTuple, n: int) -> tuple[IntTuple, IntTuple]:
    if isinstance(s, tuple):
        pairs = [_up_modes(x, y, n) for x, y in zip(s, d)]
        return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    if is_zero(d):
        return s, d
    if type(d) is int:
        step = ceil_div_leaf(abs(d), n)
        return ceil_div_leaf(s, ceil_div_leaf(n, abs(d))), step if d > 0 else -step
    if isinstance(d, ScaledBasis):
        raise CuteError(
            f"recast_layout: the basis stride {d} counts coordinates, not elements: recast the tensor itself"
        )
    return s, d // n


def _down(layout: Any, n: int) -> Any:
    """One element becomes `n`."""
    if isinstance(layout, Swizzle):
        return _shifted(layout, _log2(n))
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(_down(layout.inner, n), mul(layout.offset, n), _down(layout.outer, n))
    layout = outer_of(layout)
    shape, stride = _down_modes(layout.shape, layout.stride, n)
    return Layout(shape, stride)


def _down_modes(s: IntTuple, d: IntTuple, n: int) -> tuple[IntTuple, IntTuple]:
    if isinstance(s, tuple):
        pairs = [_down_modes(x, y, n) for x, y in zip(s, d)]
        return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    if type(d) is int and abs(d) == 1:
        return mul(s, n), d
    return s, mul(d, n)


def _log2(n: int) -> int:
    if n & (n - 1):
        raise CuteError(f"recast_layout: a swizzle cannot scale by {n}: use widths whose ratio is a power of two")
    return n.bit_length() - 1


def _shifted(swizzle: Swizzle, by: int) -> Swizzle:
    """The swizzle with its bit fields moved up. Bits that fall off the low end leave both fields."""
    if swizzle.bits == 0:
        return swizzle
    base = swizzle.base + by
    if base >= 0:
        return Swizzle(swizzle.bits, base, swizzle.shift)
    bits = swizzle.bits + base
    return Swizzle(bits, 0, swizzle.shift) if bits > 0 else IDENTITY
