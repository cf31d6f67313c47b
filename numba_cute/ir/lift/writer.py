# SPDX-License-Identifier: Apache-2.0
"""One function of a printed module as Python, line by line."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

import numba_cute

from ...dtypes import Boolean, DType
from ...layout.int_tuple import flatten_to_tuple
from ...seam import CuteError
from ..dialect.attributes import CuteType
from ..dialect.spelled import SpelledOperation
from ..python.numbers import number_of
from ..python.writer import HANDLERS, Literal, Names, Writer, identifier
from ..text.python import Text
from . import objects
from .flow import Flow
from .recasts import take_bits
from .spelling import dtype_text, has_basis, is_dynamic, static_text
from .values import Expr, Object, Tree, names_in, rebuilt

Rule = Callable[["Lifter", Any], None]
RULES: dict[str, Rule] = {}
"""The rules that write operations, by name."""
REFUSED: dict[str, str] = {}
"""Operations that no kernel of this library can have, by their names, with the reason."""
R = TypeVar("R", bound=Rule)
TUPLES = ("int_tuple", "shape", "stride", "coord")
LAYOUTS = ("layout", "composed_layout")
WIDEST = 72
"""The longest expression that is written where it is used."""


def lifts(*names: str) -> Callable[[R], R]:
    """Decorate what writes some operations."""

    def register(rule: R) -> R:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


# ------------------------------------------------------------------ names of globals


_ROOMS = ("", "arch", "math", "utils", "pipeline", "runtime", "nvgpu", "nvgpu.cpasync", "nvgpu.warp",
          "nvgpu.warpgroup", "nvgpu.tcgen05")  # fmt: skip


@functools.cache
def _public() -> dict[int, str]:
    """The public objects of this library by their identities, with their names."""
    found: dict[int, str] = {}
    for room in _ROOMS:
        module: Any = numba_cute
        for part in filter(None, room.split(".")):
            module = getattr(module, part)
        path = ".".join(filter(None, ("cute", room)))
        found.setdefault(id(module), path)
        for name, value in vars(module).items():
            if not name.startswith("_") and not isinstance(value, ModuleType) and (callable(value) or _is_dtype(value)):
                found.setdefault(id(value), f"{path}.{name}")
    return found


def _is_dtype(value: Any) -> bool:
    return isinstance(value, DType)


@dataclass
class Globals(Names):
    """The names of a module: those of this library begin with `cute`, others are imported."""

    variables: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    """Static objects by the text that makes them, with their names."""

    def __post_init__(self) -> None:
        self._taken |= {"cute", "cuda"}

    def of(self, value: Any, hint: str) -> str:
        """Return what a global is called."""
        known = _public().get(id(value))
        if known is not None:
            return known
        module = getattr(value, "__module__", None)
        if module is None or not module.startswith(("numba_cute", "numba")):
            raise CuteError(f"lift: {hint} has no name that a file could import")
        self.imports[hint] = module
        self._taken.add(hint)
        return hint

    def constant(self, text: str, hint: str) -> str:
        """Return the name of a static object that is made outside of all functions."""
        found = self.constants.get(text)
        if found is None:
            found = self.constants[text] = self.function(hint.upper())
        return found


# ------------------------------------------------------------------ functions


class Lifter(Writer):
    """Writes one function. flow: what of it is needed. host: whether it runs on the host. globals: of the module."""

    def __init__(self, text: Text, names: Globals, functions: dict[str, str], function: Operation, host: bool) -> None:
        super().__init__(text, names, functions)
        self._text = text
        self.globals, self.host = names, host
        self.flow = Flow(function)
        self.values: dict[Any, Any] = {}
        self.places: dict[str, list[str]] = {}
        self.ordered = self.touched = self._shared = False
        self.begins: list[str] = []
        self._elected = 0
        self._allocator: str | None = None

    def allocator(self) -> str:
        """Return the name of what gives out the launch's shared memory, which is made at the beginning."""
        if self._allocator is None:
            self._allocator = self.local("allocator")
            self.begins.append(f"{self._allocator} = cute.utils.SmemAllocator()")
        return self._allocator

    # ------------------------------------------------------------------ values

    def root(self, value: SSAValue) -> SSAValue:
        """Return the value that this one is."""
        return self.flow.root(value)

    def get(self, value: SSAValue) -> Any:
        """Return what a value is: an Expr, a Literal, a Tree or an Object."""
        value = self.root(value)
        found = self.values.get(value)
        if found is None:
            found = self._told_by_type(value)
            if found is None:
                owner = value.owner
                self.refuse(owner if isinstance(owner, Operation) else None, "its value is not at hand here")
            self.values[value] = found
        return found

    def _told_by_type(self, value: SSAValue) -> Any:
        """Return a value whose type says it whole; None for others."""
        t = value.type
        if isinstance(t, CuteType) and t.is_static:
            if t.kind in TUPLES:
                return static_tree(t.data)
            if t.kind in LAYOUTS:
                return self.static_layout(t)
            return Expr(static_text(t.kind, t.data))
        return self.object_of(t) if objects.is_object(t) else None

    def static_layout(self, t: CuteType) -> Expr:
        """Return a static layout: a long one is made once for the module."""
        text = static_text(t.kind, t.data)
        return Expr(text if len(text) <= 44 else self.globals.constant(text, "layout"))

    def object_of(self, t: Attribute) -> Object:
        """Return the object that a type says, made once for the module."""
        try:
            text = objects.object_text(t)
        except objects.NoSuch as e:
            raise CuteError(str(e)) from e
        return Object(Expr(self.globals.constant(text, objects.NAMES[objects.kind(t)])), objects.kind(t))

    def tree(self, value: SSAValue) -> Tree:
        """Return a tuple, leaf by leaf."""
        found = self.get(value)
        if isinstance(found, Tree):
            return found
        return Tree(found if isinstance(found, Expr) else Expr(self.typed(value)))

    def expr(self, value: SSAValue) -> Expr:
        """Return a value as an expression."""
        found = self.get(value)
        if isinstance(found, Tree):
            return found.text()
        if isinstance(found, Object):
            return found.text
        if isinstance(found, Literal):
            return Expr(self.typed(value)) if _narrow(found) else _number(found)
        return found  # type: ignore[no-any-return]

    def raw(self, value: SSAValue) -> Expr:
        """Return an integer as a sum or a product takes it: a cast to its width may wait."""
        found = self.get(value)
        if isinstance(found, Literal):
            return _number(found)
        made = self.expr(value)
        return made.raw

    def use(self, value: SSAValue) -> str:
        """Return a number as an operand: constants are literals."""
        found = self.get(value)
        return str(_number(found)) if isinstance(found, Literal) and not _narrow(found) else self.expr(value).at(95)

    def typed(self, value: SSAValue) -> str:
        """Return a value as an argument: an integer constant is static."""
        found = self.get(value)
        if isinstance(found, Literal):
            return self.cast(str(found), found.dtype) if _narrow(found) else str(_number(found))
        made = self.expr(value)
        return made.at(95) if self._shared else str(made)

    def constant(self, value: SSAValue) -> Any:
        """Return what a constant is; None for a value that is none."""
        found = self.get(value) if self.root(value) in self.values else None
        return found.value if isinstance(found, Literal) else None

    def dtype_name(self, dtype: DType) -> str:
        """Return the name of an element type."""
        return dtype_text(dtype)

    def is_vector(self, value: SSAValue) -> bool:
        """Say whether a value is a vector."""
        return isinstance(value.type, VectorType)

    def element(self, name: str) -> str:
        """Write an element type by MLIR's name. Raises NoSuch for one that kernels do not have."""
        return objects.elements(name)[0]

    # ------------------------------------------------------------------ binding

    def set(self, value: SSAValue, text: str, natural: DType | None = None) -> None:
        """Give a number its expression. natural: the type that it has in Python; it is cast if that is another."""
        dtype = self.dtype(value)
        expr = text if isinstance(text, Expr) else Expr(text, 0)
        self.bind(value, expr if natural is dtype else Expr(self.cast(expr, dtype), raw=expr))

    def bind(self, value: SSAValue, expr: Expr, moves: bool = True, hint: str = "", tree: bool = False) -> None:
        """Give a value its expression: written where it is used, if it is short and used once, else a variable. moves:
        whether it gives the same wherever it is written. tree: whether it is a tuple, whose leaves are taken alone."""
        value = self.root(value)
        uses = self.flow.uses[value]
        if not self._stays(value, expr, moves, uses):
            name = self.variable(value, hint or None)
            self.line(f"{name} = {expr}")
            expr = expr.named(name)
        self.values[value] = opaque_tree(value.type, expr) if tree else expr

    def _stays(self, value: SSAValue, expr: Expr, moves: bool, uses: int) -> bool:
        if not moves:
            return uses == 1 and self._read_next(value)
        if len(expr) > WIDEST:
            return not uses
        if re.fullmatch(r"[\w.]+(\[[\w, ]+\])*", expr):
            return True
        return uses <= 1 and self._used_here(value)

    def _used_here(self, value: SSAValue) -> bool:
        """Say whether the operations that read a value stand in the block that makes it."""
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        if isinstance(value.owner, Operation):
            block = self.flow.place(value.owner)
        return all(self.flow.place(u) is block for u in self.flow.reading(value))

    def _read_next(self, value: SSAValue) -> bool:
        """Say whether the next operation alone reads a value, in a condition or a store."""
        op = value.owner
        after = op.next_op if isinstance(op, Operation) else None
        while after is not None and after not in self.flow.needed:
            after = after.next_op
        if after is None or [u.operation for u in value.uses if u.operation in self.flow.needed] != [after]:
            return False
        return after.name in ("scf.if", "cute.memref.store", "cute.memref.store_vec")

    def bind_tree(self, value: SSAValue, tree: Tree) -> None:
        """Give a tuple its leaves."""
        self.values[self.root(value)] = tree

    def variable(self, value: SSAValue, hint: str | None = None) -> str:
        """Return a new variable of a value, named as the module names it, or as the operation does."""
        made = self.local(hint or self.text_name(value))
        self.values[value] = Expr(made)
        return made

    def local(self, hint: str) -> str:
        """Return a new variable."""
        return self.names.variable(identifier(hint), self._locals)

    # ------------------------------------------------------------------ tensor memory

    def access_tmem(self, holds: bool = True) -> None:
        """Order what follows, which accesses tensor memory, behind what a barrier let through. The CuTe DSL says none
        of the fences that PTX asks for here. holds: whether others are told of it by this thread's barriers."""
        if not self.ordered:
            self.line("cute.arch.tcgen05_fence_after_thread_sync()")
        self.ordered = True
        self.touched |= holds

    def synchronises(self, arrives: bool = False) -> None:
        """Let tensor memory be ordered anew, since threads meet here. arrives: whether this one tells others."""
        if arrives and self.touched:
            self.line("cute.arch.tcgen05_fence_before_thread_sync()")
            self.touched = False
        self.ordered = False

    def enters_loop(self, op: Operation) -> None:
        """Let tensor memory be ordered anew in each round: what one round accessed, the next one's barriers tell."""
        self.ordered = False
        self.touched |= any(map(objects.tmem_way, op.walk()))

    def gathers_warp(self) -> None:
        """Let one lane's arrival tell what all lanes of its warp have done. The CuTe DSL says nothing of that."""
        if self.touched:
            self.line("cute.arch.tcgen05_fence_before_thread_sync()")
            self.touched = False
        self.line("cute.arch.sync_warp()")

    def place(self, function: str, axis: int) -> str:
        """Return the variable of a thread's place, or a block's, along an axis: all are read at the beginning."""
        names = self.places.setdefault(function, ["_", "_", "_"])
        if names[axis] == "_":
            names[axis] = self.local(_PLACES[function] + "xyz"[axis])
        return names[axis]

    def text_name(self, value: SSAValue) -> str:
        """Return the name that a value has in the text, without the number that makes it unique."""
        name = self._text.names.get(value) or value.name_hint or ""
        if re.fullmatch(r"\d*(_\d+)?|", name):
            name = _hint(value)
        if re.fullmatch(r"iter(_\d+)?", name):
            name = "ptr"
        return re.sub(r"(?<=[A-Za-z_])_\d+$", "", name)

    # ------------------------------------------------------------------ statements

    def by_one_lane(self, op: Operation, text: str) -> None:
        """Write what one lane does alone: of a warp that comes to it as a whole, the elected one."""
        if not self.flow.patterns.uniform.comes(op):
            self.line(text)
            return
        if self._elected != len(self.lines) or self.lines[-1].depth != self._depth + 1:
            self.line("if cute.arch.elect_one():")
        self._depth += 1
        self.line(text)
        self._depth -= 1
        self._elected = len(self.lines)

    def block(self, block: Block) -> None:
        """Write the operations of a block that are needed, but for its terminator."""
        for op in self.flow.walk(block):
            if op.next_op is not None or op.name not in ("scf.yield", "scf.condition", "cuda.return"):
                self.operation(op)

    def operation(self, op: Operation) -> None:
        """Write an operation."""
        with self.at(op):
            if op in self.flow.taking:
                take_bits(self, *self.flow.taking[op])
            rule = RULES.get(op.name)
            if rule is not None:
                try:
                    rule(self, op)
                except objects.NoSuch as e:
                    self.refuse(op, str(e))
                return
            if op.name in REFUSED:
                self.refuse(op, REFUSED[op.name])
            self.shared(op)

    def shared(self, op: Operation) -> None:
        """Write an operation by the rule of modules of this library, in which each value is a variable: what is none
        stands in brackets."""
        handlers = [HANDLERS[c] for c in type(op).__mro__ if c in HANDLERS]
        if not handlers:
            self.refuse(op, "this library has no function that does what it does")
        self._shared = True
        handlers[0](self, op)
        self._shared = False

    def refuse(self, op: Operation | None, why: str) -> NoReturn:
        """Raise the error of an operation: where it stands, and why it is not lifted."""
        position = self._position if op is None else self._text.at.get(op, self._position)
        source = self._text.lines[position[0] - 1 : position[0]]
        shown = f"\n    {source[0].strip()[:240]}" if source else ""
        name = "lift" if op is None else op.name
        raise CuteError(f"{name}: {why}\n  in {self._text.file}:{position[0]}{shown}")

    def assign(self, targets: Sequence[str], values: Sequence[str]) -> None:
        """Assign to several variables at once what they had before."""
        pairs = [(t, str(v)) for t, v in zip(targets, values, strict=True) if t != str(v)]
        for i, (target, value) in enumerate(pairs):
            if names_in(value) & {t for t, _ in pairs[:i]}:
                kept = self.temporary(target)
                self.line(f"{kept} = {value}")
                pairs[i] = (target, kept)
        for target, value in pairs:
            self.line(f"{target} = {value}")


