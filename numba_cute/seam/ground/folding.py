# SPDX-License-Identifier: Apache-2.0
"""Tracebacks that fit a screen: of an error that this library tells its user, the frames of the user's code alone.

What the user calls has a guard around it (`seam/guards/facade.py`, or `folding` here), which takes the library's frames
out of the exception's own traceback and lets it go on: so it is short wherever it is shown, in a script, a notebook or
a test. A fault of the library keeps all of its frames, and so does everything where NUMBA_CUTE_TRACEBACK=1.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from .backend import current_or
from .error import CuteError, InternalError
from .places import NOT_USERS

F = TypeVar("F", bound=Callable[..., Any])

OURS = frozenset({"numba_cute", "numba", "numba_cuda_mlir", "llvmlite", "greenlet"})
"""Packages whose frames are folded where they stand between the user's; of an error of this library's, all that are not
the user's."""
_LIBRARIES = frozenset({"xdsl", "tqdm", "torch"})
"""Libraries that this one calls, whose frames say nothing of its own errors either."""
_unfolded: list[Callable[[], bool]] = []


def unfolded_where(asked: Callable[[], bool]) -> None:
    """Ask that function whether tracebacks are to be whole."""
    _unfolded.append(asked)


def folded(e: BaseException) -> None:
    """Take the library's frames out of an exception's traceback, where it is to be shown to the user.

    It stays whole while a kernel is traced or simulated: who runs the kernel reads it, and folds it in the end."""
    if current_or(None) is not None or isinstance(e, InternalError):
        return
    told = isinstance(e, CuteError) or type(e).__module__.startswith("numba.")
    frames = list(_entries(e.__traceback__))
    if not told and (not frames or _package(frames[-1]) in OURS):
        return  # a fault
    if any(asked() for asked in _unfolded):
        return
    hidden = NOT_USERS | _LIBRARIES if told else OURS
    below: TracebackType | None = None
    for at in reversed(frames):
        if _package(at) not in hidden and not _is_made(at):
            below = TracebackType(below, at.tb_frame, at.tb_lasti, at.tb_lineno)
    if sys.version_info < (3, 11) and frames:
        frames[0].tb_next = below  # what is raised again there has the traceback that it was caught with
    e.__traceback__ = below
    if told:
        e.__suppress_context__ = True
        if e.__cause__ is not None and not _is_users(e.__cause__):
            e.__cause__ = None


def _entries(trace: TracebackType | None) -> Any:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _package(at: TracebackType) -> str:
    name = at.tb_frame.f_globals.get("__name__")  # kernels of this library go by a user's rules, and are not the user's
    return name.partition(".")[0] if isinstance(name, str) else ""


def _is_made(at: TracebackType) -> bool:
    """Say whether a frame is of a method that a dataclass is given, which has no source."""
    code = at.tb_frame.f_code
    return code.co_filename == "<string>" and code.co_name.startswith("__")


def _is_users(e: BaseException) -> bool:
    """Say whether an exception came out of code that is the user's."""
    hidden = NOT_USERS | _LIBRARIES
    return any(_package(at) not in hidden and not _is_made(at) for at in _entries(e.__traceback__))


class _Folded:
    """Folds what is raised inside of a `with`. Python adds no frame for what passes a `with` or a bare `raise`, and so
    that of the function which has the `with` is folded too."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            folded(error)


FOLDED = _Folded()


def folding(fn: F) -> F:
    """Make of a function that users call one whose errors are folded."""

    @functools.wraps(fn)
    def call(*args: Any, **named: Any) -> Any:
        with FOLDED:
            return fn(*args, **named)

    return call  # type: ignore[return-value]
