# SPDX-License-Identifier: Apache-2.0
"""CuTe's notation, read: what `repr` of a layout, swizzle or tuple gives."""

from __future__ import annotations

import re
from typing import Any

from ..seam import CuteError, traced
from ..seam.ground.naming import described, shown
from ..seam.guards import kinds
from .basis import ScaledBasis
from .layout import ComposedLayout, Layout
from .swizzle import Swizzle

__all__ = ["layout_from_str"]

_SWIZZLE = re.compile(r"S<(-?\d+),(-?\d+),(-?\d+)>")
_LEAF = re.compile(r"_|-?\d+(?:@\d+)*")


@traced
def layout_from_str(notation: str) -> Any:
    """Read `notation`, the inverse of `repr` for everything static: a layout "(4,8):(1,4)", "S<3,4,3> o 0 o
    (8,64):(64,1)", a swizzle, or an int tuple.

    >>> cute.layout_from_str("(4,(2,3)):(6,(3,1))")((3, (1, 2)))
    23
    """
    if not isinstance(notation, str):
        raise CuteError(f"layout_from_str: notation {described(notation)}: give a text")
    _limit(notation)
    parts = [p.strip() for p in notation.split(" o ")]
    if len(parts) == 1:
        return _function(parts[0], notation)
    if len(parts) % 2 == 0:
        raise _error(notation, "a composed layout is written inner o offset o outer")
    layout = _function(parts[0], notation)
    for offset, outer in zip(parts[1::2], parts[2::2]):
        layout = ComposedLayout(layout, _tuple(offset, notation), _function(outer, notation))
    return layout


def _limit(notation: str) -> None:
    """Refuse what is nested deeper, or has larger numbers, than layouts are."""
    level = deepest = 0
    for sign in notation:
        level += (sign == "(") - (sign == ")")
        deepest = max(deepest, level)
    if deepest > kinds.DEEPEST:
        raise CuteError(f"layout_from_str: {shown(notation)} is nested {deepest} deep: at most {kinds.DEEPEST}")
    if any(len(digits) > 20 for digits in re.findall(r"\d+", notation)):
        raise CuteError(f"layout_from_str: {shown(notation)} has a number of more than 64 bits")


def _error(notation: str, why: str) -> CuteError:
    return CuteError(f"{notation!r} is not a layout in CuTe's notation: {why}")


def _function(part: str, notation: str) -> Any:
    swizzle = _SWIZZLE.fullmatch(part)
    if swizzle:
        return Swizzle(*map(int, swizzle.groups()))
    shape, colon, stride = part.partition(":")
    return Layout(_tuple(shape, notation), _tuple(stride, notation)) if colon else _tuple(part, notation)


def _tuple(part: str, notation: str) -> Any:
    value, end = _read(part, 0, notation)
    if end != len(part):
        raise _error(notation, f"nothing may follow at {part[end:]!r}")
    return value


def _read(s: str, at: int, notation: str) -> tuple[Any, int]:
    if not s.startswith("(", at):
        found = _LEAF.match(s, at)
        if not found:
            raise _error(notation, f"an integer, _ or ( is expected at {s[at:]!r}")
        return _leaf(found.group()), found.end()
    items: list[Any] = []
    at += 1
    while not s.startswith(")", at):
        if items:
            if not s.startswith(",", at):
                raise _error(notation, f", or ) is expected at {s[at:]!r}")
            at += 1
        item, at = _read(s, at, notation)
        items.append(item)
    return tuple(items), at + 1


def _leaf(word: str) -> Any:
    if word == "_":
        return None
    value, *modes = map(int, word.split("@"))
    return ScaledBasis(value, tuple(reversed(modes))) if modes else value
