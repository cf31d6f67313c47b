# SPDX-License-Identifier: Apache-2.0
"""Python's own functions, `math` and NumPy's types as kernels see them where each lane runs for itself: what is
undefined stays so, and integers wrap."""

from __future__ import annotations

import builtins
import math
from types import ModuleType
from typing import Any

import numpy as np

from .undefined import Undefined


def passing(f: Any) -> Any:
    """`f` of numbers, which gives what is undefined for what is undefined."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) is Undefined:
                return a
        return f(*args, **kwargs)

    return call


class PassingType(type):
    """A type of numbers that converts what is undefined to itself; else it is the type that it stands for."""

    real: Any

    def __call__(cls, value: Any = 0, *more: Any) -> Any:
        if type(value) is Undefined:
            return value
        try:
            return cls.real(value, *more) if more else cls.real(value)
        except OverflowError:  # in a kernel integers wrap
            if not issubclass(cls.real, np.integer):
                raise
            return np.asarray(int(value) & (1 << 64) - 1, np.uint64).astype(cls.real)[()]

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real, name)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.real)

    def __subclasscheck__(cls, x: Any) -> bool:
        return issubclass(x, cls.real)


class PassingModule:
    """`math` or NumPy: its functions and types of numbers pass on what is undefined."""

    def __init__(self, real: ModuleType) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if isinstance(found, type) and issubclass(found, np.generic):
            found = passing_type(found)
        elif self._real is math and callable(found):
            found = passing(int if name == "trunc" else found)  # NumPy's scalars have no __trunc__
        elif isinstance(found, np.ufunc):
            found = passing(found)
        setattr(self, name, found)
        return found


def passing_builtins() -> dict[str, Any]:
    """What stands for Python's own functions in a kernel."""
    space = dict(vars(builtins))
    space |= {kind.__name__: passing_type(kind) for kind in (int, float)}
    space |= {f.__name__: passing(f) for f in (min, max, pow)}
    space["type"] = _Type
    return space


class _TypeOfTypes(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = type(*args, **kwargs)
        return passing_type(found) if len(args) == 1 and issubclass(found, (int, float, np.generic)) else found

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, type)


class _Type(metaclass=_TypeOfTypes):
    """`type` as kernels see it: of numbers it gives what `int`, `float` and NumPy's types are to them."""


_TYPES: dict[Any, Any] = {}


def passing_type(real: Any) -> Any:
    """A type of Python's or NumPy's numbers as kernels see it; another type is itself."""
    if real not in (int, float) and not issubclass(real, np.generic):
        return real
    if real not in _TYPES:
        _TYPES[real] = _made(real)
    return _TYPES[real]


def _made(real: Any) -> Any:
    space: dict[str, Any] = {"real": real}
    dtype = real if issubclass(real, np.generic) else {int: np.int64, float: np.float64}.get(real)
    if dtype is not None:
        space |= {"numpy": dtype, "dtype": np.dtype(dtype)}
    return PassingType(real.__name__, (), space)
