# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and properties of users' structs that hold run-time control flow: calls of their jitted methods (for
comparisons and builtins, see `objects`)."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from ... import seam
from ...seam.marks.plain import as_numba_takes
from ..emit.tracer import Tracer
from ..ground.builder import Builder, Target
from ..ground.memory import LASTING, memory
from ..ground.numba import cuda
from ..ground.numba_cuda import AbstractTemplate, CUDADispatcher, types, typing
from . import contexts, lasting
from .object_types import StructRef, Value
from .values import abstract

_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", "matmul",
    "getitem",
)  # fmt: skip
_UNARY = ("neg", "pos", "invert")
_METHODS: dict[Any, str] = {getattr(operator, n): f"__{n.rstrip('_')}__" for n in (*_BINARY, *_UNARY)}
_METHODS[operator.setitem] = "__setitem__"
_PLAIN = {getattr(operator, f"i{n.strip('_')}"): getattr(operator, n) for n in _BINARY if n != "getitem"}
"""By an operator like `+=`, the one that it is where a class has none of its own."""
_METHODS |= {op: f"__{op.__name__}__" for op in _PLAIN}


def dispatcher_of(fn: Callable[..., Any]) -> Any:
    """Return the jitted form of a function or method for this compilation: what a user's reads is read anew in each."""
    key: tuple[Any, ...] = (fn,)
    found = memory().dispatchers
    if lasting.is_lasting_function(fn):
        key, found = (fn, *lasting.setting()), LASTING.dispatchers
    if key not in found:
        found[key] = cuda.jit(device=True, forceinline=True)(as_numba_takes(fn))
        found[key].__class__ = Jitted
    return found[key]


class Jitted(CUDADispatcher):
    """A function that Numba compiles, which traced code calls as it calls any other."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        return seam.current().call_function(self, args, named)  # type: ignore[attr-defined]


def result_type(context: Any, dispatcher: Any, args: tuple[types.Type, ...]) -> Any:
    """Return the type of what a jitted function gives for arguments of these types."""
    return types.Dispatcher(dispatcher).get_call_type(context, args, {}).return_type


def call(context: Target, builder: Builder, dispatcher: Any, kinds: tuple[types.Type, ...], args: Any) -> Any:
    """Call a jitted function; gives the LLVM value of its result."""
    fn = types.Dispatcher(dispatcher)
    sig = fn.get_call_type(context.typing_context, kinds, {})
    values = [context.cast(builder, v, have, want) for v, have, want in zip(args, kinds, sig.args)]
    return context.get_function(fn, sig)(builder, values)


def _method(ty: Any, name: str) -> Callable[..., Any] | None:
    """Return the jitted method of this name that a struct's class defines."""
    raw = inspect.getattr_static(ty.cls, name, None) if isinstance(ty, StructRef) else None
    return raw if inspect.isfunction(raw) and not seam.is_traced(raw) else None


def _candidates(op: Any, args: Any) -> list[tuple[Any, bool]]:
    """List the methods that Python asks for an operator, in its order, and whether their arguments are swapped."""
    name, plain = _METHODS[op], _PLAIN.get(op)
    first = [(_method(args[0], name), False)]
    if plain is not None:
        return [*first, *_candidates(plain, args)]
    if len(args) != 2 or op is operator.getitem:
        return first
    ours, theirs = ((a.cls if isinstance(a, StructRef) else None) for a in args)
    reflected = f"__r{name.strip('_')}__"
    second = [] if ours is theirs else [(_method(args[1], reflected), True)]
    derived = ours is not None and theirs is not None and ours is not theirs and issubclass(theirs, ours)
    return second + first if derived and second[0][0] is not _method(args[0], reflected) else first + second


def _find(op: Any, args: Any) -> Any:
    """Find the method for an operator, whether its arguments are swapped, and what it gives; None if no class has one
    that does not give NotImplemented."""
    context = contexts.typing_context()
    for fn, swapped in _candidates(op, args):
        if fn is not None:
            result = result_type(context, dispatcher_of(fn), tuple(args[::-1] if swapped else args))
            if not _is_no_answer(result):
                return fn, swapped, result
    return None


def _is_no_answer(ty: Any) -> bool:
    return isinstance(ty, Value) and not ty.leaves and abstract(ty, None, Tracer()) is NotImplemented


def _register(op: Any) -> None:
    @contexts.template(op)
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            found = _find(op, args) if any(isinstance(a, StructRef) for a in args) else None
            return None if found is None else typing.signature(found[2], *args)

    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        fn, swapped, _ = _find(op, sig.args)
        kinds, values = (sig.args[::-1], args[::-1]) if swapped else (sig.args, args)
        return call(context, builder, dispatcher_of(fn), tuple(kinds), values)

    if op is operator.setitem:
        contexts.lower(op, StructRef, types.Any, types.Any)(lower)
    elif op in (getattr(operator, n) for n in _UNARY):
        contexts.lower(op, StructRef)(lower)
    else:
        contexts.lower(op, StructRef, StructRef)(lower)
        contexts.lower(op, StructRef, types.Any)(lower)
        contexts.lower(op, types.Any, StructRef)(lower)


for _op in _METHODS:
    _register(_op)
