# SPDX-License-Identifier: Apache-2.0
"""Shapes that meet: how a vector is read under another shape, and the shape of two together."""

from __future__ import annotations

from typing import Any

from .. import layout, seam
from ..layout import IntTuple
from ..seam import CuteError
from ..seam.guards.messages import how_static


def broadcast_strides(shape: IntTuple, target: Any) -> Any:
    """Return the strides by which a compact vector of `shape` is read under the shape `target`: 0 along repeated
    modes."""
    if not seam.is_static(target):
        raise CuteError(f"broadcast_to: shape {target} must be static, for registers are{how_static(target)}")
    return _strides(shape, layout.make_layout(shape).stride, target, (shape, target))


def _strides(shape: Any, stride: Any, target: Any, whole: Any, top: bool = True) -> Any:
    if shape == 1:
        return layout.repeat_like(0, target)
    if isinstance(target, tuple):
        if top and not isinstance(shape, tuple):
            shape, stride = (shape,), (stride,)
        if isinstance(shape, tuple) and (len(shape) == len(target) or (top and len(shape) < len(target))):
            more = len(target) - len(shape)
            each = zip((*shape, *(1,) * more), (*stride, *(0,) * more), target)
            return tuple(_strides(s, d, t, whole, False) for s, d, t in each)
    elif shape == target:
        return stride
    raise CuteError(f"broadcast: shape {whole[0]} does not fit {whole[1]}: each mode must be equal, or of one element")


def broadcast_shape(a: Any, b: Any, whole: Any = None) -> Any:
    """Return the shape to which both broadcast; missing last modes count as of one element. whole: both shapes, where
    these are modes of them."""
    top, whole = whole is None, whole or (a, b)
    if top:
        a, b = layout.unwrap(a), layout.unwrap(b)
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if top:
        a, b = layout.wrap(a), layout.wrap(b)
        n = max(len(a), len(b))
        a, b = a + (1,) * (n - len(a)), b + (1,) * (n - len(b))
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(broadcast_shape(x, y, whole) for x, y in zip(a, b))
    raise CuteError(
        f"broadcast: modes of {a} and {b} do not meet: each must be equal, or of one element; the shapes are "
        f"{whole[0]} and {whole[1]}"
    )
