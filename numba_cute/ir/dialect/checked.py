# SPDX-License-Identifier: Apache-2.0
"""Check that a value of each kind is one of its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...layout.basis import ScaledBasis, add_coord, coord_zero
from ...layout.int_tuple import congruent, flatten_to_tuple, weakly_congruent
from ...layout.layout import ComposedLayout, Layout
from ...layout.swizzle import Swizzle
from ...seam import CuteError
from .leaves import Dynamic
from .notation import RawComposed, RawLayout, Undefined, Unswizzled, write
from .ratios import Ratio


class Refused(CuteError):
    """An error: a value, or an operation, is not one of the dialect."""


def checked(kind: str, value: Any) -> Any:
    """Return a value of a kind as it was read, with its layouts made. Raises Refused for one that is none."""
    return _CHECKS.get(kind, _as_it_is)(value)


def _as_it_is(value: Any) -> Any:
    return value


def checked_stride(stride: Any) -> Any:
    """Return strides that the algebra can compute with."""
    leaves = flatten_to_tuple(stride)
    paths = [d.mode for d in leaves if isinstance(d, ScaledBasis)]
    if paths and any(not isinstance(d, ScaledBasis) and not (type(d) is int and d == 0) for d in leaves):
        raise Refused(
            f'the strides "{write("stride", stride)}" mix integers with basis strides: give all of one kind, or zeros'
        )
    for path in paths:
        if any(len(other) > len(path) and other[: len(path)] == path for other in paths):
            raise Refused(
                f'the basis strides "{write("stride", stride)}" step along a mode and along a part of it: name modes '
                "of one depth"
            )
    return stride


def has_fraction(value: Any) -> bool:
    """Return whether strides of a value count parts of an element."""
    return any(isinstance(leaf, Ratio) for leaf in leaves_of(value))


def whole_numbers(value: Any) -> None:
    """Refuse a value with a fraction, which the published dialect has in no type. Raises Refused for it."""
    if has_fraction(value):
        raise Refused(f'"{write("stride", value)}" holds a fraction: a stride is an integer')


def checked_layout(raw: Any) -> Layout:
    """Make a layout of a shape and strides as they were written."""
    text = write("layout", raw)
    if any(isinstance(x, Undefined) for x in leaves_of(raw)):
        raise Refused(f'"{text}" is not defined: no integer stands at x')
    if not congruent(raw.shape, raw.stride):
        raise Refused(f'"{text}" has no stride for each extent: nest the strides as the shape')
    extents = flatten_to_tuple(raw.shape)
    if any(type(s) is int and s <= 0 for s in extents):
        raise Refused(f'"{text}" has an extent that is not positive')
    return Layout(raw.shape, checked_stride(raw.stride))


def checked_tile(raw: Any) -> Any:
    """Make the layouts of a tile."""
    if isinstance(raw, tuple):
        return tuple(map(checked_tile, raw))
    return raw if raw is None else checked_layout(raw)


def is_trivial(x: Any) -> bool:
    """Return whether a composed layout is its outer layout: nothing is added, and nothing swizzled. One that the CuTe
    DSL prints so is none: it stays a composed layout."""
    if isinstance(x.inner, Unswizzled):
        return False
    return isinstance(x.inner, Swizzle) and x.inner.bits == 0 and type(x.offset) is int and x.offset == 0


def summed(a: Any, b: Any) -> Any:
    """Add two tuples mode by mode; modes that one lacks, and a plain 0, add nothing. Raises Refused for others."""
    try:
        return add_coord(a, b)
    except CuteError:
        raise Refused(f"{write('coord', a)} and {write('coord', b)} cannot be added: they differ in nesting") from None


def checked_composed(raw: Any) -> ComposedLayout:
    """Make a composed layout of its three parts as they were written."""
    text = write("composed_layout", raw)
    if is_trivial(raw):
        raise Refused(f'"{text}" is its outer layout: write it as !cute.layout')
    outer = checked_layout(raw.outer)
    inner = raw.inner if isinstance(raw.inner, Swizzle) else checked_layout(raw.inner)
    first = coord_zero(outer.stride)
    total = summed(raw.offset, first)
    if isinstance(inner, Swizzle):
        if isinstance(total, tuple):
            raise Refused(f'"{text}": a swizzle takes an index, and not the coordinates of basis strides')
    elif isinstance(total, tuple) and not weakly_congruent(total, inner.shape):
        raise Refused(
            f'"{text}": the coordinates {write("coord", total)} are not nested as the inner shape, '
            f"{write('shape', inner.shape)}"
        )
    return ComposedLayout(inner, raw.offset, outer)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "stride": checked_stride,
    "layout": checked_layout,
    "tile": checked_tile,
    "composed_layout": checked_composed,
}


def raw(value: Any) -> Any:
    """Return a value as it would be read: its layouts unchecked."""
    if isinstance(value, Layout):
        return RawLayout(value.shape, value.stride)
    if isinstance(value, ComposedLayout):
        return RawComposed(raw(value.inner), value.offset, raw(value.outer))
    return tuple(map(raw, value)) if isinstance(value, tuple) else value


def leaves_of(value: Any, modes: bool = False) -> tuple[Any, ...]:
    """List the integers of a value in the order in which they are written, and None for each `_`. modes: with the
    indices of the modes that basis strides name."""
    if isinstance(value, tuple):
        return tuple(leaf for x in value for leaf in leaves_of(x, modes))
    if isinstance(value, (ComposedLayout, RawComposed)):
        return tuple(leaf for x in (value.inner, value.offset, value.outer) for leaf in leaves_of(x, modes))
    if isinstance(value, (Layout, RawLayout)):
        return leaves_of(value.shape, modes) + leaves_of(value.stride, modes)
    if isinstance(value, Swizzle):
        return (value.bits, value.base, value.shift)
    if isinstance(value, ScaledBasis):
        return (value.value, *(reversed(value.mode) if modes else ()))
    return (value,)


def is_static(value: Any) -> bool:
    """Return whether nothing of a value is known only at run time."""
    return not any(isinstance(leaf, Dynamic) for leaf in leaves_of(value))


__all__ = [
    "Refused", "checked", "checked_composed", "checked_layout", "checked_stride", "has_fraction", "is_static",
    "is_trivial", "leaves_of", "raw", "summed", "whole_numbers",
]  # fmt: skip
