# SPDX-License-Identifier: Apache-2.0
"""Calls as published operations, wherever these say the same: the dialect's own inference must give the call's types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...compiler.inspection import inference
from ...seam import CuteError
from ...seam.guards import facade
from ...typed.descriptions import Constant, Description, Group, Scalar
from .. import arithmetic, operations as calls
from ..calls import Operand
from ..dialect.attributes import CuteType
from ..dialect.inference import compatible, inferred
from ..dialect.operations import CuteOperation
from ..dialect.printed_inference import alike, most_known
from ..dialect.printed_types import PrintedType
from ..dialect.spelled import SpelledOperation, plain_attributes
from ..types import description_of, type_of
from ..writer import item
from . import rules
from .rules import Rule
from .tuples import KINDS, as_tile, described, leaves


_PUBLISHED = (CuteOperation, SpelledOperation)


class _Unpublished(Exception):
    """No published operation says the same."""


def publish(module: ModuleOp) -> None:
    """Write each call of a module as the published operations that say the same, in its place."""
    for op in list(module.walk()):
        if op.parent is not None and isinstance(op, (calls.Inferred, calls.StaticOp)):
            _publish(op)


def _publish(op: Any) -> None:
    maker = _api if isinstance(op, calls.ApiOp) else _MAKERS.get(type(op))
    if maker is None or op.parent is None:
        return
    made = _Making(op)
    try:
        value = maker(made, op)
    except (_Unpublished, CuteError):
        made.undo()
        return
    made.attach(value)


class _Making:
    """Makes operations in the place of a call."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.block: Block = call.parent
        self.made: list[Operation] = []

    @property
    def result(self) -> Description | None:
        """What the call gives."""
        return None if self.call.result is None else description_of(self.call.result.type)

    def positional(self, count: int) -> list[Any]:
        """Return the patterns of a call that has so many, none by name."""
        found = self.call.arguments.positional
        if len(found) != count or self.call.arguments.keywords:
            raise _Unpublished
        return [self.pattern(p) for p in found]

    def pattern(self, pattern: Any) -> Any:
        """Return a pattern with the values in it; one that its type says whole is a constant."""
        if isinstance(pattern, Operand):
            value = self.call.values[pattern.index]
            d = description_of(value.type)
            return d.value if isinstance(d, Constant) else value
        return tuple(map(self.pattern, pattern)) if isinstance(pattern, tuple) else pattern

    # ------------------------------------------------------------ operations

    def emit(self, name: str, operands: Sequence[SSAValue], result: Attribute | None, hint: str = "", **given: Any) -> Any:
        """Make an operation. It must be right, and infer what it gives."""
        cls = rules.operation(name)
        types = [] if result is None else [result]
        op = cls.create(operands=operands, result_types=types, properties=given)
        if op.problems() or result is not None and not _reads_as(op, result):
            op.erase(safe_erase=False)
            raise _Unpublished
        op.location = self.call.location
        self.block.insert_op_before(op, self.call)
        self.made.append(op)
        if not op.results:
            return None
        if hint:
            op.results[0].name_hint = hint
        return op.results[0]

    def add(self, op: Operation) -> Any:
        """Insert an operation of another dialect."""
        if isinstance(op, calls.Inferred):
            raise _Unpublished
        op.location = self.call.location
        self.block.insert_op_before(op, self.call)
        self.made.append(op)
        return op.results[0]

    def cast(self, value: SSAValue, of: Description, to: Description | None) -> SSAValue:
        """Convert a number, by arith."""
        if not isinstance(of, Scalar) or not isinstance(to, Scalar):
            raise _Unpublished
        return arithmetic.cast(value, of, to, self.add)

    def undo(self) -> None:
        """Take away what was made."""
        for op in reversed(self.made):
            op.detach()
            op.erase(safe_erase=False)

    def attach(self, value: SSAValue | None) -> None:
        """Let what was made stand for the call."""
        call, last = self.call, self.made[-1] if self.made else None
        if last is not None:
            last.attributes.update(call.attributes)
        if call.result is not None:
            assert value is not None
            if call.result.name_hint is not None and (value.owner is last or value.name_hint is None):
                value.name_hint = call.result.name_hint
            self._replace(call.result, value)
        call.detach()
        call.erase()

    def _replace(self, old: SSAValue, new: SSAValue) -> None:
        """Let a value stand for another. Operations of other dialects want one of the very type."""
        strict = [use for use in old.uses if not isinstance(use.operation, (calls.Inferred, *_PUBLISHED))]
        if new.type != old.type and strict:
            assert isinstance(old.type, CuteType)
            other = self._converted(new, old.type.kind)
            for use in strict:
                use.operation.operands[use.index] = other
        old.replace_all_uses_with(new)

    # ------------------------------------------------------------ operands

    def fit(self, pattern: Any, kind: str) -> SSAValue:
        """Give an operand as a value of a published kind."""
        if kind in ("value", "domain"):
            if isinstance(pattern, SSAValue) and isinstance(pattern.type, (CuteType, PrintedType)):
                return pattern
            if kind == "value" or not isinstance(pattern, (tuple, int)):
                raise _Unpublished
            kind = "int_tuple"
        if kind == "tiler":
            if isinstance(pattern, SSAValue) and not isinstance(description_of(pattern.type), Group):
                return self.fit(pattern, "value")
            return self._tile(pattern)
        if isinstance(pattern, SSAValue):
            return self._converted(pattern, kind)
        d = described(pattern)
        made = type_of(d, kind)
        if not isinstance(made, CuteType) or made.kind != kind:
            raise _Unpublished
        return self.emit(f"cute.make_{kind}", leaves(pattern), made, kind)  # type: ignore[no-any-return]

    def _converted(self, value: SSAValue, kind: str) -> SSAValue:
        t = value.type
        if isinstance(t, CuteType) and t.kind == kind:
            return value
        made = type_of(description_of(t), kind)
        if not isinstance(made, CuteType) or made.kind != kind:
            raise _Unpublished
        if not isinstance(t, CuteType):  # a number
            return self.emit(f"cute.make_{kind}", [value], made, kind)  # type: ignore[no-any-return]
        if t.kind not in KINDS:
            raise _Unpublished
        if "int_tuple" not in (t.kind, kind):
            value = self._converted(value, "int_tuple")
        return self.emit(f"cute.to_{kind}", [value], made, kind)  # type: ignore[no-any-return]

    def _tile(self, pattern: Any) -> SSAValue:
        """Give a tiler. What is known only at run time of layouts in it no tile says."""
        parts = _flat(pattern)
        if any(isinstance(p, SSAValue) and not inference.is_whole(description_of(p.type)) for p in parts):
            raise _Unpublished
        d = as_tile(described(pattern))
        made = type_of(d, "tile")
        if not isinstance(made, CuteType) or made.kind not in ("tile", "layout"):
            raise _Unpublished
        if made.kind == "layout":
            return self.emit("cute.static", [], made, "tile")  # type: ignore[no-any-return]
        return self.emit("cute.make_tile", [], made, "tile")  # type: ignore[no-any-return]

    def number(self, found: Description, made: Callable[[Attribute], SSAValue]) -> SSAValue:
        """Give what a call gives: of a number MLIR's own the integer of the tuple that the operation gives."""
        t = self.call.result.type
        if not isinstance(t, IntegerType):
            return made(t)
        whole = type_of(found, "int_tuple")
        if not isinstance(whole, CuteType):
            raise _Unpublished
        value = made(whole)
        self.made[-1].attributes.update(self.call.attributes)
        self.call.attributes.clear()
        return self.emit("cute.get_scalars", [value], t)  # type: ignore[no-any-return]


