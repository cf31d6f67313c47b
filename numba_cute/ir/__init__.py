# SPDX-License-Identifier: Apache-2.0
"""The CuTe IR: the dialects `cute` and `cute_nvgpu` on xDSL, from kernels and to kernels. Needs `numba-cute[ir]`; its
types as text (`spelling`) stand without."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .module import Module as Module, parse as parse

_SHOWN = {"Module": "module", "parse": "module"}
"""What the IR shows, and the file that it is of, which needs xDSL and is imported when somebody asks."""


def __getattr__(name: str) -> Any:
    if name not in _SHOWN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_SHOWN[name]}", __name__), name)
