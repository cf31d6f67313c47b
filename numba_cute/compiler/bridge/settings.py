# SPDX-License-Identifier: Apache-2.0
"""Find the fields of plain objects that are set after their constructor, anywhere in a kernel: numbers that the
constructor is given for them are not constants."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from ...seam import is_struct_class
from ...seam.marks.host_objects import python_of
from ...seam.marks.plain import is_plain_class, is_users_module
from ...seam.source.settings import functions_of, set_by_methods, stores_of
from ..ground.memory import memory
from ..ground.numba_cuda import types
from ..ground.ownership import names_of
from .object_types import Value


def begin_at(function: Any, args: Any) -> None:
    """Note a function that is compiled, and its arguments' types: the first is the kernel."""
    memory().roots.extend((function, *(x for ty in args for x in _host_objects(ty))))


def _host_objects(ty: Any) -> Iterator[Any]:
    """Go over the functions and classes of the host that a type says."""
    if isinstance(ty, types.BaseTuple):
        for t in ty:
            yield from _host_objects(t)
    elif isinstance(ty, types.Dispatcher):
        yield ty.dispatcher
    elif isinstance(ty, Value):
        yield from _in_spec(ty.spec)


def _in_spec(spec: Any) -> Iterator[Any]:
    if spec[0] == "const":
        yield spec[2]
    elif spec[0] != "leaf":
        if spec[0] == "node":
            yield getattr(spec[1], "cute_of", spec[1])
        for inner in spec[-1]:
            yield from _in_spec(inner)


def set_later(cls: Any) -> frozenset[str]:
    """Return the names that functions of this kernel set in objects of a class that they are given, and its methods in
    their own: none of a frozen dataclass, whose objects refuse it."""
    if getattr(getattr(cls, "__dataclass_params__", None), "frozen", False):
        return frozenset()
    return set_by_methods(cls) | _set_by_others()


def _set_by_others() -> frozenset[str]:
    """Return the names that the kernel, and what it reaches of the user's, sets in objects that it is given."""
    known = memory()
    if known.stored is None:
        known.stored = set_by(known.roots)
    return known.stored


def set_by(roots: Any) -> frozenset[str]:
    """Return the names that functions which are reached from some objects set in objects that they are given."""
    return frozenset().union(*_reached(roots))


def _reached(roots: Any) -> Iterator[frozenset[str]]:
    """Go over the user's functions and methods that are reached from some objects by the names in their code: what each
    sets in an object that is not a method's own."""
    todo, modules = list(roots), list[ModuleType]()
    seen: dict[int, Any] = {}
    names: set[str] = set()
    methods: set[int] = set()
    while todo:
        x = todo.pop()
        if id(x) in seen:
            continue
        seen[id(x)] = x
        fn = python_of(x)
        if isinstance(x, ModuleType):
            modules.append(x)
        elif isinstance(x, (tuple, list)):
            todo += x
        elif isinstance(x, dict):
            todo += x.values()
        elif isinstance(x, functools.partial):
            todo += (x.func, *x.args, *x.keywords.values())
        elif isinstance(x, MethodType):
            todo += (x.__func__, x.__self__)
        elif isinstance(x, type):
            own = [m for n, m in functions_of(x) if n != "__new__"] if is_plain_class(x) or is_struct_class(x) else []
            methods.update(id(m) for m in own if not isinstance(m, staticmethod))
            todo += own
        elif fn is not None and is_users_module(fn.__globals__.get("__name__")):
            todo += _named(fn)
            found = stores_of(fn.__code__)
            yield found.others if id(x) in methods else found.own | found.others
            new = names_of(fn.__code__)[1] - names
            names |= new
        if not todo:
            todo = [vars(m)[n] for m in modules if is_users_module(m.__name__) for n in names & vars(m).keys()]
            todo = [x for x in todo if id(x) not in seen]


def _named(fn: FunctionType) -> Iterator[Any]:
    """Go over what a function names, holds and takes by default."""
    for name in names_of(fn.__code__)[0]:
        if name in fn.__globals__:
            yield fn.__globals__[name]
    yield from fn.__defaults__ or ()
    yield from (fn.__kwdefaults__ or {}).values()
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not set yet
            continue
