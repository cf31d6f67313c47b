# SPDX-License-Identifier: Apache-2.0
"""Find what users have taught Numba, and which code may change from one process to the next."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import types as python
from typing import Any

from ...seam.ground.packages import package_of
from .numba import cpu_implementations, cpu_templates
from .numba_cuda import cudadecl, cudaimpl, imputils, templates

LIBRARIES = frozenset(
    ("numba_cute", "numba", "numba_cuda", "numba_cuda_mlir", "llvmlite", "numpy", "cuda", "ml_dtypes")
)
"""Packages whose versions are part of every key (see host/disk_cache.py)."""
_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib", "stdlib", "platstdlib")})


def registered() -> list[Any]:
    """List what users have taught Numba's typing and lowering, as by `@overload`: no kernel names it."""
    lists = _entries()
    sizes = tuple(map(len, lists))
    if _taught.sizes != sizes:
        for entries, known, found in zip(lists, _taught.sizes or [0] * len(lists), _taught.found):
            found.extend(f for entry in entries[known:] for f in _users_functions(entry))  # they only grow
        _taught.sizes = sizes
        _taught.functions = [f for found in _taught.found for f in found]
    return _taught.functions


def _entries() -> list[Any]:
    typing = (templates.builtin_registry, cpu_templates.builtin_registry, cudadecl.registry)
    lowering = (imputils.builtin_registry, cpu_implementations.builtin_registry, cudaimpl.registry)
    return [
        *(e for r in typing for e in (r.functions, r.attributes, r.globals)),
        *(e for r in lowering for e in (r.functions, r.getattrs, r.setattrs, r.casts, r.constants)),
    ]


class _Taught:
    """Keep the users' functions found so far. sizes: how many entries of each registry's list were read. found: the
    functions of each list. functions: those of all lists."""

    def __init__(self) -> None:
        self.sizes: tuple[int, ...] = ()
        self.found: list[list[Any]] = [[] for _ in _entries()]
        self.functions: list[Any] = []


_taught = _Taught()


def _users_functions(entry: Any) -> list[Any]:
    """Give the functions and classes of the user's in an entry of one of Numba's registries."""
    found = []
    for part in entry if isinstance(entry, tuple) else (entry,):
        if isinstance(part, _CODE):
            given = getattr(part, "_overload_func", part)
            if isinstance(given, _CODE) and (_is_users(given.__module__) or _is_users(_home(given))):
                found.append(given)
    return found


_CODE = (type, python.FunctionType)


def _home(part: Any) -> Any:
    """Give the name of the module in which a function was written, whatever a decorator says; None of a class."""
    return part.__globals__.get("__name__") if isinstance(part, python.FunctionType) else None


def _is_users(module: Any) -> bool:
    return module is not None and may_change(module)


@functools.cache
def may_change(name: Any) -> bool:
    """Say whether a module is code of the user's, which may change: not this library's, Numba's, nor installed."""
    root = package_of(name)
    if root in LIBRARIES or root in sys.stdlib_module_names and root != "__main__" or root in sys.builtin_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or not file.startswith(_INSTALLED)
