# SPDX-License-Identifier: Apache-2.0
"""Helpers with which the passes change operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Group
from ..library.calls import pattern_of
from ..library.operations import Inferred, call, result_type, target_of


class Refused(CuteError):
    """The error of a pass that cannot take an operation. op: that one."""

    def __init__(self, op: Operation, why: object) -> None:
        super().__init__(f"{op.name}: {why}")
        self.op = op


def rewrite_each(module: ModuleOp, pattern: RewritePattern) -> None:
    """Apply a pattern once to each operation that is there now. CuteError: `Refused`, with the operation."""
    for op in [op for op in module.walk() if op is not module]:
        try:
            pattern.match_and_rewrite(op, PatternRewriter(op))
        except Refused:
            raise
        except CuteError as e:
            raise Refused(op, e) from e


def only_gives(op: Operation) -> bool:
    """Return whether an operation does nothing but give its results."""
    return bool(would_be_trivially_dead(op))


def plain_constant(d: Description) -> tuple[Any, ...] | None:
    """Return (value,) of a description that says a constant, or a tuple of constants; None of others."""
    if isinstance(d, Constant):
        return (d.value,)
    if isinstance(d, Group):
        items = [plain_constant(item) for item in d.items]
        return None if None in items else (tuple(item[0] for item in items if item is not None),)
    return None


def values_of(op: Inferred) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return an operation's arguments: nested tuples of SSA values and constants."""
    return op.arguments.filled(lambda o: op.values[o.index])


def with_values(op: Inferred, change: Callable[[SSAValue], Any]) -> Operation:
    """Make the operation again with `change(value)` in the place of each operand: a value, a constant or a tuple."""
    positional, keywords = op.arguments.filled(lambda o: change(op.values[o.index]))
    operands, arguments = pattern_of(positional, tuple(keywords.items()))
    made = type(op).create(
        operands=operands, result_types=[r.type for r in op.results], attributes=op.attributes,
        properties={**op.properties, "arguments": arguments},
    )  # fmt: skip
    return placed(made, op)


def placed(made: Operation, op: Operation) -> Operation:
    """Give an operation the place in the source of another, in whose stead it is."""
    made.location = op.location
    for old, new in zip(op.results, made.results):
        new.name_hint = old.name_hint
    return made


class Maker:
    """Makes operations in the place of another, one after the other, with the types of their results inferred.

    rewriter: of the pattern. op: the operation that they are in the place of."""

    def __init__(self, rewriter: PatternRewriter, op: Operation) -> None:
        self.rewriter, self.op, self.arch = rewriter, op, target_of(op)

    def insert(self, made: Operation) -> Operation:
        """Insert an operation before the one whose place it takes."""
        made.location = self.op.location
        self.rewriter.insert_op(made)
        return made

    def call(self, callee: Any, args: Sequence[Any], keywords: Sequence[tuple[str, Any]] = (), hint: str = "") -> Any:
        """Insert a call; gives its result: an SSA value, or what is known whole, as a constant.

        callee: a function, or a class of operations such as SliceOp. args, keywords: values, constants and tuples of
        them. hint: what the result is called."""
        made: Any
        if isinstance(callee, type) and issubclass(callee, Inferred):
            operands, arguments = pattern_of(args, keywords)
            made = callee.create(operands=operands, properties={"arguments": arguments})
        else:
            made = call(callee, args, keywords)
        return self._inferred(made, hint)

    def method(self, cls: type, name: str, args: Sequence[Any], hint: str = "") -> Any:
        """Insert a call of a method of the first of `args`, an object of class `cls`."""
        return self._inferred(call(None, args, attribute=name, cls=cls), hint)

    def _inferred(self, made: Any, hint: str) -> Any:
        found = made.infer(self.arch)
        constant = plain_constant(found)
        if constant is not None and constant[0] is not None and made.effects() == frozenset():
            made.erase(safe_erase=False)
            return constant[0]
        if found == Constant(None):
            return self.insert(made)
        whole = type(made).create(
            operands=list(made.values), result_types=[result_type(made.name, found)], properties=made.properties
        )
        made.erase(safe_erase=False)
        self.insert(whole)
        whole.results[0].name_hint = hint or None
        return whole.results[0]
