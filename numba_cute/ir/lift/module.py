# SPDX-License-Identifier: Apache-2.0
"""A printed module as a file of Python: its kernels, and the host's functions that launch them."""

from __future__ import annotations

import ast
import hashlib
import linecache
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ...seam import CuteError
from ..dialect import modules
from ..dialect.attributes import CuteType
from ..dialect.printed_modules import CudaKernel
from ..dialect.printed_types import PrintedType
from ..module import Module
from ..python.numbers import number_of
from ..python.writer import identifier
from ..text.python import Text
from . import barriers, control, host, machine, memory, numbers, objects, tensors, tuples  # noqa: F401 - they say what writes what
from .layout import folded
from .values import Expr, names_in
from .writer import Globals, Lifter, opaque_tree


def is_printed(op: Operation) -> bool:
    """Say whether a module is as the CuTe DSL prints it: it has kernels of `cuda`."""
    return any(isinstance(inner, CudaKernel) for inner in op.walk())


def read(source: str, file: str | None = None) -> tuple[ModuleOp, Text]:
    """Read a printed module, and verify it. file: its name, for errors. Raises CuteError with the first mistake."""
    file = file or f"<cute.ir {hashlib.sha256(source.encode()).hexdigest()[:8]}>"
    found = modules.read(source)
    if found.problems or found.op is None:
        problem = found.problems[0]
        lines = source.splitlines()
        shown = lines[problem.line - 1].strip()[:240] if problem.line <= len(lines) else ""
        raise CuteError(f"{file}:{problem.line}:{problem.column}: {problem.message}\n    {shown}")
    return found.op, Text(source, file, found.at, found.names)


class PrintedModule(Module):
    """A module as the CuTe DSL prints it."""

    def __str__(self) -> str:
        """Print it as the CuTe DSL does."""
        return modules.printed(self.op)

    def verify(self) -> None:
        """Check every operation. Raises CuteError with the first mistake."""
        for op, message in modules.verified(self.op):
            place = self.text.at.get(op) if self.text is not None else None
            raise CuteError(f"{self.text.file}:{place[0]}: {message}" if place and self.text else message)

    @property
    def lifted(self) -> Lifted:
        """The module as Python."""
        return lift(self.op, self.text)


def parse(source: str, file: str | None = None) -> PrintedModule:
    """Read a printed module, and verify it. Raises CuteError as `read`."""
    op, text = read(source, file)
    return PrintedModule(op, text)


def text_of(op: ModuleOp) -> Text:
    """Return the text of a module that was not read from one."""
    source = modules.printed(op)
    return Text(source, f"<cute.ir {hashlib.sha256(source.encode()).hexdigest()[:8]}>", {}, {})


@dataclass
class Lifted:
    """A printed module as Python. source: the file's text. kernels: the names of its kernels, by their symbols. hosts:
    those of the host's functions."""

    source: str
    kernels: dict[str, str]
    hosts: dict[str, str]
    space: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def file(self) -> str:
        """The name under which tracebacks show it."""
        return f"<lifted {hashlib.sha256(self.source.encode()).hexdigest()[:8]}>"

    def run(self) -> dict[str, Any]:
        """Run the file; gives its globals."""
        lines = [line + "\n" for line in self.source.splitlines()]
        linecache.cache[self.file] = (len(self.source), None, lines, self.file)
        space: dict[str, Any] = {"__name__": f"lifted_{next(iter(self.kernels.values()), 'module')}"}
        exec(compile(ast.parse(self.source), self.file, "exec"), space)
        return space

    def kernel(self, name: str | None = None) -> Any:
        """Return a kernel: the only one, or that of a symbol. Raises CuteError where there is none of it, or more."""
        return self.run()[_chosen("to_kernel", "kernel", self.kernels, name)]

    def host(self, name: str | None = None) -> Any:
        """Return a function of the host's, as `kernel` does a kernel."""
        return self.run()[_chosen("to_host", "function of the host's", self.hosts, name)]


def _chosen(what: str, kind: str, functions: Mapping[str, str], name: str | None) -> str:
    found = [n for symbol, n in functions.items() if name in (None, symbol, n)]
    if len(found) != 1:
        have = ", ".join(f"@{s}" for s in functions) or "none"
        wanted = f"has to have one {kind}, or `name` says which" if name is None else f"has no {kind} @{name}"
        raise CuteError(f"{what}: the module {wanted}; it has: {have}")
    return found[0]


def lift(op: ModuleOp, text: Text | None = None) -> Lifted:
    """Write a printed module as Python. text: that it was read from. Raises CuteError with the line of an operation
    that this library cannot say."""
    return _Module(op, text or text_of(op)).lifted()


