# SPDX-License-Identifier: Apache-2.0
"""The values of Numba's operators and conversions, on Python's ints, bools and floats.

A value lies in its type: an integer in its range, a float on one of its numbers. Integers wrap around; floats are
IEEE's, of which none raises; `//` and `%` by 0 give 0 for integers (Numba's error model "numpy", as CUDA's kernels
have it).
"""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ....dtypes import Boolean, DType, Float16, Float32, Float64, number
from .cases import HALVES, binary, unary

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]

_HALF = struct.Struct("<e")


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    low = -(1 << (dtype.width - 1)) if dtype.signed else 0
    return low, low + (1 << dtype.width) - 1


def wrapped(value: int, dtype: DType) -> int:
    """An integer as a type holds it."""
    bits = value & ((1 << dtype.width) - 1)
    return bits - (1 << dtype.width) if dtype.signed and bits >> (dtype.width - 1) else bits


# ------------------------------------------------------------------ conversions


def _single(x: float) -> float:
    return ctypes.c_float(x).value


def _half(x: float) -> float:
    try:
        found: float = _HALF.unpack(_HALF.pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
    return found


@functools.cache
def rounder(dtype: DType) -> Unary:
    """Return a function that rounds a double to a type of floats."""
    if dtype is Float64:
        return float
    if dtype is Float32:
        return _single
    return _half if dtype is Float16 else lambda x: number(x, dtype)


def _integer_to_float(dtype: DType) -> Unary:
    if dtype is Float64:
        return float
    near = rounder(dtype)

    def convert(x: int) -> float:
        return near(float(x)) if -(1 << 53) <= x <= 1 << 53 else number(int(x), dtype)  # type: ignore[no-any-return]

    return convert


def _float_to_integer(src: DType, dst: DType) -> Unary:
    """PTX's cvt.rzi, which saturates. There is none to 8 bits: those of 16 are cut off."""
    width = dst.width if src in HALVES else max(16, dst.width)
    low = -(1 << (width - 1)) if dst.signed else 0
    high = low + (1 << width) - 1
    of_nan = 0 if width < 64 and src is not Float64 else wrapped(1 << (width - 1), dst)

    def convert(x: float) -> int:
        if x != x:
            return of_nan
        if x >= high:
            return wrapped(high, dst)
        return wrapped(low if x <= low else int(x), dst)

    return convert


def _wraps(dtype: DType) -> Unary:
    low, high = limits(dtype)

    def convert(x: int) -> int:
        return int(x) if low <= x <= high else wrapped(x, dtype)

    return convert


@functools.cache
def converter(src: DType, dst: DType) -> Unary | None:
    """Return a function that converts a value as Numba casts it; None if the value stays the same."""
    if src is dst:
        return None
    if dst is Boolean:
        return bool
    if src.is_float:
        return rounder(dst) if dst.is_float else _float_to_integer(src, dst)
    if dst.is_float:
        return _integer_to_float(dst)
    return int if src is Boolean else _wraps(dst)


def convert(value: Any, src: DType, dst: DType) -> Any:
    """A value of one type as Numba casts it to another."""
    f = converter(src, dst)
    return value if f is None else f(value)


# ------------------------------------------------------------------ integers


def _integer(op: Binary, dtype: DType) -> Binary:
    """An operator whose exact result wraps around."""
    low, high = limits(dtype)

    def call(x: int, y: int) -> int:
        exact = op(x, y)
        return exact if low <= exact <= high else wrapped(exact, dtype)

    return call


def _divided(op: Binary, operands: tuple[DType, ...], result: DType) -> Binary:
    """`//` or `%`: 0 where it divides by 0 or overflows."""
    (first, second), low = operands, limits(result)[0]
    cut, (least, most) = _wraps(result), limits(result)
    cut_first, cut_second = _wraps(first), _wraps(second)

    def call(x: int, y: int) -> int:
        x, y = cut_first(x), cut_second(y)
        if y == 0 or (y == -1 and x == low):
            return 0
        exact = op(x, y)
        return exact if least <= exact <= most else cut(exact)  # type: ignore[no-any-return]

    return call


def _shifted(op: str, dtype: DType) -> Binary:
    """A shift by as many bits as there are, or more (a negative number is such), shifts all of them out."""
    width, left = dtype.width, op == "lshift"

    def call(x: int, y: int) -> int:
        if not 0 <= y < width:
            return -1 if x < 0 and not left else 0
        return wrapped(x << y, dtype) if left else int(x >> y)

    return call


def _integer_power(dtype: DType) -> Binary:
    """A power of integers; of a negative exponent what is left of the fraction."""

    def call(x: int, y: int) -> int:
        x = wrapped(x, dtype)
        if y < 0 and x not in (1, wrapped(-1, dtype)):
            return 0
        return wrapped(pow(x, abs(y), 1 << dtype.width), dtype)

    return call


# ------------------------------------------------------------------ floats


def quotient(x: float, y: float) -> float:
    """x / y, infinite or not a number where y is 0."""
    if y != 0:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def remainder(x: float, y: float) -> float:
    """C's fmod."""
    if y == 0 or x in (math.inf, -math.inf):
        return math.nan
    return math.fmod(x, y)


def float_power(x: float, y: float) -> float:
    """C's pow."""
    try:
        return math.pow(x, y)
    except (ValueError, OverflowError):
        with np.errstate(all="ignore"):
            return float(np.power(np.float64(x), np.float64(y)))


def float_divmod(x: float, y: float, near: Unary) -> tuple[float, float]:
    """Python's divmod, each step rounded by `near`."""
    if y == 0:
        return quotient(x, y), math.nan
    mod = remainder(x, y)
    div = near(quotient(near(x - mod), y))
    if mod != 0:
        if (y < 0) != (mod < 0):
            div, mod = near(div - 1.0), near(mod + y)
    else:
        mod = -0.0 if y < 0 else 0.0
    if div != 0 and div == div:
        whole = div if math.isinf(div) else math.floor(div) * 1.0
        return (near(whole + 1.0) if div - whole > 0.5 else whole), mod
    return near(quotient(near(near(div * div) * x), y)), mod


def _float_to_whole_power(dtype: DType) -> Binary:
    """A float to an integer power, by multiplications."""
    near = rounder(dtype)

    def call(x: float, y: int) -> float:
        n = abs(y)
        if n > 0x10000:
            return near(float_power(x, float(y)))  # type: ignore[no-any-return]
        result, square = 1.0, x
        while n:
            if n & 1:
                result = near(result * square)
            n >>= 1
            square = near(square * square)
        return near(quotient(1.0, result)) if y < 0 else result

    return call


_FLOATS: dict[str, Binary] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": quotient, "pow": float_power,
}  # fmt: skip


