# SPDX-License-Identifier: Apache-2.0
"""Functions, classes and other objects by symbols of the IR's text: "module:qualname" and back.

A symbol is found by import. What no import reaches (functions and classes made within a function, and objects that
have no name) is kept in a table of the process: its symbol holds there only, and the table keeps the object alive."""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType
from typing import Any

from ..seam import CuteError
from ..seam.ground.packages import is_library
from ..seam.guards import facade

_kept: dict[str, Any] = {}
_symbols: dict[int, str] = {}


def symbol_of(obj: Any) -> str:
    """Return the symbol of `obj`: "module:qualname", with "#2" and so on after it for further objects of the process
    that bear the same name; "module:" of a module."""
    if isinstance(obj, ModuleType):
        return f"{obj.__name__}:"
    if facade.takes_locations(obj) and id(obj) in _shown():
        return _shown()[id(obj)]
    named = getattr(obj, "py_func", obj)  # a jitted function goes by its function's name
    module, name = getattr(named, "__module__", None), getattr(named, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str):
        symbol = f"{module}:{name}"
        if _imported(symbol) is obj:
            return symbol
        return _keep(symbol, obj)
    return _keep(f"{type(obj).__module__}:{type(obj).__qualname__}()", obj)


def object_of(symbol: str) -> Any:
    """Return the object of a symbol. Raises CuteError for one that no import and no table reaches."""
    if symbol in _kept:
        return _kept[symbol]
    found = _imported(symbol)
    if found is not _MISSING:
        return found
    module, colon, name = symbol.partition(":")
    if not colon:
        raise CuteError(f'@"{symbol}": a symbol is "module:qualname", as in "numba_cute.layout.layout:make_layout"')
    if "<locals>" in name or name.endswith(")") or "#" in name:
        raise CuteError(
            f'@"{symbol}" names what only the process that printed it has: make the object here first (as by '
            "inspecting the same kernel), or define it at the top of a module"
        )
    if _module(module) is None:
        raise CuteError(f'@"{symbol}": there is no module {module}')
    raise CuteError(f'@"{symbol}": the module {module} has no {name}')


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


def is_kept(symbol: str) -> bool:
    """Return whether a symbol names what only this process has."""
    return symbol in _kept


def _keep(symbol: str, obj: Any) -> str:
    """Keep `obj` in the table under this symbol, or this one with a number."""
    known = _symbols.get(id(obj))
    if known is not None:
        return known
    found, count = symbol, 1
    while found in _kept or _imported(found) is not _MISSING:
        count += 1
        found = f"{symbol}#{count}"
    _kept[found], _symbols[id(obj)] = obj, found
    return found


_MISSING = object()


def _imported(symbol: str) -> Any:
    """What an import reaches by this symbol; _MISSING if it reaches nothing."""
    name, _, path = symbol.partition(":")
    found: Any = _module(name)
    if found is None:
        return _MISSING
    for part in path.split(".") if path else ():
        if part == "<locals>" or not hasattr(found, part):
            return _MISSING
        found = getattr(found, part)
    return found


def _module(name: str) -> ModuleType | None:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
    except (TypeError, ValueError):  # no name of a module: empty, or with a dot before it
        return None
