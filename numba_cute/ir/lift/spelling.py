# SPDX-License-Identifier: Apache-2.0
"""Static values of the dialect as Python: tuples, layouts, tiles, element types."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...layout.basis import ScaledBasis
from ...layout.int_tuple import flatten_to_tuple
from ...layout.layout import ComposedLayout, Layout
from ...layout.swizzle import Swizzle
from ...seam import CuteError
from ..dialect.leaves import Dynamic
from ..dialect.notation import RawComposed, RawLayout
from ..dialect.ratios import Ratio


class NoSuch(CuteError):
    """An error: this library has no object of a type, or no such value."""


_ELEMENTS: dict[str, DType] = {
    "i1": dtypes.Boolean, "i4": dtypes.Int4, "i8": dtypes.Int8, "i16": dtypes.Int16, "i32": dtypes.Int32,
    "i64": dtypes.Int64, "si4": dtypes.Int4, "si8": dtypes.Int8, "si16": dtypes.Int16, "si32": dtypes.Int32,
    "si64": dtypes.Int64, "ui4": dtypes.Uint4, "ui8": dtypes.Uint8, "ui16": dtypes.Uint16, "ui32": dtypes.Uint32,
    "ui64": dtypes.Uint64, "f16": dtypes.Float16, "bf16": dtypes.BFloat16, "tf32": dtypes.TFloat32,
    "f32": dtypes.Float32, "f64": dtypes.Float64, "f8E4M3FN": dtypes.Float8E4M3FN, "f8E5M2": dtypes.Float8E5M2,
    "f8E8M0FNU": dtypes.Float8E8M0FNU, "f6E2M3FN": dtypes.Float6E2M3FN, "f6E3M2FN": dtypes.Float6E3M2FN,
    "f4E2M1FN": dtypes.Float4E2M1FN,
}  # fmt: skip


def element(name: str) -> DType | None:
    """Return the element type that MLIR calls by a name; None for one that kernels do not have."""
    return _ELEMENTS.get(name)


def dtype_text(dtype: DType) -> str:
    """Write an element type."""
    return f"cute.{dtype.name}"


def tuple_text(value: Any) -> str:
    """Write a static tuple, or one of its leaves."""
    if isinstance(value, tuple):
        return sequence(map(tuple_text, value))
    if isinstance(value, Ratio) or isinstance(value, ScaledBasis) and isinstance(value.value, Ratio):
        raise NoSuch(f"coordinates count whole elements here: a step of {value} is not lifted")
    if isinstance(value, ScaledBasis):
        mode = str(value.mode[0]) if len(value.mode) == 1 else tuple_text(value.mode)
        return f"cute.E({mode})" if value.value == 1 else f"{value.value} * cute.E({mode})"
    return repr(value)


def sequence(items: Any) -> str:
    """Write a tuple of texts."""
    made = list(items)
    return f"({', '.join(made)}{',' if len(made) == 1 else ''})"


def _compact(shape: Any, stride: Any) -> bool:
    """Say whether make_layout gives a shape these strides by default."""
    step = 1
    for s, d in zip(flatten_to_tuple(shape), flatten_to_tuple(stride)):
        if type(d) is not int or type(s) is not int or d != step:
            return False
        step *= s
    return True


def layout_text(value: Any) -> str:
    """Write a static layout, swizzled or not."""
    if isinstance(value, (ComposedLayout, RawComposed)):
        inner = swizzle_text(value.inner) if isinstance(value.inner, Swizzle) else layout_text(value.inner)
        return f"cute.make_composed_layout({inner}, {tuple_text(value.offset)}, {layout_text(value.outer)})"
    shape = tuple_text(value.shape)
    if _compact(value.shape, value.stride):
        return f"cute.make_layout({shape})"
    return f"cute.make_layout({shape}, stride={tuple_text(value.stride)})"


def swizzle_text(value: Swizzle) -> str:
    """Write a swizzle."""
    return f"cute.make_swizzle({value.bits}, {value.base}, {value.shift})"


def tile_text(value: Any) -> str:
    """Write a tile: a plain extent is a number, which moves nothing."""
    if isinstance(value, tuple):
        return sequence(map(tile_text, value))
    if value is None:
        return "None"
    plain = not isinstance(value.shape, tuple) and (value.stride == 1 or value.shape == 1)
    return str(value.shape) if plain else layout_text(value)


def static_text(kind: str, value: Any) -> str:
    """Write a static value of a kind of the dialect."""
    if kind in ("layout", "composed_layout"):
        return layout_text(value)
    if kind == "tile":
        return tile_text(value)
    return swizzle_text(value) if kind == "swizzle" else tuple_text(value)


def has_basis(value: Any) -> bool:
    """Say whether a layout gives coordinates."""
    if isinstance(value, (ComposedLayout, RawComposed)):
        return has_basis(value.outer)
    return isinstance(value, (Layout, RawLayout)) and any(
        isinstance(d, ScaledBasis) for d in flatten_to_tuple(value.stride)
    )


def is_dynamic(leaf: Any) -> bool:
    """Say whether a leaf is known only at run time."""
    return isinstance(leaf, Dynamic) or isinstance(leaf, ScaledBasis) and isinstance(leaf.value, Dynamic)


__all__ = [
    "NoSuch", "dtype_text", "element", "has_basis", "is_dynamic", "layout_text", "sequence", "static_text",
    "swizzle_text", "tile_text", "tuple_text",
]  # fmt: skip
