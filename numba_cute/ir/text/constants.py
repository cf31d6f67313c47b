# SPDX-License-Identifier: Apache-2.0
"""Constants among an operation's arguments, as text: `64`, `"SM90"`, `_` (None), `!f16`, `#Field.SFA`,
`@"module:name"`, and a list in brackets, `[64, 64, 16]`, for a tuple."""

from __future__ import annotations

from typing import Any

from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...typed.descriptions import Constant
from .names import Names
from .reader import Reader
from .scanner import SpellingError
from .writer import item


def print_constant(printer: Printer, value: Any) -> None:
    """Print a constant as it stands within types."""
    printer.print_string(item(Constant(value)))


def names_of(parser: AttrParser) -> Names:
    """Return what the symbols of the text that is being parsed mean."""
    found: Names | None = getattr(parser.ctx, "names", None)
    return found or Names()


def parse_constant(parser: AttrParser) -> Any:
    """Parse what `print_constant` prints, or a list of it."""
    if parser.parse_optional_punctuation("[") is not None:
        items: list[Any] = []
        while parser.parse_optional_punctuation("]") is None:
            items.append(parse_constant(parser))
            if parser.parse_optional_punctuation(",") is None:
                parser.parse_punctuation("]", " after the items of a list")
                break
        return tuple(items)
    reader = Reader(parser.lexer.input.content, parser.pos, names=names_of(parser))
    try:
        found = reader.constant()
    except SpellingError as e:
        parser.raise_error(e.problem, e.position)
    parser._resume_from(reader.position)
    return found
