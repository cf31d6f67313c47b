# SPDX-License-Identifier: Apache-2.0
"""Room on Python's stack for what calls deeply and often.

From 3.11 on Python keeps the frames of calls in pieces of 16 KB, and gives a piece back to the system as soon as the
call that needed it returns. A loop whose calls begin at the end of a piece asks the system for memory in each round: up
to a sixth of a compilation went there, as the depth of the user's own calls would have it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_WORDS = 70_000
"""The room that the frame below asks for. The piece that holds it is the next power of two, 1 MB. What is left, 460 KB,
is for all that it calls: a thousand calls within each other. No page of it is touched before it is used."""


def with_room(fn: F) -> F:
    """Decorate a function that, with all that it calls, shall run in one piece of the stack."""
    if sys.version_info < (3, 11):
        return fn

    @functools.wraps(fn)
    def call(*args: Any, **named: Any) -> Any:
        return _in_a_large_frame(fn, args, named)

    return call  # type: ignore[return-value]


def _in_a_large_frame(fn: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return fn(*args, **named)


_in_a_large_frame.__code__ = _in_a_large_frame.__code__.replace(co_stacksize=_WORDS)
