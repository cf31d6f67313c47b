# SPDX-License-Identifier: Apache-2.0
"""Values as the types of the dialect write them in quotes: "(4,(2,?{div=8}))", "(8,64):(64,1)", "[4:1;_]",
"S<3,4,3> o 0 o (8,64):(64,1)".

A value is what the layout algebra computes with: ints, `Dynamic` and None (`_`), tuples of them, basis strides,
layouts, swizzles. A tile is a layout, None, or a tuple of tiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...layout.basis import ScaledBasis
from ...layout.layout import ComposedLayout, Layout, compact
from ...layout.swizzle import Swizzle
from ...seam import CuteError
from .leaves import Dynamic
from .ratios import written


class Malformed(CuteError):
    """The text in quotes is none of its kind."""


class NamedSwizzle(Swizzle):
    """A swizzle that keeps the numbers that it was written with, where they move nothing: S<0,0,0>."""

    def __post_init__(self) -> None:
        written = self.bits, self.base, self.shift
        super().__post_init__()
        for name, value in zip(("bits", "base", "shift"), written, strict=True):
            object.__setattr__(self, name, value)


class Unswizzled(NamedSwizzle):
    """The swizzle of a composed layout that the CuTe DSL prints as its outer layout alone: it moves nothing."""


_TOKEN = re.compile(r"\s*(?:(-?\d+)|(\?(?:\{[^}]*\})?)|([():;,\[\]@/<>_oSx]))")
_WIDTHS = {"i1", "i8", "i16", "i32", "i64"}


class Scanner:
    """Reads a text piece by piece."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, at = text, [], 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise Malformed(f"unexpected {text[at:].strip()[0]!r}")
            self.tokens.append(found[0].strip())
            at = found.end()
        self.at = 0

    def peek(self) -> str:
        """The next piece; "" at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> bool:
        """Pass over the next piece if it is one of these."""
        found = self.peek() in wanted and self.peek() != ""
        self.at += found
        return found

    def expect(self, wanted: str) -> None:
        """Pass over the next piece, which must be this one."""
        if not self.take(wanted):
            raise Malformed(f"expected {wanted!r} and got {self.peek() or 'the end'!r}")

    def number(self) -> int:
        """Read an integer."""
        found = self.peek()
        if not re.fullmatch(r"-?\d+", found):
            raise Malformed(f"expected an integer and got {found or 'the end'!r}")
        self.at += 1
        return fitting(found)


def fitting(digits: str) -> int:
    """Return the integer that digits write, which must fit 64 bits."""
    if len(digits) > 20 or not -(1 << 63) <= int(digits) < 1 << 63:
        raise Malformed(f"{digits[:20]} does not fit 64 bits")
    return int(digits)


def _dynamic(found: str) -> Dynamic:
    width, divisor = 32, 1
    for word in found[2:-1].split():
        if word in _WIDTHS:
            width = int(word[1:])
        elif re.fullmatch(r"div=[1-9]\d*", word):
            divisor = fitting(word[4:])
        else:
            raise Malformed(f"{word!r} is not a property of a run-time integer: give i1 to i64, or div=N")
    return Dynamic(width, divisor)


@dataclass(frozen=True)
class Undefined:
    """Stands where there is no integer: it is written as x."""

    def __repr__(self) -> str:
        return "x"


def _integer(s: Scanner) -> Any:
    if s.take("x"):
        return Undefined()
    if s.peek().startswith("?"):
        found = _dynamic(s.peek())
        s.at += 1
        return found
    return s.number()


def _coordinate(s: Scanner) -> Any:
    return None if s.take("_") else _integer(s)


def _stride(s: Scanner) -> Any:
    value = _integer(s)
    if type(value) is int and s.take("/"):
        value = written(value, s.number())
    path: list[int] = []
    while s.take("@"):
        path.insert(0, s.number())
    if not path:
        return value
    if isinstance(value, Undefined):
        raise Malformed("x is no basis stride")
    return ScaledBasis(value, tuple(path))


def _tuple(s: Scanner, leaf: Callable[[Scanner], Any], depth: int = 0) -> Any:
    if not s.take("("):
        return leaf(s)
    if depth > 64:
        raise Malformed("tuples are nested too deep")
    items: list[Any] = []
    if not s.take(")"):
        items.append(_tuple(s, leaf, depth + 1))
        while s.take(","):
            items.append(_tuple(s, leaf, depth + 1))
        s.expect(")")
    return tuple(items)


def _layout(s: Scanner) -> Any:
    shape = _tuple(s, _integer)
    if not s.take(":"):  # strides left out are column-major
        return RawLayout(shape, compact(shape))
    return RawLayout(shape, _tuple(s, _stride))


def _tile(s: Scanner, depth: int = 0) -> Any:
    if s.take("_"):
        return None
    if not s.take("["):
        return _layout(s)
    if depth > 64:
        raise Malformed("tiles are nested too deep")
    items = [_tile(s, depth + 1)]
    while s.take(";"):
        items.append(_tile(s, depth + 1))
    s.expect("]")
    return tuple(items)


def _swizzle(s: Scanner) -> Swizzle:
    s.expect("S")
    s.expect("<")
    bits = s.number()
    s.expect(",")
    base = s.number()
    s.expect(",")
    shift = s.number()
    s.expect(">")
    if bits < 0 or base < 0 or abs(shift) < bits or abs(shift) + bits + base > 32:
        raise Malformed(
            f"S<{bits},{base},{shift}> is not a swizzle of 32 bits: |shift| must be at least bits, and bits, base and "
            "|shift| together at most 32"
        )
    return Swizzle(bits, base, shift) if bits else NamedSwizzle(bits, base, shift)


def _composed(s: Scanner) -> Any:
    inner = _swizzle(s) if s.peek() == "S" else _layout(s)
    s.expect("o")
    offset = _tuple(s, _integer)
    s.expect("o")
    return RawComposed(inner, offset, _layout(s))


@dataclass(frozen=True)
class RawLayout:
    """A shape and strides as they were written: no layout yet, for nobody has checked them."""

    shape: Any
    stride: Any


@dataclass(frozen=True)
class RawComposed:
    """The three parts of a composed layout as they were written."""

    inner: Any
    offset: Any
    outer: RawLayout


def read(kind: str, text: str, printed: bool = False) -> Any:
    """Read a value of a kind. Layouts come as they were written, `checked.py` makes them. printed: whether the CuTe DSL
    wrote it, of whose composed layouts one without a swizzle is written as a layout. Raises Malformed."""
    s = Scanner(text)
    if printed and kind == "composed_layout" and "o" not in s.tokens:
        found = RawComposed(Unswizzled(0, 4, 3), 0, _layout(s))
    else:
        found = _READERS[kind](s)
    if s.peek():
        raise Malformed(f"{s.peek()!r} follows the end")
    return found


_READERS: dict[str, Callable[[Scanner], Any]] = {
    "int_tuple": lambda s: _tuple(s, _integer),
    "shape": lambda s: _tuple(s, _integer),
    "stride": lambda s: _tuple(s, _stride),
    "coord": lambda s: _tuple(s, _coordinate),
    "layout": _layout,
    "tile": _tile,
    "swizzle": _swizzle,
    "composed_layout": _composed,
}


def _written(x: Any) -> str:
    if isinstance(x, tuple):
        return "(" + ",".join(map(_written, x)) + ")"
    if isinstance(x, ScaledBasis):
        return "@".join([_written(x.value), *map(str, reversed(x.mode))])
    return "_" if x is None else str(x)


def write(kind: str, x: Any) -> str:
    """Write a value of a kind as its type does."""
    if isinstance(x, (ComposedLayout, RawComposed)):
        if isinstance(x.inner, Unswizzled):
            return write("layout", x.outer)
        inner = "swizzle" if isinstance(x.inner, Swizzle) else "layout"
        return f"{write(inner, x.inner)} o {_written(x.offset)} o {write('layout', x.outer)}"
    if isinstance(x, (Layout, RawLayout)):
        return f"{_written(x.shape)}:{_written(x.stride)}"
    if kind == "tile" and isinstance(x, tuple):
        return "[" + ";".join(write(kind, y) for y in x) + "]"
    return _written(x)


def body_end(text: str, start: int) -> int:
    """Return the end of a type's body that begins at `start`; `start` itself, if it has none."""
    if text[start : start + 1] != "<":
        return start
    depth, quoted = 0, False
    for i in range(start, len(text)):
        c = text[i]
        if c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c == "<") - (c == ">" and text[i - 1] != "-")
        if not depth:
            return i + 1
    return len(text)


def shown(kind: str, x: Any) -> str:
    """Write a value with the run-time numbers that a running program knows."""
    return write(kind, _settled(x))


def _settled(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_settled, x))
    if isinstance(x, Dynamic):
        return x if x.value is None else x.value
    if isinstance(x, ScaledBasis):
        return ScaledBasis(_settled(x.value), x.mode)
    if isinstance(x, (Layout, RawLayout)):
        return RawLayout(_settled(x.shape), _settled(x.stride))
    if isinstance(x, ComposedLayout):
        return RawComposed(_settled(x.inner), _settled(x.offset), _settled(x.outer))
    return x


__all__ = [
    "Malformed",
    "NamedSwizzle",
    "RawComposed",
    "RawLayout",
    "Undefined",
    "Unswizzled",
    "body_end",
    "fitting",
    "read",
    "shown",
    "write",
]
