# SPDX-License-Identifier: Apache-2.0
"""Printed operations as an older release of the CuTe DSL wrote them, where nothing but the spelling differs: they are
printed as the present one writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute

from ...layout.int_tuple import product
from .tensors import layout_of

SPELLINGS = {"cute.memref.load_vec": "%D : T", "cute.memref.store_vec": "%D : T1"}
"""By name; they begin with no bracket, as the present ones do."""


def _vector(types: Sequence[Attribute]) -> list[Attribute] | None:
    """The elements of a tensor in one row."""
    t: Any = types[0]
    name, count = t.data[0], product(layout_of(t).value.shape)
    element = _FLOATS.get(name) or (IntegerType(int(name[1:])) if name[:1] == "i" and name[1:].isdigit() else None)
    return [VectorType(element, [count])] if element is not None and type(count) is int else None


_FLOATS: dict[str, Any] = {"f16": builtin.f16, "bf16": builtin.bf16, "f32": builtin.f32, "f64": builtin.f64}

RESULTS: dict[str, Callable[[Sequence[Attribute]], list[Attribute] | None]] = {"cute.memref.load_vec": _vector}
"""The result types that an older release's line leaves out; None if they are not known."""

__all__ = ["RESULTS", "SPELLINGS"]