def _narrow(found: Literal) -> bool:
    """Say whether a constant needs its type written: floats do."""
    return found.dtype.is_float


def _number(found: Literal) -> Expr:
    text = str(found)
    return Expr(text, 85 if text.startswith("-") else 100, static=True)


def static_tree(value: Any) -> Tree:
    """Return a static tuple, leaf by leaf."""
    flat = iter([None if x is None else Expr(static_text("int_tuple", x), 85 if str(x).startswith("-") else 100)
                 for x in _leaves(value)])  # fmt: skip
    return Tree(rebuilt(value, flat))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for x in value:
            yield from _leaves(x)
    else:
        yield value


def opaque_tree(t: Attribute, whole: Expr) -> Any:
    """Return a tuple that an expression gives: its leaves are known where its type says them, and else indexed."""
    value: Any = t.data if isinstance(t, CuteType) else t.data[0]  # type: ignore[attr-defined]
    return Tree(_indexed(value, whole), whole)


def _indexed(value: Any, path: Expr) -> Any:
    if isinstance(value, tuple):
        return tuple(_indexed(x, Expr(f"{path.at(95)}[{i}]")) for i, x in enumerate(value))
    if value is None or not is_dynamic(value):
        return static_tree(value).leaves
    return path


_PLACES = {
    "thread_idx": "tid", "block_dim": "bdim", "block_idx": "bid", "grid_dim": "gdim", "cluster_idx": "cluster_",
    "cluster_dim": "clusters_", "block_in_cluster_idx": "rank_", "block_in_cluster_dim": "ranks_",
}  # fmt: skip
_HINTS = {
    "nvvm.read.ptx.sreg.tid": "tid", "nvvm.read.ptx.sreg.ctaid": "block", "nvvm.read.ptx.sreg.nctaid": "blocks",
    "nvvm.elect.sync": "elected", "scf.if": "chosen", "scf.for": "after", "scf.while": "after",
    "cute.memref.load_vec": "loaded", "cute_nvgpu.arch.make_warp_uniform": "warp",
}  # fmt: skip


def _hint(value: SSAValue) -> str:
    """Return a name for a value that the text only numbers."""
    op = value.owner
    if isinstance(op, Block):
        return f"arg{value.index}" if isinstance(value, BlockArgument) else "v"
    for prefix, hint in _HINTS.items():
        if op.name.startswith(prefix):
            return hint
    if isinstance(op, SpelledOperation):
        found = op.hints()
        i = list(op.results).index(value)  # type: ignore[arg-type]
        if i < len(found) and found[i]:
            return found[i]
    from ..dialect.printed_operations import HINTS

    short = op.name.rpartition(".")[2]
    return HINTS.get(short, short if short.isidentifier() and number_of(value.type) is None else "v").replace("{i}", "")


__all__ = ["Globals", "LAYOUTS", "Lifter", "REFUSED", "RULES", "TUPLES", "Boolean", "flatten_to_tuple", "has_basis",
           "lifts", "opaque_tree", "static_tree"]  # fmt: skip
