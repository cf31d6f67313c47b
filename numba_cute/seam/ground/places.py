# SPDX-License-Identifier: Apache-2.0
"""Find the place of an error in the user's source, and word it: for both engines."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import sys
import textwrap
from collections.abc import Collection
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from .bytecode import operations
from .error import OF_THE_SYSTEM, CuteError
from .packages import package_of

E = TypeVar("E", bound=CuteError)

NOT_USERS = (
    frozenset({"numba_cute", "numba", "numba_cuda_mlir", "numpy", "ml_dtypes", "llvmlite", "greenlet", "cuda"})
    | sys.stdlib_module_names
)
"""Packages whose lines are not what the user wrote."""


_OPERATIONS: set[CodeType] = set()
"""The code of traced functions: their errors are of the line that calls them."""


def note_operation(fn: Any) -> None:
    """Note that a function is one operation of kernels, whose own lines are not what is wrong in them."""
    code = getattr(fn, "__code__", None)
    if code is not None:
        _OPERATIONS.add(code)


Columns = tuple[int, int]
"""From which column of a line to which an expression reaches, from 0 on."""


def placed(text: str, kernel: str, file: str, line: int, at: Columns | None = None, types: str = "") -> str:
    """Write a message with the kernel, the file, the line and its source that it is of. at: the columns that are
    marked. types: is written behind the mark."""
    whole = linecache.getline(file, line).rstrip()
    source = whole.lstrip()
    made = f"{text}\n  in kernel {kernel}, {file}:{line}" + (f"\n    {source}" if source else "")
    if not source or at is None:
        return made
    start, end = (max(c - (len(whole) - len(source)), 0) for c in at)
    mark = " " * start + "^" * (min(end, len(source)) - start)
    return f"{made}\n    {mark}  {types}".rstrip() if mark.strip() else made


def columns_of(code: CodeType, offset: int) -> Columns | None:
    """Return which columns an instruction's expression takes; None where it takes several lines, or Python (3.10) does
    not say. offset: in bytes."""
    told = list(code.co_positions()) if hasattr(code, "co_positions") else []
    line, last, start, end = told[offset // 2] if 0 <= offset // 2 < len(told) else (None,) * 4
    if line is None or line != last or start is None or end is None:
        return None
    text = linecache.getline(code.co_filename, line).encode()  # which the columns count
    return len(text[:start].decode(errors="ignore")), len(text[:end].decode(errors="ignore"))


def users_line(trace: TracebackType | None) -> tuple[str, int] | None:
    """Return the file and line of the user's innermost frame of a traceback; None if it has none."""
    found = _users_innermost(trace)
    return None if found is None else (found.tb_frame.f_code.co_filename, found.tb_lineno)


def _users_innermost(trace: TracebackType | None) -> TracebackType | None:
    found = None
    while trace is not None:
        if _is_users(trace.tb_frame):
            found = trace
        trace = trace.tb_next
    return found


def _is_users(frame: FrameType) -> bool:
    if frame.f_code in _OPERATIONS:
        return False
    made = frame.f_code.co_filename == "<string>" and frame.f_code.co_name.startswith("__")  # a dataclass's
    return _package(frame) not in NOT_USERS and not made


def _package(frame: FrameType) -> str:
    return package_of(frame.f_globals.get("__name__"))


def is_users_error(e: BaseException, own: Collection[str] = ()) -> bool:
    """Return whether an exception came out of code that is the user's. own: packages that are not the user's either."""
    trace = e.__traceback__
    while trace is not None:
        if _package(trace.tb_frame) not in NOT_USERS and _package(trace.tb_frame) not in own:
            return True
        trace = trace.tb_next
    return False


_OURS = frozenset({"numba_cute", "numba", "llvmlite", "greenlet"})


def is_fault(e: BaseException) -> bool:
    """Return whether an exception is one of Python's that a line of this library's, or of what stands under it, raised
    by mistake; or libNVVM's, which refuses what it is given."""
    if type(e).__module__ == "cuda.bindings.nvvm":
        return True
    at = e.__traceback__
    if at is None or not isinstance(e, Exception) or isinstance(e, (CuteError, *OF_THE_SYSTEM)):
        return False
    while at.tb_next is not None:
        at = at.tb_next
    return type(e).__module__ == "builtins" and _package(at.tb_frame) in _OURS


def users_call(frame: FrameType | None, outermost: Any = None) -> tuple[str, int] | None:
    """Return the file and line of the user's call that a frame runs in: of the frame itself, or outwards of it, up to
    a call of the function `outermost`."""
    while frame is not None and _package(frame) in NOT_USERS:
        if outermost is not None and frame.f_code is outermost.__code__:
            return None
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


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


def at_line(e: E, file: str, line: int, at: Columns | None = None) -> E:
    """Return an error with the user's line that it is of, and its columns."""
    e.place, e.columns = (file, line), at  # type: ignore[attr-defined]
    return e


def syntax_of(fn: Any) -> tuple[ast.Module, int]:
    """Return the syntax of a function's source, its own where it wraps another, and the number of the first line.
    OSError, SyntaxError: there is none. What was given to `exec` has none: since Python 3.13 the text of `python -c`
    stands in its place, under the same name."""
    file, first = fn.__code__.co_filename, fn.__code__.co_firstlineno
    if file == "<string>":
        raise OSError("source code not available: it was given to exec")
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)[first - 1 :]  # `inspect` looks for the module by the files of all
    if not lines:
        raise OSError("could not get source code")
    try:
        return _parsed(_indented(lines)), first
    except SyntaxError:
        return _parsed(inspect.getblock(lines)), first


def _parsed(lines: list[str]) -> ast.Module:
    return ast.parse(textwrap.dedent("".join(lines)))


_BEGINS = ("def ", "async def ")


def _indented(lines: list[str]) -> list[str]:
    """Return the lines of a function by how far they are indented, in a tenth of the time that its tokens take; what
    ends too early, in brackets or in a text, has no syntax. SyntaxError: the lines begin with something else."""
    if not lines[0].lstrip().startswith(("@", *_BEGINS)):
        raise SyntaxError
    outside = len(lines[0]) - len(lines[0].lstrip())
    end = next((i for i, line in enumerate(lines, 1) if line.lstrip().startswith(_BEGINS)), 0)
    for i, line in enumerate(lines[end:], end + 1):
        text = line.lstrip()
        if text and not text.startswith("#"):
            if len(line) - len(text) <= outside:
                break
            end = i
    return lines[:end]


def at_line_of(e: E, other: BaseException) -> E:
    """Return an error with the user's line that another one came from, if that has one."""
    found = line_of(other)
    return e if found is None else at_line(e, *found, columns_in(other))


def line_of(e: BaseException) -> tuple[str, int] | None:
    """Return the line that `at_line` gave an error, or that of the user's innermost frame; None if unknown."""
    return getattr(e, "place", None) or users_line(e.__traceback__)


def columns_in(e: BaseException) -> Columns | None:
    """Return the columns of the line that `line_of` gives; None if unknown."""
    if getattr(e, "place", None) is not None:
        return getattr(e, "columns", None)
    found = _users_innermost(e.__traceback__)
    return None if found is None else columns_of(found.tb_frame.f_code, found.tb_lasti)


def line_naming(code: CodeType, name: str) -> int | None:
    """Return the first line of a function's code that reads a global or closure variable of that name."""
    for o in operations(code):
        if o.value == name and o.name in ("LOAD_GLOBAL", "LOAD_DEREF"):
            return o.line
    return next((n for c in code.co_consts if isinstance(c, CodeType) for n in [line_naming(c, name)] if n), None)
