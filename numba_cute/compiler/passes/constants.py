# SPDX-License-Identifier: Apache-2.0
"""The Python values that a function's IR has before typing: of the source, and of the types of its arguments.

A variable is constant where every assignment that reaches the place gives one value (see `definitions`).
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import math
import operator
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ... import dtypes, seam
from ...seam import CuteError
from ...seam.ground.records import dataclass
from ...seam.marks.host_objects import mapping_of
from ..bridge import tree
from ..bridge.given_floats import GivenFloat
from ..bridge.object_types import StructRef, Value
from ..ground.numba_cuda import ir, types
from .definitions import Definitions, Place, statements

FOLDABLE = {
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lshift, operator.rshift,
    operator.and_, operator.or_, operator.xor, operator.pow, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne,
}  # fmt: skip
_UNARY = {operator.neg, operator.pos, operator.invert}
_COMPARISONS = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
_EXACT = 1 << 53
"""Integers up to this one are floats as well, in Python as in Numba."""
_IDENTITY: dict[Any, Callable[[Any, Any], bool]] = {
    operator.is_: lambda a, b: a is b,
    operator.is_not: lambda a, b: a is not b,
    operator.eq: lambda a, b: bool(a == b),
    operator.ne: lambda a, b: bool(a != b),
}
_PURE = (len, min, max, abs, int)  # not bool: Numba prunes branches by its calls
MATH = (math.log2, math.log, math.log10, math.sqrt, math.ceil, math.floor, math.exp)
"""Functions that are static for numbers of the source: `int(math.log2(32))`."""
_WRITTEN = (ir.Const, ir.Global, ir.FreeVar)
FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, CuteError)
"""Errors of Python's where a constant has no such attribute, item or result: then the kernel is to say so, or it works
at run time."""
_WIDEST = 1 << 63


class NotConstant(Exception):
    """A variable has no value known before typing."""


@dataclass(frozen=True)
class Judged:
    """The result of a comparison of floats: known to branches and `const_expr`, and a run-time bool to all else, as
    what is computed of floats is."""

    holds: bool


class Whole(ir.Const):
    """An integer that `int` makes of a float of the source: the simulator is told that it is static."""


class WholeOfTypes(Whole):
    """One of a number that types tell: which it is differs from one of a function's versions to another."""


class _RunTime(seam.Signal):
    """A run-time part was computed with: no error, which somebody would put into words."""


_FAULTY = (*FAULTS, _RunTime)


class _Unknown(seam.Leaf):
    """A run-time part of an argument that is otherwise known. Python of the user's that computes with it, or compares
    it, has no value. It is not an int, as Python has it: such parts are of CuTe's types or of NumPy's."""

    def _computed(self, other: Any = 0) -> Any:
        if isinstance(other, (int, float, _Unknown)):
            raise _RunTime
        return NotImplemented

    def _asked(self, *_: Any) -> Any:
        raise _RunTime


_ARITHMETIC = "add sub mul floordiv truediv mod divmod pow and or xor lshift rshift"
for _name in (*_ARITHMETIC.split(), *(f"r{n}" for n in _ARITHMETIC.split()), "lt", "le", "gt", "ge", "neg", "invert"):
    setattr(_Unknown, f"__{_name}__", _Unknown._computed)
for _name in ("eq", "ne", "bool", "pos", "abs", "int", "float", "complex", "index", "round", "trunc", "floor", "ceil"):
    setattr(_Unknown, f"__{_name}__", _Unknown._asked)
for _name in ("hash", "iter", "len", "getitem", "contains", "call", "repr", "format"):
    setattr(_Unknown, f"__{_name}__", _Unknown._asked)


