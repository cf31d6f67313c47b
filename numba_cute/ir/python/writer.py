# SPDX-License-Identifier: Apache-2.0
"""The Python of one function, line by line, each with its place in the text of the IR."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, TypeVar

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dtypes import DType, Float64
from ...seam import CuteError
from ...typed.descriptions import Constant
from ..library.types import description_of, is_described
from ..text.python import Text
from .numbers import number_of

Handler = Callable[["Writer", Any], None]
HANDLERS: dict[type[Operation], Handler] = {}
"""The functions that write operations, by class."""
H = TypeVar("H", bound=Handler)


def writes(*operations: type[Operation]) -> Callable[[H], H]:
    """Decorate what writes some operations."""

    def register(handler: H) -> H:
        HANDLERS.update(dict.fromkeys(operations, handler))
        return handler

    return register


@dataclass(frozen=True)
class Literal:
    """A number that an `arith.constant` gives: it is written where it is used. poison: whether nothing depends on it;
    it is then none that is assigned."""

    value: Any
    dtype: DType
    poison: bool = False

    def __str__(self) -> str:
        if isinstance(self.value, float):
            if self.value - self.value:  # kernels read no numbers from text
                return "(1e999 * 0.0)" if self.value != self.value else "1e999" if self.value > 0 else "(-1e999)"
            return repr(self.value)
        return repr(self.value)


def identifier(name: str) -> str:
    """Return the Python name nearest to a name of the IR."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not made or made[0].isdigit():
        made = f"v{made}"
    return f"{made}_" if keyword.iskeyword(made) or hasattr(builtins, made) else made


@dataclass
class Names:
    """The names of a module's functions. variables: those that they have, or will have. space: each global with what it
    is."""

    variables: set[str]
    space: dict[str, Any] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _of: dict[int, str] = field(default_factory=dict)

    def of(self, value: Any, hint: str) -> str:
        """Return the name of a global that holds `value`: a new one, near `hint`, at its first use."""
        found = self._of.get(id(value))
        if found is None:
            found = self._of[id(value)] = _unused(identifier(hint), self._taken, self.variables)
            self._taken.add(found)
            self.space[found] = value  # which keeps it alive, so that no id is another's
        return found

    def function(self, symbol: str) -> str:
        """Return the name of a function, which variables then avoid."""
        found = _unused(identifier(symbol), self._taken)
        self._taken.add(found)
        return found

    def variable(self, hint: str, others: set[str]) -> str:
        """Return the name of a variable of a function whose `others` are called otherwise."""
        found = _unused(hint, self._taken, others)
        others.add(found)
        self.variables.add(found)
        return found


def _unused(name: str, *taken: set[str]) -> str:
    made, n = name, 0
    while any(made in names for names in taken):
        n += 1
        made = f"{name}_{n}"
    return made


@dataclass(frozen=True)
class Line:
    """A line of Python. position: that of the operation that it is of, in the text of the IR."""

    depth: int
    text: str
    position: tuple[int, int]


def _maker(value: SSAValue) -> Any:
    """Return the operation that gives a value, or whose block takes it."""
    return value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()


