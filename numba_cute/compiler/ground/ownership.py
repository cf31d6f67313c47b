# SPDX-License-Identifier: Apache-2.0
"""The owner of a function: this library, which compiles it then, or plain Numba.

All that the library changes in Numba asks here first, so that a function in which nothing is of numba_cute (no
argument, no global or closure value that its code names, no function that it calls) goes through Numba as if numba_cute
had never been imported. What a function of this library calls is compiled as this library's for it (`pipeline`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ... import seam
from ...seam.ground.bytecode import operations
from ...seam.ground.packages import package_of
from .numba_cuda import types

_PACKAGE = __name__.split(".")[0]
_COMPILERS = ("numba", "numba_cuda_mlir")
"""Packages whose functions are theirs, whatever these name."""
_MARKS = ("__cute_cluster__", "__cute_compiled__")
"""Attributes of functions that this library's decorators made something of."""


def owns(py_func: Any, argtypes: Iterable[Any]) -> bool:
    """Say whether a function, called with arguments of these types, is this library's to compile."""
    return any(map(is_own_type, argtypes)) or _function(py_func, set())


def is_own(value: Any) -> bool:
    """Say whether a kernel's argument is of this library, holds what is, or is a function that names it."""
    return _value(value, frozenset(), set())


HOLDING = (tuple, list, dict, FunctionType, type, functools.partial)
"""Classes of arguments of which each object is looked at."""


def _is_package(name: Any) -> bool:
    return isinstance(name, str) and (name == _PACKAGE or name.startswith(_PACKAGE + "."))


def is_own_type(ty: Any) -> bool:
    """Say whether a Numba type is of this library, or holds such a type."""
    if isinstance(ty, types.Omitted):
        return _value(ty.value, frozenset(), set())
    if isinstance(ty, types.BaseTuple):
        return _is_package(type(ty).__module__) or any(map(is_own_type, ty))
    if isinstance(ty, types.Optional):
        return is_own_type(ty.type)
    if isinstance(ty, types.Dispatcher):
        return _function(ty.dispatcher.py_func, set())
    return _is_package(type(ty).__module__)


_NAMES = {f"{verb}_{kind}": i for i, kind in enumerate(("GLOBAL", "ATTR")) for verb in ("LOAD", "STORE", "DELETE")}
"""Operations that name a global, 0, or an attribute, 1."""


@functools.lru_cache(maxsize=4096)
def names_of(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Return the globals and the attributes that code names, and the code of the functions inside it. Not what
    no Python can name: a tool put it there for itself (pytest, `@pytest_ar`), and would be looked at as a whole."""
    found: tuple[set[str], set[str]] = (set(), set())
    for o in operations(code):
        at = _NAMES.get(o.name)
        if at is not None and o.value.isidentifier():
            found[at].add(o.value)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            for names, inner in zip(found, names_of(const)):
                names |= inner
    return frozenset(found[0]), frozenset(found[1])


def _function(fn: Any, seen: set[int]) -> bool:
    """Say whether a function is of this library, is marked by it, or names something of it."""
    if not isinstance(fn, FunctionType) or id(fn) in seen:
        return False
    seen.add(id(fn))
    if package_of(fn.__module__) in _COMPILERS:  # which names of ours what is patched there alone
        return False
    if _is_package(fn.__module__) or seam.is_traced(fn) or any(hasattr(fn, mark) for mark in _MARKS):
        return True
    names, attributes = names_of(fn.__code__)
    reached = [fn.__globals__[name] for name in names if name in fn.__globals__]
    reached += [cell.cell_contents for cell in fn.__closure__ or () if _is_filled(cell)]
    return any(_value(v, attributes, seen) for v in reached)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - asking is the test
    except ValueError:
        return False
    return True


def _value(value: Any, attributes: frozenset[str], seen: set[int]) -> bool:
    """Say whether a value that code names is of this library, or leads to something that is by the attributes it
    names."""
    if isinstance(value, ModuleType):
        return _is_package(value.__name__) or _members(value, vars(value), attributes, seen)
    if isinstance(value, type):
        return _is_own_class(value) or any(_members(c, vars(c), attributes, seen) for c in value.__mro__[:-1])
    if isinstance(value, FunctionType):  # plain Numba calls none that is not compiled
        return _function(value, seen)
    compiled = getattr(value, "py_func", None)
    if isinstance(compiled, FunctionType):
        return _function(compiled, seen)
    if isinstance(value, (tuple, list)):
        return any(_value(x, attributes, seen) for x in value)
    if isinstance(value, dict):
        return any(_value(x, attributes, seen) for x in value.values())
    return _is_own_class(type(value))


def _members(owner: Any, held: Any, attributes: frozenset[str], seen: set[int]) -> bool:
    """Say whether an attribute that code names leads from a module or class to something of this library."""
    if id(owner) in seen:
        return False
    seen.add(id(owner))
    return any(_value(held[name], attributes, seen) for name in attributes if name in held)


def _is_own_class(cls: type) -> bool:
    """Say whether a class is of this library, is marked by it, or builds on one that is."""
    return any(
        _is_package(c.__module__) or seam.is_frozen_class(c) or seam.is_struct_class(c) for c in cls.__mro__[:-1]
    )
