# SPDX-License-Identifier: Apache-2.0
"""A typed kernel as neutral data: blocks of statements on named variables, with a description of each variable.

The compiler makes it of Numba's IR (`inspection.reading.typed_kernel`). Nothing here is Numba's own: `numba_cute.ir`
makes modules of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .descriptions import Constant, Description

# ---------------------------------------------------------------- what a statement computes


@dataclass(frozen=True)
class Argument:
    """The function's argument of this number."""

    index: int


@dataclass(frozen=True)
class Known:
    """A value of the source: written, global, or of a closure."""

    value: Any


@dataclass(frozen=True)
class Copy:
    """A copy of another variable, converted to the target's description."""

    source: str


@dataclass(frozen=True)
class Call:
    """A call of a Python object. spread: a variable that holds further positional arguments. symbol: where the source
    found it, as "numba.cuda:atomic.add"; None for what stands there by a name of its own."""

    callee: Any
    args: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...] = ()
    spread: str | None = None
    symbol: str | None = None


@dataclass(frozen=True)
class Method:
    """A call of the method `name` of what a variable holds; the object itself is called by `__call__`."""

    of: str
    name: str
    args: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...] = ()
    spread: str | None = None


@dataclass(frozen=True)
class Invoke:
    """A call of one of the user's device functions, by its number in `TypedKernel.functions`. args: for each of its
    parameters that are not constants."""

    function: int
    args: tuple[str, ...]


@dataclass(frozen=True)
class Operator:
    """A Python operator of numbers. function: `operator.add` …. wanted: as what it takes its operands. given: as what
    it gives its result, before this is converted to the target."""

    function: Callable[..., Any]
    operands: tuple[str, ...]
    wanted: tuple[Description, ...]
    given: Description


@dataclass(frozen=True)
class Build:
    """A tuple of what these variables hold."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    """An attribute of what a variable holds."""

    of: str
    name: str


@dataclass(frozen=True)
class Item:
    """`of[index]`. known: (the index,) where it is known whole."""

    of: str
    index: str | None
    known: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Iterate:
    """An iterator over what a variable holds."""

    of: str


Source = Argument | Known | Copy | Call | Method | Invoke | Operator | Build | Attribute | Item | Iterate


def read_by(source: Source) -> Iterator[str]:
    """List the variables that an expression reads."""
    if isinstance(source, Copy):
        yield source.source
    elif isinstance(source, (Call, Method)):
        if isinstance(source, Method):
            yield source.of
        yield from source.args
        yield from (v for _, v in source.keywords)
        if source.spread is not None:
            yield source.spread
    elif isinstance(source, Invoke):
        yield from source.args
    elif isinstance(source, Operator):
        yield from source.operands
    elif isinstance(source, Build):
        yield from source.items
    elif isinstance(source, (Attribute, Iterate)):
        yield source.of
    elif isinstance(source, Item):
        yield source.of
        if source.index is not None:
            yield source.index


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Set:
    """`target = source`. line: of the source, here and below. marks: its numbers in `TypedKernel.ptx`."""

    target: str
    source: Source
    line: int = 0
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class SetItem:
    """`of[index] = value`."""

    of: str
    index: str | None
    value: str
    known: tuple[Any, ...] = ()
    line: int = 0
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class SetAttribute:
    """`of.name = value`."""

    of: str
    name: str
    value: str
    line: int = 0
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Next:
    """Take the next of an iterator: `value` if `valid`."""

    iterator: str
    value: str
    valid: str
    line: int = 0
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Raise:
    """Raise an exception; the function ends."""

    exception: Any
    args: tuple[Any, ...]
    line: int = 0
    marks: tuple[int, ...] = ()


Statement = Set | SetItem | SetAttribute | Next | Raise

# ---------------------------------------------------------------- blocks


@dataclass(frozen=True)
class Jump:
    """Go on with a block."""

    target: int


@dataclass(frozen=True)
class Branch:
    """Go on with the block `then` if a variable holds what is true, else with `otherwise`."""

    condition: str
    then: int
    otherwise: int
    line: int = 0
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Return:
    """End the function. value: what it gives, or None."""

    value: str | None
    line: int = 0
    marks: tuple[int, ...] = ()


Terminator = Jump | Branch | Return


@dataclass(frozen=True)
class Block:
    """Statements that run one after the other, and what comes then."""

    statements: tuple[Statement, ...]
    terminator: Terminator


@dataclass(frozen=True)
class Function:
    """One function. parameters: their variables, in order. variables: what each holds. result: what it gives;
    Constant(None) for nothing. entry: the label of its first block. options: what `cuda.jit` was told."""

    python: Callable[..., Any]
    parameters: tuple[str, ...]
    variables: dict[str, Description]
    blocks: dict[int, Block]
    entry: int
    result: Description = Constant(None)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.python.__name__

    @property
    def file(self) -> str:
        return self.python.__code__.co_filename

    @property
    def line(self) -> int:
        return self.python.__code__.co_firstlineno


@dataclass(frozen=True)
class TypedKernel:
    """A kernel, and the device functions of the user that it calls (functions[0] is the kernel; each function comes
    after one that calls it). cluster: its shape, or None. ptx: the instructions that
    came of the kernel's statements, by their marks; under 0, of no one statement."""

    arch: str
    functions: tuple[Function, ...]
    cluster: tuple[int, int, int] | None = None
    ptx: dict[int, tuple[str, ...]] = field(default_factory=dict)
