# SPDX-License-Identifier: Apache-2.0
"""Watch the calls of this library that a plain function of the user's makes, while Python runs it for a compiler: what
Numba compiles has statements to read, but this function has only its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

now: Any = None
"""Whose `called(function, args, named, result)` is told of each call that returns, in its `thread`; None while nobody
watches. It is not told of calls that the library makes within one."""


def watched(fn: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a function of the library's, and tell of it."""
    watcher = now
    if watcher is None or watcher.thread != threading.get_ident():
        return fn(*args, **named)
    with watching(None):
        result = fn(*args, **named)
    watcher.called(fn, args, named, result)
    return result


@contextmanager
def watching(watcher: Any) -> Iterator[None]:
    """Let another one watch, or nobody."""
    global now
    before, now = now, watcher
    try:
        yield
    finally:
        now = before
