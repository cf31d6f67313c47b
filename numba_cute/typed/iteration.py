# SPDX-License-Identifier: Apache-2.0
"""The numbers that a `for` loop goes over, as a range."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

from ..dtypes import Boolean, DType, Int64
from ..seam import CuteError
from .descriptions import Array, Constant, Description, Group, Scalar
from .form import (
    Attribute,
    Call,
    Copy,
    Function,
    Item,
    Iterate,
    Known,
    Next,
    Operator,
    Set,
    Source,
    Statement,
)  # fmt: skip


@dataclass
class Iteration:
    """A range. index: the variable of its numbers. start, stop, step: variables; None for 0 and 1. upward: the step is
    known to be positive. before: statements in front of the loop. each: at the start of its body. starting, stepping:
    where it is written as arithmetic, statements in front of the loop, and before each test of whether it goes on."""

    index: str
    start: str | None
    stop: str
    step: str | None
    upward: bool
    before: list[Statement] = field(default_factory=list)
    each: list[Statement] = field(default_factory=list)
    starting: list[Statement] = field(default_factory=list)
    stepping: list[Statement] = field(default_factory=list)


def iteration_of(function: Function, step: Next) -> Iteration:
    """Find what a loop goes over; variables that it needs are added to the function's. Raises CuteError for what is no
    range, array or tuple of one type."""
    over = _definition(function, step.iterator)
    if isinstance(over, Iterate):
        source = _definition(function, over.of)
        if isinstance(source, Call) and source.callee is range:
            return _Range(function, step).of_range(source.args)
        if _is_sequence(d := function.variables[over.of]):
            return _Range(function, step).of_sequence(over.of, d)
    raise CuteError(
        f"{function.name} loops over {function.variables.get(step.iterator)}: the IR's loops go over ranges, arrays of "
        f"one dimension and tuples of one type\n  in line {step.line} of {function.file}"
    )


def _is_sequence(d: Description) -> bool:
    if isinstance(d, Array):
        return d.ndim == 1
    if not isinstance(d, Group) or not d.items:
        return False
    numbers = all(
        isinstance(x, Scalar) or isinstance(x, Constant) and isinstance(x.value, (int, float)) for x in d.items
    )
    return numbers or len(set(d.items)) == 1


def _definition(function: Function, variable: str) -> Source | None:
    """Find the one assignment of a variable, through copies; None if there are several."""
    while True:
        found = [
            s.source
            for block in function.blocks.values()
            for s in block.statements
            if isinstance(s, Set) and s.target == variable
        ]
        if len(found) != 1:
            return None
        if not isinstance(found[0], Copy):
            return found[0]
        variable = found[0].source


def _is_positive(function: Function, variable: str) -> bool:
    """Say whether a variable is known to be positive: sizes of a block or of the grid, and what is computed of them."""
    d = function.variables.get(variable)
    if isinstance(d, Constant):
        return isinstance(d.value, int) and d.value > 0
    source = _definition(function, variable)
    if isinstance(source, Operator):
        return source.function in (operator.mul, operator.add) and all(
            _is_positive(function, v) for v in source.operands
        )
    if isinstance(source, Item):
        return _is_size(_definition(function, source.of))
    if isinstance(source, Attribute):  # of cuda.blockDim
        whole = _definition(function, source.of)
        return isinstance(whole, Attribute) and whole.name in ("blockDim", "gridDim")
    if isinstance(source, Call) and isinstance(source.callee, DType) and len(source.args) == 1:
        return _is_positive(function, source.args[0])
    return _is_size(source)


def _is_size(source: Source | None) -> bool:
    """Say whether a call gives sizes of a block or of the grid."""
    names = ("gridsize", "block_dim", "grid_dim", "cluster_dim")
    return isinstance(source, Call) and getattr(source.callee, "__name__", "").rpartition(".")[2] in names


class _Range:
    """Makes the iteration of one step."""

    def __init__(self, function: Function, step: Next) -> None:
        self._function, self._step = function, step

    def of_range(self, args: tuple[str, ...]) -> Iteration:
        """Go over `range(*args)`."""
        start, stop, step = (None, *args, None) if len(args) == 1 else (*args, None)[:3]
        assert stop is not None
        known = 1 if step is None else self._known(step)
        upward = known > 0 if known is not None else step is not None and _is_positive(self._function, step)
        made = Iteration(self._step.value, start, stop, step, upward)
        self._counted(made, known)
        return made

    def of_sequence(self, sequence: str, d: Description) -> Iteration:
        """Go over the items of an array or a tuple; those of a tuple are numbers of one type then."""
        before: list[Statement] = []
        if isinstance(d, Group):
            alike = self._new("items", Group((self._function.variables[self._step.value],) * len(d.items)))
            before.append(self._set(alike, Copy(sequence)))
            sequence = alike
        index, count = self._new("index", Scalar(Int64)), self._new("count", Scalar(Int64))
        made = Iteration(index, None, count, None, True)
        made.before += before
        made.before.append(self._set(count, Call(len, (sequence,))))
        made.each.append(self._set(self._step.value, Item(sequence, index)))
        self._counted(made, 1)
        return made

    def _known(self, variable: str) -> Any:
        d = self._function.variables[variable]
        return d.value if isinstance(d, Constant) else None

    def _new(self, what: str, d: Description) -> str:
        name = f"${what}.{self._step.value}"
        self._function.variables[name] = d
        return name

    def _set(self, target: str, source: Source) -> Statement:
        return Set(target, source, self._step.line, self._step.marks)

    def _number(self, value: int) -> tuple[str, Statement]:
        name = self._new(f"constant_{value}", Constant(value))
        return name, self._set(name, Known(value))

    def _counted(self, made: Iteration, step: int | None) -> None:
        """Write the range as arithmetic on a counter, which is one step ahead of the index."""
        d = self._function.variables[made.index]
        dtype = d.dtype if isinstance(d, Scalar) else Int64
        ahead = self._new("next", Scalar(dtype))
        start, step_variable = made.start, made.step
        if start is None:
            start, first = self._number(0)
            made.starting.append(first)
        if step_variable is None:
            step_variable, one = self._number(1)
            made.starting.append(one)
        made.starting.append(self._set(ahead, Copy(start)))
        valid = self._step.valid
        if step is not None:
            made.stepping.append(
                self._compare(valid, operator.lt if step > 0 else operator.gt, ahead, made.stop, dtype)
            )
        else:
            self._either(made, ahead, step_variable, dtype)
        made.stepping.append(self._set(made.index, Copy(ahead)))
        kind = (Scalar(dtype),) * 2
        made.stepping.append(self._set(ahead, Operator(operator.add, (ahead, step_variable), kind, Scalar(dtype))))

    def _either(self, made: Iteration, ahead: str, step: str, dtype: DType) -> None:
        """Write `ahead < stop if step > 0 else ahead > stop`, where the step is known only at run time."""
        zero, first = self._number(0)
        made.starting.append(first)
        up, down, below, above, a, b = (self._new(f"valid_{i}", Scalar(Boolean)) for i in range(6))
        both = (Scalar(Boolean),) * 2
        made.stepping += [
            self._compare(up, operator.gt, step, zero, dtype),
            self._compare(down, operator.lt, step, zero, dtype),
            self._compare(below, operator.lt, ahead, made.stop, dtype),
            self._compare(above, operator.gt, ahead, made.stop, dtype),
            self._set(a, Operator(operator.and_, (up, below), both, Scalar(Boolean))),
            self._set(b, Operator(operator.and_, (down, above), both, Scalar(Boolean))),
            self._set(self._step.valid, Operator(operator.or_, (a, b), both, Scalar(Boolean))),
        ]

    def _compare(self, target: str, function: Any, a: str, b: str, dtype: DType) -> Statement:
        return self._set(target, Operator(function, (a, b), (Scalar(dtype),) * 2, Scalar(Boolean)))
