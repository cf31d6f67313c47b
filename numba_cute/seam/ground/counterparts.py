# SPDX-License-Identifier: Apache-2.0
"""Objects of packages that say the same as Numba does, as numba-cuda-mlir: what in Numba they stand for. Who knows such
a package adds how it is told (`TOLD`), once the package is loaded; without one, all is what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .error import CuteError

TOLD: list[Callable[[Any], Any]] = []
"""Functions that give what stands in Numba for an object, or the object. CuteError: nothing stands for it."""


def counterpart(value: Any) -> Any:
    """Return what stands in Numba for an object of another package's that says the same; any other object itself.
    CuteError: nothing stands for it."""
    for tell in TOLD:
        value = tell(value)
    return value


def if_known(value: Any) -> Any:
    """Return the counterpart of an object; itself where nothing stands for it, which is refused where it is used."""
    try:
        return counterpart(value) if TOLD else value
    except CuteError:
        return value