def _float(op: str, dtype: DType) -> Binary:
    near = rounder(dtype)
    if op in ("floordiv", "mod"):
        which = op == "mod"
        return lambda x, y: float_divmod(x, y, near)[which]
    exact = _FLOATS[op]
    return exact if dtype is Float64 else lambda x, y: near(exact(x, y))


# ------------------------------------------------------------------ operators

_COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
_DIVIDE: dict[str, Binary] = {"floordiv": operator.floordiv, "mod": operator.mod}


def on_operands(op: str, operands: tuple[DType, ...], result: DType) -> Binary:
    """Return a function that computes an operator on values of the types in a signature."""
    if op in _COMPARE:
        return getattr(operator, op)  # type: ignore[no-any-return]
    if op == "pow" and operands[0].is_float and not operands[1].is_float:
        return _float_to_whole_power(result)
    if operands[0].is_float:
        return _float(op, result)
    if op == "truediv":
        return lambda x, y: quotient(float(x), float(y))
    if result is Boolean:
        return getattr(operator, op)  # type: ignore[no-any-return]
    if op in _DIVIDE:
        return _divided(_DIVIDE[op], operands, result)
    if op in ("lshift", "rshift"):
        return _shifted(op, result)
    return _integer_power(result) if op == "pow" else _integer(getattr(operator, op), result)


@functools.cache
def binary_operation(op: str, a: DType, b: DType) -> tuple[DType, Binary] | None:
    """The type that an operator gives for two types, and what computes it on values of those; None if Numba has no such
    operator. op: a name of `operator`."""
    case = binary(op, a, b)
    if case is None:
        return None
    assert isinstance(case.result, DType)
    f = on_operands(op, case.operands, case.result)
    # between integers the operands' values tell all: their conversions change them by multiples of 2 ** 64 alone
    if case.operands[0].is_float or case.operands[1].is_float:
        first, second = converter(a, case.operands[0]), converter(b, case.operands[1])
        if first is not None or second is not None:
            first, second = first or _itself, second or _itself
            return case.result, lambda x, y, f=f, p=first, q=second: f(p(x), q(y))
    return case.result, f


def _itself(x: Any) -> Any:
    return x


@functools.cache
def unary_operation(op: str, a: DType) -> tuple[DType, Unary] | None:
    """The same of "neg", "pos", "invert" and "not_"."""
    case = unary(op, a)
    if case is None:
        return None
    result, operand = case.result, case.operands[0]
    assert isinstance(result, DType)
    if op == "not_":
        return result, operator.not_
    if operand.is_float:
        near, first = rounder(operand), converter(a, operand)
        return result, lambda x: near((-x if op == "neg" else x) if first is None else first(x))
    if op == "pos":
        return result, converter(operand, result) or _itself
    if operand is Boolean:
        return result, operator.not_ if op == "invert" else lambda x: -int(x)
    exact = operator.neg if op == "neg" else operator.invert
    narrow, widened = _wraps(operand), converter(operand, result) or _itself  # first it wraps, then it is widened
    return result, lambda x: widened(narrow(exact(x)))
