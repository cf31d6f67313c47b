# SPDX-License-Identifier: Apache-2.0
"""The text form of the dialect's operations: `cute.name<attributes> (%operands) {more} : types`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from .attributes import TYPES, CuteType
from .checked import Refused
from .definitions import Definition, Part
from .inference import inferred

# ------------------------------------------------------------------ attributes


def plain(a: Attribute) -> Any:
    """Return an attribute of an operation as plain Python."""
    if isinstance(a, DenseArrayBase):
        return tuple(a.get_values())
    return a.value.data if isinstance(a, IntegerAttr) else True


def _path(numbers: Sequence[int]) -> Attribute:
    return DenseArrayBase.from_list(i32, list(numbers))


def _parse_attributes(d: Definition, parser: Parser) -> dict[str, Attribute]:
    forms = [form for _, form in d.attributes]
    names = [name for name, _ in d.attributes]
    if not forms:
        return {}
    if forms[0] in ("path", "flag"):
        if parser.parse_optional_punctuation("<") is None:
            return {}
    else:
        parser.parse_punctuation("<")
    if forms[0] == "flag":
        parser.parse_punctuation("{")
        parser.parse_keyword(names[0])
        parser.parse_punctuation("}")
        found: dict[str, Attribute] = {names[0]: UnitAttr()}
    elif forms[0] in ("path", "modes"):
        found = {names[0]: _path(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))}
    else:
        found = {}
        for i, name in enumerate(names):
            if i:
                parser.parse_punctuation(",")
            found[name] = IntegerAttr(parser.parse_integer(), i32)
    parser.parse_punctuation(">")
    return found


def _write_attributes(op: Any, printer: Printer) -> None:
    d: Definition = op.DEFINITION
    if not d.attributes:
        return
    given = op.plain_attributes()
    if given:
        form = d.attributes[0][1]
        if form == "flag":
            text = "{" + d.attributes[0][0] + "}"
        elif form == "i32":
            text = ", ".join(str(given[name]) for name, _ in d.attributes)
        else:
            text = "[" + ", ".join(map(str, given[d.attributes[0][0]])) + "]"
        printer.print_string(f"<{text}>")
    if given or not getattr(printer, "as_printed", False):
        printer.print_string(" ")


# ------------------------------------------------------------------ types


def _parse_type(part: Part, parser: Parser) -> Attribute:
    if part.short:
        kind = TYPES[part.kinds[0]]
        token = parser._current_token.text
        if token == "<":
            return kind(kind.parse_parameter(parser))
    return parser.parse_type()


def _write_type(part: Part, t: Attribute, printer: Printer) -> None:
    if part.short and isinstance(t, CuteType) and t.kind == part.kinds[0]:
        t.print_parameter(printer)
    else:
        printer.print_attribute(t)


def _part(parts: Sequence[Part], i: int) -> Part:
    return parts[min(i, len(parts) - 1)]


def _parse_list(parts: Sequence[Part], parser: Parser) -> list[Attribute]:
    found: list[Attribute] = []

    def one() -> None:
        found.append(_parse_type(_part(parts, len(found)), parser) if parts else parser.parse_type())

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
    return found


def _parse_results(d: Definition, parser: Parser) -> list[Attribute]:
    parser.parse_punctuation("->")
    if parser._current_token.text == "(":
        return _parse_list(d.results, parser)
    return [_parse_type(_part(d.results, 0), parser)]


# ------------------------------------------------------------------ whole operations


def parse(cls: Any, parser: Parser) -> Any:
    """Read an operation behind its name."""
    d: Definition = cls.DEFINITION
    properties = _parse_attributes(d, parser)
    names: list[Any] = []
    if d.form != "result":
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    at = parser.pos
    operands: list[Attribute] = []
    results: list[Attribute] | None = None
    if d.form == "functional":
        operands = _parse_list(d.operands, parser)
        results = _parse_results(d, parser)
    elif d.form == "arrow":
        operands = [_parse_type(d.operands[0], parser)]
        results = _parse_results(d, parser)
    elif d.form == "result":
        results = [parser.parse_type()]
    else:
        operands = [_parse_type(d.operands[0], parser)]
        while parser.parse_optional_punctuation(","):
            operands.append(_parse_type(_part(d.operands, len(operands)), parser))
    if d.name == "print":
        attributes |= parser.parse_optional_attr_dict()
    values = parser.resolve_operands(names, operands, at)
    if results is None:
        results = _inferred(d, operands, properties, parser)
    return cls(operands=[values], result_types=[results], properties=properties, attributes=attributes)


def _inferred(d: Definition, operands: list[Attribute], properties: dict[str, Attribute], parser: Parser) -> Any:
    """Infer the results' types where the text has none: an error stands where the operation's name does."""
    if not d.results:
        return []
    at = getattr(parser, "operation_at", parser.pos)
    if len(operands) != len(d.operands):
        parser.raise_error(f"'cute.{d.name}' op expected {len(d.operands)} operands, but found {len(operands)}", at)
    try:
        return inferred(d, operands, {name: plain(a) for name, a in properties.items()})
    except Refused as e:
        parser.raise_error(str(e), at)


def write(op: Any, printer: Printer) -> None:
    """Write an operation behind its name."""
    d: Definition = op.DEFINITION
    _write_attributes(op, printer)
    if d.form != "result":
        printer.print_operands(op.args)
    if d.name != "print":
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    if d.form == "functional":
        with printer.in_parens():
            _write_list(d.operands, op.args, printer)
        printer.print_string(" -> ")
        _write_type(d.results[0], op.res[0].type, printer)
    elif d.form == "arrow":
        _write_list(d.operands, op.args, printer)
        printer.print_string(" -> ")
        _write_type(d.results[0], op.res[0].type, printer)
    elif d.form == "result":
        printer.print_attribute(op.res[0].type)
    else:
        _write_list(d.operands, op.args, printer)
    if d.name == "print":
        printer.print_op_attributes(op.attributes)


def _write_list(parts: Sequence[Part], values: Sequence[Any], printer: Printer) -> None:
    for i, value in enumerate(values):
        if i:
            printer.print_string(", ")
        _write_type(_part(parts, i), value.type, printer)


__all__ = ["parse", "plain", "write"]
