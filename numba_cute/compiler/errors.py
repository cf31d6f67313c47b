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

from .. import config
from ..seam import CuteError

_raised: list[CuteError] = []


def as_typing_error(e: CuteError) -> TypingError:
    """The error in the form that Numba holds back until no type is missing."""
    _raised.append(e)
    return TypingError(str(e))


def forget() -> None:
    """Start of a compilation: nothing was raised yet."""
    _raised.clear()


def explain(error: BaseException, py_func: Any) -> None:
    """If a CuteError is behind `error`, raise it with the line of the kernel that caused it."""
    if getattr(error, "explained", False):
        return
    text = str(error)
    found = [e for e in _raised if str(e) in text]
    cute = error if isinstance(error, CuteError) else max(found, key=lambda e: len(str(e)), default=None)
    if cute is None:
        return
    raised = type(cute)(f"{cute}{_where(text, py_func)}")
    raised.explained = True  # type: ignore[attr-defined]
    raise raised from (cute if config.current().traceback else None)


def _where(text: str, py_func: Any) -> str:
    """The user's line: the first place that Numba's message names (the innermost call that failed)."""
    place = re.search(r" at (\S.*?) \((\d+)\)", text)
    if place is None:
        return f"\n  in kernel {py_func.__name__}"
    source = linecache.getline(place[1], int(place[2])).strip()
    return f"\n  in kernel {py_func.__name__}, {place[1]}:{place[2]}" + (f"\n    {source}" if source else "")
