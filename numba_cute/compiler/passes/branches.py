# SPDX-License-Identifier: Apache-2.0
"""Branches that are decided while a kernel is compiled: the side not taken is left out ahead of typing.

So `if const_expr(two): group = CtaGroup.TWO`, `else: group = CtaGroup.ONE` gives `group` one type, and code of the
other side may be wrong for these arguments. What decides is the source, or, of `const_expr`, types alone
(`t.element_type == cute.Float16`): then the function is typed for it, so far as it can be.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.cuda.core import ir
from numba.cuda.core.analysis import compute_cfg_from_blocks

from ... import seam
from .constants import Constants, NotConstant
from .definitions import Place
from .typed_constants import TypedConstants

_TRUTH = (bool, operator.truth)


def prune_constant(func_ir: Any, known: Constants) -> bool:
    """Leave out the sides that are not taken of branches whose condition the source tells; whether there were some."""
    taken: dict[int, int] = {}
    for label, block in func_ir.blocks.items():
        if isinstance(block.terminator, ir.Branch):
            asked, negated, place = _asked(block, label, known)
            try:
                value = known.of(asked, place)
            except NotConstant:
                continue
            if value is None or type(value) in (int, bool, str, tuple):
                taken[label] = _side(block.terminator, bool(value) is not negated)
    return _take(func_ir, taken)


def prune_typed(func_ir: Any, known: Constants, typed: TypedConstants) -> bool:
    """Do the same for conditions that types tell, if a branch asks for a `const_expr`; whether there were some."""
    asked = {
        label: _asked(block, label, known)
        for label, block in sorted(func_ir.blocks.items())
        if isinstance(block.terminator, ir.Branch)
    }
    if not any(_is_const_expr(func_ir.blocks[label], var, place, known) for label, (var, _, place) in asked.items()):
        return False
    values = typed.conditions({label: var for label, (var, _, _) in asked.items()})
    sides = {
        label: _side(func_ir.blocks[label].terminator, value is not asked[label][1]) for label, value in values.items()
    }
    return _take(func_ir, sides)


def _side(branch: Any, value: bool) -> int:
    return branch.truebr if value else branch.falsebr  # type: ignore[no-any-return]


def _asked(block: Any, label: int, known: Constants) -> tuple[Any, bool, Place]:
    """Return the variable whose truth decides a block's branch, whether the branch asks for the contrary, and where the
    variable is read."""
    var, negated, at = block.terminator.cond, False, len(block.body) - 1
    while True:
        found = _assignment(block, var, at)
        if found is None:
            return var, negated, Place(label, at)
        before, expr = found
        if isinstance(expr, ir.Var):
            var, at = expr, before
        elif isinstance(expr, ir.Expr) and expr.op == "unary" and expr.fn is operator.not_:
            var, at, negated = expr.value, before, not negated
        elif isinstance(expr, ir.Expr) and _calls(expr, _TRUTH, Place(label, before), known):
            var, at = expr.args[0], before
        else:
            return var, negated, Place(label, at)


def _assignment(block: Any, var: Any, before: int) -> tuple[int, Any] | None:
    """Return where a block assigns a variable last before a statement, and what."""
    for at in range(before - 1, -1, -1):
        inst = block.body[at]
        if isinstance(inst, ir.Assign) and inst.target.name == var.name:
            return at, inst.value
    return None


def _calls(expr: Any, functions: tuple[Any, ...], place: Place, known: Constants) -> bool:
    """Say whether an expression calls one of some functions with one argument."""
    if expr.op != "call" or expr.kws or expr.vararg is not None or len(expr.args) != 1:
        return False
    try:
        called = known.of(expr.func, place)
    except NotConstant:
        return False
    return any(called is f for f in functions)


def _is_const_expr(block: Any, var: Any, place: Place, known: Constants) -> bool:
    found = _assignment(block, var, place.index)
    return (
        found is not None
        and isinstance(found[1], ir.Expr)
        and _calls(found[1], (seam.const_expr,), Place(place.label, found[0]), known)
    )


def _take(func_ir: Any, sides: dict[int, int]) -> bool:
    """Make jumps of branches, to one side each, but for those of assertions, which are judged when all is typed."""
    blocks, changed = func_ir.blocks, False
    for label, side in sides.items():
        branch = blocks[label].terminator
        if branch.truebr == branch.falsebr or any(_raises(blocks[t]) for t in (branch.truebr, branch.falsebr)):
            continue
        blocks[label].body[-1] = ir.Jump(side, branch.loc)
        changed = True
    for label in compute_cfg_from_blocks(blocks).dead_nodes() if changed else ():
        del blocks[label]
    return changed


def _raises(block: Any) -> bool:
    return isinstance(block.terminator, (ir.Raise, ir.StaticRaise, ir.DynamicRaise))
