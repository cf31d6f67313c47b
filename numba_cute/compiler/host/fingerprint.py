# SPDX-License-Identifier: Apache-2.0
"""What a kernel becomes is a matter of: its code and all that this reaches, as one digest for the disk cache.

All that compiling may read is visited: bytecode, the globals, closures and defaults that it names, through the
functions, classes and objects of the user's that it leads to. What is installed counts by the file it comes from. What
cannot be described whole (a pointer, a file, a foreign object) makes a kernel one that is not kept: `Unkept`.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import hashlib
import os
import sys
import types as python
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.extending import _Intrinsic as CpuIntrinsic
from numba.cuda import types
from numba.cuda.compiler import ExternFunction
from numba.cuda.extending import _Intrinsic

from ...seam.ground.packages import package_of
from ..bridge.object_types import Value
from ..ground.ownership import names_of
from ..ground.taught import LIBRARIES, may_change

_NO_MEMBERS = frozenset((
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "_abc_impl", "__firstlineno__",
    "__static_attributes__",
))  # fmt: skip
"""What no kernel reads of a class: where it stands (the last two are Python 3.13's), and what Python makes of it."""
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement, and so by Python
_MOST_NODES = 100_000
_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
_BY_NAME = (
    python.BuiltinFunctionType, python.WrapperDescriptorType, python.MethodDescriptorType,
    python.ClassMethodDescriptorType, python.GetSetDescriptorType, python.MemberDescriptorType, python.GenericAlias,
    np.ufunc, type(vars(collections.namedtuple("_Pair", "x"))["x"]),
)  # fmt: skip


class Unkept(Exception):
    """A kernel reaches what no digest describes; says what."""


def fingerprint(*objects: Any) -> str:
    """Give the digest of objects and of all that they reach: the same in every process. Unkept: one has none."""
    walk = _Walk()
    for obj in objects:
        walk.visit(obj)
    return walk.digest()


class _Walk:
    """A walk over objects; what is met again is told by the number of its first meeting."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=20)
        self._met: dict[Any, int] = {}
        self._alive: list[Any] = []

    def digest(self) -> str:
        return self._hash.hexdigest()

    def _tell(self, *texts: object) -> None:
        self._hash.update("\x1f".join(map(str, texts)).encode(errors="surrogatepass") + b"\x1e")

    def _is_new(self, obj: Any, key: Any = None) -> bool:
        key = id(obj) if key is None else key
        if key in self._met:
            self._tell("met", self._met[key])
            return False
        if len(self._met) >= _MOST_NODES:
            raise Unkept(f"it reaches more than {_MOST_NODES} objects")
        self._met[key] = len(self._met)
        self._alive.append(obj)
        return True

    def visit(self, obj: Any) -> None:
        """Tell an object and what it reaches."""
        if type(obj) in _ATOMS:
            self._tell(type(obj).__name__, repr(obj))
            return
        for kinds, tell in _TELLERS:
            if isinstance(obj, kinds):
                tell(self, obj)
                return
        self._instance(obj)

    def all(self, objects: Iterable[Any]) -> None:
        for obj in objects:
            self.visit(obj)

    # ------------------------------------------------------------ containers and numbers

    def _sequence(self, obj: Any) -> None:
        if self._is_new(obj):
            self._tell("sequence", type(obj).__name__, len(obj))
            if type(obj) not in (tuple, list):
                self.visit(type(obj))
            self.all(obj)

    def _mapping(self, obj: Any) -> None:
        if self._is_new(obj):
            self._tell("mapping", type(obj).__name__, len(obj))
            for key, value in obj.items():
                self.visit(key)
                self.visit(value)

    def _set(self, obj: Any) -> None:
        self._tell("set", type(obj).__name__, *sorted(map(fingerprint, obj)))

    def _enumeration(self, obj: enum.Enum) -> None:
        self._tell("member", obj.name)
        self.visit(type(obj))
        self.visit(obj.value)

    def _slice(self, obj: Any) -> None:
        self._tell(type(obj).__name__)
        self.all((obj.start, obj.stop, obj.step))

    def _array(self, obj: Any) -> None:
        if obj.dtype.hasobject or type(obj) not in (np.ndarray, obj.dtype.type):
            raise Unkept(f"an array of {obj.dtype} of {type(obj).__name__}")
        self._tell("array", obj.dtype.str, obj.dtype.descr, getattr(obj, "shape", ()))
        self._hash.update(obj.tobytes())

    def _dtype(self, obj: Any) -> None:
        self._tell("dtype", obj.str, obj.descr, obj.name)

    # ------------------------------------------------------------ code

    def _function(self, fn: Any) -> None:
        if not self._is_new(fn):
            return
        if not self._is_users(fn):
            self._tell("function", fn.__module__, fn.__qualname__)
            self.all(_contents(fn))  # what makes functions may put the user's into them
            return
        self._tell("function", fn.__name__)
        self.visit(fn.__code__)
        self.all((fn.__defaults__, fn.__kwdefaults__, dict(sorted(fn.__annotations__.items()))))
        self.all(_contents(fn))
        self._mapping({n: x for n, x in sorted(fn.__dict__.items()) if not n.startswith("_cute_")})
        names, attributes = names_of(fn.__code__)
        for name in sorted(names):
            if name in fn.__globals__:
                self._tell("global", name)
                self._reached(fn.__globals__[name], attributes)

    def _reached(self, value: Any, attributes: frozenset[str]) -> None:
        if not isinstance(value, python.ModuleType):
            self.visit(value)
            return
        self._tell("module", value.__name__)
        if not may_change(value.__name__):
            return
        for name in sorted(attributes & vars(value).keys()):
            if self._is_new(value, (id(value), name)):
                self._tell("attribute", name)
                self._reached(vars(value)[name], attributes)

    def _code(self, code: python.CodeType) -> None:
        if not self._is_new(code):
            return
        self._tell(
            "code", code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_names,
            code.co_varnames, code.co_freevars, code.co_cellvars,
        )  # fmt: skip
        self._hash.update(code.co_code + getattr(code, "co_exceptiontable", b""))
        self.all(code.co_consts)

    def _wrapped(self, obj: Any) -> None:
        self._tell(type(obj).__name__)
        self.all(getattr(obj, name) for name in _WRAPPED[type(obj)])

    def _named(self, obj: Any) -> None:
        self._tell("builtin", getattr(obj, "__module__", ""), getattr(obj, "__qualname__", repr(obj)))

    def _module(self, obj: Any) -> None:
        self._reached(obj, frozenset())

    def _class(self, cls: type) -> None:
        if not self._is_new(cls):
            return
        self._tell("class", cls.__module__, cls.__qualname__)
        if not cls.__flags__ & _HEAP_TYPE or not self._is_users(cls):
            return
        self.all(cls.__mro__[1:])
        for name, member in vars(cls).items():
            if name not in _NO_MEMBERS:
                self._tell("member", name)
                self.visit(member)

    def _is_users(self, obj: Any) -> bool:
        """Say whether a function or class is to be looked into; of one that is installed, tell its file."""
        if may_change(obj.__module__):
            return True
        self._tell(_stamp(obj.__module__))
        return False

    # ------------------------------------------------------------ Numba's, and objects

    def _intrinsic(self, obj: Any) -> None:
        self._tell("intrinsic")
        self.visit(obj._defn)

    def _type(self, ty: types.Type) -> None:
        if not self._is_new(ty):
            return
        cls = type(ty)
        self._tell("type", cls.__module__, cls.__qualname__)
        if package_of(cls.__module__) not in LIBRARIES:
            raise Unkept(f"{ty} is a type of {cls.__module__}")
        if isinstance(ty, Value):
            self.visit(ty.spec)
        elif isinstance(ty, types.Literal):
            self.visit(ty.literal_value)
        elif isinstance(ty, types.Omitted):
            self.visit(ty.value)
        elif isinstance(ty, types.Dispatcher):
            self.visit(ty.dispatcher)
        elif ty.key is ty:
            raise Unkept(f"{ty} has no key")
        else:
            self.visit(ty.key)

    def _instance(self, obj: Any) -> None:
        cls = type(obj)
        function = getattr(obj, "py_func", None)
        if isinstance(function, python.FunctionType):  # a device function
            if self._is_new(obj):
                self._tell("dispatcher", cls.__name__)
                self.visit(function)
                self.visit(getattr(obj, "targetoptions", None))
            return
        if isinstance(obj, ExternFunction):
            raise Unkept(f"{obj.name} is declared: its code is in a file that is linked")
        foreign = [c for c in cls.__mro__[:-1] if not c.__flags__ & _HEAP_TYPE]
        if foreign or not hasattr(obj, "__dict__") and not any("__slots__" in vars(c) for c in cls.__mro__):
            raise Unkept(f"{_short(obj)} is an object of {cls.__module__}.{cls.__qualname__}")
        if self._is_new(obj):
            self._tell("object")
            self.visit(cls)
            self._mapping(dict(_state(obj)))


def _state(obj: Any) -> Iterable[tuple[str, Any]]:
    """The state of an object: a dataclass's fields, else its attributes but for those that are kept results."""
    cls = type(obj)
    if dataclasses.is_dataclass(cls):
        return [(f.name, getattr(obj, f.name, None)) for f in dataclasses.fields(cls)]
    kept = {n for c in cls.__mro__ for n, v in vars(c).items() if isinstance(v, functools.cached_property)}
    slots = [s for c in cls.__mro__ for s in _slots(c) if s not in ("__dict__", "__weakref__")]
    held = {s: getattr(obj, s) for s in slots if hasattr(obj, s)} | getattr(obj, "__dict__", {})
    return sorted((name, value) for name, value in held.items() if name not in kept)


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _contents(fn: Any) -> list[Any]:
    """What a function's closure holds; an unfilled cell holds nothing."""
    found = []
    for cell in fn.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append(None)
    return found


def _short(obj: Any) -> str:
    try:
        text = repr(obj)
    except Exception:  # an object of another library that cannot be written here, as one of a driver that is missing
        text = f"<{type(obj).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."


@functools.cache
def _stamp(module: str) -> str:
    """Name an installed module's file as it is now; of the packages whose version is in every key, nothing."""
    root = package_of(module)
    if root in LIBRARIES or root in sys.stdlib_module_names:
        return ""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not Path(file).is_file():
        return module
    stat = os.stat(file)
    return f"{module} {stat.st_size} {stat.st_mtime_ns}"


_WRAPPED: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.partial: ("func", "args", "keywords"),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.cached_property: ("func",),
    python.MethodType: ("__func__", "__self__"),
    type(functools.cache(len)): ("__wrapped__",),
}
_TELLERS: tuple[tuple[Any, Callable[[_Walk, Any], None]], ...] = (
    (types.Type, _Walk._type),
    (enum.Enum, _Walk._enumeration),
    ((_Intrinsic, CpuIntrinsic), _Walk._intrinsic),
    ((tuple, list), _Walk._sequence),
    ((dict, python.MappingProxyType), _Walk._mapping),
    ((set, frozenset), _Walk._set),
    ((slice, range), _Walk._slice),
    ((np.ndarray, np.generic), _Walk._array),
    (np.dtype, _Walk._dtype),
    (python.FunctionType, _Walk._function),
    (python.CodeType, _Walk._code),
    (tuple(_WRAPPED), _Walk._wrapped),
    (type, _Walk._class),
    (_BY_NAME, _Walk._named),
    (python.ModuleType, _Walk._module),
)
