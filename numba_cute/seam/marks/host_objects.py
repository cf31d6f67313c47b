# SPDX-License-Identifier: Apache-2.0
"""Objects of the host whose methods are kernels: what a kernel knows of its `self`.

A kernel holds no object that the host may change. It gets what the object's fields were when it was launched: ints,
layouts, element types and all else that is static are in the type, so that each content compiles anew; numbers of this
library's types, tensors and atoms have their leaves among the kernel's parameters. Methods are found in the class.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import numbers
import sys
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, ClassVar

from ..ground.error import CuteError
from ..ground.leaf import Leaf
from ..ground.names import UnknownName, unknown
from ..ground.packages import is_library
from .decorators import frozen, is_frozen_class, is_struct_class, is_traced
from .mappings import Mapping
from .plain import fields_of, is_plain, is_users_frame, is_users_module

_NUMBERS = (bool, int, float, str, type(None), enum.Enum, Leaf)
_CALLABLES = (type, FunctionType, BuiltinFunctionType)


class Snapshot:
    """The base of what stands for objects of the host in kernels. cute_of: the object's class. cute_left: fields
    that kernels cannot hold, by name, with the names of their types."""

    cute_of: ClassVar[type] = object
    cute_left: ClassVar[dict[str, str]] = {}

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Return the class of the object that this stands for, to the user's Python."""
        return type(self).cute_of if is_users_frame(sys._getframe(1)) else type(self)

    def __getattr__(self, name: str) -> Any:
        """Return what the class has by this name, for this object."""
        cls = type(self)
        raw = inspect.getattr_static(cls.cute_of, name, _ABSENT)
        if name in cls.cute_left:
            raise CuteError(
                f"{cls.__name__}.{name} is of type {cls.cute_left[name]}, which a kernel cannot hold: its self has "
                "numbers, texts, tuples, dictionaries, enumerations, element types, layouts, atoms and tensors; pass "
                "anything else as an argument"
            )
        if raw is _ABSENT:
            public = {n for n in (*vars(self), *dir(cls.cute_of)) if not n.startswith("_")}
            raise UnknownName(unknown(cls, name, public))
        if isinstance(raw, property):
            return raw.fget(self)  # type: ignore[misc]
        if isinstance(raw, staticmethod):
            return raw.__func__
        if isinstance(raw, classmethod):
            return functools.partial(raw.__func__, cls.cute_of)
        fn = function_of(raw)
        if fn is not None:
            return functools.partial(raw if getattr(raw, "__cute_host__", False) else fn, self)
        kept = _kept(raw)
        if kept is _ABSENT:
            raise CuteError(f"{cls.__name__}.{name} is of type {type(raw).__name__}, which a kernel cannot hold")
        return kept


_ABSENT: Any = object()


def is_snapshot(obj: Any) -> bool:
    """Say whether an object stands for one of the host."""
    return isinstance(obj, Snapshot)


def python_of(fn: Any) -> Any:
    """Return the Python function that a kernel, a device function or a static method was made of, or a function itself;
    None for anything else."""
    fn = fn.__func__ if isinstance(fn, staticmethod) else fn
    for name in ("py_func", "fn"):
        if isinstance(getattr(fn, name, None), FunctionType):
            return getattr(fn, name)
    return fn if isinstance(fn, FunctionType) else None


def function_of(member: Any) -> Any:
    """Return the Python function of a class's member that is a function, decorated or static; None for any other.
    CuteError: it is a kernel, which a kernel cannot call."""
    if getattr(member, "__cute_kernel__", False):
        raise CuteError(f"{member.__name__} is a kernel, and a kernel calls none: make it a function (`cute.jit`)")
    return python_of(member)


def method_of(obj: Snapshot, name: str) -> Any:
    """Return the Python of a method, or of what reads a property, of the object's class; None if it has none."""
    raw = inspect.getattr_static(obj.cute_of, name, None)
    return python_of(raw.fget if isinstance(raw, property) else raw)


def snapshot(obj: Any) -> Any:
    """Return what a kernel holds of an object of the host; the object itself, if kernels hold it anyway."""
    if isinstance(obj, Snapshot) or is_frozen_class(type(obj)):
        return obj
    fields = fields_of(obj)
    kept = {name: _kept(value) for name, value in fields.items()}
    left = tuple(sorted((n, type(fields[n]).__name__) for n, v in kept.items() if v is _ABSENT))
    names = tuple(n for n, v in kept.items() if v is not _ABSENT)
    own: Any = type(obj)
    made = object.__new__(_class(own, names, left))
    for name in names:
        object.__setattr__(made, name, kept[name])
    return made


def kernels_object(kind: Any, fields: dict[str, Any]) -> Any:
    """Return what stands for an object, of the class `kind`, with these fields."""
    names = tuple(sorted(fields))
    left = tuple(sorted((n, t) for n, t in kind.cute_left.items() if n not in fields))
    made = object.__new__(_class(kind.cute_of, names, left))
    for name in names:
        object.__setattr__(made, name, fields[name])
    return made


