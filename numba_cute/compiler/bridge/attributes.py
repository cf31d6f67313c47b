# SPDX-License-Identifier: Apache-2.0
"""Attributes of this library's objects in kernels: `x.name` and `x.name = value`.

Of an assignment Numba asks for the attribute's type and casts the value to that; here the object itself takes the
value (storage in shared memory does), whatever its type, so the question is answered before Numba's templates are
asked.
"""

from __future__ import annotations

import inspect
from types import MethodType
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.ground.names import UnknownName, unknown
from ...seam.marks import plain
from ...seam.marks.host_objects import function_of, is_snapshot, python_of
from ...seam.source.language import follows_python, immutable
from ..emit.leaves import dtype_of
from ..emit.tracer import Tracer
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.numba_cuda import AttributeTemplate, lowering_registry, types, typing, typing_registry
from ..ground.refusals import kind
from . import contexts, struct_operators, structs
from .field_types import refuse_other_values
from .object_types import BoundJitted, BoundTraced, StructRef, Value
from .values import abstract, concrete, numba_type


def _is_method(obj: Any, attr: str) -> bool:
    if isinstance(obj, type):
        return False
    if (
        is_snapshot(obj)
        and attr not in vars(obj)
        and inspect.isfunction(inspect.getattr_static(obj.cute_of, attr, None))
    ):
        return True
    return inspect.isfunction(inspect.getattr_static(type(obj), attr, None))


def _own_function(obj: Any, attr: str) -> Any:
    """Return the Python of an attribute that is a method of the host's object that `obj` stands for and that Numba
    compiles; None for any other, and for what is traced."""
    if not is_snapshot(obj) or attr in vars(obj):
        return None
    raw = inspect.getattr_static(obj.cute_of, attr, None)
    fn = None if isinstance(raw, staticmethod) or inspect.isfunction(raw) else function_of(raw)
    return None if fn is None or seam.is_traced(fn) or follows_python(fn) else fn


def _type_of(value: Any) -> types.Type:
    """Return the Numba type of an attribute: a function that a field holds is one of the kernel's."""
    fn = None if isinstance(value, MethodType) else python_of(value)  # whose function is given its object
    if fn is None or seam.is_traced(value) or plain.is_plain_function(value) or follows_python(fn):
        return numba_type(value)
    return types.Dispatcher(struct_operators.dispatcher_of(fn))


def _attribute(obj: Any, attr: str) -> Any:
    try:
        return getattr(obj, attr)
    except UnknownName:
        raise
    except AttributeError:
        raise UnknownName(unknown(obj, attr)) from None


@typing_registry.register_attr
class ValueAttributes(AttributeTemplate):
    key = Value

    def generic_resolve(self, typ: Value, attr: str) -> Any:
        if attr == "__call__":  # Numba asks for it before it asks the type itself
            return None
        tracer = Tracer()
        try:
            obj = abstract(typ, None, tracer)
            fn = _own_function(obj, attr)
            if fn is not None:
                return BoundJitted(typ, attr, struct_operators.dispatcher_of(fn))
            if _is_method(obj, attr):
                return BoundTraced(typ, attr)
            if seam.is_struct_class(obj) and structs.is_jitted(obj, attr):
                return structs.jitted_type(obj, attr)
            with seam.running(tracer):
                return _type_of(_attribute(obj, attr))
        except CuteError as e:
            raise as_typing_error(e) from e


@lowering_registry.lower_getattr_generic(Value)
def value_getattr(context: Target, builder: Builder, typ: Value, val: Any, attr: str) -> Any:
    tracer = Tracer(context, builder)
    obj = abstract(typ, val, tracer)
    if _own_function(obj, attr) is not None or _is_method(obj, attr):
        return val
    if seam.is_struct_class(obj) and structs.is_jitted(obj, attr):
        return context.get_dummy_value()
    with seam.running(tracer):
        result = _attribute(obj, attr)
        return concrete(result, _type_of(result), tracer)


@lowering_registry.lower_getattr_generic(types.NamedTuple)
@lowering_registry.lower_getattr_generic(types.NamedUniTuple)
def _named_tuple_getattr(context: Target, builder: Builder, typ: Any, val: Any, attr: str) -> Any:
    return builder.extract_value(val, typ.fields.index(attr)) if attr in typ.fields else val  # of a method


@lowering_registry.lower_getattr(types.Number, "width")
@lowering_registry.lower_getattr(types.Boolean, "width")
def _number_width(context: Target, builder: Builder, typ: Any, val: Any) -> Any:
    return context.get_constant(types.intp, dtype_of(types.unliteral(typ)).width)


@contexts.setattr_rule
def _resolve_setattr(target: Any, attr: str, value: Any) -> Any:
    if isinstance(target, StructRef):
        try:
            plain.refuse_own_setting(target.cls, attr)
            refuse_other_values(target, attr, value)
        except CuteError as e:
            raise as_typing_error(e) from e
    if isinstance(target, types.BaseTuple):
        refused = CuteError(immutable(kind(str(target)), attr))
        raise as_typing_error(refused) from refused
    if not isinstance(target, Value):
        return None
    tracer = Tracer()
    try:
        with seam.running(tracer):
            _assign(abstract(target, None, tracer), attr, abstract(value, None, tracer))
    except CuteError as e:
        raise as_typing_error(e) from e
    return typing.signature(types.void, target, value)


def _assign(obj: Any, attr: str, value: Any) -> None:
    if not hasattr(type(obj), "__cute_members__") and not is_snapshot(obj):
        raise CuteError(immutable(type(obj).__name__, attr))
    setattr(obj, attr, value)


@lowering_registry.lower_setattr_generic(Value)
def value_setattr(context: Target, builder: Builder, sig: Any, args: Any, attr: str) -> None:
    tracer = Tracer(context, builder)
    with seam.running(tracer):
        obj, value = (abstract(t, a, tracer) for t, a in zip(sig.args, args))
        _assign(obj, attr, value)
