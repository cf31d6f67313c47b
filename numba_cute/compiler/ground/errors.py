# SPDX-License-Identifier: Apache-2.0
"""One clear exception: a CuteError from traced code reaches the user as itself, with the kernel's own line.

Numba tries a call again as types become known, and reports an error only if it stands to the end; on the way it
copies texts and drops causes. So what traced code raised is kept here and found again by its text.
"""

from __future__ import annotations

import linecache
import re
from typing import Any

from numba.cuda.core.errors import TypingError
from numba.cuda.core.ir import Loc

from ... import config
from ...seam import CuteError
from ...seam.words import READ_ONLY_ARRAY

_raised: list[CuteError] = []
_READ_ONLY = re.compile("Cannot modify readonly array")
"""Numba's words for a store to a read-only array."""
_PLACE = re.compile(r" at (\S.*?) \((\d+)\)")


def as_typing_error(e: CuteError) -> TypingError:
    """Put an error in the form that Numba holds back until no type is missing."""
    _raised.append(e)
    return TypingError(str(e))


def located(e: CuteError, loc: Loc) -> CuteError:
    """Give an error the place of the kernel's statement that it is of."""
    e.loc = loc  # type: ignore[attr-defined]
    return e


def lies_before(error: BaseException, until: Loc) -> bool:
    """Say whether an error of Numba's is of that line of the kernel or of one before."""
    places = _PLACE.findall(str(error))
    return any(file == until.filename and int(line) <= until.line for file, line in places)


def forget() -> None:
    """Start a compilation: nothing was raised yet."""
    _raised.clear()


def explain(error: BaseException, py_func: Any) -> None:
    """Raise the CuteError behind `error`, if there is one, with the line of the kernel that caused it."""
    if getattr(error, "explained", False):
        return
    _missing_library(error)
    text = str(error)
    found = [e for e in _raised if str(e) in text]
    cute = error if isinstance(error, CuteError) else max(found, key=lambda e: len(str(e)), default=None)
    if cute is None and _READ_ONLY.search(text):
        cute = CuteError(READ_ONLY_ARRAY)
    if cute is None:
        return
    raised = type(cute)(f"{cute}{_where(text, error, py_func)}")
    raised.explained = True  # type: ignore[attr-defined]
    raise raised from (cute if config.current().traceback else None)


def _missing_library(error: BaseException) -> None:
    """Raise a CuteError if a library of CUDA's, which compiling needs, is not installed."""
    from cuda.pathfinder import DynamicLibNotFoundError

    at: BaseException | None = error
    while at is not None:
        if isinstance(at, DynamicLibNotFoundError):
            named = re.search(r"lib\w+|\bnv\w+", str(at))
            raised = CuteError(
                f"{named[0] if named else 'a library of CUDA'} was not found, and compiling a kernel needs it: install "
                "numba-cute[cu13] (numba-cute[cu12] for CUDA 12), or a CUDA toolkit; cute.simulate needs none of it"
            )
            raised.explained = True  # type: ignore[attr-defined]
            raise raised from at
        at = at.__cause__ or at.__context__


def _where(text: str, error: BaseException, py_func: Any) -> str:
    """Find the user's line: the first place that Numba's message names (the innermost call that failed); of an
    operator, which its message does not place, the one that it was typing."""
    named, loc = _PLACE.search(text), getattr(error, "loc", None)
    if isinstance(loc, Loc):
        file, line = loc.filename, loc.line
    else:
        file, line = (named[1], int(named[2])) if named is not None else _typed(error)
    if file is None:
        return f"\n  in kernel {py_func.__name__}"
    source = linecache.getline(file, line).strip()
    return f"\n  in kernel {py_func.__name__}, {file}:{line}" + (f"\n    {source}" if source else "")


def _typed(error: BaseException) -> tuple[Any, int]:
    """Find the file and line of the statement whose types were being found when `error` was raised; (None, 0) if
    unknown."""
    found: tuple[Any, int] = (None, 0)
    at = error.__traceback__
    while at is not None:
        try:
            loc = getattr(at.tb_frame.f_locals.get("self"), "loc", None)
        except CuteError:  # of a struct's method, whose fields nobody can be asked for any more
            loc = None
        if isinstance(loc, Loc):
            found = (loc.filename, loc.line)
        at = at.tb_next
    return found
