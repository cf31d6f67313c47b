# SPDX-License-Identifier: Apache-2.0
"""Traced calls: Numba's typing and lowering run the library's own Python.

Typing runs it on leaves without values and takes the result's type; lowering runs it again on leaves that emit
into the caller's frame. Nothing is registered for each function: anything that `seam` marks is found here.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
import operator
from collections.abc import Callable
from types import FunctionType, GeneratorType, MethodType, SimpleNamespace
from typing import Any

from ... import promotion, seam
from ...seam import CuteError
from ...seam.ground import watching
from ...seam.ground.error import Signal
from ...seam.ground.names import WrongArguments, other_arguments
from ...seam.ground.naming import shown
from ...seam.guards import facade
from ...seam.marks import plain
from ...seam.marks.host_objects import python_of
from ...seam.source.class_statements import without_classes
from ...seam.source.followed import followed
from ...seam.source.identity import asks_for_identity
from ...seam.source.language import GENERATOR, follows_python, no_operator, refuse_code
from ...seam.source.with_statements import has_with, without_with
from ..emit.tracer import Tracer
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.faults import Final, in_words, is_numbas, may_be_jitted, tells_more
from ..ground.memory import LASTING, memory
from ..ground.numba_cuda import CUDADispatcher, TypingError, fold_arguments, types, typing
from ..ground.refusals import NUMBAS, SIGNS, kind
from . import contexts, effects, tree
from .kinds import note_traced
from .lasting import is_lasting_value, lasts, setting
from .looks_into import REPLACED
from .object_types import BoundTraced, StructRef, Value, names_of, traces_calls
from .printing import printing_at_run_time
from .recorder import recorder_of
from .state import unchanged
from .struct_operators import dispatcher_of
from .values import abstract, concrete, numba_type, settle_before


def run(fn: Callable[..., Any], pysig: inspect.Signature, args: list[Any], tracer: Tracer) -> Any:
    """Call `fn` with one value for each of its parameters."""
    given, named = [], {}
    for p, a in zip(pysig.parameters.values(), args):
        if p.kind is p.VAR_POSITIONAL:
            given.extend(a)
        elif p.kind is p.KEYWORD_ONLY:
            named[p.name] = a
        else:
            given.append(a)
    before, tracer.plain = tracer.plain, tracer.plain or _is_users(fn)
    if fn is functools.partial and not callable(given[0]):
        raise CuteError(f"partial({shown(given[0])}, …): the first argument must be a function")
    if isinstance(fn, functools.partial) and isinstance(fn.func, CUDADispatcher):
        fn = functools.partial(_call_dispatcher, fn.func, *fn.args, **fn.keywords)
    if isinstance(fn, FunctionType):
        fn = REPLACED[fn] if fn in REPLACED else followed(fn) if has_with(fn.__code__) else fn
    try:
        with seam.following(tracer), printing_at_run_time(tracer):
            result = fn(*given, **named)
        tracer.lists.check()
        return result
    finally:
        tracer.plain = before


def _call_dispatcher(function: Any, /, *args: Any, **named: Any) -> Any:
    return call_jitted(function, args, named)


def _is_users(fn: Any) -> bool:
    """Say whether a function, a class, or a method of what is not immutable, is a plain one of the user's."""
    if isinstance(fn, MethodType) and seam.is_frozen_class(type(fn.__self__)):
        return False
    fn = fn.func if isinstance(fn, functools.partial) else getattr(fn, "__func__", fn)
    fn = python_of(fn) or fn
    return plain.is_plain_function(fn) or plain.is_plain_class(fn)


