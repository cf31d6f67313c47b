# SPDX-License-Identifier: Apache-2.0
"""What a compiled function returns: objects (structs, register files) by reference, alone, in tuples and in each other.

An object of the callee's own frame is gone when the callee returns, so the caller gets its contents and keeps them in a
slot of its own, one for each call site. Any other object is an argument, or was reached through one: the caller gets
its address. In LLVM an object is {address, code, contents}; code 0: the object at the address, 1: a new one with these
contents, 2 + i: the object in place i of the same result. Which slots are the callee's own is known when all of it has
been lowered; once the call is inlined LLVM folds all of this.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.datamodel import models
from numba.cuda.extending import register_model

from ..emit.frames import make_slot, slots_of

_CODE, _FLAG, _I32 = ir.IntType(8), ir.IntType(1), ir.IntType(32)
_ASKED = "_cute_own"

Places = list[tuple[Any, Any]]
"""The objects of one result so far, in order: the key of each one's type, and its address."""


class Returned:
    """A model of values that are, or may hold, objects."""

    def get_return_type(self: Any) -> Any:
        return _layout(self) if _holds(self) else super().get_return_type()  # type: ignore[misc]

    def as_return(self: Any, builder: Any, value: Any) -> Any:
        return _give(self, builder, value, []) if _holds(self) else super().as_return(builder, value)  # type: ignore[misc]

    def from_return(self: Any, builder: Any, value: Any) -> Any:
        return _take(self, builder, value, []) if _holds(self) else super().from_return(builder, value)  # type: ignore[misc]


class Composite(Returned):
    """A model of an immutable value with members."""

    def members(self: Any) -> list[Any]:
        """Return the models of the members."""
        return list(self._models)


class Object(Returned):
    """A model of an object: its value is an address."""

    embedded = False
    """Whether such a field lies in the object that has it."""

    def object_key(self) -> Any:
        """Return what is equal for all types whose objects may be the same one."""
        raise NotImplementedError

    def contents(self) -> Any:
        """Return the LLVM type of what is at the address."""
        raise NotImplementedError

    def fields(self) -> list[Any] | None:
        """Return the models of the fields; None if the contents are numbers alone."""
        return None


def _holds(model: Any) -> bool:
    """Say whether values of this model are or hold objects."""
    return isinstance(model, Object) or (isinstance(model, Composite) and any(map(_holds, model.members())))


def _layout(model: Any) -> Any:
    if not _holds(model):
        return model.get_data_type()
    if isinstance(model, Object):
        return ir.LiteralStructType([model.contents().as_pointer(), _CODE, _contents_layout(model)])
    return ir.LiteralStructType([_layout(m) for m in model.members()])


def _contents_layout(model: Any) -> Any:
    fields = model.fields()
    if fields is None:
        return model.contents()
    return ir.LiteralStructType([_contents_layout(m) if _is_embedded(m) else _layout(m) for m in fields])


def _is_embedded(model: Any) -> bool:
    return isinstance(model, Object) and model.embedded


def _joined(builder: Any, ty: Any, parts: list[Any]) -> Any:
    value = ir.Constant(ty, ir.Undefined)
    for i, part in enumerate(parts):
        value = builder.insert_value(value, part, i)
    return value


# ---------------------------------------------------------------- in the function that returns


def _give(model: Any, builder: Any, value: Any, places: Places) -> Any:
    if not _holds(model):
        return model.as_data(builder, value)
    if isinstance(model, Object):
        key, code = model.object_key(), _CODE(1)
        for i, (have, address) in reversed(list(enumerate(places))):
            if have == key:
                code = builder.select(builder.icmp_unsigned("==", address, value), _CODE(2 + i), code)
        code = builder.select(_is_own(builder, key, value), code, _CODE(0))
        places.append((key, value))
        parts = [value, code, _give_contents(model, builder, value, places)]
    else:
        parts = [_give(m, builder, builder.extract_value(value, i), places) for i, m in enumerate(model.members())]
    return _joined(builder, _layout(model), parts)


