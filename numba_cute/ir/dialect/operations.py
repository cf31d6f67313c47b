# SPDX-License-Identifier: Apache-2.0
"""The operations of the dialect in xDSL, made of their definitions: read, written, verified, inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, UnitAttr, i32
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, MemoryWriteEffect, NoMemoryEffect, Pure
from xdsl.utils.exceptions import ParseError, VerifyException

from ...seam import CuteError
from . import formats
from .attributes import ATTRIBUTES, TYPES, CuteType
from .checked import Refused, leaves_of
from .definitions import DEFINITIONS, Definition, Part
from .inference import compatible, inferred, most_known, value_of_type
from .leaves import Dynamic
from .meaning import FUNCTIONS
from .printed_inference import alike, composed_layout
from .printed_operations import Row
from .printed_types import types_of
from .spelled import OPERATIONS as PRINTED, SpelledOperation, differing, operations_of


class CuteOperation(IRDLOperation):
    """An operation of the dialect. DEFINITION: what it is."""

    args = var_operand_def()
    res = var_result_def()
    DEFINITION: ClassVar[Definition]

    @classmethod
    def parse(cls, parser: Parser) -> CuteOperation:
        """Read what stands after the name: as it is published, or as the CuTe DSL prints it."""
        printed = PRINTED.get(cls.name)
        if printed is None:
            return formats.parse(cls, parser)  # type: ignore[no-any-return]
        start = parser.pos
        published: ParseError | None = None
        op: Any = None
        try:
            op = formats.parse(cls, parser)
        except ParseError as e:
            published = e
        if op is not None and not _strange(cls.DEFINITION, op.operand_types, op.result_types):
            return op  # type: ignore[no-any-return]
        end = parser.pos
        parser._resume_from(start)
        try:
            other = printed.parse(parser)
        except ParseError as e:
            if published is not None:
                raise (e if e.span.start > published.span.start else published) from None
            other = None
        if op is None or other is not None and not _strange(other.ROW, other.operand_types, other.result_types):
            _dropped(op)
            return other  # type: ignore[return-value]
        _dropped(other)
        parser._resume_from(end)
        return op  # type: ignore[no-any-return]

    @classmethod
    def create(cls, **given: Any) -> Any:
        """Make one, as the CuTe DSL has it where it is of types that are not published."""
        given["properties"] = _plain_properties(given.get("properties") or {})
        printed = PRINTED.get(cls.name)
        operands, results = [v.type for v in given.get("operands", ())], list(given.get("result_types", ()))
        if printed is not None and _strange(cls.DEFINITION, operands, results):
            if not _strange(printed.ROW, operands, results):
                return printed.create(**given)
        return super().create(**given)

    def print(self, printer: Printer) -> None:
        """Write what stands after the name."""
        formats.write(self, printer)

    def verify_(self) -> None:
        """Raise VerifyException if it is none of the dialect."""
        found = self.problems()
        if found:
            raise VerifyException("\n".join(found))

    def problems(self) -> list[str]:
        """Say what is wrong, as MLIR's verifier does: nothing, or one line, or two where the types were inferred."""
        d = self.DEFINITION
        wrong = _number(d, len(self.args)) or _parts(d.operands, self.args, "operand") or _results(d, self.res)
        if wrong:
            return [f"'{self.name}' op {wrong}"]
        own = _OWN.get(d.name)
        if own is not None:
            wrong = own(self)
            return [f"'{self.name}' op {wrong}"] if wrong else []
        if not d.inferred or not d.results:
            return []
        failed = f"'{self.name}' op failed to infer returned types"
        try:
            found = self._found()
        except Refused as e:
            return [str(e), failed]
        given = [r.type for r in self.res]
        if len(found) != len(given) or not all(map(compatible, found, given)) and not self._alike(found, given):
            wanted, got = _types(self.infer()), _types(given)
            wrong = f"inferred type(s) {wanted} are incompatible with return type(s) of operation {got}"
            return [f"'{self.name}' op {wrong}", failed]
        return []

    def _found(self) -> list[Attribute]:
        """Return the types of the results. Among printed operations a composed layout may have a swizzle that moves
        nothing."""
        types = self._taken()
        if self.DEFINITION.name == "make_composed_layout" and _among_printed(self):
            return composed_layout(types, self.plain_attributes())
        return most_known(self.DEFINITION, types, self.plain_attributes())

    def _alike(self, found: Sequence[Attribute], given: Sequence[Attribute]) -> bool:
        """Say whether types differ only in the strides of extents of 1, in a module of printed operations: the CuTe
        DSL's releases write such strides in two ways."""
        return all(map(alike, found, given)) and _among_printed(self)

    def _taken(self) -> list[Attribute]:
        """The types of the operands. Among printed operations an order may begin with any number, as the CuTe DSL has
        it; the published dialect refuses one that does not begin with 0."""
        types = [a.type for a in self.args]
        if self.DEFINITION.name != "tile_to_shape" or len(types) < 3 or not _among_printed(self):
            return types
        order = types[2].data if isinstance(types[2], CuteType) else None
        if isinstance(order, tuple) and all(type(n) is int for n in order) and len(set(order)) == len(order):
            types[2] = TYPES["int_tuple"](tuple(map(sorted(order).index, order)))
        return types

    def infer(self) -> list[Attribute]:
        """Return the types of the results, from those of the operands. Raises Refused where there are none."""
        return inferred(self.DEFINITION, [a.type for a in self.args], self.plain_attributes())

    def plain_attributes(self) -> dict[str, Any]:
        """Return the attributes of its definition as plain Python."""
        return {
            name: formats.plain(self.properties[name])
            for name, _ in self.DEFINITION.attributes
            if name in self.properties
        }


