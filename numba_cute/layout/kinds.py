# SPDX-License-Identifier: Apache-2.0
"""Names for annotations, as kernels of the CuTe DSL have them: `def tile(coord: cute.Coord, shape: cute.Shape)`.

Numba takes its types from the arguments, so that annotations are for who reads and for `is_int_tuple_type`."""

from __future__ import annotations

import numbers
import typing
from types import UnionType
from typing import Any, Union

from ..seam import Leaf, traced
from .layout import ComposedLayout, Layout

__all__ = ["Coord", "IntTuple", "Shape", "Stride", "Tile", "Tiler", "is_int_tuple_type"]

IntTuple = int | tuple[Any, ...]
"""An integer, or a tuple of such to any depth."""
Shape = IntTuple
"""The extents of a layout's modes."""
Stride = IntTuple
"""The steps of a layout's modes."""
Coord = int | tuple[Any, ...] | None
"""A place in a shape; None where a slice keeps the mode."""
Tile = int | Layout | ComposedLayout | tuple[Any, ...] | None
"""A divisor of a mode: an extent, a layout, None for a mode that stays whole, or a tuple of divisors."""
Tiler = Tile


@traced
def is_int_tuple_type(t: Any) -> bool:
    """Return whether every value of the type `t` is an integer, or a tuple of integers to any depth.

    t: a class (`int`, NumPy's, an integer element type such as `cute.Int32`), `tuple[...]` of such, a union of such, or
    one of the names IntTuple, Shape and Stride. Anything else, values among them, is none: see `is_int_tuple`.

    >>> cute.is_int_tuple_type(tuple[int, tuple[int, int]]), cute.is_int_tuple_type(tuple[int, float])
    (True, False)
    """
    if t is IntTuple:
        return True
    origin, parts = typing.get_origin(t), [p for p in typing.get_args(t) if p is not Ellipsis]
    if origin is not None:
        return origin in (tuple, Union, UnionType) and all(map(is_int_tuple_type, parts)) and t != tuple[()]
    if isinstance(t, type):
        return issubclass(t, numbers.Integral) and t is not bool and not issubclass(t, Leaf)
    return getattr(t, "is_integer", None) is True
