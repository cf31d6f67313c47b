# SPDX-License-Identifier: Apache-2.0
"""Looking through tuples and layouts for leaves."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

from .. import seam
from ..seam import CuteError, Leaf, traced
from ..seam.guards.kinds import UserFunction
from ..seam.guards.messages import how_static
from .basis import ScaledBasis
from .int_tuple import IntTuple, flatten_to_tuple, values
from .layout import ComposedLayout, Layout

__all__ = [
    "find", "find_if", "get_leaves", "has_scaled_basis", "is_int_tuple", "is_integer", "is_valid_leaf",
    "transform_apply",
]  # fmt: skip


@traced
def is_integer(a: Any) -> bool:
    """Return whether `a` is one integer, static or known only at run time (not a bool or a float).

    >>> cute.is_integer(4), cute.is_integer((4,))
    (True, False)
    """
    if isinstance(a, bool):
        return False
    if isinstance(a, Leaf):
        kind = getattr(a, "dtype", None) or getattr(a, "type", None)
        return bool(getattr(kind, "is_integer", hasattr(kind, "bitwidth") and hasattr(kind, "signed")))
    try:
        operator.index(a)
    except TypeError:
        return False
    return True


@traced
def is_valid_leaf(a: Any) -> bool:
    """Return whether `a` may be a leaf of a shape, stride, coordinate or tiler: an integer, a basis stride, or None.

    >>> cute.is_valid_leaf(4), cute.is_valid_leaf("4")
    (True, False)
    """
    return a is None or isinstance(a, ScaledBasis) or is_integer(a)


@traced
def is_int_tuple(a: Any) -> bool:
    """Return whether `a` is an integer, or a tuple of such to any depth.

    >>> cute.is_int_tuple((4, (2, 3))), cute.is_int_tuple("4")
    (True, False)
    """
    return all(map(is_int_tuple, a)) if isinstance(a, tuple) else is_integer(a)


@traced
def has_scaled_basis(a: Any) -> bool:
    """Return whether some leaf of `a` is a basis stride.

    >>> cute.has_scaled_basis((cute.E(0), 1)), cute.has_scaled_basis((4, 1))
    (True, False)
    """
    return any(map(has_scaled_basis, a)) if isinstance(a, tuple) else isinstance(a, ScaledBasis)


@traced
def get_leaves(value: Any) -> tuple[Any, ...]:
    """Return the leaves of `value` in order: of a tuple, or of a layout's shape and then its strides.

    >>> cute.get_leaves((4, (2, 3)))
    (4, 2, 3)
    """
    if isinstance(value, ComposedLayout):
        return get_leaves(value.outer)
    if isinstance(value, Layout):
        return flatten_to_tuple(value.shape) + flatten_to_tuple(value.stride)
    return flatten_to_tuple(value)


def known(layout: Any) -> Any:
    """Replace what is known (in the simulator) by plain numbers in a layout: for addresses, which need no types."""
    found = layout.__dict__.get("_cute_known")
    if found is None:
        old = tuple(getattr(layout, f.name) for f in dataclasses.fields(layout))
        new = tuple(known(x) if isinstance(x, (Layout, ComposedLayout)) else seam.known(x) for x in old)
        found = layout if all(map(operator.is_, old, new)) else type(layout)(*new)
        layout.__dict__["_cute_known"] = found
    return found


def valued(layout: Any) -> Any:
    """Return a layout with plain numbers for the leaves of a host function, which knows them; the layout itself where
    there are none, or where nobody knows them."""
    if not seam.computes_on_host() or seam.is_static(layout):
        return layout
    found = layout.__dict__.get("_cute_valued")
    if found is None:
        old = tuple(getattr(layout, f.name) for f in dataclasses.fields(layout))
        new = tuple(map(_values, old))
        found = layout if all(map(operator.is_, old, new)) else type(layout)(*new)
        layout.__dict__["_cute_valued"] = found
    return found


def _values(x: Any) -> Any:
    return valued(x) if isinstance(x, (Layout, ComposedLayout)) else values(x)


@traced
def find_if(t: IntTuple, pred_fn: UserFunction, *, hierarchical: bool = True) -> Any:
    """Find the first leaf of `t` for which `pred_fn(leaf, i)` is true, `i` its place in the tuple that holds it: an
    index, a path of indices where it is nested, None where there is none. hierarchical: look into nested tuples too;
    False: at the modes of `t` alone.

    >>> cute.find_if((4, 2, 8), lambda x, i: x < 4)
    1
    """
    for i, x in enumerate(t if isinstance(t, tuple) else (t,)):
        if isinstance(x, tuple):
            inner = find_if(x, pred_fn) if hierarchical else None
            if inner is not None:
                return (i, *inner) if isinstance(inner, tuple) else (i, inner)
        elif pred_fn(x, i):
            return i
    return None


@traced
def find(t: IntTuple, x: int, *, hierarchical: bool = True) -> Any:
    """Find where the static integer `x` stands first in `t`, as `find_if` gives it. What is known only at run time is
    never found. hierarchical: as for `find_if`.

    >>> cute.find((4, (8, 2)), 8)
    (1, 0)
    """
    if not is_integer(x) or isinstance(x, Leaf):
        raise CuteError(f"find: x={x!r} must be a static integer{how_static(x)}")

    def same(leaf: Any, i: int) -> bool:
        return not isinstance(leaf, Leaf) and is_integer(leaf) and leaf == x

    return find_if(t, same, hierarchical=hierarchical)


@traced
def transform_apply(*args: Any, f: Callable[..., Any], g: Callable[..., Any]) -> Any:
    """Combine by `g` the results of `f` for the modes of the tuples `args` together: g(f(a0, b0), f(a1, b1), ...); for
    leaves in place of tuples, g(f(a, b)).

    >>> cute.transform_apply((1, 2), (3, 4), f=lambda a, b: a * b, g=lambda *x: sum(x))
    11
    """
    if not args:
        raise CuteError("transform_apply: give one tuple at least")
    if not isinstance(args[0], tuple):
        return g(f(*args))
    if any(not isinstance(a, tuple) or len(a) != len(args[0]) for a in args):
        raise CuteError(f"transform_apply: {args!r} must be tuples of one rank")
    return g(*(f(*modes) for modes in zip(*args)))
