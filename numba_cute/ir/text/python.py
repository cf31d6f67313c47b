# SPDX-License-Identifier: Apache-2.0
"""The text of a module, and where in it each operation stands: the lines of what a module becomes as Python."""

from __future__ import annotations

import bisect
import functools
import hashlib
import linecache
import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from ...seam import CuteError
from ...seam.ground.packages import package_of
from ..dialect.spelled import told_by_use
from .scanner import SpellingError

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

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.source.splitlines()

    def show(self) -> None:
        """Let tracebacks and errors show the text's lines."""
        lines = [line + "\n" for line in self.lines]
        linecache.cache[self.file] = (len(self.source), None, lines, self.file)

    def width(self, line: int) -> int:
        """Return the length of a line, in bytes, as Python counts columns."""
        return len(self.lines[line - 1].encode()) if 0 < line <= len(self.lines) else 0


class _Locating(Printer):
    """A printer that notes where it prints each operation, and prints the source locations that there are."""

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream=stream)
        self.at: dict[Operation, Position] = {}

    def print_op(self, op: Operation) -> None:
        self.at[op] = (self._current_line + 1, self._current_column)
        outside, self.print_debuginfo = self.print_debuginfo, not isinstance(op.location, UnknownLoc)
        super().print_op(op)
        self.print_debuginfo = outside

    def print_operation_type(self, op: Operation) -> None:
        """Print it without the location within an operation's own format, which this one ends."""
        outside = self.print_debuginfo
        self.print_debuginfo = outside and (self.print_generic_format or type(op).print is Operation.print)
        super().print_operation_type(op)
        self.print_debuginfo = outside

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        outside = self.print_debuginfo
        self.print_debuginfo = outside and not isinstance(arg.location, UnknownLoc)
        super().print_block_argument(arg, print_type=print_type)
        self.print_debuginfo = outside


def printed(module: Operation, file: str | None = None) -> Text:
    """Print a module. file: the name of the text; None for one made of what it holds, so that equal texts have one."""
    stream = StringIO()
    printer = _Locating(stream)
    printer.print_op(module)
    source = stream.getvalue() + "\n"
    return Text(source, file or _name(source), printer.at, dict(printer._ssa_values))


def _name(source: str) -> str:
    return f"<cute.ir {hashlib.sha256(source.encode()).hexdigest()[:8]}>"


TARGET = "numba_cute.target"
"""The attribute of a module that names the target."""
_TARGET = re.compile(r'cute\.target = "(\w+)"')


class _Noting(Parser):
    """A parser that notes where each operation begins, and what the text calls each value. operation_at: where the
    operation begins that is being parsed. target: what the module is for, if it says so."""

    operation_at = 0
    target: str | None = None

    def __init__(self, context: Context, source: str, file: str) -> None:
        super().__init__(context, source, file)
        self.at: dict[Operation, Position] = {}
        self.names: dict[SSAValue, str] = {}
        named = _TARGET.search(source)
        self.target = None if named is None else named[1]
        self._starts = [0, *(i + 1 for i, c in enumerate(source) if c == "\n")]

    def parse_operation(self) -> Operation:
        start = self.operation_at = self._current_token.span.start
        op = super().parse_operation()
        line = bisect.bisect_right(self._starts, start)
        self.at[op] = (line, start - self._starts[line - 1])
        return op

    def resolve_operand(self, operand: Any, type: Any) -> Any:
        values = self.ssa_values.get(operand.operand_name)
        if values is not None and operand.index < len(values):
            told_by_use(values[operand.index], type)
        return super().resolve_operand(operand, type)

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Any) -> None:
        super()._register_ssa_definition(name, values, span)
        for i, value in enumerate(values):
            self.names[value] = name if len(values) == 1 else f"{name}_{i}"


_STRINGS = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*("?)')
"""Comments, and strings with their ends: xDSL looks exponentially long for an end that is not there."""


def _is_xdsls(e: BaseException) -> bool:
    """Say whether a line of xDSL's raised an exception."""
    frames = [frame for frame, _ in traceback.walk_tb(e.__traceback__)]
    return package_of(frames[-1].f_globals.get("__name__")) == "xdsl"


def parsed(source: str, context: Context, file: str | None = None, target: str | None = None) -> tuple[ModuleOp, Text]:
    """Parse a module; gives it, and its text as it was written. file: as for `printed`. target: in place of what it
    names."""
    file = file or _name(source)
    for found in _STRINGS.finditer(source):
        if found[1] == "":
            raise SpellingError(
                source, found.start(), "this string does not end on its line, or has an escape that is none"
            )
    parser = _Noting(context, source, file)
    parser.target = target or parser.target
    try:
        module = parser.parse_module()
    except (CuteError, ParseError):
        raise
    except Exception as e:  # of a text xDSL's parsers may raise anything
        if not isinstance(e, RecursionError) and not _is_xdsls(e):
            raise
        parser.raise_error(f"{type(e).__name__}: {e}", parser.operation_at)
    return module, Text(source, file, parser.at, parser.names)