def _signatures(fn: Callable[..., Any], kws: Any) -> tuple[inspect.Signature, inspect.Signature]:
    """Return the signature of a call of `fn` that names `kws`, and the same as `_ordinary` has it."""
    if _is_shared(fn):
        known = _shared_signature(fn)
        if known is not None:
            return known
    sig = _of_callable(fn)
    if isinstance(fn, functools.partial):  # what it holds it gives itself
        held = fn.keywords.keys() - dict(kws).keys()
        sig = sig.replace(parameters=[p for n, p in sig.parameters.items() if n not in held])
    return _ordinary(_with_named(sig, kws))


def _of_callable(fn: Callable[..., Any]) -> inspect.Signature:
    if fn is functools.partial:
        return inspect.Signature([
            inspect.Parameter("function", inspect.Parameter.POSITIONAL_ONLY),
            inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
            inspect.Parameter("keywords", inspect.Parameter.VAR_KEYWORD),
        ])  # fmt: skip
    if fn is SimpleNamespace:
        return inspect.Signature([inspect.Parameter("fields", inspect.Parameter.VAR_KEYWORD)])
    return plain.own_signature(fn)


def _shared_signature(fn: Callable[..., Any]) -> tuple[inspect.Signature, inspect.Signature] | None:
    """Return the signatures of a callable that is the same for all calls; None if they depend on the call."""
    return _lasting_signature(fn) if is_lasting_value(fn) else _whole_signature(fn)


def _whole_signature(fn: Callable[..., Any]) -> tuple[inspect.Signature, inspect.Signature] | None:
    sig = _of_callable(fn)
    return None if any(p.kind is p.VAR_KEYWORD for p in sig.parameters.values()) else _ordinary(sig)


def _ordinary(sig: inspect.Signature) -> tuple[inspect.Signature, inspect.Signature]:
    """Return a signature, and the same with keyword-only parameters made ordinary (what Numba can fold)."""
    params = [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.kind is p.KEYWORD_ONLY else p for p in sig.parameters.values()
    ]
    if any(p.kind is p.VAR_POSITIONAL for p in params):  # what follows *args is given by name, which Python checks not
        return sig, inspect.Signature(params, __validate_parameters__=False)
    required = [p for p in params if p.default is p.empty]
    ordered = required + [p for p in params if p.default is not p.empty]
    return sig, sig.replace(parameters=ordered, return_annotation=inspect.Signature.empty)


def _with_named(sig: inspect.Signature, kws: Any) -> inspect.Signature:
    """Return a signature whose **kwargs is what a call names beside the other parameters."""
    if all(p.kind is not p.VAR_KEYWORD for p in sig.parameters.values()):
        return sig
    given = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in dict(kws) if n not in sig.parameters]
    params = [p for p in sig.parameters.values() if p.kind is not p.VAR_KEYWORD]
    return sig.replace(parameters=[*params, *given])


_LOCATIONS = ("loc", "ip")


def _with_locations(sig: inspect.Signature) -> inspect.Signature:
    """Return a signature with the parameters that a facade's functions take and ignore."""
    added = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for n in _LOCATIONS]
    return inspect.Signature([*sig.parameters.values(), *added], __validate_parameters__=False)


def _fold(fn: Any, pysig: inspect.Signature, args: Any, kws: Any) -> tuple[types.Type, ...]:
    # of one that holds names, the places behind them are not places
    partly = isinstance(fn, functools.partial) and fn.keywords
    try:
        (plain.own_signature(fn) if partly else pysig).bind(*args, **dict(kws))
    except TypeError as e:
        raise WrongArguments(other_arguments(fn, str(e), dict(kws))) from None
    return tuple(
        fold_arguments(
            pysig, args, dict(kws),
            lambda index, param, value: value,
            lambda index, param, default: types.Omitted(default),
            lambda index, param, values: types.BaseTuple.from_types(list(values)),
        )
    )  # fmt: skip


_lasting_signature = functools.cache(_whole_signature)


