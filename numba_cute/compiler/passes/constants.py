# SPDX-License-Identifier: Apache-2.0
"""The Python values that a function's IR has before typing: of the source, and of the types of its arguments.

A variable is constant where every assignment that reaches the place gives one value (see `definitions`).
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Callable
from typing import Any

from numba.cuda.core import ir

from ... import seam
from ...seam import CuteError
from ..bridge import tree
from ..bridge.object_types import Value
from .definitions import Definitions, Place

FOLDABLE = {
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lshift, operator.rshift,
    operator.and_, operator.or_, operator.xor, operator.pow, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne,
}  # fmt: skip
_IDENTITY = {operator.is_, operator.is_not}
_EQUALITY = {operator.eq, operator.ne}
_UNARY = {operator.neg, operator.pos, operator.invert}
_PURE = (len, min, max, abs, int)  # not bool: Numba prunes branches by its calls
_WRITTEN = (ir.Const, ir.Global, ir.FreeVar)
FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, CuteError)
"""Errors of Python's where a constant has no such attribute, item or result: then the kernel is to say so, or it works
at run time."""
_WIDEST = 1 << 63


class NotConstant(Exception):
    """A variable has no value known before typing."""


class _Unknown:
    """A run-time part of an argument that is otherwise known."""


class Constants:
    """The values of variables and expressions at places in a function's IR, as it is now.

    args: the types of the function's arguments.
    """

    def __init__(self, blocks: dict[int, Any], args: Any) -> None:
        self._definitions, self._args = Definitions(blocks), args
        self._found: dict[Place, Any] = {}

    def of(self, var: Any, use: Place) -> Any:
        """Return the value of a variable that the statement at `use` reads; NotConstant if it has none."""
        places = self._definitions.reaching(var.name, use)
        if not places:
            raise NotConstant
        first, *others = (self._assigned(p) for p in places)
        if not all(_same(first, x) for x in others):
            raise NotConstant
        return first

    def learn(self, place: Place) -> None:
        """Find the value that the assignment at a place gives, if it has one: statement by statement, so that none is
        found through a long chain of others."""
        with contextlib.suppress(NotConstant):
            self._assigned(place)

    def _assigned(self, place: Place) -> Any:
        """Return the value that the assignment at a place gives."""
        if place not in self._found:
            self._found[place] = NotConstant  # while it is looked for: what depends on itself may change
            with contextlib.suppress(NotConstant):
                self._found[place] = self._right_hand_side(self._definitions.at(place).value, place)
        found = self._found[place]
        if found is NotConstant:
            raise NotConstant
        return found

    def _right_hand_side(self, node: Any, place: Place) -> Any:
        if isinstance(node, _WRITTEN):
            return node.value
        if isinstance(node, ir.Var):
            return self.of(node, place)
        if isinstance(node, ir.Arg):
            return self._argument(node.index)
        if isinstance(node, ir.Expr):
            return self.of_expr(node, place)
        raise NotConstant

    def of_expr(self, node: Any, place: Place) -> Any:
        """Return the value of an expression in the statement at `place`; NotConstant if it has none."""
        evaluate = _EVALUATORS.get(node.op)
        if evaluate is None:
            raise NotConstant
        try:
            return evaluate(node, lambda var: self.of(var, place))
        except FAULTS:
            raise NotConstant from None

    def _argument(self, index: int) -> Any:
        """Return what a `static` argument's type says of it: its run-time parts are _Unknown."""
        ty = self._args[index] if index < len(self._args) else None
        if not isinstance(ty, Value):
            raise NotConstant
        return tree.unflatten(ty.spec, itertools.repeat(_Unknown()))


def _same(a: Any, b: Any) -> bool:
    """Say whether two values are one to a kernel: 1 and True are not, nor are 0.0 and -0.0."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, (int, str)) and a == b


def _number(value: Any) -> Any:
    """Return a result of integer arithmetic, unless 64 bits do not hold it: at run time it wraps around."""
    if type(value) not in (int, bool) or not -_WIDEST <= value < _WIDEST:
        raise NotConstant
    return value


def _binop(node: Any, of: Any) -> Any:
    """Compute `x + y` of integers; `x += y` makes a new one as well. Compare strings, and anything with None, True or
    False by `is`."""
    fn = node.immutable_fn if node.op == "inplace_binop" else node.fn
    lhs, rhs = of(node.lhs), of(node.rhs)
    if fn in _IDENTITY and any(x is None or type(x) is bool for x in (lhs, rhs)):
        return fn(lhs, rhs)
    if fn in _EQUALITY and isinstance(lhs, str) and isinstance(rhs, str):
        return fn(lhs, rhs)
    if fn not in FOLDABLE or not all(isinstance(x, int) for x in (lhs, rhs)):
        raise NotConstant
    return _number(fn(lhs, rhs))


def _unary(node: Any, of: Any) -> Any:
    value = of(node.value)
    if node.fn is operator.not_ and isinstance(value, int):
        return not value
    if node.fn not in _UNARY or type(value) is not int:
        raise NotConstant
    return _number(node.fn(value))


def _call(node: Any, of: Any) -> Any:
    """Call `const_expr`, which gives its argument, or a function of Python's of constants."""
    if node.kws or node.vararg is not None:
        raise NotConstant
    function = of(node.func)
    if function is seam.const_expr and len(node.args) == 1:
        return of(node.args[0])
    if not any(function is f for f in _PURE):
        raise NotConstant
    args = [of(a) for a in node.args]
    if not all(isinstance(a, (int, tuple)) for a in args):
        raise NotConstant
    return _number(function(*args))


_EVALUATORS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "binop": _binop,
    "inplace_binop": _binop,
    "unary": _unary,
    "call": _call,
    "getattr": lambda node, of: getattr(of(node.value), node.attr),
    "getitem": lambda node, of: of(node.value)[of(node.index)],
    "static_getitem": lambda node, of: of(node.value)[node.index],
    "build_tuple": lambda node, of: tuple(map(of, node.items)),
}
