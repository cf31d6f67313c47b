# SPDX-License-Identifier: Apache-2.0
"""Calls as published operations, wherever these say the same: the dialect's own inference gives the call's types."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, SSAValue

import numba_cute as cute

from ...compiler.inspection import inference
from ...dtypes import Int32
from ...seam import CuteError
from ...seam.guards import facade
from ...typed.descriptions import Group, Scalar
from ..dialect.attributes import CuteType
from ..dialect.printed_types import PrintedType
from ..library import arithmetic, operations as calls
from ..library.types import description_of_value, type_of
from ..text.atoms import make_copy_atom
from ..text.writer import item
from . import rules
from .making import Making, Unpublished
from .rules import Rule
from .tuples import KINDS, kept


def publish(module: ModuleOp) -> None:
    """Write each call of a module as the published operations that say the same, in its place."""
    for op in list(module.walk()):
        if op.parent is not None and isinstance(op, (calls.Inferred, calls.StaticOp)):
            _publish(op)


def _publish(op: Any) -> None:
    maker = _api if isinstance(op, calls.ApiOp) else _MAKERS.get(type(op))
    if maker is None or op.parent is None:
        return
    made = Making(op)
    try:
        value = maker(made, op)
    except (Unpublished, CuteError):
        made.undo()
        return
    made.attach(value)


# ------------------------------------------------------------------ calls of functions


def _api(m: Making, op: calls.ApiOp) -> Any:
    d = op.DEFINITION
    if d.function is None:
        raise Unpublished
    if facade.plain(d.function) in _ALLOCATE:
        return _alloca(m)
    if (kind := _CONSTRUCT.get(facade.plain(d.function))) is not None:
        return _tuple(m, tuple(m.positional(len(op.arguments.positional))), kind)
    plain = facade.plain(d.function)
    if plain in _ATOMS:
        return _atom(m, op)
    if plain in _INDICES:
        return _index(m, op, _INDICES[plain])
    if plain in _REGISTERS and not op.values:
        return m.emit(rules.READ + _REGISTERS[plain], [], op.result.type)  # type: ignore
    if plain in _STEPS:
        return _step(m, op, *_STEPS[plain])
    rule = rules.rule_of(d.function)
    if rule is None:
        raise Unpublished
    return _by_rule(m, op, rule)


def _by_rule(m: Making, op: calls.ApiOp, rule: Rule) -> Any:
    given = _bound(m, op, rule)
    operands: list[SSAValue] = []
    for p in rule.parameters:
        if given.get(p.name) is None and p.optional:
            continue
        if p.name not in given or len(operands) < rule.parameters.index(p):
            raise Unpublished
        operands.append(m.fit(given[p.name], p.kind))
    attributes = {name: a for name in rule.attributes if (a := _attribute(name, given)) is not None}
    found = m.result
    if found is None:
        return m.emit(rule.name, operands, None, attributes=attributes)

    def make(t: Attribute) -> Any:
        kind = _GIVES.get(rule.name)
        t = type_of(found, kind) if kind is not None and isinstance(found, Group) else t
        return m.emit(rule.name, operands, t, attributes=attributes)

    if isinstance(op.result.type, IntegerType) and op.result.type.width.data == 1:  # type: ignore[union-attr]
        return make(op.result.type)  # type: ignore[union-attr]
    return m.number(found, make)


def _bound(m: Making, op: calls.ApiOp, rule: Rule) -> dict[str, Any]:
    """The patterns of a call's arguments by the parameters' names; those that have their defaults are left out."""
    known = {p.name for p in rule.parameters} | set(rule.attributes)
    positional = [m.pattern(p) for p in op.arguments.positional]
    keywords = {name: m.pattern(p) for name, p in op.arguments.keywords}
    names = list(rule.signature.parameters)  # which the IR may give in their places, though Python does not
    if len(positional) > len(names):
        raise Unpublished
    found = {**dict(zip(names, positional)), **keywords}
    for name, value in found.items():
        if name not in known and not (type(value) is type(default := rule.signature.parameters[name].default)
                                      and value == default):  # fmt: skip
            raise Unpublished
    return {name: value for name, value in found.items() if name in known}


def _attribute(name: str, given: dict[str, Any]) -> Attribute | None:
    value = given.get(name)
    if name == "proj":
        tiler = given["tiler"]
        value = kept(tiler) if value is None else value
        if not isinstance(value, tuple) or any(x is not None and type(x) is not int for x in value):
            raise Unpublished
        return StringAttr(item(description_of_value(value)))
    if value is None or value == ():
        return None
    if name == "mode":
        path = value if isinstance(value, tuple) else (value,)
        if any(type(i) is not int or i < 0 for i in path):
            raise Unpublished
        return DenseArrayBase.from_list(i32, list(path))
    if type(value) is not int or value < 0:
        raise Unpublished
    return IntegerAttr(value, i32)


_GIVES = {"cute.get_shape": "shape", "cute.get_stride": "stride", "cute.idx2crd": "coord", "cute.shape_div": "shape"}
"""The kinds of the tuples that operations give."""
_CONSTRUCT = {facade.plain(getattr(cute, f"make_{kind}")): kind for kind in ("shape", "stride", "coord", "tile")}
_ALLOCATE = {
    facade.plain(getattr(cute, name))
    for name in ("make_rmem_tensor", "make_rmem_tensor_like", "make_fragment", "make_fragment_like")
}
"""The functions that give new registers, of which a tensor's type says all."""


