# SPDX-License-Identifier: Apache-2.0
"""Find the place of an error in a line of a kernel, and the types of the names there."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import Any

from ...seam.ground.places import Columns, columns_of
from .numba_cuda import types
from .places import Place

_MOST, _WIDTH = 4, 48
_failed: list[tuple[str, Place]] = []
"""The statements that could not be typed: the message and the place of each."""
_words: list[Callable[[Any], str | None]] = []


def described_by(words: Callable[[Any], str | None]) -> None:
    """Have a function say what a type of this library's is; None for other types."""
    _words.append(words)


def note_failed(text: str, loc: Any) -> None:
    """Note that a statement could not be typed, and what was said of it."""
    if isinstance(loc, Place):
        _failed.append((text, loc))


def forget() -> None:
    """Start a compilation."""
    _failed.clear()


def columns_at(loc: Any) -> Columns | None:
    """Return which columns of its line the expression at a place takes; None if unknown."""
    return columns_of(loc.code, loc.offset) if isinstance(loc, Place) else None


def columns(text: str, file: str, line: int) -> Columns | None:
    """Find which columns of a line an error is of: those of the expression there that could not be typed, or of the one
    name that its message quotes. None if unknown. text: of the error that Numba raised."""
    for said, place in reversed(_failed):
        if (place.filename, place.line) == (file, line) and said in text:
            return columns_at(place)
    return None


_QUOTED = re.compile(r"(?:name|attribute|argument) '(\w+)'")


def columns_of_name(said: str, file: str, line: int) -> Columns | None:
    """Find the name that a message says to be wrong, if a line has it once."""
    name = _QUOTED.search(said)
    found = [] if name is None else [*re.finditer(rf"\b{name[1]}\b", linecache.getline(file, line))]
    return found[0].span() if len(found) == 1 else None


def types_at(typed: Any, file: str, line: int, at: Columns) -> str:
    """Write the types of the variables that some columns of a line name, as far as they were found. typed: Numba's
    inference, or None."""
    said: dict[str, str] = {}
    names = re.findall(r"(?<![.\w])[A-Za-z_]\w*", linecache.getline(file, line)[slice(*at)])
    for name in names if typed is not None else ():
        found = [v for n, v in typed.typevars.items() if n.partition(".")[0] == name and v.defined]
        set_before = [v for v in found if getattr(v.define_loc, "line", 0) <= line]
        if set_before:
            said[name] = _said(set_before[-1].type)
    return ", ".join(f"{name}: {ty}" for name, ty in list(said.items())[:_MOST] if ty)


def _said(ty: Any) -> str:
    """Write a type; nothing of what is not a value, nor of a constant, which the source has."""
    if isinstance(ty, (types.Module, types.Dispatcher, types.Function, types.Literal)):
        return ""
    text = next(filter(None, (words(ty) for words in _words)), None) or str(ty)
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
