# SPDX-License-Identifier: Apache-2.0
"""Operands in lists: a factor of a block-scaled product stands with its scale factors, `[%a, %sfa]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.parser import Parser
from xdsl.printer import Printer

T = TypeVar("T")
LISTS = {"cute.gemm": {7: (1, 1, 2, 2, 1)}}
"""Operations that may have lists: by the number of their operands, how many stand together."""


def one_of(parser: Parser, name: str, one: Callable[[], T]) -> Callable[[], T]:
    """Return what reads one thing, also where it begins or ends a list. name: of the operation."""
    if name not in LISTS:
        return one

    def read() -> T:
        parser.parse_optional_punctuation("[")
        found = one()
        parser.parse_optional_punctuation("]")
        return found

    return read


def write(printer: Printer, name: str, items: Sequence[T], one: Callable[[T], object]) -> None:
    """Write things between commas, those that stand together in brackets."""
    counts = LISTS.get(name, {}).get(len(items), (1,) * len(items))
    at = 0
    for count in counts:
        printer.print_string(", " if at else "")
        if count == 1:
            one(items[at])
        else:
            with printer.in_square_brackets():
                printer.print_list(items[at : at + count], one)
        at += count


__all__ = ["LISTS", "one_of", "write"]