_INDICES = {facade.plain(f): name for name, f in rules.INDICES.items()}
_REGISTERS = {facade.plain(f): name for name, f in rules.REGISTERS.items()}
_STEPS = {facade.plain(f): (name, number) for name, (f, number) in rules.STEPS.items()}


def _index(m: Making, op: Any, register: str) -> Any:
    """A place in (x, y, z) of which single numbers are used: each is read."""
    users = [use.operation for use in op.result.uses]
    axes = [u.arguments.positional[1] if type(u) is calls.SliceOp else None for u in users]
    if not users or any(type(axis) is not int or not 0 <= axis < 3 for axis in axes):
        raise Unpublished
    read = {
        axis: m.emit(f"{rules.READ}{register}.{'xyz'[axis]}", [], type_of(Scalar(Int32)))
        for axis in sorted({a for a in axes if type(a) is int})
    }
    for user, axis in zip(users, axes, strict=True):
        value, old = read[axis], user.results[0]  # type: ignore[index]
        value.name_hint = value.name_hint or old.name_hint
        old.replace_all_uses_with(value)
        for name, a in user.attributes.items():
            value.owner.attributes.setdefault(name, a)
        user.detach()
        user.erase()


def _step(m: Making, op: calls.ApiOp, name: str, number: str | None) -> Any:
    given = [*map(m.pattern, op.arguments.positional), *(m.pattern(p) for _, p in op.arguments.keywords)]
    if len(given) != (number is not None) or any(type(n) is not int for n in given):
        raise Unpublished
    m.emit(name, [], None, attributes={} if number is None else {number: IntegerAttr(given[0], i32)})


_ATOMS = {facade.plain(f) for f in (cute.make_copy_atom, make_copy_atom)}


def _atom(m: Making, op: Any) -> Any:
    t = op.result.type
    if not isinstance(t, PrintedType):
        raise Unpublished
    made: SSAValue = m.emit("cute.make_atom", [], t, "atom")
    for value in op.values:
        owner = value.owner
        if isinstance(owner, calls.ApiOp) and isinstance(owner.DEFINITION.function, type) and value.has_one_use():
            m.unused.append(owner)  # an operation that nothing but the atom has
    return made


def _alloca(m: Making) -> Any:
    d, t = m.result, m.call.result.type
    if not isinstance(t, PrintedType) or t.name != "cute.memref" or not inference.is_whole(_layout_of(d)):
        raise Unpublished
    lay = type_of(_layout_of(d))
    if not isinstance(lay, CuteType) or not _allocates(d):
        raise Unpublished
    return m.emit("cute.memref.alloca", [m.emit("cute.static", [], lay, "lay")], t)


def _layout_of(d: Any) -> Any:
    return d.fields[1]


def _allocates(d: Any) -> bool:
    """Say whether `make_rmem_tensor` of this layout and element type gives such a tensor."""
    dtype = d.fields[0].fields[0]
    return bool(inference.infer(cute.make_rmem_tensor, (_layout_of(d), dtype), {}) == d)


def _tuple(m: Making, pattern: Any, kind: str = "int_tuple") -> Any:
    if m.result is None or m.result != description_of_value(pattern):
        raise Unpublished
    t = m.call.result.type
    return m.fit(pattern, t.kind if isinstance(t, CuteType) and t.kind in KINDS else kind)


# ------------------------------------------------------------------ other calls


def _make_tuple(m: Making, op: calls.MakeTuple) -> Any:
    return _tuple(m, m.positional(1)[0])