@traces_calls
def type_call(key: Any, receiver: Any, find: Callable[[Any], Callable[..., Any]], args: Any, kws: Any) -> Any:
    """Return the signature of calling `find(the receiver object)`, with its lowering registered under `key`.

    receiver: the Numba type whose object `find` is given: the callable itself or a method's object. What is called is
    traced; of the user's plain functions those that Python alone cannot follow are jitted.
    """
    memo = (key, tuple(args), tuple(dict(kws).items()))
    if memo not in memory().jitted and any(map(_is_run_time, (receiver, *args, *dict(kws).values()))):
        fn = _plain_function(receiver, find)
        if plain.is_plain_function(fn) and asks_for_identity(fn) and not follows_python(fn):
            return _jit_call(key, receiver, fn, args, kws, memo)
    if memo not in memory().jitted:
        try:
            return _trace_call(key, receiver, find, args, kws)
        except (Signal, Exception) as e:
            return _call_instead(e, key, receiver, find, args, kws, memo)
    return _jit_call(key, receiver, memory().jitted[memo], args, kws, memo)


def _call_instead(why: BaseException, key: Any, receiver: Any, find: Any, args: Any, kws: Any, memo: Any) -> Any:
    """Return the signature of a call that is not traced, for a reason that is no error of anybody's: Numba has the
    function itself, or compiles it. Else what tracing raised is said."""
    known = _known_to_numba(receiver)
    if known is not None:
        return _numba_call(key, receiver, known, args, kws)
    if not may_be_jitted(why):
        raise as_typing_error(in_words(why, name_of(receiver, key))) from why
    fn = _plain_function(receiver, find)
    if fn is None:
        raise as_typing_error(in_words(why, name_of(receiver, key))) from why
    try:
        refuse_code(without_classes(without_with(fn)))
        return _jit_call(key, receiver, fn, args, kws, memo)
    except (*NUMBAS, CuteError, NotImplementedError, AssertionError) as other:
        if tells_more(why) or (isinstance(other, AssertionError) and is_numbas(other)):
            raise as_typing_error(in_words(why, name_of(receiver, key))) from why
        raise other from why


def _is_run_time(ty: Any) -> bool:
    """Say whether a type is one of objects or numbers that are known only at run time, or holds such a one."""
    if isinstance(ty, types.BaseTuple):
        return any(map(_is_run_time, ty))
    if isinstance(ty, Value):
        return bool(ty.leaves)
    return isinstance(ty, (StructRef, types.Number, types.Boolean)) and not isinstance(ty, types.Literal)


def _known_to_numba(receiver: Any) -> Any:
    """Return Numba's type of a function that it has itself, as `math`'s and those of `@overload`; None of any other."""
    if not isinstance(receiver, Value) or receiver.spec[0] != "const":
        return None
    found = contexts.numbas_own(receiver.spec[2])
    return found if isinstance(found, types.Function) else None