class Constants:
    """The values of variables and expressions at places in a function's IR, as it is now.

    args: the types of the function's arguments. told: what these say, by their places, where it was found before.
    """

    def __init__(self, blocks: dict[int, Any], args: Any, told: dict[int, Any] | None = None) -> None:
        self._definitions, self.args = Definitions(blocks), args
        self._told = {} if told is None else told
        self._found: dict[Place, Any] = {}
        self._open: list[Place] = []
        self._doubted: set[Place] = set()
        self._may_change, self._changing = False, set[Place]()
        self._by_op: defaultdict[str, list[tuple[Place, Any]]] = defaultdict(list)

    def expressions(self, op: str) -> list[tuple[Place, Any]]:
        """Return the assignments of expressions of a kind, as "call", that are not constants by now, with their places,
        block by block."""
        if not self._by_op:
            for place, inst in statements(self._definitions.blocks):
                if type(inst) is ir.Assign and type(inst.value) is ir.Expr:
                    self._by_op[inst.value.op].append((place, inst))
        return [found for found in self._by_op[op] if type(found[1].value) is ir.Expr]

    def of(self, var: Any, use: Place) -> Any:
        """Return the value of a variable that the statement at `use` reads; NotConstant if it has none."""
        places = self._definitions.places.get(var.name, ())
        if len(places) > 1:
            self._may_change = True
            places = self._definitions.reaching(var.name, use)
        if not places:
            raise NotConstant
        first = self._assigned(places[0])
        for place in places[1:]:
            if not _same(first, self._assigned(place)):
                raise NotConstant
        return first

    def is_of_float(self, call: Any, place: Place) -> bool:
        """Say whether a call that has a value is of a float."""
        return any(type(self.of(a, place)) is float for a in call.args)

    def learn(self, place: Place) -> None:
        """Find the value that the assignment at a place gives, if it has one: statement by statement, so that none is
        found through a long chain of others."""
        if place not in self._found:
            self._find(place)

    def after_pruning(self) -> list[Place]:
        """Note that blocks were left out, and ends of others changed; return the places whose assignments may have a
        value now, since they read what fewer statements set. What has a value keeps it."""
        self._definitions.after_pruning()
        self._by_op.clear()
        again = [p for p in self._changing | self._doubted if self._definitions.is_there(p)]
        for place in self._changing | self._doubted:
            if self._found.get(place) is NotConstant:
                del self._found[place]
        self._changing, self._doubted = set(), set()
        return sorted(again)

    def given(self, expr: Any, place: Place) -> Any:
        """Return the value of the expression that the assignment at a place gives, as `of_expr`."""
        found = self._found.get(place, self)
        if found is self or place in self._doubted:  # one in a circle may be known by now
            return self.of_expr(expr, place)
        if found is NotConstant:
            raise NotConstant
        return found

    def assignment(self, var: Any, use: Place) -> tuple[Any, Place] | None:
        """Return the right-hand side of the one assignment whose value the statement at `use` reads, and its place;
        None if there are several."""
        places = self._definitions.reaching(var.name, use)
        if len(places) != 1:
            return None
        node = self._definitions.at(places[0]).value
        return self.assignment(node, places[0]) if isinstance(node, ir.Var) else (node, places[0])

    def is_same(self, var: Any, first: Place, second: Place) -> bool:
        """Say whether what a variable has where the statement at `first` reads it, it has at `second` too."""
        return self._definitions.reaching(var.name, first) == self._definitions.reaching(var.name, second)

    def settle(self, var: Any, use: Place, value: int) -> None:
        """Write down the number that types say a variable has where the statement at `use` reads it, if its one
        assignment is a call that does nothing but give it: then all that reads it knows."""
        made, at = self.assignment(var, use) or (None, use)
        if not isinstance(made, ir.Expr) or made.op != "call":
            return
        with contextlib.suppress(NotConstant):
            named = all(self._is_named(a, at) for a in made.args)  # if not, the call is what uses another's result
            if named and seam.is_for_result(self.of(made.func, at)):
                self._definitions.at(at).value = ir.Const(value, made.loc)
                self._found.pop(at, None)

    def _is_named(self, var: Any, use: Place) -> bool:
        """Say whether a variable is one of the source, or a copy of one."""
        while var.name.startswith("$"):
            places = self._definitions.reaching(var.name, use)
            node = self._definitions.at(places[0]).value if len(places) == 1 else None
            if not isinstance(node, ir.Var):
                return False
            var, use = node, places[0]
        return True

    def _assigned(self, place: Place) -> Any:
        """Return the value that the assignment at a place gives."""
        found = self._found.get(place, self)
        if found is self:  # it was not looked for
            found = self._find(place)
        elif found is NotConstant and place in self._open:
            self._doubted.update(self._open)
        if found is NotConstant:
            self._may_change |= place in self._changing or place in self._doubted
            raise NotConstant
        return found

    def _find(self, place: Place) -> Any:
        """Look for the value that the assignment at a place gives; NotConstant if it has none."""
        self._found[place] = NotConstant  # while it is looked for: what depends on itself may change
        self._open.append(place)
        before, self._may_change = self._may_change, False
        try:
            found = self._found[place] = self._right_hand_side(self._definitions.at(place).value, place)
        except NotConstant:
            if self._may_change:
                self._changing.add(place)
            return NotConstant
        finally:
            self._open.pop()
            self._may_change = before
        return found

    def _right_hand_side(self, node: Any, place: Place) -> Any:
        kind = type(node)
        if kind is ir.Expr:
            return self.of_expr(node, place)
        if kind is ir.Var:
            return self.of(node, place)
        if isinstance(node, _WRITTEN):
            return mapping_of(node.value) if type(node.value) is dict else node.value
        if isinstance(node, ir.Arg):
            if node.index not in self._told:
                self._told[node.index] = self._argument(node.index)
            return self._told[node.index]
        raise NotConstant

    def of_expr(self, node: Any, place: Place, of: Callable[[Any, Place], Any] | None = None) -> Any:
        """Return the value of an expression in the statement at `place`; NotConstant if it has none. of: gives those of
        its operands there, as `self.of` does."""
        evaluate = _EVALUATORS.get(node.op)
        if evaluate is None:
            raise NotConstant
        find = of or self.of
        try:
            return evaluate(node, lambda var: find(var, place))
        except NotConstant:
            raise
        except _FAULTY:
            raise NotConstant from None

    def _argument(self, index: int) -> Any:
        """Return what an argument's type says of it: a literal, None, a default; of what is `static`, all but its
        run-time parts, which are _Unknown."""
        ty = self.args[index] if index < len(self.args) else None
        if isinstance(ty, types.Literal):
            return ty.literal_value
        if isinstance(ty, types.NoneType):
            return None
        if isinstance(ty, types.Omitted):
            return ty.value
        if isinstance(ty, StructRef) and any(isinstance(t, GivenFloat) for t in ty.types.values()):
            return _Floats(ty)
        if not isinstance(ty, Value):
            raise NotConstant
        return tree.unflatten(ty.spec, itertools.repeat(_Unknown()))


