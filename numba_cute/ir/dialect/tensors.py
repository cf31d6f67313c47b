# SPDX-License-Identifier: Apache-2.0
"""Types of tensors: what they say before their layout, and the layout."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute

from ...layout.int_tuple import flatten_to_tuple
from ...layout.layout import Layout
from .attributes import CuteType, type_of
from .checked import checked, raw
from .inference import with_leaves
from .meaning import Value
from .notation import RawComposed
from .printed_types import TYPES


def head_of(t: Any) -> tuple[Any, ...]:
    """Return what a tensor's type says before its layout: its pointer, or its first coordinate."""
    return tuple(t.data[:-1])


def layout_of(t: Any) -> Value:
    """Return the layout of a tensor. Raises Refused for one that is none."""
    found = t.data[-1]
    kind = "composed_layout" if isinstance(found, RawComposed) else "layout"
    return Value(kind, checked(kind, found))


def tensor_like(like: Any, layout: Any) -> Attribute:
    """Return the type of a tensor that begins where another does, with this layout."""
    return TYPES[like.name]((*head_of(like), raw(layout)))


def by_extents(layout: Any) -> Any:
    """Return a layout with the stride 0 for each static extent of one, where nothing steps; a composed one as it is."""
    if not isinstance(layout, Layout):
        return layout
    strides = map(_unless_one, flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride))
    return Layout(layout.shape, with_leaves(layout.shape, lambda _: next(strides)))


def _unless_one(extent: Any, stride: Any) -> Any:
    return 0 if type(extent) is int and extent == 1 else stride


def without_ones(t: Attribute) -> Attribute:
    """Return the type of a layout as `by_extents` has it: which stride an extent of one has is told in two ways.
    Another type is given back."""
    return type_of(t.kind, by_extents(t.data)) if isinstance(t, CuteType) else t


__all__ = ["by_extents", "head_of", "layout_of", "tensor_like", "without_ones"]
