# SPDX-License-Identifier: Apache-2.0
"""`struct` classes in kernels: fields in a slot of the caller's frame, methods traced or jitted.

A constructor call is traced: Python makes the object, and it is stored into its slot where it reaches Numba. There
is one slot for each construction site, and NVVM's SROA turns it into registers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.cudadecl import registry as typing_registry
from numba.cuda.cudaimpl import registry as lowering_registry
from numba.cuda.typing.templates import AttributeTemplate

from ... import dtypes, seam
from ...seam import CuteError
from ..emit.leaves import scalar_type
from ..emit.tracer import Tracer
from ..errors import as_typing_error
from . import calls, struct_operators, tree
from .numba_types import BoundJitted, BoundTraced, Multiple, StructProxy, StructRef, Value
from .struct_operators import dispatcher_of

_I32 = ir.IntType(32)


def _field_type(cls: type, name: str, value: Any) -> types.Type:
    wanted = cls.__cute_types__[name]  # type: ignore[attr-defined]
    return scalar_type(wanted) if isinstance(wanted, dtypes.DType) else _plain(calls.numba_type(value))


def _plain(ty: types.Type) -> types.Type:
    """A type without what is known to divide its numbers: a field may be set to others."""
    if isinstance(ty, Multiple):
        return ty.literal_type
    if isinstance(ty, types.BaseTuple):
        return types.BaseTuple.from_types([_plain(t) for t in ty])
    return Value(tree.plain(ty.spec)) if isinstance(ty, Value) else ty


def type_of_instance(obj: Any) -> StructRef:
    """The type of a struct that traced code made."""
    cls = type(obj)
    return StructRef(cls, tuple((name, _field_type(cls, name, getattr(obj, name))) for name in cls.__cute_fields__))


def materialize(obj: Any, ty: StructRef, tracer: Tracer) -> Any:
    """Store a struct that traced code made into a new slot of the frame."""
    data = tracer.context.data_model_manager[ty].get_data_type()
    slot = cgutils.alloca_once(tracer.builder, data, name=ty.cls.__name__)
    proxy = StructProxy(ty, slot)
    for name in ty.stored:
        _store(proxy, name, getattr(obj, name), tracer)
    return slot


def _address(proxy: StructProxy, name: str, tracer: Tracer) -> Any:
    index = proxy._ty.stored.index(name)
    return tracer.builder.gep(proxy._ptr, [_I32(0), _I32(index)], inbounds=True)


def _load(proxy: StructProxy, name: str, tracer: Tracer) -> Any:
    """A field as an LLVM value; an embedded struct as the address of its place."""
    ty = proxy._ty.types[name]
    if name not in proxy._ty.stored:
        return None
    place = _address(proxy, name, tracer)
    if isinstance(ty, StructRef):
        return place
    return tracer.context.data_model_manager[ty].from_data(tracer.builder, tracer.builder.load(place))


def _store(proxy: StructProxy, name: str, value: Any, tracer: Tracer) -> None:
    ty = proxy._ty.types[name]
    _store_ir(proxy, name, calls.concrete(value, ty, tracer), tracer)


def _store_ir(proxy: StructProxy, name: str, value: Any, tracer: Tracer) -> None:
    model = tracer.context.data_model_manager[proxy._ty.types[name]]
    tracer.builder.store(model.as_data(tracer.builder, value), _address(proxy, name, tracer))


def _fits(ty: types.Type, have: types.Type) -> bool:
    number = (types.Integer, types.Float, types.Boolean)
    return ty == _plain(have) or (
        isinstance(ty, number) and not isinstance(ty, types.Literal) and isinstance(types.unliteral(have), number)
    )


def _check_assignment(ref: StructRef, name: str, have: types.Type) -> None:
    if name not in ref.types:
        raise CuteError(f"{ref.cls.__name__} has no field {name!r}; its fields are {', '.join(ref.types)}")
    if not _fits(ref.types[name], have):
        raise CuteError(
            f"{ref.cls.__name__}.{name} was made as {ref.types[name]} and cannot become {have}: "
            "annotate the field with a DType if it changes at run time"
        )


# ---------------------------------------------------------------- in traced code


def _tracer() -> Tracer:
    """What runs the traced code that holds a proxy: proxies exist in the compiler alone."""
    return cast(Tracer, seam.current())


def proxy_get(proxy: StructProxy, name: str) -> Any:
    """A field's value, a bound traced method, a property's value, or a class constant."""
    ref, tracer = proxy._ty, _tracer()
    if name in ref.types:
        value = None if tracer.builder is None else _load(proxy, name, tracer)
        return calls.abstract(ref.types[name], value, tracer)
    raw = inspect.getattr_static(ref.cls, name, None)
    if isinstance(raw, property):
        return raw.fget(proxy)  # type: ignore[misc]
    if inspect.isfunction(raw):
        return functools.partial(raw if seam.is_traced(raw) else _jitted_from_traced(ref, name), proxy)
    if raw is None:
        raise CuteError(f"{ref.cls.__name__} has no attribute {name!r}")
    return getattr(ref.cls, name)


def _jitted_from_traced(ref: StructRef, name: str) -> Callable[..., Any]:
    raise CuteError(
        f"{ref.cls.__name__}.{name} holds run-time control flow and is jitted: call it from a kernel or another "
        "jitted method, not from a traced function"
    )


def proxy_set(proxy: StructProxy, name: str, value: Any) -> None:
    tracer = _tracer()
    _check_assignment(proxy._ty, name, calls.numba_type(value))
    if tracer.builder is not None and name in proxy._ty.stored:
        _store(proxy, name, value, tracer)


# ---------------------------------------------------------------- in jitted code


def is_jitted(cls: type, name: str) -> bool:
    """Whether the class's own attribute is a function that Numba must compile: a static method, or a method that is
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
            return typ.types[attr]
        raw = inspect.getattr_static(typ.cls, attr, None)
        if inspect.isfunction(raw):
            if seam.is_traced(raw):
                return BoundTraced(typ, attr)
            return BoundJitted(typ, attr, dispatcher_of(raw))
        tracer = Tracer()
        try:
            if isinstance(raw, staticmethod) and is_jitted(typ.cls, attr):
                return jitted_type(typ.cls, attr)
            if _traceable(typ, attr):
                with seam.running(tracer):
                    return calls.numba_type(proxy_get(StructProxy(typ, None), attr))
            return struct_operators.result_type(self.context, dispatcher_of(raw.fget), (typ,))
        except CuteError as e:
            raise as_typing_error(e) from e