def as_argument(value: Any) -> Any:
    """Return what a kernel is given for an argument, or a part of one: a plain object of the user's and a bound method
    of such a one are as kernels hold them; anything else is itself."""
    if is_plain(value):
        return snapshot(value)
    if isinstance(value, MethodType) and is_kept_method(value):
        return _of_method(value)
    if type(value) in (tuple, list):
        made = type(value)(map(as_argument, value))
        return value if all(a is b for a, b in zip(made, value)) else made
    return value


def _of_method(method: MethodType) -> Any:
    """Return a bound method as a kernel has it: its function, which is given what stands for the object."""
    own = _snapshot_once(method.__self__)
    return _ABSENT if own is _ABSENT else functools.partial(function_of(method.__func__) or method.__func__, own)


def is_kept_method(method: MethodType) -> bool:
    """Say whether kernels can hold a bound method: one of an object that they can hold."""
    own = method.__self__
    if isinstance(own, type):
        return False
    return isinstance(own, Snapshot) or is_frozen_class(type(own)) or is_plain(own) or dataclasses.is_dataclass(own)


@functools.cache
def _class(cls: type, names: tuple[str, ...], left: tuple[tuple[str, str], ...]) -> Any:
    """Return the class of what stands for objects of a class with these fields."""
    body = {
        "__annotations__": dict.fromkeys(names, Any), "__module__": cls.__module__, "__doc__": cls.__doc__,
        "cute_of": cls, "cute_left": dict(left),
    }  # fmt: skip
    for name in OPERATORS:
        fn = python_of(inspect.getattr_static(cls, name, None))
        if fn is not None and is_users_module(fn.__module__):
            body[name] = fn
    made: Any = frozen(type(cls.__name__, (Snapshot,), body))
    made.__setattr__ = _refuse
    return made


def _refuse(this: Any, name: str, value: Any) -> None:
    """Refuse to set a field: what sets it in a kernel's own body is rewritten (`source.own_fields`)."""
    cls = type(this).__name__
    raise CuteError(
        f"{cls}.{name} cannot be assigned here: a {cls} is immutable but for statements `self.{name} = …` of a "
        "kernel's own body; in what it calls return the value"
    )


def mapping_of(value: dict[Any, Any]) -> Mapping | None:
    """Return what a kernel holds of a dictionary of the host; None if it cannot hold all of it."""
    held = _kept(value)
    return None if held is _ABSENT else held


def _kept(value: Any) -> Any:
    """Return a field's value as a kernel has it; _ABSENT for what it cannot have."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        items = tuple(map(_kept, value))
        return _ABSENT if any(x is _ABSENT for x in items) else items
    if type(value) is dict:
        held = _kept((tuple(value), tuple(value.values())))
        return _ABSENT if held is _ABSENT else Mapping(*held)
    if isinstance(value, (*_NUMBERS, *_CALLABLES)) or is_frozen_class(type(value)):
        return value
    if isinstance(value, MethodType):
        return _of_method(value) if is_kept_method(value) else _ABSENT
    if type(value) is functools.partial:
        held = _kept((value.func, *value.args, *value.keywords.values()))
        if held is _ABSENT:
            return _ABSENT
        named = zip(value.keywords, held[1 + len(value.args) :])
        return functools.partial(held[0], *held[1 : 1 + len(value.args)], **dict(named))
    if python_of(value) is not None:  # of a device function
        return value
    if is_library(type(value).__module__) and not is_struct_class(type(value)):
        return value if _is_hashable(value) else _ABSENT
    if isinstance(value, numbers.Integral):  # NumPy's
        return int(value)
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):  # by NumPy's version
        return bool(value)
    if dataclasses.is_dataclass(value) or _has_kernels(type(value)) or is_plain(value):
        return _snapshot_once(value)
    return _ABSENT


_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul"
)  # fmt: skip
OPERATORS = (*(f"__{r}{n}__" for n in _BINARY for r in ("", "r")), "__neg__", "__pos__", "__invert__", "__getitem__")
"""Methods of an object's class by which kernels compute with what stands for it."""
_holding: list[Any] = []
"""The objects whose fields are looked at, outermost first: one that holds itself is not held in itself."""


def _snapshot_once(value: Any) -> Any:
    if any(value is other for other in _holding):
        return _ABSENT
    _holding.append(value)
    try:
        return snapshot(value)
    finally:
        _holding.pop()


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _has_kernels(cls: type) -> bool:
    """Say whether a class has kernels or functions of kernels among its methods."""
    return any(
        getattr(m, "__cute_kernel__", False) or getattr(m, "__cute_host__", False) or is_traced(m)
        for base in cls.__mro__
        for m in vars(base).values()
    )
