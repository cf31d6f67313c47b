# SPDX-License-Identifier: Apache-2.0
"""The steps of a kernel or device function, and the checks of them that run while it is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...seam.ground.records import dataclass
from ..ground.error import CuteError

E = TypeVar("E", bound=CuteError)


@dataclass(frozen=True)
class Step:
    """One statement of a kernel or device function, as the compiler sees it after typing.

    kind: "call" of `name` (a function of the library or a type, or a method's name, of variable `of`), "get" of
    attribute `name` of variable `of`, "alias" of `of`, "known" `name` of the source, "operator" `name` of Python on
    `args`, "item" `name` of `of` (None where it is not known), "tuple" of `args`, "phi" of `args`, of which the way
    here chooses, "round" of a `for` loop, of the iterator `of`, "argument" `name` of the function, or "other". target:
    the variable that it assigns. args, named: the variables that it passes. uses: all that it reads. region: equal in
    statements that always run one after the other. block: of the code (`Code`). calls: of an "other" that calls a
    device function, the `Code.function` of that.
    """

    kind: str
    target: str
    of: Any
    name: Any
    args: tuple[str, ...]
    named: dict[str, str]
    uses: set[str]
    region: int
    line: int
    block: int = 0
    calls: Any = None


@dataclass(frozen=True)
class Code:
    """A kernel or device function that is compiled.

    steps: its statements, by blocks. follows: by block, those that may come next, first the one for a true condition.
    conditions: by block, the variable that chooses. loops: by block that begins a round of a `for` loop or ends it, the
    iterator. value: gives what traced code would see in a variable, None if it is nothing of the library's. note: takes
    a likely mistake in words, and its line. threads: the most of a block, where that is known. is_kernel: whether it is
    one. function: the function of the user's, and the types of its arguments.
    """

    steps: list[Step]
    follows: dict[int, tuple[int, ...]]
    conditions: dict[int, str]
    loops: dict[int, str]
    value: Callable[[str], Any]
    note: Callable[[str, int], None]
    threads: int | None
    is_kernel: bool
    function: tuple[Any, tuple[Any, ...]]


def in_line(e: E, line: int) -> E:
    """Return an error that an audit raises, with the line of the step that it is of."""
    e.line = line  # type: ignore[attr-defined]
    return e


AUDITS: list[Callable[[Code], None]] = []
"""Checks of each function that is compiled. They raise CuteError, or call `Code.note`."""
