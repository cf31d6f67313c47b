# SPDX-License-Identifier: Apache-2.0
"""A kernel as CuTe operations: what each of its statements calls, on what, and what comes of it.

While a `Recorder` is active, each of Numba's statements that involves this library becomes an `Operation`, and the
instructions that it lowers to are given the operation's number as their source column: so PTX can be traced back to
it after optimisation (see `ptx_lines`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Protocol

from ... import seam
from ...seam.ground.records import dataclass
from ..bridge.object_types import BoundJitted, BoundTraced, StructRef, Value
from ..ground.numba_cuda import ir, types
from .spelled import spelling
from .type_descriptions import description_of_type

FIRST_COLUMN, LAST_COLUMN = 2, 65535
"""The source columns that operations have: 16 bits, and 1 is what Numba gives to every statement."""


@dataclass(frozen=True)
class Operation:
    """One operation. line: in the source. name: as in CuTe's IR ("cute.copy"). operands: variables ("%sA"), temporary
    results ("%3"), constants. operand_types: in the same order, "" for constants. result: the variable or number it is
    assigned to, or None. type: the result's, or "". ptx: the instructions that it became, in their order in the PTX.
    An operation without a name is ordinary Numba code of its line."""

    line: int
    name: str
    operands: tuple[str, ...] = ()
    operand_types: tuple[str, ...] = ()
    result: str | None = None
    type: str = ""
    ptx: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        if not self.name:
            return "(Numba)"
        text = f"{self.name} {', '.join(self.operands)}".rstrip()
        if self.result is not None:
            return f"{self.result} = {text} : {self.type}"
        known = [t for t in self.operand_types if t]
        return f"{text} : ({', '.join(known)})" if known else text


class Recorder:
    """The operations of one function, in the order in which it is lowered. columns: the source column of each."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.arguments: list[tuple[str, str]] = []
        self.operations: list[Operation] = []
        self.columns: dict[int, int] = {}
        self._names: dict[str, str] = {}
        self._written: dict[str, str] = {}  # temporaries that stand for something else: how they are written

    def statement(self, lowerer: Any, inst: Any) -> int:
        """Record what a statement does; gives the source column for its instructions."""
        made = _operation(self, lowerer, inst)
        if made is None:
            return 1
        self.operations.append(made)
        column = FIRST_COLUMN + len(self.operations) - 1
        if column > LAST_COLUMN:
            return 1
        self.columns[column] = len(self.operations) - 1
        return column

    def name(self, variable: str) -> str:
        """Return the text of a variable: its own name, or a number for a temporary one."""
        if variable in self._written:
            return self._written[variable]
        if not variable.startswith("$"):
            return "%" + variable.split(".")[0]
        return self._names.setdefault(variable, f"%{len(self._names)}")

    def use(self, variable: Any, typemap: Any) -> tuple[str, str]:
        """(how an operand is written, its type or "" for a constant)."""
        ty = typemap[variable.name]
        shown = constant(ty)
        return (shown, "") if shown is not None else (self.name(variable.name), type_text(ty))

    def stands_for(self, target: str, expr: Any, typemap: Any) -> bool:
        """Return whether an expression only names what there is: a method of an object, a tuple of variables."""
        if expr.op == "getattr" and isinstance(typemap[target], (BoundTraced, BoundJitted)):
            self._written[target] = self.use(expr.value, typemap)[0]
            return True
        if expr.op == "build_tuple" and target.startswith("$"):
            self._written[target] = f"({', '.join(self.use(v, typemap)[0] for v in expr.items)})"
            return True
        return False


class Numbering(Protocol):
    """A numbering of the statements of one function while it is lowered."""

    function: Callable[..., Any]

    def statement(self, lowerer: Any, inst: Any) -> int:
        """Give the source column for a statement's instructions."""


_active: list[Numbering] = []


@contextmanager
def recording(recorder: Numbering) -> Iterator[None]:
    """Let a recorder number the statements of its function while that is compiled."""
    _active.append(recorder)
    try:
        yield
    finally:
        _active.pop()


def is_recorded(function: Callable[..., Any]) -> bool:
    """Return whether the operations of this function are being recorded."""
    return bool(_active) and _active[-1].function is function


class Recorded:
    """Beside a class that lowers: gives what is lowered of a statement the column that its number is."""

    debuginfo: Any

    def lower_inst(self, inst: Any) -> Any:
        column = _active[-1].statement(self, inst)
        self.debuginfo._di_location = functools.partial(_location, self.debuginfo, column)
        return super().lower_inst(inst)  # type: ignore[misc]


def _location(debuginfo: Any, column: int, line: int) -> Any:
    place = {"line": line, "column": column, "scope": debuginfo.subprograms[-1]}
    return debuginfo.module.add_debug_info("DILocation", place)


# ---------------------------------------------------------------- statements


