# SPDX-License-Identifier: Apache-2.0
"""Python's operators and builtins on objects that are held by reference: they call the methods of the objects' classes,
or do what Python does if a class defines none. Traced code asks the proxies, jitted code the rule below; both run
this."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Iterable
from types import FunctionType, SimpleNamespace
from typing import Any

from ... import seam
from ...seam import CuteError, Leaf
from ...seam.ground import watching
from ...seam.marks.host_objects import python_of
from ...seam.marks.plain import is_users_module, own_signature
from ...seam.source.language import NO_KEY, no_function, no_operator
from ...seam.source.texts import NO_TEXT, asked
from ..emit.leaves import NumberLeaf
from ..emit.tracer import Tracer
from ..ground import llvmlite as ir
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.numba_cuda import AbstractTemplate, cuda_target, types, typing
from ..ground.refusals import kind
from . import contexts
from .list_types import is_list
from .object_types import StructRef
from .values import Kept, StructProxy, abstract, concrete, numba_type, slot_of

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "and_": "&",
    "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "matmul": "@",
}  # fmt: skip
_ORDERED = {"lt": ("gt", "<"), "le": ("ge", "<="), "gt": ("lt", ">"), "ge": ("le", ">=")}


def is_object(x: Any) -> bool:
    return type(x) is StructProxy or isinstance(x, Kept)


def _slot(x: Any) -> StructProxy:
    return x if type(x) is StructProxy else slot_of(x)


def _class(x: Any) -> Any:
    return _slot(x)._ty.cls if is_object(x) else x.__class__


def _own(x: Any, name: str) -> Any:
    """Return what the class of an object of the user's defines by a method's name; None if Python's own is all."""
    found = inspect.getattr_static(_class(x), name, None)
    return found if isinstance(found, FunctionType) or python_of(found) is not None else None


def call_method(x: Any, name: str, /, *args: Any, **named: Any) -> Any:
    """Call a method of an object as a kernel does: traced, or compiled by Numba where Python cannot follow it."""
    method = inspect.getattr_static(_class(x), name)
    if named or inspect.isfunction(method):
        bound = own_signature(method).bind(x, *args, **named)
        bound.apply_defaults()
        args = bound.args[1:] if not bound.kwargs else _refuse_keywords(x, name)
    tracer: Any = seam.current()
    context, this = contexts.typing_context(), _slot(x)
    fn = context.resolve_getattr(this._ty, name)
    kinds = tuple(map(numba_type, args))
    with watching.watching(None):
        sig = fn.get_call_type(context, kinds, {})
    if tracer.builder is None:
        found = abstract(sig.return_type, None, tracer)
        if watching.now is not None:
            watching.now.jitted(
                (*fn.typing_key, (this._ty, *sig.args)), [watching.now.name(y) for y in (x, *args)], found
            )
        return found
    lowered = [concrete(a, ty, tracer) for a, ty in zip(args, kinds)]
    lowered = [tracer.context.cast(tracer.builder, v, h, w) for v, h, w in zip(lowered, kinds, sig.args)]
    out = tracer.context.get_function(fn, sig)(tracer.builder, [this._ptr, *lowered])
    return abstract(sig.return_type, out, tracer)


def _refuse_keywords(x: Any, name: str) -> Any:
    raise CuteError(f"{_class(x).__name__}.{name}: a method that asks for identities takes no keyword-only arguments")


Tracer.call_method = staticmethod(call_method)


def _asked(x: Any, name: str, *args: Any) -> Any:
    """Return what a method gives; NotImplemented if the class has none, or the method says so."""
    return call_method(x, name, *args) if is_object(x) and _own(x, name) is not None else NotImplemented


# ---------------------------------------------------------------- comparisons


def same(a: Any, b: Any) -> Any:
    """Return whether two objects are one: that their addresses are equal, where both have the same fields."""
    if a is b:
        return True
    if not (is_object(a) and is_object(b)):
        return False
    x, y, tracer = _slot(a), _slot(b), _tracer()
    if (x._ty.cls, x._ty.fields) != (y._ty.cls, y._ty.fields):
        return False
    if tracer.builder is None:
        return NumberLeaf(types.boolean)
    at = [tracer.builder.ptrtoint(p._ptr, ir.IntType(64)) for p in (x, y)]
    return NumberLeaf(types.boolean, tracer.builder.icmp_unsigned("==", *at))


