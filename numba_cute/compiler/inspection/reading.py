# SPDX-License-Identifier: Apache-2.0
"""A kernel as Numba types it, after all passes, read as the neutral data of `typed`: the kernel and the user's device
functions that it calls, and which statement each PTX instruction came from."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...seam import CuteError
from ...seam.ground.packages import is_library
from ...typed.descriptions import Constant, Description, Scalar
from ...typed.form import (
    Argument,
    Attribute,
    Block,
    Branch,
    Build,
    Call,
    Copy,
    Function,
    Invoke,
    Item,
    Iterate,
    Jump,
    Known,
    Method,
    Next,
    Operator,
    Raise,
    Return,
    Set,
    SetAttribute,
    SetItem,
    Source,
    Statement,
    TypedKernel,
)  # fmt: skip
from ..bridge.object_types import Value
from ..emit.leaves import dtype_of
from ..ground.memory import memory
from ..ground.numba_cuda import ir, types
from ..ground.target import compiling_for
from ..host.offline import ptx_of, taken
from .binding import bound
from .operations import FIRST_COLUMN, LAST_COLUMN, recording
from .ptx_lines import placed_instructions
from .type_descriptions import description_of_type


def typed_kernel(kernel: Any, args: Any, arch: str = "sm_90a") -> TypedKernel:
    """Type and compile a kernel; arguments as for `compile`. Raises CuteError for what `compile` refuses, but for the
    assembler's part."""
    function, argtypes, options = taken(kernel, args, arch, "inspect")
    marks = _Marks(function)
    with compiling_for(arch) as cc, recording(marks):
        name, ptx = ptx_of(function, argtypes, {**options, "lineinfo": True, "debug": False}, cc)
    ptx = ptx.replace(f"{name}_param", f"{function.__name__}_param")
    assert marks.lowerer is not None
    found = _Functions(function, options, marks)
    cluster = getattr(function, "__cute_cluster__", None)
    return TypedKernel(arch, tuple(found.done), cluster, marks.of(placed_instructions(ptx, name)))


class _Marks:
    """Numbers for a kernel's statements, which their PTX bears as its column (see `operations.recording`)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.lowerer = function, None
        self.compiled: dict[Any, Any] = {}  # device functions, by dispatcher and types of arguments
        self.numbers: dict[int, int] = {}
        self._lines: dict[int, int] = {}

    def statement(self, lowerer: Any, inst: Any) -> int:
        """NumberLeaf a statement that may become PTX; gives the source column for its instructions."""
        self.lowerer, self.compiled = lowerer, memory().compiled
        if isinstance(inst, (ir.Del, ir.Jump)) or isinstance(getattr(inst, "value", None), (ir.Const, ir.Arg)):
            return 1
        number = FIRST_COLUMN + len(self.numbers)
        if number > LAST_COLUMN:
            return 1
        self._lines[number] = inst.loc.line
        return self.numbers.setdefault(id(inst), number)

    def of(self, placed: Any) -> dict[int, tuple[str, ...]]:
        """Sort instructions by the statements that they came from."""
        found: dict[int, list[str]] = {}
        file = self.function.__code__.co_filename
        for p in placed:
            ours = p.file == file and self._lines.get(p.column) == p.line
            found.setdefault(p.column if ours else 0, []).append(p.text)
        return {mark: tuple(texts) for mark, texts in found.items()}


# ---------------------------------------------------------------- Numba's IR as this


class _Functions:
    """The functions of a kernel, each once for its arguments' types."""

    def __init__(self, kernel: Callable[..., Any], options: dict[str, Any], marks: _Marks) -> None:
        self._known: dict[Any, int] = {}
        self._compiled = marks.compiled
        lowerer: Any = marks.lowerer
        self.done: list[Any] = [None]
        fndesc = lowerer.fndesc
        self.done[0] = _Reader(self, fndesc.typemap, fndesc.calltypes, marks.numbers).function(
            kernel, options, lowerer.blocks, fndesc.args, fndesc.argtypes, types.none
        )

    def number(self, dispatcher: Any, argtypes: tuple[types.Type, ...]) -> int:
        """Return the number of a device function, for these types of arguments."""
        key = dispatcher, argtypes
        if key not in self._known:
            self._known[key] = len(self.done)
            self.done.append(None)
            result = self._compiled[dispatcher, argtypes]
            notes = result.type_annotation
            reader = _Reader(self, notes.typemap, notes.calltypes, {})
            names = result.fndesc.args
            returns = result.signature.return_type
            options = dict(dispatcher.targetoptions)
            self.done[self._known[key]] = reader.function(
                dispatcher.py_func, options, notes.blocks, names, argtypes, returns
            )
        return self._known[key]


