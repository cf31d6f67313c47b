# SPDX-License-Identifier: Apache-2.0
"""Shapes, strides, coordinates and tilers: the tuples that they are, under the names of the CuTe DSL."""

from __future__ import annotations

from typing import Any

from ..seam import traced
from .basis import checked
from .int_tuple import IntTuple

__all__ = ["make_coord", "make_shape", "make_stride", "make_tile"]


@traced
def make_shape(*modes: IntTuple) -> IntTuple:
    """Make a shape of `modes`: the tuple of them, checked.

    >>> cute.make_shape(4, (2, 3))
    (4, (2, 3))
    """
    return checked(modes, "shape")


@traced
def make_stride(*modes: IntTuple) -> IntTuple:
    """Make strides of `modes`: the tuple of them, checked.

    >>> cute.make_stride(8, 1)
    (8, 1)
    """
    return checked(modes, "stride")


@traced
def make_coord(*modes: IntTuple) -> IntTuple:
    """Make a coordinate of `modes`: integers, nested tuples of them, and None where a slice keeps a mode.

    >>> cute.make_coord(1, None)
    (1, None)
    """
    return modes


@traced
def make_tile(*modes: Any) -> tuple[Any, ...]:
    """Make a tiler of `modes`: an integer, a layout, None or another tiler for each.

    >>> cute.make_tile(4, None)
    (4, None)
    """
    return modes
