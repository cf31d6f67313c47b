# SPDX-License-Identifier: Apache-2.0
"""What compiling a function of the user's may read of Python's state: so that what it became holds as long as all of
that is as it was.

From the function on, each thing that its code can come to is looked at: names of modules, closures, defaults,
attributes, items, the methods of classes. One that is immutable is known by its identity, and of one that is not its
contents are. Code whose reading cannot be followed has no record: a module that is handed on, an `import` in a
function, an iterator, a function of another library, an object that is not Python's or the user's.
"""

from __future__ import annotations

import abc
import builtins
import collections
import dataclasses
import enum
import functools
import operator
import types as python
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numba.cuda import types
from numba.cuda.dispatcher import CUDADispatcher
from numba.cuda.extending import _Intrinsic
from numba.cuda.stubs import Stub

from ...seam.ground.bytecode import Operation, operations
from ...seam.ground.packages import KERNELS, is_library, package_of
from ...seam.marks.plain import is_users_module
from .exact import is_exact
from .lasting import is_lasting_function, is_lasting_value, lasts
from .object_types import StructRef, Value

_MOST = 2000
"""So many states are recorded at most."""
_LARGEST = 1 << 16
"""Bytes of an array whose contents are compared."""
MISSING = object()
_ATOMS = (int, bool, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, CodeType)
_METACLASSES = (type, abc.ABCMeta, enum.EnumMeta)
_SEES_MORE = frozenset((
    "__import__", "breakpoint", "compile", "delattr", "dir", "eval", "exec", "globals", "id", "input", "iter",
    "locals", "memoryview", "next", "open", "print", "setattr", "vars",
))  # fmt: skip
"""Functions of Python's that read or do what is not said by their arguments."""
_PRINTS = ("print", "breakpoint")
"""What is done by who runs the kernel, where nothing is compiled."""
_OWN = (
    "__init__",
    "__new__",
    "__class__",
    "__call__",
    "__post_init__",
    "__setattr__",
    "__delattr__",
    "__eq__",
    "__hash__",
)
"""Attributes with such names that are the object's own, or its class's, which are looked at."""
_NOT_OURS = ("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl")
"""What Python keeps in classes for itself."""
_BY_IDENTITY = (
    python.BuiltinFunctionType, python.WrapperDescriptorType, python.MethodDescriptorType,
    python.ClassMethodDescriptorType, python.GetSetDescriptorType, python.MemberDescriptorType, python.GenericAlias,
    np.ufunc, np.generic, np.dtype, type(vars(collections.namedtuple("_Pair", "x"))["x"]),
)  # fmt: skip

_NUMBERS = (int, bool, float, complex, str, bytes)
_RUN = (FunctionType, python.BuiltinFunctionType)

Read = Callable[[], Any]


class Place(NamedTuple):
    """Where a name leads. kind: ATTRIBUTE of an object, ITEM of a dictionary, or all ITEMS of one. value: what is there
    now; MISSING for nothing; of ITEMS the keys and values by turns."""

    kind: int
    holder: Any
    name: Any
    value: Any

    def holds(self) -> bool:
        """Say whether it leads there now."""
        if self.kind == ATTRIBUTE:
            return _attribute(self.holder, self.name) is self.value
        if self.kind == ITEM:
            return self.holder.get(self.name, MISSING) is self.value
        return _same(_own(self.holder), _own_of(self.value))


ATTRIBUTE, ITEM, ITEMS = range(3)


class Unfollowed(Exception):
    """What may be read is not known."""