def _tracer() -> Any:
    return seam.current()


def equal(a: Any, b: Any) -> Any:
    """Return what `a == b` is, of which one is an object of the user's or holds one."""
    if not (is_object(a) or is_object(b)):
        return _equal_values(a, b)
    first, second = (b, a) if _is_derived(b, a) else (a, b)
    for x, y in ((first, second), (second, first)):
        result = _asked(x, "__eq__", y) if not _compares_fields(x) else _equal_fields(x, y)
        if result is not NotImplemented:
            return result
    return same(a, b)


def unequal(a: Any, b: Any) -> Any:
    """Return what `a != b` is: by `__ne__`, else the opposite of what `__eq__` says."""
    first, second = (b, a) if _is_derived(b, a) else (a, b)
    for x, y in ((first, second), (second, first)):
        result = _asked(x, "__ne__", y)
        if result is not NotImplemented:
            return result
    return opposite(equal(a, b))


def opposite(x: Any) -> Any:
    """Return `not x` of a truth value."""
    return _tracer().compare("==", x, False) if isinstance(x, NumberLeaf) else not x


def _is_derived(a: Any, b: Any) -> bool:
    return is_object(a) and is_object(b) and _class(a) is not _class(b) and issubclass(_class(a), _class(b))


def _compares_fields(x: Any) -> bool:
    """Say whether the class of an object compares fields, as `dataclass` and a namespace do."""
    cls: Any = _class(x)
    if cls is SimpleNamespace:
        return True
    made = getattr(cls, "__eq__", None)
    holder = next((c for c in cls.__mro__ if "__eq__" in vars(c)), object)
    params = vars(holder).get("__dataclass_params__")
    return params is not None and params.eq and getattr(made, "__code__", equal.__code__).co_filename == "<string>"


