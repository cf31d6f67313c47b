# SPDX-License-Identifier: Apache-2.0
"""How the listings write types: as the CuTe IR does, which stands above the compiler and is imported when asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes, seam
from ...seam.prints import spelled_with
from ..bridge.leaf_types import leaf_type
from ..bridge.tree import fields_of
from ..emit.leaves import Number, RegFile, VectorLeaf
from .described import Constant, Description, Group, Object, Scalar, TensorMap, described

_loads: list[Callable[[], Any]] = []


def spelled_by(load: Callable[[], Any]) -> None:
    """Let `load()` give the module whose `spell` writes descriptions, and whose `has_form` says what is an object of
    CuTe's IR."""
    _loads[:] = [load]


def spelling() -> Any:
    """Return that module."""
    (load,) = _loads
    return load()


_ADDRESSES = {"gmem": dtypes.Int64, "generic": dtypes.Uint64, "tmem": dtypes.Uint32}


def described_object(x: Any) -> Description:
    """Describe an object that traced code has, whoever runs it. An address is known at run time alone."""
    if isinstance(x, (Number, RegFile, VectorLeaf, dtypes.Scalar)):
        return described(leaf_type(x))
    if isinstance(x, seam.Leaf):
        backend: Any = seam.current_or(None)
        dtype = None if backend is None else backend.type_of(x)
        return Scalar(dtype, x.divisor) if isinstance(dtype, dtypes.DType) else TensorMap()
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return Group(tuple(map(described_object, x)))
    if not seam.is_static_class(type(x)):
        return Constant(x)
    fields = {f: described_object(getattr(x, f)) for f in fields_of(type(x))}
    if "address" in fields and "space" in fields:
        fields["address"] = Scalar(_ADDRESSES.get(getattr(x.space, "name", ""), dtypes.Int32))
    return Object(type(x), tuple(fields.values()))


spelled_with(lambda x: spelling().spell(described_object(x)))
