# SPDX-License-Identifier: Apache-2.0
"""Dicts of kernels: tables, which the compiler looks up by keys that it knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

from ....seam import CuteError, is_static_class
from ....seam.marks.plain import is_plain_class
from ....seam.source.language import PRINT_KEYWORD, no_attribute, no_global, no_iteration, no_print, no_setitem


class Table(dict[Any, Any]):
    """A dict that a kernel writes down: it is read by its keys, and nothing else."""

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise CuteError(no_setitem("dict"))

    def __iter__(self) -> NoReturn:
        raise CuteError(no_iteration("dict"))

    def __getattribute__(self, name: str) -> Any:
        if name in _METHODS:
            raise CuteError(no_attribute("dict", name))
        return super().__getattribute__(name)


_METHODS = frozenset(("get", "items", "values", "pop", "popitem", "setdefault", "update", "clear", "copy", "fromkeys"))


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
