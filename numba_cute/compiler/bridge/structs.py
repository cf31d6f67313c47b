# SPDX-License-Identifier: Apache-2.0
"""`struct` classes in jitted code: attributes, assignments, methods traced or jitted."""

from __future__ import annotations

import inspect
from typing import Any

from ... import promotion, seam
from ...seam import CuteError
from ...seam.marks.host_objects import python_of
from ...seam.marks.plain import is_plain_class
from ..emit.tracer import Tracer
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.numba_cuda import AttributeTemplate, lowering_registry, types, typing_registry
from . import contexts, struct_operators
from .given_floats import GivenFloat
from .object_types import BoundJitted, BoundTraced, StructRef
from .struct_operators import dispatcher_of
from .values import StructProxy, concrete, load_field, numba_type, proxy_get, store_field


def is_jitted(cls: type, name: str) -> bool:
    """Say whether the class's own attribute is a function that Numba must compile: a static method, or a method that is
    called with its object, as in `Base.step(self)`."""
    raw = inspect.getattr_static(cls, name, None)
    fn = raw.__func__ if isinstance(raw, staticmethod) else raw
    return inspect.isfunction(fn) and not seam.is_traced(fn)


def jitted_type(cls: type, name: str) -> types.Type:
    raw = inspect.getattr_static(cls, name)
    return types.Dispatcher(dispatcher_of(raw.__func__ if isinstance(raw, staticmethod) else raw))


@typing_registry.register_attr
class StructAttributes(AttributeTemplate):
    key = StructRef

    def generic_resolve(self, typ: StructRef, attr: str) -> Any:
        if attr in typ.types:
            found = typ.types[attr]
            return types.float64 if isinstance(found, GivenFloat) and not promotion.followed() else found
        raw = inspect.getattr_static(typ.cls, attr, None)
        if inspect.isfunction(raw):
            if seam.is_traced(raw) or is_plain_class(typ.cls):
                return BoundTraced(typ, attr)
            return BoundJitted(typ, attr, dispatcher_of(raw))
        if getattr(raw, "__cute_host__", False):
            return BoundJitted(typ, attr, dispatcher_of(python_of(raw)))
        tracer = Tracer()
        try:
            if isinstance(raw, staticmethod) and is_jitted(typ.cls, attr):
                return jitted_type(typ.cls, attr)
            if _traceable(typ, attr):
                with seam.running(tracer):
                    return numba_type(proxy_get(StructProxy(typ, None), attr))
            return struct_operators.result_type(self.context, dispatcher_of(raw.fget), (typ,))
        except CuteError as e:
            raise as_typing_error(e) from e


def _traceable(typ: StructRef, attr: str) -> bool:
    """Say whether an attribute is not a property that branches on what only the kernel knows: Numba compiles those."""
    if not isinstance(inspect.getattr_static(typ.cls, attr, None), property):
        return True
    try:
        with seam.running(Tracer()):
            numba_type(proxy_get(StructProxy(typ, None), attr))
    except CuteError:
        return False
    return True


@lowering_registry.lower_getattr_generic(StructRef)
def struct_getattr(context: Target, builder: Builder, typ: StructRef, val: Any, attr: str) -> Any:
    tracer = Tracer(context, builder)
    raw = inspect.getattr_static(typ.cls, attr, None)
    if attr in typ.stored:
        return load_field(StructProxy(typ, val), attr, tracer)
    if (inspect.isfunction(raw) or getattr(raw, "__cute_host__", False)) and attr not in typ.types:
        return val
    if isinstance(raw, staticmethod) and is_jitted(typ.cls, attr):
        return context.get_dummy_value()
    if not _traceable(typ, attr):
        return struct_operators.call(context, builder, dispatcher_of(raw.fget), (typ,), (val,))
    with seam.running(tracer):
        result = proxy_get(StructProxy(typ, val), attr)
        return concrete(result, numba_type(result), tracer)


@contexts.setattr_rule
def _other_object(target: Any, attr: str, value: Any) -> Any:
    """Refuse an object of another type than the field holds, which Numba could not cast."""
    field = target.types.get(attr) if isinstance(target, StructRef) else None
    if isinstance(field, StructRef) and isinstance(value, types.Type) and getattr(value, "_key", None) != field._key:
        refused = CuteError(
            f"{target.cls.__name__}.{attr} holds {_described(field)} and cannot hold {_described(value)}: an object of "
            "the same class whose fields have the same types can take its place"
        )
        raise as_typing_error(refused) from refused
    return None


def _described(ty: Any) -> str:
    if not isinstance(ty, StructRef):
        return str(ty)
    return f"a {ty.cls.__name__} ({', '.join(f'{name}: {_described(t)}' for name, t in ty.fields)})"


@lowering_registry.lower_setattr_generic(StructRef)
def struct_setattr(context: Target, builder: Builder, sig: Any, args: Any, attr: str) -> None:
    """Store a value, which Numba has cast to the field's type; what the type says whole cannot change."""
    ref, kind = sig.args
    raw = inspect.getattr_static(ref.cls, attr, None)
    if isinstance(raw, property):
        setter: Any = raw.fset
        struct_operators.call(context, builder, dispatcher_of(setter), (ref, kind), args)
    elif attr in ref.stored:
        store_field(StructProxy(ref, args[0]), attr, args[1], Tracer(context, builder))
