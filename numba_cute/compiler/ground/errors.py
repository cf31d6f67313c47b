# SPDX-License-Identifier: Apache-2.0
"""One clear exception: a CuteError from traced code reaches the user as itself, with the kernel's own line.

Numba tries a call again as types become known, and reports an error only if it stands to the end; on the way it
copies texts and drops causes. So what traced code raised is kept here and found again by its text.
"""

from __future__ import annotations

import copy
import os
import re
from types import CodeType
from typing import Any, TypeVar

from ... import config
from ...seam import CuteError, Signal, refused
from ...seam.ground.error import InternalError, internal_error
from ...seam.ground.places import (
    Columns,
    at_line,
    at_line_of,
    columns_in,
    definition_of,
    is_fault,
    is_placed,
    line_naming,
    line_of,
    mark_placed,
    placed,
)
from ...seam.guards.messages import READ_ONLY_ARRAY
from ...seam.marks.decorators import HOW_STATIC
from . import carets
from .carets import columns, columns_at, columns_of_name, types_at
from .numba_cuda import Loc, TypingError
from .origins import inference_of, origins
from .refusals import refusal

E = TypeVar("E", bound=CuteError)
_raised: list[CuteError] = []
_READ_ONLY = re.compile("Cannot modify readonly array")
"""Numba's words for a store to a read-only array."""
_NUMBA = f"{os.sep}numba{os.sep}"
_PLACE = re.compile(r" at (\S.*?) \((\d+)\)")


def as_typing_error(e: CuteError) -> TypingError:
    """Put an error in the form that Numba holds back until no type is missing. What is kept of it has no traceback,
    whose frames hold all of a typing that failed, unless tracebacks are asked for."""
    _raised.append(e if isinstance(e, InternalError) or config.current().traceback else at_line_of(copy.copy(e), e))
    return TypingError(str(e))


def located(e: E, loc: Loc) -> E:
    """Give an error the place of the kernel's statement that it is of."""
    return at_line(e, loc.filename, loc.line, columns_at(loc))


def lies_before(error: BaseException, until: Loc) -> bool:
    """Say whether an error of Numba's is of that line of the kernel or of one before."""
    places = _PLACE.findall(str(error))
    return any(file == until.filename and int(line) <= until.line for file, line in places)


def forget() -> None:
    """Start a compilation: nothing was raised yet."""
    _raised.clear()
    carets.forget()


def explain(error: BaseException, py_func: Any) -> None:
    """Raise the CuteError behind `error`, if there is one, with the line of the kernel that caused it."""
    if is_placed(error):
        return
    if isinstance(error, Signal):
        error = refused(error)
    _missing_library(error)
    text = str(error)
    found = [e for e in _raised if str(e) in text]
    cute = error if isinstance(error, CuteError) else max(found, key=lambda e: len(str(e)), default=None)
    faults = [e for e in _raised if isinstance(e, InternalError)]
    if faults and not isinstance(cute, InternalError):  # whatever else was refused for it
        cute = faults[0]
    if cute is None and _READ_ONLY.search(text):
        cute = CuteError(READ_ONLY_ARRAY)
    if cute is None:
        cute = refusal(error)
    if cute is None and is_fault(error):
        cute = at_line_of(internal_error(f"kernel {py_func.__name__}", error), error)
    if cute is None:
        return
    file, line = _where(text, error, cute, py_func)
    at = _columns(text, error, cute, file, line)
    types = "" if at is None else types_at(inference_of(error), file, line, at)
    came = origins(error, file, line) if HOW_STATIC in text else ""
    raised = type(cute)(placed(str(cute), py_func.__name__, file, line, at, types) + came)
    mark_placed(raised)
    raise raised from (cute if config.current().traceback else None)


def _missing_library(error: BaseException) -> None:
    """Raise a CuteError if a library of CUDA's, which compiling needs, is not installed."""
    from cuda.pathfinder import DynamicLibNotFoundError

    at: BaseException | None = error
    seen: set[int] = set()  # causes may go round: one that was raised again while it was handled
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        if isinstance(at, DynamicLibNotFoundError):
            named = re.search(r"lib\w+|\bnv\w+", str(at))
            raised = CuteError(
                f"{named[0] if named else 'a library of CUDA'} was not found, and compiling a kernel needs it: install "
                "numba-cute[cu13] (numba-cute[cu12] for CUDA 12), or a CUDA toolkit; cute.simulate needs none of it"
            )
            mark_placed(raised)
            raise raised from at
        at = at.__cause__ or at.__context__


def _where(text: str, error: BaseException, cute: CuteError, py_func: Any) -> tuple[str, int]:
    """Find the user's line: that of the traced Python that raised it, if that is the user's; the first place that
    Numba's message names (the innermost call that failed); of an operator, which its message does not place, the one
    that it was typing; the kernel's own."""
    within = line_of(cute)
    if within is not None:
        return within
    loc = getattr(error, "loc", None)
    if isinstance(loc, Loc) and _NUMBA not in loc.filename:
        return loc.filename, loc.line
    named = (found for found in _PLACE.findall(text) if _NUMBA not in found[0])
    file, line = next(named, (None, 0))
    if file is not None:
        return file, int(line)
    return _typed(error) or line_shown(text, py_func) or _naming(text, py_func.__code__) or definition_of(py_func)


def _columns(text: str, error: BaseException, cute: CuteError, file: str, line: int) -> Columns | None:
    """Find which columns of the user's line an error is of; None if unknown."""
    named = columns_of_name(str(cute), file, line)
    if named is not None:
        return named
    if line_of(cute) == (file, line):
        return columns_in(cute)
    at = _typing(error)
    if at is not None and (at.filename, at.line) == (file, line):
        return columns_at(at)
    return columns(text, file, line)


_SHOWN = re.compile(r'File "([^"]+)", line (\d+)')
_NAME = re.compile(r"name '(\w+)'")


def line_shown(text: str, py_func: Any) -> tuple[str, int] | None:
    """Find the line of the kernel's file that Numba's message shows; None if it shows none."""
    file = py_func.__code__.co_filename
    for shown, line in _SHOWN.findall(text):
        if os.path.abspath(shown) == os.path.abspath(file):
            return file, int(line)
    return None


def _naming(text: str, code: CodeType) -> tuple[str, int] | None:
    """Find the line of the kernel that says the name that a message is of; None if there is none."""
    name = _NAME.search(text)
    line = None if name is None else line_naming(code, name[1])
    return None if line is None else (code.co_filename, line)


def _typed(error: BaseException) -> tuple[str, int] | None:
    """Find the file and line of the statement whose types were being found when `error` was raised; None if
    unknown."""
    found = _typing(error)
    return None if found is None else (found.filename, found.line)


def _typing(error: BaseException) -> Loc | None:
    """Find the place of that statement."""
    found = None
    at = error.__traceback__
    while at is not None:
        try:
            loc = getattr(at.tb_frame.f_locals.get("self"), "loc", None)
        except CuteError:  # of a struct's method, whose fields nobody can be asked for any more
            loc = None
        if isinstance(loc, Loc) and _NUMBA not in loc.filename:
            found = loc
        at = at.tb_next
    return found
