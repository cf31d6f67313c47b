# SPDX-License-Identifier: Apache-2.0
"""Integers that are computed by floats of numbers which only types tell, as `int(math.log2(cute.size(x)))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...seam import CuteError
from ..ground.numba_cuda import ir
from .constants import MATH, Constants, NotConstant, WholeOfTypes
from .definitions import Place
from .typed_constants import TypedConstants


def write_down(func_ir: Any, known: Constants, typed: TypedConstants) -> bool:
    """Put in the place of each `int` of such a function of `math` the integer that it gives; say whether there was
    one."""
    changed = False
    for place, inst in known.expressions("call"):
        expr = inst.value
        if _is_int_of_math(expr, place, known):
            try:
                inst.value = WholeOfTypes(known.of_expr(expr, place, computing(known, typed)), inst.loc)
                changed = True
            except (NotConstant, CuteError):  # a mistake before it, which is told when all is typed
                continue
    return changed


def _is_int_of_math(expr: Any, place: Place, known: Constants) -> bool:
    """Say whether an expression is a call of `int` of what a function of `math` gives."""
    if _called(expr, place, known) is not int or len(expr.args) != 1:
        return False
    made = known.assignment(expr.args[0], place)
    return made is not None and any(_called(*made, known) is f for f in MATH)


def _called(expr: Any, place: Place, known: Constants) -> Any:
    """Return the function that an expression calls, None if it calls none that is known."""
    if not isinstance(expr, ir.Expr) or expr.op != "call":
        return None
    try:
        return known.of(expr.func, place)
    except NotConstant:
        return None


def computing(known: Constants, typed: TypedConstants) -> Callable[[Any, Place], Any]:
    """Return a function that gives what a variable has at a place, computed of what the source and types tell.
    NotConstant: a part of it is not static."""

    def of(operand: Any, at: Place) -> Any:
        try:
            return known.of(operand, at)
        except NotConstant:
            pass
        made = known.assignment(operand, at)
        if made is not None and isinstance(made[0], ir.Expr) and made[0].op in ("binop", "unary", "call"):
            try:
                return known.of_expr(*made, of)
            except NotConstant:
                pass
        return typed.of(operand, at)

    return of
