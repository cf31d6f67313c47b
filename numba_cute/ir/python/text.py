# SPDX-License-Identifier: Apache-2.0
"""The text of a module, and where in it each operation stands: the lines of what a module becomes as Python."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO

from xdsl.ir import Operation, SSAValue

from ..module import Module, ModulePrinter

Position = tuple[int, int]
"""A line and a column of a text, from 1 and from 0."""


@dataclass(frozen=True)
class Text:
    """The text of a module.

    source: all of it. file: the name under which errors show it. at: the position of each operation. names: what the
    text calls each value, without the `%`.
    """

    source: str
    file: str
    at: Mapping[Operation, Position]
    names: Mapping[SSAValue, str]

    def show(self) -> None:
        """Let tracebacks and errors show the text's lines."""
        lines = [line + "\n" for line in self.source.splitlines()]
        linecache.cache[self.file] = (len(self.source), None, lines, self.file)

    def width(self, line: int) -> int:
        """Return the length of a line, in bytes, as Python counts columns."""
        lines = self.source.splitlines()
        return len(lines[line - 1].encode()) if 0 < line <= len(lines) else 0


class _Locating(ModulePrinter):
    """The printer of modules, which notes where it prints each operation, and what it calls each value."""

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream)
        self.at: dict[Operation, Position] = {}

    def print_op(self, op: Operation) -> None:
        self.at[op] = (self._current_line + 1, self._current_column)
        super().print_op(op)


def text_of(module: Module) -> Text:
    """Return the text that a module was read from, or for one that was made what it prints."""
    if module.text:
        file = module.file or _name(module.text)
        lines = module.text.splitlines()
        at = {op: (line, len(lines[line - 1]) - len(lines[line - 1].lstrip())) for op, line in module.lines.items()}
        return Text(module.text, file, at, module.names)
    stream = StringIO()
    printer = _Locating(stream)
    printer.print_op(module.op)
    source = stream.getvalue() + "\n"
    return Text(source, _name(source), printer.at, dict(printer._ssa_values))


def _name(source: str) -> str:
    """Name a text by what it holds, so that equal texts have one name."""
    return f"<cute.ir {hashlib.sha256(source.encode()).hexdigest()[:8]}>"