def _numba_call(key: Any, receiver: Any, function: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call of Numba's own function, with its lowering registered."""
    context = contexts.typing_context()
    inner = function.get_call_type(context, args, dict(kws))

    def lower(context: Target, builder: Builder, sig: Any, values: Any) -> Any:
        return context.get_function(function, inner)(builder, values)

    made = typing.signature(inner.return_type, *inner.args).replace(pysig=inner.pysig)
    memory().register(_asked_by(key, made), lower)
    return made


def _plain_function(receiver: Any, find: Callable[[Any], Any]) -> Any:
    """Return the user's plain function that a call calls, unbound; None if it calls something else."""
    tracer = Tracer()
    try:
        with seam.running(tracer):
            fn = find(abstract(receiver, None, tracer))
    except (CuteError, AttributeError):  # there is no such function, which tracing said
        return None
    if isinstance(fn, functools.partial):
        held, fn = len(fn.args), fn.func
        code = getattr(fn, "__code__", None)
        if code is not None and code.co_flags & inspect.CO_VARARGS and held > code.co_argcount:
            return None  # which of the arguments it holds are among those, Numba does not say
    fn = python_of(getattr(fn, "__func__", fn))
    return fn if plain.is_jittable(fn) else None


def _held_by(receiver: Any, value: Any, tracer: Tracer) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that what is called gives itself, by place and by name: those of a partial function, and the
    class of a class method."""
    kind = receiver.spec[0] if isinstance(receiver, Value) else ""
    if kind == "const" and isinstance(receiver.spec[2], MethodType):
        return (receiver.spec[2].__self__,), {}
    if kind != "partial":
        return (), {}
    made = abstract(receiver, value, tracer)
    first = (made.func.__self__,) if isinstance(made.func, MethodType) else ()
    return (*first, *made.args), made.keywords


def _jit_call(key: Any, receiver: Any, fn: Any, args: Any, kws: Any, memo: Any) -> Any:
    """Return the signature of a call of a plain function that Numba compiles, with its lowering registered."""
    dispatcher = dispatcher_of(fn)
    bound = _has_receiver(key, receiver)
    first, named = _held_by(receiver, None, Tracer())
    own = (receiver,) if key[0] is BoundTraced else tuple(map(numba_type, first))
    held = {n: numba_type(x) for n, x in named.items() if n not in dict(kws)}
    whole = (*own, *args), {**dict(kws), **held}
    template, pysig, given, none = dispatcher.get_call_template(*whole)
    inner = template(contexts.typing_context()).apply(given, none)
    names = list(pysig.parameters)
    rest = [i for i, n in enumerate(names) if i >= len(own) and n not in held]
    types_ = tuple(inner.args[i] for i in rest)

    def lower(context: Target, builder: Builder, sig: Any, values: Any) -> Any:
        at = dict(zip(rest, values[1:] if bound else values))
        if key[0] is BoundTraced:
            at[0] = values[0]
        elif own or held:
            tracer = Tracer(context, builder)
            parts, by_name = _held_by(receiver, values[0] if bound else None, tracer)
            mine = {**dict(enumerate(parts)), **{names.index(n): by_name[n] for n in held}}
            for i, x in mine.items():
                ty = numba_type(x)
                at[i] = context.cast(builder, concrete(x, ty, tracer), ty, inner.args[i])
        return context.get_function(types.Dispatcher(dispatcher), inner)(builder, [at[i] for i in range(len(names))])

    params = [pysig.parameters[names[i]] for i in rest]
    made = typing.signature(inner.return_type, *types_, recvr=receiver if bound else None).replace(
        pysig=inspect.Signature(params, __validate_parameters__=False)
    )
    full = (*key, ((receiver,) if bound else ()) + types_)
    numbers = [rest.index(i) + bound if i in rest else 0 for i in range(len(names))]
    known = memory()
    known.register(_asked_by(key, made), lower)
    itself = frozenset(range(key[0] is BoundTraced, len(names))) - {*rest}
    known.effects[full] = effects.Jitted(dispatcher.py_func, tuple(inner.args), tuple(numbers), itself)
    known.jitted[memo] = fn
    return made


def _asked_by(key: Any, made: Any) -> tuple[Any, ...]:
    """Return what Numba asks for a call's lowering by. made: the call's signature."""
    if key[0] is BoundTraced:
        return (*key, made.as_function().args)
    return (*key, names_of(made.as_function()), made.as_function().args)


def call_jitted(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a function that Numba compiles from traced code; one that Python follows runs."""
    tracer: Any = seam.current()
    if follows_python(function.py_func):
        return followed(function.py_func)(*args, **named)
    values = inspect.signature(function.py_func).bind(*args, **named)
    values.apply_defaults()
    given = [*values.args, *values.kwargs.values()]
    mentioned = [] if watching.now is None else list(map(watching.now.name, given))
    settle_before(given, tracer)
    kinds = tuple(map(numba_type, given))
    fn = types.Dispatcher(dispatcher_of(function.py_func))
    with watching.watching(None):
        sig = fn.get_call_type(contexts.typing_context(), kinds, {})
    if tracer.builder is None:
        found = abstract(sig.return_type, None, tracer)
        if watching.now is not None:
            watching.now.jitted((fn.dispatcher.py_func, tuple(sig.args)), mentioned, found)
        if tracer.trail is not None:
            tracer.trail.note(found, frozenset((effects.NEW,)) | tracer.trail.of(given))
        return found
    lowered = [concrete(x, ty, tracer) for x, ty in zip(given, kinds)]
    lowered = [tracer.context.cast(tracer.builder, v, h, w) for v, h, w in zip(lowered, kinds, sig.args)]
    out = tracer.context.get_function(fn, sig)(tracer.builder, lowered)
    return abstract(sig.return_type, out, tracer)


def operate(op: str, *operands: Any, reference: bool = False) -> Any:
    """Apply an operator to numbers, one of them a leaf, as in a function that Numba compiles. op: its name in
    `operator`, among Python's functions or in `math`. reference: whether by the CuTe DSL's rule."""
    with promotion.following(reference):
        return _operated(op, *operands)


def _operated(op: str, *operands: Any) -> Any:
    tracer: Any = seam.current()
    kinds = tuple(map(numba_type, operands))
    if not promotion.followed():
        kinds = tuple(map(types.unliteral, kinds))
    context = contexts.typing_context()
    fn = context.resolve_value_type(next(getattr(m, op) for m in (operator, builtins, math) if hasattr(m, op)))
    try:
        sig = fn.get_call_type(context, kinds, {})
    except TypingError:
        sig = None
    if sig is None:
        raise CuteError(no_operator(SIGNS.get(op, op), [kind(str(ty)) for ty in kinds]))
    if tracer.builder is None:
        return abstract(sig.return_type, None, tracer)
    lowered = [concrete(x, ty, tracer) for x, ty in zip(operands, kinds)]
    lowered = [tracer.context.cast(tracer.builder, v, have, want) for v, have, want in zip(lowered, kinds, sig.args)]
    out = tracer.context.get_function(fn, sig)(tracer.builder, lowered)
    return abstract(sig.return_type, out, tracer)


Tracer.call_function = staticmethod(call_jitted)
Tracer.operate = staticmethod(operate)


def _trace_call(key: Any, receiver: Any, find: Callable[[Any], Callable[..., Any]], args: Any, kws: Any) -> Any:
    typing_tracer = Tracer()
    trail = typing_tracer.trail = effects.Trail()
    this = abstract(receiver, None, typing_tracer)
    if effects.kinds(receiver):
        trail.note(this, frozenset((0,)))
    with seam.following(typing_tracer):
        fn = find(this)
    real, folded = _signatures(fn, kws)
    whole = fn.func if isinstance(fn, functools.partial) else fn  # a struct's method is a partial one
    if facade.takes_locations(whole) and not dict(kws).keys().isdisjoint(_LOCATIONS):
        folded = _with_locations(folded)
    types_ = _fold(fn, folded, args, kws)
    memo: tuple[Any, ...] = (key, types_, tuple(folded.parameters), promotion.followed())
    known = memory()
    reached: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if all(map(lasts, (receiver, *types_))):
        memo, known = (*memo, *setting()), LASTING
    else:
        reached = unchanged(name_of(receiver, key), typing_tracer, fn, *map(static_of, (receiver, *types_)))
    result = known.results.get(memo)
    if result is None:
        names = list(folded.parameters)
        order = [names.index(p) for p in real.parameters]
        values = [abstract(t, None, typing_tracer) for t in types_]
        first = int(_has_receiver(key, receiver))
        for i, x in enumerate(values, first):
            if effects.kinds(types_[i - first]):
                trail.note_argument(x, i)
        recorder = recorder_of(fn, (this,) * first + tuple(values))
        with reached, watching.watching(recorder):
            given = run(fn, real, [values[i] for i in order], typing_tracer)
            if isinstance(given, GeneratorType):
                raise Final(GENERATOR)
            with seam.running(typing_tracer):
                result = numba_type(given)
        full = (*key, (receiver,) * first + types_)
        known.effects[full] = trail.effects(given if effects.kinds(result) else None)
        known.results[memo] = result
        if recorder is not None:
            recorder.keep(known.bodies, full, given)
        with seam.running(typing_tracer):
            note_traced(fn, real, (*(receiver,) * first, *(types_[i] for i in order)))
        made = _called(result, types_, key, receiver, folded)
        known.register(_asked_by(key, made), _lowering(key, receiver, find, real, order, types_))
    return _called(result, types_, key, receiver, folded)


def _called(result: Any, types_: Any, key: Any, receiver: Any, pysig: Any) -> Any:
    """Return the signature of a call."""
    recvr = receiver if _has_receiver(key, receiver) else None
    return typing.signature(result, *types_, recvr=recvr).replace(pysig=pysig)


def _has_receiver(key: Any, receiver: Any) -> bool:
    """Say whether lowering is given the receiver's value: a method's object, or a called object that has leaves."""
    return key[0] is BoundTraced or bool(receiver.leaves)


def _is_shared(fn: Any) -> bool:
    """Say whether this callable is one for all calls (bound methods are made anew for each)."""
    return inspect.isfunction(fn) or isinstance(fn, type)


def name_of(receiver: Any, key: Any) -> str:
    """Name what a call calls."""
    spec: Any = receiver.spec if isinstance(receiver, Value) else ("node", getattr(receiver, "cls", type(receiver)))
    while spec[0] == "partial":
        spec = spec[2][0]
    held = spec[2] if spec[0] == "const" else spec[1] if spec[0] == "node" else receiver
    name = getattr(held, "__name__", type(held).__name__)
    return f"{name}.{receiver_attr}" if (receiver_attr := key[2] if key[0] is BoundTraced else "") else str(name)


def static_of(ty: Any) -> Any:
    """Return the objects of the host that a type holds."""
    if isinstance(ty, Value):
        return tree.constants(ty.spec)
    if isinstance(ty, types.BaseTuple):
        return tuple(map(static_of, ty))
    if isinstance(ty, StructRef):
        return (ty.cls, *(static_of(t) for _, t in ty.fields))
    return ty.dispatcher if isinstance(ty, types.Dispatcher) else getattr(ty, "value", None)


def shown_type(ty: Any) -> str:
    """Write the static value that a type says, or the type."""
    return repr(ty.literal_value) if isinstance(ty, types.Literal) else kind(str(ty))


def _check_same(receiver: Any, key: Any, now: Any, before: Any) -> None:
    """Refuse a function that gave something else when its code was emitted than when its type was found."""
    if now != before:
        raise CuteError(
            f"{name_of(receiver, key)} gives something else each time it is called, first {shown_type(before)}, now "
            f"{shown_type(now)}: while a kernel is compiled a function runs more than once, and must give the same"
        )


def _lowering(key: Any, receiver: Any, find: Any, real: Any, order: list[int], types_: Any) -> Any:
    """Return what lowers a traced call."""
    bound = _has_receiver(key, receiver)
    full = ((receiver,) if bound else ()) + types_

    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        tracer = Tracer(context, builder)
        self_value = args[0] if bound else context.get_value_type(receiver)(None)
        values = [abstract(t, a, tracer) for t, a in zip(types_, args[1:] if bound else args)]
        with seam.running(tracer):
            fn = find(abstract(receiver, self_value, tracer))
        result = run(fn, real, [values[i] for i in order], tracer)
        if not all(map(lasts, full)) or not lasts(receiver):
            _check_same(receiver, key, numba_type(result), sig.return_type)
        return concrete(result, sig.return_type, tracer)

    return lower