class _Floats:
    """Stands for an object of the kernel, of which the floats are known that its class says are static."""

    def __init__(self, ty: StructRef) -> None:
        vars(self).update((n, t.value) for n, t in ty.fields if isinstance(t, GivenFloat))


def _same(a: Any, b: Any) -> bool:
    """Say whether two values are one to a kernel: 1 and True are not, nor are 0.0 and -0.0."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Judged):
        return bool(a == b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, (int, str)) and a == b


def _is_name(value: Any) -> bool:
    """Say whether a value is None, a member of an enumeration, a class or an element type: what stands for itself."""
    if isinstance(value, enum.Enum):
        return not isinstance(value, int)  # which is a number to a kernel
    return value is None or isinstance(value, (type, dtypes.DType))


def _is_looked_for(x: Any) -> bool:
    """Say whether a value can be looked for in a tuple while the kernel is compiled."""
    return isinstance(x, (int, str)) or _is_name(x)


def _number(value: Any) -> Any:
    """Return a result of integer arithmetic, unless 64 bits do not hold it (see `static_faults`)."""
    if not isinstance(value, int) or not -_WIDEST <= value < 2 * _WIDEST:
        raise NotConstant
    return value if type(value) is bool else int(value)  # of a member of an IntEnum its number


def _binop(node: Any, of: Any) -> Any:
    """Compute `x + y` of integers; `x += y` makes a new one as well. Names of things are one or not."""
    fn = node.immutable_fn if node.op == "inplace_binop" else node.fn
    lhs, rhs = of(node.lhs), of(node.rhs)
    if fn in _IDENTITY and any(_is_name(x) for x in (lhs, rhs)) and _Unknown not in (type(lhs), type(rhs)):
        if fn in (operator.is_, operator.is_not) or all(map(_is_name, (lhs, rhs))):
            return _IDENTITY[fn](lhs, rhs)
    if fn in (operator.is_, operator.is_not) and all(isinstance(x, (bool, type(None))) for x in (lhs, rhs)):
        return _IDENTITY[fn](lhs, rhs)
    if fn in (operator.eq, operator.ne) and isinstance(lhs, str) and isinstance(rhs, str):
        return _IDENTITY[fn](lhs, rhs)
    if fn is operator.contains and isinstance(lhs, tuple) and all(map(_is_looked_for, (rhs, *lhs))):
        return rhs in lhs
    if type(lhs) is float or type(rhs) is float:
        return _compare_floats(fn, lhs, rhs)
    if fn not in FOLDABLE or not all(isinstance(x, int) for x in (lhs, rhs)):
        raise NotConstant
    return _number(fn(lhs, rhs))


def _compare_floats(fn: Any, *given: Any) -> Judged:
    """Compare floats of the source, and integers that are floats as well."""
    if fn not in _COMPARISONS or not all(type(x) is float or _is_exact(x) for x in given):
        raise NotConstant
    return Judged(bool(fn(*given)))


def _is_exact(x: Any) -> bool:
    return type(x) is int and -_EXACT <= x <= _EXACT


def _unary(node: Any, of: Any) -> Any:
    value = of(node.value)
    if node.fn is operator.not_ and (value is None or isinstance(value, (int, str))):
        return not value
    if node.fn is operator.not_ and isinstance(value, Judged):
        return Judged(not value.holds)
    if node.fn not in _UNARY or not isinstance(value, int) or type(value) is bool:
        raise NotConstant
    return _number(node.fn(value))


def _call(node: Any, of: Any) -> Any:
    """Call `const_expr`, which gives its argument, or a function of Python's of constants."""
    if node.kws or node.vararg is not None:
        raise NotConstant
    function = of(node.func)
    if function is seam.const_expr and len(node.args) == 1:
        value = of(node.args[0])
        return value.holds if isinstance(value, Judged) else value
    if len(node.args) == 1 and any(function is f for f in (int, *MATH)):
        number = of(node.args[0])
        if isinstance(number, float) or (function is not int and isinstance(number, int)):
            return (
                _number(int(number)) if function is int else float(function(number))
            )  # floor's is a float, as Numba's
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
