# SPDX-License-Identifier: Apache-2.0
"""Whose an exception is that comes out of code that is traced: the user's, this library's, or Python's, which cannot do
with a value of run time what the line asks.

Tracing gives way to Numba's compiler for three reasons alone, and for no other exception:

- a `Signal`: the code asks for what is known only at run time;
- a `CuteError`: an operation refuses what it is given while the code is traced; refused by both, the first stands;
- Python, or Numba, lacks the operation for what stands for a value of run time, or is an object of Numba's: a
  TypeError, AttributeError or NotImplementedError that no `raise` of the user's made, and no line of this library, or
  whatever Numba's own lines raise.
"""

from __future__ import annotations

import dis
import functools
from types import TracebackType
from typing import Any

from ...seam import CuteError, Signal
from ...seam.ground.error import InternalError, internal_error
from ...seam.ground.names import UnknownName
from ...seam.ground.packages import is_library_file, package_of
from ...seam.ground.places import at_line_of, line_of
from ...seam.guards.messages import of_assertion
from ...seam.source.language import words_of

_LACKING = (TypeError, AttributeError, NotImplementedError)
_STAND_INS = ("NumberLeaf", "ArrayView", "StructProxy", "RegFile", "VectorLeaf", "Later", "CUDADispatcher")
"""Classes of ours and of Numba's that Python's messages name, and users do not know."""
_NUMBA = frozenset({"numba", "numba_cuda"})


class Final(CuteError):
    """A refusal that stands whoever compiles the function."""


Final.__name__ = Final.__qualname__ = CuteError.__name__  # to users it is one
Final.__module__ = CuteError.__module__


def may_be_jitted(e: BaseException) -> bool:
    """Say whether Numba may compile a function for which tracing raised this: it says that tracing cannot go on, not
    that anything is wrong."""
    if isinstance(e, Signal):
        return True
    if isinstance(e, CuteError):
        return not isinstance(e, (InternalError, Final))
    if is_numbas(e):
        return True
    return isinstance(e, _LACKING) and not _is_ours(e) and not _is_raised(e)


def tells_more(e: BaseException) -> bool:
    """Say whether what tracing raised is what is wrong, where Numba refuses the function too."""
    if isinstance(e, Signal) or is_numbas(e):
        return False
    return isinstance(e, CuteError) or not any(name in str(e) for name in _STAND_INS)


def in_words(e: BaseException, callee: str) -> CuteError:
    """Return what is said of an exception that tracing a call ended in, with the user's line. callee: the name of what
    was called."""
    if isinstance(e, CuteError):
        return e
    if isinstance(e, Signal):
        return at_line_of(CuteError(str(e)), e)
    if _is_ours(e):
        return at_line_of(internal_error(callee, e), e)
    at = line_of(e)
    if type(e) is AssertionError and at is not None:
        return at_line_of(of_assertion(e, at), e)
    words = words_of(e)
    if words is not None and not _is_raised(e):
        return at_line_of(CuteError(words), e)
    said = f"{type(e).__name__}: {e}" if str(e) else type(e).__name__
    kind: Any = type(e)
    told: CuteError = _also(kind)(f"{callee} raised {said} while the kernel was compiled")
    return at_line_of(told, e)


@functools.cache
def _also(cls: Any) -> Any:
    """Return a class of errors of this library that an `except` of a class of Python's catches too."""

    def made(self: Any, *args: Any) -> None:
        Exception.__init__(self, *args)

    body = {"__init__": made, "__str__": Exception.__str__, "__module__": CuteError.__module__}
    try:
        return type(CuteError.__name__, (CuteError, cls), body)
    except TypeError:  # what C lays out otherwise
        return CuteError


def _last(e: BaseException) -> TracebackType | None:
    at = e.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at


def _innermost(e: BaseException) -> tuple[str, int]:
    at = _last(e)
    return ("", 0) if at is None else (at.tb_frame.f_code.co_filename, at.tb_lineno)


def _is_ours(e: BaseException) -> bool:
    """Say whether a line of this library raised an exception that is no refusal."""
    return not isinstance(e, UnknownName) and is_library_file(_innermost(e)[0])


def is_numbas(e: BaseException) -> bool:
    """Say whether a line of Numba's raised an exception."""
    at = _last(e)
    return at is not None and package_of(at.tb_frame.f_globals.get("__name__")) in _NUMBA


def _is_raised(e: BaseException) -> bool:
    """Say whether a `raise` of the user's made an exception: it is meant, not Python's."""
    at = _last(e)
    if at is None or is_numbas(e):
        return False
    code = at.tb_frame.f_code.co_code
    return at.tb_lasti >= 0 and dis.opname[code[at.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")
