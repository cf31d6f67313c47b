# SPDX-License-Identifier: Apache-2.0
"""Traced calls: Numba's typing and lowering run the library's own Python.

Typing runs it on leaves without values and takes the result's type; lowering runs it again on leaves that emit
into the caller's frame. Nothing is registered for each function: anything that `seam` marks is found here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numba.cuda import types, typing
from numba.cuda.descriptor import cuda_target
from numba.cuda.typing.templates import fold_arguments

from ... import seam
from ...seam import CuteError, facade
from ..emit.tracer import Tracer
from ..ground.errors import as_typing_error
from ..ground.target import current_arch
from .object_types import BoundTraced, traces_calls
from .values import abstract, concrete, numba_type


def run(fn: Callable[..., Any], pysig: inspect.Signature, args: list[Any], tracer: Tracer) -> Any:
    """Call `fn` with one value for each of its parameters."""
    plain, named = [], {}
    for p, a in zip(pysig.parameters.values(), args):
        if p.kind is p.VAR_POSITIONAL:
            plain.extend(a)
        elif p.kind is p.KEYWORD_ONLY:
            named[p.name] = a
        else:
            plain.append(a)
    with seam.running(tracer):
        return fn(*plain, **named)


@functools.cache
def _signature(fn: Callable[..., Any]) -> tuple[inspect.Signature, inspect.Signature]:
    """Return a callable's signature, and the same with keyword-only parameters made ordinary (what Numba can fold)."""
    sig = inspect.signature(fn)
    if any(p.kind is p.VAR_KEYWORD for p in sig.parameters.values()):
        raise CuteError(f"{fn!r} takes **kwargs, which a kernel cannot pass: name its parameters")
    params = [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.kind is p.KEYWORD_ONLY else p for p in sig.parameters.values()
    ]
    if any(p.kind is p.VAR_POSITIONAL for p in params):  # what follows *args is given by name, which Python checks not
        return sig, inspect.Signature(params, __validate_parameters__=False)
    required = [p for p in params if p.default is p.empty]
    ordered = required + [p for p in params if p.default is not p.empty]
    return sig, sig.replace(parameters=ordered, return_annotation=inspect.Signature.empty)


_LOCATIONS = ("loc", "ip")


def _with_locations(sig: inspect.Signature) -> inspect.Signature:
    """Return a signature with the parameters that a facade's functions take and ignore."""
    added = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for n in _LOCATIONS]
    return inspect.Signature([*sig.parameters.values(), *added], __validate_parameters__=False)


def _fold(fn: Any, pysig: inspect.Signature, args: Any, kws: Any) -> tuple[types.Type, ...]:
    try:
        pysig.bind(*args, **dict(kws))
    except TypeError as e:
        name = getattr(fn, "__qualname__", type(fn).__name__)
        raise CuteError(f"{name}{pysig} was called with other arguments: {e}") from None
    return tuple(
        fold_arguments(
            pysig, args, dict(kws),
            lambda index, param, value: value,
            lambda index, param, default: types.Omitted(default),
            lambda index, param, values: types.BaseTuple.from_types(list(values)),
        )
    )  # fmt: skip


_results: dict[Any, Any] = {}


@traces_calls
def trace_call(key: Any, receiver: Any, find: Callable[[Any], Callable[..., Any]], args: Any, kws: Any) -> Any:
    """Return the signature of calling `find(the receiver object)`, with its lowering registered under `key`.

    receiver: the Numba type whose object `find` is given: the callable itself or a method's object.
    """
    try:
        typing_tracer = Tracer()
        with seam.running(typing_tracer):
            fn = find(abstract(receiver, None, typing_tracer))
        real, folded = _signature(fn) if _is_shared(fn) else _signature.__wrapped__(fn)
        if facade.takes_locations(fn) and not dict(kws).keys().isdisjoint(_LOCATIONS):
            folded = _with_locations(folded)
        types_ = _fold(fn, folded, args, kws)
        memo = (key, types_, current_arch())
        result = _results.get(memo)
        if result is None:
            names = list(folded.parameters)
            order = [names.index(p) for p in real.parameters]
            values = [abstract(t, None, typing_tracer) for t in types_]
            result = numba_type(run(fn, real, [values[i] for i in order], typing_tracer))
            _register(key, receiver, find, real, order, types_)
            _results[memo] = result
    except CuteError as e:
        raise as_typing_error(e) from e
    return typing.signature(result, *types_, recvr=receiver if _has_receiver(key, receiver) else None).replace(
        pysig=folded
    )


def _has_receiver(key: Any, receiver: Any) -> bool:
    """Say whether lowering is given the receiver's value: a method's object, or a called object that has leaves."""
    return key[0] is BoundTraced or bool(receiver.leaves)


def _is_shared(fn: Any) -> bool:
    """Say whether this callable is one for all calls (bound methods are made anew for each)."""
    return inspect.isfunction(fn) or isinstance(fn, type)


def _register(key: Any, receiver: Any, find: Any, real: Any, order: list[int], types_: Any) -> None:
    bound = _has_receiver(key, receiver)
    full = ((receiver,) if bound else ()) + types_

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tracer = Tracer(context, builder)
        self_value = args[0] if bound else context.get_value_type(receiver)(None)
        values = [abstract(t, a, tracer) for t, a in zip(types_, args[1:] if bound else args)]
        with seam.running(tracer):
            fn = find(abstract(receiver, self_value, tracer))
        result = run(fn, real, [values[i] for i in order], tracer)
        return concrete(result, sig.return_type, tracer)

    impl_key = (*key, full)
    selector = cuda_target.target_context._defns[impl_key]
    if full not in [s for s, _ in selector.versions]:
        selector.append(lower, full)
