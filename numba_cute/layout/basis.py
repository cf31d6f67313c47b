# SPDX-License-Identifier: Apache-2.0
"""Basis strides: the stride that steps along one mode of a coordinate, so that a layout yields coordinates."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..seam import CuteError, Int, Leaf, frozen, traced
from ..seam.ground.records import dataclass
from .int_tuple import IntTuple, add, mul, refuse_layout, static_int, text

__all__ = ["E", "ScaledBasis", "basis_get", "basis_value"]


@frozen
@dataclass(frozen=True)
class ScaledBasis:
    """The stride `value` along mode `mode` (a path from the outermost mode) of a coordinate, written 4@0 or, innermost
    mode first, 1@0@1 for mode (1,0).

    >>> 2 * cute.E(1)
    2@1
    """

    value: Any
    mode: tuple[int, ...]

    def __post_init__(self) -> None:
        mode = self.mode if isinstance(self.mode, (tuple, list)) else (self.mode,)
        mode = tuple(static_int(m, "mode") for m in mode)
        if not mode or min(mode) < 0:
            raise CuteError(
                f"mode={text(self.mode)}: a basis stride names a mode by a path of indices >= 0, as in E(0)"
            )
        object.__setattr__(self, "mode", mode)
        if not isinstance(self.value, Leaf):
            object.__setattr__(self, "value", static_int(self.value, "value"))

    @traced
    def __mul__(self, factor: Int) -> ScaledBasis:
        return ScaledBasis(mul(self.value, factor), self.mode)

    @traced
    def __rmul__(self, factor: Int) -> ScaledBasis:
        return ScaledBasis(mul(self.value, factor), self.mode)

    @traced
    def __floordiv__(self, divisor: Int) -> ScaledBasis:
        return ScaledBasis(self.value // divisor, self.mode)

    @traced
    def __neg__(self) -> ScaledBasis:
        return self * -1

    def __repr__(self) -> str:
        return "@".join([text(self.value), *map(str, reversed(self.mode))])


@traced
def E(mode: int | Sequence[int]) -> Any:  # noqa: N802 - CuTe's name
    """Make the unit stride along `mode`, an index or a path of them: E(0) is 1@0, E((1, 0)) is 1@0@1, and E(()) is
    1.

    >>> cute.make_layout((4, 8), stride=(cute.E(0), cute.E(1)))((2, 5))
    (2, 5)
    """
    return 1 if isinstance(mode, (tuple, list)) and not mode else ScaledBasis(1, mode)  # type: ignore[arg-type]


@traced
def basis_value(e: Any) -> Any:
    """Return the value of the basis stride `e`; any other leaf as it is.

    >>> cute.basis_value(3 * cute.E(1))
    3
    """
    return e.value if isinstance(e, ScaledBasis) else e


@traced
def basis_get(e: Any, t: Any) -> Any:
    """Return the mode of `t` (a tuple or a layout) that the basis stride `e` steps along; `t` itself for a plain
    leaf.

    >>> cute.basis_get(cute.E(1), (4, 8))
    8
    """
    if isinstance(e, ScaledBasis):
        for m in e.mode:
            if isinstance(t, tuple) and m >= len(t):
                raise CuteError(f"basis stride {e} names a mode that {text(t)} does not have")
            t = t[m] if isinstance(t, tuple) else t
    return t


def checked(x: Any, name: str) -> IntTuple:
    """Return `x` with every list a tuple and every index-like leaf an int; an error for what is not a leaf."""
    if type(x) is int or isinstance(x, (Leaf, ScaledBasis)):
        return x
    if isinstance(x, (tuple, list)):
        return tuple([checked(y, name) for y in x])
    try:
        return operator.index(x)
    except TypeError:
        refuse_layout(x, name)
        raise CuteError(f"{name}={x!r} is not an integer or tuple of integers: give ints, nested as you like") from None


@traced
def is_basis(stride: IntTuple) -> bool:
    """Return whether some leaf of `stride` is a basis stride."""
    return any(map(is_basis, stride)) if isinstance(stride, tuple) else isinstance(stride, ScaledBasis)


@traced
def add_coord(a: IntTuple, b: IntTuple) -> IntTuple:
    """Add the coordinates `a` and `b`, mode by mode; missing modes, and a plain 0, count as zeros."""
    if isinstance(a, ScaledBasis):
        a = as_coord(a)
    if isinstance(b, ScaledBasis):
        b = as_coord(b)
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return add(a, b)
    if isinstance(a, int) and a == 0:
        return b
    if isinstance(b, int) and b == 0:
        return a
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        raise CuteError(f"the coordinates {text(a)} and {text(b)} cannot be added: give tuples of the same profile")
    n = min(len(a), len(b))
    return tuple(map(add_coord, a[:n], b[:n])) + a[n:] + b[n:]


@traced
def as_coord(e: Any) -> IntTuple:
    """Return the coordinate that the basis stride `e` stands for: 4@1 is (0,4)."""
    if not isinstance(e, ScaledBasis):
        return e
    crd = e.value
    for m in reversed(e.mode):
        crd = (0,) * m + (crd,)
    return crd


def coord_zero(stride: IntTuple) -> IntTuple:
    """Return the zero of the codomain of a layout with these strides: 0, or a coordinate of zeros for basis strides."""
    if isinstance(stride, tuple):
        zero: IntTuple = 0
        for d in stride:
            zero = add_coord(zero, coord_zero(d))
        return zero
    return as_coord(ScaledBasis(0, stride.mode)) if isinstance(stride, ScaledBasis) else 0
