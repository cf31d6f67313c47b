# SPDX-License-Identifier: Apache-2.0
"""A module's values in Python: an expression, a tuple of them, an object with fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .spelling import sequence

ATOM, POWER, UNARY, TIMES, PLUS, SHIFT, BIT, COMPARE, NOT, AND, OR, CHOICE = range(100, 40, -5)
"""The precedence of expressions; BIT stands for `&`, `^` and `|` alike, which are never mixed bare."""


class Expr(str):
    """An expression. level: how tightly it holds together. raw: of an integer that is cast to its width, the
    expression before the cast: sums and products of it may wait with the cast. static: whether it is known while the
    kernel is compiled."""

    __slots__ = ("level", "raw", "static")
    level: int
    raw: Expr
    static: bool

    def __new__(cls, text: str, level: int = ATOM, raw: Expr | None = None, static: bool = False) -> Expr:
        made = super().__new__(cls, text)
        made.level = level
        made.static = static
        made.raw = made if raw is None else raw
        return made

    def at(self, level: int) -> str:
        """Write it as an operand of what holds `level` tightly."""
        return str(self) if self.level >= level else f"({self})"

    def named(self, name: str) -> Expr:
        """Return the variable that holds it."""
        return Expr(name, static=self.static)


class Vector(Expr):
    """A vector. shape: how its elements are nested; None for those one after the other. splat: what all of them are,
    and their type, if they are one."""

    __slots__ = ("shape", "splat")
    shape: Any
    splat: tuple[str, str] | None

    def __new__(cls, text: str, level: int = ATOM, shape: Any = None, splat: tuple[str, str] | None = None) -> Vector:
        """Make one."""
        made: Any = super().__new__(cls, text, level)
        made.shape, made.splat = shape, splat
        return made  # type: ignore[no-any-return]

    def named(self, name: str) -> Vector:
        """Return the variable that holds it."""
        return Vector(name, shape=self.shape)


Nested = Any
"""A tuple tree: an Expr, None, or a tuple of such."""


@dataclass(frozen=True)
class Tree:
    """A tuple, leaf by leaf. whole: the expression that gives all of it, if there is one."""

    leaves: Nested
    whole: Expr | None = None

    def text(self) -> Expr:
        """Write it."""
        if self.whole is not None:
            return self.whole
        return _nested_text(self.leaves)

    def flat(self) -> list[Any]:
        """List its leaves in order."""
        return list(_flat(self.leaves))


def _nested_text(leaves: Nested) -> Expr:
    if isinstance(leaves, tuple):
        return Expr(sequence(map(_nested_text, leaves)))
    return Expr("None") if leaves is None else leaves


def _flat(leaves: Nested) -> Iterator[Any]:
    if isinstance(leaves, tuple):
        for x in leaves:
            yield from _flat(x)
    else:
        yield leaves


def rebuilt(like: Nested, leaves: Iterator[Any]) -> Nested:
    """Return leaves nested as a tuple is."""
    return tuple(rebuilt(x, leaves) for x in like) if isinstance(like, tuple) else next(leaves)


@dataclass(frozen=True)
class Object:
    """An atom, or what is tiled: a static object, and the fields that were set in it. kind: of its type."""

    text: Expr
    kind: str
    fields: dict[str, Any] = field(default_factory=dict)

    def with_field(self, name: str, value: Any) -> Object:
        """Return it with one more field, or another value of one."""
        return Object(self.text, self.kind, {**self.fields, name: value})


_WORD = re.compile(r"[A-Za-z_]\w*")


def names_in(text: str) -> set[str]:
    """List the names that an expression holds."""
    return set(_WORD.findall(text))


__all__ = [
    "AND", "ATOM", "BIT", "CHOICE", "COMPARE", "Expr", "NOT", "OR", "Object", "PLUS", "SHIFT", "TIMES", "Tree",
    "UNARY", "Vector", "names_in", "rebuilt",
]  # fmt: skip
