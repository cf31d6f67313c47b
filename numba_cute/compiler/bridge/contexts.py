# SPDX-License-Identifier: Apache-2.0
"""The typing context of functions of this library: Numba's, and before its templates our own.

Templates of operators and builtins that Numba has too (`+`, `len`, `bool`), and their lowering, are kept here rather
than registered with Numba, where they would be tried, and named in errors, for every kernel of the process.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from ... import promotion
from ...seam import CuteError, InternalError, is_struct_class
from ...seam.ground.counterparts import counterpart
from ...seam.ground.names import WrongArguments, other_arguments
from ...seam.marks import plain
from ...seam.marks.host_objects import mapping_of
from ...seam.source.followed import followed
from ...seam.source.language import follows_python
from ..emit.leaves import dtype_of
from ..ground.building import building_kernel, kernel
from ..ground.errors import as_typing_error
from ..ground.host_functions import without_cpu
from ..ground.memory import lowering_of
from ..ground.numba import OtherTypingError
from ..ground.numba_cuda import (
    CUDADispatcher,
    CUDATypingContext,
    NumbaError,
    NumbaNotImplementedError,
    OverloadSelector,
    TypingError,
    cuda_target,
    fold_arguments,
    make_concrete_template,
    models,
    register_model,
    types,
    typing,
)
from ..ground.ownership import is_own_type
from . import devices, tree
from .integer_functions import OF_INTEGERS
from .list_types import is_list
from .object_types import BoundTraced, StructRef, Value
from .registries import Registries
from .shared_arrays import in_shared_memory

_OF_NUMBERS = ("to", "ir_value")
"""Methods of numbers that are known only at run time."""
_OF_STATIC = ("bit_length", "bit_count")
"""Methods of static integers: what they give is static."""
_CLASSES = (object, list, dict, set, frozenset, str, bytes, type(None))
"""Python's classes that Numba does not know, and that `isinstance` is asked for."""
_BY_PLACE = (enumerate, zip, min, max, sorted, sum, list, tuple, map, filter, reversed, len, any, all)
_TEMPLATES: dict[Any, list[Any]] = {}
_IMPLEMENTATIONS: dict[Any, OverloadSelector] = {}
_CALLS: list[Callable[..., Any]] = []
_BEFORE_TEMPLATES: list[Callable[[Any, Any], Any]] = []
_SETATTR: list[Callable[[Any, str, Any], Any]] = []
RULE: dict[str, Callable[..., Any]] = {}
"""The CuTe DSL's rule of numbers, as `reference` tells it: what it makes of a `function`, which types it can `unify`,
and the type of a `constant`."""


def template(op: Any) -> Callable[[Any], Any]:
    """Decorate a typing template of an operator or builtin that only functions of this library see."""

    def register(cls: Any) -> Any:
        cls.key = op
        _TEMPLATES.setdefault(op, []).append(cls)
        return cls

    return register


def lower(op: Any, *kinds: Any) -> Callable[[Any], Any]:
    """Decorate the lowering of an operator or builtin for arguments of these kinds, one of them of this library, or
    all of them literals."""

    def register(implementation: Any) -> Any:
        _IMPLEMENTATIONS.setdefault(op, OverloadSelector()).append(implementation, kinds)
        return implementation

    return register


