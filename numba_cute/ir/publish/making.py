# SPDX-License-Identifier: Apache-2.0
"""Makes published operations in the place of a call, each checked by the dialect's own inference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...compiler.inspection import inference
from ...typed.descriptions import Constant, Description, Group, Scalar
from ..dialect.attributes import CuteType
from ..dialect.inference import compatible, inferred
from ..dialect.operations import CuteOperation
from ..dialect.printed_inference import alike, most_known
from ..dialect.printed_types import PrintedType
from ..dialect.spelled import SpelledOperation, plain_attributes
from ..library import arithmetic, operations as calls
from ..library.calls import Operand
from ..library.types import description_of, description_of_value, type_of
from . import rules
from .tuples import KINDS, as_tile, leaves

_PUBLISHED = (CuteOperation, SpelledOperation)


class Unpublished(Exception):
    """No published operation says the same."""


class Making:
    """Makes operations in the place of a call."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.block: Block = call.parent
        self.made: list[Operation] = []
        self.unused: list[Operation] = []

    @property
    def result(self) -> Description | None:
        """Return the description of the call's result."""
        return None if self.call.result is None else description_of(self.call.result.type)

    def positional(self, count: int) -> list[Any]:
        """Return the patterns of a call that has so many, none by name."""
        found = self.call.arguments.positional
        if len(found) != count or self.call.arguments.keywords:
            raise Unpublished
        return [self.pattern(p) for p in found]

    def pattern(self, pattern: Any) -> Any:
        """Return a pattern with the values in it; one that its type says whole is a constant."""
        if isinstance(pattern, Operand):
            value = self.call.values[pattern.index]
            d = description_of(value.type)
            return d.value if isinstance(d, Constant) else value
        return tuple(map(self.pattern, pattern)) if isinstance(pattern, tuple) else pattern

    # ------------------------------------------------------------ operations

    def emit(
        self, name: str, operands: Sequence[SSAValue], result: Attribute | None, hint: str = "",
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Any:  # fmt: skip
        """Make an operation. It must be right, and infer what it gives."""
        cls = rules.operation(name)
        types = [] if result is None else [result]
        op = cls.create(operands=operands, result_types=types, properties=dict(attributes or {}))
        if op.problems() or result is not None and not _reads_as(op, result):
            op.erase(safe_erase=False)
            raise Unpublished
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
            raise Unpublished
        op.location = self.call.location
        self.block.insert_op_before(op, self.call)
        self.made.append(op)
        return op.results[0]

    def cast(self, value: SSAValue, of: Description, to: Description | None) -> SSAValue:
        """Convert a number, by arith."""
        if not isinstance(of, Scalar) or not isinstance(to, Scalar):
            raise Unpublished
        if isinstance(value.type, CuteType):
            of = Scalar(of.dtype)
            value = self.emit("cute.get_scalars", [value], type_of(of))
        return arithmetic.cast(value, of, to, self.add)

    def undo(self) -> None:
        """Take away what was made."""
        for op in reversed(self.made):
            op.detach()  # type: ignore[no-untyped-call]
            op.erase(safe_erase=False)

    def attach(self, value: SSAValue | None) -> None:
        """Let what was made stand for the call."""
        call, last = self.call, self.made[-1] if self.made else None
        if last is not None:
            last.attributes.update(call.attributes)
        if call.result is not None and value is not None:
            if call.result.name_hint is not None and (value.owner is last or value.name_hint is None):
                value.name_hint = call.result.name_hint
            self._replace(call.result, value)
        for op in (call, *self.unused):
            op.detach()
            op.erase()

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

    def fit(self, pattern: Any, kind: str) -> Any:
        """Give an operand as a value of a published kind."""
        if kind in ("value", "domain"):
            if isinstance(pattern, SSAValue) and isinstance(pattern.type, (CuteType, PrintedType)):
                return pattern
            if kind == "value" or not isinstance(pattern, (tuple, int)):
                raise Unpublished
            kind = "int_tuple"
        if kind == "tiler":
            if isinstance(pattern, SSAValue) and isinstance(pattern.type, CuteType) and pattern.type.kind == "tile":
                return pattern
            if isinstance(pattern, SSAValue) and not isinstance(description_of(pattern.type), Group):
                return self.fit(pattern, "value")
            return self._tile(pattern)
        if isinstance(pattern, SSAValue):
            return self._converted(pattern, kind)
        d = description_of_value(pattern)
        made = type_of(d, kind)
        if not isinstance(made, CuteType) or made.kind != kind:
            raise Unpublished
        return self.emit(f"cute.make_{kind}", leaves(pattern), made, kind)

    def _converted(self, value: SSAValue, kind: str) -> Any:
        t = value.type
        if isinstance(t, CuteType) and t.kind == kind:
            return value
        made = type_of(description_of(t), kind)
        if not isinstance(made, CuteType) or made.kind != kind:
            raise Unpublished
        if not isinstance(t, CuteType):  # a number
            return self.emit(f"cute.make_{kind}", [value], made, kind)
        if t.kind not in KINDS:
            raise Unpublished
        if "int_tuple" not in (t.kind, kind):
            value = self._converted(value, "int_tuple")
        return self.emit(f"cute.to_{kind}", [value], made, kind)

    def _tile(self, pattern: Any) -> Any:
        """Give a tiler. What is known only at run time of layouts in it no tile says."""
        parts = _flat(pattern)
        if any(isinstance(p, SSAValue) and not inference.is_whole(description_of(p.type)) for p in parts):
            raise Unpublished
        d = as_tile(description_of_value(pattern))
        made = type_of(d, "tile")
        if not isinstance(made, CuteType) or made.kind not in ("tile", "layout"):
            raise Unpublished
        if made.kind == "layout":
            return self.emit("cute.static", [], made, "tile")
        return self.emit("cute.make_tile", [], made, "tile")

    def number(self, found: Description, made: Callable[[Attribute], Any]) -> Any:
        """Give what a call gives: of a number MLIR's own the integer of the tuple that the operation gives."""
        t = self.call.result.type
        if not isinstance(t, IntegerType):
            return made(t)
        whole = type_of(found, "int_tuple")
        if not isinstance(whole, CuteType):
            raise Unpublished
        value = made(whole)
        self.made[-1].attributes.update(self.call.attributes)
        self.call.attributes.clear()
        return self.emit("cute.get_scalars", [value], t)


def _flat(pattern: Any) -> Iterator[Any]:
    if isinstance(pattern, tuple):
        for p in pattern:
            yield from _flat(p)
    else:
        yield pattern


def _reads_as(op: Any, result: Attribute) -> bool:
    """Say whether an operation whose text leaves out its result's type is read back with this one."""
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


__all__ = ["Making", "Unpublished"]
