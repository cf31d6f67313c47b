# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions that kernels trace, epilogues and functions of scores: found while they are traced.

A `Dual` goes through the function in the place of a number, or of a vector, and carries its derivatives by what is
asked for: forward mode, inside the kernel. A `Hanging` goes through it on the host and tells what the result hangs on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba_cute as cute
from numba_cute.seam import CuteError
from numba_cute.tensor.followed import Followed
from numba_cute.tensor.ssa import elementwise

__all__ = ["Dual", "Hanging", "dual", "slots_of", "times"]

COMPARING = ("<", "<=", "==", "!=", ">", ">=", "isnan", "isinf", "isfinite")
FLAT = ("floor", "ceil", "trunc", "round", "roundeven")
LN_2, LN_10 = math.log(2.0), math.log(10.0)
_where = cute.where


def times(x: Any, y: Any) -> Any:
    """Multiply, where a factor is perhaps a Python number that makes it superfluous."""
    if _is(x, 0.0) or _is(y, 0.0):
        return 0.0
    return y if _is(x, 1.0) else x if _is(y, 1.0) else x * y


def plus(x: Any, y: Any) -> Any:
    """Add, where a summand is perhaps the Python number 0."""
    return y if _is(x, 0.0) else x if _is(y, 0.0) else x + y


def _is(x: Any, number: float) -> bool:
    return type(x) is float and x == number


def _greater(x: Any, y: Any) -> Any:
    """1 where x is the greater, and a half where both are the same, as torch has it."""
    return _where(x > y, 1.0, _where(x == y, 0.5, 0.0))


def _of_power(y: Any, x: Any, n: Any) -> tuple[Any, Any]:
    return n * cute.math.pow(x, n - 1.0), lambda: y * cute.math.log(x)


# Of each operation the derivatives by its operands, of its result and these. What takes time is a function of nothing.
_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda y, a, b: (1.0, 1.0),
    "sub": lambda y, a, b: (1.0, -1.0),
    "mul": lambda y, a, b: (b, a),
    "div": lambda y, a, b: (lambda: 1.0 / b, lambda: -1.0 * y / b),
    "div_full": lambda y, a, b: (lambda: cute.math.rcp(b, fastmath=True), lambda: -1.0 * y * cute.math.rcp(b, True)),
    "fma": lambda y, a, b, c: (b, a, 1.0),
    "neg": lambda y, x: (-1.0,),
    "abs": lambda y, x: (lambda: _where(x < 0.0, -1.0, _where(x > 0.0, 1.0, 0.0)),),
    "max": lambda y, a, b: (lambda: _greater(a, b), lambda: _greater(b, a)),
    "min": lambda y, a, b: (lambda: _greater(b, a), lambda: _greater(a, b)),
    "exp": lambda y, x: (y,),
    "exp2": lambda y, x: (lambda: y * LN_2,),
    "ex2_approx": lambda y, x: (lambda: y * LN_2,),
    "expm1": lambda y, x: (lambda: y + 1.0,),
    "log": lambda y, x: (lambda: 1.0 / x,),
    "log2": lambda y, x: (lambda: 1.0 / (x * LN_2),),
    "lg2_approx": lambda y, x: (lambda: cute.math.rcp(x * LN_2, fastmath=True),),
    "log10": lambda y, x: (lambda: 1.0 / (x * LN_10),),
    "log1p": lambda y, x: (lambda: 1.0 / (1.0 + x),),
    "sqrt": lambda y, x: (lambda: 0.5 / y,),
    "sqrt_approx": lambda y, x: (lambda: 0.5 * cute.math.rcp(y, fastmath=True),),
    "rsqrt": lambda y, x: (lambda: -0.5 * y * y * y,),
    "rsqrt_approx": lambda y, x: (lambda: -0.5 * y * y * y,),
    "rcp_approx": lambda y, x: (lambda: -1.0 * y * y,),
    "cbrt": lambda y, x: (lambda: 1.0 / (3.0 * y * y),),
    "sin": lambda y, x: (lambda: cute.math.cos(x),),
    "sin_approx": lambda y, x: (lambda: cute.math.cos(x, fastmath=True),),
    "cos": lambda y, x: (lambda: -1.0 * cute.math.sin(x),),
    "cos_approx": lambda y, x: (lambda: -1.0 * cute.math.sin(x, fastmath=True),),
    "tan": lambda y, x: (lambda: 1.0 + y * y,),
    "tanh": lambda y, x: (lambda: 1.0 - y * y,),
    "tanh_approx": lambda y, x: (lambda: 1.0 - y * y,),
    "sinh": lambda y, x: (lambda: cute.math.cosh(x),),
    "cosh": lambda y, x: (lambda: cute.math.sinh(x),),
    "asin": lambda y, x: (lambda: cute.math.rsqrt(1.0 - x * x),),
    "acos": lambda y, x: (lambda: -1.0 * cute.math.rsqrt(1.0 - x * x),),
    "atan": lambda y, x: (lambda: 1.0 / (1.0 + x * x),),
    "asinh": lambda y, x: (lambda: cute.math.rsqrt(1.0 + x * x),),
    "acosh": lambda y, x: (lambda: cute.math.rsqrt(x * x - 1.0),),
    "atanh": lambda y, x: (lambda: 1.0 / (1.0 - x * x),),
    "atan2": lambda y, a, b: (lambda: b / (a * a + b * b), lambda: -1.0 * a / (a * a + b * b)),
    "erf": lambda y, x: (lambda: 1.1283791670955126 * cute.math.exp(-1.0 * x * x),),
    "erfc": lambda y, x: (lambda: -1.1283791670955126 * cute.math.exp(-1.0 * x * x),),
    "pow": _of_power,
}  # fmt: skip
_RULES |= dict.fromkeys(FLAT, lambda y, x: (0.0,))


