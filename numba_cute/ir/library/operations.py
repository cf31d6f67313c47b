# SPDX-License-Identifier: Apache-2.0
"""The operations of the IR: calls of the API, and the few that a kernel needs besides.

Every call has one form, `%r = cute.name %a, (1, %b), keyword = %c : type`, and one verifier: the function that it means
is asked what it gives for such operands, and a refusal is that function's own. A result's type that the text leaves
out is what it answered.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)  # fmt: skip
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...compiler.inspection import effects, inference
from ...compiler.inspection.effects import PURE, WRITES, Effects
from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Group
from ..text.fields import lacking
from ..text.names import Lacking, Symbol, symbol_of
from ..text.python import TARGET
from . import definitions
from .calls import (
    Arguments,
    Operand,
    SymbolAttr,
    check_member,
    described_pattern,
    operand_parser,
    parse_arguments,
    parse_symbol,
    pattern_of,
    print_arguments,
    print_symbol,
    with_items,
)
from .definitions import Definition
from .effects import CallEffects
from .types import description_of, type_of

DEFAULT_TARGET = "sm_90a"


def target_of(op: Operation) -> str:
    """Return the target that the module of an operation names."""
    at: Operation | None = op
    while at is not None:
        if isinstance(at, ModuleOp) and isinstance(named := at.attributes.get(TARGET), StringAttr):
            return named.data
        at = at.parent_op()
    return DEFAULT_TARGET


_TUPLES = {f"numba_cute.make_{kind}": kind for kind in ("shape", "stride", "coord", "tile")}
"""The kinds of the tuples that these operations make."""


def result_type(name: str, d: Description) -> Attribute:
    """Return the type of what an operation of this name gives."""
    return type_of(d, _TUPLES.get(name) if isinstance(d, Group) else None)


def has_value(d: Description) -> bool:
    """Return whether a result of this description is an SSA value: constants are written where they are used."""
    return not isinstance(d, Constant)


class Inferred(IRDLOperation):
    """An operation whose result's type follows from its operands. A subclass says how: `infer`."""

    arguments = prop_def(Arguments)
    values = var_operand_def()
    result = opt_result_def()
    traits = traits_def(CallEffects())

    def infer(self, arch: str) -> Description:
        """Describe the result for the operands' types. Raises CuteError for what is not allowed."""
        raise NotImplementedError

    def effects(self) -> Effects | None:
        """Say what it does besides giving its result; None: that is not known."""
        return None

    def lacking(self) -> Lacking | None:
        """Return the first symbol that it names and that nobody gave an object for; None if there is none."""
        positional, keywords = self.described()
        return next(filter(None, map(lacking, (*positional, *keywords.values()))), None)

    def head(self, printer: Printer) -> None:
        """Print what stands between the operation's name and its arguments."""

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse what `head` prints; gives properties."""
        return {}

    def describe(self, operand: Operand) -> Description:
        """Describe one of the operands."""
        return description_of(self.values[operand.index].type)

    def described(self) -> tuple[tuple[Description, ...], dict[str, Description]]:
        """Describe all arguments."""
        positional = tuple(described_pattern(p, self.describe) for p in self.arguments.positional)
        return positional, {n: described_pattern(p, self.describe) for n, p in self.arguments.keywords}

    def given(self, count: int) -> tuple[Description, ...]:
        """Describe all arguments of an operation that takes so many, none by name."""
        if len(self.arguments.positional) != count or self.arguments.keywords:
            raise CuteError(f"{self.name} takes {count} arguments, none by name")
        return self.described()[0]

    def print(self, printer: Printer) -> None:
        self.head(printer)
        if self.arguments.positional or self.arguments.keywords:
            printer.print_string(" ")
            print_arguments(printer, self.arguments, lambda o: printer.print_ssa_value(self.values[o.index]))
        printer.print_op_attributes(self.attributes)
        if self.result is not None:
            printer.print_string(" : ")
            printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        properties = cls.parse_head(parser)
        values: list[SSAValue] = []
        arguments = Arguments(((), ()))
        if not _ends(parser):
            arguments = Arguments(parse_arguments(parser, operand_parser(parser, values)))
        attributes = parser.parse_optional_attr_dict()
        result = parser.parse_type() if parser.parse_optional_punctuation(":") is not None else None
        op = cls.create(
            operands=values, result_types=[] if result is None else [result], attributes=attributes,
            properties={**properties, "arguments": arguments},
        )  # fmt: skip
        return op if result is not None else _with_result(parser, op)

    def verify_(self) -> None:
        if self.lacking() is not None:  # what it gives is as the text says
            return
        try:
            found = self.infer(target_of(self))
        except CuteError as e:
            raise VerifyException(f"{self.name}: {e}") from e
        declared = None if self.result is None else description_of(self.result.type)
        if declared is None:
            if has_value(found):
                raise VerifyException(f"{self.name} gives {type_of(found)}, and the operation has no result for it")
        elif declared != found:
            raise VerifyException(f"{self.name} gives {type_of(found)} for these operands, not {self.result_type}")

    @property
    def result_type(self) -> Attribute:
        """Return the type of the result, which there is."""
        assert self.result is not None
        return self.result.type


def _ends(parser: Parser) -> bool:
    """Return whether the operation has no arguments: what follows is its type, its attributes, or another line."""
    text = parser.lexer.input.content
    at = parser.pos
    between = text[text.rfind("\n", 0, at) + 1 : at]
    if not between.strip():
        return True  # the next token stands on a line of its own
    return text[at : at + 1] in (":", "{", "}") or text.startswith("loc(", at)


def _with_result(parser: Parser, op: Inferred) -> Inferred:
    """Give an operation whose type the text leaves out the result that it has."""
    lacks, start = op.lacking(), getattr(parser, "operation_at", 0)
    if lacks is not None:
        if not parser.lexer.input.content.startswith("%", start):
            return op
        why = f"what it gives hangs on {lacks}, which is not among the names that the text is read with"
        parser.raise_error(f"{op.name}: {why}: give it (names=, --module), or write the result's type after `:`", start)
    try:
        found = op.infer(getattr(parser, "target", None) or DEFAULT_TARGET)
    except CuteError as e:
        parser.raise_error(f"{op.name}: {e}", getattr(parser, "operation_at", None))
    if found == Constant(None):
        return op
    values = list(op.values)
    made = type(op).create(
        operands=values, result_types=[result_type(op.name, found)], attributes=op.attributes, properties=op.properties
    )
    op.erase(safe_erase=False)
    return made


# ------------------------------------------------------------------ calls of the API


@irdl_op_definition
class ApiOp(Inferred):
    """A call of a function, class or method of the API: the base of all such operations (see `operation`)."""

    name = "numba_cute.api"
    DEFINITION: ClassVar[Definition]

    def infer(self, arch: str) -> Description:
        positional, keywords = self.described()
        d = self.DEFINITION
        return inference.infer(d.function, positional, keywords, attribute=d.attribute, arch=arch)

    def effects(self) -> Effects | None:
        d, arch = self.DEFINITION, target_of(self)
        return effects.effects(d.function, *self.described(), attribute=d.attribute, arch=arch)


@functools.cache
def operation(definition: Definition) -> type[ApiOp]:
    """Return the class of operations of a definition."""
    members = {"name": definition.name, "DEFINITION": definition, "__doc__": definition.doc}
    return type(definition.name.replace(".", "_"), (ApiOp,), members)


@irdl_op_definition
class CallOp(Inferred):
    """A call of a function that the API does not show, by its symbol: `numba_cute.call @"module:name" (%a)`."""

    name = "numba_cute.call"
    callee = prop_def(SymbolAttr)

    def head(self, printer: Printer) -> None:
        print_symbol(printer, self.callee)

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        return {"callee": parse_symbol(parser)}

    @property
    def function(self) -> Any:
        """The function that is called."""
        return self.callee.data.found

    def lacking(self) -> Lacking | None:
        return self.function if isinstance(self.function, Lacking) else super().lacking()

    def infer(self, arch: str) -> Description:
        positional, keywords = self.described()
        return inference.infer(self.function, positional, keywords, arch=arch)

    def effects(self) -> Effects | None:
        return effects.effects(self.function, *self.described(), arch=target_of(self))


@irdl_op_definition
class MethodOp(Inferred):
    """A call of a method that the API does not show: `numba_cute.method "name" %object, %a`."""

    name = "numba_cute.method"
    attribute = prop_def(StringAttr)

    def head(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.attribute.data)
        printer.print_string(" of" if self.arguments.positional else "")

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        name = StringAttr(parser.parse_str_literal())
        parser.parse_characters("of")
        return {"attribute": name}

    def infer(self, arch: str) -> Description:
        positional, keywords = self.described()
        check_member(positional[0] if positional else None, self.attribute.data)
        return inference.infer(None, positional, keywords, attribute=self.attribute.data, arch=arch)

    def effects(self) -> Effects | None:
        return effects.effects(None, *self.described(), attribute=self.attribute.data, arch=target_of(self))


def call(
    callee: Any, args: Sequence[Any], keywords: Sequence[tuple[str, Any]] = (), result: Attribute | None = None, *,
    attribute: str | None = None, cls: type | None = None,
) -> Operation:  # fmt: skip
    """Make the operation that calls `callee`, or with `attribute` the method of the first of `args`, an object of
    class `cls`.

    args, keywords: SSA values, constants and nested tuples of them. result: the result's type; None: it has none.
    """
    operands, arguments = pattern_of(args, keywords)
    if attribute is not None:
        definition = None if cls is None else definitions.of_method(cls, attribute)
        kind: type[Inferred] = MethodOp if definition is None else operation(definition)
        extra: dict[str, Attribute] = {"attribute": StringAttr(attribute)} if definition is None else {}
    else:
        definition = definitions.of_function(callee)
        kind = CallOp if definition is None else operation(definition)
        extra = {"callee": SymbolAttr(Symbol(symbol_of(callee), callee))} if definition is None else {}
    return make(kind, operands, arguments, result, **extra)


def make(
    kind: type[Inferred],
    operands: Sequence[SSAValue],
    arguments: Arguments,
    result: Attribute | None,
    **extra: Attribute,
) -> Operation:
    """Make an operation of this kind."""
    return kind.create(
        operands=operands, result_types=[] if result is None else [result], properties={"arguments": arguments, **extra}
    )


# ------------------------------------------------------------------ parts of objects


class _Named(Inferred):
    """An operation on an attribute of its first operand: the second argument is its name."""

    @property
    def attribute(self) -> str:
        """The attribute's name."""
        return str(self.arguments.positional[1])


