# SPDX-License-Identifier: Apache-2.0
"""Numba's values as the objects that traced code sees, and what it gives as Numba's values.

Instances of `struct` classes lie in slots of the caller's frame. A constructor call is traced: Python makes the object,
and it is stored into its slot where it reaches Numba. There is one slot for each construction site, and NVVM's SROA
turns it into registers.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from types import MemberDescriptorType, SimpleNamespace
from typing import Any, cast

import numpy as np

from ... import dtypes, promotion, seam
from ...layout.int_tuple import Part
from ...seam import CuteError
from ...seam.ground import watching
from ...seam.ground.error import RunTimeCondition
from ...seam.ground.names import unknown
from ...seam.marks import plain
from ...seam.marks.constexpr import constexpr_names
from ...seam.source import texts
from ...seam.source.identity import asks_for_identity
from ..emit.frames import index_of, make_aggregate, make_slot, members
from ..emit.leaves import NumberLeaf, RegFile, dtype_of, scalar_type
from ..emit.regions import keeps
from ..emit.tracer import Tracer
from ..ground.carets import described_by
from ..ground.numba_cuda import CUDADispatcher, types
from . import tree
from .array_views import given_array, view_of
from .effects import objects_in
from .field_types import check_assignment, plain_type, run_time
from .given_floats import GivenFloat
from .leaf_types import TENSOR_MAP, leaf_type, make_leaf
from .list_types import is_list, list_type
from .object_types import BoundJitted, BoundTraced, StructRef, Value
from .settings import set_later

# ---------------------------------------------------------------- Numba's values as Python objects, and back


class StructProxy(tree.ByReference):
    """A `StructRef` in traced code: fields are read from and written to the slot; methods are the class's."""

    __slots__ = ("_ty", "_ptr")

    def __init__(self, ty: StructRef, ptr: Any) -> None:
        object.__setattr__(self, "_ty", ty)
        object.__setattr__(self, "_ptr", ptr)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Return the object's own class, for `isinstance` and whoever asks for it by name."""
        return self._ty.cls  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        raw = inspect.getattr_static(self._ty.cls, name, None) if name not in self._ty.types else None
        if inspect.isfunction(raw) and plain.is_plain_class(self._ty.cls) and asks_for_identity(raw):
            return functools.partial(_tracer().call_method, self, name)
        return proxy_get(self, name)

    def cute_method(self, name: str) -> Any:
        """Return what the class has by a name, for this object, also where the proxy has it itself."""
        return proxy_get(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        proxy_set(self, name, value)

    def __copy__(self) -> Any:
        """Do what `copy.copy` does of an object whose class says nothing else."""
        cls = self._ty.cls
        if hasattr(cls, "__copy__"):
            return proxy_get(self, "__copy__")()
        made = cls.__new__(cls) if seam.is_struct_class(cls) else object.__new__(cls)
        for name in self._ty.types:
            object.__setattr__(made, name, proxy_get(self, name))
        return made

    def __repr__(self) -> str:
        if texts.decides():
            raise seam.signalled(RunTimeCondition(texts.NO_TEXT))
        return object.__repr__(self)

    def __deepcopy__(self, memo: Any) -> Any:
        raise CuteError(f"copy.deepcopy of a {self._ty.cls.__name__}: write a method that makes a new one")


def abstract(ty: types.Type, value: Any, tracer: Tracer) -> Any:
    """Make of a Numba type (and an LLVM value, when lowering) the object that traced code sees."""
    if type(ty) is Value:  # most of them
        return _whole(ty, value, tracer)
    if isinstance(ty, types.Omitted):
        return ty.value
    if isinstance(ty, types.Literal):
        return ty.literal_value
    if isinstance(ty, types.NoneType):
        return None
    if isinstance(ty, GivenFloat):
        return ty.value
    if isinstance(ty, (types.Number, types.Boolean)):
        return make_leaf(ty, value)
    if isinstance(ty, types.IntEnumMember):
        return make_leaf(ty.dtype, value)
    if isinstance(ty, types.BaseTuple):
        items = tuple([abstract(t, part, tracer) for t, part in zip(ty, _parts(value, len(ty), tracer))])
        if isinstance(ty, types.BaseNamedTuple):
            return ty.instance_class._make(items)
        return tracer.lists.lend(items) if is_list(ty) else items
    if isinstance(ty, StructRef):
        return StructProxy(ty, value)
    if isinstance(ty, BoundTraced) and isinstance(ty.this, (StructRef, Value, types.BaseNamedTuple)):
        with seam.running(tracer):
            return getattr(abstract(ty.this, value, tracer), ty.attr)
    if isinstance(ty, BoundJitted):
        return functools.partial(ty.dispatcher, abstract(ty.this, value, tracer))
    if isinstance(ty, types.Array):
        return view_of(ty, value, tracer)
    if isinstance(ty, types.SliceType):
        return Part()
    if isinstance(ty, types.EllipsisType):
        return Ellipsis
    if isinstance(ty, types.Dispatcher):
        return ty.dispatcher
    if isinstance(ty, types.NumberClass):  # what `type(x)` is of a number
        return dtype_of(ty.instance_type)
    if isinstance(ty, types.Function) and callable(ty.typing_key):  # an operator, or a function of Python's
        return ty.typing_key
    raise CuteError(f"a value of Numba type {ty} cannot be passed to a CuTe function")


def _whole(ty: Value, value: Any, tracer: Tracer) -> Any:
    """Return the object of an immutable compile-time type with these run-time leaves."""
    parts = zip(ty.leaves, _parts(value, len(ty.leaves), tracer))
    leaves = (StructProxy(t, x) if isinstance(t, StructRef) else make_leaf(t, x) for t, x in parts)
    return tree.unflatten(ty.spec, leaves)


def _parts(value: Any, count: int, tracer: Tracer) -> list[Any]:
    if tracer.builder is None or value is None:  # a static tuple in a struct has no value
        return [None] * count
    return members(tracer.builder, value, count)


def _words(ty: types.Type) -> str | None:
    """Write a type of this library's as its objects are written, with ? for what is known at run time."""
    if not isinstance(ty, Value):
        return None
    with seam.following(Tracer()):
        return repr(abstract(ty, None, Tracer()))


described_by(_words)


@tree.types_objects
def numba_type(obj: Any) -> types.Type:
    """Return the Numba type of what traced code returned."""
    if isinstance(obj, NumberLeaf):
        return leaf_type(obj)
    if isinstance(obj, (bool, int, str)) and not isinstance(obj, enum.Enum):
        return types.literal(str(obj) if isinstance(obj, str) else obj)
    if obj is None:
        return types.none
    if isinstance(obj, float):
        return GivenFloat(obj) if promotion.followed() else types.float64
    if isinstance(obj, np.generic) and obj.dtype.kind in "biuf":
        return scalar_type(dtypes.from_numpy(obj.dtype))
    if isinstance(obj, StructProxy):
        return obj._ty
    if type(obj) is seam.ArrayView and given_array(obj) is not None:
        return given_array(obj)[0]
    if isinstance(obj, Kept):
        return slot_of(obj)._ty
    if seam.is_struct_class(type(obj)):
        return type_of_instance(obj)
    if plain.is_plain_class(type(obj)):
        return type_of_plain(obj)
    if isinstance(obj, (tuple, list)):
        items = [numba_type(x) for x in obj]
        named = type(obj) if hasattr(obj, "_fields") else None
        return list_type(items) if type(obj) is list else types.BaseTuple.from_types(items, named)
    if isinstance(obj, CUDADispatcher):
        return types.Dispatcher(obj)
    if isinstance(obj, type) and obj.__name__ == "warpsize" and obj.__module__ == "numba.cuda.stubs":
        raise seam.signalled(RunTimeCondition("cuda.warpsize: a number that Numba's code reads"))
    return Value(tree.flatten(obj, []))


def concrete(obj: Any, ty: types.Type, tracer: Tracer) -> Any:
    """Return the LLVM value of what traced code returned, as a value of this Numba type."""
    context, b = tracer.context, tracer.builder
    if isinstance(ty, types.Literal) and isinstance(obj, (bool, int)):
        return context.get_constant_generic(b, types.unliteral(ty), obj)
    if isinstance(ty, (types.NoneType, types.Literal, types.Dispatcher)):
        return context.get_dummy_value()
    if isinstance(ty, GivenFloat):
        return context.get_constant(types.float64, ty.value)
    if isinstance(ty, types.Array):
        return given_array(obj)[1]
    if isinstance(ty, (types.Number, types.Boolean)):
        return tracer.ir(obj, types.unliteral(ty))
    if isinstance(ty, types.BaseTuple):
        return make_aggregate(b, context.get_value_type(ty), [concrete(x, t, tracer) for x, t in zip(obj, ty)])
    if isinstance(ty, StructRef):
        obj = slot_of(obj) if isinstance(obj, Kept) else obj
        return obj._ptr if isinstance(obj, StructProxy) else materialize(obj, ty, tracer)
    leaves: list[Any] = []
    tree.flatten(obj, leaves)
    if not leaves:
        return context.get_value_type(ty)(None)
    return make_aggregate(b, context.get_value_type(ty), [_held(x, t, tracer) for x, t in zip(leaves, ty.leaves)])


def _held(leaf: Any, ty: types.Type, tracer: Tracer) -> Any:
    """Return the LLVM value of a leaf in an object."""
    if isinstance(ty, StructRef):
        return concrete(leaf, ty, tracer)
    return tracer.ir(leaf, types.uint64 if ty is TENSOR_MAP else types.unliteral(ty)) if _numeric(leaf) else leaf.ir


def _numeric(leaf: Any) -> bool:
    return isinstance(leaf, (NumberLeaf, dtypes.Scalar))


# ---------------------------------------------------------------- structs in their slots


def _field_type(cls: type, name: str, value: Any) -> types.Type:
    wanted = cls.__cute_types__[name]  # type: ignore[attr-defined]
    return scalar_type(wanted) if isinstance(wanted, dtypes.DType) else plain_type(numba_type(value))


_OUTSIDE = (
    "{0}: an object that was made outside of the kernel is one for all threads, and a kernel cannot hold it: pass what "
    "its fields are made from, and construct it in the kernel"
)


def type_of_instance(obj: Any) -> StructRef:
    """Return the type of a struct that traced code made."""
    cls = type(obj)
    if "_cute_region" not in vars(obj):
        raise CuteError(_OUTSIDE.format(cls.__name__))
    return StructRef(cls, tuple((name, _field_type(cls, name, getattr(obj, name))) for name in cls.__cute_fields__))


_SHADOWED = (bool, int, float)


def type_of_plain(obj: Any) -> StructRef:
    """Return the type of an object of a plain class that traced code made. What is set later is known at run time
    alone; of a class attribute that is set later the object has its own from the beginning."""
    plain.refuse_own_access(type(obj))
    changing, own_fields = set_later(type(obj)), getattr(obj, "__dict__", {}) | plain.fields_of(obj)
    of_class = {n: inspect.getattr_static(type(obj), n, None) for n in changing - own_fields.keys()}
    held = own_fields | {n: x for n, x in of_class.items() if type(x) in _SHADOWED}
    own: Any = type(obj)
    marked = constexpr_names(own)
    fields = tuple((n, _plain_field(x, n in changing, n in marked)) for n, x in sorted(held.items()))
    ty, stands_outside = StructRef(type(obj), fields), getattr(seam.current_or(None), "outside", None)
    if ty.stored and stands_outside is not None and stands_outside(obj):
        raise CuteError(_OUTSIDE.format(type(obj).__name__))
    return ty


def _plain_field(value: Any, changes: bool, marked: bool) -> types.Type:
    """Return the type of a field. changes: whether it is set later. marked: whether the class says that it is static,
    as types alone say it of a float."""
    if type(value) is float and marked and not changes:
        return GivenFloat(value)
    ty = numba_type(value)
    return plain_type(run_time(ty)) if changes else _wide(ty) if isinstance(ty, types.BaseTuple) else ty


def _wide(ty: types.Type) -> types.Type:
    """Return the type of what a tuple in an object holds: integers as arithmetic gives them, so that objects meet of
    which one holds what came of Int32 and another an Int32 itself."""
    if isinstance(ty, types.BaseTuple) and not is_list(ty):
        return types.BaseTuple.from_types([_wide(t) for t in ty], getattr(ty, "instance_class", None))
    return types.int64 if ty == types.int32 and not promotion.followed() else ty


def materialize(obj: Any, ty: StructRef, tracer: Tracer) -> Any:
    """Store an object that traced code made into its slot of the frame."""
    model = tracer.context.data_model_manager[ty]
    _, slot = tracer.placed.get(id(obj), (obj, None))
    if slot is None or slot.type.pointee != model.contents():
        slot = make_slot(tracer.builder, model.contents(), ty.cls.__name__, model)
        tracer.placed[id(obj)] = (obj, slot)
    proxy = StructProxy(ty, slot)
    for name in ty.stored:
        _store(proxy, name, getattr(obj, name), tracer)
    return slot


def settle_before(values: list[Any], tracer: Tracer) -> None:
    """Give the objects of traced code that a jitted function is given their slots: it may change and return them."""
    for x in list(objects_in(values)):
        if type(x) is SimpleNamespace:
            raise CuteError(
                "a SimpleNamespace that a helper makes cannot be given to a function that Numba compiles: make it in "
                "the kernel, or write a class for it"
            )
        if not isinstance(x, (RegFile, tree.ByReference)):
            _keep(x, tracer)


class Kept:
    """A struct of traced code that has its slot already: a class beside its own."""

    __slots__ = ()
    _cute_slot: StructProxy


def slot_of(obj: Kept) -> StructProxy:
    return obj._cute_slot


@keeps
def _keep(obj: Any, tracer: Tracer) -> None:
    """Give a struct its slot now, if all of its fields are there: what is set from now on is stored."""
    if isinstance(obj, Kept) or not all(name in vars(obj) for name in getattr(type(obj), "__cute_fields__", ())):
        return
    ty = type_of_instance(obj) if seam.is_struct_class(type(obj)) else type_of_plain(obj)
    _place(obj, StructProxy(ty, None if tracer.builder is None else materialize(obj, ty, tracer)))


def _place(obj: Any, slot: StructProxy) -> None:
    """Make a slot of a struct's, and of those that are its fields."""
    for name in slot._ty.types:
        inner = getattr(obj, name)
        if isinstance(slot._ty.types[name], StructRef) and not isinstance(inner, (StructProxy, Kept)):
            _place(inner, proxy_get(slot, name))
    cls: Any = type(obj)
    place = _first_slot(cls)
    if place is not None:
        place.__set__(obj, slot)
    else:
        obj.__dict__.update(_cute_slot=slot, _cute_region=None)
    object.__setattr__(obj, "__class__", _kept(cls, tuple(slot._ty.types)))  # its own refuses it if it is frozen


def _first_slot(cls: Any) -> Any:
    """Return what sets the first of the slots that a class without a `__dict__` has: its fields lie in the frame."""
    if cls.__dictoffset__:
        return None
    return next(m for c in cls.__mro__ for m in vars(c).values() if isinstance(m, MemberDescriptorType))


@functools.cache
def _kept(cls: Any, names: tuple[str, ...]) -> Any:
    fields: dict[str, Any] = {name: property(_getter(name), _setter(name)) for name in names}
    fields["__slots__"] = ()  # what has more could not take the place of the class
    if (place := _first_slot(cls)) is not None:
        fields["_cute_slot"] = property(place.__get__)
    of_struct = {"__cute_struct__": True, "__cute_plain__": cls}
    more = of_struct if seam.is_struct_class(cls) else {"__module__": cls.__module__}
    return type(cls.__name__, (cls, Kept), fields | more)


def _getter(name: str) -> Callable[[Any], Any]:
    return lambda self: proxy_get(slot_of(self), name)


def _setter(name: str) -> Callable[[Any, Any], None]:
    return lambda self, value: proxy_set(slot_of(self), name, value)


def _address(proxy: StructProxy, name: str, tracer: Tracer) -> Any:
    index = proxy._ty.stored.index(name)
    return tracer.builder.gep(proxy._ptr, [index_of(0), index_of(index)], inbounds=True)


def load_field(proxy: StructProxy, name: str, tracer: Tracer) -> Any:
    """Return a field as an LLVM value."""
    if name not in proxy._ty.stored:
        return None
    model = tracer.context.data_model_manager[proxy._ty.types[name]]
    return model.from_data(tracer.builder, tracer.builder.load(_address(proxy, name, tracer)))


def _store(proxy: StructProxy, name: str, value: Any, tracer: Tracer) -> None:
    ty = proxy._ty.types[name]
    store_field(proxy, name, concrete(value, ty, tracer), tracer)


def store_field(proxy: StructProxy, name: str, value: Any, tracer: Tracer) -> None:
    model = tracer.context.data_model_manager[proxy._ty.types[name]]
    tracer.builder.store(model.as_data(tracer.builder, value), _address(proxy, name, tracer))


# ---------------------------------------------------------------- in traced code


def _tracer() -> Tracer:
    """Return what runs the traced code that holds a proxy: proxies exist in the compiler alone."""
    return cast(Tracer, seam.current())


def proxy_get(proxy: StructProxy, name: str) -> Any:
    """Return a field's value, a bound traced method, a property's value, or a class constant."""
    ref, tracer = proxy._ty, _tracer()
    if name in ref.types:
        value = None if tracer.builder is None else load_field(proxy, name, tracer)
        found = abstract(ref.types[name], value, tracer)
        if tracer.trail is not None:
            tracer.trail.note(found, tracer.trail.of(proxy))
        if watching.now is not None:
            watching.now.got(proxy, name, found)
        return found
    if name == "__class__":
        return ref.cls
    raw = inspect.getattr_static(ref.cls, name, None)
    if isinstance(raw, functools.cached_property):
        raise CuteError(
            f"{ref.cls.__name__}.{name} is a cached_property, and an object in a kernel gets no new fields: make it a "
            "property"
        )
    if isinstance(raw, functools.partialmethod):
        raise CuteError(f"{ref.cls.__name__}.{name} is a partialmethod: write a method that calls the other one")
    if isinstance(raw, property):
        before, tracer.plain = tracer.plain, tracer.plain or plain.is_plain_class(ref.cls)
        try:
            return raw.fget(proxy)  # type: ignore[misc]
        finally:
            tracer.plain = before
    if inspect.isfunction(raw):
        traced = seam.is_traced(raw) or plain.is_plain_class(ref.cls)
        return functools.partial(raw if traced else _jitted_from_traced(ref, name), proxy)
    if getattr(raw, "__cute_host__", False):
        return functools.partial(raw, proxy)
    own = inspect.getattr_static(ref.cls, "__getattr__", None)
    if raw is None and inspect.isfunction(own) and plain.is_plain_class(ref.cls):
        return own(proxy, name)
    if raw is not None and inspect.isfunction(
        inspect.getattr_static(type(raw), "__get__", None)
    ):  # a user's descriptor
        return type(raw).__get__(raw, proxy, ref.cls)
    if raw is None:
        names = {n for n in (*ref.types, *dir(ref.cls)) if not n.startswith("_")}
        raise seam.UnknownName(unknown(ref.cls, name, names))
    return getattr(ref.cls, name)


def _jitted_from_traced(ref: StructRef, name: str) -> Callable[..., Any]:
    words = (
        f"{ref.cls.__name__}.{name} holds run-time control flow and is jitted: call it from a kernel or another "
        "jitted method, not from a traced function"
    )
    raise seam.signalled(RunTimeCondition(words))  # no refusal: a plain function that calls it is jitted too


def proxy_set(proxy: StructProxy, name: str, value: Any) -> None:
    tracer = _tracer()
    plain.refuse_own_setting(proxy._ty.cls, name)
    own = inspect.getattr_static(proxy._ty.cls, name, None)
    if isinstance(own, property) and own.fset is not None:
        own.fset(proxy, value)
        return
    check_assignment(proxy._ty, name, numba_type(value))
    if tracer.trail is not None:
        tracer.trail.store(proxy, value)
    if watching.now is not None:
        watching.now.stored(proxy, name, value)
    if tracer.builder is not None and name in proxy._ty.stored:
        _store(proxy, name, value, tracer)
