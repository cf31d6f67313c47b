# SPDX-License-Identifier: Apache-2.0
"""`assert` of what is known while a kernel is compiled, as its static shapes: if it is false, the kernel is refused.

Numba compiles an assertion to a branch and a raise, of which nothing is left without debug=True. Types are known by
then, and so are the branches that they decide; an assertion that no such branch leaves out counts, like `static_assert`
in C++, even where a run-time condition would lead round it.
"""

from __future__ import annotations

import ast
from typing import Any

from ... import seam
from ...seam.guards.messages import FalseAssertion, assertion_at, false_assertion
from ..emit.tracer import Tracer
from ..ground.errors import located
from ..ground.numba_cuda import ir
from .constants import FAULTS
from .static_values import FUNCTIONS, Unknown, static_value


class Known:
    """The values of a function's variables, as far as their types say them."""

    def __init__(self, func_ir: Any, typemap: Any) -> None:
        self.typemap = typemap
        self.definitions: dict[str, list[Any]] = {}
        for block in func_ir.blocks.values():
            for inst in block.find_insts(ir.Assign):
                self.definitions.setdefault(inst.target.name, []).append(inst.value)

    def of(self, var: Any) -> Any:
        """Return the value of a variable; Unknown if its type does not say it."""
        try:
            return static_value(self.typemap.get(var.name))
        except Unknown:
            made = self.definitions.get(var.name, ())
            if len(made) != 1:
                raise
        (value,) = made
        if isinstance(value, ir.Var):
            return self.of(value)
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return value.value
        if not isinstance(value, ir.Expr):
            raise Unknown
        if value.op == "binop":
            return _computed(value.fn, self.of(value.lhs), self.of(value.rhs))
        if value.op == "unary":
            return _computed(value.fn, self.of(value.value))
        if value.op == "call" and not value.kws and value.vararg is None and self.of(value.func) in FUNCTIONS:
            return _computed(self.of(value.func), *(self.of(a) for a in value.args))
        raise Unknown

    def branch(self, at: Any) -> list[int]:
        """List the blocks where a block's last statement may go."""
        if isinstance(at, ir.Branch):
            try:
                return [at.truebr if self.of(at.cond) else at.falsebr]
            except Unknown:
                pass
        return list(at.get_targets())


def _computed(fn: Any, *values: Any) -> Any:
    try:
        with seam.running(Tracer()):
            return fn(*values)
    except FAULTS as e:  # the kernel may never come to it
        raise Unknown from e


def check_assertions(func_ir: Any, typemap: Any) -> None:
    """Raise a CuteError if an assertion that is not left out is known to be false."""
    known = Known(func_ir, typemap)
    start = min(func_ir.blocks)
    out = {at: known.branch(block.terminator) for at, block in func_ir.blocks.items()}
    reached = _reached(out, start, lambda at: True)
    for at in sorted(reached):
        last = func_ir.blocks[at].terminator
        if not _raises(known, last):
            continue
        statement = assertion_at(last.loc.filename, last.loc.line)
        if _is_false(func_ir, out, reached, at, statement):
            words = false_assertion(statement, _message(last))
            raise located(FalseAssertion(words), last.loc)


def _reached(out: dict[int, list[int]], start: int, through: Any) -> set[int]:
    """Return the blocks that control may come to from `start`, going on only `through` some."""
    found, todo = {start}, [start]
    while todo:
        at = todo.pop()
        for to in out[at] if through(at) else ():
            if to not in found:
                found.add(to)
                todo.append(to)
    return found


def _raises(known: Known, last: Any) -> bool:
    """Say whether a statement raises AssertionError."""
    if isinstance(last, ir.StaticRaise):
        return last.exc_class is AssertionError
    if not isinstance(last, (ir.Raise, ir.DynamicRaise)):
        return False
    if isinstance(last, ir.DynamicRaise):
        return last.exc_class is AssertionError
    (made,) = known.definitions.get(getattr(last.exception, "name", ""), (None,))
    if isinstance(made, ir.Expr) and made.op == "call":
        (made,) = known.definitions.get(made.func.name, (None,))
    return isinstance(made, ir.Global) and made.value is AssertionError


def _message(last: Any) -> Any:
    """Return the assertion's message, if it is static."""
    given = getattr(last, "exc_args", None)
    return given[0] if given and isinstance(given[0], str) else None


def _is_false(func_ir: Any, out: Any, reached: set[int], at: int, statement: ast.Assert | None) -> bool:
    """Say whether an assertion, which raises in block `at`, leads nowhere else: no run-time part of it can save it."""
    line = func_ir.blocks[at].terminator.loc.line
    lines = range(line, line + 1) if statement is None else range(statement.lineno, (statement.end_lineno or line) + 1)

    def within(b: int) -> bool:
        last = func_ir.blocks[b].terminator
        return b == at or isinstance(last, (ir.Branch, ir.Jump)) and last.loc.line in lines

    own = {b for b in reached if within(b) and at in _reached(out, b, within)}
    if own == {at}:  # nothing is asked: `assert False` says that a run-time condition never holds
        return False
    before = {to for b in reached - own for to in out[b]} | {min(func_ir.blocks)}
    begins = (own - {at}) & before or own - {at}
    return all(_reached(out, b, own.__contains__) <= own for b in begins)