def _traceable(typ: StructRef, attr: str) -> bool:
    """Whether an attribute is no property that branches on what only the kernel knows: Numba compiles those."""
    if not isinstance(inspect.getattr_static(typ.cls, attr, None), property):
        return True
    try:
        with seam.running(Tracer()):
            calls.numba_type(proxy_get(StructProxy(typ, None), attr))
    except CuteError:
        return False
    return True


@lowering_registry.lower_getattr_generic(StructRef)
def struct_getattr(context: Any, builder: Any, typ: StructRef, val: Any, attr: str) -> Any:
    tracer = Tracer(context, builder)
    raw = inspect.getattr_static(typ.cls, attr, None)
    if attr in typ.stored:
        return _load(StructProxy(typ, val), attr, tracer)
    if inspect.isfunction(raw) and attr not in typ.types:
        return val
    if isinstance(raw, staticmethod) and is_jitted(typ.cls, attr):
        return context.get_dummy_value()
    if not _traceable(typ, attr):
        return struct_operators.call(context, builder, dispatcher_of(raw.fget), (typ,), (val,))  # type: ignore[union-attr]
    with seam.running(tracer):
        result = proxy_get(StructProxy(typ, val), attr)
        return calls.concrete(result, calls.numba_type(result), tracer)


@lowering_registry.lower_setattr_generic(StructRef)
def struct_setattr(context: Any, builder: Any, sig: Any, args: Any, attr: str) -> None:
    """Numba has cast the value to the field's type; what the type says whole cannot change."""
    ref, kind = sig.args
    raw = inspect.getattr_static(ref.cls, attr, None)
    if isinstance(raw, property) and raw.fset is not None:
        struct_operators.call(context, builder, dispatcher_of(raw.fset), (ref, kind), args)
        return
    if isinstance(raw, property):
        raise CuteError(f"{ref.cls.__name__}.{attr} is a property without a setter: it cannot be assigned")
    if attr not in ref.stored:
        raise CuteError(
            f"{ref.cls.__name__}.{attr} is static ({ref.types[attr]}) and cannot be assigned: annotate the field with "
            "a DType if it changes at run time"
        )
    _store_ir(StructProxy(ref, args[0]), attr, args[1], Tracer(context, builder))
