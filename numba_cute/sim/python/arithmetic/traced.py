# SPDX-License-Identifier: Apache-2.0
"""The operators of numbers in traced code, which are those of the compiler's leaves (compiler/emit/leaves.py): Numba's
values, in the type in which two operands meet (`dtypes.joined`), a static integer taking the other's."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from .... import dtypes, seam
from ....dtypes import Boolean, DType, number
from ....seam.guards.messages import check_traced_operator, negative
from .compute import limits, on_operands, rounder, wrapped
from .number import CLASSES, FALSE, TRUE, Number, plain

_NUMBERS = (int, float, Number)
_MOST = 1 << 30  # see seam.divisor_of


def joined(a: Any, b: Any) -> DType:
    """Return the type in which two operands meet, of which one at least is typed."""
    x, y = getattr(a, "dtype", a), getattr(b, "dtype", b)
    return join(x, y) if isinstance(x, DType) and isinstance(y, DType) else dtypes.joined(x, y)


join: Callable[[DType, DType], DType] = functools.cache(dtypes.joined)
"""The same of two types."""


# ------------------------------------------------------------------ values

_WRAPPING = ("add", "sub", "mul", "lshift")
_DIVIDING = ("floordiv", "mod")


@functools.cache
def _operation(op: str, t: DType) -> Callable[[Any, Any], Any]:
    """Return what computes an operator on two values of a type."""
    check_traced_operator(op, t)
    f = on_operands(op, (t, t), t)
    if t is Boolean:
        return lambda x, y: bool(f(int(x), int(y)) & 1) if y or op not in _DIVIDING else _undivided(x)
    return f


def _undivided(x: Any) -> bool:
    raise seam.CuteError(f"{bool(x)} is divided by False: choose a divisor that is not 0")


def computed(op: str, x: Any, y: Any, t: DType) -> Any:
    """Apply an operator to the values of operands that meet in a type; gives a value of that type."""
    f = _operation(op, t)
    if t.is_float:
        return f(_real(x, t), _real(y, t))
    low, high = limits(t)
    if not (low <= x <= high and low <= y <= high):
        x, y = wrapped(int(x), t), wrapped(int(y), t)
    return f(x, y)


def _real(x: Any, t: DType) -> float:
    return rounder(t)(x) if type(x) is float else number(x, t)  # type: ignore[no-any-return]


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """Apply an operator to two numbers, one of them typed."""
    t = joined(a, b)
    value = computed(op, plain(a), plain(b), t)
    if not t.is_integer:
        return CLASSES[t].make(value)
    return CLASSES[t].make(value, divides(op, a, b, t))


def _natural(self: Any, op: str, a: Any, b: Any) -> Any:
    """Do what `Leaf._natural` says; a CuteError of a negative number, but where unsigned numbers have the same
    remainder: of a power of two."""
    same = op == "mod" and plain(b) > 0 and not plain(b) & (plain(b) - 1)
    for x in (a, b):
        if plain(x) < 0 and not same:
            raise seam.CuteError(negative(plain(a), plain(b), op))
    return a // b if op == "floordiv" else a % b


def _natural_up(self: Any, a: Any, b: Any) -> Any:
    """Do what `Leaf._natural_up` says; a CuteError of a negative number."""
    down = _natural(self, "floordiv", a, b)
    return down + 1 if plain(a) % plain(b) else down


Number._natural, Number._natural_up = _natural, _natural_up  # type: ignore[method-assign]


def divides(op: str, a: Any, b: Any, t: DType) -> int:
    """Return what is known to divide the result."""
    if not any(type(x) is int or getattr(x, "divisor", 1) > 1 for x in (a, b)):
        return 1
    known = seam.divisor_of(op, a, b)
    return known if t.signed or op not in _WRAPPING else known & -known


# ------------------------------------------------------------------ comparisons

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def compares(op: str, x: Any, y: Any, t: DType) -> bool:
    """Say whether a comparison of two values in a type is true."""
    if t.is_integer:
        low, high = limits(t)
        if not (low <= x <= high and low <= y <= high):
            x, y = wrapped(int(x), t), wrapped(int(y), t)
    elif t.is_float:
        x, y = _real(x, t), _real(y, t)
    return _COMPARE[op](x, y)


def compared(op: str, a: Any, b: Any) -> Any:
    """A comparison: of two static numbers a static bool."""
    if type(b) is int and isinstance(a, Number) and a.integer and a.low <= b <= a.high:
        return TRUE if _COMPARE[op](a.value, b) else FALSE
    if not (isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS)):
        return NotImplemented
    if not isinstance(a, Number) and not isinstance(b, Number):
        return _COMPARE[op](a, b)
    return TRUE if compares(op, plain(a), plain(b), joined(a, b)) else FALSE


def _comparison(op: str, name: str) -> None:
    setattr(Number, f"__{name}__", lambda self, o: compared(op, self, o))


# ------------------------------------------------------------------ Python's operators

_KEEPS = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1, "or_": 0, "xor": 0, "lshift": 0, "rshift": 0}
"""The static operand with which an operator gives the other one: on the left too of those that commute."""
_ZERO = ("mul", "floordiv", "mod")
"""Those of integers that give 0 of a static 0 on the left."""
_OPERATORS = (*_KEEPS, "truediv", "mod", "and_", "pow", "divmod")


def _operator(op: str) -> None:
    keeps = _KEEPS.get(op)
    commutes = op in ("add", "mul", "or_", "xor")

    def forward(self: Number, o: Any) -> Any:
        if not isinstance(o, _NUMBERS):
            return NotImplemented
        if type(o) is int or type(o) is bool:
            if o == keeps:
                return self
            if self.integer and (op == "mul" and o == 0 or op == "mod" and o > 0 and self.divisor % o == 0):
                return 0
        return arithmetic(op, self, o)

    def backward(self: Number, o: Any) -> Any:
        if not isinstance(o, _NUMBERS):
            return NotImplemented
        if type(o) is int or type(o) is bool:
            if commutes and o == keeps:
                return self
            if o == 0 and op in _ZERO and self.integer:
                return 0
        return arithmetic(op, o, self)

    name = op.rstrip("_")
    setattr(Number, f"__{name}__", forward)
    setattr(Number, f"__r{name}__", backward)


def _sum_or_product(op: str, cls: type[Number], slow: Callable[..., Any]) -> Any:
    """`+`, `-` or `*` of integers of one type, and of static ones that fit it; `slow` does the rest."""
    t, make, exact, get = cls.dtype, cls.make, getattr(operator, op), cls.found
    low, high, least, most = cls.low, cls.high, cls.least, cls.most
    product, only_powers = op == "mul", not t.signed

    def call(self: Any, o: Any) -> Any:
        if type(o) is cls:
            if self.divisor > 1 or o.divisor > 1:
                return slow(self, o)
            out = exact(self.value, o.value)
            known = get(out)
            return make(out if low <= out <= high else wrapped(out, t)) if known is None else known
        if type(o) is int and least <= o <= most and o != product and o != 0:
            out = exact(self.value, o)
            known = self.divisor * abs(o) if product else 1 if self.divisor == 1 else math.gcd(self.divisor, o)
            if known > _MOST:
                known = math.gcd(known, _MOST)
            return make(out if low <= out <= high else wrapped(out, t), known & -known if only_powers else known)
        return slow(self, o)

    return call


def _of_bits(op: str, cls: type[Number], slow: Callable[..., Any]) -> Any:
    """Other operators of such integers, of which none is negative and nothing is known to divide any."""
    make, f, high = cls.make, _operation(op, cls.dtype), cls.high

    def call(self: Any, o: Any) -> Any:
        if self.divisor > 1 or self.value < 0:
            return slow(self, o)
        if type(o) is cls and o.divisor == 1 and o.value >= 0:
            out = f(self.value, o.value)
        elif type(o) is int and 1 < o <= high:
            out = f(self.value, o)
            if op not in _UNKNOWN:
                return make(out, divides(op, self, o, cls.dtype))
        else:
            return slow(self, o)
        return make(out)

    return call


_UNKNOWN = ("floordiv", "mod", "xor", "or_", "rshift")
"""Operators that give a number of unknown divisor for one of unknown divisor."""

for _op in _OPERATORS:
    _operator(_op)
for _op, _name in (("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge")):
    _comparison(_op, _name)
for _cls in CLASSES.values():
    for _op in ("add", "sub", "mul", "floordiv", "mod", "xor", "or_", "and_") if _cls.integer else ():
        _name = _op.rstrip("_")
        _slow = getattr(Number, f"__{_name}__")
        _fast = (_sum_or_product if _op in ("add", "sub", "mul") else _of_bits)(_op, _cls, _slow)
        setattr(_cls, f"__{_name}__", _fast)
        if _op in ("add", "mul"):
            setattr(_cls, f"__r{_op}__", _fast)


def _negative(self: Number) -> Any:
    return arithmetic("sub", 0 if self.integer else -0.0, self)


def _inverted(self: Any) -> Any:
    return self ^ (True if self.dtype is Boolean else -1)


for _name, _unary in (("neg", _negative), ("invert", _inverted), ("pos", lambda self: self)):
    setattr(Number, f"__{_name}__", _unary)
