# SPDX-License-Identifier: Apache-2.0
"""Write types in the listings as the CuTe IR does, which stands above the compiler and is imported when asked."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ...seam.marks.prints import spelled_with

_loads: list[Callable[[], Any]] = []


def spelled_by(load: Callable[[], Any]) -> None:
    """Let `load()` give the module whose `spell` writes descriptions, and whose `has_form` says what is an object of
    CuTe's IR."""
    _loads[:] = [load]


def spelling() -> Any:
    """Return that module."""
    (load,) = _loads
    return load()


def _type_of(x: Any) -> str:
    """Write the type of an object that traced code has. Numba is loaded by then, and not by this file."""
    objects = importlib.import_module(".objects", __package__)
    text: str = spelling().spell(objects.described_object(x))
    return text


spelled_with(_type_of)
