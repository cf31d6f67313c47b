# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and comparisons of tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....layout.algebra import ceil_div
from ....layout.int_tuple import add, ceil_div_steps, congruent, product, shape_div
from ..checked import Refused
from ..leaves import Dynamic, value_of
from .accessors import _shape_of_tile
from .values import Attributes, Function, Value, computed, modes_of, one, rank


def _check_alike(a: Any, b: Any, lhs: Value, rhs: Value, zeros: tuple[bool, bool]) -> None:
    """Refuse two tuples that differ in nesting; a plain 0 stands for zeros at the sides that `zeros` tells."""
    for x, y, allowed, name in ((a, b, zeros[0], "left"), (b, a, zeros[1], "right")):
        if isinstance(y, tuple) and not isinstance(x, tuple):
            if allowed and type(x) is int and x == 0:
                return
            raise Refused(f"the {name} side is one integer and the other a tuple: {lhs} and {rhs}")
    _check_modes(a, b, lhs, rhs)


def _check_modes(a: Any, b: Any, lhs: Value, rhs: Value) -> None:
    if not isinstance(a, tuple):
        return
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if isinstance(x, tuple) != isinstance(y, tuple):
            raise Refused(f"mode {i} of {lhs} and of {rhs} differ in nesting")
        _check_modes(x, y, lhs, rhs)


def _check_kind(lhs: Value, rhs: Value) -> None:
    if lhs.kind != rhs.kind:
        raise Refused(f"the two sides must be of one kind, and are {lhs} and {rhs}")


def _sum(a: Any, b: Any, sign: int) -> Any:
    """Add two tuples, or subtract the second. Modes that one lacks are the other's, as they are."""
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return add(a, b) if sign > 0 else a - b if not (type(b) is int and b == 0) else a
    if not isinstance(a, tuple):
        return b
    if not isinstance(b, tuple):
        return a
    n = min(len(a), len(b))
    both = tuple(_sum(x, y, sign) for x, y in zip(a, b, strict=False))
    return both + a[n:] + b[n:]


def _add(operands: Sequence[Value], attributes: Attributes) -> Value:
    lhs, rhs = operands
    _check_kind(lhs, rhs)
    _check_alike(lhs.value, rhs.value, lhs, rhs, (True, True))
    return Value(lhs.kind, computed("sum", lambda: _sum(lhs.value, rhs.value, 1)))


def _sub(operands: Sequence[Value], attributes: Attributes) -> Value:
    lhs, rhs = operands
    _check_kind(lhs, rhs)
    _check_alike(lhs.value, rhs.value, lhs, rhs, (False, True))
    return Value(lhs.kind, computed("difference", lambda: _sum(lhs.value, rhs.value, -1)))


def _shape_div(operands: Sequence[Value], attributes: Attributes) -> Value:
    a, b = operands
    return Value("shape", computed("quotient", lambda: shape_div(a.value, b.value)))


def _ceil_div(operands: Sequence[Value], attributes: Attributes) -> Value:
    source, tiler = operands
    by = tiler.value
    if tiler.kind != "tile" and rank(by) > rank(source.value):
        raise Refused(f"the tiler {tiler} has more modes than {source}")
    return Value(source.kind, computed("quotient", lambda: _ceil_divided(source.value, by)))


def _ceil_divided(a: Any, b: Any) -> Any:
    if isinstance(b, tuple):
        if not isinstance(a, tuple) or len(b) > len(a):
            raise Refused("the tiler has more modes than what it divides")
        return tuple(map(_ceil_divided, a, b)) + a[len(b) :]
    if b is None:
        return a
    if not isinstance(b, (int, Dynamic)):
        return ceil_div(a, b)
    if type(b) is int and b == 0:
        raise Refused("the tiler is zero")
    return ceil_div_steps(a, b)


def less(a: Any, b: Any) -> bool | None:
    """Return whether each leaf of a tuple is below the one of another in its place; None where that is not known."""
    if isinstance(a, tuple):
        parts = [less(x, y) for x, y in zip(a, b, strict=True)]
        return False if False in parts else None if None in parts else True
    x, y = value_of(a), value_of(b)
    return None if x is None or y is None else x < y


def _elem_less(operands: Sequence[Value], attributes: Attributes) -> Value:
    lhs, rhs = operands
    if not congruent(lhs.value, rhs.value):
        raise Refused(f"the two sides must be nested alike, and are {lhs} and {rhs}")
    return Value("i1", less(lhs.value, rhs.value))


def equal(a: Any, b: Any) -> bool | None:
    """Return whether two values are equal; None where that is not known."""
    if isinstance(a, tuple) != isinstance(b, tuple):
        return False
    if isinstance(a, tuple):
        if len(a) != len(b):
            return False
        parts = [equal(x, y) for x, y in zip(a, b, strict=True)]
        return False if False in parts else None if None in parts else True
    if hasattr(a, "stride"):
        return equal((a.shape, a.stride), (b.shape, b.stride))
    if hasattr(a, "mode") and hasattr(b, "mode"):
        return a.mode == b.mode and equal(a.value, b.value)
    if isinstance(a, Dynamic) or isinstance(b, Dynamic):
        if not isinstance(a, (Dynamic, int)) or not isinstance(b, (Dynamic, int)):
            return False
        x, y = value_of(a), value_of(b)
        return None if x is None or y is None else x == y
    return type(a) is type(b) and bool(a == b)


def _equal(operands: Sequence[Value], attributes: Attributes) -> Value:
    lhs, rhs = operands
    _check_kind(lhs, rhs)
    return Value("i1", equal(lhs.value, rhs.value))


FUNCTIONS: dict[str, Function] = {
    "tuple_add": one(_add),
    "tuple_sub": one(_sub),
    "shape_div": one(_shape_div),
    "ceil_div": one(_ceil_div),
    "elem_less": one(_elem_less),
    "equal": one(_equal),
}
__all__ = ["FUNCTIONS", "_shape_of_tile", "equal", "less", "modes_of", "product"]
