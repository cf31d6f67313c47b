# SPDX-License-Identifier: Apache-2.0
"""Values that are followed through a function while it is traced: what it does to them, their class says.

A derivative is found so, and what a result hangs on: operators, `cute.math` and `cute.where` ask the value itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtypes import DType, Float32
from ..seam import CuteError

__all__: list[str] = []


def _binary(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: followed(op, (self, other))


def _turned(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: followed(op, (other, self))


def _unary(op: str) -> Callable[[Any], Any]:
    return lambda self: followed(op, (self,))


class Followed:
    """A number, or a vector, of Float32, of which more is known than its value. A subclass has `applied`."""

    dtype: DType = Float32
    rank = 0  # of operands of several classes the greatest answers

    def applied(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Give what an operation makes. op: one of `Backend.elementwise`, or a row. operands: of which one is this."""
        raise NotImplementedError

    def to(self, dtype: DType) -> Any:
        """Give itself, a Float32. CuteError for another type."""
        if dtype != Float32:
            raise CuteError(f"a function is followed in Float32, and converts to {dtype}: leave .to({dtype}) out")
        return self

    __add__, __sub__, __mul__, __truediv__ = map(_binary, ("add", "sub", "mul", "div"))
    __radd__, __rsub__, __rmul__, __rtruediv__ = map(_turned, ("add", "sub", "mul", "div"))
    __lt__, __le__, __gt__, __ge__ = map(_binary, ("<", "<=", ">", ">="))
    __eq__, __ne__ = map(_binary, ("==", "!="))
    __neg__, __abs__ = map(_unary, ("neg", "abs"))
    __hash__ = object.__hash__

    def __pos__(self) -> Any:
        return self

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 < other <= 64:
            half = self if other < 2 else self ** (other // 2)
            return half if other == 1 else half * half if other % 2 == 0 else half * half * self
        return followed("pow", (self, other))

    def __bool__(self) -> bool:
        raise CuteError("a function that is followed branches on a value: choose with cute.where(…)")


def followed(op: Any, operands: tuple[Any, ...]) -> Any:
    """Apply an operation to operands of which some are followed. op: as of `Followed.applied`."""
    return max((x for x in operands if isinstance(x, Followed)), key=lambda x: x.rank).applied(op, operands)