def _give_contents(model: Any, builder: Any, address: Any, places: Places) -> Any:
    fields = model.fields()
    if fields is None:
        return builder.load(address)
    parts = []
    for i, field in enumerate(fields):
        place = builder.gep(address, [_I32(0), _I32(i)], inbounds=True)
        if _is_embedded(field):
            places.append((field.object_key(), place))
            parts.append(_give_contents(field, builder, place, places))
        else:
            parts.append(_give(field, builder, field.from_data(builder, builder.load(place)), places))
    return _joined(builder, _contents_layout(model), parts)


def _is_own(builder: Any, key: Any, address: Any) -> Any:
    """Return whether an address is that of an object of the function's own frame; `settle` tells it."""
    asked = builder.or_(_FLAG(0), _FLAG(0))
    builder.function.__dict__.setdefault(_ASKED, []).append((asked, key, address))
    return asked


def settle(function: Any) -> None:
    """Compare what a function returns with its slots, now that all of them are known."""
    for asked, key, address in function.__dict__.pop(_ASKED, []):
        builder = ir.IRBuilder()
        builder.position_before(asked)
        own: Any = _FLAG(0)
        for model, slot in slots_of(function):
            for place in _places_of(builder, model, slot, key):
                own = builder.or_(own, builder.icmp_unsigned("==", address, place))
        asked.operands = [own, _FLAG(0)]


def _places_of(builder: Any, model: Any, address: Any, key: Any) -> list[Any]:
    """Return the addresses of the objects of a type in a slot: what it holds, and what that embeds."""
    if model is None:
        return [address] if address.type.pointee == key else []
    found = [address] if model.object_key() == key else []
    for i, field in enumerate(model.fields() or ()):
        if _is_embedded(field):
            place = builder.gep(address, [_I32(0), _I32(i)], inbounds=True)
            found += _places_of(builder, field, place, key)
    return found


# ---------------------------------------------------------------- in the one that called it


def _take(model: Any, builder: Any, value: Any, places: Places) -> Any:
    if not _holds(model):
        return model.from_data(builder, value)
    if isinstance(model, Object):
        address, code, contents = (builder.extract_value(value, i) for i in range(3))
        slot = make_slot(builder, model.contents(), "returned", None if model.fields() is None else model)
        address = builder.select(builder.icmp_unsigned("==", code, _CODE(0)), address, slot)
        for i, (key, other) in enumerate(places):
            if key == model.object_key():
                address = builder.select(builder.icmp_unsigned("==", code, _CODE(2 + i)), other, address)
        places.append((model.object_key(), address))
        _take_contents(model, builder, contents, slot, places)
        return address
    parts = [_take(m, builder, builder.extract_value(value, i), places) for i, m in enumerate(model.members())]
    return _joined(builder, model.get_value_type(), parts)


def _take_contents(model: Any, builder: Any, value: Any, slot: Any, places: Places) -> None:
    fields = model.fields()
    if fields is None:
        builder.store(value, slot)
        return
    for i, field in enumerate(fields):
        part, place = builder.extract_value(value, i), builder.gep(slot, [_I32(0), _I32(i)], inbounds=True)
        if _is_embedded(field):
            places.append((field.object_key(), place))
            _take_contents(field, builder, part, place, places)
        else:
            builder.store(field.as_data(builder, _take(field, builder, part, places)), place)


# ---------------------------------------------------------------- tuples


class _TupleModel(Composite, models.TupleModel):
    """Numba's, of any tuple without objects."""


class _UniTupleModel(Composite, models.UniTupleModel):
    """Numba's, of any tuple without objects."""

    def members(self) -> list[Any]:
        return [self._elem_model] * self._count


register_model(types.Tuple)(_TupleModel)
register_model(types.NamedTuple)(_TupleModel)
register_model(types.UniTuple)(_UniTupleModel)
register_model(types.NamedUniTuple)(_UniTupleModel)
