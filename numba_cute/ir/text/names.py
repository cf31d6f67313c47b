# SPDX-License-Identifier: Apache-2.0
"""Functions, classes and other objects by symbols of the IR's text: "module:qualname" and back.

A text is data: reading it imports nothing, and its symbols mean what `Names` lets them mean. What has no name that an
import reaches (functions and classes made within a function, objects) is numbered in a table of the process, so that
each has a symbol of its own."""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

from ...compiler.inspection.inference import NUMBAS, is_of_numba
from ...dtypes import DType
from ...seam import CuteError, is_frozen_class, is_struct_class, is_traced
from ...seam.ground.packages import is_library
from ...seam.guards import facade

_kept: dict[str, Any] = {}
_symbols: dict[int, str] = {}
_MISSING = object()


@dataclass(frozen=True)
class Lacking:
    """A placeholder for a symbol that was given no object. symbol: it. said: the text's description of it, as printed.
    type: the name of its type in the text; None for a constant."""

    symbol: str
    said: str
    type: str | None = None

    def __str__(self) -> str:
        return f"!{self.type}<{self.said}>" if self.type == "numba.type" else f'@"{self.symbol}"'


@dataclass(frozen=True, eq=False)
class Symbol:
    """A symbol and what it means. found: the object, or `Lacking`; None of what Numba finds by the symbol itself."""

    text: str
    found: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and self.text == other.text and _same(self.found, other.found)

    def __hash__(self) -> int:
        return hash(self.text)


def _same(a: Any, b: Any) -> bool:
    return a is b or isinstance(a, Lacking) and a == b


class Names:
    """The meanings of a text's symbols: the library's and Numba's by their tables, the user's as given.

    given: objects by symbol, {"module:qualname": object}, whose attributes' symbols go on from there; or modules, of
    which what they define themselves is meant. None: nothing.
    """

    def __init__(self, given: Mapping[str, Any] | Iterable[ModuleType] | None = None) -> None:
        self._objects: Mapping[str, Any] = {}
        self._modules: dict[str, ModuleType] = {}
        if isinstance(given, Mapping):
            self._objects = given
        elif given is not None:
            self._modules = {_module_name(m): m for m in given}
        for s in self._objects:
            if not isinstance(s, str) or ":" not in s:
                raise CuteError(
                    f'names: {s!r} is not a symbol; give {{"module:qualname": object}}, or a list of modules'
                )

    def find(self, symbol: str) -> Any:
        """Return the object of a symbol, or `Lacking`. Raises CuteError for what is not a symbol, or one of the
        library's or Numba's that there is not."""
        module, colon, path = symbol.partition(":")
        if not colon:
            raise CuteError(f'@"{symbol}": a symbol is "module:qualname", as in "numba_cute.layout.layout:make_layout"')
        found = self._given(symbol, module, path)
        if found is not _MISSING:
            return found
        if is_library(module):
            return _of_library(symbol, module, path)
        if module.partition(".")[0] in NUMBAS:
            if not is_of_numba(symbol):
                raise CuteError(f'@"{symbol}": kernels have no such value; of the user\'s own, give it by names=')
            return _reached(sys.modules[module], path)
        return Lacking(symbol, f'@"{symbol}"')

    def symbol(self, text: str) -> Symbol:
        """Return a symbol with what it means, as operations hold it."""
        found = self._given(text, *_split(text))
        found = self.find(text) if found is _MISSING else found
        return Symbol(text, None if is_of_numba(text) else found)

    def _given(self, symbol: str, module: str, path: str) -> Any:
        """Return the object that the caller gave; `_MISSING` if there is none."""
        parts = path.split(".")
        for count in range(len(parts), 0, -1):
            start = f"{module}:{'.'.join(parts[:count])}"
            if start in self._objects:
                return _reached(self._objects[start], ".".join(parts[count:]))
        if module in self._modules:
            found = _reached(self._modules[module], path)
            if getattr(found, "__module__", module) == module and not isinstance(found, ModuleType):
                return found
        return _MISSING


def _split(symbol: str) -> tuple[str, str]:
    module, _, path = symbol.partition(":")
    return module, path


def _module_name(module: Any) -> str:
    if not isinstance(module, ModuleType):
        raise CuteError(f'names: {module!r} is not a module; give a list of modules, or {{"module:qualname": object}}')
    return module.__name__


def _reached(found: Any, path: str) -> Any:
    """Return the object that a path of names reaches from another; `_MISSING` if there is none."""
    for part in path.split(".") if path else ():
        members = vars(found) if isinstance(found, ModuleType) else None
        if part.startswith("__") or (part not in members if members is not None else not hasattr(found, part)):
            return _MISSING
        found = members[part] if members is not None else getattr(found, part)
    return found


