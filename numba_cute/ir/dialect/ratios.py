# SPDX-License-Identifier: Apache-2.0
"""Fractions that strides may be written with: a tensor map that takes elements of 8 bits for elements of 16 has
coordinates that count pairs of them, so that one element is `1/2@0` further."""

from __future__ import annotations

import fractions
from typing import Any

from ...seam import CuteError, Leaf
from .leaves import Dynamic, combined


class Ratio(Leaf):
    """A fraction that is not an integer."""

    __slots__ = ("value",)
    kept = True

    def __init__(self, value: fractions.Fraction) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Ratio and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"{self.value.numerator}/{self.value.denominator}"

    def __add__(self, other: Any) -> Any:
        if type(other) is not int and not isinstance(other, Ratio):
            return NotImplemented
        return reduced(self.value + _value(other))

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Dynamic):
            return combined("floordiv", other * self.value.numerator, self.value.denominator)
        if type(other) is not int and not isinstance(other, Ratio):
            return NotImplemented
        return reduced(self.value * _value(other))

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return reduced(-self.value)

    def _refused(self, *others: Any) -> Any:
        raise CuteError(f"the stride {self} is not divided or compared: it counts parts of an element")

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _refused


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Ratio) else x


def reduced(value: fractions.Fraction) -> Any:
    """Return a fraction as it is written: an integer where it is one."""
    return int(value) if value.denominator == 1 else Ratio(value)


def written(numerator: int, denominator: int) -> Any:
    """Return the fraction of two integers. Raises CuteError for none."""
    if denominator <= 0:
        raise CuteError(f"{numerator}/{denominator} is no fraction")
    return reduced(fractions.Fraction(numerator, denominator))


__all__ = ["Ratio", "reduced", "written"]
