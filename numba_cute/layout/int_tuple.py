# SPDX-License-Identifier: Apache-2.0
"""Integers and nested tuples of them: shapes, strides and coordinates.

A leaf is an `int` (static), a `Leaf` (known at run time; never branched on), a basis stride, or None (the
underscore of coordinates and tilers). The arithmetic here folds what is static, so that static stays static.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable
from typing import Any

from ..seam import (
    CuteError,
    Leaf,
    computes_on_host,
    current_or,
    divisor,
    is_frozen_class,
    is_static,
    known,
    quotient,
    quotient_up,
    remainder,
    traced,
)
from ..seam.ground.naming import described
from ..seam.guards import kinds
from ..seam.marks.decorators import HOW_STATIC

__all__ = [
    "filter_tuple", "flatten_to_tuple", "get_divisibility", "has_underscore", "product", "product_each", "product_like",
    "repeat", "repeat_as_tuple", "repeat_like", "round_up", "shape_div", "transform_leaf", "tuple_cat", "unflatten",
    "unwrap", "wrap",
]  # fmt: skip

IntTuple = kinds.Coordinate
"""An int, a `Leaf`, or a tuple of such, to any depth."""


def text(x: Any) -> str:
    """Write `x` in CuTe's notation: (4,(2,?)), with _ for None, ? for what is known only at run time, and ?{div=8} for
    such a multiple of 8. In the simulator run-time numbers are known too."""
    if isinstance(x, tuple):
        try:
            return "(" + ",".join(map(text, x)) + ")"
        except RecursionError:
            return "(…)"
    if isinstance(x, Leaf):
        known = x.known()
        return text(known) if not isinstance(known, Leaf) else f"?{{div={x.divisor}}}" if x.divisor > 1 else "?"
    return "_" if x is None else str(x)


class Part:
    """A placeholder in traced code for a slice that takes a part, whose bounds are not known there."""


def static_int(x: Any, name: str) -> int:
    """Return `x`, which must be known at compile time."""
    if isinstance(x, Leaf):
        raise CuteError(f"{name} is known only at run time, and must be static here: {HOW_STATIC}")
    if isinstance(x, (slice, Part)):
        raise CuteError(f"{name}: a slice is none; None takes a whole mode, and cute.local_tile a part of it")
    try:
        return operator.index(x)
    except TypeError:
        raise CuteError(f"{name}={x!r} is not an integer") from None


def _type_of(x: Leaf) -> Any:
    """Return the element type of a leaf; None where nobody knows it."""
    find = getattr(current_or(None), "type_of", None)
    return None if find is None else find(x)


def widened(x: Leaf) -> Any:
    """Return a coordinate in at least 32 bits, as offsets are: an Int8 times a stride would wrap around."""
    dtype = getattr(x, "dtype", None) or _type_of(x)
    if dtype is None or not dtype.is_integer or dtype.width >= 32:
        return x
    backend: Any = current_or(None)
    return x if backend is None else backend.cast(x, backend.type_of(0))  # an int's own type


def signed(x: Any) -> Any:
    """Return a leaf in a type that has negative numbers: a stride that is less another one must not wrap around."""
    dtype = (getattr(x, "dtype", None) or _type_of(x)) if isinstance(x, Leaf) else None
    backend: Any = current_or(None)
    return x if dtype is None or dtype.signed or backend is None else backend.cast(x, backend.type_of(0))


def whole(x: Any, name: str) -> Any:
    """Return `x` as a leaf: an int (NumPy's too, as arrays hold them) or what is known only at run time."""
    if isinstance(x, Leaf):
        dtype = getattr(x, "dtype", None) or _type_of(x)
        if dtype is not None and dtype.is_float:
            raise CuteError(f"{name}={text(x)} is not an integer")
        return x
    return x if type(x) is int else int(static_int(x, name))


def values(x: Any) -> Any:
    """Return a shape, a coordinate or the like of a host function with plain numbers for its leaves, which the host
    knows; those without a value yet, of what stands for a tensor, as they are. Elsewhere it is as it was."""
    if type(x) is int or not computes_on_host():
        return x
    if isinstance(x, tuple):
        new = tuple(map(values, x))
        return x if all(map(operator.is_, x, new)) else new
    return getattr(x, "value", x) if isinstance(x, Leaf) and not hasattr(type(x), "symbol") else x


def refuse_layout(x: Any, name: str) -> None:
    """Refuse a layout or a tensor where a shape is meant: as a leaf it would be taken for one extent."""
    if hasattr(x, "shape") and not isinstance(x, numbers.Integral):  # NumPy's integers have one too
        raise CuteError(f"{name}={x} is not a shape, but has one: give its .shape, {text(x.shape)}")


# ------------------------------------------------------------------ leaves


def extent(x: Any) -> Any:
    """Return a leaf of a shape: an int or what is known only at run time; a basis stride as it is."""
    if type(x) is int or isinstance(x, Leaf) or is_frozen_class(type(x)) and hasattr(x, "mode") and hasattr(x, "value"):
        return x
    refuse_layout(x, "shape")
    return static_int(x, "extent")


def add(a: Any, b: Any) -> Any:
    return b if type(a) is int and a == 0 else a if type(b) is int and b == 0 else a + b


def mul(a: Any, b: Any) -> Any:
    if type(a) is int:
        return b if a == 1 else 0 if a == 0 else a * b
    if type(b) is int:
        return a if b == 1 else 0 if b == 0 else a * b
    return a * b if isinstance(b, Leaf) else b * a  # a basis stride multiplies from the left: a Leaf does not know it


def div(a: Any, b: Any) -> Any:
    """Divide the coordinate or extent a by the extent b. A static one is divided towards zero, so that a layout maps
    -i to the negative of what it maps i to; what is known only at run time must not be negative."""
    if type(b) is int and b == 1 or type(a) is int and a == 0:
        return a
    return -quotient(-a, b) if type(a) is int and a < 0 else quotient(a, b)


def mod(a: Any, b: Any) -> Any:
    """Return the remainder of `div`."""
    if type(b) is int and b == 1 or type(a) is int and a == 0:
        return 0
    return -remainder(-a, b) if type(a) is int and a < 0 else remainder(a, b)


def ceil_div_leaf(a: Any, b: Any) -> Any:
    """Divide the extent a by the extent b, and round up."""
    if type(a) is int and type(b) is int:
        return -(-a // b)
    if type(a) is int and a == 1:
        return 1
    if type(b) is int and b > 0 and divisor(a) % b == 0:
        return div(a, b)
    return quotient_up(a, b)


def ceil_div_number(a: Any, b: Any) -> Any:
    """Divide a, which may be negative, by b, and round up. What is known only at run time of b must be positive."""
    if not isinstance(a, Leaf) and not isinstance(b, Leaf):
        return -(-a // b)
    if is_one(b) or is_zero(a):
        return a
    least = known(b)
    if type(least) is int and least <= 0:
        raise CuteError(f"{text(a)} is divided by {text(b)} and rounded up: choose a divisor of at least 1")
    if type(b) is int and divisor(a) % b == 0:
        return a // b
    down = a // b
    backend: Any = current_or(None)
    if hasattr(backend, "type_of"):
        return down + backend.cast(a % b != 0, backend.type_of(down))  # a + b - 1 may leave their type
    x, y, z = known(a), known(b), known(down)
    return down + (-(-x // y) - z) if type(x) is type(y) is type(z) is int else (a + (b - 1)) // b


def same(a: Any, b: Any) -> bool:
    """Return whether two leaves are known to be equal; run-time values never are."""
    return is_static(a) and is_static(b) and bool(a == b)


def is_one(x: Any) -> bool:
    return type(x) is int and x == 1


def is_zero(x: Any) -> bool:
    return type(x) is int and x == 0


@traced
def get_divisibility(x: Any) -> int:
    """Return a number that is known to divide `x`, a leaf: a static integer itself; of what is known only at run time,
    what `assume` or `mark_compact_shape_dynamic(divisibility=)` promised, or what follows from it.

    >>> cute.get_divisibility(cute.assume(cute.Int32(32), 8)), cute.get_divisibility(12)
    (8, 12)
    """
    return divisor(x)


# ------------------------------------------------------------------ tuples: looking


@traced
def flatten_to_tuple(a: IntTuple) -> tuple[Any, ...]:
    """Return the leaves of `a` in order, as a flat tuple even where `a` is one leaf.

    >>> cute.flatten_to_tuple((4, (2, (3,))))
    (4, 2, 3)
    """
    if not isinstance(a, tuple):
        return (a,)
    out: list[Any] = []
    for x in a:
        if isinstance(x, tuple):
            out += flatten_to_tuple(x)
        else:
            out.append(x)
    return tuple(out)


@traced
def product(a: IntTuple) -> Any:
    """Multiply all leaves of `a`; 1 for the empty tuple.

    >>> cute.product((4, (2, 3)))
    24
    """
    if type(a) is int:
        return a
    if not isinstance(a, (tuple, list)):
        return extent(a)
    r: Any = 1
    for x in a:
        r = mul(r, x if type(x) is int else product(x))
    return r


@traced
def product_each(a: IntTuple) -> IntTuple:
    """Multiply the leaves of each mode of `a`: ((2,3),4) -> (6,4).

    >>> cute.product_each((4, (2, 3)))
    (4, 6)
    """
    return tuple(product(x) for x in a) if isinstance(a, (tuple, list)) else product(a)


@traced
def product_like(a: IntTuple, target_profile: IntTuple) -> IntTuple:
    """Multiply the leaves of `a` down to `target_profile`, to which `a` must be weakly congruent from below.

    >>> cute.product_like((4, (2, 3)), (1, 1))
    (4, 6)
    """
    if not isinstance(target_profile, tuple):
        refuse_layout(target_profile, "target_profile")
        return product(a)
    _same_rank(a, target_profile, "product_like", "target_profile")
    return tuple(product_like(x, p) for x, p in zip(a, target_profile))


def _same_rank(a: Any, b: Any, what: str, name: str) -> None:
    if not isinstance(a, tuple) or len(a) != len(b):
        rank_a = len(a) if isinstance(a, tuple) else "an integer"
        raise CuteError(
            f"{what}: {text(a)} (rank {rank_a}) does not match {name}={text(b)} (rank {len(b)}): "
            "give tuples of the same rank"
        )


def congruent(a: IntTuple, b: IntTuple) -> bool:
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(congruent, a, b))
    return not isinstance(b, tuple)


def weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_congruent, a, b))
    return True


@traced
def has_underscore(a: IntTuple) -> bool:
    """Return whether some leaf of `a` is None.

    >>> cute.has_underscore((None, 2))
    True
    """
    return any(map(has_underscore, a)) if isinstance(a, tuple) else a is None


# ------------------------------------------------------------------ tuples: changing


@traced
def wrap(x: Any) -> tuple[Any, ...]:
    """Return `x` as a tuple: (x,) unless it is one.

    >>> cute.wrap(4)
    (4,)
    """
    return x if isinstance(x, tuple) else (x,)


@traced
def unwrap(x: Any) -> Any:
    """Take the tuples of one off `x`, to any depth; anything else stays as it is.

    >>> cute.unwrap((4,))
    4
    """
    while isinstance(x, tuple) and len(x) == 1:
        x = x[0]
    return x


@traced
def unflatten(sequence: tuple[Any, ...], profile: IntTuple) -> IntTuple:
    """Arrange the leaves of `sequence` as in `profile`, which must have as many.

    >>> cute.unflatten((1, 2, 3), (0, (0, 0)))
    (1, (2, 3))
    """
    refuse_layout(profile, "profile")
    want, have = len(flatten_to_tuple(profile)), len(wrap(sequence))
    if want != have:
        raise CuteError(f"unflatten: {have} values for profile={text(profile)}, which has {want} leaves")
    it = iter(wrap(sequence))
    return transform_leaf(lambda _: next(it), profile)


@traced
def transform_leaf(f: Callable[..., Any], *terms: IntTuple) -> IntTuple:
    """Apply `f` to each leaf of a tuple, or to the leaves of several congruent tuples (`terms`) together.

    >>> cute.transform_leaf(lambda x: x + 1, (4, (2, 3)))
    (5, (3, 4))
    """
    if not terms:
        raise CuteError("transform_leaf: give one tuple or more beside the function")
    first, *others = terms
    if not isinstance(first, tuple):
        return f(*terms)
    for t in others:
        _same_rank(t, first, "transform_leaf", "the first tuple")
    return tuple(transform_leaf(f, *modes) for modes in zip(*terms))


@traced
def filter_tuple(f: Callable[..., Any], *terms: tuple[Any, ...]) -> tuple[Any, ...]:
    """Join the tuples that `f` gives for each mode of `terms` together.

    >>> cute.filter_tuple(lambda x: (x,) if x > 2 else (), (1, 3, 5))
    (3, 5)
    """
    out: tuple[Any, ...] = ()
    for modes in zip(*terms):
        made = f(*modes)
        if not isinstance(made, tuple):
            raise CuteError(f"filter_tuple: f gives {described(made)} for a mode: it must give a tuple, as (x,) or ()")
        out += made
    return out


@traced
def tuple_cat(*tuples: Any) -> tuple[Any, ...]:
    """Join all `tuples` into one; a leaf counts as a tuple of one.

    >>> cute.tuple_cat((1, 2), (3,))
    (1, 2, 3)
    """
    out: tuple[Any, ...] = ()
    for t in tuples:
        out += wrap(t)
    return out


@traced
def repeat_as_tuple(x: Any, n: int) -> tuple[Any, ...]:
    """Make (x, x, ...) of `n` elements `x`, n >= 0.

    >>> cute.repeat_as_tuple(1, 1)
    (1,)
    """
    n = static_int(n, "n")
    if n < 0:
        raise CuteError(f"repeat_as_tuple: n={n}: a tuple has 0 or more elements")
    if n > 1 << 16:
        raise CuteError(f"repeat_as_tuple: n={n}: a tuple here has at most {1 << 16} elements")
    return (x,) * n


@traced
def repeat(x: Any, n: int) -> Any:
    """Return `x` if `n` is 1, else (x, x, ...) of `n` elements.

    >>> cute.repeat(1, 3)
    (1, 1, 1)
    """
    return x if n == 1 else repeat_as_tuple(x, n)


@traced
def repeat_like(x: Any, target: IntTuple) -> IntTuple:
    """Replace every leaf of `target` by `x`.

    >>> cute.repeat_like(0, (4, (2, 3)))
    (0, (0, 0))
    """
    if isinstance(target, tuple):
        return tuple(repeat_like(x, t) for t in target)
    refuse_layout(target, "target")
    return x


# ------------------------------------------------------------------ tuples: dividing


@traced
def shape_div(lhs: IntTuple, rhs: IntTuple) -> IntTuple:
    """Divide the shape `lhs` by the extent `rhs`, mode after mode from the left: shape_div((4,6), 8) is (1,3).

    Between two static extents one must divide the other. A tuple `rhs` divides mode by mode.

    >>> cute.shape_div((8, 4), (2, 4))
    (4, 1)
    """
    if isinstance(lhs, tuple):
        if isinstance(rhs, tuple):
            _same_rank(rhs, lhs, "shape_div", "lhs")
            return tuple(map(shape_div, lhs, rhs))
        out = []
        for x in lhs:
            out.append(shape_div(x, rhs))
            rhs = shape_div(rhs, product(x))
        return tuple(out)
    lhs, rhs = product(lhs), product(rhs)
    if type(lhs) is not int or type(rhs) is not int:
        return ceil_div_number(lhs, rhs)
    if rhs != 0 and lhs % rhs == 0:
        return lhs // rhs
    if lhs != 0 and rhs % lhs == 0:
        return 1 if (lhs < 0) == (rhs < 0) else -1
    raise CuteError(f"shape_div: of {lhs} and {rhs} neither divides the other: choose extents that do")


@traced
def round_up(a: IntTuple, b: IntTuple) -> IntTuple:
    """Round each leaf of `a` up to a multiple of the corresponding mode of `b`; missing modes of `b` count as 1.

    >>> cute.round_up((100, 64), (32, 32))
    (128, 64)
    """
    if isinstance(a, tuple):
        b = wrap(b)
        if len(b) > len(a):
            raise CuteError(f"round_up: b={text(b)} has more modes than a={text(a)}")
        return tuple(map(round_up, a, b + (1,) * (len(a) - len(b))))
    a, b = product(a), product(b)
    if hasattr(a, "mode") or hasattr(b, "mode"):
        raise CuteError(f"round_up: a={text(a)}, b={text(b)} must be integers, not bases")
    return mul(ceil_div_number(a, b), b)


def ceil_div_steps(a: IntTuple, b: Any) -> IntTuple:
    """Divide `a` by the extent `b` from the left, rounding up: (10,24) by 5 is (2,24), by 20 is (1,12)."""
    if not isinstance(a, tuple):
        return ceil_div_leaf(a, b)
    out = []
    for x in a:
        out.append(ceil_div_steps(x, b))
        b = ceil_div_leaf(b, product(x))
    return tuple(out)
