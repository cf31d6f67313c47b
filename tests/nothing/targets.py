# SPDX-License-Identifier: Apache-2.0
"""The functions and methods behind the public names of `numba_cute.experimental` and `numba_cute.tilelang`, and what
each becomes that does nothing: it gives None, its first argument, or (a constant) 0."""

from __future__ import annotations

import enum
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

ROOMS = {
    "experimental": ("core", "epilogue", "iket", "kernels", "math", "memory", "operations", "pipelines",
                     "tensor_memory", "tensors", "tma"),
    "tilelang": ("cpasync",),
}  # fmt: skip
"""The files whose `__all__` say what is public."""


def file_of(name: str) -> str:
    """The file that lists a public name."""
    public_name = ".".join(name.split(".")[:2])
    return next(module.__name__.rpartition(".")[2] for known, module, _ in public() if known == public_name)


def public() -> Iterator[tuple[str, Any, Any]]:
    """Each public name as room.name, with the module that lists it and what it is."""
    for room, files in ROOMS.items():
        for file in files:
            module = importlib.import_module(f"numba_cute.{room}.{file}")
            for name in module.__all__:
                yield f"{room}.{name}", module, getattr(module, name)


def targets() -> dict[str, Callable[[], None]]:
    """By name (of methods room.Class.method): what makes it do nothing."""
    found: dict[str, Callable[[], None]] = {}
    for name, module, obj in public():
        if inspect.isclass(obj):
            if not issubclass(obj, enum.Enum) and obj.__module__ == module.__name__:  # others are their own room's
                found |= {f"{name}.{method}": _emptied(fn) for method, fn in _methods(obj)}
        elif callable(obj):
            found[name] = _emptied(obj)
        elif isinstance(obj, int):
            found[name] = _zeroed(module, name.rpartition(".")[2])
    return found


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines itself, and its own constructor."""
    for name, raw in vars(cls).items():
        fn = raw.fget if isinstance(raw, property) else raw.__func__ if isinstance(raw, staticmethod) else raw
        own = inspect.isfunction(fn) and fn.__module__ == cls.__module__ and "<locals>" not in fn.__qualname__
        if own and (not name.startswith("_") or name in ("__init__", "__new__") and "<" not in fn.__code__.co_filename):
            yield name, fn


def _emptied(fn: Any) -> Callable[[], None]:
    fn = getattr(fn, "py_func", fn)

    def empty() -> None:
        fn.__code__ = _nothing(fn)

    return empty


def _nothing(fn: Any) -> Any:
    """The code of a function of the same parameters that gives the first of them, or None if `fn` gives nothing."""
    code = fn.__code__
    count, names = code.co_argcount, list(code.co_varnames)
    listed = names[:count]
    if code.co_posonlyargcount:
        listed.insert(code.co_posonlyargcount, "/")
    keywords = names[count : count + code.co_kwonlyargcount]
    rest = names[count + len(keywords) :]
    if code.co_flags & inspect.CO_VARARGS:
        listed.append("*" + rest.pop(0))
    elif keywords:
        listed.append("*")
    listed += keywords
    if code.co_flags & inspect.CO_VARKEYWORDS:
        listed.append("**" + rest.pop(0))
    gives = names[0] if count and str(fn.__annotations__.get("return")) != "None" else "None"
    made: dict[str, Any] = {}
    free = ", ".join(code.co_freevars)
    lines = [f"def outer({free}):", f"    def nothing({', '.join(listed)}):", *([f"        {free}"] if free else []),
             f"        return {gives}", "    return nothing"]  # fmt: skip
    exec("\n".join(lines), made)
    return made["outer"](*[None] * len(code.co_freevars)).__code__


def _zeroed(module: Any, name: str) -> Callable[[], None]:
    def zero() -> None:
        value = getattr(module, name)
        for holder in list(sys.modules.values()):
            if getattr(holder, "__name__", "").startswith("numba_cute") and vars(holder).get(name) is value:
                setattr(holder, name, 0)

    return zero
