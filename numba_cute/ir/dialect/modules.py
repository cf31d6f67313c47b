# SPDX-License-Identifier: Apache-2.0
"""Texts of modules, read with the place of each operation, verified, and printed as MLIR prints them."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, builtin, cf, func, llvm, math, memref, scf, ub
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import ParseError, VerifyException

from . import beside, operations, printed_modules
from .verifying import from_xdsl, verified

_STANDARD = (
    arith.Arith,
    builtin.Builtin,
    cf.Cf,
    func.Func,
    llvm.LLVM,
    math.Math,
    memref.MemRef,
    scf.Scf,
    ub.UB,
)


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong, at a line (from 1) and a column (from 1) of the text."""

    line: int
    column: int
    message: str
    severity: str = "error"

    def shown(self, file: str) -> str:
        """Write it as compilers do."""
        return f"{file}:{self.line}:{self.column}: {self.severity}: {self.message}"


@dataclass
class Read:
    """What a text became. op: the module; None where it was not read. problems: what is wrong with it."""

    op: ModuleOp | None
    problems: list[Diagnostic] = field(default_factory=list)


def context() -> Context:
    """Return a context that knows the dialect, and those of MLIR that its modules use."""
    made = Context()
    for dialect in _STANDARD:
        made.load_dialect(dialect)
    made.load_dialect(operations.dialect())
    printed_modules.load(made)
    beside.load(made)
    return made


# ------------------------------------------------------------------ reading

_STRINGS = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*("?)')
"""Comments, and strings with their ends: xDSL looks exponentially long for an end that is not there."""
_COMMENTS = re.compile(r"//[^\n]*")
_NAME = re.compile(r"(?:%[\w$.:-]+(?::\d+)?\s*(?:,\s*%[\w$.:-]+(?::\d+)?\s*)*=\s*)?")


_UNDEFINED = "values used but not defined"


class _Placing(Parser):
    """A parser that notes where each operation's name stands. operation_at: of the one that is read. awaited: where
    each value that comes later is used first."""

    operation_at = 0

    def __init__(self, ctx: Context, source: str) -> None:
        super().__init__(ctx, source, "module")
        self.places: dict[Operation, int] = {}
        self.awaited: dict[str, int] = {}
        self.source = source

    def resolve_operand(self, operand: Any, type: Any) -> Any:
        found = super().resolve_operand(operand, type)
        if operand.operand_name in self.forward_ssa_references:
            self.awaited.setdefault(operand.operand_name, operand.span.start)
        return found

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        found = _NAME.match(self.source, start)
        at = self.operation_at = start if found is None else found.end()
        op = super().parse_operation()
        self.places[op] = at
        return op


def read(source: str, ctx: Context | None = None) -> Read:
    """Read a module, and verify it. Nothing is raised: what is wrong stands in the result."""
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
    return Read(made, [at(parser.places.get(op, 0), message) for op, message in verified(made)])


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
        self.groups: dict[SSAValue, str] = {}
        self.arguments = 0

    def name(self, value: SSAValue, name: str) -> None:
        """Give a value a name, with a number where it is taken."""
        taken = self.ssa_names.get(name, 0)
        self.ssa_names[name] = taken + 1
        self._ssa_values[value] = name if not taken else f"{name}_{taken - 1}"

    def print_ssa_value(self, value: SSAValue) -> str:
        if value not in self._ssa_values and isinstance(value.owner, Block):
            self.name_argument(value)
        if value not in self._ssa_values and isinstance(value.owner, Operation):
            self.name_results(value.owner)
        text = self._ssa_values[value]
        self.print_string(f"%{text}")
        return text

    def name_argument(self, value: SSAValue) -> None:
        """Name a block argument."""
        self._ssa_values[value] = f"arg{self.arguments}"
        self.arguments += 1

    def name_results(self, op: Operation) -> None:
        """Name the results of an operation, all by one name."""
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            self.name(op.results[0], _constant_name(op.value))
            return
        name = self._get_new_valid_name_id()
        if len(op.results) == 1:
            self._ssa_values[op.results[0]] = name
            return
        for i, value in enumerate(op.results):
            self._ssa_values[value] = f"{name}#{i}"

    def _print_results(self, op: Operation) -> None:
        if not op.results:
            return
        if op.results[0] not in self._ssa_values:
            self.name_results(op)
        name = self._ssa_values[op.results[0]].partition("#")[0]
        many = f":{len(op.results)}" if len(op.results) > 1 else ""
        self.print_string(f"%{name}{many} = ")

    def print_op(self, op: Operation) -> None:
        isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
        outside = self.arguments
        if isolated:
            self.arguments = 0
        if isinstance(op, func.ReturnOp) and not self.print_generic_format:
            self.print_string("return")
            op.print(self)
        elif isinstance(op, ModuleOp) and not self.print_generic_format:
            self._print_module(op)
        else:
            super().print_op(op)
        if isolated:
            self.arguments = outside

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

    def print_region(self, region: Region, *args: bool, **kwargs: bool) -> None:
        for block in region.blocks:
            for argument in block.args:
                if argument not in self._ssa_values:
                    self.name_argument(argument)
        super().print_region(region, *args, **kwargs)


def _constant_name(value: IntegerAttr) -> str:
    number, kind = value.value.data, str(value.type)
    if kind == "i1":
        return "true" if number else "false"
    return f"c{number}" + ("" if kind == "index" else f"_{kind}")


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
