# SPDX-License-Identifier: Apache-2.0
"""Kernels whose code may be run again from its start (see `convoy`): it must leave no trace but by what the
simulator counts as steps, and not catch what is raised to it."""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
from collections.abc import Sequence
from itertools import chain
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...seam import CuteError, is_frozen_class, is_struct_class
from ...seam.ground.bytecode import READING, operations
from ...seam.ground.packages import is_library, package_of
from ...seam.marks.host_objects import is_snapshot, method_of
from ...seam.marks.plain import is_plain
from ...seam.source.with_statements import without_with

_CATCHES = {"PUSH_EXC_INFO", "SETUP_FINALLY", "SETUP_WITH", "STORE_GLOBAL", "DELETE_GLOBAL"}
_LEAVES_A_TRACE = {"print", "printf", "print_tensor", "breakpoint", "input", "open", "exec", "eval", "globals",
                   "locals", "vars", "setattr", "delattr", "id", "hash"}  # fmt: skip
_MADE = {"__repr__", "__str__", "__hash__", "__eq__", "__setattr__", "__delattr__"}  # as dataclasses make them
_OF_NAMED_TUPLES = {"__new__", "_make", "_replace", "_asdict", "__getnewargs__"}  # of which none may be the user's
_LIBRARIES = (
    "numba",
    "numba_cute",
    "numba_cuda_mlir",
    "numpy",
    "math",
    "cmath",
    "operator",
    "ml_dtypes",
    "typing",
    "enum",
)
_VALUES = (int, float, complex, str, bytes, range, np.generic, np.dtype, np.ndarray, enum.Enum, type(None),
           type(Ellipsis), slice)  # fmt: skip


def replayable(kernel: FunctionType, args: tuple[Any, ...]) -> tuple[Held | None, str]:
    """Return what a kernel with these arguments holds of the host, if it is such code, as far as can be seen; and if it
    is none, why."""
    look = _Look([a for a in args if is_snapshot(a)])
    if look.function(kernel) and all(look.value(a, frozenset()) for a in args):
        return look.held, ""
    return None, look.why or "something that it reads cannot be followed"


def uses_library(kernel: FunctionType) -> bool:
    """Tell whether it calls this library at all. Python on plain numbers is no faster for many lanes at once than for
    each: sharing pays for instructions and layouts."""
    look = _Look()
    look.function(kernel)
    return look.library or is_library(kernel.__module__ or "")


