# SPDX-License-Identifier: Apache-2.0
"""The operations of the dialect `numba_cute`, by name: each is a function, a class or a method of the API.

Nothing is listed twice: what the facades show has an operation, called as the rooms call it
(`numba_cute.make_layout`, `numba_cute.nvgpu.warpgroup.fence`, `numba_cute.pipeline.PipelineTmaAsync.create`). The
instructions that the API has no function for stand in `instructions.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numba_cute

from ...atoms.op import CopyOp, MmaOp
from ...seam import is_frozen_class, is_struct_class, is_traced
from ...seam.guards import facade
from ..text.registry import NVGPU, OWN
from . import instructions, machine


@dataclass(frozen=True)
class Definition:
    """The meaning of an operation. name: of the operation. function: the function that it calls; None for a method.
    attribute: the name of the method of its first argument. cls: the method's class."""

    name: str
    function: Any = None
    attribute: str | None = None
    cls: Any = None

    @property
    def doc(self) -> str:
        """The documentation of what it calls."""
        meant = self.function if self.attribute is None else inspect.getattr_static(self.cls, self.attribute)
        return inspect.getdoc(meant) or ""


_NVGPU = ("cpasync", "tcgen05", "warp", "warpgroup")
_ROOMS = ("arch", "experimental", "pipeline", "runtime", "tilelang.cpasync", "utils", "utils.blackwell_helpers", "math")


_OF_THE_IR = {"numba_cute.static"}
"""Names of the IR's own operations, which the API has for something else: there it is another name of `const_expr`."""


_ASKED_BY_ATOMS = (CopyOp, MmaOp)
"""Classes whose methods are not operations: atoms call them, for `cute.copy` and `cute.gemm`, and kernels do not."""


def _modules() -> Iterator[tuple[str, ModuleType]]:
    """The facades, those with the plainest names first, and how their things are called."""
    yield OWN, numba_cute
    for room in _NVGPU:
        yield f"numba_cute.nvgpu.{room}", getattr(numba_cute.nvgpu, room)
    yield NVGPU, numba_cute.nvgpu
    for room in _ROOMS:
        yield f"numba_cute.{room}", functools.reduce(getattr, room.split("."), numba_cute)
    yield NVGPU, instructions
    yield "numba_cute.nvgpu.machine", machine


@functools.cache
def _shown() -> tuple[dict[str, Any], dict[Any, str], dict[type, str]]:
    """(function or class by name, name by function or class as its module defines it, name by class)."""
    by_name: dict[str, Any] = {}
    names: dict[Any, str] = {}
    classes: dict[type, str] = {}
    for prefix, module in _modules():
        for shown in getattr(module, "__all__", ()):
            thing = getattr(module, shown)
            if is_frozen_class(thing) or is_struct_class(thing):
                classes.setdefault(thing, f"{prefix}.{shown}")
            elif not (inspect.isfunction(thing) and is_traced(thing)):
                continue
            if f"{prefix}.{shown}" in _OF_THE_IR:
                continue
            plain = facade.plain(thing)
            by_name.setdefault(f"{prefix}.{shown}", thing)
            names.setdefault(plain, f"{prefix}.{shown}")
    return by_name, names, classes


def of_function(function: Any) -> Definition | None:
    """Find the operation that calls a function, a class or a class's static method; None if the API shows none."""
    by_name, names, classes = _shown()
    try:
        name = names.get(facade.plain(function))
    except TypeError:  # unhashable
        return None
    if name is not None:
        return Definition(name, by_name[name])
    owner, _, attribute = getattr(function, "__qualname__", "").rpartition(".")
    for cls, shown in classes.items():
        if cls.__qualname__ != owner and not owner:
            continue
        static = inspect.getattr_static(cls, attribute, None)
        if isinstance(static, staticmethod) and facade.plain(static.__func__) is facade.plain(function):
            return Definition(f"{shown}.{attribute}", getattr(cls, attribute))
    return None


def of_method(cls: type, attribute: str) -> Definition | None:
    """Find the operation that calls the method `attribute` of an object of class `cls`; None if the API shows no such
    class."""
    shown = _shown()[2].get(cls)
    if shown is None or issubclass(cls, _ASKED_BY_ATOMS) or not callable(getattr(cls, attribute, None)):
        return None
    return Definition(f"{shown}.{attribute}", None, attribute, cls)


def named(name: str) -> Definition | None:
    """Find the definition of the operation of this name; None if there is none."""
    by_name, _, classes = _shown()
    if name in by_name:
        return Definition(name, by_name[name])
    owner, _, attribute = name.rpartition(".")
    cls = next((c for c, shown in classes.items() if shown == owner), None)
    if cls is None or attribute.startswith("_"):
        return None
    static = inspect.getattr_static(cls, attribute, None)
    if isinstance(static, (staticmethod, classmethod)):
        return Definition(name, getattr(cls, attribute))
    return of_method(cls, attribute)


@functools.cache
def all_definitions() -> tuple[Definition, ...]:
    """List every operation of the API: functions and constructors, then methods."""
    by_name, _, classes = _shown()
    found = {name: Definition(name, thing) for name, thing in by_name.items()}
    for cls, shown in classes.items():
        for attribute, member in inspect.getmembers_static(cls):
            if not attribute.startswith("_") and (callable(member) or isinstance(member, (staticmethod, classmethod))):
                definition = named(f"{shown}.{attribute}")
                if definition is not None:
                    found.setdefault(definition.name, definition)
    return tuple(found.values())