def _operation(recorder: Recorder, lowerer: Any, inst: Any) -> Operation | None:
    typemap, line = lowerer.fndesc.typemap, inst.loc.line
    if isinstance(inst, ir.Assign):
        if isinstance(inst.value, ir.Arg):
            ty = typemap[inst.target.name]
            recorder.arguments.append((recorder.name(inst.target.name), constant(ty) or type_text(ty)))
            return None
        if not isinstance(inst.value, ir.Expr) or recorder.stands_for(inst.target.name, inst.value, typemap):
            return None
        found = _expression(recorder, typemap, inst.value)
        ty = typemap[inst.target.name]
        if found is None or (constant(ty) is not None and not isinstance(ty, types.NoneType)):
            return None
        name, operands = found
        if name == "cute.get":
            name = "cute.slice" if isinstance(ty, Value) else "cute.load"
        if isinstance(ty, types.NoneType):
            return Operation(line, name, *_columns(operands))
        return Operation(line, name, *_columns(operands), recorder.name(inst.target.name), type_text(ty))
    use = functools.partial(recorder.use, typemap=typemap)
    if isinstance(inst, (ir.SetItem, ir.StaticSetItem)) and _is_ours(typemap[inst.target.name]):
        index = inst.index if isinstance(inst, ir.SetItem) else inst.index_var
        return Operation(line, "cute.store", *_columns([use(inst.target), use(index), use(inst.value)]))
    if isinstance(inst, ir.SetAttr) and _is_ours(typemap[inst.target.name]):
        return Operation(line, f"cute.set_{inst.attr}", *_columns([use(inst.target), use(inst.value)]))
    return None


def _columns(operands: list[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(o for o, _ in operands), tuple(t for _, t in operands)


def _expression(recorder: Recorder, typemap: Any, expr: Any) -> tuple[str, list[tuple[str, str]]] | None:
    """(name, operands) of an expression that involves this library; None for any other."""
    use = functools.partial(recorder.use, typemap=typemap)
    if expr.op == "call":
        return _call(use, typemap, expr)
    if expr.op == "getattr" and _is_ours(typemap[expr.value.name]):
        return f"cute.get_{expr.attr}", [use(expr.value)]
    if expr.op in ("getitem", "static_getitem") and _is_ours(typemap[expr.value.name]):
        index = expr.index if expr.op == "getitem" else expr.index_var
        return "cute.get", [use(expr.value), use(index)] if index is not None else [use(expr.value)]
    if expr.op in ("binop", "inplace_binop"):
        if any(_is_ours(typemap[v.name]) for v in (expr.lhs, expr.rhs)):
            return f"cute.{expr.fn.__name__}", [use(expr.lhs), use(expr.rhs)]
    if expr.op == "unary" and _is_ours(typemap[expr.value.name]):
        return f"cute.{expr.fn.__name__}", [use(expr.value)]
    return None


def _call(use: Any, typemap: Any, expr: Any) -> tuple[str, list[tuple[str, str]]] | None:
    callee = typemap[expr.func.name]
    given = [use(a) for a in expr.args]
    given += [(f"{name}={shown}", ty) for name, (shown, ty) in ((n, use(v)) for n, v in expr.kws)]
    if expr.vararg is not None:
        given.append(("*" + use(expr.vararg)[0], use(expr.vararg)[1]))
    if isinstance(callee, (BoundTraced, BoundJitted)):
        return _method(callee), [use(expr.func), *given]
    if isinstance(callee, Value):
        return _function(callee.spec[2] if callee.spec[0] == "const" else callee.spec[1]), given
    if isinstance(callee, types.Dispatcher):
        return _function(callee.dispatcher.py_func), given
    return None


def _is_ours(ty: Any) -> bool:
    return isinstance(ty, StructRef) or (isinstance(ty, Value) and ty.spec[0] == "node")


def _function(fn: Any) -> str:
    """A function's or class's name with the part of the library that it is known by."""
    name = getattr(fn, "__qualname__", None) or getattr(fn, "name", None) or type(fn).__name__
    return _part(fn) + name.split("<locals>.")[-1]


_ROOMS = {
    "arch": "cute.arch.",
    "pipeline": "pipeline.",
    "utils": "utils.",
    "math": "cute.math.",
    "nvgpu": "cute_nvgpu.",
}
"""The parts by which rooms' functions and classes are known that bear no mark of their own."""


def _part(obj: Any) -> str:
    """The part of the library that a function, a class or its object is known by: what it is marked with
    (`seam.known_as`), or what its room's things are called."""
    marked = seam.part_of(obj)
    if marked is not None:
        return f"{marked}."
    package, _, rest = (obj.__module__ or type(obj).__module__).partition(".")
    return _ROOMS.get(rest.partition(".")[0], "cute.") if package == "numba_cute" else "call @"


def _method(bound: Any) -> str:
    """A method's name: with its class where that is one of pipelines, of utils, or of the user."""
    this = bound.this
    held = this.cls if isinstance(this, StructRef) else this.spec[2] if this.spec[0] == "const" else this.spec[1]
    if _part(held).startswith("cute"):
        return f"cute.{bound.attr}"
    return f"{_part(held)}{getattr(held, '__name__', type(held).__name__)}.{bound.attr}"


# ---------------------------------------------------------------- types


def type_text(ty: Any) -> str:
    """Any type, as the CuTe IR writes it; of a method its object's."""
    if isinstance(ty, (BoundTraced, BoundJitted)):
        ty = ty.this
    text: str = spelling().spell(description_of_type(ty))
    return text


def constant(ty: Any) -> str | None:
    """Return the text of a value that its type holds whole; None if there is more to it."""
    if isinstance(ty, types.Literal):
        return repr(ty.literal_value)
    if isinstance(ty, types.NoneType):
        return "_"
    if isinstance(ty, types.BaseTuple):
        parts = [constant(t) for t in ty]
        return None if None in parts else f"({', '.join(p for p in parts if p is not None)})"
    if isinstance(ty, Value) and ty.spec[0] == "const":
        held = ty.spec[2]
        return held.name if isinstance(held, seam.StaticEnum) else getattr(held, "__name__", repr(held))
    return None
