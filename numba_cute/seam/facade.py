# SPDX-License-Identifier: Apache-2.0
"""What a facade module shows: it lists no names; each stands once, in the `__all__` of the module that defines it.

What it shows takes `loc=` and `ip=` as the CuTe DSL's functions do, and ignores them: there they say where in the
source and in the intermediate code an operation stands, which Numba knows by itself.
"""

from __future__ import annotations

import functools
from types import FrameType, FunctionType, ModuleType
from typing import Any

from .marks import is_static_class, is_traced
from .names import of_module, refuse_arguments

_IGNORED = ("loc", "ip")


def publish(namespace: dict[str, Any], *modules: ModuleType) -> None:
    """Set `__all__` of the facade whose globals are `namespace`: all its public names, and of its modules `modules`.

    Type checkers see no assignment to `__all__`, and so take the facade's star imports for what it exports."""
    shown = {n for n, v in namespace.items() if not n.startswith("_") and not isinstance(v, ModuleType)}
    namespace["__all__"] = sorted(shown | {m.__name__.rpartition(".")[2] for m in modules})
    for space, names in ((namespace, shown), *((vars(m), getattr(m, "__all__", ())) for m in modules)):
        of_module(space)
        for name in names:
            space[name] = _shown(space[name])


def takes_locations(fn: Any) -> bool:
    """Return whether a function or method takes `loc` and `ip` and ignores them."""
    return getattr(fn, "__cute_located__", False) is True


def plain(fn: Any) -> Any:
    """Return the function as its module defines it, of what a facade shows."""
    return fn.__wrapped__ if takes_locations(fn) else fn


def _shown(value: Any) -> Any:
    """Give what a facade shows for a value of its modules."""
    if isinstance(value, FunctionType):
        own = value.__module__.startswith("numba_cute.") and not value.__module__.startswith("numba_cute.seam")
        return _located(value) if own and is_traced(value) else value
    if is_static_class(value) and value.__module__.startswith("numba_cute."):
        for cls in value.__mro__:
            if cls.__module__.startswith("numba_cute."):
                _locate_methods(cls)
    return value


def _locate_methods(cls: type) -> None:
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, _located(member))
        elif isinstance(member, (staticmethod, classmethod)) and isinstance(member.__func__, FunctionType):
            setattr(cls, name, type(member)(_located(member.__func__)))


def caller(frame: FrameType) -> FrameType:
    """Give the frame itself, or where it is a facade's own the one that called it."""
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame


@functools.cache
def _located(fn: Any) -> Any:
    """The function, taking `loc` and `ip` besides; itself where it takes them already, or any name."""
    code = fn.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if takes_locations(fn) or any(n in parameters for n in _IGNORED):
        return fn

    def call(*args: Any, loc: Any = None, ip: Any = None, **named: Any) -> Any:
        try:
            return fn(*args, **named)
        except TypeError as e:
            refuse_arguments(fn, args, named, e)
            raise

    call.__code__ = call.__code__.replace(co_name=fn.__name__)  # reports name the function that the user called
    made: Any = functools.update_wrapper(call, fn)
    made.__cute_located__ = True
    return made
