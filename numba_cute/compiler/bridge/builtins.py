# SPDX-License-Identifier: Apache-2.0
"""Python's built-in functions of this library's objects: what Python gives, or the object's own refusal.

`if v:`, `not v`, `v and w`, `assert v` and `while v:` all ask `bool(v)`; `max(v, w)` compares and asks for the truth.
So what a class says of itself in Python, and in the simulator, holds in kernels too. The question is answered before
Numba's templates are asked: some of them take anything, and others fail on what they do not know.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.guards.messages import no_array
from ...seam.marks.decorators import no_step
from ...seam.marks.mappings import Mapping
from ..emit.leaves import NumberLeaf
from ..emit.tracer import Tracer
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.llvmlite import create_struct_proxy
from ..ground.numba import cuda
from ..ground.numba_cuda import AbstractTemplate, types, typing
from . import contexts, objects
from .object_types import Value
from .values import abstract, concrete, numba_type

_Function = Callable[..., Any]
_UNARY: tuple[_Function, ...] = (bool, operator.not_, abs, int, float)
_OF_MANY: tuple[_Function, ...] = (max, min, sorted, sum, any, all)
_OF_STATIC: tuple[_Function, ...] = (max, min, abs, sum)
"""Whose results for static integers are static."""
_UNKNOWN: tuple[_Function, ...] = (any, all, reversed, map, filter)
"""Functions that Numba does not know at all."""


def _walked(x: Any) -> Any:
    if hasattr(x, "__iter__"):  # its error says more than this one
        iter(x)
    raise CuteError(f"for … in {x!r}: a kernel's loop does not go over it; index it, i in cute.range_constexpr(…)")


def _contains(where: Any, x: Any) -> Any:
    held = (x, *where) if isinstance(where, (tuple, list)) else (x,)
    found = any(objects.is_object(item) or isinstance(item, (list, NumberLeaf)) for item in held)
    return objects.contains(where, x) if found else operator.contains(where, x)


_FUNCTIONS: dict[Any, _Function] = {f: f for f in (*_UNARY, *_OF_MANY)}
_FUNCTIONS[operator.contains] = _contains
_FUNCTIONS["getiter"] = _walked


def _atomic(name: str) -> _Function:
    def call(tensor: Any, *args: Any) -> Any:
        of_tensor = getattr(tensor, "__cute_atomic__", None)
        if of_tensor is None:
            raise CuteError(no_array(name, tensor))
        return of_tensor(name, *args)

    return call


_ATOMICS = {stub: _atomic(name) for name, stub in vars(cuda.atomic).items() if not name.startswith("_")}
_FUNCTIONS |= _ATOMICS


def _holds_ours(ty: Any) -> bool:
    return isinstance(ty, Value) or (isinstance(ty, types.BaseTuple) and any(map(_holds_ours, ty)))


def _is_static(ty: Any) -> bool:
    """Say whether a type says an integer, or a tuple of them, whole."""
    return isinstance(ty, types.IntegerLiteral) or (isinstance(ty, types.BaseTuple) and all(map(_is_static, ty)))


def _of_numbers(where: Any) -> bool:
    """Say whether a type is a tuple of numbers of several types, in which Numba does not look for anything."""
    return isinstance(where, types.Tuple) and all(isinstance(ty, (types.Number, types.Boolean)) for ty in where)


def _runs(ty: Any) -> bool:
    """Say whether a part of such a value is known only at run time."""
    if isinstance(ty, types.BaseTuple):
        return any(map(_runs, ty))
    return bool(ty.leaves) if isinstance(ty, Value) else not isinstance(ty, (types.Literal, types.NoneType))


def _call(fn: _Function, kinds: Any, values: Any, tracer: Tracer) -> Any:
    """Call `fn` with what traced code sees; raise what Python says of such values as a CuteError."""
    given = [abstract(ty, value, tracer) for ty, value in zip(kinds, values)]
    try:
        with seam.running(tracer):
            result = fn(*given)
    except CuteError:
        raise
    except (TypeError, ValueError) as e:
        raise CuteError(f"{fn.__name__}({', '.join(map(repr, given))}): {e}") from e
    known = fn is not _contains or any(map(objects.holds_objects, kinds)) or not any(map(_runs, kinds))
    known = known or (isinstance(given[0], Mapping) and not _runs(kinds[1]))  # whose keys are static
    if not known and not _of_numbers(kinds[0]):  # leaves are equal if they are one
        raise CuteError(f"{given[1]!r} in {given[0]!r}: a value that is known only at run time cannot be searched for")
    return result


@contexts.call_rule
def _resolve_function_type(func: Any, args: Any) -> Any:
    key = getattr(func, "typing_key", func)
    asked = isinstance(key, str) or callable(key)
    static = asked and key in _OF_STATIC and bool(args) and all(map(_is_static, args))
    ours = static or any(map(_holds_ours, args)) or (key is operator.contains and _of_numbers(args[0]))
    fn = _FUNCTIONS.get(key) if asked and ours else None
    if fn is None or (key == "getiter" and isinstance(args[0], types.BaseTuple)):
        return None
    if isinstance(func, types.Function):
        func._impl_keys[tuple(args)] = key  # as its own answer would have left it, for lowering
    return _typed(fn, args)


def _typed(fn: _Function, args: Any) -> Any:
    try:
        return typing.signature(numba_type(_call(fn, args, (None,) * len(args), Tracer())), *args)
    except CuteError as e:
        raise as_typing_error(e) from e


def _lower(fn: _Function, *kinds: Any, key: Any = None) -> None:
    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        tracer = Tracer(context, builder)
        return concrete(_call(fn, sig.args, args, tracer), sig.return_type, tracer)

    contexts.lower(key or fn, *kinds)(lower)


@contexts.call_rule
def _refuse_no_step(func: Any, args: Any) -> None:
    if getattr(func, "typing_key", func) is range and len(args) == 3 and getattr(args[2], "literal_value", 1) == 0:
        raise as_typing_error(CuteError(no_step("range")))


@contexts.call_rule
def _refuse_parts(func: Any, args: Any) -> None:
    """Refuse what Numba would cut to a whole number, and Python does not take."""
    if getattr(func, "typing_key", func) is range and any(isinstance(a, types.Float) for a in args):
        raise as_typing_error(CuteError("range(…) of a float: it counts whole numbers; write int(x)"))


@contexts.call_rule
def _refuse_conversions(func: Any, args: Any) -> None:
    """Refuse what Numba takes apart as one argument."""
    key: Any = getattr(func, "typing_key", None)
    if len(args) != 1 and any(key is kind for kind in (int, float, bool)):
        raise as_typing_error(CuteError(f"{key.__name__}(…) of {len(args)} arguments: a kernel's takes one number"))


@contexts.call_rule
def _refuse_lazy(func: Any, args: Any) -> None:
    key = getattr(func, "typing_key", None)
    if key is map or key is filter:
        raise as_typing_error(CuteError(f"{key.__name__} in a kernel: write a list, [f(x) for x in …], or a loop"))


def _range(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    """Lower `range(start, stop, step)`: of no rounds where the step is 0, where Python raises. Numba would end the
    kernel there."""
    state = create_struct_proxy(sig.return_type)(context, builder)
    start, stop, step = args
    no_step = builder.icmp_signed("==", step, step.type(0))
    state.start, state.stop = start, builder.select(no_step, start, stop)
    state.step = builder.select(no_step, step.type(1), step)
    return state._getvalue()


for _integer in (types.int32, types.int64, types.uint64):
    contexts.lower(range, _integer, _integer, _integer)(_range)


@contexts.template(operator.contains)
class _Contains(AbstractTemplate):
    """Numba asks for the types of `in` once more when it lowers it."""

    def generic(self, args: Any, kws: Any) -> Any:
        return _typed(_contains, args) if any(map(_holds_ours, args)) or _of_numbers(args[0]) else None


class _Unknown(AbstractTemplate):
    """For what Numba has no template for: nothing fits."""

    def generic(self, args: Any, kws: Any) -> Any:
        return None


for _fn in _UNKNOWN:
    contexts.template(_fn)(type("_Unknown", (_Unknown,), {}))
for _fn in _UNARY:
    _lower(_fn, Value)
for _fn in _OF_STATIC:
    _lower(_fn, types.IntegerLiteral)
    _lower(_fn, types.IntegerLiteral, types.IntegerLiteral)
    _lower(_fn, types.IntegerLiteral, types.IntegerLiteral, types.VarArg(types.IntegerLiteral))
for _key, _fn in _ATOMICS.items():
    _lower(_fn, Value, types.VarArg(types.Any), key=_key)
for _tuple in (types.UniTuple, types.Tuple):
    for _fn in _OF_MANY:
        _lower(_fn, _tuple)
for _where in (types.UniTuple, types.Tuple, Value):
    for _item in (Value, types.Literal, types.Any):
        _lower(_contains, _where, _item, key=operator.contains)
