# SPDX-License-Identifier: Apache-2.0
"""Objects of traced code as descriptions, whoever runs it: the compiler, the simulator or the host."""

from __future__ import annotations

from typing import Any

from ... import dtypes, seam
from ...typed.descriptions import Constant, Description, Group, Object, RegisterFile, Scalar, TensorMap
from ..bridge.leaf_types import leaf_type
from ..bridge.tree import fields_of
from ..emit.leaves import NumberLeaf, RegFile, VectorLeaf
from .type_descriptions import description_of_type

_ADDRESSES = {"gmem": dtypes.Int64, "generic": dtypes.Uint64, "tmem": dtypes.Uint32}


def described_object(x: Any) -> Description:
    """Describe an object that traced code has, whoever runs it. An address is known at run time alone. CuteError: it
    holds tuples of more levels than Python goes down."""
    try:
        return _described(x)
    except RecursionError:
        raise seam.CuteError(f"{type(x).__name__}: it holds a tuple of more levels than Python goes down") from None


def _described(x: Any) -> Description:
    if isinstance(x, (NumberLeaf, RegFile, VectorLeaf, dtypes.Scalar)):
        return description_of_type(leaf_type(x))
    if isinstance(x, seam.Leaf):
        backend: Any = seam.current_or(None)
        dtype = None if backend is None else backend.type_of(x)
        return Scalar(dtype, x.divisor) if isinstance(dtype, dtypes.DType) else TensorMap()
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return Group(tuple(map(_described, x)))
    if not seam.is_frozen_class(type(x)):
        return Constant(x)
    names = fields_of(type(x))
    placed = {"address", "space"} <= set(names)  # an address is what each backend has for it
    parts = (_address(x) if placed and f == "address" else _described(getattr(x, f)) for f in names)
    return Object(type(x), tuple(parts))


def _address(x: Any) -> Description:
    """Describe the address of a pointer, or the registers that stand in its place."""
    space = getattr(x.space, "name", "")
    if space == "rmem" and isinstance(x.dtype, dtypes.DType):
        return RegisterFile(x.dtype, x.address.count if isinstance(x.address, RegFile) else len(x.address))
    return Scalar(_ADDRESSES.get(space, dtypes.Int32))