def call_rule(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate what types a call before all templates: given the function (or its key) and the arguments' types, and
    those given by name if it takes a third parameter, it gives a signature, or None for the templates."""
    named = rule.__code__.co_argcount == 3
    _CALLS.append(rule if named else lambda func, args, kws: rule(func, args))
    return rule


def operator_rule(rule: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Decorate what types an operator before all templates, also while it is lowered, where a template of Numba's would
    be taken: as `call_rule`."""
    _BEFORE_TEMPLATES.append(rule)
    return rule


def setattr_rule(rule: Callable[[Any, str, Any], Any]) -> Callable[[Any, str, Any], Any]:
    """Decorate what types `target.attr = value` before Numba does: it gives a signature, or None for Numba's rule."""
    _SETATTR.append(rule)
    return rule


@contextmanager
def _of_one_class() -> Iterator[None]:
    """Raise a typing error of either class as one that numba-cuda's inference holds back."""
    try:
        yield
    except OtherTypingError as e:
        if isinstance(e, TypingError):
            raise
        raise TypingError(str(e)) from e


class CuteTypingContext(CUDATypingContext):
    """A view of Numba's typing context: the same state, with this library's templates before Numba's own.

    Inference asks for most calls and attributes twice or more, and lowering asks again: while the functions of a kernel
    are compiled, what was found for a function and arguments of some types is remembered (`_Memory`).
    """

    def __init__(self, shared: CUDATypingContext) -> None:
        self.__dict__ = shared.__dict__

    def _lookup_global(self, gv: Any) -> Any:
        found = self._global(gv)
        return found if found is None or not promotion.followed() else RULE["function"](gv, found)

    def _global(self, gv: Any) -> Any:
        known = without_cpu(super()._lookup_global(gv))
        try:
            own = _TEMPLATES.get(gv)
        except TypeError:  # unhashable
            own = None
        if own is None:
            return known
        function = _FUNCTIONS.get(gv)
        if function is None or function[0] is not known:
            joined = Function((*own, *(known.templates if known is not None else ())))
            function = _FUNCTIONS[gv] = (known, joined)
        return function[1]

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if type(func) not in _REMEMBERED and not (type(func) is types.Function and _has_list(args)):
            return self._resolved(func, args, kws)
        return _remembered("calls", (func, args, kws), lambda: self._resolved(func, args, kws))

    def _resolved(self, func: Any, args: Any, kws: Any) -> Any:
        if kws and getattr(func, "typing_key", None) in _BY_PLACE:
            name, given = func.typing_key.__name__, ", ".join(f"{n}=…" for n in dict(kws))
            raise as_typing_error(CuteError(f"{name}(…, {given}): kernels have no such argument of `{name}`"))
        for rule in _CALLS:
            found = rule(func, args, kws)
            if found is not None:
                return found
        try:
            with _of_one_class():
                if isinstance(func, types.Dispatcher):
                    return self._call_of_device_function(func, args, kws)
                return in_shared_memory(func, super().resolve_function_type(func, args, kws))
        except InternalError:
            raise
        except CuteError as e:  # of the function that is called, whose arguments may not be known yet
            raise as_typing_error(e) from e

    def _call_of_device_function(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call of a device function."""
        py_func = func.dispatcher.py_func
        devices.renew(func.dispatcher)
        if py_func.__code__.co_kwonlyargcount:
            return _call_by_names(self, func.dispatcher, args, kws)
        return super().resolve_function_type(func, args, kws)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        with _of_one_class():
            return super().resolve_setitem(target, index, value)

    def resolve_static_setitem(self, target: Any, index: Any, value: Any) -> Any:
        with _of_one_class():
            return super().resolve_static_setitem(target, index, value)

    def resolve_static_getitem(self, value: Any, index: Any) -> Any:
        with _of_one_class():
            return super().resolve_static_getitem(value, index)

    def resolve_getattr(self, typ: Any, attr: str) -> Any:
        return _remembered("attributes", (typ, (), {attr: typ}), lambda: self._attribute(typ, attr))

    def _attribute(self, typ: Any, attr: str) -> Any:
        if attr in _OF_STATIC and isinstance(typ, types.IntegerLiteral):
            return BoundTraced(typ, attr)
        with _of_one_class():
            found = without_cpu(super().resolve_getattr(typ, attr))
        if found is None and isinstance(typ, (types.Number, types.Boolean)):
            if attr in _OF_NUMBERS:
                return BoundTraced(typ, attr)
            if attr == "width":
                return types.literal(dtype_of(types.unliteral(typ)).width)
        cls = getattr(typ, "instance_class", None) if found is None else None
        if plain.is_named_tuple(cls) and inspect.isfunction(inspect.getattr_static(cls, attr, None)):
            return BoundTraced(typ, attr)
        return found

    def unify_pairs(self, first: Any, second: Any) -> Any:
        """Join two types, but for a list and a tuple, of which only run time knows which there is, and for a BFloat16
        and another number, of which Numba asks without end."""
        if promotion.followed() and (found := RULE["unify"](first, second)) is not NotImplemented:
            return found
        if types.bfloat16 in (first, second):
            return first if first == second else None
        tuples = isinstance(first, types.BaseTuple) and isinstance(second, types.BaseTuple)
        return None if tuples and is_list(first) != is_list(second) else super().unify_pairs(first, second)

    def resolve_value_type(self, val: Any) -> Any:
        if type(val) not in _NAMED or not building_kernel():
            return self._constant(val)
        found = _memory().found
        key = ("constant", promotion.followed(), id(val))
        if key not in found:
            found[key] = self._constant(val), val  # which is kept, and its number with it
        return found[key][0]

    def _constant(self, val: Any) -> Any:
        if type(val) is float and promotion.followed():
            return RULE["constant"](val)
        try:
            val = counterpart(val)
            plain.refuse_own_operators(val)
        except CuteError as e:
            raise as_typing_error(e) from e
        if callable(val) and numbas_own(val) is not None:  # Numba compiles it, as an @overload says
            return super().resolve_value_type(val)
        if (
            val is functools.partial
            or plain.is_plain_function(val)
            or plain.is_plain_class(val)
            or plain.is_named_tuple(val)
        ):
            return Value(("const", type(val), val))
        if isinstance(val, CUDADispatcher) and follows_python(val.py_func):
            return Value(("const", FunctionType, followed(val.py_func)))
        if type(val) is dict and (held := mapping_of(val)) is not None:
            return Value(tree.flatten(held, []))
        if type(val) is functools.partial:
            return Value(tree.flatten(val, []))
        if is_struct_class(type(val)):
            raise ValueError(f"Cannot determine Numba type of {type(val)}")  # which Numba says of the line
        if isinstance(val, BuiltinFunctionType) and val in OF_INTEGERS:
            return Value(("const", FunctionType, OF_INTEGERS[val]))
        if val is NotImplemented or any(val is cls for cls in _CLASSES):
            return Value(("const", type(val), val))
        return super().resolve_value_type(val)

    def resolve_setattr(self, target: Any, attr: str, value: Any) -> Any:
        for rule in _SETATTR:
            found = rule(target, attr, value)
            if found is not None:
                return found
        return super().resolve_setattr(target, attr, value)


def _call_by_names(context: Any, dispatcher: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call of a device function that has keyword-only parameters, which Numba does not know:
    it is compiled for its arguments in their order."""
    fn, kws = dispatcher.py_func, dict(kws)
    asked = inspect.signature(fn, follow_wrapped=False)
    try:
        asked.bind(*args, **kws)
    except TypeError as e:
        raise as_typing_error(WrongArguments(other_arguments(fn, str(e), kws))) from None
    pysig = plain.ordinary_signature(asked)
    given = fold_arguments(
        pysig, args, kws,
        lambda index, param, value: value,
        lambda index, param, default: types.Omitted(default),
        lambda index, param, values: types.BaseTuple.from_types(list(values)),
    )  # fmt: skip
    dispatcher.compile_device(tuple(given))
    template = make_concrete_template(f"CallTemplate({fn.__name__})", fn.__name__, dispatcher.nopython_signatures)
    return template(context).apply(tuple(given), {}).replace(pysig=pysig)


def numbas_own(val: Any) -> Any:
    """Return what Numba itself takes a global for, by its own declarations and the user's `@overload`s; else None."""
    return without_cpu(cuda_target.typing_context._lookup_global(val))


_FUNCTIONS: dict[Any, tuple[Any, Any]] = {}
"""By operator: Numba's function type, and the one that has our templates too."""


class Function(types.Function):
    """An operator or builtin with this library's templates, and Numba's after them."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        for rule in _BEFORE_TEMPLATES:
            found = rule(self, args)
            if found is not None:
                return found

        def find() -> Any:
            sig = self._own_type(context, args, kws) if any(type(a) is Value for a in args) else None
            return super(Function, self).get_call_type(context, args, kws) if sig is None else sig

        return _remembered("templates", (self, args, kws), find)

    def _own_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call of objects of this library's that its own templates know; None if they know
        none, or refuse it. Numba's, of which none knows such objects, come first in Numba's order: each is asked twice,
        and builds a signature of Python's each time. Found and kept as Numba's `get_call_type` does."""
        for cls in _TEMPLATES.get(self.typing_key, ()):
            made = cls(context)
            for literal in (True, False) if made.prefer_literal else (False, True):
                given = args if literal else tuple(map(types.unliteral, args))
                named = kws if literal else {n: types.unliteral(t) for n, t in kws.items()}
                try:
                    sig = made.apply(given, named)
                except NumbaError:
                    return None
                if sig is not None:
                    self._impl_keys[sig.args] = made.get_impl_key(sig)
                    return sig
        return None


register_model(Function)(models.OpaqueModel)  # as Numba's own; where nothing is optimised it is a variable's value


_REMEMBERED = (Function, Value, BoundTraced)
_NAMED = (FunctionType, BuiltinFunctionType, ModuleType)


class _Memory:
    """Remembers what was found while a kernel's functions were compiled. kernel: the kernel. options: those of the
    function that is compiled now. found: the answers for these options, by kind of question and types."""

    def __init__(self, kernel: Any = None) -> None:
        self.kernel, self.options = kernel, ()
        self.found: dict[Any, Any] = {}
        self._others: dict[Any, dict[Any, Any]] = {}

    def turn_to(self, options: tuple[Any, ...]) -> None:
        """Go on with what was found for functions of some options."""
        self._others[self.options] = self.found
        self.options, self.found = options, self._others.get(options, {})


def _has_list(args: Any) -> bool:
    return any(isinstance(a, types.List) for a in args)


_MEMORIES = [_Memory()]


def _memory() -> _Memory:
    current = kernel() if building_kernel() else None
    if current is None or _MEMORIES[-1].kernel is not current:
        _MEMORIES[-1] = _Memory(current)
    return _MEMORIES[-1]


def _remembered(kind: str, asked: tuple[Any, Any, Any], find: Callable[[], Any]) -> Any:
    """Return what `find` finds, or found when the same was asked for. asked: a type, and types of arguments by place
    and by name. Outside of a kernel's compilation nothing is remembered: what a name stands for may change."""
    if not building_kernel():
        return find()
    found = _memory().found
    of, args, kws = asked
    key = (kind, promotion.followed(), of._code, *[a._code for a in args], *[(n, t._code) for n, t in kws.items()])
    if key not in found:
        try:
            found[key] = find()
        except TypingError as e:
            # Numba compiles its own code for a list before it says no, and a loop's lists are asked of time and again
            if _has_list(args):
                found[key] = TypingError(e.msg)
            raise
    if isinstance(found[key], TypingError):
        raise TypingError(found[key].msg)  # another each time: Numba adds to what it catches
    return found[key]


def begin(flags: Any) -> None:
    """Begin another function, whose options may be others than those of the last."""
    _memory().turn_to(tuple(map(repr, flags.values().items())))


@functools.cache
def typing_context() -> CuteTypingContext:
    """Return the typing context of functions of this library: one, since Numba's templates of overloads remember by it
    what they found."""
    return CuteTypingContext(cuda_target.typing_context)


_ALWAYS = (range, "getiter", "iternext", pow, operator.pow, operator.ipow, bool, operator.not_)
"""Functions that this library implements for Numba's own types too."""


_LONGS = (types.int64, types.int64)


class _OwnFirst:
    """An operator's implementations: this library's, if its own types or literals are given, or numbers that
    `mixed_comparisons`, `mixed_arithmetic` and `narrow_division` are of, or it is `always` so, then Numba's; of others
    Numba's first."""

    def __init__(self, own: Any, shared: Any, always: bool) -> None:
        self._own, self._shared, self._always = own, shared, always
        self.append = shared.append

    def find(self, args: Any) -> Any:
        long = types.int64 in args, types.uint64 in args
        mixed = len(args) == 2 and (all(long) or any(long) and types.float64 in args)
        first = self._always or mixed or args == _LONGS or any(map(is_own_type, args)) or all(map(_is_literal, args))
        try:
            return (self._own if first else self._shared).find(args)
        except NumbaNotImplementedError:
            return (self._shared if first else self._own).find(args)


def _is_literal(ty: Any) -> bool:
    """Say whether a type says a value, or a tuple of values, whole."""
    return isinstance(ty, types.Literal) or (isinstance(ty, types.BaseTuple) and all(map(_is_literal, ty)))


class _OfObject:
    """The implementations of a call of an object: those of its class's `__call__`."""

    def __init__(self, of: StructRef, table: _Implementations) -> None:
        self._of, self._table = of, table

    def find(self, args: Any) -> Any:
        method = typing_context().resolve_getattr(self._of, "__call__")
        return self._table[method.get_impl_key(typing.signature(types.none, *args))].find(args)


class _Implementations:
    """Numba's table of implementations, with this library's before them."""

    def __init__(self, shared: Any) -> None:
        self._shared = shared

    def __getitem__(self, key: Any) -> Any:
        found = lowering_of(key)
        if found is not None:
            return found
        if isinstance(key, StructRef):
            return _OfObject(key, self)
        shared, own = self._shared[key], _IMPLEMENTATIONS.get(key)
        return shared if own is None else _OwnFirst(own, shared, key in _ALWAYS)

    def __delitem__(self, key: Any) -> None:
        del self._shared[key]


def adapt(targetctx: Any, typingctx: CuteTypingContext) -> None:
    """Give a target context, a copy for one compilation, what functions of this library need."""
    targetctx.typing_context = typingctx
    targetctx._defns = _Implementations(targetctx._defns)
    refresh, registries = targetctx.refresh, Registries(targetctx)

    def refreshed() -> None:
        """Load what was registered since. Numba asks for it wherever it finds no implementation, as at each static
        index, and looks through all registries each time."""
        if registries.grew():
            refresh()

    targetctx.refresh = refreshed
