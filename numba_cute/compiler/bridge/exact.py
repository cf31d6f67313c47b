# SPDX-License-Identifier: Apache-2.0
"""Prove that an object never changes, and find a key that tells it from all others, by type and bits.

Python's `==` takes 1 for True, 1.0 for 1 and -0.0 for 0.0, and what compares equal or has a hash may change all the
same. Types, plans and templates keep only what `exact` gives a key of. Of anything else `changing` says what it holds
now.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import struct
from collections.abc import Iterator, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes, seam
from ...seam.ground.packages import LIBRARY
from ...seam.marks.host_objects import python_of
from ...seam.marks.plain import fields_of, is_plain_class
from ..ground.numba_cuda import CUDADispatcher

_ALONE = (int, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), CodeType)
"""Types whose objects never change, and are one if they are equal."""
_BITS = {float: struct.Struct("d"), complex: struct.Struct("dd")}
_STANDARD = ("builtins", "enum", "math", "operator", "_operator", "functools", "numbers", "numpy", "ml_dtypes")


class Changes(Exception):
    """An object that may change while its identity, or what `==` says of it, stays."""


class Same:
    """The key of an object that is told from others by which it is; the key keeps it."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.of is self.of

    def __hash__(self) -> int:
        return id(self.of)


def exact(x: Any, ours: bool = False) -> Any:
    """Return a key of an immutable object, which no other object has that differs in type or in a bit. Changes: it is
    not proved that it is immutable. ours: it is for this library, which hands functions and classes on to kernels, and
    calls none: they are only themselves."""
    kind: Any = type(x)
    if kind in _ALONE:
        return kind, x
    if kind is tuple or (isinstance(x, tuple) and is_ours(kind) and not hasattr(x, "__dict__")):
        return kind, tuple([exact(y, ours) for y in x])
    if kind in _BITS:
        return kind, _BITS[kind].pack(*((x.real, x.imag) if kind is complex else (x,)))
    if kind is dtypes.Scalar:
        return kind, x.dtype.name, exact(x.value), x.divisor
    if isinstance(x, np.generic) and not isinstance(x, (np.void, np.object_)):
        return kind, x.dtype.str, x.tobytes()
    if kind is range or kind is slice:
        return kind, exact(x.start), exact(x.stop), exact(x.step)
    if _is_one(x) or (ours and isinstance(x, (FunctionType, CUDADispatcher, type, enum.Enum))):
        return Same(x)
    if is_ours(kind) and (seam.is_frozen_class(kind) or _is_frozen(kind)):
        return kind, tuple([exact(getattr(x, name), ours) for name in _fields(kind)])
    raise Changes(x)


def is_exact(x: Any, ours: bool = False) -> bool:
    """Say whether an object has a key."""
    try:
        exact(x, ours)
    except Changes:
        return False
    return True


def is_ours(cls: Any) -> bool:
    """Say whether a class and its bases are this library's, the ready-made kernels' too, or Python's own: nobody sets
    their attributes."""
    return all(_is_of_nobody(c.__module__) for c in cls.__mro__)


def _is_of_nobody(module: Any) -> bool:
    return isinstance(module, str) and (module.partition(".")[0] == LIBRARY or module in (*_STANDARD, "typing", "abc"))


@functools.cache
def _is_frozen(cls: Any) -> bool:
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


@functools.cache
def _fields(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def _is_one(x: Any) -> bool:
    """Say whether an object is only itself, and nobody's to change: an element type, a class, function or member of an
    enumeration of this library or Python's."""
    if isinstance(x, (dtypes.DType, np.dtype)):
        return not isinstance(x, np.dtype) or x.names is None
    if isinstance(x, type):
        return is_ours(x)
    if isinstance(x, enum.Enum):
        return is_ours(type(x))
    if isinstance(x, BuiltinFunctionType):
        return x.__self__ is None or isinstance(x.__self__, ModuleType)
    return isinstance(x, FunctionType) and is_own_function(x)


def is_own_function(fn: FunctionType) -> bool:
    """Say whether a function is this library's own, or Python's, and closes over nothing that changes."""
    if not _is_of_nobody(fn.__globals__.get("__name__")):
        return False
    return all(value is fn or is_exact(value) for _, value in _cells(fn))


_MOST = 4000
"""Parts of an object that are looked at; of more, which object it is must do."""


class Part(NamedTuple):
    """A part of an object that may be replaced. holder, name: the attribute that gives it; name is "" if no attribute
    does, as for an item. value: its value now."""

    holder: Any
    name: str
    value: Any


def changing(x: Any) -> list[Part]:
    """Return what may be replaced in an object, and in what that holds: of functions their code, closures and defaults,
    of partials, methods, objects, lists and dictionaries what they hold. Nothing is, in what is proved immutable."""
    found: list[Part] = []
    seen: set[int] = set()
    todo = [x]
    while todo and len(found) < _MOST:
        one = todo.pop()
        if id(one) not in seen and not is_exact(one):
            seen.add(id(one))
            parts = list(_parts(one))
            found += parts
            todo += (p.value for p in parts)
    return found


def state(parts: Sequence[Part]) -> tuple[Any, ...]:
    """Return a key of what parts of an object are now."""
    return tuple((p.name, mark(p.value)) for p in parts)


def mark(x: Any) -> Any:
    """Return the key of an object, by its identity if it may change."""
    try:
        return exact(x)
    except Changes:
        return Same(x)


def _parts(x: Any) -> Iterator[Part]:
    fn = x if isinstance(x, FunctionType) else python_of(x)
    if fn is not None:
        yield from (Part(fn, name, getattr(fn, name)) for name in ("__code__", "__defaults__", "__kwdefaults__"))
        yield from (Part(cell, "cell_contents", value) for cell, value in _cells(fn))
    elif isinstance(x, functools.partial):
        yield from _items(x, (x.func, *x.args, *_flat(x.keywords)))
    elif isinstance(x, MethodType):
        yield from _items(x, (x.__func__, x.__self__))
    elif isinstance(x, dict):
        yield from _items(x, _flat(x))
    elif isinstance(x, (tuple, list)):
        yield from _items(x, x)
    elif is_plain_class(type(x)):
        yield from _items(x, _flat(fields_of(x)))


def _items(holder: Any, values: Sequence[Any]) -> Iterator[Part]:
    return (Part(holder, "", value) for value in (len(values), *values))


def _flat(x: dict[Any, Any]) -> tuple[Any, ...]:
    return tuple(part for item in x.items() for part in item)


def _cells(fn: FunctionType) -> Iterator[tuple[Any, Any]]:
    for cell in fn.__closure__ or ():
        with contextlib.suppress(ValueError):  # not set yet, as the function's own name
            yield cell, cell.cell_contents