@irdl_op_definition
class GetAttr(_Named):
    """Read an attribute of an object, a field or a property: `numba_cute.get_attr %t, "layout"`."""

    name = "numba_cute.get_attr"

    def infer(self, arch: str) -> Description:
        of, name = self.given(2)
        check_member(of, self.attribute)
        return inference.infer_attribute(of, str(getattr(name, "value", name)), arch=arch)

    def effects(self) -> Effects | None:
        return effects.effects_of_attribute(self.given(2)[0], self.attribute, arch=target_of(self))


@irdl_op_definition
class SetAttr(_Named):
    """Set a field of a struct: `numba_cute.set_attr %s, "index", %v`."""

    name = "numba_cute.set_attr"

    def infer(self, arch: str) -> Description:
        of, name, value = self.given(3)
        inference.check_set_attribute(of, str(getattr(name, "value", name)), value, arch=arch)
        return Constant(None)

    def effects(self) -> Effects:
        return frozenset({WRITES})


class _Item(Inferred):
    def infer(self, arch: str) -> Description:
        return inference.infer_item(*with_items(self.given(2)), arch=arch)

    def effects(self) -> Effects | None:
        return effects.effects_of_item(*self.given(2), arch=target_of(self))


@irdl_op_definition
class SliceOp(_Item):
    """Take a part of a tensor, a layout or a tuple, as `t[None, 1]` does: `numba_cute.slice %t, (_, 1)`."""

    name = "numba_cute.slice"


