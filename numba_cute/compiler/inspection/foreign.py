# SPDX-License-Identifier: Apache-2.0
"""Numba's types that are none of this library's, by name and back."""

from __future__ import annotations

import functools
import re
from typing import Any

from ..ground.numba_cuda import types

_kept: dict[str, types.Type] = {}
_names: dict[types.Type, str] = {}


_SERIAL = re.compile(r"(?<=\w)\.\d+(?=\.|$)")  # in the names of this library's types


@functools.cache
def _of_numba() -> dict[str, types.Type]:
    """The types that Numba has names for in `numba.types`, by what they print as."""
    found: dict[str, types.Type] = {}
    for _, ty in sorted(vars(types).items()):
        if isinstance(ty, types.Type):
            found.setdefault(str(ty), ty)
    return found


def foreign_name(ty: Any) -> str:
    """Return what a Numba type is called: what it prints as, and "#2" and so on after it for further types of the
    process that print alike."""
    if ty in _names:
        return _names[ty]
    name = _SERIAL.sub("", str(ty))
    found, count = name, 1
    while _known(found, ty) != ty:
        count += 1
        found = f"{name}#{count}"
    _kept[found], _names[ty] = ty, found
    return found


def _known(name: str, default: Any) -> Any:
    return _kept.get(name) or _of_numba().get(name, default)


def foreign_of(name: str) -> Any:
    """Return the Numba type of this name: one that Numba has a name for, or that the process has printed; None of
    others."""
    return _known(name, None)
