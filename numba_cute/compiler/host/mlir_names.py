# SPDX-License-Identifier: Apache-2.0
"""What stands in numba-cuda for an object of numba-cuda-mlir, whose modules are copies of numba-cuda's: the object that
is found there under the same name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numba
from numba import cuda
from numba.cuda import types

from ...seam import CuteError
from ...seam.ground.packages import package_of

PACKAGE = "numba_cuda_mlir"
_MODULES = {"numba_cuda": cuda, "cuda": cuda, "types": types}
"""By what follows the package in a module's name, what has the same names in numba-cuda."""
_MISSING = object()


def of_numba(value: Any) -> Any:
    """Return what numba-cuda has under the name of an object of numba-cuda-mlir; any other object itself. CuteError: it
    has nothing of that name."""
    if not is_of_package(value):
        return value
    found = _found(value)
    if found is _MISSING:
        raise CuteError(
            f"{_name_of(value)} of {PACKAGE}: numba-cute compiles its kernels by numba-cuda, which has no such thing"
        )
    return found


def is_of_package(value: Any) -> bool:
    """Say whether an object is of numba-cuda-mlir: a module, function or class of it, or an object of such a class."""
    if isinstance(value, ModuleType):
        return package_of(value.__name__) == PACKAGE
    if isinstance(value, (FunctionType, type)):
        return package_of(value.__module__) == PACKAGE and _lies_there(value)
    return package_of(type(value).__module__) == PACKAGE


def _lies_there(value: Any) -> bool:
    """Say whether a function or class is what its names say: one that wraps another has the names of that."""
    return _walked(sys.modules.get(value.__module__), value.__qualname__.split(".")) is value


def _found(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return _of_path(value.__name__.split(".")[1:])
    if isinstance(value, _class("numba_cuda.args", "ArgHint")):  # cuda.In, cuda.Out, cuda.InOut
        return getattr(cuda, type(value).__name__)(value.value)
    if isinstance(value, _class("numba_cuda.types", "Type")):
        return numba_type(value)
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(name, str) and isinstance(module, str) and package_of(module) == PACKAGE:
        return _of_path([*module.split(".")[1:], *name.split(".")])
    return _MISSING


def _of_path(path: list[str]) -> Any:
    if not path:
        return numba
    return _walked(_MODULES.get(path[0]), path[1:])


def _walked(at: Any, path: list[str]) -> Any:
    """Follow names from a module or class on, and import modules on the way."""
    for name in path:
        found = getattr(at, name, _MISSING)
        if found is _MISSING and isinstance(at, ModuleType):
            try:
                found = importlib.import_module(f"{at.__name__}.{name}")
            except ImportError:
                return _MISSING
        at = found
    return _MISSING if at is None else at


def _class(module: str, name: str) -> Any:
    return getattr(sys.modules[f"{PACKAGE}.{module}"], name)


def _name_of(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return str(name if isinstance(name, str) else value)


def numba_type(t: Any) -> Any:
    """Return numba-cuda's type for one of numba-cuda-mlir's, of a signature or that a kernel names. CuteError: it has
    none."""
    if package_of(type(t).__module__) != PACKAGE:
        return t
    kind = type(t).__name__
    if kind == "Array":
        return types.Array(numba_type(t.dtype), t.ndim, t.layout, readonly=not t.mutable, aligned=t.aligned)
    if kind in ("UniTuple", "Tuple"):
        return types.BaseTuple.from_types(tuple(map(numba_type, t)))
    if kind.endswith("Literal"):
        return types.literal(t.literal_value)
    for name in _names_in_types(t):
        found = getattr(types, name, None) or getattr(cuda, name, None)
        if found is not None:
            return found
    raise CuteError(f"type {t} of {PACKAGE}: numba-cute compiles its kernels by numba-cuda, which has no such type")


def _names_in_types(t: Any) -> Iterator[str]:
    for module in (f"{PACKAGE}.types", f"{PACKAGE}.cuda"):
        held = vars(sys.modules[module]) if module in sys.modules else {}
        yield from (name for name, x in held.items() if x is t)