def _strange(d: Definition | Row, operands: Sequence[Attribute], results: Sequence[Attribute]) -> bool:
    """Return whether an operation does not take such operands, or give such results."""
    if isinstance(d, Row):
        return bool(differing(d.operands, operands, "operand") or differing(d.results, results, "result"))
    if _number(d, len(operands)):
        return True
    both = ((parts, types) for parts, types in ((d.operands, operands), (d.results, results)) if parts)
    return any(not _fits(parts[min(i, len(parts) - 1)], t) for parts, types in both for i, t in enumerate(types))


def _plain_properties(given: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Return properties of the generic form without what the operands tell, and with signed integers as plain ones."""
    return {
        name: IntegerAttr(a.value.data, i32) if isinstance(a, IntegerAttr) and a.type != i32 else a
        for name, a in given.items()
        if name != "operandSegmentSizes"
    }


def _among_printed(op: Operation) -> bool:
    """Return whether the module of an operation holds one that the CuTe DSL prints."""
    top = op
    while (parent := top.parent_op()) is not None:
        top = parent
    return any(isinstance(inner, SpelledOperation) for inner in top.walk())


def _dropped(op: Operation | None) -> None:
    """Forget an operation that was read in a way in which it is not written."""
    if op is not None:
        op.drop_all_references()


def _types(types: Sequence[Attribute]) -> str:
    return ", ".join(f"'{t}'" for t in types)


def _number(d: Definition, count: int) -> str:
    if any(p.many for p in d.operands):
        return ""
    least, most = sum(not p.optional for p in d.operands), len(d.operands)
    if least <= count <= most:
        return ""
    return f"expected {least}{f' to {most}' if most > least else ''} operands, but found {count}"


def _parts(parts: Sequence[Part], values: Sequence[SSAValue], name: str) -> str:
    for i, value in enumerate(values):
        part = parts[min(i, len(parts) - 1)]
        if not _fits(part, value.type):
            wanted = " or ".join(k if k[0] == "i" and k[1:].isdigit() else f"!cute.{k}" for k in part.kinds)
            return f"{name} #{i} must be {wanted}, but got '{value.type}'"
    return ""


def _results(d: Definition, values: Sequence[SSAValue]) -> str:
    if not any(p.many for p in d.results) and len(values) != len(d.results):
        return f"expected {len(d.results)} results, but found {len(values)}"
    return _parts(d.results, values, "result") if d.results else ""


def _fits(part: Part, t: Attribute) -> bool:
    if isinstance(t, CuteType):
        flat = t.kind == "int_tuple" and not isinstance(t.data, tuple)
        return t.kind in part.kinds or flat and "int_tuple of depth 0" in part.kinds
    return isinstance(t, IntegerType) and str(t) in part.kinds


# ------------------------------------------------------------------ rules of single operations


def _static(op: CuteOperation) -> str:
    t = op.res[0].type
    return "" if isinstance(t, CuteType) and t.is_static else f"expects result to be static, but got '{t}'"


def _made(op: CuteOperation) -> str:
    """Compare the operands of a constructor with the `?` of its result."""
    t: Any = op.res[0].type
    wanted = [leaf for leaf in leaves_of(t.data) if isinstance(leaf, Dynamic)]
    if len(wanted) != len(op.args):
        return f"expects {len(wanted)} dynamic operand(s) for result type '{t}', but got {len(op.args)}"
    for i, (leaf, operand) in enumerate(zip(wanted, op.args, strict=True)):
        given = value_of_type(operand.type).value
        if type(given) is int:
            if not -(1 << (leaf.width - 1)) <= given < 1 << (leaf.width - 1):
                return f"expects operand #{i} to fit i{leaf.width}, but got the static {given}"
            if given % leaf.divisor:
                return f"expects operand #{i} to be a multiple of {leaf.divisor}, but got the static {given}"
        elif given.width != leaf.width:
            return f"expects operand #{i} to be of {leaf.width} bits, but got {given.width}"
    return ""


def _compared(op: CuteOperation) -> str:
    try:
        FUNCTIONS[op.DEFINITION.name]([value_of_type(a.type) for a in op.args], {})
    except CuteError as e:
        return str(e)
    return ""


_OWN: dict[str, Any] = {
    "static": _static,
    "elem_less": _compared,
    "equal": _compared,
    **{f"make_{kind}": _made for kind in ("int_tuple", "shape", "stride", "coord", "tile")},
}


def _traits(d: Definition) -> Any:
    if not d.pure:
        return traits_def(MemoryWriteEffect())
    if d.name == "static":
        return traits_def(Pure(), ConstantLike())
    return traits_def(Pure() if d.safe else NoMemoryEffect())


def _property(form: str) -> Any:
    if form == "i32":
        return prop_def(IntegerAttr.constr(i32))
    if form == "flag":
        return opt_prop_def(UnitAttr)
    return opt_prop_def(DenseArrayBase) if form == "path" else prop_def(DenseArrayBase)


def _operation(d: Definition) -> type[CuteOperation]:
    title = "".join(word.capitalize() for word in d.name.split("_"))
    body: dict[str, Any] = {"name": f"cute.{d.name}", "traits": _traits(d), "__module__": __name__}
    body |= {name: _property(form) for name, form in d.attributes}
    made: type[CuteOperation] = irdl_op_definition(type(f"{title}Op", (CuteOperation,), body))
    made.DEFINITION = d
    return made


OPERATIONS: dict[str, type[CuteOperation]] = {name: _operation(d) for name, d in DEFINITIONS.items()}
"""The operations by their names without the dialect's."""


def dialect() -> Dialect:
    """Return the dialect `cute`."""
    names = {op.name for op in OPERATIONS.values()}
    others = [op for op in operations_of("cute") if op.name not in names]
    return Dialect("cute", [*OPERATIONS.values(), *others], [*ATTRIBUTES.values(), *TYPES.values(), *types_of("cute")])


__all__ = ["OPERATIONS", "CuteOperation", "dialect"]
