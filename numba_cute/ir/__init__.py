# SPDX-License-Identifier: Apache-2.0
"""The CuTe IR: the dialects `cute` and `cute_nvgpu` on xDSL, from kernels and to kernels. Needs `numba-cute[ir]`; its
types as text (`text`) stand without, and load nothing of it."""

from __future__ import annotations

import importlib
from types import FunctionType
from typing import TYPE_CHECKING

from ..seam.ground.folding import folding

if TYPE_CHECKING:
    from . import passes as passes
    from .from_kernels.module import from_kernel as from_kernel
    from .kernels import to_host as to_host, to_kernel as to_kernel, to_python as to_python
    from .module import Module as Module
    from .reading import parse as parse
else:
    _HOMES = {"Module": "module", "from_kernel": "from_kernels.module", "parse": "reading", "passes": ""}
    _HOMES |= dict.fromkeys(("to_host", "to_kernel", "to_python"), "kernels")

    def __getattr__(name: str) -> object:
        """Load what stands on xDSL when it is asked for."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            importlib.import_module("xdsl")
        except ModuleNotFoundError:
            from ..seam import CuteError

            raise CuteError(
                'the CuTe IR needs xDSL, which is not installed: pip install "numba-cute[ir]" (Python 3.11 or '
                "newer); cute.inspect_ptx lists a kernel's operations without it"
            ) from None
        found: object = importlib.import_module(".passes", __name__)
        if _HOMES[name]:
            found = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
        if isinstance(found, FunctionType):
            found = folding(found)
        return globals().setdefault(name, found)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})
