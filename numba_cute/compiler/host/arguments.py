# SPDX-License-Identifier: Apache-2.0
"""Arguments as a launch passes them: this library's objects, numbers of its types, tensor maps by value."""

from __future__ import annotations

import ctypes
from typing import Any

from ... import dtypes
from ...seam import CuteError
from ..bridge import tree
from ..bridge.leaf_types import Multiple, TensorMapType
from ..bridge.object_types import Value
from ..emit.leaves import dtype_of
from ..emit.rounding import HALVES
from ..ground.numba_cuda import types
from . import tensormap


def value_arguments(ty: Value, val: Any) -> tuple[Any, ...]:
    """Return the kernel parameters of a compile-time object, which remembers them, if it is immutable with all that it
    holds: packing takes long."""
    memory = getattr(val, "__dict__", {})
    packed = memory.get("_cute_packed")
    if packed is None or packed[0] is not ty:
        leaves: list[Any] = []
        tree.align(val, ty.spec, leaves)
        packed = ty, leaf_arguments(ty, leaves, val)
        if "_cute_numba_type" in memory and not isinstance(val, type):
            object.__setattr__(val, "_cute_packed", packed)
    return packed[1]


def leaf_arguments(ty: Value, leaves: list[Any], owner: Any) -> tuple[Any, ...]:
    """Return the kernel parameters of the leaves of a compile-time object, its `owner`."""
    return tuple(_leaf_arg(t, leaf, owner) for t, leaf in zip(ty.leaves, leaves))


def _leaf_arg(ty: types.Type, leaf: Any, owner: Any) -> Any:
    if isinstance(ty, TensorMapType):
        return tensor_map(leaf)
    if isinstance(leaf, (int, dtypes.Scalar)):
        return scalar_argument(ty, leaf)
    raise CuteError(f"{type(owner).__name__}: {leaf!r} cannot be a kernel argument")


def scalar_argument(ty: types.Type, number: Any) -> Any:
    """Return a number as a kernel's parameter; what the kernel was promised of it is checked."""
    value = number.checked() if isinstance(number, dtypes.Scalar) else number
    if isinstance(ty, Multiple) and value % ty.divisor:
        raise CuteError(f"{number!r} is not a multiple of {ty.divisor}, as the kernel was compiled for")
    if ty in HALVES:
        return ctypes.c_uint16(int(dtypes.converted(value, dtype_of(ty)).view("uint16")))
    if isinstance(ty, types.Float):
        return {64: ctypes.c_double, 32: ctypes.c_float}[ty.bitwidth](value)
    if ty == types.boolean:
        return bool(value)
    return getattr(ctypes, f"c_{types.unliteral(ty)}")(value)


_maps: dict[Any, bytes] = {}


def tensor_map(record: Any) -> bytes:
    """Return the record as the 128 bytes that the hardware reads, encoded by the driver (cached: encoding takes 1
    us)."""
    found = _maps.get(record)
    if found is None:
        if len(_maps) > 4096:
            _maps.clear()
        found = _maps[record] = tensormap.encode(record)
    return found