class Reads:
    """What is reached from some objects, as it is now. host: for a function that the host runs, which reads nothing
    where it appends to a list or calls the ready-made kernels' code. places: where names lead; names: those of
    attributes and of globals that code asks for."""

    def __init__(self, roots: Iterable[Any], prints: bool = False, host: bool = False) -> None:
        self._prints, self._host = prints, host
        self._seen: dict[int, Any] = {}
        self._states: list[tuple[Read, Any]] = []
        self.places: list[Place] = []
        self.names: set[str] = set()
        self._todo: list[Any] = list(roots)
        while self._todo:
            x = self._todo.pop()
            if id(x) not in self._seen:
                self._seen[id(x)] = x
                self._look(x)

    def hold(self) -> bool:
        """Say whether all is what it was."""
        return all(p.holds() for p in self.places) and all(_same(read(), before) for read, before in self._states)

    @property
    def all_in_places(self) -> bool:
        """Whether places alone tell it."""
        return not self._states

    def _read(self, read: Read) -> Any:
        self._count()
        now = read()
        self._states.append((read, now))
        return now

    def _count(self) -> None:
        if len(self._states) + len(self.places) >= _MOST:
            raise Unfollowed

    def _attribute(self, holder: Any, name: str) -> Any:
        self._count()
        self.places.append(Place(ATTRIBUTE, holder, name, _attribute(holder, name)))
        return self.places[-1].value

    def _item(self, holder: dict[Any, Any], name: str) -> Any:
        self._count()
        self.places.append(Place(ITEM, holder, name, holder.get(name, MISSING)))
        return self.places[-1].value

    def _all(self, holder: dict[Any, Any]) -> dict[Any, Any]:
        self._count()
        self.places.append(Place(ITEMS, holder, None, tuple(x for item in holder.items() for x in item)))
        return _own(holder)

    def _look(self, x: Any) -> None:
        if type(x) in _ATOMS or (self._host and not isinstance(x, _RUN) and is_exact(x)):
            return
        for kinds, look in _KINDS:
            if isinstance(x, kinds):
                look(self, x)
                return
        self._object(x)

    # ------------------------------------------------------------ functions

    def _function(self, fn: FunctionType) -> None:
        module = fn.__globals__.get("__name__")
        if is_lasting_function(fn) or package_of(module) in (*_STANDARD, *((KERNELS,) if self._host else ())):
            return
        held = [self._attribute(cell, "cell_contents") for cell in fn.__closure__ or ()]
        seen_where_read = (ModuleType, list) if self._host else (ModuleType,)
        self._todo += (x for x in held if x is not MISSING and not isinstance(x, seen_where_read))
        if is_library(module):  # a decorator's, of the user's function that it holds
            return
        if module is not None and not is_users_module(module):
            raise Unfollowed
        self._todo += self._attribute(fn, "__defaults__") or ()
        self._todo += self._all(self._attribute(fn, "__kwdefaults__") or {}).values()
        self._all(self._attribute(fn, "__annotations__"))
        self._todo += (x for n, x in self._all(vars(fn)).items() if not n.startswith("__cute_"))
        self._code(fn, self._attribute(fn, "__code__"))

    def _code(self, fn: FunctionType, code: CodeType) -> None:
        done = operations(code)
        for at, o in enumerate(done):
            if o.name in ("IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"):
                raise Unfollowed
            if o.name == "LOAD_GLOBAL":
                self.names.add(o.value)
                self._global(fn, o.value, done, at)
            elif o.name == "LOAD_DEREF":
                self._cell(fn, o.value, done, at)
            elif o.name in ("LOAD_ATTR", "STORE_ATTR"):
                self.names.add(o.value)
                if _is_special(o.value):
                    raise Unfollowed
        for const in code.co_consts:
            if isinstance(const, CodeType):
                self._code(fn, const)

    def _global(self, fn: FunctionType, name: str, done: tuple[Operation, ...], at: int) -> None:
        found = self._item(fn.__globals__, name)
        if found is MISSING:
            found = self._item(vars(builtins), name)
        self._named(found, done, at)

    def _cell(self, fn: FunctionType, name: str, done: tuple[Operation, ...], at: int) -> None:
        if name in fn.__code__.co_freevars:
            cell = (fn.__closure__ or ())[fn.__code__.co_freevars.index(name)]
            self._named(self._attribute(cell, "cell_contents"), done, at)

    def _named(self, value: Any, done: tuple[Operation, ...], at: int) -> None:
        """Look at what a name stands for; of a module, at what the code takes of it."""
        while isinstance(value, ModuleType) and done[at + 1].name == "LOAD_ATTR":
            at += 1
            module, value = value, self._item(vars(value), done[at].value)
            if value is MISSING and "__getattr__" in vars(module) and not is_library(module.__name__):
                raise Unfollowed
        to_append = self._host and type(value) is list and done[at + 1].value == "append"
        if value is not MISSING and not to_append:
            self._todo.append(value)

    def _module(self, module: ModuleType) -> None:
        if not is_library(module.__name__):  # what is read of it is not known
            raise Unfollowed

    def _builtin(self, x: Any) -> None:
        if isinstance(x, python.BuiltinFunctionType):
            of = x.__self__
            if not isinstance(of, type) and getattr(of, "__name__", "") not in _BUILTINS:
                raise Unfollowed
            if of is builtins and x.__name__ in _SEES_MORE and not (self._prints and x.__name__ in _PRINTS):
                raise Unfollowed

    def _method(self, x: MethodType) -> None:
        self._todo += (x.__func__, x.__self__)

    def _partial(self, x: functools.partial[Any]) -> None:
        self._todo += (x.func, *x.args, *self._all(x.keywords).values())
        self._all(vars(x))

    def _dispatcher(self, x: CUDADispatcher) -> None:
        self._todo.append(self._read(lambda: x.py_func))
        self._read(lambda: dict(x.targetoptions))

    # ------------------------------------------------------------ containers

    def _tuple(self, x: tuple[Any, ...]) -> None:
        self._todo += x
        if type(x) is not tuple:
            self._class_of(x)

    def _items(self, x: Any) -> None:
        if type(x) not in (list, set, frozenset):
            raise Unfollowed
        self._todo += self._read(lambda: list(x))

    def _dict(self, x: dict[Any, Any]) -> None:
        if type(x) not in (dict, python.MappingProxyType):
            raise Unfollowed
        held = self._all(x) if type(x) is dict else self._read(lambda: dict(x))
        self._todo += (*held, *held.values())

    def _slice(self, x: slice) -> None:
        self._todo += (x.start, x.stop, x.step)

    def _array(self, x: Any) -> None:
        if type(x) is not np.ndarray or x.nbytes > _LARGEST or x.dtype.kind not in "biufc":
            raise Unfollowed
        self._read(lambda: (x.shape, x.strides, x.dtype.str, x.tobytes()))

    # ------------------------------------------------------------ classes and objects

    def _class(self, cls: Any) -> None:
        known = package_of(cls.__module__) in (*_STANDARD, *_NUMBAS) or cls is SimpleNamespace
        if known or is_lasting_value(cls) or issubclass(cls, np.generic):
            return
        if type(cls) not in _METACLASSES and not is_library(type(cls).__module__):
            raise Unfollowed
        for base in self._read(lambda: list(cls.__mro__)):
            if base is not cls:
                self._todo.append(base)
        held = self._read(lambda: {n: x for n, x in vars(cls).items() if not _is_kept(n)})
        if not is_users_module(cls.__module__) and not is_library(cls.__module__):
            raise Unfollowed
        self._todo += (x for n, x in held.items() if not n.startswith("__cute_"))

    def _class_of(self, x: Any) -> None:
        self._todo.append(self._read(lambda: type(x)))

    def _wrapped(self, x: Any) -> None:
        if type(x) not in _WRAPPED:
            raise Unfollowed
        self._todo += (getattr(x, name) for name in _WRAPPED[type(x)])

    def _field(self, x: Any) -> None:
        self._todo += (x.default, x.default_factory, x.type)

    def _member(self, x: Any) -> None:
        self._class_of(x)
        self._todo += self._read(lambda: dict(vars(x))).values()

    def _type(self, x: Any) -> None:
        if package_of(type(x).__module__) not in _NUMBAS and not lasts(x):
            raise Unfollowed

    def _object(self, x: Any) -> None:
        cls = type(x)
        if is_library(cls.__module__) and is_lasting_value(x):
            return
        if isinstance(x, _Intrinsic) and package_of(x._defn.__module__) in _NUMBAS:
            return
        if isinstance(x, Stub) or cls.__module__ in ("typing", "dataclasses", "inspect"):
            return
        if cls is not SimpleNamespace:
            if any(not _is_made_in_python(c) for c in cls.__mro__[:-1]):
                raise Unfollowed
            self._class_of(x)
        self._todo += self._read(lambda: _state(x)).values()