def _name(op: Any) -> str:
    return op if isinstance(op, str) else str(op.name)


class Hanging(Followed):
    """A value of which it is known only what it hangs on: names."""

    def __init__(self, *on: str) -> None:
        self.on = frozenset(on)

    def applied(self, op: Any, operands: tuple[Any, ...]) -> Hanging:
        """Give what hangs on all that the operands hang on."""
        return Hanging(*(name for x in operands if isinstance(x, Hanging) for name in x.on))

    @staticmethod
    def of(x: Any) -> frozenset[str]:
        """Say what a value hangs on; a number on nothing."""
        return x.on if isinstance(x, Hanging) else frozenset()


class Dual(Followed):
    """A value, and its derivatives. value: a number, a vector or a `Hanging`. slots: the derivatives, each by the name
    of what it is by."""

    rank = 1

    def __init__(self, value: Any, slots: dict[Any, Any]) -> None:
        self.value, self.slots = value, slots

    def applied(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Give what an operation makes of the values, with its derivatives by the chain rule."""
        name, values = _name(op), [x.value if isinstance(x, Dual) else x for x in operands]
        made = _where(*values) if name == "where" else elementwise(op, *values)
        if name in COMPARING:
            return made
        names = list(dict.fromkeys(slot for x in operands for slot in slots_of(x)))
        if name == "where":
            chosen = {n: [slots_of(x).get(n, 0.0) for x in operands[1:]] for n in names}
            return Dual(made, {n: _where(values[0], *each) for n, each in chosen.items()})
        if name not in _RULES:
            raise CuteError(
                f"{name!r} has no derivative here, and a gradient is asked for: write the function with others of "
                "cute.math, or take no gradient"
            )
        by, found = _RULES[name](made, *values), dict.fromkeys(names, 0.0)
        for x, factor in zip(operands, by, strict=True):
            own = slots_of(x)
            factor = factor() if own and callable(factor) and not isinstance(factor, Followed) else factor
            for slot, derivative in own.items():
                found[slot] = plus(found[slot], times(factor, derivative))
        return Dual(made, found)


def dual(x: Any, slot: Any) -> Dual:
    """Begin to follow `x`, by which a derivative is asked for under the name `slot`."""
    return Dual(x, {slot: 1.0})


def slots_of(x: Any) -> dict[Any, Any]:
    """Give the derivatives that a value carries."""
    return x.slots if isinstance(x, Dual) else {}
