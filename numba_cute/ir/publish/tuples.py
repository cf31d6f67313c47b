# SPDX-License-Identifier: Apache-2.0
"""Tuples, tiles and numbers: as patterns of constants and SSA values, and as values of the published types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import SSAValue

from ...layout import Layout
from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Group, Object, Scalar
from ..library.types import description_of, description_of_value
from ..text.fields import fields_by_name, instance

KINDS = ("int_tuple", "shape", "stride", "coord")


def leaves(pattern: Any) -> list[SSAValue]:
    """List the SSA values of a pattern whose numbers are known only at run time, in order. Raises CuteError for one
    that is not a number."""
    if isinstance(pattern, tuple):
        return [leaf for item in pattern for leaf in leaves(item)]
    if not isinstance(pattern, SSAValue):
        return []
    d = description_of(pattern.type)
    if isinstance(d, Constant):
        return []
    if isinstance(d, Scalar):
        return [pattern]
    raise CuteError("a part of a tuple is not a number")


def as_tile(d: Description) -> Description:
    """Describe a tiler as a tile says it: a number n is the layout n:1."""
    if isinstance(d, Group):
        return Group(tuple(map(as_tile, d.items)))
    if isinstance(d, Scalar) or isinstance(d, Constant) and type(d.value) is int:
        return instance(Layout, {"shape": d, "stride": Constant(1)})
    return d


def kept(tiler: Any) -> Any:
    """Return the projection of a tiler that keeps all modes; None of a tiler that is not a tuple."""
    d = description_of_value(tiler)
    return (1,) * len(d.items) if isinstance(d, Group) else None


def filled(d: Description, number: Callable[[Any], Any], make: Callable[[Description], Any]) -> Any:
    """Return the pattern of what a published type describes. number: gives one that it leaves open, in order. make:
    gives the value of a layout that the type says whole. A layout n:1 of a tile is the number n."""
    if isinstance(d, Constant):
        return d.value
    if isinstance(d, Group):
        return tuple(filled(item, number, make) for item in d.items)
    if isinstance(d, Scalar):
        return number(d)
    if isinstance(d, Object) and d.cls is Layout:
        fields = fields_by_name(d)
        if fields["stride"] == Constant(1) and not isinstance(fields["shape"], Group):
            return filled(fields["shape"], number, make)
    return make(d)


__all__ = ["KINDS", "as_tile", "filled", "kept", "leaves"]
