# SPDX-License-Identifier: Apache-2.0
"""Constants among an operation's arguments, as text: `64`, `"SM90"`, `_` (None), `!f16`, `@"module:name"`."""

from __future__ import annotations

from typing import Any

from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

from .. import dtypes
from ..dtypes import DType
from ..seam import CuteError
from .names import object_of, symbol_of

_DTYPES = {t.ptx: t for t in dtypes.ALL}


def print_constant(printer: Printer, value: Any) -> None:
    """Print a constant: numbers and strings as MLIR has them, None as `_`, an element type as `!f16`, a function, a
    class or an enumeration's member by its symbol."""
    if value is None:
        printer.print_string("_")
    elif isinstance(value, bool):
        printer.print_string(str(value).lower())
    elif isinstance(value, int):
        printer.print_string(str(value))
    elif isinstance(value, float):
        printer.print_string(_float(value))
    elif isinstance(value, str):
        printer.print_string_literal(value)
    elif isinstance(value, DType):
        printer.print_string(f"!{value.ptx}")
    else:
        printer.print_symbol_name(symbol_of(value))


def _float(value: float) -> str:
    """Write a float so that it is not taken for an integer, nor its exponent for a name."""
    if value != value or value in (float("inf"), float("-inf")):
        return f"float({str(value)!r})".replace("'", '"')
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e") if "e" in text else f"{text}.0"


def parse_constant(parser: AttrParser) -> Any:
    """Parse what `print_constant` prints, and a list in brackets, `[64, 64, 16]`, as a tuple."""
    text = parser.parse_optional_str_literal()
    if text is not None:
        return text
    if parser.parse_optional_punctuation("[") is not None:
        items: list[Any] = []
        while parser.parse_optional_punctuation("]") is None:
            items.append(parse_constant(parser))
            if parser.parse_optional_punctuation(",") is None:
                parser.parse_punctuation("]", " after the items of a list")
                break
        return tuple(items)
    token = parser._parse_optional_token(MLIRTokenKind.EXCLAMATION_IDENT)
    if token is not None:
        if token.text[1:] not in _DTYPES:
            parser.raise_error(f"{token.text} is no element type; these are: {', '.join(_DTYPES)}", token.span)
        return _DTYPES[token.text[1:]]
    symbol = parser.parse_optional_symbol_name()
    if symbol is not None:
        try:
            return object_of(symbol.data)
        except CuteError as e:
            parser.raise_error(str(e))
    return _word_or_number(parser)


def _word_or_number(parser: AttrParser) -> Any:
    words = {"_": None, "true": True, "false": False}
    pos = parser.pos
    word = parser.parse_optional_identifier()
    if word in words:
        return words[word]
    if word == "float":
        with parser.in_parens():
            return float(parser.parse_str_literal())
    if word is None:
        number = parser.parse_optional_number()
        if number is not None:
            return number
    return parser.raise_error('an operand, a number, a string, `_`, `!f16` or `@"module:name"` expected', pos)