def _of_library(symbol: str, module: str, path: str) -> Any:
    """Return the library's object of this symbol that kernels may use: it can do no more than describe or make
    values."""
    at = sys.modules.get(module)
    if at is None:
        raise CuteError(f'@"{symbol}": there is no module {module}, or it is not loaded')
    found: Any = at
    for part in path.split(".") if path else ():
        of, found = found, _reached(found, part)
        if not _of_kernels(found, of):
            found = _MISSING
            break
    if found is _MISSING:
        raise CuteError(f'@"{symbol}": the module {module} has no {path} that kernels know')
    return found


def _of_kernels(found: Any, of: Any) -> bool:
    """Say whether an object that stands in `of` is a kernel's and the library's: a traced function, a class of values,
    its methods, a member, an element type, a class of records, an object of such a class, or a module."""
    if isinstance(found, ModuleType):
        return is_library(found.__name__)
    if isinstance(found, (FunctionType, MethodType)):
        return is_traced(facade.plain(found)) or is_frozen_class(of) or is_struct_class(of)
    cls = found if isinstance(found, type) else type(found)
    if isinstance(found, DType) or not is_library(cls.__module__):
        return isinstance(found, DType)
    return is_frozen_class(cls) or is_struct_class(cls) or issubclass(cls, enum.Enum) or is_record(cls)


def is_record(cls: Any) -> bool:
    """Say whether a class is one of immutable records: a frozen dataclass or a named tuple."""
    if not isinstance(cls, type):
        return False
    frozen = dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return bool(frozen) or issubclass(cls, tuple) and hasattr(cls, "_fields")


# ------------------------------------------------------------------ from objects to symbols

_met: ContextVar[dict[str, Any] | None] = ContextVar("_met", default=None)


@contextmanager
def collected() -> Iterator[dict[str, Any]]:
    """Give a dict that has, when done, the objects of the user whose symbols were written meanwhile."""
    met: dict[str, Any] = {}
    token = _met.set(met)
    try:
        yield met
    finally:
        _met.reset(token)


def symbol_of(obj: Any) -> str:
    """Return the symbol of `obj`: "module:qualname", with "#2" and so on after it for further objects of the process
    that bear the same name; "module:" of a module."""
    symbol = _symbol_of(obj)
    note(symbol, obj)
    return symbol


def note(symbol: str, obj: Any) -> None:
    """Tell whoever collects names that this symbol is being written, and what it means."""
    met = _met.get()
    if met is not None and not is_library(symbol.partition(":")[0]) and not isinstance(obj, Lacking):
        met[symbol] = obj


def _symbol_of(obj: Any) -> str:
    if isinstance(obj, Lacking):
        return obj.symbol
    if isinstance(obj, ModuleType):
        return f"{obj.__name__}:"
    if facade.takes_locations(obj) and id(obj) in _shown():
        return _shown()[id(obj)]
    named = getattr(obj, "py_func", obj)  # a jitted function goes by its function's name
    module, name = getattr(named, "__module__", None), getattr(named, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str):
        symbol = f"{module}:{name}"
        if _loaded(symbol) is obj:
            return symbol
        return _keep(symbol, obj)
    return _keep(f"{type(obj).__module__}:{type(obj).__qualname__}()", obj)


@functools.cache
def _shown() -> dict[int, str]:
    """The symbols of the functions that the library's facades show, each by the plainest of those that show it."""
    found: dict[int, str] = {}
    own = sorted((n for n in sys.modules if is_library(n)), key=lambda n: (n.count("."), n))
    for name in own:
        for shown, value in vars(sys.modules[name]).items():
            if facade.takes_locations(value):
                found.setdefault(id(value), f"{name}:{shown}")
    return found


def symbol_in(text: str) -> Symbol:
    """Return the symbol by which a kernel of this process finds an object."""
    if is_of_numba(text):
        return Symbol(text)
    found = _kept.get(text, _MISSING)
    return Symbol(text, _loaded(text) if found is _MISSING else found)


def _keep(symbol: str, obj: Any) -> str:
    """Keep `obj` in the table under this symbol, or this one with a number."""
    known = _symbols.get(id(obj))
    if known is not None:
        return known
    found, count = symbol, 1
    while found in _kept or _loaded(found) is not _MISSING:
        count += 1
        found = f"{symbol}#{count}"
    _kept[found], _symbols[id(obj)] = obj, found
    return found


def _loaded(symbol: str) -> Any:
    """Return the object of a symbol in the modules that are loaded; `_MISSING` if there is none."""
    module, path = _split(symbol)
    at = sys.modules.get(module)
    return _MISSING if at is None else _reached(at, path)
