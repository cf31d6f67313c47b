# SPDX-License-Identifier: Apache-2.0
"""The arguments of an operation of the API: SSA operands and constants in one pattern, as a call has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

from xdsl.ir import Data, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer

from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Group, Object
from ..text.constants import names_of, parse_constant, print_constant
from ..text.names import Symbol, note


@dataclass(frozen=True)
class Operand:
    """Stands in a pattern for the operation's operand of this number."""

    index: int


Pattern: TypeAlias = Any
"""An `Operand`, a constant (a number, a string, None, an element type, a member, a function, a class), or a tuple of
patterns."""
Keywords: TypeAlias = tuple[tuple[str, Pattern], ...]


@irdl_attr_definition
class Arguments(Data[tuple[tuple[Pattern, ...], Keywords]]):
    """A call's positional and keyword arguments. In an operation's own format they stand without this attribute; in
    MLIR's generic format `#numba_cute.arguments<*0, 4, name = *1>`, where `*0` is the first operand."""

    name = "numba_cute.arguments"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[Pattern, ...], Keywords]:
        def operand() -> Any:
            if parser.parse_optional_punctuation("*") is None:
                return None
            return Operand(parser.parse_integer(allow_boolean=False, allow_negative=False))

        with parser.in_angle_brackets():
            return parse_arguments(parser, operand)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_arguments(printer, self, lambda o: printer.print_string(f"*{o.index}"))

    @property
    def positional(self) -> tuple[Pattern, ...]:
        return self.data[0]

    @property
    def keywords(self) -> Keywords:
        return self.data[1]

    def filled(self, fill: Callable[[Operand], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Give the arguments with `fill(operand)` in the place of each operand."""
        return tuple(_filled(p, fill) for p in self.positional), {n: _filled(p, fill) for n, p in self.keywords}


def _filled(pattern: Pattern, fill: Callable[[Operand], Any]) -> Any:
    if isinstance(pattern, Operand):
        return fill(pattern)
    if isinstance(pattern, tuple):
        return tuple(_filled(p, fill) for p in pattern)
    return pattern


@irdl_attr_definition
class SymbolAttr(Data[Symbol]):
    """A symbol and what it means: `@"module:name"`; in MLIR's generic format `#numba_cute.symbol<"module:name">`."""

    name = "numba_cute.symbol"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Symbol:
        with parser.in_angle_brackets():
            at = parser.pos
            return symbol_read(parser, parser.parse_str_literal(), at)

    def print_parameter(self, printer: Printer) -> None:
        note(self.data.text, self.data.found)
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.text)


def symbol_read(parser: AttrParser, text: str, at: int) -> Symbol:
    """Return a symbol of the text with what the caller of `parse` lets it mean. at: where it stands."""
    try:
        return names_of(parser).symbol(text)
    except CuteError as e:
        parser.raise_error(str(e), at)


def print_symbol(printer: Printer, symbol: SymbolAttr) -> None:
    """Print a symbol after an operation's name."""
    note(symbol.data.text, symbol.data.found)
    printer.print_string(" ")
    printer.print_symbol_name(symbol.data.text)


def parse_symbol(parser: Parser) -> SymbolAttr:
    """Parse what `print_symbol` prints."""
    at = parser.pos
    return SymbolAttr(symbol_read(parser, parser.parse_symbol_name().data, at))


def check_member(of: Description | None, name: str) -> None:
    """Refuse what leads from an object to Python's inside, or into a module: a text is data."""
    if name.startswith("__") and name != "__call__":
        raise CuteError(f"{name!r} is an attribute of Python's own, which kernels do not read")
    if isinstance(of, Constant) and isinstance(of.value, ModuleType):
        raise CuteError(f'an attribute of a module is named by its symbol, @"{of.value.__name__}:{name}"')


def with_items(given: tuple[Description, ...]) -> tuple[Description, ...]:
    """Return arguments of which the first has items. Raises CuteError where it has none."""
    of = given[0]
    cls = type(of.value) if isinstance(of, Constant) else of.cls if isinstance(of, Object) else None
    if cls is not None and not hasattr(cls, "__getitem__"):
        raise CuteError(f"{of.value!r} has no items" if isinstance(of, Constant) else f"a {cls.__name__} has no items")
    return given


def described_pattern(pattern: Pattern, describe: Callable[[Operand], Any]) -> Any:
    """Describe an argument. describe: gives an operand's description."""
    if isinstance(pattern, Operand):
        return describe(pattern)
    if isinstance(pattern, tuple):
        return Group(tuple(described_pattern(p, describe) for p in pattern))
    return Constant(pattern)


def pattern_of(values: Sequence[Any], keywords: Sequence[tuple[str, Any]] = ()) -> tuple[list[SSAValue], Arguments]:
    """Take arguments, nested tuples of SSA values and constants, apart: the operands, each once, and the pattern."""
    operands: list[SSAValue] = []

    def pattern(value: Any) -> Pattern:
        if isinstance(value, SSAValue):
            found = next((i for i, o in enumerate(operands) if o is value), len(operands))
            if found == len(operands):
                operands.append(value)
            return Operand(found)
        if isinstance(value, (tuple, list)):
            return tuple(map(pattern, value))
        return value

    positional = tuple(map(pattern, values))
    named = tuple((name, pattern(value)) for name, value in keywords)
    return operands, Arguments((positional, named))


# ------------------------------------------------------------------ text


def print_arguments(printer: Printer, arguments: Arguments, print_operand: Callable[[Operand], object]) -> None:
    """Print `a, (b, 4), name = c`."""

    def show(pattern: Pattern) -> None:
        if isinstance(pattern, Operand):
            print_operand(pattern)
        elif isinstance(pattern, tuple):
            printer.print_string("(")
            printer.print_list(pattern, show)
            printer.print_string(",)" if len(pattern) == 1 else ")")
        else:
            print_constant(printer, pattern)

    def named(item: tuple[str, Pattern]) -> None:
        printer.print_string(f"{item[0]} = ")
        show(item[1])

    printer.print_list(arguments.positional, show)
    if arguments.positional and arguments.keywords:
        printer.print_string(", ")
    printer.print_list(arguments.keywords, named)


def parse_arguments(parser: AttrParser, operand: Callable[[], Any]) -> tuple[tuple[Pattern, ...], Keywords]:
    """Parse what `print_arguments` prints. operand: parses an operand if there is one, or gives None."""
    positional: list[Pattern] = []
    keywords: list[tuple[str, Pattern]] = []

    def pattern() -> Any:
        found = operand()
        if found is not None:
            return found
        if parser.parse_optional_punctuation("(") is not None:
            return tuple(items())
        return parse_constant(parser)

    def items() -> Iterator[Pattern]:
        while parser.parse_optional_punctuation(")") is None:
            yield pattern()
            if parser.parse_optional_punctuation(",") is None:
                parser.parse_punctuation(")", " after the items of a tuple")
                return

    while True:
        name = _keyword(parser)
        if name is not None:
            keywords.append((name, pattern()))
        else:
            positional.append(pattern())
        if parser.parse_optional_punctuation(",") is None:
            return tuple(positional), tuple(keywords)


def _keyword(parser: AttrParser) -> str | None:
    """Parse `name =`, if it stands here."""
    at = parser.pos
    name = parser.parse_optional_identifier()
    if name is None:
        return None
    if parser.parse_optional_punctuation("=") is not None:
        return name
    parser._resume_from(at)
    return None


def operand_parser(parser: Parser, operands: list[SSAValue]) -> Callable[[], Operand | None]:
    """Give what parses one of the operation's operands, whose values are already defined, and collects it."""

    def operand() -> Operand | None:
        found: UnresolvedOperand | None = parser.parse_optional_unresolved_operand()
        if found is None:
            return None
        values = parser.ssa_values.get(found.operand_name)
        if values is None or found.index >= len(values):
            parser.raise_error(f"%{found.operand_name} is used before it is defined", found.span)
        value = values[found.index]
        at = next((i for i, o in enumerate(operands) if o is value), len(operands))
        if at == len(operands):
            operands.append(value)
        return Operand(at)

    return operand
