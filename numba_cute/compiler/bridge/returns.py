# SPDX-License-Identifier: Apache-2.0
"""Return objects (structs, register files) from compiled functions by reference: alone, in tuples and in each other.

An object of the callee's own frame is gone when the callee returns, so the caller gets its contents and keeps them in a
slot of its own, one for each call site. Any other object is an argument, or was reached through one: the caller gets
its address. In LLVM an object is {address, code, contents}; code 0: the object at the address, 1: a new one with these
contents, 2 + i: the object in place i of the same result. Which slots are the callee's own is known when all of it has
been lowered; once the call is inlined LLVM folds all of this.
"""

from __future__ import annotations

import functools
from typing import Any

from ..emit.frames import make_slot, slots_of
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.numba_cuda import models, register_model, types

_CODE, _FLAG, _I32 = ir.IntType(32), ir.IntType(1), ir.IntType(32)
_ASKED, _FORWARDED = "_cute_own", "_cute_forwarded"
_GIVEN: dict[str, dict[int, int]] = {}
"""The places of a function's result that are never objects of its own frame, by the function's name in LLVM, each with
the number of the argument that it always is, or 0."""

Places = list[tuple[Any, Any]]
"""The objects of one result so far, in order: the key of each one's type, and its address."""


class Returned:
    """A model of values that are, or may hold, objects."""

    def get_return_type(self: Any) -> Any:
        return _layout(self) if _holds(self) else super().get_return_type()  # type: ignore[misc]

    def as_return(self: Any, builder: Builder, value: Any) -> Any:
        return _give(self, builder, value, []) if _holds(self) else super().as_return(builder, value)  # type: ignore[misc]

    def from_return(self: Any, builder: Builder, value: Any) -> Any:
        if not _holds(self):
            return super().from_return(builder, value)  # type: ignore[misc]
        return _Taking(builder, _given_by(builder, value)).take(self, value)


class Composite(Returned):
    """A model of an immutable value with members."""

    def members(self: Any) -> list[Any]:
        """Return the models of the members."""
        return list(self._models)


class Object(Returned):
    """A model of an object: its value is an address."""

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
    return ir.LiteralStructType([_layout(m) for m in fields])


def _joined(builder: Builder, ty: Any, parts: list[Any]) -> Any:
    value = ir.Constant(ty, ir.Undefined)
    for i, part in enumerate(parts):
        value = builder.insert_value(value, part, i)
    return value


# ---------------------------------------------------------------- in the function that returns


def _give(model: Any, builder: Builder, value: Any, places: Places) -> Any:
    if not _holds(model):
        return model.as_data(builder, value)
    if isinstance(model, Object):
        key, code = model.object_key(), _CODE(1)
        for i, (have, address) in reversed(list(enumerate(places))):
            if have == key:
                code = builder.select(builder.icmp_unsigned("==", address, value), _CODE(2 + i), code)
        code = builder.select(_is_own(builder, len(places), key, value), code, _CODE(0))
        places.append((key, value))
        parts = [value, code, _give_contents(model, builder, value, places)]
    else:
        parts = [_give(m, builder, builder.extract_value(value, i), places) for i, m in enumerate(model.members())]
    return _joined(builder, _layout(model), parts)


def _give_contents(model: Any, builder: Builder, address: Any, places: Places) -> Any:
    fields = model.fields()
    if fields is None:
        return builder.load(address)
    parts = []
    for i, field in enumerate(fields):
        place = builder.gep(address, [_I32(0), _I32(i)], inbounds=True)
        parts.append(_give(field, builder, field.from_data(builder, builder.load(place)), places))
    return _joined(builder, _contents_layout(model), parts)


def _is_own(builder: Builder, place: int, key: Any, address: Any) -> Any:
    """Return whether an address is that of an object of the function's own frame; `settle` tells it."""
    asked = builder.or_(_FLAG(0), _FLAG(0))
    builder.function.__dict__.setdefault(_ASKED, []).append((asked, place, key, address))
    return asked


def settle(function: Any) -> None:
    """Compare what a function returns with its slots, now that all of them are known."""
    given: dict[int, set[int]] = {}
    questions, forwarded = function.__dict__.pop(_ASKED, []), function.__dict__.pop(_FORWARDED, False)
    stores = _stores(function) if questions or forwarded else {}
    if forwarded:
        _name_objects(function, stores)
    for asked, index, key, address in questions:
        builder = ir.IRBuilder()
        builder.position_before(asked)
        slots = [slot for model, slot in slots_of(function) if _kind(model, slot) == key]
        same = [builder.icmp_unsigned("==", address, slot) for slot in slots]
        asked.operands = [functools.reduce(builder.or_, same, _FLAG(0)), _FLAG(0)]
        sources = _sources(address, (), stores, set())
        numbers = {function.args.index(x) if x in function.args else -bool(slots) for x in sources}
        given.setdefault(index, set()).update(numbers)
    _GIVEN[function.name] = {i: min(n) if len(n) == 1 else 0 for i, n in given.items() if min(n, default=-1) >= 0}


def _stores(function: Any) -> dict[Any, list[Any]]:
    """Return what is stored into each variable of a function that is only stored and loaded whole."""
    found: dict[Any, list[Any]] = {}
    other: set[Any] = set()
    for block in function.blocks:
        for inst in block.instructions:
            if isinstance(inst, ir.StoreInstr):
                found.setdefault(inst.operands[1], []).append(inst.operands[0])
            elif not isinstance(inst, ir.LoadInstr):
                other.update(v for v in inst.operands if isinstance(v, ir.AllocaInstr))
    return {variable: values for variable, values in found.items() if variable not in other}


