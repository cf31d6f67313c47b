# SPDX-License-Identifier: Apache-2.0
"""Integers that a type writes as `?`: their width, what divides them, and, while a program runs, their value.

The layout algebra computes with them as with any run-time number. What it makes of a type's leaves is the type of the
result; what it makes of a running program's leaves is the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...seam import CuteError, Leaf
from ...seam.ground.leaf import divisor_of


class Dynamic(Leaf):
    """An integer of `width` bits that is known only at run time. value: what it is, while a program runs."""

    __slots__ = ("divisor", "value", "width")

    def __init__(self, width: int = 32, divisor: int = 1, value: int | None = None) -> None:
        self.width, self.divisor = width, divisor
        self.value = None if value is None else wrapped(value, width)

    def __eq__(self, other: object) -> bool:
        return type(other) is Dynamic and (self.width, self.divisor, self.value) == (
            other.width,
            other.divisor,
            other.value,
        )

    def __hash__(self) -> int:
        return hash((self.width, self.divisor, self.value))

    def __repr__(self) -> str:
        words = [f"i{self.width}"] if self.width != 32 else []
        words += [f"div={self.divisor}"] if self.divisor > 1 else []
        return f"?{{{' '.join(words)}}}" if words else "?"

    def _natural(self, op: str, a: Any, b: Any) -> Any:
        return _applied(op, a, b)

    # fmt: off
    def __add__(self, other: Any) -> Any: return _applied("add", self, other)
    def __radd__(self, other: Any) -> Any: return _applied("add", other, self)
    def __sub__(self, other: Any) -> Any: return _applied("sub", self, other)
    def __rsub__(self, other: Any) -> Any: return _applied("sub", other, self)
    def __mul__(self, other: Any) -> Any: return _applied("mul", self, other)
    def __rmul__(self, other: Any) -> Any: return _applied("mul", other, self)
    def __floordiv__(self, other: Any) -> Any: return _applied("floordiv", self, other)
    def __rfloordiv__(self, other: Any) -> Any: return _applied("floordiv", other, self)
    def __mod__(self, other: Any) -> Any: return _applied("mod", self, other)
    def __rmod__(self, other: Any) -> Any: return _applied("mod", other, self)
    def __and__(self, other: Any) -> Any: return _applied("and_", self, other)
    def __rand__(self, other: Any) -> Any: return _applied("and_", other, self)
    def __xor__(self, other: Any) -> Any: return _applied("xor", self, other)
    def __rxor__(self, other: Any) -> Any: return _applied("xor", other, self)
    def __lshift__(self, other: Any) -> Any: return _applied("lshift", self, other)
    def __rshift__(self, other: Any) -> Any: return _applied("rshift", self, other)
    def __neg__(self) -> Any: return _applied("sub", 0, self)
    # fmt: on

    def __abs__(self) -> Dynamic:
        return Dynamic(self.width, self.divisor, None if self.value is None else abs(self.value))


def wrapped(value: int, width: int) -> int:
    """Return the integer of `width` bits, with its sign, that has the low bits of `value`."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def width_of(x: Any) -> int:
    """Return the width in which an integer is computed with: a static one takes 32 bits where it fits, else 64."""
    if isinstance(x, Dynamic):
        return x.width
    return 32 if -(1 << 31) <= x < 1 << 31 else 64


def value_of(x: Any) -> int | None:
    """Return the value of a leaf; None where only its type is known."""
    return x.value if isinstance(x, Dynamic) else x


def _divided(a: int, b: int) -> int:
    """Divide towards zero, as a machine does."""
    if b == 0:
        raise CuteError("a division by zero")
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


_VALUES: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": _divided,
    "mod": lambda a, b: a - b * _divided(a, b),
    "and_": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
    "ceil": lambda a, b: -_floored(-a, b),
    "min": min,
    "max": max,
}


def _floored(a: int, b: int) -> int:
    if b == 0:
        raise CuteError("a division by zero")
    return a // b


def combined(op: str, a: Any, b: Any) -> Any:
    """Apply an operation to two integers, as a program does. op: a name of `operator`; "ceil" divides and rounds up,
    "min" and "max" choose."""
    if not isinstance(a, Dynamic) and not isinstance(b, Dynamic):
        return _VALUES[op](a, b)
    x, y = value_of(a), value_of(b)
    value = None if x is None or y is None else _VALUES[op](x, y)
    return Dynamic(max(width_of(a), width_of(b)), divisor_of(op, a, b), value)


_NEUTRAL = {"mul": 1, "floordiv": 1, "ceil": 1}


def _applied(op: str, a: Any, b: Any) -> Any:
    """Apply an operation to two integers; what does not hang on the run-time one stays static."""
    for x in (a, b):
        if type(x) is not int and not isinstance(x, Dynamic):
            return NotImplemented
    if op in _NEUTRAL and type(b) is int and b == _NEUTRAL[op]:
        return a
    if op == "mul" and type(a) is int and a == 1:
        return b
    if op in ("mul", "and_") and 0 in [x for x in (a, b) if type(x) is int]:
        return 0
    if op in ("floordiv", "mod", "ceil") and type(b) is int and b == 0:
        raise CuteError("a division by zero")
    if op in ("floordiv", "mod", "ceil") and type(a) is int and a == 0:
        return 0
    if op == "mod" and type(b) is int and b == 1:
        return 0
    return combined(op, a, b)


def ceil_divided(a: Any, b: Any) -> Any:
    """Divide two integers, static or not, and round up."""
    return _applied("ceil", a, b)


def is_static(x: Any) -> bool:
    """Return whether no leaf of a tuple is a `?`."""
    return all(map(is_static, x)) if isinstance(x, tuple) else not isinstance(getattr(x, "value", x), Dynamic)


__all__ = ["Dynamic", "ceil_divided", "combined", "is_static", "value_of", "width_of", "wrapped"]
