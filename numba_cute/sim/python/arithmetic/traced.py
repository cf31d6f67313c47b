# SPDX-License-Identifier: Apache-2.0
"""The operators of numbers in traced code, which are those of the compiler's leaves (compiler/emit/leaves.py): C's, in
the type in which two operands meet, a static integer taking the other's. `//`, `%` and `>>` of integers are unsigned:
they are for coordinates."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from .... import seam
from ....dtypes import Boolean, DType, Float64, Int32, Int64, number
from .compute import limits, quotient, rounder, wrapped
from .number import CLASSES, FALSE, TRUE, Number, plain

_NUMBERS = (int, float, Number)
_MOST = 1 << 30  # see seam.divisor_of


def joined(a: Any, b: Any) -> DType:
    """The type in which two operands meet, of which one at least is typed."""
    x, y = getattr(a, "dtype", None), getattr(b, "dtype", None)
    if x is not None and y is not None:
        return join(x, y)
    return _with_static(x or y, b if y is None else a)  # type: ignore[arg-type]


@functools.cache
def join(a: DType, b: DType) -> DType:
    """The same of two types."""
    if a is b:
        return a
    floats = [t for t in (a, b) if t.is_float]
    if floats:
        return max(floats, key=lambda t: t.width)
    if Boolean in (a, b):
        return b if a is Boolean else a
    if a.width == b.width:
        return a if a.signed else b
    return a if a.width > b.width else b


def _with_static(t: DType, static: Any) -> DType:
    if t.is_float or isinstance(static, float):
        return t if t.is_float else Float64
    if t is Boolean:
        return Boolean if isinstance(static, bool) else Int32
    held = CLASSES[t]
    return t if held.least <= static <= held.most else Int64


# ------------------------------------------------------------------ values


def _unsigned(x: int, t: DType) -> int:
    return x & (1 << t.width) - 1


def _divide(x: int, y: int, t: DType) -> int:
    """By 0, what GPUs give."""
    y = _unsigned(y, t)
    return _unsigned(x, t) // y if y else -1


def _rest(x: int, y: int, t: DType) -> int:
    y = _unsigned(y, t)
    return _unsigned(x, t) % y if y else x


_INTEGERS: dict[str, Callable[[int, int, DType], int]] = {
    "add": lambda x, y, t: x + y,
    "sub": lambda x, y, t: x - y,
    "mul": lambda x, y, t: x * y,
    "udiv": _divide,
    "urem": _rest,
    "and_": lambda x, y, t: x & y,
    "or_": lambda x, y, t: x | y,
    "xor": lambda x, y, t: x ^ y,
    "shl": lambda x, y, t: x << y if 0 <= y < t.width else 0,
    "lshr": lambda x, y, t: _unsigned(x, t) >> y if 0 <= y < t.width else 0,
}
_FLOATS: dict[str, Callable[[float, float], float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "fdiv": quotient,
}  # fmt: skip
_WRAPPING = ("add", "sub", "mul", "shl")


def computed(op: str, x: Any, y: Any, t: DType) -> Any:
    """An operator on the values of operands that meet in a type, as a value of that type."""
    if t.is_float:
        f = _FLOATS.get(op)
        if f is None:
            raise seam.CuteError(f"operator {op} is not for floating-point values ({t})")
        near = rounder(t)
        return near(f(_real(x, t), _real(y, t)))
    if op == "fdiv":
        raise seam.CuteError(f"operator / is not for integers ({t}) in traced code; convert one to a float")
    if t is Boolean:
        return bool(_INTEGERS[op](int(x), int(y), t) & 1)
    low, high = limits(t)
    if not (low <= x <= high and low <= y <= high):
        x, y = wrapped(int(x), t), wrapped(int(y), t)
    exact = _INTEGERS[op](x, y, t)
    return exact if low <= exact <= high else wrapped(exact, t)


def _real(x: Any, t: DType) -> float:
    return rounder(t)(x) if type(x) is float else number(x, t)  # type: ignore[no-any-return]


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """An operator on two numbers, one of them typed."""
    t = joined(a, b)
    value = computed(op, plain(a), plain(b), t)
    if not t.is_integer:
        return CLASSES[t].make(value)
    return CLASSES[t].make(value, divides(op, a, b, t))


def divides(op: str, a: Any, b: Any, t: DType) -> int:
    """What is known to divide the result."""
    if not any(type(x) is int or getattr(x, "divisor", 1) > 1 for x in (a, b)):
        return 1
    known = seam.divisor_of(op, a, b)
    return known if t.signed or op not in _WRAPPING else known & -known


# ------------------------------------------------------------------ comparisons

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def compares(op: str, x: Any, y: Any, t: DType) -> bool:
    """Whether two values compare so in a type."""
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

_KEEPS = {"add": 0, "sub": 0, "mul": 1, "udiv": 1, "or_": 0, "xor": 0, "shl": 0, "lshr": 0}
"""The static operand on the right with which an operator gives the other operand."""
_PYTHON = {"add": "add", "sub": "sub", "mul": "mul", "udiv": "floordiv", "urem": "mod", "and_": "and", "or_": "or",
           "xor": "xor", "shl": "lshift", "lshr": "rshift", "fdiv": "truediv"}  # fmt: skip


def _operator(op: str, reflected: bool) -> None:
    keeps = _KEEPS.get(op)

    def forward(self: Number, o: Any) -> Any:
        if not isinstance(o, _NUMBERS):
            return NotImplemented
        if type(o) is int or type(o) is bool:
            if o == keeps:
                return self
            if op == "mul" and o == 0 or op == "urem" and o > 0 and self.divisor % o == 0:
                return 0
        return arithmetic(op, self, o)

    def backward(self: Number, o: Any) -> Any:
        if not isinstance(o, _NUMBERS):
            return NotImplemented
        if type(o) is int or type(o) is bool:
            if o == keeps and op in ("add", "mul", "or_", "xor"):
                return self
            if o == 0 and op in ("mul", "udiv", "urem"):
                return 0
        return arithmetic(op, o, self)

    setattr(Number, f"__{_PYTHON[op]}__", forward)
    if reflected:
        setattr(Number, f"__r{_PYTHON[op]}__", backward)


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
    t, make, f = cls.dtype, cls.make, _INTEGERS[op]
    high = cls.high

    def call(self: Any, o: Any) -> Any:
        if self.divisor > 1 or self.value < 0:
            return slow(self, o)
        if type(o) is cls and o.divisor == 1 and o.value >= 0:
            out = f(self.value, o.value, t)
        elif type(o) is int and 1 < o <= high:
            out = f(self.value, o, t)
            if op not in _UNKNOWN:
                return make(out, divides(op, self, o, t))
        else:
            return slow(self, o)
        return make(out)

    return call


_UNKNOWN = ("udiv", "urem", "xor", "or_", "lshr")
"""What gives a number of which nothing is known to divide it, of one of which that is so."""

for _op in _PYTHON:
    _operator(_op, _op not in ("lshr", "fdiv"))
for _op, _name in (("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge")):
    _comparison(_op, _name)
for _cls in CLASSES.values():
    for _op in ("add", "sub", "mul", "udiv", "urem", "xor", "or_", "and_") if _cls.integer else ():
        _slow = getattr(Number, f"__{_PYTHON[_op]}__")
        _fast = (_sum_or_product if _op in ("add", "sub", "mul") else _of_bits)(_op, _cls, _slow)
        setattr(_cls, f"__{_PYTHON[_op]}__", _fast)
        if _op in ("add", "mul"):
            setattr(_cls, f"__r{_op}__", _fast)


def _negative(self: Number) -> Any:
    return arithmetic("sub", 0, self)


def _inverted(self: Any) -> Any:
    return self ^ (True if self.dtype is Boolean else -1)


for _name, _unary in (("neg", _negative), ("invert", _inverted)):
    setattr(Number, f"__{_name}__", _unary)
