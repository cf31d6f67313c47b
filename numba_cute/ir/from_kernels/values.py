# SPDX-License-Identifier: Apache-2.0
"""Values of a kernel's variables while its module is made: SSA values, constants, and tuples of both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...compiler.inspection.inference import is_whole
from ...typed.descriptions import Constant, Description, Group, Scalar
from ..library import arithmetic
from ..library.calls import pattern_of
from ..library.operations import CastOp, MakeTuple, SliceOp, StaticOp, has_value, make
from ..library.types import type_of

Held: TypeAlias = Any
"""An SSA value, a constant, or a tuple of these."""


def carried_types(d: Description) -> list[Attribute]:
    """List the types of the SSA values that hold a variable where ways meet: tuples by their items, and nothing of
    what a description says whole."""
    if is_whole(d):
        return []
    if isinstance(d, Group):
        return [t for item in d.items for t in carried_types(item)]
    return [type_of(d)]


class Builder:
    """Appends operations to a block. file, line: where what they are of stands."""

    def __init__(self, block: Block, file: str) -> None:
        self.block, self.file, self.line = block, file, 0
        self.made: list[Operation] = []  # since the last statement began
        self._constants: dict[Any, SSAValue] = {}

    def within(self, block: Block) -> Builder:
        """Give one for a block of a region within this one's, which sees this one's constants."""
        inner = Builder(block, self.file)
        inner.line, inner._constants = self.line, dict(self._constants)
        return inner

    def emit(self, op: Operation) -> Any:
        """Append an operation; gives its result, or None."""
        if self.line:
            op.location = FileLineColLoc(StringAttr(self.file), IntAttr(self.line), IntAttr(1))
        self.block.add_op(op)
        self.made.append(op)
        return op.results[0] if op.results else None

    # ------------------------------------------------------------ values

    def number(self, value: Any, d: Scalar) -> SSAValue:
        """Give a known number as a value of this description."""
        key = type(value), repr(value), d
        if key not in self._constants:
            if d.divisor == 1:
                made = arithmetic.constant(value, d.dtype, self.emit)
            else:
                made = self.emit(make(CastOp, *pattern_of([value]), type_of(d)))
            self._constants[key] = made
        return self._constants[key]

    def whole(self, d: Description) -> SSAValue:
        """Give what a description says whole as a value of its own."""
        if d not in self._constants:
            self._constants[d] = self.emit(StaticOp.create(result_types=[type_of(d)]))
        return self._constants[d]

    def converted(self, held: Held, of: Description, to: Description) -> Held:
        """Convert what a variable holds to another description, as an assignment does."""
        if of == to or isinstance(to, Constant):
            return held
        if isinstance(to, Group) and isinstance(of, Group) and len(to.items) == len(of.items):
            items = self.items(held, of)
            return tuple(self.converted(x, a, b) for x, a, b in zip(items, of.items, to.items, strict=True))
        if is_whole(to):
            return self.whole(to)
        if isinstance(to, Scalar) and isinstance(held, (bool, int, float)):
            return self.number(held, to)
        if isinstance(to, Scalar) and isinstance(of, Scalar):
            return arithmetic.cast(self.single(held, of), of, to, self.emit)
        return self.emit(make(CastOp, *pattern_of([self.single(held, of)]), type_of(to)))

    def items(self, held: Held, d: Group) -> tuple[Held, ...]:
        """Take a tuple apart."""
        if isinstance(held, tuple):
            return held
        return tuple(self.item(held, d, i) for i in range(len(d.items)))

    def item(self, held: Held, d: Group, index: int) -> Held:
        """Take an item of a tuple."""
        if isinstance(held, tuple):
            return held[index]
        item = d.items[index]
        if isinstance(item, Constant):
            return item.value
        return self.emit(make(SliceOp, *pattern_of([held, index]), type_of(item)))

    def single(self, held: Held, d: Description) -> SSAValue:
        """Give what a variable holds as one SSA value."""
        if isinstance(held, SSAValue):
            return held
        if isinstance(held, tuple):
            found: SSAValue = self.emit(make(MakeTuple, *pattern_of([held]), type_of(d)))
            return found
        if isinstance(d, Scalar) or isinstance(held, (bool, int, float)):
            return self.number(held, d if isinstance(d, Scalar) else Scalar(arithmetic.number_of(d)))
        return self.whole(d)

    # ------------------------------------------------------------ where ways meet

    def leaves(self, held: Held, d: Description) -> Iterator[SSAValue]:
        """List the SSA values of what a variable holds, as `carried_types` lists their types."""
        if is_whole(d):
            return
        if isinstance(d, Group):
            for item, of in zip(self.items(held, d), d.items, strict=True):
                yield from self.leaves(item, of)
        else:
            yield self.single(held, d)


def assembled(d: Description, leaves: Iterator[SSAValue]) -> Held:
    """Put what a variable holds together again: the converse of `Builder.leaves`."""
    if isinstance(d, Constant):
        return d.value
    if isinstance(d, Group):
        return tuple(assembled(item, leaves) for item in d.items)
    if is_whole(d):
        return Whole(d)
    return next(leaves)


class Whole:
    """Stands for what a description says whole and no operation of the place made."""

    def __init__(self, description: Description) -> None:
        self.description = description


__all__ = ["Builder", "Held", "Whole", "assembled", "carried_types", "has_value"]