@irdl_op_definition
class LoadElement(_Item):
    """Load an element: `numba_cute.load_element %t, (%i, %j)`."""

    name = "numba_cute.load_element"


@irdl_op_definition
class StoreElement(Inferred):
    """Store an element, or a value into each element of a part: `numba_cute.store_element %t, (%i, %j), %v`."""

    name = "numba_cute.store_element"

    def infer(self, arch: str) -> Description:
        inference.check_set_item(*with_items(self.given(3)), arch=arch)
        return Constant(None)

    def effects(self) -> Effects:
        return frozenset({WRITES})


@irdl_op_definition
class Binary(Inferred):
    """Apply one of Python's operators to objects, or to an object and a number: `numba_cute.binary "+", %a, %b`."""

    name = "numba_cute.binary"

    def infer(self, arch: str) -> Description:
        operator, *operands = self.given(2 if len(self.arguments.positional) == 2 else 3)
        return inference.infer_operator(str(getattr(operator, "value", operator)), operands, arch=arch)

    def effects(self) -> Effects | None:
        operator, *operands = self.described()[0]
        return effects.effects_of_operator(str(getattr(operator, "value", operator)), operands, arch=target_of(self))


# ------------------------------------------------------------------ values


@irdl_op_definition
class MakeTuple(Inferred):
    """Make a tuple a value of its own, where one is carried through a loop: `numba_cute.make_tuple (%a, 1)`."""

    name = "numba_cute.make_tuple"

    def infer(self, arch: str) -> Description:
        (items,) = self.given(1)
        if not isinstance(items, Group):
            raise CuteError("give one tuple: `numba_cute.make_tuple (%a, 1)`")
        return items

    def effects(self) -> Effects:
        return PURE


