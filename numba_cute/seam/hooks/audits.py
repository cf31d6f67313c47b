# SPDX-License-Identifier: Apache-2.0
"""The steps of a kernel or device function, and the checks of them that run while it is compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from ..ground.error import CuteError

E = TypeVar("E", bound=CuteError)


@dataclasses.dataclass(frozen=True)
class Step:
    """One statement of a kernel or device function, as the compiler sees it after typing.

    kind: "call" of `name` (a function of the library, or a method's name, of variable `of`), "get" of attribute `name`
    of variable `of`, "alias" of `of`, or "other". target: the variable that it assigns. args, named: the variables
    that it passes. uses: all that it reads. region: equal in statements that always run one after the other.
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


def in_line(e: E, line: int) -> E:
    """Return an error that an audit raises, with the line of the step that it is of."""
    e.line = line  # type: ignore[attr-defined]
    return e


AUDITS: list[Callable[[list[Step], Callable[[str], Any]], None]] = []
"""Checks of each function that is compiled, given its steps and what traced code would see in a variable (None if it
is nothing of the library's). They raise CuteError."""
