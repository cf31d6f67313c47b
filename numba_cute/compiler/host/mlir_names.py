# SPDX-License-Identifier: Apache-2.0
"""The names of numba-cuda-mlir, whose modules are copies of numba-cuda's: for each object, the one of numba-cuda that
is found there under the same name."""

from __future__ import annotations

import functools
import importlib
import sys
from types import FunctionType, ModuleType
from typing import Any

from ...seam import CuteError
from ...seam.ground.naming import described
from ...seam.ground.packages import package_of
from ..ground.numba import cuda
from ..ground.numba_cuda import numpy_support, types

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
    return package_of(type(value).__module__) == PACKAGE and not isinstance(value, _arrays_and_streams())


def _arrays_and_streams() -> Any:
    """Return the classes of that package's whose objects launches take as they are."""
    held, driver = "numba_cuda.cudadrv.devicearray", "numba_cuda.cudadrv.driver"
    return _class(held, "DeviceNDArrayBase"), _class(driver, "Stream"), _class(driver, "Event")


def _lies_there(value: Any) -> bool:
    """Say whether a function or class is what its names say: one that wraps another has the names of that."""
    return _walked(sys.modules.get(value.__module__), value.__qualname__.split(".")) is value


def _found(value: Any) -> Any:
    if isinstance(value, ModuleType):
        found = _of_path(value.__name__.split(".")[1:])
        return _types_of(value) if found is types else found
    if isinstance(value, _class("numba_cuda.args", "ArgHint")):  # cuda.In, cuda.Out, cuda.InOut
        return getattr(cuda, type(value).__name__)(value.value)
    if isinstance(value, _class("numba_cuda.types", "Type")):
        return numba_type(value)
    module, name = _names(value)
    if isinstance(name, str) and isinstance(module, str) and package_of(module) == PACKAGE:
        return _of_path([*module.split(".")[1:], *name.split(".")])
    return _MISSING


@functools.cache
def _root() -> ModuleType:
    """Return what stands for the package itself: `numba`, as far as the two have the same in it."""
    made = ModuleType("numba")
    vars(made).update({n: of_numba(sys.modules[f"{PACKAGE}.{n}"]) for n in ("cuda", "types")})
    return made


@functools.cache
def _types_of(module: ModuleType) -> ModuleType:
    """Return numba-cuda's module of types, with those names that mean others in that package (`i8`) as there."""
    of_package = {n: t for n, t in vars(module).items() if isinstance(t, _class("numba_cuda.types", "Type"))}
    others = {
        n: _plain_types()[str(t)] for n, t in of_package.items() if hasattr(types, n) and str(t) in _plain_types()
    }
    if all(getattr(types, n) is t for n, t in others.items()):
        return types  # type: ignore[no-any-return]
    made = ModuleType(types.__name__)
    vars(made).update(vars(types) | others)
    return made


def _names(value: Any) -> tuple[Any, Any]:
    """Return the module and the name of a function, a class, or an object that stands for one, as an intrinsic: others,
    as the driver, may ask for a GPU when they are asked for an attribute."""
    if isinstance(value, (FunctionType, type)):
        return value.__module__, value.__qualname__
    held = getattr(value, "__dict__", {})
    return held.get("__module__"), held.get("__qualname__")


def _of_path(path: list[str]) -> Any:
    if not path:
        return _root()
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
    name = value.__name__ if isinstance(value, ModuleType) else _names(value)[1]
    return name if isinstance(name, str) else described(value)


def type_of_array(array: Any) -> Any:
    """Return numba-cuda's type for a device array, or a record, of that package's."""
    t, of_items = array._numba_type_, numpy_support.from_dtype(array.dtype)
    if type(t).__name__ != "Array":
        return of_items
    return types.Array(of_items, t.ndim, t.layout, readonly=not t.mutable, aligned=t.aligned)


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
    found = _plain_types().get(str(t))
    if found is None and vars(sys.modules[f"{PACKAGE}.cuda"]).get(str(t)) is t:  # float32x4, a stub in numba-cuda
        found = getattr(cuda, str(t), None)
    if found is None:
        raise CuteError(f"type {t} of {PACKAGE}: numba-cute compiles its kernels by numba-cuda, which has no such type")
    return found


@functools.cache
def _plain_types() -> dict[str, Any]:
    """By what it is called, each type that `types` has a name for."""
    return {str(t): t for t in vars(types).values() if isinstance(t, types.Type)}
