# SPDX-License-Identifier: Apache-2.0
"""Dataclasses of this library, made in a quarter of the time.

`dataclasses` writes the text of six functions for a class and compiles each: for the 240 classes of an import a third
of its time. Here only `__init__` is compiled; the others are closures of functions that are compiled once. All
else is as Python makes it: fields, parameters, and the file name "<string>", by which the engines know such methods.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .packages import KERNELS, LIBRARY, package_of

T = TypeVar("T")

if TYPE_CHECKING:
    from typing import dataclass_transform as dataclass_transform
else:  # Python 3.10 has no typing.dataclass_transform, and at run time it does nothing

    def dataclass_transform(**_: Any) -> Callable[[T], T]:
        return lambda fn: fn


_METHODS = """
def equality(fields):
    def __eq__(self, other):
        if other.__class__ is self.__class__:
            return fields(self) == fields(other)
        return NotImplemented
    return __eq__

def hashing(fields):
    def __hash__(self):
        return hash(fields(self))
    return __hash__

def setting(cls, fields, Frozen):
    def __setattr__(self, name, value):
        if type(self) is cls or name in fields:
            raise Frozen(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)
    return __setattr__

def deleting(cls, fields, Frozen):
    def __delattr__(self, name):
        if type(self) is cls or name in fields:
            raise Frozen(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)
    return __delattr__

def showing(fields, recursive):
    @recursive
    def __repr__(self):
        return f"{self.__class__.__qualname__}({', '.join([f'{n}={getattr(self, n)!r}' for n in fields])})"
    return __repr__
"""


class _Factory:
    """Stands in a signature for a default that is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()
_MAKERS: dict[str, Any] = {"__name__": __name__}
exec(_METHODS, _MAKERS)


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(cls: Any = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
    """Make what `dataclasses.dataclass` makes of a class of this library; of a user's class it makes it itself."""
    if cls is None:
        return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr)
    if package_of(cls.__module__) not in (LIBRARY, KERNELS):
        return dataclasses.dataclass(frozen=frozen, eq=eq, repr=repr)(cls)
    _fields(cls, frozen, eq, repr)
    fields = dataclasses.fields(cls)
    if "__init__" not in vars(cls):
        cls.__init__ = _constructor(cls, fields, frozen)
    if eq:
        _compared(cls, fields, frozen)
    if repr and "__repr__" not in vars(cls):
        shown = tuple(f.name for f in fields if f.repr)
        cls.__repr__ = _named(cls, _MAKERS["showing"](shown, reprlib.recursive_repr()))
    if frozen:
        names = frozenset(f.name for f in fields)
        for maker in ("setting", "deleting"):
            made = _named(cls, _MAKERS[maker](cls, names, dataclasses.FrozenInstanceError))
            setattr(cls, made.__name__, made)
    return cls


def _fields(cls: Any, frozen: bool, eq: bool, repr: bool) -> None:
    """Give a class its fields and parameters, by a class without bases that has its annotations."""
    own = vars(cls).get("__annotations__", {})
    space = {"__module__": cls.__module__, "__doc__": "written", "__annotations__": own}  # else its signature is found
    alone: Any = type(cls.__name__, (), space | {n: vars(cls)[n] for n in own if n in vars(cls)})
    dataclasses.dataclass(init=False, repr=False, eq=False)(alone)
    found: dict[str, dataclasses.Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        found.update(vars(base).get("__dataclass_fields__", {}))
    for name, field in alone.__dataclass_fields__.items():
        found[name] = field
        if isinstance(vars(cls).get(name), dataclasses.Field):
            if name in vars(alone):
                setattr(cls, name, vars(alone)[name])
            else:
                delattr(cls, name)
    parameters = alone.__dataclass_params__
    parameters.init, parameters.repr, parameters.eq, parameters.frozen = True, repr, eq, frozen
    cls.__dataclass_fields__, cls.__dataclass_params__ = found, parameters
    if "__match_args__" not in vars(cls):
        names = tuple(f.name for f in dataclasses.fields(cls) if f.init and not f.kw_only)
        setattr(cls, "__match_args__", names)  # noqa: B010 - mypy takes it for fixed


def _compared(cls: Any, fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> None:
    """Give a class its `__eq__` and `__hash__`, where it has none of its own."""
    own = vars(cls)
    hashes = own.get("__hash__") is not None or "__hash__" in own and "__eq__" not in own
    if "__eq__" not in own:
        cls.__eq__ = _named(cls, _MAKERS["equality"](_values(tuple(f.name for f in fields if f.compare))))
    if not hashes:
        held = tuple(f.name for f in fields if (f.compare if f.hash is None else f.hash))
        cls.__hash__ = _named(cls, _MAKERS["hashing"](_values(held))) if frozen else None


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the tuple of an object's fields."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda x: tuple([getattr(x, name) for name in names])


def _named(cls: type, fn: Any) -> Any:
    fn.__qualname__, fn.__module__ = f"{cls.__qualname__}.{fn.__name__}", cls.__module__
    return fn


def _constructor(cls: type, fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> Any:
    """Write and compile `__init__`."""
    given = [f for f in fields if f.init]
    held: dict[str, Any] = {"_set": object.__setattr__, "_missing": _FACTORY}
    order = [f for f in given if not f.kw_only], [f for f in given if f.kw_only]
    heads = [", ".join(_parameter(f, held) for f in part) for part in order]
    body = []
    for f in fields:
        made = f.default_factory is not dataclasses.MISSING
        if not f.init and not made:
            continue
        value = f"_make_{f.name}()" if made else f.name
        if f.init and made:
            value += f" if {f.name} is _missing else {f.name}"
        body.append(f"_set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = ", ".join(filter(None, ("self", heads[0], heads[1] and "*, " + heads[1])))
    lines = "".join(f"  {line}\n" for line in body or ["pass"])
    text = f"def _made({', '.join(held)}):\n def __init__({head}):\n{lines} return __init__"
    space: dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), space)
    init = _named(cls, space["_made"](**held))
    init.__annotations__ = {f.name: f.type for f in (*order[0], *order[1])} | {"return": None}
    return init


def _parameter(f: dataclasses.Field[Any], held: dict[str, Any]) -> str:
    """Write a parameter of a constructor, and add to what it holds what the text names."""
    if f.default_factory is not dataclasses.MISSING:
        held[f"_make_{f.name}"] = f.default_factory
        return f"{f.name}=_missing"
    if f.default is dataclasses.MISSING:
        return f.name
    held[f"_default_{f.name}"] = f.default
    return f"{f.name}=_default_{f.name}"
