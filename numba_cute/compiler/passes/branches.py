# SPDX-License-Identifier: Apache-2.0
"""Branches whose condition is known while a kernel is compiled: the way that is not taken is left out, so that it need
not even have types. What is known before typing is asked first (`flag`, `x is None`, `kind is Kind.A`); what only types
tell, as `cute.rank(x) == 2`, where the branch asks for it by `const_expr`, for identity, as `x[1] is None`, for a field
of an object, or compares a size with a constant; an assertion is judged when all has types."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

from ... import seam
from ...seam.marks.plain import is_plain_class
from ..bridge.object_types import StructRef
from ..ground.numba_cuda import ir
from .constants import Constants, Judged, NotConstant
from .definitions import Place, unreached
from .typed_constants import TypedConstants

_JUDGED = (bool, int, float, str, tuple, type(None))


class Condition(NamedTuple):
    """A branch on `bool(x)`. label: of its block. place: of that call. asked: the variable x. constexpr: whether x is
    what `const_expr` gave, what `is` says, a field of an object, or compares a size with a constant."""

    label: int
    place: Place
    asked: Any
    constexpr: bool


def prune_known(func_ir: Any, known: Constants) -> bool:
    """Leave out what branches do not take whose condition has one value before typing."""
    return _prune(func_ir, [(c, _truth(known, c)) for c in _conditions(func_ir.blocks, known)])


def prune_typed(func_ir: Any, known: Constants, typed: TypedConstants, pending: set[int]) -> bool:
    """Leave out what branches do not take whose condition's type says its value: of all, if there is one of them that
    asks for it by `const_expr`. pending: labels of blocks that are yet to be unrolled, which are left alone."""
    found = [c for c in _conditions(func_ir.blocks, known) if c.label not in pending]
    if not any(c.constexpr for c in found):
        return False
    values = typed.literals([(c.asked, c.place) for c in found])
    return _prune(func_ir, [(c, None if v is None else bool(v[0])) for c, v in zip(found, values)])


def _prune(func_ir: Any, judged: list[tuple[Condition, bool | None]]) -> bool:
    decided = [(c, truth) for c, truth in judged if truth is not None]
    for condition, truth in decided:
        block = func_ir.blocks[condition.label]
        branch, asks = block.terminator, block.body[condition.place.index]
        asks.value = ir.Const(truth, asks.loc)
        block.body[-1] = ir.Jump(branch.truebr if truth else branch.falsebr, branch.loc)
    if decided:
        for dead in unreached(func_ir.blocks):
            del func_ir.blocks[dead]
    return bool(decided)


def _conditions(blocks: dict[int, Any], known: Constants) -> Iterator[Condition]:
    for label in sorted(blocks):
        body = blocks[label].body
        branch = body[-1]
        if not isinstance(branch, ir.Branch) or branch.truebr == branch.falsebr:
            continue
        for at in range(len(body) - 2, -1, -1):
            inst = body[at]
            if isinstance(inst, ir.Assign) and inst.target.name == branch.cond.name:
                expr, place = inst.value, Place(label, at)
                if _calls(expr, bool, place, known):
                    asked = expr.args[0]
                    constexpr = _is_constexpr(asked, place, known)
                    if constexpr or not any(_raises(blocks[to]) for to in branch.get_targets()):
                        yield Condition(label, place, asked, constexpr or _compares_sizes(asked, place, known))
                break


def _raises(block: Any) -> bool:
    """Say whether a block is an assertion's, which is judged when all has types (see assertions.py)."""
    return isinstance(block.terminator, (ir.Raise, ir.StaticRaise, ir.DynamicRaise))


def _calls(expr: Any, function: Any, place: Place, known: Constants) -> bool:
    if not isinstance(expr, ir.Expr) or expr.op != "call" or len(expr.args) != 1 or expr.kws:
        return False
    try:
        return known.of(expr.func, place) is function
    except NotConstant:
        return False


def _is_constexpr(var: Any, place: Place, known: Constants) -> bool:
    made, at = known.assignment(var, place) or (None, place)
    if isinstance(made, ir.Expr) and made.op == "unary" and made.fn is operator.not_:
        return _is_constexpr(made.value, at, known)
    if isinstance(made, ir.Expr) and made.op == "binop" and made.fn in (operator.is_, operator.is_not):
        return True
    return _calls(made, seam.const_expr, at, known) or _is_field(made, at, known)


_COMPARES = frozenset((operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne))


def _compares_sizes(var: Any, place: Place, known: Constants) -> bool:
    """Say whether a value compares a constant with what types may tell."""
    made, at = known.assignment(var, place) or (None, place)
    if not isinstance(made, ir.Expr) or made.op != "binop" or made.fn not in _COMPARES:
        return False
    if _is_known(made.lhs, at, known) == _is_known(made.rhs, at, known):
        return False
    return _is_size(made.lhs, at, known) or _is_size(made.rhs, at, known)


def _is_known(var: Any, place: Place, known: Constants) -> bool:
    """Say whether a variable is a constant before typing."""
    try:
        known.of(var, place)
    except NotConstant:
        return False
    return True


def _is_size(var: Any, place: Place, known: Constants) -> bool:
    """Say whether a value is what a function of this library gives that does nothing else, as `cute.size`, or that and
    constants: a number that types may tell."""
    made, at = known.assignment(var, place) or (None, place)
    if not isinstance(made, ir.Expr):
        return False
    if made.op in ("binop", "inplace_binop"):
        return any(_is_size(v, at, known) for v in (made.lhs, made.rhs)) and all(
            _is_size(v, at, known) or _is_known(v, at, known) for v in (made.lhs, made.rhs)
        )
    if made.op != "call":
        return False
    try:
        return bool(seam.is_for_result(known.of(made.func, at)))
    except NotConstant:
        return False


def _is_field(made: Any, place: Place, known: Constants) -> bool:
    """Say whether a value is a field, which may be static, of an object that a function is given or makes."""
    if not isinstance(made, ir.Expr) or made.op != "getattr":
        return False
    holder, at = known.assignment(made.value, place) or (None, place)
    if isinstance(holder, ir.Arg):
        return holder.index < len(known.args) and isinstance(known.args[holder.index], StructRef)
    if not isinstance(holder, ir.Expr) or holder.op != "call":
        return False
    try:
        return is_plain_class(known.of(holder.func, at))
    except NotConstant:
        return False


def _truth(known: Constants, condition: Condition) -> bool | None:
    try:
        value = known.of(condition.asked, condition.place)
    except NotConstant:
        return None
    if isinstance(value, Judged):
        return value.holds
    return bool(value) if type(value) in _JUDGED else None