_STANDARD = (
    "builtins", "typing", "enum", "abc", "functools", "operator", "math", "numbers", "collections", "dataclasses",
    "reprlib",
)  # fmt: skip
"""Modules of Python's whose functions and classes look at what they are given alone."""
_NUMBAS = ("numba", "numba_cuda")
_BUILTINS = ("builtins", "math", "_operator", "_functools")
_WRAPPED: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",), classmethod: ("__func__",), functools.cached_property: ("func",),
    functools.partialmethod: ("func", "args", "keywords"),
    getattr(enum, "property", property): ("fget", "fset", "fdel"), property: ("fget", "fset", "fdel"),
}  # fmt: skip
_KINDS: tuple[tuple[Any, Callable[[Reads, Any], None]], ...] = (
    (FunctionType, Reads._function),
    (enum.Enum, Reads._member),
    (type, Reads._class),
    (types.Type, Reads._type),
    (tuple, Reads._tuple),
    ((list, set, frozenset), Reads._items),
    ((dict, python.MappingProxyType), Reads._dict),
    (slice, Reads._slice),
    (np.ndarray, Reads._array),
    (_BY_IDENTITY, Reads._builtin),
    (CUDADispatcher, Reads._dispatcher),
    (functools.partial, Reads._partial),
    (MethodType, Reads._method),
    (ModuleType, Reads._module),
    (dataclasses.Field, Reads._field),
    (tuple(_WRAPPED), Reads._wrapped),
)


