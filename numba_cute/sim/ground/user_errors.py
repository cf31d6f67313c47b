# SPDX-License-Identifier: Apache-2.0
"""Prepare a kernel's error to leave the simulator: with the compiler's words, and the user's line."""

from __future__ import annotations

import os
import re
from dataclasses import FrozenInstanceError
from types import FrameType, TracebackType
from typing import Any

from ...seam import CuteError, Leaf
from ...seam.ground.error import internal_error
from ...seam.ground.names import UnknownName, explained
from ...seam.ground.naming import type_name
from ...seam.ground.places import definition_of, is_fault, is_placed, line_of, mark_placed, placed, users_line
from ...seam.guards.messages import READ_ONLY_ARRAY, of_assertion
from ...seam.marks.decorators import marked_classes
from ...seam.source.language import immutable, no_attribute, words_of
from .report import SimError, in_library

_PLACE = re.compile(r"\S:\d+ \(")
"""A line of the user's as reports write it (see `Place`)."""


def thread_error(e: Exception, kernel: str) -> Exception:
    """Return an error of a thread of `kernel`, by its name, in the words that the compiler has for it, with the user's
    line; itself where it is none of this library's."""
    e = _in_words(e, kernel)
    at = line_of(e)
    if isinstance(e, SimError) and _PLACE.search(str(e)):
        return e
    return e if at is None else _placed(e, kernel, *at)


def launch_error(e: Exception, kernel: Any) -> Exception:
    """Return an error of what a launch of `kernel` gives it, with the line that defines it, if it names no line yet.
    The user's own error passes as it is."""
    if is_fault(e):
        e = internal_error(f"kernel {kernel.__name__}", e).with_traceback(e.__traceback__)
    if isinstance(e, SimError) and _PLACE.search(str(e)):
        return e
    return _placed(e, kernel.__name__, *(getattr(e, "place", None) or definition_of(kernel)))


def _placed(e: Exception, kernel: str, file: str, line: int) -> Exception:
    if is_placed(e) or not isinstance(e, CuteError):
        return e
    made = type(e)(placed(str(e), kernel, file, line))
    made.__dict__.update(vars(e))
    mark_placed(made)
    return made.with_traceback(e.__traceback__)


def _in_words(e: Exception, kernel: str) -> Exception:
    """An exception of a kernel's own Python in the words that the compiler has for it."""
    frame, at = innermost(e.__traceback__), users_line(e.__traceback__)
    if isinstance(e, UnknownName) and len(e.args) == 2 and isinstance(e.args[0], Leaf):  # a number, as Numba has it
        owner, name = e.args
        return CuteError(no_attribute(type_name(type(owner).__name__), name)).with_traceback(e.__traceback__)
    if frame is not None and not in_library(frame.f_code):
        named = explained(e, marked_classes())
        if named is not e:
            return named.with_traceback(e.__traceback__)
    if type(e) is ValueError and str(e).endswith("is read-only"):  # NumPy says so of an array
        return CuteError(READ_ONLY_ARRAY).with_traceback(e.__traceback__)
    if type(e) is AssertionError and frame is not None and not in_library(frame.f_code) and at is not None:
        return of_assertion(e, at).with_traceback(e.__traceback__)
    if isinstance(e, FrozenInstanceError) and frame is not None and "self" in frame.f_locals:
        field = str(e).rpartition("field ")[2].strip("'")
        owner = type(frame.f_locals["self"]).__name__
        return CuteError(immutable(owner, field)).with_traceback(e.__traceback__)
    if isinstance(e, CuteError) or frame is None:
        return e
    if _is_internal(frame) and type(e).__module__ == "builtins":
        return internal_error(f"kernel {kernel}", e).with_traceback(e.__traceback__)
    found = None if _is_internal(frame) else words_of(e)
    return e if found is None else CuteError(found).with_traceback(e.__traceback__)


_OPERATORS = f"{os.sep}sim{os.sep}python{os.sep}"


def _is_internal(frame: FrameType) -> bool:
    """Return whether a frame is this library's, and none of those that compute what a kernel's operators give."""
    return in_library(frame.f_code) and _OPERATORS not in frame.f_code.co_filename


def innermost(trace: TracebackType | None) -> FrameType | None:
    """Return the innermost frame of a traceback."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame
