# SPDX-License-Identifier: Apache-2.0
"""Follow all that compiling a function may read of Python's state.

A walk begins at some objects and looks at everything that code can come to from there: names of modules, closures,
defaults, attributes, items, methods, modules that a function imports. It stops at immutable things, and at code of this
library, Numba and Python that reads its arguments alone. It raises `Unfollowed` where the reading cannot be followed: a
file, the environment, time, randomness, an iterator, a result that a function remembers, a foreign object.

`reads` records a walk by identity, for one process; `host/fingerprint` digests one, for the disk cache.
"""

from __future__ import annotations

import abc
import array
import builtins
import collections
import dataclasses
import datetime
import enum
import functools
import operator
import pathlib
import re
import struct
import types as python
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, get_args, get_origin

import numpy as np

from ... import promotion
from ...isa.form.targets import asked
from ...seam import CuteError
from ...seam.ground.counterparts import if_known
from ...seam.ground.packages import is_library, package_of
from ...seam.marks.decorators import is_frozen_class, is_struct_class
from ...seam.marks.plain import is_users_module
from ..ground.numba import CpuIntrinsic
from ..ground.numba_cuda import ExternFunction, Stub, _Intrinsic, types
from . import code_reads
from .holdings import MISSING, is_made_in_python, own, state
from .object_types import Value
from .walking import Unfollowed, Walking

_IMMUTABLE = (datetime.date, datetime.time, datetime.timedelta, pathlib.PurePath)
_NUMBERS_OF = (("decimal", "Decimal"), ("fractions", "Fraction"))
"""Classes of Python's whose objects are told by their `repr`; and those of modules that are loaded on demand."""
_NOT_READ = frozenset((
    "__dict__", "__weakref__", "__module__", "__qualname__", "__abstractmethods__", "_abc_impl",
    "__firstlineno__", "__static_attributes__",
))  # fmt: skip
"""Members of classes that no kernel reads: where the class stands, and what Python keeps there for itself."""
_BY_NAME = (
    python.WrapperDescriptorType, python.MethodDescriptorType, python.ClassMethodDescriptorType,
    python.GetSetDescriptorType, python.MemberDescriptorType,
    type(vars(collections.namedtuple("_Pair", "x"))["x"]),
)  # fmt: skip
_EXACT: dict[type, Callable[[Any], Any]] = {
    int: int.__pos__, float: float.__pos__, complex: complex.__pos__, str: str.__str__,
    bytes: lambda x: bytes.__getitem__(x, slice(None)),
}  # fmt: skip
"""By class of numbers and texts, what gives the plain one of an object of a class that builds on it."""
_CACHED = type(functools.cache(len))
_OF_TYPING = tuple(sorted(code_reads.OF_TYPING))
_DEFERRED = ("__builtins__", "__loader__", "__spec__", "__cached__")
"""Names of modules by which Python imports them."""


class Walk(Walking):
    """Visits what is reached from some objects, each by what it is."""

    def _look(self, obj: Any, name: str) -> None:
        obj = if_known(obj)
        cls = type(obj)  # which no `__class__` of the user's changes
        look = self._looks.get(cls)
        if look is None:
            look = self._looks[cls] = next((look for kinds, look in _KINDS if issubclass(cls, kinds)), Walk._object)
        if look is not Walk._object:
            self.tell_class(look.__name__, cls)
        look(self, obj, name)

    # ------------------------------------------------------------ functions

    def _function(self, fn: FunctionType, name: str) -> None:
        module = fn.__globals__.get("__name__")
        self.tell(fn.__name__, promotion.follows(fn))
        if self.is_constant(fn):
            return
        cells = [self.attribute(cell, "cell_contents") for cell in fn.__closure__ or ()]
        if module is not None and not is_users_module(module):  # what a decorator wrote has no module
            self.tell(module, fn.__qualname__)
            if not code_reads.reads_its_arguments(module, fn.__name__):
                raise Unfollowed(f"`{name}` is a function of {module}")
            self.refer_all(cells, name)  # a decorator's, of the user's function that it holds
            return
        held = {n: x for n, x in zip(fn.__code__.co_freevars, cells) if not self.is_seen_where_read(x)}
        self.refer_named(held, name)
        self.refer_all(self.attribute(fn, "__defaults__") or (), f"{name}'s default")
        self.refer_named(self.items(self.attribute(fn, "__kwdefaults__") or {}), name)
        self.refer_named(self._annotations(fn), name)
        self.refer_named(self.items(vars(fn)), name)
        self.code(fn, self.attribute(fn, "__code__"), name)

    def _annotations(self, fn: FunctionType) -> dict[str, Any]:
        """Return annotations; of classes of others, as a stream's, the names, as nobody reads more."""
        return {n: _named_class(x) for n, x in self.items(self.attribute(fn, "__annotations__")).items()}

    def code(self, fn: FunctionType, code: CodeType, name: str) -> None:
        """Follow what code of a function names."""
        self.tell(code)
        for kind, what, chain in code_reads.of(code):
            if kind == "refused":
                raise Unfollowed(f"`{name}` {what}")
            if kind == "global":
                self.names.add(what)
                found = self._global(fn, what)
                if found is not hash or fn.__name__ != "__hash__":  # by which dicts find a user's objects
                    self._named(found, what, chain)
            elif kind == "import":
                self._import(fn, what, chain)
            elif kind == "cell" and what in fn.__code__.co_freevars:
                cell = (fn.__closure__ or ())[fn.__code__.co_freevars.index(what)]
                held = self.attribute(cell, "cell_contents")
                if self.is_seen_where_read(held):
                    self._named(held, what, chain)
            elif kind == "attribute":
                self.names.add(what)
                self._attributes.add(what)
        for const in code.co_consts:
            if isinstance(const, CodeType):
                self.code(fn, const, name)
            elif isinstance(const, str):  # which may name an attribute, as for getattr
                self._attributes.add(const)

    def _global(self, fn: FunctionType, name: str) -> Any:
        found = self.item(fn.__globals__, name)
        if found is MISSING:
            found = self.item(vars(builtins), name)
        if found is builtins.globals:
            self._members(fn.__globals__, str(fn.__globals__.get("__name__")))
        return found

    def _import(self, fn: FunctionType, what: tuple[str, int, str | None], chain: tuple[str, ...]) -> None:
        """Follow an `import` in a function. what: the module, its level, and the member that is taken; None of none."""
        module, level, member = what
        found = code_reads.imported(module, level, member, fn.__globals__)
        if found is None:
            self.tell(module, "is missing")
        else:
            self._named(found, found.__name__, chain)

    def _named(self, obj: Any, name: str, chain: tuple[str, ...]) -> None:
        """Look at what a name stands for; of a module, at what the code takes of it. chain: the attributes of it that
        are read."""
        for step in chain:
            if not isinstance(obj, ModuleType):
                break
            if step == "__dict__":  # all of it
                break
            module, name = obj, f"{name}.{step}"
            obj = self.item(vars(module), step)
            if obj is MISSING and "__getattr__" in vars(module):
                obj = vars(module)["__getattr__"]
        if obj is MISSING:
            self.tell(name, "is missing")
        elif isinstance(obj, ModuleType) or not self.is_seen_where_read(obj, chain):
            self.refer(obj, name)

    def _module(self, module: ModuleType, name: str) -> None:
        """Look at a module that is handed on: of a user's at all of it; of another at what any code names."""
        self.tell(module.__name__)
        if is_users_module(module.__name__):
            self._members(vars(module), name)
        elif not is_library(module.__name__):
            self._partly(module, name)

    def _members(self, held: dict[str, Any], name: str) -> None:
        found = self.read(lambda: {n: held[n] for n in sorted(held) if n not in _DEFERRED and n.isidentifier()})
        self.refer_named(found, name)

    def _builtin(self, x: Any, name: str) -> None:
        of = getattr(x, "__self__", None)
        self.tell(x.__name__)
        if of is None or isinstance(of, ModuleType):
            module = x.__module__ if of is None else of.__name__
            self.tell(module)
            if not code_reads.reads_its_arguments(module, x.__name__, self._prints):
                raise Unfollowed(f"`{name}` reads or does more than its arguments say")
        else:
            self.refer(of, name)

    def _method(self, x: python.MethodType, name: str) -> None:
        self.refer(x.__func__, name)
        self.refer(x.__self__, name)

    def _partial(self, x: functools.partial[Any], name: str) -> None:
        self.refer_all((type(x), x.func, *x.args), name)
        self.refer_named(self.items(x.keywords), name)
        self.refer_named(self.items(vars(x)), name)

    def _cached(self, x: Any, name: str) -> None:
        if is_library(x.__wrapped__.__module__):
            self.refer(x.__wrapped__, name)
            return
        self.value(lambda: tuple(x.cache_info()))
        if x.cache_info().currsize:
            raise Unfollowed(f"`{name}` holds results of before (functools.cache)")
        self.refer(x.__wrapped__, name)

    def _dispatcher(self, x: Any, name: str) -> None:
        self.refer(self.read(lambda: x.py_func), name)
        self.refer_named(self.read(lambda: dict(x.targetoptions)), name)

    def _declared(self, x: ExternFunction, name: str) -> None:
        raise Unfollowed(f"`{name}` is declared: its code is in a file that is linked")

    def _intrinsic(self, x: Any, name: str) -> None:
        self.refer(x._defn, name)

    # ------------------------------------------------------------ containers and numbers

    def _tuple(self, x: tuple[Any, ...], name: str) -> None:
        self.tell(len(x))
        self.refer_all(tuple.__iter__(x), name)
        self._more(x, (tuple,), name)

    def _list(self, x: Any, name: str) -> None:
        items = self.read(lambda: list((list if isinstance(x, list) else collections.deque).__iter__(x)))
        self.tell(len(items), getattr(x, "maxlen", None))
        self.refer_all(items, name)
        self._more(x, (list, collections.deque), name)

    def _set(self, x: Any, name: str) -> None:
        self.unordered(self.read(lambda: list((set if isinstance(x, set) else frozenset).__iter__(x))))
        self._more(x, (set, frozenset), name)

    def _dict(self, x: Any, name: str) -> None:
        held = self.items(x) if type(x) is dict else self.read(lambda: dict(x.items()))
        self.tell(len(held))
        self.refer_named(held, name, "{}[{!r}]")
        if isinstance(x, collections.defaultdict):
            self.refer(self.read(lambda: x.default_factory), name)
        self._more(x, _DICTS, name)

    def _more(self, x: Any, plain: tuple[type, ...], name: str) -> None:
        """Look at what an object of a class that builds on a container has besides."""
        if type(x) not in plain:
            self._class_of(x, name)
            self._attributes_of(x, name)

    def _slice(self, x: slice, name: str) -> None:
        self.refer_all((x.start, x.stop, x.step), name)

    def _array(self, x: Any, name: str) -> None:
        if x.nbytes > self.largest:
            raise Unfollowed(f"`{name}` is an array of more than {self.largest} bytes")
        self._dtype(x.dtype, name)
        self.value(lambda: (x.shape, x.strides, x.flags.num, "" if x.dtype.hasobject else x.tobytes()))
        if getattr(x, "base", None) is not None:
            self._partly(x, name)
        if x.dtype == object:
            self.refer_all(self.read(lambda: x.ravel().tolist()), name)
        elif x.dtype.hasobject:
            raise Unfollowed(f"`{name}` is an array of {x.dtype}")
        self._more(x, (np.ndarray, x.dtype.type), name)

    def _dtype(self, x: Any, name: str) -> None:
        self.tell(x.str, x.name, repr(x.descr), x.type.__module__, x.type.__qualname__)

    def _bytes(self, x: Any, name: str) -> None:
        self.value(
            lambda: (
                getattr(x, "typecode", getattr(x, "format", "")),
                x.tobytes() if type(x) is memoryview else bytes(x),
            )
        )
        self._more(x, (bytearray, array.array, memoryview), name)

    def _weak(self, x: Any, name: str) -> None:
        self.refer(self.read(x), f"{name}()")

    def _immutable(self, x: Any, name: str) -> None:
        self.tell(repr(x))
        self._partly(x, name)
        self._partly(type(x), f"type({name})")
        if is_users_module(type(x).__module__):
            self._more(x, (), name)

    def _number(self, x: Any, name: str) -> None:
        """Look at an object of a class that builds on one of numbers or texts."""
        self.tell(next(exact(x) for c, exact in _EXACT.items() if isinstance(x, c)))
        self._more(x, (), name)

    def _descriptor(self, x: Any, name: str) -> None:
        self.tell(repr(x))

    def _ufunc(self, x: Any, name: str) -> None:
        self.tell(x.__name__)
        if getattr(np, x.__name__, None) is not x:
            raise Unfollowed(f"`{name}` is a ufunc that is not NumPy's")

    def _pattern(self, x: re.Pattern[Any], name: str) -> None:
        self.tell(x.pattern, x.flags)

    def _struct(self, x: struct.Struct, name: str) -> None:
        self.tell(x.format)

    # ------------------------------------------------------------ classes and objects

    def _class(self, cls: Any, name: str) -> None:
        self.tell(cls.__module__, cls.__qualname__)
        if isinstance(cls, abc.ABCMeta):
            self.value(lambda: code_reads.registered(cls))
        if code_reads.answers_for_target(cls):
            self.value(lambda: (repr(asked()),))
            return
        if code_reads.is_known_class(cls):
            if not code_reads.reads_its_arguments(cls.__module__, cls.__name__):
                raise Unfollowed(f"`{name}` reads or does more than its arguments say")
            self._partly(cls, name)
            self._context(cls)
            return
        if self.is_constant(cls):
            return
        if not (is_users_module(cls.__module__) or code_reads.is_pure(cls.__module__)):
            raise Unfollowed(f"`{name}` is a class of {cls.__module__}")
        is_frozen_class(cls), is_struct_class(cls)  # a kernel before may have made one of it
        self.refer(self.read(lambda: type(cls)), name)
        self.refer_all(self.read(lambda: list(cls.__mro__[1:])), name)
        self.refer_named(self.read(lambda: {n: x for n, x in own(vars(cls)).items() if n not in _NOT_READ}), name)

    def _context(self, cls: type) -> None:
        """Look at what arithmetic of decimals reads besides."""
        if (cls.__module__, cls.__qualname__) == ("decimal", "Decimal"):
            self.value(code_reads.decimal_context)

    def _class_of(self, x: Any, name: str) -> None:
        self.refer(self.read(lambda: type(x)), f"type({name})")

    def _attributes_of(self, x: Any, name: str) -> None:
        self.refer_named(self.read(lambda: state(x)), name)

    def _wrapped(self, x: Any, name: str) -> None:
        self.refer(type(x), name)
        self.refer_all((getattr(x, n) for kind, names in _WRAPPED.items() if isinstance(x, kind) for n in names), name)

    def _field(self, x: Any, name: str) -> None:
        self.tell(x.name, x.init, x.kw_only)
        self.refer_all((x.default, x.default_factory, x.type, x.metadata), f"{name}.{x.name}")

    def _member(self, x: Any, name: str) -> None:
        self._class_of(x, name)
        self._attributes_of(x, name)

    def _getter(self, x: Any, name: str) -> None:
        self.refer_all(x.__reduce__()[1], name)

    def _alias(self, x: Any, name: str) -> None:
        self.refer_all((getattr(x, "__origin__", None), *x.__args__), name)

    def _type(self, ty: types.Type, name: str) -> None:
        cls = type(ty)
        self.tell(cls.__module__, cls.__qualname__)
        if package_of(cls.__module__) not in code_reads.COMPILERS:
            raise Unfollowed(f"`{ty}` is a type of {cls.__module__}")
        if isinstance(ty, Value):
            self.refer(ty.spec, name)
        elif isinstance(ty, types.Literal):
            self.refer(ty.literal_value, name)
        elif isinstance(ty, types.Omitted):
            self.refer(ty.value, name)
        elif isinstance(ty, types.Dispatcher):
            self.refer(ty.dispatcher, name)
        elif ty.key is ty:
            raise Unfollowed(f"`{ty}` has no key")
        else:
            self.refer(ty.key, name)

    def _object(self, x: Any, name: str) -> None:
        cls = type(x)
        self.tell_class("object", cls)
        if self.is_constant(x) or cls is object or isinstance(x, Stub):
            return
        if any((c.__module__, c.__name__) in _NUMBERS_OF for c in cls.__mro__):
            self._immutable(x, name)
            self._context(cls)
            return
        if code_reads.is_stream(x):
            self.tell(int(x))
            self._partly(x, name)
            return
        if cls.__module__ in ("typing", "dataclasses", "inspect"):
            self.tell(repr(x) if any("__repr__" in vars(c) for c in cls.__mro__[:-1]) else "")
            self.refer_all((getattr(x, n) for n in _OF_TYPING if hasattr(x, n)), name)
        elif package_of(cls.__module__) in code_reads.COMPILERS and isinstance(
            getattr(x, "py_func", None), FunctionType
        ):
            self._dispatcher(x, name)
        elif is_library(cls.__module__) and "__reduce__" in vars(cls):  # it stands in a table of this library's
            try:
                self.refer_all(x.__reduce__(), name)
            except CuteError as e:  # which the compilation refuses in better words
                raise Unfollowed(f"`{name}`: {e}") from e
        elif cls is SimpleNamespace or all(is_made_in_python(c) for c in cls.__mro__[:-1]):
            self._class_of(x, name)
            self._attributes_of(x, name)
        else:
            raise Unfollowed(f"`{name}` is an object of {cls.__module__}.{cls.__qualname__}")


def _named_class(annotation: Any) -> Any:
    """Return the name of a class of others, in an alias too, and any other annotation as it is."""
    parts = get_args(annotation)
    named = tuple(map(_named_class, parts))
    if any(x is not y for x, y in zip(parts, named)):
        return (get_origin(annotation), *named)
    module = getattr(annotation, "__module__", None)
    if not isinstance(annotation, type) or is_users_module(module) or code_reads.is_pure(module):
        return annotation
    return f"{module}.{annotation.__qualname__}"


_DICTS = (dict, python.MappingProxyType, collections.defaultdict, collections.OrderedDict, collections.Counter)
_WRAPPED: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",), classmethod: ("__func__",), functools.cached_property: ("func",),
    functools.partialmethod: ("func", "args", "keywords"), property: ("fget", "fset", "fdel"),
    python.DynamicClassAttribute: ("fget", "fset", "fdel"),
}  # fmt: skip
_KINDS: tuple[tuple[Any, Callable[[Any, Any, str], None]], ...] = (
    (FunctionType, Walk._function),
    (enum.Enum, Walk._member),
    (type, Walk._class),
    (types.Type, Walk._type),
    (tuple, Walk._tuple),
    ((list, collections.deque), Walk._list),
    ((set, frozenset), Walk._set),
    ((dict, python.MappingProxyType), Walk._dict),
    (slice, Walk._slice),
    ((np.ndarray, np.generic), Walk._array),
    (np.dtype, Walk._dtype),
    ((bytearray, array.array, memoryview), Walk._bytes),
    (weakref.ref, Walk._weak),
    (ExternFunction, Walk._declared),
    (_IMMUTABLE, Walk._immutable),
    ((int, float, complex, str, bytes), Walk._number),
    (np.ufunc, Walk._ufunc),
    (re.Pattern, Walk._pattern),
    (struct.Struct, Walk._struct),
    (_BY_NAME, Walk._descriptor),
    ((python.GenericAlias, python.UnionType), Walk._alias),
    ((python.BuiltinFunctionType, type(np.size)), Walk._builtin),
    ((_Intrinsic, CpuIntrinsic), Walk._intrinsic),
    (functools.partial, Walk._partial),
    ((operator.attrgetter, operator.itemgetter, operator.methodcaller), Walk._getter),
    (_CACHED, Walk._cached),
    (python.MethodType, Walk._method),
    (ModuleType, Walk._module),
    (dataclasses.Field, Walk._field),
    (tuple(_WRAPPED), Walk._wrapped),
)
