# SPDX-License-Identifier: Apache-2.0
"""Loops and branches. What they carry and never change is not a variable; a tiled object they carry is its fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from ...dtypes import Boolean
from ..python.numbers import number_of
from ..python.writer import Literal
from . import objects, vectors
from .flow import yielded
from .values import NOT, Expr, Object, Tree, rebuilt
from .writer import Lifter, lifts, opaque_tree

STATE = ("accum_c",)
"""The fields of matrix instructions that loops carry, as variables."""


class Carried:
    """A value that Python carries in variables: a number, a tensor, a tuple leaf by leaf, or an object's fields."""

    def __init__(self, w: Lifter, names: Sequence[SSAValue], like: SSAValue) -> None:
        self.w, self.names = w, names
        first = names[0]
        self.type = first.type
        self.object: Object | None = None
        self.leaves: Any = None
        if objects.is_mma(self.type):
            found = w.get(like)
            assert isinstance(found, Object)
            self.object = found
            self.variables = [w.local("accumulate")]
        elif number_of(self.type) is None and _is_tuple(self.type):
            self.leaves = opaque_tree(self.type, Expr(w.local(w.text_name(first)))).leaves
            self.variables = []
            self._leaf_variables(w.text_name(first))
        else:
            self.variables = [w.local(w.text_name(first))]
        self._bind(names)

    def _leaf_variables(self, name: str) -> None:
        made = []
        for leaf in Tree(self.leaves).flat():
            if leaf is not None and not str(leaf).lstrip("-").isdigit():
                variable = self.w.local(name)
                self.variables.append(variable)
                leaf = Expr(variable)
            made.append(leaf)
        self.leaves = rebuilt(self.leaves, iter(made))

    def _bind(self, names: Sequence[SSAValue]) -> None:
        for name in names:
            self.w.values[name] = self.value()

    def value(self) -> Any:
        """Return the value while it is carried."""
        if self.object is not None:
            return self.object.with_field(STATE[0], Expr(self.variables[0]))
        return Expr(self.variables[0]) if self.leaves is None else Tree(self.leaves)

    def given(self, value: SSAValue, first: bool) -> list[str]:
        """Return the new values of the variables. first: True where the loop begins."""
        w = self.w
        found = w.get(value)
        if self.object is not None:
            assert isinstance(found, Object)
            return [str(found.fields.get(STATE[0], "False"))]
        if self.leaves is not None:
            mine, other = Tree(self.leaves).flat(), w.tree(value).flat()
            return [str(o) for m, o in zip(mine, other, strict=True) if str(m) in self.variables]
        if isinstance(found, Literal) and found.dtype is not Boolean:
            return [w.cast(str(found), found.dtype)]
        return [str(vectors.flat(w, value) if w.is_vector(value) else w.expr(value))]


def _is_tuple(t: Any) -> bool:
    return objects.kind(t) == "" and getattr(t, "kind", "") in ("int_tuple", "shape", "stride", "coord")


def _give(w: Lifter, kept: Sequence[tuple[int, Carried]], values: Sequence[SSAValue], first: bool = False) -> None:
    targets = [v for _, c in kept for v in c.variables]
    w.assign(targets, [t for i, c in kept for t in c.given(values[i], first)])


def _kept(w: Lifter, values: Sequence[SSAValue]) -> list[int]:
    """List the values that are variables: those that are needed, and are not the same as another."""
    return [i for i, v in enumerate(values) if w.root(v) is v and v in w.flow.values]


@lifts("scf.for")
def loop(w: Lifter, op: scf.ForOp) -> None:
    """A `for` over a range."""
    block = op.body.block
    counter, *arguments = block.args
    if _once(w, op):
        return
    kept = [(i, Carried(w, [arguments[i]], op.iter_args[i])) for i in _kept(w, arguments)]
    _give(w, kept, op.iter_args, first=True)
    lower, step = w.constant(op.lb), w.constant(op.step)
    bounds = [str(w.expr(op.ub))]
    if lower != 0 or step != 1:
        bounds.insert(0, str(w.expr(op.lb)))
    if step != 1:
        bounds.append(str(w.expr(op.step)))
    name = w.local(w.text_name(counter) if not w.text_name(counter).startswith("arg") else "i")
    kind = _range(w, op)
    w.values[counter] = Expr(name, static=kind != "range")
    w.enters_loop(op)
    with w.indented(f"for {name} in {kind}({', '.join(bounds)}):"):
        w.block(block)
        _give(w, kept, yielded(block))
    w.ordered = False
    for i, c in kept:
        w.values[op.results[i]] = c.value()


