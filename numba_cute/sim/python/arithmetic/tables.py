# SPDX-License-Identifier: Apache-2.0
"""Dicts of kernels: tables, which the compiler looks up by keys that it knows."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, NoReturn

from ....seam import CuteError, is_static_class
from ....seam.marks.plain import is_plain_class
from ....seam.source.language import (
    NO_DICT,
    PRINT_KEYWORD,
    no_global,
    no_print,
    no_such_key,
)
from .number import Number

JITTED = "__cute_jitted__"
"""The global of a function's that says that Numba alone compiles it."""


def table(items: dict[Any, Any]) -> dict[Any, Any]:
    """A dict that a kernel's function writes down: a table where Numba compiles the function."""
    return Table(items) if sys._getframe(1).f_globals.get(JITTED) else items


class Table(dict[Any, Any]):
    """A dict that a kernel writes down: it is read by static keys, and gone over, and nothing else."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_static(key))

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(_static(key))

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_static(key), default)

    def __missing__(self, key: Any) -> NoReturn:
        raise CuteError(no_such_key(key, list(self)))

    def _refuse(self, *_: Any) -> NoReturn:
        raise CuteError(NO_DICT)

    __setitem__ = __delitem__ = __or__ = __eq__ = __ne__ = _refuse
    __hash__ = None

    def __getattribute__(self, name: str) -> Any:
        if name in _METHODS:
            raise CuteError(NO_DICT)
        return super().__getattribute__(name)


_METHODS = frozenset(n for n in dir(dict) if not n.startswith("_")) - {"keys", "values", "items", "get"}


def _static(key: Any) -> Any:
    if isinstance(key, Number):
        raise CuteError(NO_DICT)
    return key


class Unusable:
    """What stands for a global of the host's that Numba has no type for: any use of it is refused."""

    def __init__(self, name: str, value: Any) -> None:
        object.__setattr__(self, "words", no_global(name, type(value).__name__))

    def _refuse(self, *_: Any) -> NoReturn:
        raise CuteError(object.__getattribute__(self, "words"))

    __getattribute__ = __setattr__ = __getitem__ = __setitem__ = __iter__ = _refuse
    __len__ = __contains__ = __call__ = __bool__ = _refuse


def is_unusable(value: Any) -> bool:
    """Return whether Numba has no type for a global of this value, whatever it is used for."""
    kind = type(value)
    return kind in (dict, set, SimpleNamespace) or is_plain_class(kind)


def print_of(*args: Any, **named: Any) -> None:
    """What stands for `print` where Numba compiles it."""
    if named:
        raise CuteError(PRINT_KEYWORD)
    for x in args:
        if is_static_class(type(x)):
            raise CuteError(no_print(type(x).__name__))
    print(*args)
