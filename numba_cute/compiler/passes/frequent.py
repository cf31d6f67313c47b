# SPDX-License-Identifier: Apache-2.0
"""Answer faster what Numba asks of every function and call. The answers are the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..ground.numba_cuda import NumbaNotImplementedError, types

_TYPES = type(types.Type)
_REST = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS


def having_loc(has_loc: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Make of Numba's question whether an implementation takes `loc` one that makes no signature of plain functions."""

    def has(fn: Any) -> bool:
        if type(fn) is not FunctionType or "__wrapped__" in fn.__dict__ or "__signature__" in fn.__dict__:
            return has_loc(fn)
        code = fn.__code__
        count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & rest) for rest in _REST)
        return "loc" in code.co_varnames[:count]

    return has


_ASKED = "__instancecheck__", "__subclasscheck__"


def asking_python(name: str) -> Callable[[Any], Any]:
    """Return what makes of `isinstance` or `issubclass` of Numba's types, which asks for classes that say of others
    that they are of them, Python's own, which asks for their bases: no type has such a class (see `registering`)."""
    return lambda asked: getattr(type, name)


def registering(register: Callable[[Any, type], type]) -> Callable[[Any, type], type]:
    """Make of the registration of a class as one of a type one that goes back to asking for such classes."""

    def registered(cls: Any, subclass: type) -> type:
        for name in _ASKED:
            if name in vars(type(cls)):
                delattr(type(cls), name)
        return register(cls, subclass)

    return registered


def finding_by_class(find: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make of Numba's search for the implementation of types that were not asked for before, which compares them with
    all signatures, one that does so once for types of the same classes: those that no signature names are told apart by
    their classes alone, and each layout, and each number that is static, is a type."""

    def found(self: Any, sig: Any) -> Any:
        known: _Searched | None = vars(self).get("cute_searched")
        if known is None or known.count != len(self.versions):
            known = self.cute_searched = _Searched(self.versions)
        classes = tuple(map(type, sig))
        if type in classes or _TYPES in classes:  # of a class itself, its own bases count
            return find(self, sig)
        if not known.named.isdisjoint(sig):
            classes = tuple(t if t in known.named else c for t, c in zip(sig, classes))
        if classes not in known.found:
            try:
                known.found[classes] = find(self, sig)
            except NumbaNotImplementedError:
                known.found[classes] = None
                raise
        if known.found[classes] is None:
            raise NumbaNotImplementedError(f"{self}, {sig}")
        return known.found[classes]

    return found


class _Searched:
    """Keep the implementations found so far. count: the number of signatures searched. named: the types that they name.
    found: the implementation, None if there is none, by the classes of the types asked for, and the types that are
    named."""

    def __init__(self, versions: list[Any]) -> None:
        self.count = len(versions)
        formal = [ty.dtype if isinstance(ty, types.VarArg) else ty for sig, _ in versions for ty in sig]
        self.named = frozenset(ty for ty in formal if not isinstance(ty, type))
        self.found: dict[Any, Any] = {}


def defining_once(define: Callable[[dict[int, Any]], None]) -> Callable[[dict[int, Any]], None]:
    """Make of Numba's step that defines all variables in the scope of each block one that does so once for each scope:
    most functions have one."""

    def defined(blocks: dict[int, Any]) -> None:
        scopes = {id(block.scope): block.scope for block in blocks.values()}
        if len(scopes) != 1:
            define(blocks)
            return
        (known,) = (scope.localvars for scope in scopes.values())
        for block in blocks.values():
            for inst in block.body:
                for var in inst.list_vars():
                    if var.name not in known:
                        known.define(var.name, var)

    return defined
