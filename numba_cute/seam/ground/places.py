# SPDX-License-Identifier: Apache-2.0
"""Where in the user's source an error is of, and the words that say so: those of both engines."""

from __future__ import annotations

import dis
import itertools
import linecache
import sys
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from .error import CuteError
from .packages import package_of

E = TypeVar("E", bound=CuteError)

_NOT_USERS = frozenset({"numba_cute", "numba", "numpy", "ml_dtypes", "llvmlite", "greenlet"}) | sys.stdlib_module_names
"""Packages whose lines are not what the user wrote."""


_OPERATIONS: set[CodeType] = set()
"""The code of traced functions: their errors are of the line that calls them."""


def note_operation(fn: Any) -> None:
    """Note that a function is one operation of kernels, whose own lines are not what is wrong in them."""
    code = getattr(fn, "__code__", None)
    if code is not None:
        _OPERATIONS.add(code)


def placed(text: str, kernel: str, file: str, line: int) -> str:
    """Write a message with the kernel, the file, the line and its source that it is of."""
    source = linecache.getline(file, line).strip()
    return f"{text}\n  in kernel {kernel}, {file}:{line}" + (f"\n    {source}" if source else "")


def users_line(trace: TracebackType | None) -> tuple[str, int] | None:
    """Return the file and line of the user's innermost frame of a traceback; None if it has none."""
    found = None
    while trace is not None:
        if _is_users(trace.tb_frame):
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return found


def _is_users(frame: FrameType) -> bool:
    name = package_of(frame.f_globals.get("__name__"))
    if frame.f_code in _OPERATIONS:
        return False
    made = frame.f_code.co_filename == "<string>" and frame.f_code.co_name.startswith("__")  # a dataclass's
    return name not in _NOT_USERS and not made


def definition_of(function: Any) -> tuple[str, int]:
    """Return the file of a function and the line of its `def`, or of its first decorator where there is no source."""
    code = function.__code__
    for line in itertools.count(code.co_firstlineno):
        source = linecache.getline(code.co_filename, line)
        if source.lstrip().startswith(("def ", "async def ")):
            return code.co_filename, line
        if not source:
            return code.co_filename, code.co_firstlineno
    raise AssertionError


def mark_placed(e: BaseException) -> None:
    """Note that an error says its place."""
    e.explained = True  # type: ignore[attr-defined]


def is_placed(e: BaseException) -> bool:
    """Return whether an error says its place already."""
    return getattr(e, "explained", False) is True


def at_line(e: E, file: str, line: int) -> E:
    """Return an error with the user's line that it is of."""
    e.place = (file, line)  # type: ignore[attr-defined]
    return e


def line_of(e: BaseException) -> tuple[str, int] | None:
    """Return the line that `at_line` gave an error, or that of the user's innermost frame; None if unknown."""
    return getattr(e, "place", None) or users_line(e.__traceback__)


def line_naming(code: CodeType, name: str) -> int | None:
    """Return the first line of a function's code that reads a global or closure variable of that name."""
    line = None
    for i in dis.get_instructions(code):
        line = i.positions.lineno if hasattr(i, "positions") and i.positions else i.starts_line or line
        if i.argval == name and i.opname.startswith(("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME")):
            return line
    return next((n for c in code.co_consts if isinstance(c, CodeType) for n in [line_naming(c, name)] if n), None)