class _Reader:
    """Reads one function of Numba's IR. marks: the numbers of statements, by `id`."""

    def __init__(self, functions: _Functions, typemap: Any, calltypes: Any, marks: dict[int, int]) -> None:
        self._functions, self._types, self._calls, self._marks = functions, typemap, calltypes, marks
        self._methods: dict[str, tuple[str, str]] = {}  # variables that hold methods: of which, and the method's name
        self._callees: dict[str, Any] = {}  # variables that hold what Numba's types do not name
        self._symbols: dict[str, str] = {}  # of what stands in modules
        self._pairs: dict[str, dict[str, str]] = {}  # of iterators' steps: the variables of value and validity
        self._variables: dict[str, Description] = {}

    def function(
        self,
        python: Callable[..., Any],
        options: dict[str, Any],
        blocks: Any,
        names: Any,
        argtypes: Any,
        result: types.Type,
    ) -> Function:
        """Read a function's blocks."""
        parameters = tuple(f"arg.{name}" for name in names)
        self._variables |= {p: description_of_type(t) for p, t in zip(parameters, argtypes, strict=True)}
        for label in sorted(blocks):
            for inst in blocks[label].body:
                self._look(inst)
        done = {label: self._block(blocks[label]) for label in sorted(blocks)}
        return Function(python, parameters, self._variables, done, min(done), description_of_type(result), options)

    def _look(self, inst: Any) -> None:
        """Note what variables stand for that the statements do not show by themselves."""
        value = getattr(inst, "value", None)
        if not isinstance(inst, ir.Assign):
            return
        target, ty = inst.target.name, self._types[inst.target.name]
        self._variables[target] = description_of_type(ty)
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            self._callees[target] = value.value
            if isinstance(value.value, ModuleType):
                self._symbols[target] = f"{value.value.__name__}:"
        elif isinstance(value, ir.Var):
            self._copied(inst, target, value.name)
        elif isinstance(value, ir.Expr) and value.op == "getattr":
            if isinstance(ty, types.BoundFunction):
                self._methods[target] = value.value.name, value.attr
            elif value.value.name in self._callees:
                self._callees[target] = getattr(self._callees[value.value.name], value.attr, None)
                if value.value.name in self._symbols:
                    within = self._symbols[value.value.name]
                    self._symbols[target] = f"{within}{'' if within.endswith(':') else '.'}{value.attr}"
        elif isinstance(value, ir.Expr) and value.op in ("pair_first", "pair_second"):
            self._pairs.setdefault(value.value.name, {})[value.op] = target

    def _copied(self, inst: Any, target: str, source: str) -> None:
        """Note that a variable stands for what another one does."""
        kinds: tuple[dict[str, Any], ...] = (self._methods, self._callees, self._symbols)
        for known in kinds:
            if source in known:
                if known.setdefault(target, known[source]) != known[source] and known is self._methods:
                    raise self._unknown(inst)
            elif target in known:
                del known[target]

    def _block(self, block: Any) -> Block:
        statements: list[Statement] = []
        for inst in block.body[:-1]:
            made = self._statement(inst)
            if made is not None:
                statements.append(made)
        last = block.body[-1]
        where = {"line": last.loc.line, "marks": self._marked(last)}
        if isinstance(last, ir.Jump):
            return Block(tuple(statements), Jump(last.target))
        if isinstance(last, ir.Branch):
            return Block(tuple(statements), Branch(last.cond.name, last.truebr, last.falsebr, **where))
        if isinstance(last, ir.Return):
            given = None if isinstance(self._types[last.value.name], types.NoneType) else last.value.name
            return Block(tuple(statements), Return(given, **where))
        if isinstance(last, ir.StaticRaise):
            raised = Raise(last.exc_class, tuple(last.exc_args or ()), **where)
            return Block((*statements, raised), Return(None, **where))
        raise self._unknown(last)

    def _marked(self, inst: Any) -> tuple[int, ...]:
        return (self._marks[id(inst)],) if id(inst) in self._marks else ()

    def _statement(self, inst: Any) -> Statement | None:
        line, marks = inst.loc.line, self._marked(inst)
        if isinstance(inst, ir.Del):
            return None
        if isinstance(inst, ir.Assign):
            return self._assign(inst, line, marks)
        if isinstance(inst, ir.SetItem):
            return SetItem(inst.target.name, inst.index.name, inst.value.name, (), line, marks)
        if isinstance(inst, ir.StaticSetItem):
            index = None if inst.index_var is None else inst.index_var.name
            return SetItem(inst.target.name, index, inst.value.name, (inst.index,), line, marks)
        if isinstance(inst, ir.SetAttr):
            return SetAttribute(inst.target.name, inst.attr, inst.value.name, line, marks)
        if isinstance(inst, ir.Print):
            args = tuple(a.name for a in inst.args)
            spread = None if inst.vararg is None else inst.vararg.name
            name = f"$print.{len(self._variables)}"
            self._variables[name] = Constant(None)
            return Set(name, Call(print, args, (), spread), line, marks)
        raise self._unknown(inst)

    def _assign(self, inst: Any, line: int, marks: tuple[int, ...]) -> Statement | None:
        target, value = inst.target.name, inst.value
        if isinstance(value, ir.Expr) and value.op == "iternext":
            pair = self._pairs.get(target, {})
            return Next(value.value.name, pair.get("pair_first", f"{target}.value"), pair["pair_second"], line, marks)
        source = self._source(inst, target, value)
        return None if source is None else Set(target, source, line, marks)

    def _source(self, inst: Any, target: str, value: Any) -> Source | None:
        """Return what an assignment computes; None for what its variable's description or other statements say."""
        of_module = isinstance(value, ir.Expr) and value.op == "getattr" and target in self._symbols
        if target in self._methods or value is ir.UNDEFINED:
            return None
        if of_module and isinstance(self._types[target], types.Function):
            return None
        if isinstance(value, ir.Arg):
            return Argument(value.index)
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return Known(value.value)
        if isinstance(value, ir.Var):
            return Copy(value.name)
        read = _EXPRESSIONS.get(value.op) if isinstance(value, ir.Expr) else None
        if read is None:
            raise self._unknown(inst)
        made: Source | None = read(self, value)
        return made

    def _call(self, expr: Any) -> Source:
        callee, ty = expr.func.name, self._types[expr.func.name]
        args = tuple(a.name for a in expr.args)
        keywords = tuple((name, v.name) for name, v in expr.kws)
        spread = None if expr.vararg is None else expr.vararg.name
        if callee in self._methods:
            of, name = self._methods[callee]
            return Method(of, name, args, keywords, spread)
        if isinstance(ty, Value) and ty.spec[0] != "const":
            return Method(callee, "__call__", args, keywords, spread)
        if isinstance(ty, Value):
            return Call(ty.spec[2], args, keywords, spread)
        if isinstance(ty, types.Dispatcher):
            return self._dispatched(ty.dispatcher, expr, args, keywords, spread)
        if isinstance(ty, types.NumberClass):
            return Call(dtype_of(ty.instance_type), args, keywords, spread)
        python = self._callees.get(callee, getattr(ty, "typing_key", None))
        if python is None:
            raise self._unknown(expr)
        return Call(python, args, keywords, spread, self._symbols.get(callee))

    def _dispatched(self, dispatcher: Any, expr: Any, args: Any, keywords: Any, spread: Any) -> Source:
        if is_library(dispatcher.py_func.__module__):
            return Call(dispatcher, args, keywords, spread)
        signature = self._calls[expr]
        number = self._functions.number(dispatcher, tuple(signature.args))
        names = bound(dispatcher.py_func, args, keywords, spread)
        given = [
            n for n, t in zip(names, signature.args, strict=True) if not isinstance(description_of_type(t), Constant)
        ]
        if None in given:
            raise CuteError(f"{dispatcher.py_func.__name__}: a default that is known only at run time")
        return Invoke(number, tuple(n for n in given if n is not None))

    def _operator(self, expr: Any) -> Source:
        function = expr.immutable_fn if expr.op == "inplace_binop" else expr.fn
        operands = [expr.value] if expr.op == "unary" else [expr.lhs, expr.rhs]
        names, signature = tuple(v.name for v in operands), self._calls[expr]
        if not all(_is_number(self._types[n]) for n in names):
            return Call(function, names)
        return Operator(
            function, names, tuple(map(description_of_type, signature.args)), description_of_type(signature.return_type)
        )

    def _unknown(self, what: Any) -> CuteError:
        return CuteError(
            f"{what}: the IR of kernels has no operation for this statement\n  in line {what.loc.line} of "
            f"{what.loc.filename}"
        )


def _is_number(ty: types.Type) -> bool:
    return isinstance(types.unliteral(ty), (types.Number, types.Boolean)) or isinstance(description_of_type(ty), Scalar)


def _item(reader: _Reader, expr: Any) -> Source:
    if expr.op == "getitem":
        return Item(expr.value.name, expr.index.name)
    return Item(expr.value.name, None if expr.index_var is None else expr.index_var.name, (expr.index,))


_EXPRESSIONS: dict[str, Callable[[_Reader, Any], Source | None]] = {
    "call": _Reader._call,
    "binop": _Reader._operator,
    "inplace_binop": _Reader._operator,
    "unary": _Reader._operator,
    "getattr": lambda reader, e: Attribute(e.value.name, e.attr),
    "getitem": _item,
    "static_getitem": _item,
    "build_tuple": lambda reader, e: Build(tuple(v.name for v in e.items)),
    "exhaust_iter": lambda reader, e: Copy(e.value.name),
    "cast": lambda reader, e: Copy(e.value.name),
    "getiter": lambda reader, e: Iterate(e.value.name),
    "pair_first": lambda reader, e: None,
    "pair_second": lambda reader, e: None,
    "undef": lambda reader, e: None,
    "null": lambda reader, e: None,
}
