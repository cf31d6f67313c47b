# SPDX-License-Identifier: Apache-2.0
"""Texts of modules, read with the place of each operation, verified, and printed as MLIR prints them."""

from __future__ import annotations

import bisect
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from xdsl.context import Context
from xdsl.dialects import builtin, cf, func, math, memref, scf, ub
from xdsl.dialects.builtin import BytesAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from . import beside, operations, printed_modules
from .naming import Namer
from .spelled import told_by_use
from .verifying import from_xdsl, verified

_STANDARD = (
    builtin.Builtin,
    cf.Cf,
    func.Func,
    math.Math,
    memref.MemRef,
    scf.Scf,
    ub.UB,
)


@dataclass(frozen=True)
class Diagnostic:
    """A mistake, at a line (from 1) and a column (from 1) of the text."""

    line: int
    column: int
    message: str
    severity: str = "error"

    def shown(self, file: str) -> str:
        """Write it as compilers do."""
        return f"{file}:{self.line}:{self.column}: {self.severity}: {self.message}"


@dataclass
class Read:
    """The result of reading a text. op: the module; None if it could not be read. problems: the mistakes in it. at: the
    line (from 1) and the column (from 0) of each operation. names: the text's name of each value."""

    op: ModuleOp | None
    problems: list[Diagnostic] = field(default_factory=list)
    at: dict[Operation, tuple[int, int]] = field(default_factory=dict)
    names: dict[SSAValue, str] = field(default_factory=dict)


def context() -> Context:
    """Return a context that knows the dialect, and those of MLIR that its modules use."""
    made = Context()
    for dialect in _STANDARD:
        made.load_dialect(dialect)
    made.load_dialect(operations.dialect())
    printed_modules.load(made)
    printed_modules.load_standard(made)
    beside.load(made)
    return made


# ------------------------------------------------------------------ reading

_STRINGS = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*("?)')
"""Comments, and strings with their ends: xDSL looks exponentially long for an end that is not there."""
_COMMENTS = re.compile(r"//[^\n]*")
_NAME = re.compile(r"(?:%[\w$.:-]+(?::\d+)?\s*(?:,\s*%[\w$.:-]+(?::\d+)?\s*)*=\s*)?")


_PRINTED = re.compile(r"\b(?:cuda|cute_nvgpu|nvvm)\.|\bgpu\.container_module\b")
_UNDEFINED = "values used but not defined"


class _Placing(Parser):
    """A parser that notes where each operation's name stands. operation_at: of the one that is read. awaited: where
    each value that comes later is used first. printed: whether the text is one that the CuTe DSL prints, whose layouts
    may have strides that the published dialect refuses."""

    operation_at = 0

    def __init__(self, ctx: Context, source: str) -> None:
        super().__init__(ctx, source, "module")
        self.places: dict[Operation, int] = {}
        self.awaited: dict[str, int] = {}
        self.names: dict[SSAValue, str] = {}
        self.source = source
        self.printed = _PRINTED.search(source) is not None

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Any) -> None:
        super()._register_ssa_definition(name, values, span)
        for i, value in enumerate(values):
            self.names[value] = name if len(values) == 1 else f"{name}_{i}"

    def resolve_operand(self, operand: Any, type: Any) -> Any:
        values = self.ssa_values.get(operand.operand_name)
        if values is not None and operand.index < len(values):
            told_by_use(values[operand.index], type)
        found = super().resolve_operand(operand, type)
        if operand.operand_name in self.forward_ssa_references:
            self.awaited.setdefault(operand.operand_name, operand.span.start)
        return found

    def _parse_optional_builtin_attr(self) -> Attribute | None:
        found = super()._parse_optional_builtin_attr()
        if isinstance(found, BytesAttr):  # xDSL's, of a string with letters that are no ASCII; MLIR has one kind
            with contextlib.suppress(UnicodeDecodeError):
                return StringAttr(found.data.decode())
        return found

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        found = _NAME.match(self.source, start)
        at = self.operation_at = start if found is None else found.end()
        op = super().parse_operation()
        self.places[op] = at
        return op


_LOCATION = re.compile(r'"(?:[^"\\]|\\.)*"|(?m:^#loc\d* = )?\bloc\((?=[#"a-z])')


def without_locations(source: str) -> str:
    """Return a text with spaces where it says where operations came from: a module that the CuTe DSL prints may say so
    of each."""
    found, at = [], 0
    for match in _LOCATION.finditer(source):
        if match[0].startswith('"') or match.start() < at:
            continue
        end = _closing(source, match.end())
        found += [source[at : match.start()], re.sub(r"[^\n]", " ", source[match.start() : end])]
        at = end
    return "".join([*found, source[at:]])


def _closing(source: str, at: int) -> int:
    """Find the end of a bracket that is open: texts in quotes count for nothing."""
    depth = 1
    for match in re.compile(r'"(?:[^"\\]|\\.)*"|[()]').finditer(source, at):
        depth += (match[0] == "(") - (match[0] == ")")
        if not depth:
            return match.end()
    return len(source)