class Held:
    """Lists, dictionaries and objects of the host that code refers to, as they were: it may read them, and what it
    changes is put back."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, Any]] = []

    def add(self, holder: Any) -> None:
        """Remember what a list, a dictionary or an object holds."""
        inside = _inside(holder)
        self._before.append((inside, inside.copy()))

    def restore(self) -> bool:
        """Put back what was there; say whether something was changed."""
        changed = [(inside, before) for inside, before in self._before if not _same(inside, before)]
        for inside, before in changed:
            inside.clear()
            (inside.extend if isinstance(inside, list) else inside.update)(before)
        return bool(changed)


def _inside(holder: Any) -> Any:
    """The list or dictionary that holds what a value does."""
    return holder if isinstance(holder, (list, dict)) else vars(holder)


def _same(a: Any, b: Any) -> bool:
    """Say whether two lists, or dictionaries, hold the very same objects in the same order."""
    x, y = (v if isinstance(v, list) else [*chain(*v.items())] for v in (a, b))
    return len(x) == len(y) and all(map(operator.is_, x, y))


class _Look:
    """Looks through all that a function refers to. library: whether that is something of numba_cute. objects: those of
    the host whose methods it may call. held: what it may read, and might change."""

    def __init__(self, objects: Sequence[Any] = ()) -> None:
        self.objects = objects
        self.seen: dict[int, Any] = {}
        self.library = False
        self.held = Held()
        self.why = ""

    def function(self, fn: FunctionType) -> bool:
        if _library(fn.__module__ or ""):
            return fn.__name__ not in _LEAVES_A_TRACE
        try:
            fn = without_with(fn)
        except CuteError:  # raised again where the function is called, if it is: names of attributes are looked at too
            return False
        if id(fn) in self.seen:
            return True
        self.seen[id(fn)] = fn
        outside = frozenset(fn.__code__.co_freevars)
        ok, names = _code(fn.__code__, outside)
        if not ok:
            self.why = self.why or f"{fn.__name__} {_trace_of(fn.__code__, outside)}"
            return False
        held = [fn.__globals__[n] for n in names if n in fn.__globals__]
        held += [m for o in self.objects for m in (method_of(o, n) for n in names) if m is not None]
        for cell in fn.__closure__ or ():
            try:
                held.append(cell.cell_contents)
            except ValueError:  # an empty cell
                continue
        if fn.__code__.co_filename == "<string>" and fn.__name__ == "__init__":  # which sets the fields of a new object
            held = [v for v in held if v is not object.__setattr__]
        held += [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
        return all(self.value(v, names) for v in held)

    def value(self, value: Any, names: frozenset[str]) -> bool:
        """Tell whether a value cannot be changed but by steps. names: the attributes that the code mentions."""
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        self.library = self.library or is_library(home)
        if isinstance(value, (tuple, frozenset)):
            return all(self.value(v, names) for v in value)
        if isinstance(value, _VALUES):
            return True
        if isinstance(value, ModuleType):
            return _library(value.__name__) or all(self.value(getattr(value, n, None), names) for n in names)
        if isinstance(value, BuiltinFunctionType):
            return isinstance(value.__self__, ModuleType) and (
                value.__self__.__name__ == "builtins" or _library(value.__self__.__name__)
            )
        if isinstance(getattr(value, "py_func", None), FunctionType):
            return self.function(value.py_func)
        if isinstance(value, FunctionType):
            return self.function(value)
        if isinstance(value, type):
            return self.type(value)
        if _library(type(value).__module__):
            return True
        if is_snapshot(value):
            return all(self.value(v, names) for v in vars(value).values())
        if is_frozen_class(type(value)) or is_struct_class(type(value)) or _frozen(type(value)):
            return self.type(type(value)) and all(self.value(v, names) for v in vars(value).values())
        if (type(value) in (list, dict) or is_plain(value) and hasattr(value, "__dict__")) and self.holder(value):
            return True
        self.why = self.why or f"it reads what may change while it runs, an object of {type(value).__name__}"
        return False

    def holder(self, value: Any) -> bool:
        """A list, a dictionary or an object of the host, which may hold itself."""
        if id(value) in self.seen:
            return True
        self.seen[id(value)] = value
        self.held.add(value)
        inside = _inside(value)
        parts = inside if isinstance(inside, list) else chain(*inside.items())
        return all(self.value(v, frozenset()) for v in parts) and (inside is value or self.type(type(value)))

    def type(self, cls: type) -> bool:
        """A class: its methods."""
        if id(cls) in self.seen:
            return True
        self.seen[id(cls)] = cls
        for base in cls.__mro__:
            if base.__module__ != "builtins" and not _library(base.__module__):
                for name, member in vars(base).items():
                    if name in _MADE or (name in _OF_NAMED_TUPLES and "_fields" in vars(base)):
                        continue
                    fn = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
                    if isinstance(fn, FunctionType) and not self.function(fn):
                        return False
        return True


def _trace_of(code: CodeType, outside: frozenset[str]) -> str:
    """Say what of code leaves a trace, or catches what is raised to it."""
    named = sorted(set(code.co_names) & _LEAVES_A_TRACE)
    if named:
        return f"calls {named[0]}"
    for o in operations(code):
        if o.name in ("STORE_DEREF", "DELETE_DEREF") and o.value in outside:
            return f"sets {o.value}, a variable of the function around it (line {o.line})"
        if o.name in _CATCHES:
            what = f"sets the global {o.value}" if o.name.endswith("_GLOBAL") else "has a `try` or a `with`"
            return f"{what} (line {o.line})"
    inner = (c for c in code.co_consts if isinstance(c, CodeType) and not _code(c, outside)[0])
    return next((_trace_of(c, outside) for c in inner), "is code that this Python hides")


def _frozen(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and bool(cls.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _library(module: str) -> bool:
    return package_of(module) in _LIBRARIES


@functools.lru_cache(maxsize=1024)
def _code(code: CodeType, outside: frozenset[str]) -> tuple[bool, frozenset[str]]:
    """Tell whether code (and the code inside it) leaves no trace and catches nothing; and the names that it mentions.
    outside: its variables that belong to functions around it."""
    names = set(code.co_names)
    ok = READING.holds and not names & _LEAVES_A_TRACE
    for o in operations(code) if ok else ():
        if o.name in _CATCHES or (o.name in ("STORE_DEREF", "DELETE_DEREF") and o.value in outside):
            ok = False
    for const in code.co_consts:
        if isinstance(const, CodeType):
            inner, more = _code(const, outside)
            ok, names = ok and inner, names | more
    return ok, frozenset(names)
