# SPDX-License-Identifier: Apache-2.0
"""Numba's types as descriptions (`numba_cute.typed`), and back."""

from __future__ import annotations

from typing import Any

from ...seam import CuteError
from ...seam.source.language import too_large
from ...typed.descriptions import (
    Array,
    Constant,
    Description,
    Elements,
    Foreign,
    Group,
    Object,
    RegisterFile,
    Scalar,
    Struct,
    TensorMap,
)
from ..bridge import tree
from ..bridge.leaf_types import TENSOR_MAP, Multiple, Registers, TensorMapType, Vector, multiple
from ..bridge.object_types import StructRef, Value
from ..bridge.shared_arrays import SharedArray
from ..emit.leaves import dtype_of, scalar_type
from ..ground.numba_cuda import types


def description_of_type(ty: types.Type) -> Description:
    """Describe the values of a Numba type."""
    if isinstance(ty, types.Omitted):
        return Constant(ty.value)
    if isinstance(ty, types.Literal):
        return Constant(ty.literal_value)
    if isinstance(ty, types.NoneType):
        return Constant(None)
    if isinstance(ty, Multiple):
        return Scalar(dtype_of(ty.literal_type), ty.divisor)
    if isinstance(ty, Registers):
        return RegisterFile(ty.dtype, ty.count)
    if isinstance(ty, Vector):
        return Elements(ty.dtype, ty.count)
    if isinstance(ty, TensorMapType):
        return TensorMap()
    if isinstance(ty, (types.Number, types.Boolean)):
        try:
            return Scalar(dtype_of(ty))
        except CuteError:
            return Foreign(ty)
    if isinstance(ty, Value):
        return _of_spec(ty.spec)
    if isinstance(ty, types.BaseTuple) and not isinstance(ty, types.BaseNamedTuple):
        return Group(tuple(map(description_of_type, ty)))
    if isinstance(ty, StructRef):
        return Struct(ty.cls, tuple((name, description_of_type(t)) for name, t in ty.fields))
    if isinstance(ty, types.Array):
        try:
            known = (True, ty.extents, ty.alignment) if isinstance(ty, SharedArray) else ()
            return Array(dtype_of(ty.dtype), ty.ndim, ty.layout, not ty.mutable, *known)
        except CuteError:
            return Foreign(ty)
    if isinstance(ty, types.Dispatcher):
        return Constant(ty.dispatcher)
    if isinstance(ty, types.Module):
        return Constant(ty.pymod)
    return Foreign(ty)


def _of_spec(spec: tree.Spec) -> Description:
    kind = spec[0]
    if kind == "leaf":
        return description_of_type(spec[1])
    if kind == "const":
        return Constant(spec[2])
    if kind in ("tuple", "list"):
        return Group(tuple(map(_of_spec, spec[1])))
    return Object(spec[1], tuple(map(_of_spec, spec[2])))


def numba_type(d: Description) -> types.Type:
    """Return the Numba type of the values that a description tells of: the converse of `description_of_type`."""
    if isinstance(d, Scalar):
        return multiple(scalar_type(d.dtype), d.divisor)
    if isinstance(d, (RegisterFile, Elements, TensorMap)):
        return Value(_spec(d))
    if isinstance(d, Constant):
        return _of_constant(d.value)
    if isinstance(d, Group):
        return types.BaseTuple.from_types([numba_type(x) for x in d.items])
    if isinstance(d, Object):
        return Value(_spec(d))
    if isinstance(d, Struct):
        return StructRef(d.cls, tuple((name, numba_type(x)) for name, x in d.fields))
    if isinstance(d, Array) and d.shared:
        kind = scalar_type(d.dtype)
        return SharedArray(kind, d.ndim, d.layout, d.readonly, extents=d.extents, alignment=d.alignment)
    if isinstance(d, Array):
        return types.Array(scalar_type(d.dtype), d.ndim, d.layout, readonly=d.readonly)
    found: types.Type | None = getattr(d, "type", None)
    if found is None:  # what a text has in a value's place, and is none
        raise CuteError(f"{d} is not a value of a kernel")
    return found


def _of_constant(value: Any) -> types.Type:
    if value is None:
        return types.none
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        raise CuteError(too_large(value))
    if isinstance(value, (bool, int, str)) and type(value) in (bool, int, str):
        return types.literal(value)
    if isinstance(value, float):
        return types.float64
    return Value(("const", type(value), value))


def _spec(d: Description) -> tree.Spec:
    if isinstance(d, Object):
        return ("named" if issubclass(d.cls, tuple) else "node", d.cls, tuple(map(_spec, d.fields)))
    if isinstance(d, Group):
        return ("tuple", tuple(map(_spec, d.items)))
    if isinstance(d, Constant):
        return ("const", type(d.value), d.value)
    if isinstance(d, RegisterFile):
        return ("leaf", Registers(d.dtype, d.count))
    if isinstance(d, Elements):
        return ("leaf", Vector(d.dtype, d.count))
    return ("leaf", TENSOR_MAP if isinstance(d, TensorMap) else numba_type(d))
