# SPDX-License-Identifier: Apache-2.0
"""From the IR to a kernel: a module becomes the Python that `cuda.jit` takes, whose lines are those of its text.

So both engines, every check and every error are the ones that kernels written in Python have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import func, gpu
from xdsl.ir import Attribute, BlockArgument

from .. import experimental
from ..compiler.host import kernels
from ..experimental.tensors import GlobalTensor
from ..seam import CuteError
from ..seam.marks.constexpr import Constexpr
from ..typed.descriptions import Description, Group, Object
from .library.operations import Inferred
from .library.options import DEVICE, KERNEL, options_of
from .library.types import description_of, is_described
from .lift.module import PrintedModule
from .module import Module
from .python import arithmetic, arrays, calls, control  # noqa: F401 - they say how operations are written
from .python.numbers import number_of
from .python.writer import Line, Names, Writer, identifier
from .text.fields import lacking
from .text.python import Text, printed


def to_kernel(module: Module, name: str | None = None) -> Any:
    """Make of a module what `@cuda.jit` makes of a function.

    module: its kernel is the function with the attribute `numba_cute.kernel`, or else the only one that is not private.
    name: of the kernel, of a module with several. Errors and reports show the lines of the text that the module was
    read from, or of the one that it prints. CuteError: an operation, a type or a region that kernels have no Python
    for.

    Of a module that the CuTe DSL printed it is the kernel of `to_python`, whose lines errors and reports show; it takes
    the arguments that the module's kernel has.
    """
    if isinstance(module, PrintedModule):
        return module.lifted.kernel(name)
    made = _Functions(module)
    kernel = made.kernel(name)
    space = made.compiled()
    for other in made.functions:
        if not other.kernel:
            space[other.name] = kernels.jitted(space[other.name], device=True, **options_of(other.attributes, DEVICE))
    jit = experimental.kernel if any(map(_is_global, kernel.op.body.block.args)) else None
    return kernels.jitted(space[kernel.name], jit=jit, **options_of(kernel.attributes, KERNEL))


def _is_global(argument: BlockArgument) -> bool:
    """Say whether an argument is a plain tensor that TMA copies, or several of them: the kernel asks for its maps."""
    return is_described(argument.type) and _of_tensors(description_of(argument.type))


def _of_tensors(d: Description) -> bool:
    if isinstance(d, Group):
        return any(map(_of_tensors, d.items))
    return isinstance(d, Object) and issubclass(d.cls, GlobalTensor)


def to_python(module: Module) -> str:
    """Return the Python that `to_kernel` makes of a module's functions, as source. module: as for it. Of a module that
    the CuTe DSL printed it is a file: its kernels, and the host's functions that launch them. Raises CuteError with the
    line of an operation that this library cannot say."""
    if isinstance(module, PrintedModule):
        return module.lifted.source
    return "\n".join(map(line_text, _Functions(module).lines()))


def to_host(module: Module, name: str | None = None) -> Any:
    """Make the host's function of a module that the CuTe DSL printed: it makes tensor maps and launches the kernel.

    name: of the function, of a module with several. It takes what the module's function takes, tensors first, and
    `launch`, which is called as `cute.launch` is; give another to simulate. CuteError: a module that has no such
    function, or one that this library cannot say."""
    if not isinstance(module, PrintedModule):
        raise CuteError("to_host: the host's functions stand in modules that the CuTe DSL printed alone")
    return module.lifted.host(name)


def line_text(line: Line) -> str:
    """Return a line with its indentation."""
    return f"{'    ' * line.depth}{line.text}"


@dataclass(frozen=True)
class _Function:
    """A function of a module. op: it. symbol, name: what the IR and Python call it. kernel: whether it is one."""

    op: Any
    symbol: str
    name: str
    kernel: bool

    @property
    def attributes(self) -> dict[str, Attribute]:
        return {**self.op.attributes}


class _Functions:
    """The functions of a module as Python."""

    def __init__(self, module: Module) -> None:
        module = module.calls()
        text = self.text = module.text or printed(module.op)
        _check_names(module)
        found = [op for op in module if isinstance(op, (func.FuncOp, gpu.FuncOp)) and op.body.blocks]
        self.names = Names(_locals(found, text))
        self.functions = [
            _Function(op, op.sym_name.data, self.names.function(op.sym_name.data), _is_kernel(op, found))
            for op in found
        ]

    def kernel(self, name: str | None) -> _Function:
        """Find the kernel of that name, or the only one."""
        found = [f for f in self.functions if f.kernel and name in (None, f.symbol)]
        if len(found) == 1:
            return found[0]
        have = ", ".join(f"@{f.symbol}" for f in self.functions if f.kernel) or "none"
        wanted = "has to have one kernel, or `name` says which" if name is None else f"has no kernel @{name}"
        raise CuteError(
            f"to_kernel: the module {wanted}; its kernels: {have} (functions with the attribute numba_cute.kernel, or "
            "the only one that is not private)"
        )

    def lines(self) -> Iterator[Line]:
        """Write all functions."""
        names = {f.symbol: f.name for f in self.functions}
        for function in self.functions:
            yield from self._written(function, names)

    def _written(self, function: _Function, names: dict[str, str]) -> list[Line]:
        w = Writer(self.text, self.names, names)
        if len(function.op.body.blocks) > 1:
            w.refuse(function.op, f"its body has {len(function.op.body.blocks)} blocks: say their control flow by scf")
        block = function.op.body.block
        with w.at(function.op):
            parameters = [_parameter(w, a, function.kernel) for a in block.args]
            with w.indented(f"def {function.name}({', '.join(parameters)}):"):
                for argument in block.args:
                    _taken(w, argument)
                w.block(block)
                if block.last_op is not None:
                    w.operation(block.last_op)
        return w.lines

    def compiled(self) -> dict[str, Any]:
        """Compile the functions; gives the globals that they live in."""
        lines = list(self.lines())
        tree = ast.parse("\n".join(map(line_text, lines)))
        for node in ast.walk(tree):
            if isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.excepthandler)):
                at, column = lines[node.lineno - 1].position
                node.lineno = node.end_lineno = at
                node.col_offset, node.end_col_offset = column, max(self.text.width(at), column)
        self.text.show()
        space: dict[str, Any] = {"__name__": f"cute_ir_{self.functions[0].name}", **self.names.space}
        exec(compile(tree, self.text.file, "exec"), space)
        return space


def _check_names(module: Module) -> None:
    """Refuse a module that names what nobody gave an object for."""
    lacks: dict[str, None] = {}
    for op in module:
        types = [r.type for r in op.results] + [a.type for r in op.regions for b in r.blocks for a in b.args]
        found = [lacking(description_of(t)) for t in types if is_described(t)]
        lacks.update({str(x): None for x in [*found, op.lacking() if isinstance(op, Inferred) else None] if x})
    if lacks:
        raise CuteError(
            f"to_kernel: the module names {', '.join(lacks)}, which it was read without: give parse what they are, "
            'names={"module:name": object} or names=[the modules that define them]'
        )


def _is_kernel(op: Any, functions: list[Any]) -> bool:
    """Say whether a function is a kernel: it is marked as one, or no function is and it alone is not private."""
    if any(map(_says_so, functions)):
        return _says_so(op)
    public = [f for f in functions if getattr(f, "sym_visibility", None) is None or f.sym_visibility.data != "private"]
    return public == [op]


def _says_so(op: Any) -> bool:
    return "numba_cute.kernel" in op.attributes or getattr(op, "kernel", None) is not None


def _locals(functions: list[Any], text: Text) -> set[str]:
    """The variables that functions will have, which no global may be called."""
    return {identifier(text.names.get(v) or v.name_hint or "v") for f in functions for v in _values(f)}


def _values(function: Any) -> Iterator[Any]:
    for op in function.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _parameter(w: Writer, argument: BlockArgument, of_kernel: bool) -> str:
    """Return a parameter. One of a kernel whose type says which number it is takes only that number."""
    name = w.variable(argument)
    static = w.static(argument)
    known = of_kernel and static is not None and isinstance(static.value, int)
    return f"{name}: {w.names.of(Constexpr, 'Constexpr')}" if known else name


def _taken(w: Writer, argument: BlockArgument) -> None:
    """Give a number that is an argument the type that the IR says, whatever the function is called with."""
    dtype, static, name = number_of(argument.type), w.static(argument), w.variable(argument)
    if dtype is not None:
        w.line(f"{name} = {w.cast(name, dtype)}")
    elif static is not None and isinstance(static.value, int):
        w.line(f"assert {name} == {static.value}, {f'the IR says that {name} is {static.value}'!r}")
