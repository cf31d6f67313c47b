# SPDX-License-Identifier: Apache-2.0
"""Loops `for i in range(min(1, n)):`, which run once or not at all: they become that, as a prologue's does that LLVM
would take for a loop of any length, so that what is in flight through it (a wgmma's accumulators) has to be waited for.
"""

from __future__ import annotations

import builtins
import operator
from typing import Any

from ..ground.numba_cuda import ir
from .constants import Constants, NotConstant
from .definitions import Place
from .unroll import follows, unroll


def take_once(func_ir: Any, place: Place, known: Constants) -> bool:
    """Make a branch of the loop that follows the statement at a place, which makes its iterator, if it runs at most
    once; say whether it does."""
    block = func_ir.blocks[place.label]
    stop = _stop(block.body[place.index].value.value, place, known)
    if stop is None or not follows(func_ir, block):
        return False
    loc, scope = block.body[place.index].loc, block.scope
    zero, some, make, guard = (scope.redefine(f"$numba_cute_{n}", loc) for n in ("zero", "some", "bool", "guard"))
    block.body[place.index : place.index] = [
        ir.Assign(ir.Const(0, loc), zero, loc),
        ir.Assign(ir.Expr.binop(operator.gt, stop, zero, loc), some, loc),
        ir.Assign(ir.Global("bool", bool, loc), make, loc),
        ir.Assign(ir.Expr.call(make, (some,), (), loc), guard, loc),
    ]
    unroll(func_ir, place.label, place.index + 4, [ir.Const(0, loc)], guard)
    return True


def runs_once(over: Any, place: Place, known: Constants) -> bool:
    """Say whether a loop over a variable runs at most once."""
    return _stop(over, place, known) is not None


def _stop(over: Any, place: Place, known: Constants) -> Any:
    """Return the variable that says how often a loop runs, where that is at most once; None for any other."""
    call, at = _call(over, place, known, builtins.range)
    if call is None or len(call.args) != 1:
        return None
    least, where = _call(call.args[0], at, known, builtins.min)
    bounds = [] if least is None else [_constant(a, where, known) for a in least.args]
    return call.args[0] if any(type(b) is int and b <= 1 for b in bounds) else None


def _call(var: Any, place: Place, known: Constants, function: Any) -> tuple[Any, Place]:
    """Return the call of a function that a variable comes from, and its place; None if it comes from none."""
    made, at = known.assignment(var, place) or (None, place)
    if not isinstance(made, ir.Expr) or made.op != "call" or made.kws or made.vararg is not None:
        return None, at
    return (made if _constant(made.func, at, known) is function else None), at


def _constant(var: Any, place: Place, known: Constants) -> Any:
    try:
        return known.of(var, place)
    except NotConstant:
        return None
