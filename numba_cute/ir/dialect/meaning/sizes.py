# SPDX-License-Identifier: Apache-2.0
"""Sizes, indices and coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....layout.int_tuple import congruent, flatten_to_tuple, product, product_each, wrap
from ....layout.layout import ComposedLayout, compact, cosize
from ....layout.mapping import idx2crd, increment_coord, index
from ....layout.modes import append, prepend
from ....layout.swizzle import Swizzle
from ..checked import Refused, summed
from .accessors import mode_of
from .values import Attributes, Function, Value, computed, in_shape, modes_of, one, rank


def _size(operands: Sequence[Value], attributes: Attributes) -> Value:
    found = mode_of(operands[0], attributes.get("mode", ()))
    return Value("int_tuple", product(modes_of(found)))


def _cosize(operands: Sequence[Value], attributes: Attributes) -> Value:
    (source,) = operands
    if isinstance(source.value, ComposedLayout) and not isinstance(source.value.inner, Swizzle):
        raise Refused(f"a composed layout has a cosize where its inner function is a swizzle, and it is {source}")
    found = mode_of(source, attributes.get("mode", ()))
    return Value("int_tuple", computed("cosize", lambda: cosize(found)))


def _product(operands: Sequence[Value], attributes: Attributes) -> Value:
    return Value(operands[0].kind, product(operands[0].value))


def _product_each(operands: Sequence[Value], attributes: Attributes) -> Value:
    return Value(operands[0].kind, wrap(product_each(operands[0].value)))


def evaluated(layout: Any, coord: Any) -> Any:
    """Return where a layout maps a coordinate."""
    if not isinstance(layout, ComposedLayout):
        return index(coord, layout.shape, layout.stride)
    total = summed(layout.offset, evaluated(layout.outer, coord))
    if isinstance(layout.inner, Swizzle):
        return layout.inner(total)
    return evaluated(layout.inner, total)


def _layout_eval(operands: Sequence[Value], attributes: Attributes) -> Value:
    coord, layout = operands
    count = rank(layout.layout.shape)
    if isinstance(coord.value, tuple) and len(coord.value) != count:
        raise Refused(f"the coordinate must be a leaf or have {count} modes as the shape, and has {len(coord.value)}")
    return Value("int_tuple", computed("index", lambda: evaluated(layout.value, coord.value)))


def _crd2idx(operands: Sequence[Value], attributes: Attributes) -> Value:
    coord, shape = operands
    if not in_shape(coord.value, shape.value):
        raise Refused(f"the coordinate {coord} is not nested as the shape {shape}")
    return Value("int_tuple", computed("index", lambda: index(coord.value, shape.value, compact(shape.value))))


def _idx2crd(operands: Sequence[Value], attributes: Attributes) -> Value:
    idx, shape = operands
    if rank(idx.value) > 1 and rank(idx.value) != rank(shape.value):
        raise Refused(
            f"the index must be a leaf or have {rank(shape.value)} modes as the shape, and has {rank(idx.value)}"
        )
    return Value("coord", computed("coordinate", lambda: idx2crd(idx.value, shape.value)))


def _increment_coord(operands: Sequence[Value], attributes: Attributes) -> Value:
    coord, shape = operands
    if not congruent(coord.value, shape.value):
        raise Refused(f"the coordinate {coord} is not nested as the shape {shape}")
    if None in flatten_to_tuple(coord.value):
        raise Refused(f"the coordinate must not hold `_`, and is {coord}")
    return Value("coord", computed("coordinate", lambda: increment_coord(coord.value, shape.value)))


def _to_rank(join: Any) -> Function:
    def extended(operands: Sequence[Value], attributes: Attributes) -> Value:
        source, element = operands
        wanted = attributes["rank"]
        if wanted <= 0:
            raise Refused(f"the rank must be positive, and is {wanted}")
        kind = "layout" if source.kind == "composed_layout" else source.kind
        if element.kind != kind:
            raise Refused(f"the element for {source} must be a !cute.{kind}, and is {element}")
        if rank(source.value) >= wanted:
            return source
        return Value(source.kind, computed("value of that rank", lambda: join(source.value, element.value, wanted)))

    return one(extended)


FUNCTIONS: dict[str, Function] = {
    "size": one(_size),
    "cosize": one(_cosize),
    "tuple_product": one(_product),
    "tuple_product_each": one(_product_each),
    "layout_eval": one(_layout_eval),
    "crd2idx": one(_crd2idx),
    "idx2crd": one(_idx2crd),
    "increment_coord": one(_increment_coord),
    "append_to_rank": _to_rank(append),
    "prepend_to_rank": _to_rank(prepend),
}
