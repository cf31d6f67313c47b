# SPDX-License-Identifier: Apache-2.0
"""Kernels that a file's tests make alike: of one code, with the same in their closures and defaults.

A test that makes its kernel runs in two ways. The simulator takes the kernel of the first, which the front end has
judged already: to judge the second, which is the same, took a tenth of the suite's time.
"""

from __future__ import annotations

from pathlib import Path
from types import FunctionType
from typing import Any

_KNOWN: dict[int, list[Any]] = {}
"""The kernels of a file, by their code."""
_FILE: list[Path] = []


def first_alike(kernel: Any, file: Path) -> Any:
    """Return the first kernel of a test file that is like this one, which may be it."""
    if file not in _FILE:
        _FILE[:] = [file]
        _KNOWN.clear()
    if not hasattr(kernel, "py_func"):
        return kernel
    known = _KNOWN.setdefault(id(kernel.py_func.__code__), [])
    found = next((k for k in known if _alike(k, kernel)), None)
    if found is None:
        known.append(kernel)
    return kernel if found is None else found


def _alike(x: Any, y: Any) -> bool:
    """Say whether two values are the same to a kernel that holds them: of functions, whether they do the same."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if isinstance(x, FunctionType):
        return x.__code__ is y.__code__ and x.__globals__ is y.__globals__ and _alike(_held(x), _held(y))
    if hasattr(x, "py_func") and hasattr(x, "targetoptions"):
        return _alike((x.py_func, repr(x.targetoptions)), (y.py_func, repr(y.targetoptions)))
    if isinstance(x, (tuple, list)):  # an empty list is one that a test fills
        return len(x) == len(y) and (isinstance(x, tuple) or bool(x)) and all(map(_alike, x, y))
    if isinstance(x, dict):
        return bool(x) and list(x) == list(y) and all(map(_alike, x.values(), y.values()))
    if type(x).__hash__ is None:  # what may change
        return False
    try:
        return bool(x == y) and hash(x) == hash(y) and repr(x) == repr(y)
    except (AttributeError, TypeError, ValueError):  # it cannot be compared
        return False


def _held(function: FunctionType) -> tuple[Any, ...]:
    """Return what a function holds besides its code."""
    try:
        cells = tuple(c.cell_contents for c in function.__closure__ or ())
    except ValueError:  # a name that is not set yet
        return (object(),)
    marks = tuple((name, value) for name, value in sorted(vars(function).items()) if name == "__cute_cluster__")
    return (cells, function.__defaults__, tuple((function.__kwdefaults__ or {}).items()), marks)