def read(source: str, ctx: Context | None = None) -> Read:
    """Read a module, and verify it. Nothing is raised: what is wrong stands in the result."""
    if _PRINTED.search(source) is not None and "loc(" in source:
        source = without_locations(source)
    starts = [0, *(i + 1 for i, c in enumerate(source) if c == "\n")]

    def at(position: int, message: str) -> Diagnostic:
        line = bisect.bisect_right(starts, position)
        return Diagnostic(line, position - starts[line - 1] + 1, message)

    if not _COMMENTS.sub("", source).strip():
        return Read(ModuleOp([]))
    for found in _STRINGS.finditer(source):
        if found[1] == "":
            return Read(None, [at(found.start(), "this string ends on another line, or has an escape that is none")])
    try:
        parser = _Placing(ctx or context(), source)
    except ParseError as e:  # its first word is none
        return Read(None, [at(e.span.start, e.msg)])
    made = _parsed(parser)
    if not isinstance(made, ModuleOp):
        return Read(None, [at(*made)])
    problems = [at(parser.places.get(op, 0), message) for op, message in verified(made)]
    return Read(made, problems, {op: _place(starts, n) for op, n in parser.places.items()}, parser.names)


def _place(starts: list[int], position: int) -> tuple[int, int]:
    line = bisect.bisect_right(starts, position)
    return line, position - starts[line - 1]


def _parsed(parser: _Placing) -> ModuleOp | tuple[int, str]:
    """Read a module; gives it, or where what is wrong."""
    try:
        return parser.parse_module()
    except ParseError as e:
        missing = next(iter(parser.forward_ssa_references), None)
        if missing is not None and e.msg.startswith(_UNDEFINED):
            return parser.awaited.get(missing, 0), f"%{missing} is used, and nothing defines it"
        return e.span.start, e.msg
    except VerifyException as e:  # an attribute of xDSL's that is made wrong
        return parser.operation_at, str(e)
    except RecursionError:
        return parser.operation_at, "the text is nested too deep"
    except Exception as e:  # of a text xDSL's parsers may raise anything
        if not from_xdsl(e):
            raise
        return parser.operation_at, f"{type(e).__name__}: {e}"


# ------------------------------------------------------------------ printing


class MlirPrinter(Printer):
    """A printer that writes what MLIR writes: `%0`, `%arg0` and `%c4_i32` for values, `%0:2` for several results, and
    no name of a terminator's dialect."""

    def __init__(self, stream: StringIO, generic: bool = False) -> None:
        super().__init__(stream=stream, print_generic_format=generic)
        self.namer: Namer | None = None

    @property
    def as_printed(self) -> bool:
        """Say whether the module is written as the CuTe DSL writes it."""
        return self.namer is not None and self.namer.printed

    def print_ssa_value(self, value: SSAValue) -> str:
        text = self.namer.names.get(value) if self.namer is not None else None
        if text is None:  # of an operation that is printed alone
            return super().print_ssa_value(value)
        self.print_string(f"%{text}")
        return text

    def _print_results(self, op: Operation) -> None:
        if not op.results:
            return
        assert self.namer is not None
        names = [self.namer.names[value] for value in op.results]
        if "#" in names[0]:
            self.print_string(f"%{names[0].partition('#')[0]}:{len(names)} = ")
        else:
            self.print_string(", ".join(f"%{name}" for name in names) + " = ")

    def print_op(self, op: Operation) -> None:
        if self.namer is None:
            self.namer = Namer(op)
        if self.print_generic_format:
            super().print_op(op)
        elif isinstance(op, (func.ReturnOp, printed_modules.CudaReturn)):
            self.print_string("return")
            op.print(self)
        elif isinstance(op, ModuleOp):
            self._print_module(op)
        elif isinstance(op, scf.ForOp):
            self._print_for(op)
        else:
            super().print_op(op)

    def _print_for(self, op: scf.ForOp) -> None:
        """Write a loop: a type of its counter has two spaces before it."""
        self._print_results(op)
        stream, self.stream = self.stream, StringIO()
        self.print_string("scf.for")
        op.print(self)
        text = self.stream.getvalue()
        self.stream = stream
        head, newline, body = text.partition("\n")
        found = re.fullmatch(r"(.*\S) (: \S+ \{)", head)
        self.print_string(f"{found[1]}  {found[2]}{newline}{body}" if found else text, indent=0)

    def _print_module(self, op: ModuleOp) -> None:
        self.print_string("module")
        if op.sym_name is not None:
            self.print_string(" ")
            self.print_symbol_name(op.sym_name)
        self.print_op_attributes(op.attributes, print_keyword=True)
        self.print_string(" ")
        with self.in_braces():
            for block in op.body.blocks:
                self.print_block(block, print_block_args=False)
            self._print_new_line()


def printed(op: Operation, generic: bool = False) -> str:
    """Print a module as MLIR does. generic: in the form that needs no dialect's own syntax."""
    stream = StringIO()
    MlirPrinter(stream, generic).print_op(op)
    return stream.getvalue() + "\n"


# ------------------------------------------------------------------ texts of several modules

SEPARATOR = "// -----"


def pieces(source: str) -> list[tuple[int, str]]:
    """Split a text at its lines `// -----`: each piece with the number of lines before it."""
    found: list[tuple[int, list[str]]] = [(0, [])]
    for i, line in enumerate(source.splitlines(keepends=True)):
        if line.rstrip().endswith(SEPARATOR) and line.lstrip().startswith("//"):
            found.append((i + 1, []))
        else:
            found[-1][1].append(line)
    return [(start, "".join(lines)) for start, lines in found]


def read_pieces(source: str, split: bool, ctx: Context | None = None) -> Iterator[tuple[int, Read]]:
    """Read a text, or each piece of it, with the number of lines before the piece."""
    ctx = ctx or context()
    for start, piece in pieces(source) if split else [(0, source)]:
        yield start, read(piece, ctx)


__all__ = ["Diagnostic", "Read", "context", "pieces", "printed", "read", "read_pieces", "verified"]
