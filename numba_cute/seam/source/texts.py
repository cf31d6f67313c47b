# SPDX-License-Identifier: Apache-2.0
"""Texts of run-time numbers: while a kernel is compiled they show "?", so they may be told, and decide nothing."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..ground.packages import is_library
from ..marks.plain import is_users_frame
from ..marks.prints import NO_TEXT as NO_TEXT

_SHOWING = ("__repr__", "__str__", "__format__")
_TELLING = ("print", "printf")
_HEADERS = ("test", "iter", "target", "items", "args", "decorator_list", "subject", "bases")


_asked: list[bool] = []


@contextmanager
def asked() -> Iterator[None]:
    """Within it this library asks an object for its text because the user's code does, for more than to be told."""
    _asked.append(True)
    try:
        yield
    finally:
        _asked.pop()


def decides() -> bool:
    """Say whether the text that is asked for now is the user's for more than to be told: neither a message of this
    library's, nor for `print`, `raise` or `assert`."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if is_library(frame.f_globals.get("__name__") or ""):
            return bool(_asked)
        if is_users_frame(frame) and frame.f_code.co_name not in _SHOWING:
            return not is_told(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return False


@functools.lru_cache(maxsize=1024)
def is_told(file: str, line: int) -> bool:
    """Say whether what stands at a line of source only tells something, as `print` does; so too where there is no
    source."""
    found = list(_at(file, line))
    return all(found)


@functools.lru_cache(maxsize=16)
def _statements(file: str) -> list[ast.stmt]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def _at(file: str, line: int) -> Iterator[bool]:
    """Yield for each statement that has a part of its own at a line whether it only tells something."""
    for node in _statements(file):
        if not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        if not hasattr(node, "body"):
            yield _tells(node)
        elif any(_covers(part, line) for name in _HEADERS for part in _listed(getattr(node, name, None))):
            yield False


def _listed(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


def _covers(part: Any, line: int) -> bool:
    return any(
        isinstance(n, ast.expr) and n.lineno <= line <= (n.end_lineno or n.lineno)
        for n in (ast.walk(part) if isinstance(part, ast.AST) else ())
    )


def _tells(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Raise, ast.Assert)):
        return True
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name in _TELLING
