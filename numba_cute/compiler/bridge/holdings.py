# SPDX-License-Identifier: Apache-2.0
"""Find what objects, functions and closures hold."""

from __future__ import annotations

import functools
from typing import Any

from ...seam.ground.packages import is_library
from ...seam.marks.plain import is_users_module
from . import code_reads

MISSING = object()
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement, and so in Python


def own(held: Any) -> dict[str, Any]:
    """Return what a class, function or object holds, but for what this library keeps there."""
    return {n: x for n, x in held.items() if not (isinstance(n, str) and n.startswith("_cute_"))}


def state(x: Any) -> dict[str, Any]:
    """Return what an object holds; of this library's, without what they compute when first asked."""
    held = own(_raw(x, "__dict__", {}))
    for cls in type(x).__mro__:
        if is_library(cls.__module__):
            held = {n: v for n, v in held.items() if not isinstance(vars(cls).get(n), functools.cached_property)}
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):  # as Python names it
                name = f"_{cls.__name__.lstrip('_')}{name}"
            if name not in ("__dict__", "__weakref__"):
                held[name] = _raw(x, name, MISSING)
    return held


def _raw(x: Any, name: str, default: Any) -> Any:
    """Return what an object holds, past what its class makes of a name."""
    try:
        return object.__getattribute__(x, name)
    except AttributeError:
        return default


def is_made_in_python(cls: Any) -> bool:
    module = cls.__module__
    written = code_reads.is_pure(module) and not vars(cls).keys().isdisjoint(("__dict__", "__slots__"))
    return bool(cls.__flags__ & _HEAP_TYPE) and (is_users_module(module) or is_library(module) or written)


def attribute(holder: Any, name: str) -> Any:
    """Return an attribute, or what a cell holds; MISSING if there is nothing."""
    try:
        return getattr(holder, name, MISSING)
    except ValueError:  # a cell that is not set
        return MISSING
