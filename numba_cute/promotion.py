# SPDX-License-Identifier: Apache-2.0
"""The type that an operator of two numbers gives by the CuTe DSL's rule: in files that import `cutlass`, which the hook
of `compat` answers. Both engines, and numbers of the host, read it here. Kernels of other files have Numba's.

docs/differences.md has the table, and its sources.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from . import seam
from .dtypes import (
    BFloat16,
    Boolean,
    DType,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Scalar,
    Uint64,
    number,
)
from .seam.guards.element_values import OF_DSL
from .seam.marks.constexpr import NUMBERS

COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
BITWISE = ("and_", "or_", "xor")
SHIFTS = ("lshift", "rshift")
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BINARY = (*ARITHMETIC, *SHIFTS, *BITWISE, *COMPARED)
UNARY = ("neg", "pos", "invert")
"""Operators, by their names in `operator`."""
_OF_INTEGERS = (*BITWISE, *SHIFTS)


class Promoted(NamedTuple):
    """The types of an operator: its `result`, and `operands`, to which the operands are converted."""

    result: DType
    operands: tuple[DType, ...]


def literal(value: Any) -> DType:
    """Return the type of a number of Python's where it meets one of run time."""
    if isinstance(value, bool):
        return Boolean
    if isinstance(value, float):
        return Float32
    return Int32 if -(1 << 31) <= value < 1 << 31 else Int64 if value < 1 << 63 else Uint64


@functools.cache
def promoted(a: DType, b: DType) -> DType | None:
    """Return the type in which two numbers meet; None of those that have none: a Float16 and a BFloat16, a BFloat16 and
    an integer of 16 bits or less."""
    if a is b:
        return a
    if a.is_float or b.is_float:
        x, y = (t if t.is_float else _float_of(t, other) for t, other in ((a, b), (b, a)))
        if x is y:
            return x
        return None if x.width == y.width else max(x, y, key=lambda t: t.width)
    if Boolean in (a, b):
        return b if a is Boolean else a
    unsigned, signed = (b, a) if a.signed else (a, b)
    if a.signed == b.signed:
        return max(a, b, key=lambda t: t.width)
    return unsigned if unsigned.width >= signed.width else signed


def _float_of(integer: DType, other: DType) -> DType:
    """Return the type of floats that an integer becomes beside a float."""
    width = 1 if integer is Boolean else integer.width
    if width <= other.width and not (other in (Float16, BFloat16) and width > 1):
        return other
    if integer is Boolean:
        return other
    return {16: Float16, 32: Float32, 64: Float64}[max(width, other.width)]


@functools.cache
def binary(op: str, a: DType, b: DType, of_python: bool = False) -> Promoted | None:
    """Return what an operator of two numbers gives; None if there is none.

    op: its name in `operator`. a, b: the types of its operands. of_python: whether one is a bool of Python's.
    """
    meet = promoted(a, b)
    if meet is None or (op in _OF_INTEGERS and meet.is_float):
        return None
    if op in COMPARED:
        return Promoted(Boolean, (meet, meet))
    if op == "truediv" and not meet.is_float:
        return Promoted(Float32, (Int32, Int32) if meet is Boolean else (meet, meet))
    if meet is Boolean and op not in BITWISE:
        return Promoted(Int32 if of_python else Boolean, (Int32, Int32))
    if op == "pow" and a.is_float and not b.is_float:  # by multiplications, as Numba does it
        return Promoted(meet, (meet, Int32 if b is Boolean or b.width < 32 else b))
    return Promoted(meet, (meet, meet))


def unary(op: str, a: DType) -> DType | None:
    """Return the type that an operator of one number gives: its own; None if there is none."""
    if op == "invert" and a.is_float or op == "neg" and a is Boolean:
        return None
    return a


def meeting(*types: DType) -> DType | None:
    """Return the type of a variable that has one of some types, by the way that the code took; of `min` and `max`."""
    found: DType | None = types[0]
    for t in types[1:]:
        found = None if found is None else promoted(found, t)
    return found


# ------------------------------------------------------------------ values


def quotient(op: str, x: int, y: int) -> int:
    """Divide two integers of run time: `//` rounds down, and `%` has the sign of the dividend; 0 by 0."""
    if y == 0:
        return 0
    if op == "floordiv":
        return x // y
    rest = abs(x) % abs(y)
    return -rest if x < 0 else rest


def _scalars(op: str, a: Any, b: Any) -> Any:
    """Apply an operator to two numbers of the host, one of them a Scalar; None for other operands. CuteError: the rule
    has none for such."""
    if not all(isinstance(x, (Scalar, int, float)) for x in (a, b)):
        return None
    types = [x.dtype if isinstance(x, Scalar) else literal(x) for x in (a, b)]
    case = binary(op, *types, any(type(x) is bool for x in (a, b)))
    if case is None:
        raise seam.CuteError(f"{a!r} and {b!r}: the CuTe DSL's rule has no {op} for them: convert one of them")
    meet, result = case.operands[0], case.result
    x, y = (number(v.value if isinstance(v, Scalar) else v, t) for v, t in zip((a, b), case.operands))
    if op in ("truediv", "floordiv", "mod") and y == 0 and (meet.is_float or op == "truediv"):
        raise seam.CuteError(f"{a!r} and {b!r}: a division by 0")
    if op in ("floordiv", "mod") and not meet.is_float:
        found: Any = quotient(op, int(x), int(y))
    elif op == "mod":
        found = math.fmod(x, y)
    elif op in SHIFTS and not 0 <= y < meet.width:
        found = -1 if op == "rshift" and x < 0 else 0
    else:
        found = getattr(operator, op)(x, y)
    if op in COMPARED:
        return Scalar(Boolean, found)
    known = seam.divisor_of(op, a, b) if result.is_integer and op != "truediv" else 1
    cast = number(found, result)
    return Scalar(result, cast, known if cast == found else known & -known)


OF_DSL.append(_scalars)
NUMBERS.update({kind: lambda value: literal(value)(value) for kind in (bool, int, float)})


# ------------------------------------------------------------------ whose rule it is

_FOLLOWED = [False]


def followed() -> bool:
    """Say whether the function that is being compiled has the CuTe DSL's rule."""
    return _FOLLOWED[-1]


@contextmanager
def following(reference: bool) -> Iterator[None]:
    """Have what is compiled follow the CuTe DSL's rule, or Numba's."""
    _FOLLOWED.append(reference)
    try:
        yield
    finally:
        _FOLLOWED.pop()


def follows(fn: Any) -> bool:
    """Say whether a function has the CuTe DSL's rule: whether its file imports `cutlass`, answered by the hook."""
    return hasattr(fn, "__globals__") and seam.is_of_hook(fn.__globals__, fn.__code__.co_filename)