def _flat(pattern: Any) -> Iterator[Any]:
    if isinstance(pattern, tuple):
        for p in pattern:
            yield from _flat(p)
    else:
        yield pattern


def _reads_as(op: Any, result: Attribute) -> bool:
    """Whether an operation whose text does not say what it gives is read as one that gives this."""
    types = [a.type for a in op.args]
    if isinstance(op, CuteOperation):
        if op.DEFINITION.form != "operands":
            return True
        given = {name: _plain(a) for name, a in op.properties.items()}
        return [result] == (inferred(op.DEFINITION, types, given) if op.DEFINITION.inferred else [result])
    if not op.UNTOLD:
        return True
    found = most_known(op.name, types, plain_attributes(op.properties))
    return found is not None and len(found) == 1 and (alike(found[0], result) or compatible(found[0], result))


def _plain(a: Any) -> Any:
    return tuple(a.get_values()) if isinstance(a, DenseArrayBase) else getattr(getattr(a, "value", None), "data", True)


# ------------------------------------------------------------------ calls of functions


def _api(m: _Making, op: calls.ApiOp) -> SSAValue | None:
    d = op.DEFINITION
    if d.function is None:
        raise _Unpublished
    if facade.plain(d.function) in _ALLOCATE:
        return _alloca(m)
    if (kind := _CONSTRUCT.get(facade.plain(d.function))) is not None:
        return _tuple(m, tuple(m.positional(len(op.arguments.positional))), kind)
    rule = rules.rule_of(d.function)
    if rule is None:
        raise _Unpublished
    return _by_rule(m, op, rule)


