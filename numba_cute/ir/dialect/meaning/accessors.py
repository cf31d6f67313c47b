# SPDX-License-Identifier: Apache-2.0
"""The operations that look into values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....layout.basis import ScaledBasis
from ....layout.layout import ComposedLayout, Layout
from ....layout.swizzle import Swizzle
from ..checked import leaves_of
from ..leaves import width_of
from ..notation import NamedSwizzle, Unswizzled
from .values import Attributes, Function, Refused, Value, modes_of, one, rank


def _get_shape(operands: Sequence[Value], attributes: Attributes) -> Value:
    (source,) = operands
    if source.kind == "tile":
        return Value("shape", _shape_of_tile(source.value, source))
    return Value("shape", source.value.shape)


def _shape_of_tile(tile: Any, whole: Value) -> Any:
    if isinstance(tile, tuple):
        return tuple(_shape_of_tile(t, whole) for t in tile)
    if tile is None:
        raise Refused(f"the tile must hold layouts alone, and {whole} holds `_`: take its layouts first")
    return tile.shape


def _inner(operands: Sequence[Value], attributes: Attributes) -> Value:
    inner = operands[0].value.inner
    if isinstance(inner, Unswizzled):
        return Value("swizzle", NamedSwizzle(inner.bits, inner.base, inner.shift))
    return Value("swizzle" if isinstance(inner, Swizzle) else "layout", inner)


def _tile_leaves(tile: Any) -> list[Any]:
    return [leaf for t in tile for leaf in _tile_leaves(t)] if isinstance(tile, tuple) else [tile]


def _get_leaves(operands: Sequence[Value], attributes: Attributes) -> list[Value]:
    (source,) = operands
    found = _tile_leaves(source.value)
    return [Value("layout" if isinstance(leaf, Layout) else source.kind, leaf) for leaf in found]


def _get_layouts(operands: Sequence[Value], attributes: Attributes) -> list[Value]:
    (source,) = operands
    found = [Value("layout", leaf) for leaf in _tile_leaves(source.value) if leaf is not None]
    if not found:
        raise Refused(f"the tile must hold at least one layout, and is {source}")
    return found


def scalars_of(value: Any, only_dynamic: bool) -> list[Any]:
    """List the integers of a value: shape, then strides. only_dynamic: leave out what is static."""
    return [x for x in leaves_of(value, True) if x is not None and not (only_dynamic and type(x) is int)]


def _get_scalars(operands: Sequence[Value], attributes: Attributes) -> list[Value]:
    found = scalars_of(operands[0].value, "only_dynamic" in attributes)
    return [Value(f"i{width_of(x)}", x) for x in found]


def mode_of(source: Value, path: Sequence[int]) -> Any:
    """Return the mode of a value at a path of indices. Raises Refused where there is none."""
    value = source.value
    for at, index in enumerate(path):
        nested = modes_of(value)
        if at and not isinstance(nested, tuple):
            left = len(path) - at
            raise Refused(
                f"the path must end at a leaf, and goes on by {left} {'index' if left == 1 else 'indices'} beyond "
                f"depth {at}"
            )
        if not 0 <= index < rank(value):
            raise Refused(f"index {index} at depth {at} is not in [0, {rank(value)})")
        value = _mode(value, index)
    return value


def _mode(value: Any, index: int) -> Any:
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.inner, value.offset, _mode(value.outer, index))
    if isinstance(value, Layout):
        return Layout(_mode(value.shape, index), _mode(value.stride, index))
    return value[index] if isinstance(value, tuple) else value


def _get(operands: Sequence[Value], attributes: Attributes) -> Value:
    return Value(operands[0].kind, mode_of(operands[0], attributes.get("mode", ())))


def _select(operands: Sequence[Value], attributes: Attributes) -> Value:
    (source,) = operands
    count = rank(source.value)
    for index in attributes["mode"]:
        if not 0 <= index < count:
            raise Refused(f"index {index} is not in [0, {count})")
    return Value(source.kind, _selected(source.value, attributes["mode"]))


def _selected(value: Any, modes: Sequence[int]) -> Any:
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.inner, value.offset, _selected(value.outer, modes))
    if isinstance(value, Layout):
        return Layout(_selected(value.shape, modes), _selected(value.stride, modes))
    return tuple(_mode(value, m) for m in modes)


def _to_int_tuple(operands: Sequence[Value], attributes: Attributes) -> Value:
    (source,) = operands
    for leaf in _tile_leaves(source.value):
        if leaf is None:
            raise Refused(f"the source must not hold `_`, and is {source}")
        if isinstance(leaf, ScaledBasis):
            raise Refused(f"the source must not hold basis strides, and is {source}")
    return Value("int_tuple", source.value)


def _as(kind: str) -> Function:
    return lambda operands, attributes: [Value(kind, operands[0].value)]


FUNCTIONS: dict[str, Function] = {
    "get_shape": one(_get_shape),
    "get_stride": lambda operands, attributes: [Value("stride", operands[0].value.stride)],
    "composed_get_inner": one(_inner),
    "composed_get_offset": lambda operands, attributes: [Value("int_tuple", operands[0].value.offset)],
    "composed_get_outer": lambda operands, attributes: [Value("layout", operands[0].value.outer)],
    "get_leaves": _get_leaves,
    "get_scalars": _get_scalars,
    "get_layouts_from_tile": _get_layouts,
    "get": one(_get),
    "select": one(_select),
    "to_int_tuple": one(_to_int_tuple),
    "to_shape": _as("shape"),
    "to_stride": _as("stride"),
    "to_coord": _as("coord"),
}