def _equal_fields(a: Any, b: Any) -> Any:
    cls: Any = _class(a)
    if not is_object(b) or _class(b) is not cls:
        return NotImplemented
    if cls is SimpleNamespace:
        names, others = (set(_slot(x)._ty.types) for x in (a, b))
        return names == others and _all(equal(getattr(a, n), getattr(b, n)) for n in sorted(names))
    return _all(equal(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(cls) if f.compare)


def _equal_values(a: Any, b: Any) -> Any:
    """Compare what a field or a tuple holds."""
    if any(isinstance(a, kind) and isinstance(b, kind) for kind in (tuple, list)):
        return len(a) == len(b) and _all(equal(x, y) for x, y in zip(a, b))
    numbers = (bool, int, float)
    if type(a) is NumberLeaf or type(b) is NumberLeaf:
        other = b if type(a) is NumberLeaf else a
        return _tracer().operate("eq", a, b) if type(other) is NumberLeaf or isinstance(other, numbers) else False
    if any(isinstance(x, Leaf) or (seam.is_frozen_class(type(x)) and not seam.is_static(x)) for x in (a, b)):
        raise CuteError(f"{a!r} == {b!r}: objects that hold these are not compared; compare their numbers")
    return a == b


def _all(results: Iterable[Any]) -> Any:
    known: Any = True
    for r in results:
        if not isinstance(r, NumberLeaf):
            if not r:
                return False
        else:
            known = r if known is True else _tracer().arith("and_", known, r)
    return known


def contains(where: Any, x: Any) -> Any:
    """Return what `x in where` is, of an object of the user's or of a tuple that is searched for one."""
    if isinstance(where, (tuple, list)):
        found = [True if item is x else equal(item, x) for item in where]
        return opposite(_all(opposite(truth(r)) for r in found))
    result = _asked(where, "__contains__", x)
    if result is NotImplemented:
        raise CuteError(f"… in {_class(where).__name__}: the class has no `__contains__`")
    return truth(result)


# ---------------------------------------------------------------- the rest


def truth(x: Any) -> Any:
    """Return what `bool(x)` is: by `__bool__`, else by the length, else True."""
    if not is_object(x):
        return (
            _tracer().compare("!=", x, 0)
            if isinstance(x, NumberLeaf) and x.type != types.boolean
            else x
            if isinstance(x, NumberLeaf)
            else bool(x)
        )
    result = _asked(x, "__bool__")
    if result is NotImplemented:
        result = _asked(x, "__len__")
    return True if result is NotImplemented else truth(result)


def _are_all(items: Any) -> Any:
    return _all(truth(x) for x in items)


def _is_any(items: Any) -> Any:
    return opposite(_all(opposite(truth(x)) for x in items))


def _sorted(items: Any) -> list[Any]:
    ordered = (NumberLeaf, bool, int, float, str, tuple, list)
    if not seam.is_static(items) and all(isinstance(x, ordered) or is_object(x) for x in items):
        raise CuteError("sorted(…) of values that are known only at run time: the order must be static")
    return sorted(items)


def length(x: Any) -> Any:
    """Return what `len(x)` is."""
    result = _asked(x, "__len__")
    if result is NotImplemented:
        raise CuteError(no_function("len", [_class(x).__name__]))
    return result


def hashed(x: Any) -> Any:
    """Return what `hash(x)` is, of a class that computes it of what is static."""
    result = _asked(x, "__hash__")
    name = _class(x).__name__
    if result is NotImplemented:
        unhashable = inspect.getattr_static(_class(x), "__hash__", None) is None
        raise CuteError(f"hash({name}): " + ("it has none" if unhashable else "it is the object's place in memory"))
    if type(result) is not int:
        raise CuteError(NO_KEY)
    return hash(result)


def _text(*methods: str) -> Callable[[Any], Any]:
    """Return what gives the text of an object, which the first of these methods that its class has makes."""

    def call(x: Any) -> Any:
        found = next((n for n in methods if is_object(x) and _own(x, n) is not None), None)
        if found is None or not is_users_module(getattr(_own(x, found), "__globals__", {}).get("__name__")):
            raise CuteError(NO_TEXT)
        with asked():
            return call_method(x, found)

    return call


def _binary(name: str, reflected: str, sign: str) -> Callable[[Any, Any], Any]:
    """Return what asks two objects for an operator, in Python's order: of a comparison each has the other's method; of
    any other operator the second has one of its own, which is asked if its class is another."""
    compares = sign in ("<", "<=", ">", ">=")

    def call(a: Any, b: Any) -> Any:
        order = [(a, name, b), (b, reflected, a)]
        if _is_derived(b, a) and (compares or _own(b, reflected) is not _own(a, reflected)):
            order.reverse()
        if not compares and _class(a) is _class(b):
            order.pop()
        for x, method, y in order:
            result = _asked(x, method, y)
            if result is not NotImplemented:
                return result
        raise CuteError(no_operator(sign, [_class(x).__name__ for x in (a, b)]))

    return call


def _in_place(name: str, binary: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def call(a: Any, b: Any) -> Any:
        result = _asked(a, name, b)
        return binary(a, b) if result is NotImplemented else result

    return call


_OPERATORS: dict[Any, Callable[..., Any]] = {
    operator.eq: equal, operator.ne: unequal,
    operator.contains: contains, bool: truth, operator.truth: truth, operator.not_: lambda x: opposite(truth(x)),
    len: length, hash: hashed, str: _text("__str__", "__repr__"), repr: _text("__repr__"),
}  # fmt: skip
_OF_ITEMS: dict[Any, Callable[..., Any]] = {all: _are_all, any: _is_any, sorted: _sorted}
"""Functions of a tuple, whatever it holds."""
_OPERATORS |= {getattr(operator, n): _binary(f"__{n}__", f"__{r}__", s) for n, (r, s) in _ORDERED.items()}


for _op, _fn in _OPERATORS.items():
    if _op not in (operator.truth, operator.not_, str, repr):
        setattr(StructProxy, f"__{_op.__name__.strip('_')}__", _fn)
for _n, _sign in _BINARY.items():
    _short = _n.strip("_")
    _fn = _binary(f"__{_short}__", f"__r{_short}__", _sign)
    setattr(StructProxy, f"__{_short}__", _fn)
    setattr(StructProxy, f"__r{_short}__", lambda a, b, fn=_fn: fn(b, a))
    setattr(StructProxy, f"__i{_short}__", _in_place(f"__i{_short}__", _fn))
for _n in ("getitem", "setitem", "call"):
    setattr(StructProxy, f"__{_n}__", functools.partialmethod(call_method, f"__{_n}__"))


# ---------------------------------------------------------------- jitted code


def holds_objects(ty: Any) -> bool:
    """Say whether a type is one of objects or lists, or holds such a one: these Numba does not compare."""
    tuples = isinstance(ty, types.BaseTuple)
    return isinstance(ty, StructRef) or is_list(ty) or (tuples and any(map(holds_objects, ty)))


@contexts.call_rule
def _resolve_of_objects(func: Any, args: Any) -> Any:
    key = getattr(func, "typing_key", func)
    sig = _signature(key, args) if callable(key) else None
    if sig is not None and isinstance(func, types.Function):
        func._impl_keys[tuple(args)] = _of_items(key) if key in _OF_ITEMS else key
    return sig


def _of_items(op: Any) -> Any:
    """Return the key of what lowers a function of a tuple, which Numba has for tuples of its own too."""
    key = ("of items", op)
    table = cuda_target.target_context._defns[key]
    if not table.versions:
        table.append(_lowering(lambda: _OF_ITEMS[op]), (types.Any,))
    return key


def _signature(op: Any, args: Any) -> Any:
    """Return the signature of an operator of objects; None if it is of none, or Numba's own holds."""
    if op in (str, repr) and args and not isinstance(args[0], (StructRef, types.StringLiteral, types.UnicodeType)):
        raise as_typing_error(CuteError(no_function(op.__name__, [kind(str(a)) for a in args])))
    fn = _OPERATORS.get(op) if any(map(holds_objects, args)) else None
    if op in _OF_ITEMS and len(args) == 1 and isinstance(args[0], types.BaseTuple):
        return _typed(_OF_ITEMS[op], args)
    if fn is None or (len(args) == 1 and not isinstance(args[0], StructRef)):
        return None
    return _typed(fn, args)


def _typed(fn: Callable[..., Any], args: Any) -> Any:
    tracer = Tracer()
    try:
        with seam.running(tracer):
            return typing.signature(numba_type(fn(*(abstract(a, None, tracer) for a in args))), *args)
    except CuteError as e:
        raise as_typing_error(e) from e


@contexts.call_rule
def _resolve_called_object(func: Any, args: Any, kws: Any) -> Any:
    """Type a call of an object: of its `__call__`, which lowering finds by the object's type."""
    if not isinstance(func, StructRef):
        return None
    bound = contexts.typing_context().resolve_getattr(func, "__call__")
    sig = bound.get_call_type(contexts.typing_context(), args, dict(kws))

    def lower(context: Target, builder: Builder, asked: Any, values: Any) -> Any:
        return context.get_function(bound, sig)(builder, values)

    found = cuda_target.target_context._defns[func]
    whole = (func, *sig.args)
    if whole not in [kinds for kinds, _ in found.versions]:
        found.append(lower, whole)
    return sig


def _lowering(find: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        tracer = Tracer(context, builder)
        with seam.running(tracer):
            result = find()(*(abstract(t, a, tracer) for t, a in zip(sig.args, args)))
        return concrete(result, sig.return_type, tracer)

    return lower


def _lower(op: Any, *kinds: Any) -> None:
    contexts.lower(op, *kinds)(_lowering(lambda: _OPERATORS[op]))


class _Unknown(AbstractTemplate):
    """For what Numba has no template for: nothing fits."""

    def generic(self, args: Any, kws: Any) -> Any:
        return None


def _register(op: Any) -> None:
    @contexts.template(op)
    class Template(AbstractTemplate):
        """Numba asks for the types of an operator once more when it lowers it."""

        def generic(self, args: Any, kws: Any) -> Any:
            return _signature(op, args)

    if op in (bool, len, hash, str, repr, operator.truth, operator.not_):
        _lower(op, StructRef)
    elif op is operator.contains:
        _lower(op, StructRef, types.Any)
        for kind in (types.UniTuple, types.Tuple):
            _lower(op, kind, StructRef)
    else:
        _lower(op, StructRef, StructRef)
        for kinds in ((StructRef, types.Any), (types.Any, StructRef)):
            _lower(op, *kinds)
    if op in (operator.eq, operator.ne):
        _lower(op, types.BaseTuple, types.BaseTuple)


for _op in _OPERATORS:
    _register(_op)
for _op in _OF_ITEMS:
    contexts.template(_op)(type("_Unknown", (_Unknown,), {}))