@irdl_op_definition
class StaticOp(IRDLOperation):
    """A value that its type says whole, as a layout without run-time parts: `numba_cute.static : !cute.layout<…>`."""

    name = "numba_cute.static"
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    @property
    def result_type(self) -> Attribute:
        """Return the type, which says the value."""
        return self.result.type

    def verify_(self) -> None:
        if lacking(d := description_of(self.result.type)) is None and not inference.is_whole(d):
            raise VerifyException(f"numba_cute.static: parts of {self.result.type} are known only at run time")


@irdl_op_definition
class CastOp(Inferred):
    """Convert a number to another type, as Numba does: `numba_cute.cast %x : i32 -> ui32`."""

    name = "numba_cute.cast"

    def infer(self, arch: str) -> Description:
        assert self.result is not None
        return description_of(self.result.type)

    def effects(self) -> Effects:
        return PURE

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_arguments(printer, self.arguments, lambda o: printer.print_ssa_value(self.values[o.index]))
        printer.print_op_attributes(self.attributes)
        if self.values:
            printer.print_string(" : ")
            printer.print_attribute(self.values[0].type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result_type)

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        values: list[SSAValue] = []
        arguments = Arguments(parse_arguments(parser, operand_parser(parser, values)))
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_punctuation(":") is not None:
            parser.parse_type()
        parser.parse_punctuation("->", ": `numba_cute.cast %x : from -> to`")
        return cls.create(
            operands=values, result_types=[parser.parse_type()], attributes=attributes,
            properties={"arguments": arguments},
        )  # fmt: skip

    def verify_(self) -> None:
        (given,) = self.given(1)
        wanted = description_of(self.result_type)
        if lacking(wanted) is None and self.lacking() is None and not inference.converts(given, wanted):
            raise VerifyException(f"numba_cute.cast: {type_of(given)} does not convert to {type_of(wanted)}")


OTHERS: tuple[type[Operation], ...] = (
    CallOp, MethodOp, GetAttr, SetAttr, SliceOp, LoadElement, StoreElement, Binary, MakeTuple, StaticOp, CastOp,
)  # fmt: skip
