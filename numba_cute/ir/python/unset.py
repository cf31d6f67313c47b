# SPDX-License-Identifier: Apache-2.0
"""Objects that stand for what is not set yet, where ways meet (`ub.poison`): nothing depends on them, but a variable
that is handed on has to hold something, as no variable of the IR is unset."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from ... import seam
from ...seam import traced
from ...tensor.symbolic import assume
from ...typed.descriptions import (
    Array,
    Constant,
    Description,
    Elements,
    Foreign,
    Group,
    Object,
    RegisterFile,
    Scalar,
    Struct,
    TensorMap,
)


def handed_on(value: SSAValue) -> bool:
    """Say whether what receives a value where ways meet (a result of `scf.if`, what a loop carries) is given on to
    another such variable, so that a variable is read that may have got nothing else."""
    return any(next(_receivers(r), None) is not None for r in _receivers(value))


def _receivers(value: SSAValue) -> Iterator[SSAValue]:
    """List the values of other variables that a value's variable is given to where ways meet."""
    same = _of_one_variable(value)
    for use in (use for v in same for use in v.uses):
        found = _received(use.operation, use.index)
        if found is not None and found not in same:
            yield found


def _of_one_variable(value: SSAValue) -> list[SSAValue]:
    """List the values that have one variable: what a loop carries, and the loop's result."""
    if isinstance(value, BlockArgument):
        loop, block = value.block.parent_op(), value.block
        if isinstance(loop, scf.ForOp) and value.index >= 1:
            return [value, loop.results[value.index - 1]]
        if isinstance(loop, scf.WhileOp) and loop.after_region.block is block:
            return [value, loop.results[value.index]]
    return [value]


def _received(op: Operation, index: int) -> SSAValue | None:
    """Give what receives an operand of a loop, or of what a region yields; None for other operations."""
    if isinstance(op, scf.ForOp):
        return op.body.block.args[index - 2] if index >= 3 else None
    if isinstance(op, scf.WhileOp):
        return op.before_region.block.args[index]
    parent = op.parent_op()
    if isinstance(op, scf.ConditionOp) and isinstance(parent, scf.WhileOp):
        return parent.after_region.block.args[index - 1] if index >= 1 else None
    if not isinstance(op, scf.YieldOp) or parent is None:
        return None
    if isinstance(parent, scf.ForOp):
        return parent.body.block.args[index + 1]
    if isinstance(parent, scf.WhileOp):
        return parent.before_region.block.args[index]
    return parent.results[index]


def blank(d: Description) -> Callable[[], Any] | None:
    """Give the function that makes an object which a description tells of, of zeros; None if none is made so: arrays
    and tensor maps are their caller's."""
    return _blank(d) if _is_made(d) else None


@functools.cache
def _blank(d: Description) -> Callable[[], Any]:
    @traced
    def unset() -> Any:
        return _made(d)

    return unset


def _is_made(d: Description) -> bool:
    if isinstance(d, (Array, Foreign, TensorMap)):
        return False
    if isinstance(d, Group):
        return all(map(_is_made, d.items))
    if isinstance(d, Object):
        return all(map(_is_made, d.fields))
    return not isinstance(d, Struct) or all(_is_made(field) for _, field in d.fields)


def _made(d: Description) -> Any:
    b: Any = seam.current()
    if isinstance(d, Constant):
        return d.value
    if isinstance(d, Scalar):
        number = b.cast(0, d.dtype)
        return number if d.divisor == 1 else assume(number, d.divisor)
    if isinstance(d, RegisterFile):
        return b.registers(d.dtype, d.count)
    if isinstance(d, Elements):
        return b.pack(d.dtype, [b.cast(0, d.dtype)] * d.count)
    if isinstance(d, Group):
        return tuple(map(_made, d.items))
    if isinstance(d, Struct):
        cls: Any = d.cls
        made = cls.__new__(cls)
        for name, field in d.fields:
            setattr(made, name, _made(field))
        return made
    assert isinstance(d, Object)
    return _static(d)


def _static(d: Object) -> Any:
    """Make an instance of a `frozen` class without its checks, as a kernel does that takes one apart."""
    cls: Any = d.cls
    made: Any = object.__new__(cls)
    fields = [f for f in dataclasses.fields(cls) if f.metadata.get("kernel", True)]
    for f in dataclasses.fields(cls):
        object.__setattr__(made, f.name, None)
    for f, field in zip(fields, d.fields, strict=True):
        object.__setattr__(made, f.name, _made(field))
    return made