def _static(m: Making, op: calls.StaticOp) -> Any:
    return m.emit("cute.static", [], op.result.type)


PARTS = {
    ("Tensor", "iterator"): "get_iter", ("Tensor", "layout"): "get_layout", ("Tensor", "shape"): "get_shape",
    ("Tensor", "stride"): "get_stride", ("Layout", "shape"): "get_shape", ("Layout", "stride"): "get_stride",
    ("ComposedLayout", "inner"): "composed_get_inner", ("ComposedLayout", "offset"): "composed_get_offset",
    ("ComposedLayout", "outer"): "composed_get_outer",
}  # fmt: skip
"""The operations that give parts of objects, by the object's class and the part."""


def _get_attr(m: Making, op: calls.GetAttr) -> Any:
    of, name = m.positional(2)
    cls = getattr(description_of_value(of), "cls", None)
    known = PARTS.get((getattr(cls, "__name__", ""), name))
    if known is None:
        raise Unpublished
    found, operand = m.result, m.fit(of, "value")
    assert found is not None

    def make(t: Attribute) -> Any:
        kind = _GIVES.get(f"cute.{known}")
        t = type_of(found, kind) if kind is not None else t
        return m.emit(f"cute.{known}", [operand], t)

    return m.number(found, make)


def _slice(m: Making, op: calls.SliceOp) -> Any:
    of, coord = m.positional(2)
    d = description_of_value(of)
    if isinstance(of, SSAValue) and isinstance(d, Group) and type(coord) is int:
        operand = _own_kind(of)
        found = m.result
        assert found is not None
        mode = DenseArrayBase.from_list(i32, [coord])

        def make(t: Attribute) -> Any:
            t = type_of(found, operand.type.kind)
            return m.emit("cute.get", [operand], t, attributes={"mode": mode})

        return m.number(found, make)
    return m.emit("cute.slice", [m.fit(of, "value"), m.fit(coord, "coord")], op.result.type)  # type: ignore


def _own_kind(value: SSAValue) -> Any:
    """Give a tuple as it is."""
    if not isinstance(value.type, CuteType) or value.type.kind not in (*KINDS, "tile"):
        raise Unpublished
    return value


def _load(m: Making, op: calls.LoadElement) -> Any:
    of, coord = m.positional(2)
    tensor = _memref(m, of)
    return m.emit("cute.memref.load", [tensor, m.fit(coord, "coord")], op.result.type)  # type: ignore


def _memref(m: Making, of: Any) -> Any:
    tensor = m.fit(of, "value")
    if not isinstance(tensor.type, PrintedType) or tensor.type.name != "cute.memref":
        raise Unpublished
    return tensor


def _store(m: Making, op: calls.StoreElement) -> None:
    of, coord, value = m.positional(3)
    tensor = _memref(m, of)
    element = Scalar(description_of_value(tensor).fields[0].fields[0].value)  # type: ignore[union-attr]
    if isinstance(value, SSAValue):
        value = m.cast(value, description_of_value(value), element)
    elif type(value) in (int, float) and (element.dtype.is_float or element.dtype.is_integer and type(value) is int):
        value = arithmetic.constant(value, element.dtype, m.add)
    else:
        raise Unpublished
    m.emit("cute.memref.store", [tensor, m.fit(coord, "coord"), value], None)


def _method(m: Making, op: calls.MethodOp) -> Any:
    """A layout that is called."""
    if op.attribute.data != "__call__":
        raise Unpublished
    of, coord = m.positional(2)
    cls = getattr(description_of_value(of), "cls", None)
    found = m.result
    if getattr(cls, "__name__", "") not in ("Layout", "ComposedLayout") or found is None:
        raise Unpublished
    operands = [m.fit(coord, "coord"), m.fit(of, "value")]
    return m.number(found, lambda t: m.emit("cute.crd2idx", operands, t))


def _cast(m: Making, op: calls.CastOp) -> Any:
    """A number of which something is known, as one of which nothing is."""
    (value,) = m.positional(1)
    if not isinstance(value, SSAValue) or not isinstance(value.type, CuteType):
        raise Unpublished
    return m.cast(value, description_of_value(value), m.result)


_MAKERS: dict[type, Any] = {
    calls.MakeTuple: _make_tuple,
    calls.StaticOp: _static,
    calls.GetAttr: _get_attr,
    calls.LoadElement: _load,
    calls.SliceOp: _slice,
    calls.StoreElement: _store,
    calls.MethodOp: _method,
    calls.CastOp: _cast,
}

__all__ = ["PARTS", "publish"]
