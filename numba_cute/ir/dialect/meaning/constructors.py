# SPDX-License-Identifier: Apache-2.0
"""The operations that make values of parts."""

from __future__ import annotations

from collections.abc import Sequence

from ....layout.layout import make_identity_layout
from ....layout.ordered import make_layout_like, make_ordered_layout
from ....layout.swizzle import Swizzle
from ..checked import checked_composed, checked_layout, raw
from ..notation import RawComposed, RawLayout
from .values import Attributes, Function, Refused, Value, computed, in_shape, one


def _layout(operands: Sequence[Value], attributes: Attributes) -> Value:
    shape, stride = operands
    return Value("layout", checked_layout(RawLayout(shape.value, stride.value)))


def _composed_layout(operands: Sequence[Value], attributes: Attributes) -> Value:
    inner, offset, outer = operands
    return Value("composed_layout", checked_composed(RawComposed(raw(inner.value), offset.value, raw(outer.value))))


def _layout_like(operands: Sequence[Value], attributes: Attributes) -> Value:
    (source,) = operands
    if source.kind == "composed_layout" and not isinstance(source.value.inner, Swizzle):
        raise Refused(f"the source {source} must have a swizzle as its inner function")
    if source.layout.maps_to_coordinates:
        raise Refused(f"the source {source} must have integer strides, and has basis strides")
    return Value("layout", computed("layout like it", lambda: make_layout_like(source.layout)))


def _ordered_layout(operands: Sequence[Value], attributes: Attributes) -> Value:
    shape, order = operands
    if not order.is_static:
        raise Refused(f"the order must be static, and is {order}")
    if not in_shape(order.value, shape.value):
        raise Refused(f"the order {order} is not nested as the shape {shape}")
    return Value("layout", computed("ordered layout", lambda: make_ordered_layout(shape.value, order.value)))


def _identity_layout(operands: Sequence[Value], attributes: Attributes) -> Value:
    (shape,) = operands
    return Value("layout", computed("identity layout", lambda: make_identity_layout(shape.value)))


FUNCTIONS: dict[str, Function] = {
    "make_layout": one(_layout),
    "make_composed_layout": one(_composed_layout),
    "make_layout_like": one(_layout_like),
    "make_ordered_layout": one(_ordered_layout),
    "make_identity_layout": one(_identity_layout),
}