class Writer:
    """Writes one function. text: of the module. names: the globals. functions: the Python name of each function of the
    module."""

    def __init__(self, text: Text, names: Names, functions: dict[str, str]) -> None:
        self.text, self.names, self.functions = text, names, functions
        self.lines: list[Line] = []
        self.values: dict[SSAValue, str | Literal] = {}
        self._locals: set[str] = set()
        self._depth = 0
        self._position = (1, 0)

    # Statements

    def line(self, text: str) -> None:
        """Write a line of Python at the operation under way."""
        self.lines.append(Line(self._depth, text, self._position))

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """Write `head`, and the lines that are written meanwhile below it."""
        self.line(head)
        before = len(self.lines)
        self._depth += 1
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def block(self, block: Block) -> None:
        """Write the operations of a block, but for its terminator."""
        for op in block.ops:
            if op.next_op is not None or not op.has_trait(IsTerminator):
                self.operation(op)

    def operation(self, op: Operation) -> None:
        """Write an operation."""
        with self.at(op):
            handlers = [HANDLERS[c] for c in type(op).__mro__ if c in HANDLERS]
            if not handlers:
                self.refuse(op, "it is not an operation that a kernel can be made of")
            handlers[0](self, op)

    def expression_of(self, operations: Sequence[Operation], value: SSAValue) -> str | None:
        """Return operations as one expression, which gives `value`; None if one of them is none."""
        known, lines = dict(self.values), len(self.lines)
        for op in operations:
            self.operation(op)
            made = [line.text for line in self.lines[lines:]]
            del self.lines[lines:]
            name, equals, text = made[0].partition(" = ") if made else ("", "", "")
            if len(made) > 1 or made and (not equals or len(op.results) != 1 or name != self.values[op.results[0]]):
                self.values = known
                return None
            if made:
                self.values[op.results[0]] = f"({text})"
        found = self.typed(value)
        return found[1:-1] if value.owner in operations and found[0] == "(" else found

    @contextmanager
    def at(self, op: Operation) -> Iterator[None]:
        """Let the lines that are written meanwhile have the place of `op`; one without a place has its parent's."""
        before = self._position
        self._position = self.text.at.get(op, before)
        yield
        self._position = before

    def refuse(self, op: Operation, why: str) -> Any:
        """Raise the error of an operation: where it stands, and why no kernel can have it."""
        line, _ = self.text.at.get(op, self._position)
        source = self.text.lines[line - 1 : line]
        shown = f"\n    {source[0].strip()}" if source else ""
        raise CuteError(f"{op.name}: {why}\n  in {self.text.file}:{line}{shown}")

    # Values

    def variable(self, value: SSAValue, hint: str | None = None) -> str:
        """Return the variable of a value, made now if it has none."""
        found = self.values.get(value)
        if found is None:
            name = identifier(hint or self.text.names.get(value) or value.name_hint or "v")
            found = self.values[value] = self.names.variable(name, self._locals)
        assert isinstance(found, str)
        return found

    def temporary(self, hint: str = "t") -> str:
        """Return a variable that no value has."""
        return self.names.variable(f"_{hint}", self._locals)

    def _known(self, value: SSAValue) -> str | Literal:
        found = self.values.get(value)
        if found is None:
            name = value.name_hint or self.text.names.get(value) or "its result"
            self.refuse(_maker(value), f"%{name} is used where no way has set it: before that, or in another block")
        return found  # type: ignore[return-value]

    def dtype(self, value: SSAValue) -> DType:
        """Return the element type of a number."""
        found = number_of(value.type)
        if found is None:
            self.refuse(_maker(value), f"{value.type} is not a type of numbers that kernels compute with")
        return found  # type: ignore[return-value]

    def static(self, value: SSAValue) -> Constant | None:
        """Return what a value is whose type says it whole, and that has no registers; None for any other."""
        if not is_described(value.type):
            return None
        found = description_of(value.type)
        return found if isinstance(found, Constant) else None

    def use(self, value: SSAValue) -> str:
        """Return a number as an operand of Python's operators: constants are literals."""
        found = self._known(value)
        if isinstance(found, str):
            return self.typed(value)
        if found.dtype.is_float and found.dtype.width < 64:
            return self.typed(value)
        return f"({found})" if str(found).startswith("-") else str(found)

    def typed(self, value: SSAValue) -> str:
        """Return a value with its type: the constant of an `arith.constant` is a number known only at run time, one
        that the type says is static."""
        static = self.static(value)
        if static is not None:
            return self.expression(static.value)
        found = self._known(value)
        return found if isinstance(found, str) else self.cast(str(found), found.dtype)

    def expression(self, value: Any) -> str:
        """Return a static value: a number, a string or None as it is, a tuple of its items, all else as a global."""
        if value is None or isinstance(value, (bool, int, str)) and type(value) in (bool, int, str):
            return repr(value)
        if isinstance(value, float):
            return str(Literal(value, Float64))
        if type(value) is tuple:
            return f"({', '.join(map(self.expression, value))}{',' if len(value) == 1 else ''})"
        if type(value) is slice:
            parts = ", ".join(map(self.expression, (value.start, value.stop, value.step)))
            return f"slice({parts})"
        if isinstance(value, MethodType):  # a class's
            return f"{self.expression(value.__self__)}.{value.__name__}"
        name = getattr(value, "__name__", None) or getattr(getattr(value, "py_func", None), "__name__", None)
        if isinstance(value, DType):
            name = value.name
        if name is not None and getattr(builtins, name, None) is value:
            return str(name)
        return self.names.of(value, name.rpartition(".")[2] if name else type(value).__name__.lower())

    def all(self, values: Sequence[SSAValue]) -> list[str]:
        """Return each of several values as `typed` gives it."""
        return [self.typed(v) for v in values]

    def give(self, targets: Sequence[str], values: Sequence[SSAValue]) -> None:
        """Assign values to several variables at once, but for objects that nothing depends on: a number is given, since
        what follows may hand it on."""
        held = [self.values.get(v) for v in values]
        wanted = [i for i, h in enumerate(held) if not (isinstance(h, Literal) and h.poison and h.value is None)]
        self.assign([targets[i] for i in wanted], [self.typed(values[i]) for i in wanted])

    def constant(self, value: SSAValue) -> Any:
        """Return what a constant is; None for a value that is none."""
        found = self.values.get(value)
        return found.value if isinstance(found, Literal) else None

    def dtype_name(self, dtype: DType) -> str:
        """Return the name of an element type."""
        return self.names.of(dtype, dtype.name)

    def cast(self, text: str, dtype: DType) -> str:
        """Return an expression cast to an element type."""
        return f"{self.dtype_name(dtype)}({text})"

    def set(self, value: SSAValue, text: str, natural: DType | None = None) -> None:
        """Assign a number to a value. text: the expression. natural: the type that Numba gives it; it is cast if that
        is not the value's, or None."""
        dtype = self.dtype(value)
        self.line(f"{self.variable(value)} = {text if natural is dtype else self.cast(text, dtype)}")

    def assign(self, targets: Sequence[str], values: Sequence[str]) -> None:
        """Assign to several variables at once what they had before."""
        pairs = [(t, v) for t, v in zip(targets, values) if t != v]
        for i, (_, value) in enumerate(pairs):
            if value in {t for t, _ in pairs[:i]}:
                kept = self.temporary()
                self.line(f"{kept} = {value}")
                pairs[i] = (pairs[i][0], kept)
        for target, value in pairs:
            self.line(f"{target} = {value}")
