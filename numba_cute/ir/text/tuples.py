# SPDX-License-Identifier: Apache-2.0
"""The types of tuples, by the names of what they are for."""

from __future__ import annotations

from collections.abc import Callable

from ...layout import ComposedLayout, Layout, ScaledBasis
from ...typed.descriptions import Constant, Description, Group, Object
from .fields import is_number


def _made_of(*leaves: Callable[[Description], bool]) -> Callable[[Description], bool]:
    """Make a test of whether a description is such a leaf, or a tuple of them to any depth."""

    def takes(d: Description) -> bool:
        return all(map(takes, d.items)) if isinstance(d, Group) else any(leaf(d) for leaf in leaves)

    return takes


def _is_of(*classes: type) -> Callable[[Description], bool]:
    return lambda d: isinstance(d, Object) and d.cls in classes


def _is_none(d: Description) -> bool:
    return d == Constant(None)


_TILES = _is_of(Layout, ComposedLayout)
TUPLES: dict[str, tuple[Callable[[Description], bool], str]] = {
    "numba_cute.tuple": (lambda d: isinstance(d, Group), "a tuple, as in (4,?)"),
    "numba_cute.shape": (_made_of(is_number), "integers, as in (4,(2,?))"),
    "numba_cute.stride": (_made_of(is_number, _is_of(ScaledBasis)), "integers and basis strides, as in (1,(4,1@0))"),
    "numba_cute.coord": (_made_of(is_number, _is_none), "integers, and _ for modes that are kept, as in (_,(0,?))"),
    "numba_cute.tile": (_made_of(is_number, _is_none, _TILES), "integers, layouts, and _ for modes that stay whole"),
}
"""The types of tuples, by the names of what they are for, and what they are of: one description has several."""
