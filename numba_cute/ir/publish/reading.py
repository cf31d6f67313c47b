# SPDX-License-Identifier: Apache-2.0
"""Operations that are read as they are published, and else as this library wrote them before its dialect had a name of
its own."""

from __future__ import annotations

import functools
from typing import Any

from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from ..dialect.attributes import CuteType


@functools.cache
def either(published: Any, old: Any) -> Any:
    """Return what reads an operation that is published or, failing that, an old call. published, old: their classes."""

    class Either:
        """Reads both."""

        create = published.create
        dialect_name = published.dialect_name

        @staticmethod
        def parse(parser: Parser) -> Any:
            start = parser.pos
            refused: ParseError | None = None
            try:
                op = published.parse(parser)
                if op.name != "cute.static" or isinstance(op.results[0].type, CuteType):
                    return op
                op.erase(safe_erase=False)
            except ParseError as e:
                refused = e
            parser._resume_from(start)
            try:
                found = old.parse(parser)
            except ParseError as e:
                meant = refused is not None and parser.lexer.input.content[start : start + 1] in ("(", "<", ":")
                raise (refused if meant and refused is not None else e) from None
            parser.ctx.old = True  # type: ignore[attr-defined]
            return found

    return Either


__all__ = ["either"]
