# SPDX-License-Identifier: Apache-2.0
"""What the library offers to call, found by introspection: functions, classes, and the members of their instances."""

from __future__ import annotations

import enum
import functools
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numba_cute as cute

OPERATORS = (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__floordiv__",
    "__rfloordiv__", "__mod__", "__rmod__", "__and__", "__rand__", "__or__", "__ror__", "__xor__", "__rxor__",
    "__lshift__", "__rlshift__", "__rshift__", "__rrshift__", "__pow__", "__rpow__", "__matmul__", "__neg__",
    "__invert__", "__abs__", "__pos__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__getitem__",
    "__setitem__", "__call__", "__len__", "__iter__", "__contains__", "__bool__", "__int__", "__float__",
    "__repr__",
)  # fmt: skip
INNER = frozenset({"make", "found", "drawn"})
"""How the simulator makes its numbers for itself, and what pictures are written with."""
APART = frozenset({"cute.simulate", "cute.jit"})
"""What runs functions of the user's: the fuzzer itself calls them in other ways."""


@dataclass(frozen=True)
class Target:
    """A function or class (`what`), or the member `name` of an instance of the class `what`."""

    path: str
    what: Any
    name: str = ""

    @property
    def function(self) -> Any:
        """What is called, to see its parameters."""
        return inspect.getattr_static(self.what, self.name) if self.name else self.what


def _modules(module: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    seen.add(id(module))
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            if id(value) not in seen:
                yield from _modules(value, f"{path}.{name}", seen)
        elif id(value) not in seen:
            seen.add(id(value))
            yield f"{path}.{name}", value


@functools.cache
def public() -> tuple[tuple[str, Any], ...]:
    """All that the facades show, each once, by the name that users write."""
    return tuple(_modules(cute, "cute", set()))


@functools.cache
def classes() -> tuple[type, ...]:
    """The classes among that."""
    return tuple(v for _, v in public() if isinstance(v, type))


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "numba_cute"


def members(cls: type) -> list[str]:
    """The public methods, properties and operators of a class."""
    names = {
        n
        for k in cls.__mro__
        if _is_ours(k)
        for n in vars(k)
        if n in OPERATORS or not n.startswith("_") and n not in INNER
    }  # fmt: skip
    return sorted(names)


@functools.cache
def targets() -> tuple[Target, ...]:
    """Everything to call, in an order that is always the same."""
    found = [Target(path, v) for path, v in public() if callable(v) and path not in APART]
    held: dict[type, str] = {}
    for path, v in public():
        cls = v if isinstance(v, type) else type(v)
        if _is_ours(cls):
            held.setdefault(cls, path if isinstance(v, type) else f"cute.{cls.__name__}")
    for cls, path in held.items():
        found += [Target(f"{path}.{name}", cls, name) for name in members(cls)]
    return tuple(sorted(found, key=lambda t: t.path))


@functools.cache
def parameters(function: Any) -> tuple[inspect.Parameter, ...] | None:
    """The parameters of a function or class; None if they are not known."""
    if isinstance(function, (staticmethod, classmethod)):
        function = function.__func__
    if isinstance(function, property):
        return ()
    if isinstance(function, enum.EnumMeta):
        return (inspect.Parameter("value", inspect.Parameter.POSITIONAL_ONLY),)
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