def _by_rule(m: _Making, op: calls.ApiOp, rule: Rule) -> SSAValue | None:
    given = _bound(m, op, rule)
    operands = []
    for p in rule.parameters:
        if given.get(p.name) is None and p.optional:
            continue
        if p.name not in given or len(operands) < rule.parameters.index(p):
            raise _Unpublished
        operands.append(m.fit(given[p.name], p.kind))
    attributes = {name: a for name in rule.attributes if (a := _attribute(name, given)) is not None}
    found = m.result
    if found is None:
        return m.emit(rule.name, operands, None, **attributes)  # type: ignore[no-any-return]

    def make(t: Attribute) -> SSAValue:
        kind = _GIVES.get(rule.name)
        t = type_of(found, kind) if kind is not None and isinstance(found, Group) else t
        return m.emit(rule.name, operands, t, **attributes)  # type: ignore[no-any-return]

    if isinstance(op.result.type, IntegerType) and op.result.type.width.data == 1:  # type: ignore[union-attr]
        return make(op.result.type)  # type: ignore[union-attr]
    return m.number(found, make)


def _bound(m: _Making, op: calls.ApiOp, rule: Rule) -> dict[str, Any]:
    """The patterns of a call's arguments by the parameters' names; those that have their defaults are left out."""
    known = {p.name for p in rule.parameters} | set(rule.attributes)
    positional = [m.pattern(p) for p in op.arguments.positional]
    keywords = {name: m.pattern(p) for name, p in op.arguments.keywords}
    names = list(rule.signature.parameters)  # which the IR may give in their places, though Python does not
    if len(positional) > len(names):
        raise _Unpublished
    found = {**dict(zip(names, positional)), **keywords}
    for name, value in found.items():
        if name not in known and not (type(value) is type(default := rule.signature.parameters[name].default)
                                      and value == default):  # fmt: skip
            raise _Unpublished
    return {name: value for name, value in found.items() if name in known}


def _attribute(name: str, given: dict[str, Any]) -> Attribute | None:
    value = given.get(name)
    if name == "proj":
        tiler = given["tiler"]
        value = (1,) * len(tiler) if value is None and isinstance(tiler, tuple) else value
        if not isinstance(value, tuple) or any(x is not None and type(x) is not int for x in value):
            raise _Unpublished
        return StringAttr(item(described(value)))
    if value is None or value == ():
        return None
    if name == "mode":
        path = value if isinstance(value, tuple) else (value,)
        if any(type(i) is not int or i < 0 for i in path):
            raise _Unpublished
        return DenseArrayBase.from_list(i32, list(path))
    if type(value) is not int or value < 0:
        raise _Unpublished
    return IntegerAttr(value, i32)


_GIVES = {"cute.get_shape": "shape", "cute.get_stride": "stride", "cute.idx2crd": "coord", "cute.shape_div": "shape"}
"""The kinds of the tuples that operations give."""
_CONSTRUCT = {facade.plain(getattr(rules.cute, f"make_{kind}")): kind for kind in ("shape", "stride", "coord", "tile")}
_ALLOCATE = {
    facade.plain(getattr(rules.cute, name))
    for name in ("make_rmem_tensor", "make_rmem_tensor_like", "make_fragment", "make_fragment_like")
}
"""The functions that give new registers, of which a tensor's type says all."""


def _alloca(m: _Making) -> SSAValue:
    d, t = m.result, m.call.result.type
    if not isinstance(t, PrintedType) or t.name != "cute.memref" or not inference.is_whole(_layout_of(d)):
        raise _Unpublished
    lay = type_of(_layout_of(d))
    if not isinstance(lay, CuteType) or not _allocates(d):
        raise _Unpublished
    return m.emit("cute.memref.alloca", [m.emit("cute.static", [], lay, "lay")], t)  # type: ignore[no-any-return]


def _layout_of(d: Any) -> Description:
    return d.fields[1]  # type: ignore[no-any-return]


def _allocates(d: Any) -> bool:
    """Whether `make_rmem_tensor` of this layout and element type gives such a tensor."""
    dtype = d.fields[0].fields[0]
    return inference.infer(rules.cute.make_rmem_tensor, (_layout_of(d), dtype), {}) == d


def _tuple(m: _Making, pattern: Any, kind: str = "int_tuple") -> SSAValue:
    if m.result is None or m.result != described(pattern):
        raise _Unpublished
    t = m.call.result.type
    return m.fit(pattern, t.kind if isinstance(t, CuteType) and t.kind in KINDS else kind)


# ------------------------------------------------------------------ other calls


