# SPDX-License-Identifier: Apache-2.0
"""Products and divides of layouts, and tiling a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....layout.layout import Layout
from ..checked import Refused, is_static
from ..notation import write
from . import canonical
from .domains import on_domain
from .values import Attributes, Function, Value, one, rank


def _product(function: Callable[[Layout, Any], Layout]) -> Function:
    def made(operands: Sequence[Value], attributes: Attributes) -> Value:
        block, tiler = operands
        if not is_static(block.layout):
            raise Refused(f"the block must be static, and is {block}")
        if tiler.value.maps_to_coordinates:
            raise Refused(f"the tiler must have integer strides, and is {tiler}")
        if block.layout.maps_to_coordinates and not tiler.is_static:
            raise Refused(f"the tiler of a block with basis strides must be static, and is {tiler}")
        return on_domain(block, "product", lambda layout: function(layout, tiler.value))

    return one(made)


def _check_tiler(tiler: Any, path: tuple[int, ...], in_tile: bool) -> None:
    if isinstance(tiler, tuple):
        for i, t in enumerate(tiler):
            _check_tiler(t, (*path, i), in_tile)
    if not isinstance(tiler, Layout):
        return
    where = f" at mode {list(path)}" if path else ""
    if in_tile and tiler.maps_to_coordinates:
        raise Refused(f"a tiler's layouts must have integer strides, and one is {write('layout', tiler)}{where}")
    if not is_static(tiler.stride) and rank(tiler) > 1:
        raise Refused(f"a tiler of more than one mode must have static strides, and is {write('layout', tiler)}{where}")


def _divide(function: Callable[[Layout, Any], Layout]) -> Function:
    def divided(operands: Sequence[Value], attributes: Attributes) -> Value:
        target, tiler = operands
        if tiler.kind != "layout" and rank(tiler.value) > rank(target.value):
            raise Refused(f"the tiler has {rank(tiler.value)} modes, and the layout only {rank(target.value)}")
        _check_tiler(tiler.value, (), tiler.kind == "tile")
        return on_domain(target, "quotient", lambda layout: function(layout, tiler.value))

    return one(divided)


def _check_order(order: Value, count: int) -> None:
    if not order.is_static:
        raise Refused(f"the order must be static, and is {order}")
    if rank(order.value) != count:
        raise Refused(f"the order has {rank(order.value)} modes, and the shape {count}")
    given = order.value if isinstance(order.value, tuple) else (order.value,)
    if sorted(given, key=str) != sorted(range(count), key=str):
        raise Refused(f"the order must hold each of 0 to {count - 1} once, and is {order}")


def _tile_to_shape(operands: Sequence[Value], attributes: Attributes) -> Value:
    block, shape = operands[:2]
    count = rank(shape.value)
    if len(operands) > 2:
        _check_order(operands[2], count)
    if rank(block.value) > count:
        raise Refused(f"the block has {rank(block.value)} modes, and the shape only {count}")
    order = operands[2].value if len(operands) > 2 else tuple(range(count))
    return on_domain(block, "tiling", lambda layout: canonical.tiled_to_shape(layout, shape.value, order))


def _unpacked(function: Callable[[Layout, Any], Layout], first: bool) -> Callable[[Layout, Any], Layout]:
    return lambda layout, tiler: canonical.opened(function(layout, tiler), first)


FUNCTIONS: dict[str, Function] = {
    "logical_product": _product(canonical.logical_product),
    "zipped_product": _product(canonical.zipped_product),
    "tiled_product": _product(_unpacked(canonical.zipped_product, False)),
    "flat_product": _product(_unpacked(canonical.zipped_product, True)),
    "raked_product": _product(canonical.raked_product),
    "blocked_product": _product(canonical.blocked_product),
    "logical_divide": _divide(canonical.logical_divide),
    "zipped_divide": _divide(canonical.zipped_divide),
    "tiled_divide": _divide(_unpacked(canonical.zipped_divide, False)),
    "flat_divide": _divide(_unpacked(canonical.zipped_divide, True)),
    "tile_to_shape": one(_tile_to_shape),
}