def _sources(value: Any, path: tuple[int, ...], stores: dict[Any, list[Any]], seen: set[Any]) -> set[Any]:
    """Return where a part of a value comes from, through variables and tuples: arguments, slots, None for all else."""
    while True:
        if isinstance(value, ir.ExtractValue):
            value, path = value.operands[0], (*value.indices, *path)
        elif isinstance(value, ir.InsertValue) and path:
            (at,) = value.indices
            value, path = (value.operands[1], path[1:]) if path[0] == at else (value.operands[0], path)
        else:
            break
    if isinstance(value, ir.LoadInstr) and value.operands[0] in stores:
        place = (value.operands[0], path)
        if place in seen:
            return set()
        seen.add(place)
        made = [v for v in stores[value.operands[0]] if not isinstance(v, ir.Constant)]
        return set().union(*(_sources(v, path, stores, seen) for v in made))
    return {value if isinstance(value, (ir.Argument, ir.AllocaInstr)) and not path else None}


def _name_objects(function: Any, stores: dict[Any, list[Any]]) -> None:
    """Take in place of a variable, or of an item of a tuple, that is always the same argument or slot that itself: a
    call that gives back its argument in a loop would else keep the object in memory."""
    slots = {id(slot) for _, slot in slots_of(function)}
    same: dict[Any, Any] = {}
    for block in function.blocks:
        for inst in block.instructions:
            if isinstance(inst, (ir.LoadInstr, ir.ExtractValue)) and isinstance(inst.type, ir.PointerType):
                sources = _sources(inst, (), stores, set())
                source = sources.pop() if len(sources) == 1 else None
                if isinstance(source, ir.Argument) or id(source) in slots:
                    same[inst] = source
    for block in function.blocks:
        for inst in block.instructions:
            if any(v in same for v in inst.operands):
                _use(inst, [same.get(v, v) for v in inst.operands])


def _use(inst: Any, operands: list[Any]) -> None:
    """Give an instruction other operands; some keep them under other names too."""
    inst.operands = operands
    if isinstance(inst, ir.GEPInstr):
        inst.pointer = operands[0]
    elif isinstance(inst, ir.InsertValue):
        inst.aggregate, inst.value = operands


def _kind(model: Any, slot: Any) -> Any:
    """Return the key of the object in a slot."""
    return slot.type.pointee if model is None else model.object_key()


# ---------------------------------------------------------------- in the one that called it


def _given_by(builder: Builder, value: Any) -> dict[int, Any]:
    """Return the places of a result, loaded from where the function that was called has put it, that are never that
    one's own, each with the argument that it always is, or None."""
    area = getattr(value, "operands", [None])[0]
    for inst in reversed(builder.block.instructions):
        if isinstance(inst, ir.CallInstr) and inst.args and inst.args[0] is area:
            given = _GIVEN.get(getattr(inst.callee, "name", ""), {})
            return {place: inst.args[number] if number else None for place, number in given.items()}
    return {}


class _Taking:
    """Takes one result. given: the places that are never the callee's own, with the arguments that they are."""

    def __init__(self, builder: Builder, given: dict[int, Any]) -> None:
        self.builder, self.given = builder, given
        self.places: Places = []

    def take(self, model: Any, value: Any) -> Any:
        """Return the value of a model that a part of the result is."""
        builder = self.builder
        if not _holds(model):
            return model.from_data(builder, value)
        if isinstance(model, Object):
            return self._object(model, *(builder.extract_value(value, i) for i in range(3)))
        parts = [self.take(m, builder.extract_value(value, i)) for i, m in enumerate(model.members())]
        return _joined(builder, model.get_value_type(), parts)

    def _object(self, model: Any, address: Any, code: Any, contents: Any) -> Any:
        builder, key = self.builder, model.object_key()
        if len(self.places) in self.given:
            address = self.given[len(self.places)] or address
            builder.function.__dict__[_FORWARDED] = True
            self.places += [(key, address)] + [(None, None)] * _count(model)
            return address
        slot = make_slot(builder, model.contents(), "returned", None if model.fields() is None else model)
        address = builder.select(builder.icmp_unsigned("==", code, _CODE(0)), address, slot)
        for i, (have, other) in enumerate(self.places):
            if have == key:
                address = builder.select(builder.icmp_unsigned("==", code, _CODE(2 + i)), other, address)
        self.places.append((key, address))
        self._contents(model, contents, slot)
        return address

    def _contents(self, model: Any, value: Any, slot: Any) -> None:
        builder, fields = self.builder, model.fields()
        if fields is None:
            builder.store(value, slot)
            return
        for i, field in enumerate(fields):
            part, place = builder.extract_value(value, i), builder.gep(slot, [_I32(0), _I32(i)], inbounds=True)
            builder.store(field.as_data(builder, self.take(field, part)), place)


def _count(model: Any) -> int:
    """Return how many objects an object, or a tuple, holds."""
    inside = (model.fields() or ()) if isinstance(model, Object) else model.members() if _holds(model) else ()
    return sum(_count(m) + isinstance(m, Object) for m in inside)


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