def _once(w: Lifter, op: scf.ForOp) -> bool:
    """Write a loop of one round, or of none, as what it does."""
    bounds = [w.constant(b) for b in (op.lb, op.ub, op.step)]
    if any(type(b) is not int for b in bounds) or bounds[2] <= 0 or len(range(*bounds)) > 1:
        return False
    block = op.body.block
    counter, *arguments = block.args
    kept = _kept(w, arguments)
    for i in kept:
        w.values[arguments[i]] = w.get(op.iter_args[i])
    if range(*bounds):
        w.values[counter] = w.get(op.lb)
        w.block(block)
        for i in kept:
            w.values[op.results[i]] = w.get(yielded(block)[i])
    else:
        for i in kept:
            w.values[op.results[i]] = w.get(op.iter_args[i])
    return True


def _range(w: Lifter, op: scf.ForOp) -> str:
    """Return the name of a loop's range: a loop that the module unrolls whole has static counters."""
    note = str(op.attributes.get("loop_annotation", ""))
    bounds = [w.constant(b) for b in (op.lb, op.ub, op.step)]
    if "full = true" in note and all(type(b) is int for b in bounds):
        rounds = len(range(*bounds))
        if rounds <= 64 or rounds * sum(1 for _ in op.body.walk()) <= _UNROLLED:
            return "cute.range_constexpr"
    return "range"


_UNROLLED = 8192
"""The most operations of a loop of many rounds that is unrolled."""


@lifts("scf.while")
def while_loop(w: Lifter, op: scf.WhileOp) -> None:
    """A `while` that tests at its beginning: of an expression, or left where its condition is false."""
    before, after = op.before_region.block, op.after_region.block
    kept = [(i, Carried(w, [before.args[i]], op.arguments[i])) for i in _kept(w, before.args)]
    _give(w, kept, op.arguments, first=True)
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    passed = [(i, Carried(w, [after.args[i]], condition.args[i])) for i in _kept(w, after.args)
              if w.root(condition.args[i]) not in [before.args[j] for j, _ in kept]]  # fmt: skip
    for i in range(len(after.args)):
        given = w.root(condition.args[i])
        for j, c in kept:
            if given is before.args[j]:
                w.values[after.args[i]] = w.values[op.results[i]] = c.value()
    w.enters_loop(op)
    with w.indented("while True:"):
        w.block(before)
        with w.at(condition):
            _give(w, passed, condition.args)
            with w.indented(f"if not {w.expr(condition.condition).at(NOT)}:"):
                w.line("break")
        w.block(after)
        _give(w, kept, yielded(after))
    w.ordered = False
    for i, c in passed:
        w.values[op.results[i]] = c.value()


@lifts("scf.if")
def branch(w: Lifter, op: scf.IfOp) -> None:
    """An `if`, whose results both branches assign."""
    condition = w.constant(op.cond)
    results = _kept(w, op.output)
    if condition is not None:
        region = op.true_region if condition else op.false_region
        if region.blocks:
            w.block(region.block)
            for i in results:
                w.values[op.output[i]] = w.get(yielded(region.block)[i])
        return
    if w.flow.patterns.is_elected(op):
        w.block(op.true_region.block)
        return
    made: list[tuple[int, Carried]] = []
    yes, no = op.true_region.block, op.false_region.block if op.false_region.blocks else None
    writes_no = no is not None and any(True for _ in w.flow.walk(no))
    if w.flow.patterns.arrives_for_warp(op):
        w.gathers_warp()
    head = len(w.lines)
    before, touched = w.ordered, w.touched
    with w.indented(f"if {w.expr(op.cond)}:"):
        w.block(yes)
        made = [(i, Carried(w, [op.output[i]], yielded(yes)[i])) for i in results]
        _give(w, made, yielded(yes))
    w.ordered &= before
    after_touched, w.touched = w.touched, touched
    if no is not None and (results or writes_no):
        if len(w.lines) > head + 1 and w.lines[head + 1].text == "pass" and not results:
            del w.lines[head:]
            with w.indented(f"if not {w.expr(op.cond).at(NOT)}:"):
                w.block(no)
            w.touched |= touched
            return
        after, w.ordered = w.ordered, before
        with w.indented("else:"):
            w.block(no)
            _give(w, made, yielded(no))
        w.ordered &= after
    w.touched |= after_touched


@lifts("scf.yield", "scf.condition", "cuda.return")
def end(w: Lifter, op: Any) -> None:
    """The end of a block: what it gives is assigned by what holds it."""


__all__ = ["branch", "loop", "while_loop"]
