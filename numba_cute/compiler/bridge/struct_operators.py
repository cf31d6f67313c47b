# SPDX-License-Identifier: Apache-2.0
"""Operators and properties of users' structs that hold run-time control flow: calls of their jitted methods."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from numba import cuda
from numba.cuda import types, typing
from numba.cuda.typing.templates import AbstractTemplate

from ... import seam
from ...seam.marks.plain import with_ordinary_parameters
from ..ground.memory import LASTING, memory
from . import contexts, lasting
from .object_types import StructRef

_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", "matmul",
    "lt", "le", "gt", "ge", "eq", "ne", "getitem", "contains",
)  # fmt: skip
_UNARY = ("neg", "pos", "invert", "truth")
_METHODS: dict[Any, str] = {getattr(operator, n): f"__{n.rstrip('_')}__" for n in (*_BINARY, *_UNARY)}
_METHODS |= {operator.truth: "__bool__", operator.setitem: "__setitem__", len: "__len__", bool: "__bool__"}
_METHODS |= {getattr(operator, f"i{n}"): f"__i{n}__" for n in ("add", "sub", "mul", "floordiv", "mod", "truediv")}


def dispatcher_of(fn: Callable[..., Any]) -> Any:
    """Return the jitted form of a function or method for this compilation: what a user's reads is read anew in each."""
    key: tuple[Any, ...] = (fn,)
    found = memory().dispatchers
    if lasting.is_lasting_function(fn):
        key, found = (fn, *lasting.setting()), LASTING.dispatchers
    if key not in found:
        found[key] = cuda.jit(device=True, forceinline=True)(with_ordinary_parameters(fn, compiled=True))
    return found[key]


def result_type(context: Any, dispatcher: Any, args: tuple[types.Type, ...]) -> Any:
    """Return the type of what a jitted function gives for arguments of these types."""
    return types.Dispatcher(dispatcher).get_call_type(context, args, {}).return_type


def call(context: Any, builder: Any, dispatcher: Any, kinds: tuple[types.Type, ...], args: Any) -> Any:
    """Call a jitted function; gives the LLVM value of its result."""
    fn = types.Dispatcher(dispatcher)
    sig = fn.get_call_type(context.typing_context, kinds, {})
    values = [context.cast(builder, v, have, want) for v, have, want in zip(args, kinds, sig.args)]
    return context.get_function(fn, sig)(builder, values)


def _method(ty: Any, name: str) -> Callable[..., Any] | None:
    """Return the jitted method of this name that a struct's class defines."""
    raw = inspect.getattr_static(ty.cls, name, None) if isinstance(ty, StructRef) else None
    return raw if inspect.isfunction(raw) and not seam.is_traced(raw) else None


def _find(op: Any, args: Any) -> Any:
    """Find the method for an operator and whether its arguments are swapped; None if no class has it."""
    name = _METHODS[op]
    fn = _method(args[0], name)
    if fn is not None:
        return fn, False
    reflected = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
    short = name.strip("_")
    if len(args) == 2:
        fn = _method(args[1], f"__{reflected.get(short, 'r' + short)}__")
    return None if fn is None else (fn, True)


def _register(op: Any) -> None:
    @contexts.template(op)
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            found = _find(op, args) if any(isinstance(a, StructRef) for a in args) else None
            if found is None:
                return None
            fn, swapped = found
            order = args[::-1] if swapped else args
            return typing.signature(result_type(self.context, dispatcher_of(fn), tuple(order)), *args)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        fn, swapped = _find(op, sig.args)
        kinds, values = (sig.args[::-1], args[::-1]) if swapped else (sig.args, args)
        return call(context, builder, dispatcher_of(fn), tuple(kinds), values)

    if op is operator.setitem:
        contexts.lower(op, StructRef, types.Any, types.Any)(lower)
    elif op in (len, bool) or op in (getattr(operator, n) for n in _UNARY):
        contexts.lower(op, StructRef)(lower)
    else:
        contexts.lower(op, StructRef, StructRef)(lower)
        contexts.lower(op, StructRef, types.Any)(lower)
        contexts.lower(op, types.Any, StructRef)(lower)


for _op in _METHODS:
    _register(_op)
