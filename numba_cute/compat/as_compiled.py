# SPDX-License-Identifier: Apache-2.0
"""Calls of what `cute.compile` gave. In the CuTe DSL the arguments are of the types that it was compiled for: an array
is a tensor of that layout, as static and as aligned, and a pointer has that alignment and memory space."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import Any

from ..compiler.host.result import CompiledHost
from ..dtypes import Scalar
from ..isa.form.targets import asked
from ..layout import Layout
from ..runtime import from_dlpack
from ..seam import CuteError
from ..seam.ground.naming import shown
from ..seam.marks.constexpr import constexpr_names, parameters_of, with_static
from ..tensor.pointer import Pointer, make_ptr
from ..tensor.tensor import Tensor
from .workspaces import QueryDeviceWorkspaceFunc, giving, workspace_of

_ADDRESSED = (Tensor, Pointer)


@dataclasses.dataclass(frozen=True)
class CompiledFor(CompiledHost):
    """A compiled host function that makes its arguments what it was compiled for. held: the names of those that a
    partial function held, which calls leave out."""

    held: frozenset[str] = frozenset()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the host function, as `CompiledHost`. After its arguments one more may be memory for the tensor maps
        that its kernels make. CuteError: an argument that is not as when it was compiled."""
        like = dict(zip(parameters_of(self.host), self.args))
        taken = with_static(self.host, self.args, args[:-1], named, self.held)
        given = with_static(self.host, self.args, args, named, self.held)
        with giving(args[-1]) if args and len(taken) == len(given) else nullcontext():
            return self.host(**{n: as_compiled(x, like.get(n), n) for n, x in given.items()})

    def get_aux_func(self, kind: Any, kernel: Any = None) -> Any:
        """Return a function of the same arguments that tells something of a call. kind: QueryDeviceWorkspaceFunc, how
        much memory for tensor maps may be given. kernel: the one that is asked about; None for all."""
        if kind is not QueryDeviceWorkspaceFunc:
            raise CuteError(f"get_aux_func: kind {shown(kind)}: there is QueryDeviceWorkspaceFunc alone")
        target = asked()
        arch = self.kernels[0].arch if self.kernels else "sm_90a" if target is None else target.name
        return workspace_of(self, kernel, arch)


def as_compiled(value: Any, like: Any, name: str) -> Any:
    """Return an argument as a parameter `name` has it that was compiled for `like`; itself, where that says nothing."""
    if (value is None and isinstance(like, _ADDRESSED)) or (like is None and isinstance(value, _ADDRESSED)):
        raise CuteError(f"{name}: {shown(value)} is given, and {shown(like)} was compiled for")
    if isinstance(like, (tuple, list)) and isinstance(value, (tuple, list)):
        return _items(value, like, name)
    if isinstance(like, Pointer):
        return _pointer(value, like, name)
    if isinstance(like, Scalar):
        return like.dtype(value) if type(value) in (bool, int, float) else value
    if not isinstance(like, Tensor) or not isinstance(like.iterator, Pointer) or not isinstance(like.layout, Layout):
        return value
    if hasattr(value, "__dlpack__"):
        value = from_dlpack(value, assumed_align=like.iterator.alignment)
    if not isinstance(value, Tensor) or not isinstance(value.iterator, Pointer):
        return value
    given, wanted = _modes(value, name), _modes(like, name)
    apart = CuteError(f"{name}: {value.layout} is given, and {like.layout} was compiled for")
    if len(given) != len(wanted):
        raise apart
    shape, stride = [], []
    for (n, d), (extent, step) in zip(given, wanted):
        shape.append(_leaf(n, extent, apart))
        stride.append(step if type(step) is int and _is_one(n) else _leaf(d, step, apart))
    return Tensor(_pointer(value.iterator, like.iterator, name), Layout(tuple(shape), tuple(stride)))


def _items(value: Any, like: Any, name: str) -> Any:
    """Return a tuple or list with each item as compiled. Those that a NamedTuple marks Constexpr are None in calls."""
    if len(value) != len(like):
        raise CuteError(f"{name}: {len(value)} items are given, and {len(like)} were compiled for")
    names = getattr(like, "_fields", range(len(like)))
    kind: Any = type(like)
    static = constexpr_names(kind) if hasattr(like, "_fields") else frozenset()
    items = [
        _constant(x, y, f"{name}.{n}") if n in static else as_compiled(x, y, f"{name}.{n}")
        for n, x, y in zip(names, value, like)
    ]
    make = getattr(like, "_make", type(value))
    return make(items)


def _constant(value: Any, like: Any, name: str) -> Any:
    """Return what a static item was when the function was compiled. CuteError: it is given as another."""
    if value is not None and value != like:
        raise CuteError(f"{name}: {shown(value)} is given, and {shown(like)} was compiled for")
    return like


def _pointer(value: Any, like: Pointer, name: str) -> Any:
    if type(value) is int:
        return make_ptr(like.dtype, value, like.space, like.alignment)
    if not isinstance(value, Pointer):
        return value
    if value.dtype != like.dtype:
        raise CuteError(f"{name}: elements of {value.dtype} are given, and {like.dtype} was compiled for")
    at = getattr(value.address, "value", value.address)
    if type(at) is int and at % like.alignment:
        raise CuteError(
            f"{name}: address {at:#x} is not a multiple of {like.alignment} bytes, for which it was compiled"
        )
    return dataclasses.replace(value, alignment=like.alignment, space=like.space)


def _modes(t: Tensor, name: str) -> list[tuple[Any, Any]]:
    """Return the extent and stride of each mode: numbers of the one that is given, and what was compiled for."""
    shape, stride = t.layout.shape, t.layout.stride
    if not isinstance(shape, tuple) or any(isinstance(n, tuple) for n in shape):
        raise CuteError(f"{name}: layout {t.layout} of an argument of a compiled function must be flat")
    return list(zip(shape, stride))


def _leaf(x: Any, like: Any, apart: CuteError) -> Any:
    """Return a number as it was compiled for: static, or of that type with that divisor."""
    number = int(getattr(x, "value", x))
    if not isinstance(like, Scalar):
        if number != like:
            raise apart
        return like
    if number % like.divisor:
        raise CuteError(f"{apart}: {number} is not a multiple of {like.divisor}")
    return like.dtype(number).assumed(like.divisor)


def _is_one(n: Any) -> bool:
    return bool(getattr(n, "value", n) == 1)