def _make_tuple(m: _Making, op: calls.MakeTuple) -> SSAValue:
    return _tuple(m, m.positional(1)[0])


def _static(m: _Making, op: calls.StaticOp) -> SSAValue:
    return m.emit("cute.static", [], op.result.type)  # type: ignore[no-any-return]


PARTS = {
    ("Tensor", "iterator"): "get_iter", ("Tensor", "layout"): "get_layout", ("Tensor", "shape"): "get_shape",
    ("Tensor", "stride"): "get_stride", ("Layout", "shape"): "get_shape", ("Layout", "stride"): "get_stride",
    ("ComposedLayout", "inner"): "composed_get_inner", ("ComposedLayout", "offset"): "composed_get_offset",
    ("ComposedLayout", "outer"): "composed_get_outer",
}  # fmt: skip
"""The operations that give parts of objects, by the object's class and the part."""


def _get_attr(m: _Making, op: calls.GetAttr) -> SSAValue:
    of, name = m.positional(2)
    cls = getattr(described(of), "cls", None)
    known = PARTS.get((getattr(cls, "__name__", ""), name))
    if known is None:
        raise _Unpublished
    found, operand = m.result, m.fit(of, "value")
    assert found is not None

    def make(t: Attribute) -> SSAValue:
        kind = _GIVES.get(f"cute.{known}")
        t = type_of(found, kind) if kind is not None else t
        return m.emit(f"cute.{known}", [operand], t)  # type: ignore[no-any-return]

    return m.number(found, make)


def _slice(m: _Making, op: calls.SliceOp) -> SSAValue:
    of, coord = m.positional(2)
    d = described(of)
    if isinstance(of, SSAValue) and isinstance(d, Group) and type(coord) is int:
        operand = _own_kind(of)
        found = m.result
        assert found is not None
        mode = DenseArrayBase.from_list(i32, [coord])

        def make(t: Attribute) -> SSAValue:
            t = type_of(found, operand.type.kind)  # type: ignore[attr-defined]
            return m.emit("cute.get", [operand], t, mode=mode)  # type: ignore[no-any-return]

        return m.number(found, make)
    return m.emit("cute.slice", [m.fit(of, "value"), m.fit(coord, "coord")], op.result.type)  # type: ignore


def _own_kind(value: SSAValue) -> SSAValue:
    """Give a tuple as it is."""
    if not isinstance(value.type, CuteType) or value.type.kind not in KINDS:
        raise _Unpublished
    return value


def _load(m: _Making, op: calls.LoadElement) -> SSAValue:
    of, coord = m.positional(2)
    tensor = _memref(m, of)
    return m.emit("cute.memref.load", [tensor, m.fit(coord, "coord")], op.result.type)  # type: ignore


def _memref(m: _Making, of: Any) -> SSAValue:
    tensor = m.fit(of, "value")
    if not isinstance(tensor.type, PrintedType) or tensor.type.name != "cute.memref":
        raise _Unpublished
    return tensor


def _store(m: _Making, op: calls.StoreElement) -> None:
    of, coord, value = m.positional(3)
    tensor = _memref(m, of)
    element = Scalar(described(tensor).fields[0].fields[0].value)  # type: ignore[union-attr]
    if isinstance(value, SSAValue):
        value = m.cast(value, described(value), element)
    elif type(value) in (int, float) and (element.dtype.is_float or element.dtype.is_integer and type(value) is int):
        value = arithmetic.constant(value, element.dtype, m.add)
    else:
        raise _Unpublished
    m.emit("cute.memref.store", [tensor, m.fit(coord, "coord"), value], None)


def _method(m: _Making, op: calls.MethodOp) -> SSAValue:
    """A layout that is called."""
    if op.attribute.data != "__call__":
        raise _Unpublished
    of, coord = m.positional(2)
    cls = getattr(described(of), "cls", None)
    found = m.result
    if getattr(cls, "__name__", "") not in ("Layout", "ComposedLayout") or found is None:
        raise _Unpublished
    operands = [m.fit(coord, "coord"), m.fit(of, "value")]
    return m.number(found, lambda t: m.emit("cute.crd2idx", operands, t))


def _cast(m: _Making, op: calls.CastOp) -> SSAValue:
    """A number of which something is known, as one of which nothing is."""
    (value,) = m.positional(1)
    of, to = described(value), m.result
    if not isinstance(value, SSAValue) or not isinstance(value.type, CuteType) or not isinstance(of, Scalar):
        raise _Unpublished
    plain = Scalar(of.dtype)
    found: SSAValue = m.emit("cute.get_scalars", [value], type_of(plain))
    return m.cast(found, plain, to)


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
