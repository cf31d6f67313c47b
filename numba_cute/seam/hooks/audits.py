# SPDX-License-Identifier: Apache-2.0
"""The steps of a kernel or device function, and the checks of them that run while it is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import PurePath
from typing import Any, TypeVar

from ...seam.ground.records import dataclass
from ..ground.error import CuteError

E = TypeVar("E", bound=CuteError)


@dataclass(frozen=True)
class Spot:
    """A line of the user's. foreign: whether that stands in another file than the
    kernel, so that the line's number alone does not tell."""

    file: str
    line: int
    foreign: bool = False

    def __str__(self) -> str:
        return f"line {self.line} of {PurePath(self.file).name}" if self.foreign else f"line {self.line}"


@dataclass(frozen=True)
class Step:
    """One statement of a kernel or device function, as the compiler sees it after typing.

    kind: "call" of `name` (a function of the library or a type, or a method's name, of variable `of`), "get" of
    attribute `name` of variable `of`, "set" of it to `args`, "make" of an object whose fields are `named`, "alias" of
    `of`, "known" `name` of the source, "operator" `name` of Python on `args`, "item" `name` of `of` (None where it is
    not known), "tuple" of `args`, "phi" of `args`, of which the way here chooses, "round" of a `for` loop, of the
    iterator `of`, "argument" number `of` of the function, its `name`, "return" of `of`, or "other". target: the
    variable that it assigns. args, named: the variables that it passes. uses: all that it reads. block: of the code
    (`Code`). calls: what function of the user's a step calls.
    """

    kind: str
    target: str
    of: Any
    name: Any
    args: tuple[str, ...]
    named: dict[str, str]
    uses: set[str]
    at: Spot
    block: int = 0
    calls: Callee | None = None


Given = str | tuple[str, ...] | None
"""The variable that a parameter is given, several for one of a starred name, or None where that is not known."""


@dataclass(frozen=True)
class Callee:
    """A function of the user's that a step calls. given: by parameter."""

    body: Body
    given: tuple[Given, ...]


@dataclass(frozen=True)
class Body:
    """The body of a function. steps: its statements, by blocks. follows: by block, those that may come next, first the
    one for a true condition. conditions: by block, the variable that chooses. loops: by block that begins a round of a
    `for` loop or ends it, the iterator. value: gives what traced code would see in a variable, None if it is nothing of
    the library's."""

    steps: list[Step]
    follows: dict[int, tuple[int, ...]]
    conditions: dict[int, str]
    loops: dict[int, str]
    value: Callable[[str], Any]


@dataclass(frozen=True)
class Code(Body):
    """A function that is compiled. note: takes a likely mistake in words, and where it is. threads: the most of a
    block, where that is known. found: what one check finds that others ask for too."""

    note: Callable[[str, Spot], None]
    threads: int | None
    found: dict[str, Any] = field(default_factory=dict)


def at_spot(e: E, spot: Spot) -> E:
    """Return an error that an audit raises, with the place of the step that it is of."""
    e.place = (spot.file, spot.line)  # type: ignore[attr-defined]
    return e


AUDITS: list[Callable[[Code], None]] = []
"""Checks of each function that is compiled. They raise CuteError, or call `Code.note`."""
AUDITS_OF_KERNELS: list[Callable[[Code], None]] = []
"""Checks of a kernel together with the functions of the user's that it calls, as far as objects of the classes
`FOLLOWED` may go into them."""
FOLLOWED: set[type] = set()