def reads_of(function: Any, given: tuple[Any, ...], prints: bool) -> Callable[[], bool] | None:
    """Record what compiling a function for some objects may read; gives what asks whether it is as it was, None if it
    cannot be followed. prints: what it prints while it is compiled is nobody's."""
    try:
        return Reads((function, *given), prints).hold
    except Unfollowed:
        return None


def identity(x: Any) -> Any:
    """Return what tells an object from others, as long as it lives."""
    return (type(x), repr(x)) if type(x) in _NUMBERS else id(x)


def given_by(args: Iterable[Any]) -> tuple[Any, ...] | None:
    """Return the objects of the host that types of arguments say, but for this library's; None if a type does not tell
    them."""
    try:
        return tuple(x for ty in args for x in _held(ty))
    except Unfollowed:
        return None


def _held(ty: Any) -> Iterator[Any]:
    if lasts(ty):
        return
    if isinstance(ty, types.BaseTuple) and not hasattr(ty, "instance_class"):
        for t in ty:
            yield from _held(t)
    elif isinstance(ty, Value):
        yield from _in_spec(ty.spec)
    elif isinstance(ty, StructRef):
        yield ty.cls
        for _, t in ty.fields:
            yield from _held(t)
    else:
        raise Unfollowed


def _in_spec(spec: Any) -> Iterator[Any]:
    if spec[0] == "leaf":
        if isinstance(spec[1], StructRef):
            yield from _held(spec[1])
    elif spec[0] == "const":
        if type(spec[2]) in _NUMBERS or not is_lasting_value(spec[2]):
            yield spec[2]
    else:
        if spec[0] == "node":
            yield spec[1]
        for inner in spec[-1]:
            yield from _in_spec(inner)


def _is_special(name: str) -> bool:
    """Say whether an attribute leads from an object to what is not among its own."""
    return name.startswith("__") and name.endswith("__") and name not in _OWN


def _is_kept(name: str) -> bool:
    return name in _NOT_OURS or name.startswith("_cute_")


def _is_made_in_python(cls: Any) -> bool:
    return bool(cls.__flags__ & 1 << 9) and (is_users_module(cls.__module__) or is_library(cls.__module__))


def _state(x: Any) -> dict[str, Any]:
    """Return what an object holds."""
    held = {n: v for n, v in getattr(x, "__dict__", {}).items() if not n.startswith("_cute_")}
    for cls in type(x).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):  # Python calls it otherwise
                raise Unfollowed
            if name not in ("__dict__", "__weakref__"):
                held[name] = getattr(x, name, MISSING)
    return held


def _attribute(holder: Any, name: str) -> Any:
    try:
        return getattr(holder, name, MISSING)
    except ValueError:  # a cell that is not set
        return MISSING


def _own(held: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dictionary without what this library remembers in it."""
    return {n: x for n, x in held.items() if not (isinstance(n, str) and n.startswith("_cute_"))}


def _own_of(items: tuple[Any, ...]) -> dict[Any, Any]:
    return _own(dict(zip(items[::2], items[1::2])))


def _same(a: Any, b: Any) -> bool:
    """Say whether two states hold the same objects."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is list:
        return len(a) == len(b) and all(map(operator.is_, a, b))
    if type(a) is dict:
        return len(a) == len(b) and all(x is y and a[x] is b[y] for x, y in zip(a, b))
    return type(a) is tuple and all(isinstance(x, _ATOMS + (tuple,)) for x in a) and a == b and MISSING not in a
