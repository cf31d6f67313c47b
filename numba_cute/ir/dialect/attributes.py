# SPDX-License-Identifier: Apache-2.0
"""The attributes (`#cute.layout<"…">`) and the types (`!cute.layout<"…">`) of the dialect: each holds a value."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.ir import Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...seam import CuteError
from .checked import Refused, checked, is_static, whole_numbers
from .notation import read, write

KINDS = ("int_tuple", "coord", "shape", "stride", "layout", "tile", "composed_layout", "swizzle")


class _Written(Data[Any]):
    """An attribute that holds a value of a kind, written as `<"value">`."""

    kind: ClassVar[str]
    verified: ClassVar[bool]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        """Read what stands after the name."""
        start, printed = parser.pos, cls.verified and getattr(parser, "printed", False)
        parser.parse_punctuation("<")
        text = parser.parse_optional_str_literal()
        if text is None:
            parser.raise_error("expected string: the value in quotes")
        try:
            value = read(cls.kind, text, printed)
        except CuteError as e:
            parser.raise_error(f'failed to parse {cls.kind} from "{text}": {e}', start)
        if cls.verified:
            try:
                value = checked(cls.kind, value)
                if not printed:
                    whole_numbers(value)
            except Refused as e:
                parser.raise_error(str(e), start)
        parser.parse_punctuation(">")
        return value

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands after the name."""
        printer.print_string(f'<"{write(self.kind, self.data)}">')


class CuteAttr(_Written):
    """An attribute of the dialect, as it was written."""

    verified = False


class CuteType(TypeAttribute, _Written):
    """A type of the dialect: all that is known of a value before the program runs."""

    verified = True

    @property
    def is_static(self) -> bool:
        """Say whether the type holds the whole value."""
        return is_static(self.data)


def _defined(kind: str, base: type, suffix: str) -> Any:
    title = "".join(word.capitalize() for word in kind.split("_"))
    body = {"name": f"cute.{kind}", "kind": kind, "__module__": __name__}
    return irdl_attr_definition(type(f"{title}{suffix}", (base,), body))


ATTRIBUTES: dict[str, type[CuteAttr]] = {kind: _defined(kind, CuteAttr, "Attr") for kind in KINDS}
TYPES: dict[str, type[CuteType]] = {kind: _defined(kind, CuteType, "Type") for kind in KINDS}


def type_of(kind: str, value: Any) -> CuteType:
    """Return the type of values of a kind of which this one shows all that is known."""
    return TYPES[kind](value)


__all__ = ["ATTRIBUTES", "KINDS", "TYPES", "CuteAttr", "CuteType", "type_of"]