class _Module:
    """The functions of a module."""

    def __init__(self, op: ModuleOp, text: Text) -> None:
        self.text = text
        self.globals = Globals()
        found = list(op.walk())
        self.kernels = [k for k in found if isinstance(k, CudaKernel)]
        self.hosts = [f for f in found if isinstance(f, func.FuncOp) and f.body.blocks]
        functions: list[Any] = [*self.kernels, *self.hosts]
        self.names = {f.sym_name.data: self.globals.function(_short(f.sym_name.data, "kernel")) for f in functions}

    def lifted(self) -> Lifted:
        """Write all of them."""
        functions: list[str] = []
        for k in self.kernels:
            functions.append(self._kernel(k))
        hosts = {}
        for f in self.hosts:
            functions.append(self._host(f))
            hosts[f.sym_name.data] = self.names[f.sym_name.data]
        used = names_in("\n".join(functions))
        constants = [folded("", f"{name} = {text}") for text, name in self.globals.constants.items() if name in used]
        imports = [f"from {module} import {name}" for name, module in sorted(self.globals.imports.items())]
        head = ["from numba import cuda", "", "import numba_cute as cute", *imports]
        parts = ["\n".join(head), *(["\n".join(constants)] if constants else []), *functions]
        source = parts[0] + "".join(
            f"\n\n{'' if i == 0 and constants else chr(10)}{p}" for i, p in enumerate(parts[1:])
        )
        kernels_ = {k.sym_name.data: self.names[k.sym_name.data] for k in self.kernels}
        return Lifted(source + "\n", kernels_, hosts)

    def _lifter(self, function: Operation, host: bool) -> Lifter:
        w = Lifter(self.text, self.globals, self.names, function, host)
        for op in function.walk():
            if op.name == "cute.composition":
                tuples.check_composition(w, op)
        return w

    def _kernel(self, k: CudaKernel) -> str:
        w = self._lifter(k, host=False)
        block = k.body.block
        parameters = [_parameter(w, a) for a in block.args]
        name = self.names[k.sym_name.data]
        with w.at(k), w.indented(f"def {name}({', '.join(parameters)}):"):
            for argument, parameter in zip(block.args, parameters, strict=True):
                _taken(w, argument, parameter)
            begin = len(w.lines)
            w.block(block)
            w.begins += [f"{', '.join(names)} = cute.arch.{function}()" for function, names in w.places.items()]
            for line in w.begins:
                w.line(line)
                w.lines.insert(begin, w.lines.pop())
        bounds = f"(launch_bounds=({w.flow.threads}, 1))" if w.flow.threads else ""
        return f"@cuda.jit{bounds}\n{_written(w)}"

    def _host(self, f: func.FuncOp) -> str:
        w = self._lifter(f, host=True)
        block = f.body.block
        parameters = [_parameter(w, a) for a in block.args]
        name = self.names[f.sym_name.data]
        with w.at(f), w.indented(f"def {name}({', '.join((*parameters, 'launch=cute.launch'))}):"):
            for argument, parameter in zip(block.args, parameters, strict=True):
                w.values[argument] = host.taken(w, argument, parameter)
            w.block(block)
        return _written(w)


def _written(w: Lifter) -> str:
    return "\n".join(folded("    " * line.depth, line.text) for line in w.lines)


def _short(symbol: str, hint: str) -> str:
    """Return a name for a function: the symbols of the CuTe DSL have all of their arguments' types in them."""
    for begin in ("cutlass_dsl_", "kernel_cutlass_", "kernel_", "cutlass_"):
        symbol = symbol.removeprefix(begin)
    words: list[str] = []
    for word in filter(None, symbol.split("_")):
        if any(c.isupper() for c in word) and words or word.startswith(("tensor", "CopyAtom", "TiledMMA", "Fake")):
            break
        words.append(word)
    return identifier("_".join(words)[:40].strip("_") or hint)


def _parameter(w: Lifter, argument: SSAValue) -> str:
    name = w.text_name(argument)
    return w.local(name)


def _taken(w: Lifter, argument: SSAValue, name: str) -> None:
    """Say what a parameter is, and that what is passed is that: what a type says whole is not asked of the caller."""
    t = argument.type
    if isinstance(t, CuteType) and t.is_static:
        w.line(f"assert {name} == {w.expr(argument)}")
        return
    if objects.is_object(t):
        found = w.object_of(t)
        w.line(f"assert {name} == {found.text}")
        w.values[argument] = found
        return
    dtype = number_of(t)
    if dtype is not None:
        w.values[argument] = Expr(name)
        if argument in w.flow.values:
            w.line(f"{name} = {w.cast(name, dtype)}")
        return
    if isinstance(t, CuteType):
        w.values[argument] = (
            opaque_tree(t, Expr(name)) if t.kind in ("int_tuple", "shape", "stride", "coord") else Expr(name)
        )
        return
    w.values[argument] = Expr(name)
    if isinstance(t, PrintedType) and t.name in ("cute.memref", "cute.coord_tensor"):
        host.checked(w, t, name)


__all__ = ["Lifted", "PrintedModule", "is_printed", "lift", "parse", "read", "text_of"]
