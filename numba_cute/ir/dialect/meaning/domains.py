# SPDX-License-Identifier: Apache-2.0
"""Composition, coalescing, complements, slices, recasts and inverses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....layout.int_tuple import flatten_to_tuple
from ....layout.layout import ComposedLayout, Layout
from ....layout.modes import group_modes
from ....layout.slices import dice as dice_, slice_
from ....layout.swizzle import Swizzle
from ..checked import is_static
from . import canonical
from .accessors import _tile_leaves
from .swizzled import recast, sliced
from .values import Attributes, Function, Refused, Value, computed, in_shape, modes_of, one, rank


def on_domain(source: Value, what: str, function: Callable[[Layout], Layout]) -> Value:
    """Change the domain of a layout: of a composed one its outer layout."""
    found = computed(what, lambda: function(source.layout))
    if isinstance(source.value, ComposedLayout):
        return source.replaced(ComposedLayout(source.value.inner, source.value.offset, found))
    return source.replaced(found)


def _composition(operands: Sequence[Value], attributes: Attributes) -> Value:
    lhs, rhs = operands
    return on_domain(lhs, "composition", lambda layout: canonical.composed(layout, rhs.value))


def _coalesce(operands: Sequence[Value], attributes: Attributes) -> Value:
    source = operands[0]
    profile = operands[1].value if len(operands) > 1 else None
    _check_profile(profile, source.layout.shape, ())
    return on_domain(source, "layout", lambda layout: canonical.coalesced(layout, profile))


def _check_profile(profile: Any, shape: Any, path: tuple[int, ...]) -> None:
    if not isinstance(profile, tuple):
        return
    if len(profile) > rank(shape):
        where = f" at mode {list(path)}" if path else ""
        raise Refused(f"the profile has {len(profile)} modes, and the layout only {rank(shape)}{where}")
    for i, p in enumerate(profile):
        _check_profile(p, shape[i] if isinstance(shape, tuple) else shape, (*path, i))


def flattened(value: Any) -> Any:
    """Return a value without the nesting of its modes; a leaf as it is."""
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.inner, value.offset, flattened(value.outer))
    if isinstance(value, Layout):
        return Layout(flattened(value.shape), flattened(value.stride))
    return tuple(_tile_leaves(value)) if isinstance(value, tuple) else value


def _flatten(operands: Sequence[Value], attributes: Attributes) -> Value:
    return operands[0].replaced(flattened(operands[0].value))


def _complement(operands: Sequence[Value], attributes: Attributes) -> Value:
    source = operands[0]
    layout = source.value
    if len(operands) == 1:
        if not source.is_static:
            raise Refused(f"without a cotarget the layout must be static, and is {source}")
        return Value("layout", computed("complement", lambda: canonical.complemented(layout)))
    if layout.maps_to_coordinates:
        raise Refused(f"the layout must have integer strides, and is {source}")
    if not is_static(layout.stride) and rank(layout) > 1:
        raise Refused(f"a layout of more than one mode must have static strides, and {source} has {rank(layout)} modes")
    target = modes_of(operands[1].value)
    return Value("layout", computed("complement", lambda: canonical.complemented_to(layout, target)))


def _group_modes(operands: Sequence[Value], attributes: Attributes) -> Value:
    source, begin, end = operands[0], attributes["begin"], attributes["end"]
    if begin < 0:
        raise Refused(f"begin={begin} must be at least 0")
    if end <= begin:
        raise Refused(f"end={end} must be greater than begin={begin}")
    if end > rank(source.value):
        raise Refused(f"end={end} is more than the {rank(source.value)} modes of the layout")
    return source.replaced(computed("grouped layout", lambda: group_modes(source.value, begin, end)))


def _recast_layout(operands: Sequence[Value], attributes: Attributes) -> Value:
    source = operands[0]
    for name in ("new_type_bits", "old_type_bits"):
        if attributes[name] <= 0:
            raise Refused(f"{name}={attributes[name]} must be positive")
    inner = getattr(source.value, "inner", None)
    if source.layout.maps_to_coordinates or isinstance(inner, Layout) and inner.maps_to_coordinates:
        raise Refused(f"the layout must have integer strides, and {source} has basis strides")
    new, old = attributes["new_type_bits"], attributes["old_type_bits"]
    return source.replaced(computed("recast layout", lambda: recast(source.value, new, old)))


def _check_coord(source: Value, coord: Value) -> None:
    if not in_shape(coord.value, modes_of(source.value)):
        raise Refused(f"the coordinate {coord} is not nested as {source}")


def _slice(operands: Sequence[Value], attributes: Attributes) -> Value:
    source, coord = operands
    _check_coord(source, coord)
    value = source.value
    if isinstance(value, ComposedLayout) and isinstance(value.inner, Swizzle):
        if not is_static(value.outer):
            raise Refused(f"a swizzled layout is sliced where its outer layout is static, and it is {source}")
        if None not in flatten_to_tuple(coord.value):
            raise Refused(f"a swizzled layout is sliced where the coordinate keeps a mode by `_`, and it is {coord}")
        found = computed("slice", lambda: sliced(value, coord.value))
        return Value("layout", found) if isinstance(found, Layout) else source.replaced(found)
    return source.replaced(computed("slice", lambda: slice_(value, coord.value)))


def _dice(operands: Sequence[Value], attributes: Attributes) -> Value:
    source, coord = operands
    if not coord.is_static:
        raise Refused(f"the coordinate must be static, and is {coord}")
    _check_coord(source, coord)
    return source.replaced(computed("layout", lambda: dice_(source.value, coord.value)))


def _right_inverse(operands: Sequence[Value], attributes: Attributes) -> Value:
    (source,) = operands
    _check_static_shape(source)
    return Value("layout", computed("right inverse", lambda: canonical.right_inverse(source.value)))


def _left_inverse(operands: Sequence[Value], attributes: Attributes) -> Value:
    (source,) = operands
    _check_static_shape(source)
    if not is_static(source.value.stride):
        raise Refused(f"the layout must have static strides, and is {source}")
    return Value("layout", computed("left inverse", lambda: canonical.left_inverse(source.value)))


def _check_static_shape(source: Value) -> None:
    if not is_static(source.value.shape):
        raise Refused(f"the layout must have a static shape, and is {source}")


FUNCTIONS: dict[str, Function] = {
    "composition": one(_composition),
    "coalesce": one(_coalesce),
    "flatten": one(_flatten),
    "complement": one(_complement),
    "group_modes": one(_group_modes),
    "recast_layout": one(_recast_layout),
    "slice": one(_slice),
    "dice": one(_dice),
    "right_inverse": one(_right_inverse),
    "left_inverse": one(_left_inverse),
}
__all__ = ["FUNCTIONS", "flattened", "on_domain"]
