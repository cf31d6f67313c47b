# SPDX-License-Identifier: Apache-2.0
"""Prints of a kernel of the CuTe DSL while it is compiled, and which of them are shown."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from numba_cute.seam.ground.backend import current_or
from numba_cute.seam.ground.error import CuteError
from numba_cute.seam.marks.decorators import is_static, traced

NO_TEXT = (
    "a text of what is known only at run time: kernels make none; print(…) and an exception's message may hold it, and "
    "numbers are compared as they are"
)
PRINTS = "__cute_prints__"
"""The attribute of functions whose `print` is the DSL's."""


_spelled: list[Callable[[Any], str]] = []


def spelled_with(spell: Callable[[Any], str]) -> None:
    """Let `spell` write the types of objects, as the CuTe IR does, which stands above."""
    _spelled[:] = [spell]


class InIR:
    """The base of what has a type in CuTe's IR."""

    @property
    def type(self) -> str:
        """Give the type in the notation of CuTe's IR, as text; what is known only at run time is "?"."""
        (spell,) = _spelled
        return spell(self)

    @property
    def value(self) -> Any:
        """Give the object itself: files of the CuTe DSL hand on what its compiler has of it."""
        return self


def printing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function: its `print` tells, once, what is known while the kernel is compiled."""
    setattr(function, PRINTS, True)
    return function


def prints(function: Any) -> bool:
    """Say whether a function bears that mark."""
    return getattr(function, PRINTS, False) is True


@traced
def print(*words: Any, sep: str = " ", end: str = "\n") -> None:
    """Print while the kernel is compiled, once however many threads run it; the simulator prints what the first thread
    has. words: anything. sep, end: as for Python's."""
    backend = current_or(None)
    if backend is None or backend.tells():
        builtins.print(*words, sep=sep, end=end)


@traced
def text(x: Any) -> str:
    """Give `str(x)` of what is known while the kernel is compiled, with "?" for what is not."""
    return str(x)


@traced
def static_text(x: Any) -> str:
    """Give `str(x)` of what is static, for more than to be printed."""
    if not is_static(x):
        raise CuteError(NO_TEXT)
    return str(x)


@traced
def filled(form: str, *values: Any, **named: Any) -> str:
    """Give `form.format(…)` of what is known while the kernel is compiled, with "?" for what is not."""
    try:
        return form.format(*values, **named)
    except (TypeError, ValueError, IndexError, KeyError) as e:
        raise CuteError(f"{form!r}.format(…): {e}: give a value for each of its braces, in its format") from None


@traced
def static_filled(form: str, *values: Any, **named: Any) -> str:
    """Give the same of what is static, for more than to be printed."""
    if not is_static((*values, *named.values())):
        raise CuteError(NO_TEXT)
    return filled(form, *values, **named)


@traced
def joined(a: str, b: str) -> str:
    """Give two texts as one."""
    return a + b
