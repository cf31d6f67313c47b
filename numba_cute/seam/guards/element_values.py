# SPDX-License-Identifier: Apache-2.0
"""Check the numbers and types that element types are given."""

from __future__ import annotations

import contextlib
import operator
import typing
from collections.abc import Callable
from typing import Any

from ..ground.error import CuteError, NoIndex
from ..ground.naming import described, shown
from . import facade

_KINDS_OF_NUMBERS = "biufV"
"""NumPy's kinds of what is one number; some of ml_dtypes call themselves void."""


class NoElementType(CuteError, TypeError):
    """The error for a NumPy type that is not an element type."""


def no_element_type(dtype: Any, known: Any) -> NoElementType:
    """Return the error for a NumPy type that is not an element type. known: those that there are."""
    return NoElementType(f"dtype {shown(dtype)}: no CuTe element type; known are {known}")


def one_number(value: Any, dtype: Any) -> Any:
    """Return a number that is to become one of `dtype`: itself, the integer that stands in its place, or the element
    of an array of no dimensions."""
    if isinstance(value, (int, float)):
        return value
    if getattr(value, "ndim", None) == 0 and getattr(getattr(value, "dtype", None), "kind", "?") in _KINDS_OF_NUMBERS:
        return value[()]
    try:
        return operator.index(value)
    except TypeError:
        raise CuteError(f"{dtype}({shown(value)}): {described(value)}, is no number: give one number") from None


def number_beside(a: Any, b: Any) -> Any:
    """Return the number that `b` is, to compare `a` with."""
    if isinstance(b, type(a)) or hasattr(b, "value") and hasattr(b, "divisor"):
        return b.value
    if (
        isinstance(b, (int, float))
        or getattr(b, "ndim", None) == 0
        and getattr(getattr(b, "dtype", None), "kind", "?") in "biuf"
    ):
        return b
    raise CuteError(f"{a!r} is compared with {described(b)}: compare numbers with numbers")


def to_int(value: Any) -> int:
    """Return a number as an int. CuteError: an infinity, or not a number."""
    try:
        return int(value)
    except (OverflowError, ValueError):
        raise CuteError(f"{value} has no integer") from None


def to_index(x: Any) -> int:
    """Return a number of an element type as an index. NoIndex: of a float."""
    if x.dtype.is_float:
        raise NoIndex(f"{x!r} is not an index: give an integer")
    return to_int(x.value)


def union_member(x: Any) -> Any:
    """Return what stands beside an element type in an annotation's union."""
    with contextlib.suppress(SyntaxError):  # of a text that names no type
        if x is None or isinstance(x, type) or callable(x):
            return x
        if isinstance(x, str) and x:
            return typing.ForwardRef(x)
    raise CuteError(f"{described(x)} cannot be in a union with an element type: give types alone")


def check_fields(x: Any) -> None:
    """Refuse an element type of other fields than it has."""
    texts = isinstance(x.name, str) and isinstance(x.ptx, str) and x.kind in ("float", "int", "uint", "bool")
    if not texts or type(x.width) is not int or x.width < 1 or not isinstance(x.numpy, type):
        raise CuteError("DType: use one of the existing types, like cute.Float32")


def check_divisor(divisor: Any, what: str = "assume: divisor") -> None:
    """Refuse a divisor that no number has."""
    if type(divisor) is not int or divisor < 1:
        raise CuteError(f"{what} {described(divisor)}, must be an integer of at least 1")


OF_DSL: list[Callable[[str, Any, Any], Any]] = []
"""Functions that apply an operator to two numbers as files do that are written for the CuTe DSL (`promotion`)."""


def of_dsl(op: str, a: Any, b: Any, frame: Any) -> Any:
    """Return what an operator gives in such a file; None in others. frame: where it stands, or what called that."""
    return OF_DSL[0](op, a, b) if facade.called_by_hook(frame) else None


def right_of(op: str, a: Any, b: Any, value: Any, stands: bool) -> Any:
    """Return the right operand of an operation of two numbers, a and b. value: it. stands: whether it stands for
    another number, so that a divisor of 0 is 1. CuteError: a divisor of 0, a negative shift."""
    if op in ("floordiv", "mod", "truediv") and value == 0:
        if stands:
            return 1
        raise CuteError(f"{a!r} is divided by {b!r}: choose a divisor that is not 0")
    if op in ("lshift", "rshift") and value < 0:
        raise CuteError(f"{a!r} is shifted by {b!r} bits: shift by 0 or more")
    return value
