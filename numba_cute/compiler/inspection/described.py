# SPDX-License-Identifier: Apache-2.0
"""What a kernel knows of a value, without Numba's types: descriptions, and Numba's types as descriptions and back.

An IR above the compiler speaks of these (`numba_cute.ir`), and asks `infer` what a call gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from numba.cuda import types

from ... import dtypes
from ...seam import CuteError
from ...seam.ground.naming import shown
from ..bridge import tree
from ..bridge.leaf_types import TENSOR_MAP, Multiple, Registers, TensorMapType, Vector, multiple
from ..bridge.object_types import StructRef, Value
from ..bridge.shared_arrays import SharedArray
from ..emit.leaves import dtype_of, scalar_type


@dataclass(frozen=True)
class Scalar:
    """A number that is known at run time. divisor: what is known to divide it."""

    dtype: dtypes.DType
    divisor: int = 1


@dataclass(frozen=True)
class RegisterFile:
    """Registers of one thread, that are written in place."""

    dtype: dtypes.DType
    count: int


@dataclass(frozen=True)
class Elements:
    """Some elements as one immutable value."""

    dtype: dtypes.DType
    count: int


@dataclass(frozen=True)
class TensorMap:
    """A tensor map."""


@dataclass(frozen=True)
class Constant:
    """A value that is known whole: a number, a string, None, an element type, a member, a function, a class."""

    value: Any

    def __eq__(self, other: Any) -> bool:  # 1, 1.0 and True are three constants, 0.0 and -0.0 two; nan is nan
        return isinstance(other, Constant) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[type, Any]:
        return type(self.value), repr(self.value) if type(self.value) is float else self.value

    def __post_init__(self) -> None:
        if type(self.value).__hash__ is None:
            raise CuteError(f"{shown(self.value)} is no part of a type: it may change; give a tuple")


@dataclass(frozen=True)
class Group:
    """A tuple."""

    items: tuple[Description, ...]


@dataclass(frozen=True)
class Object:
    """An instance of a `static` class. fields: in the class's order, those that kernels hold."""

    cls: type
    fields: tuple[Description, ...]


@dataclass(frozen=True)
class Struct:
    """An instance of a `struct` class, held by reference. fields: (name, description) in the class's order."""

    cls: type
    fields: tuple[tuple[str, Description], ...]


@dataclass(frozen=True)
class Array:
    """A Numba array. layout: "C", "F" or "A". shared: whether it is known to lie in shared memory; then extents and
    alignment of one that `cuda.shared.array` gave, as far as they are known."""

    dtype: dtypes.DType
    ndim: int
    layout: str
    readonly: bool = False
    shared: bool = False
    extents: tuple[int, ...] | None = None
    alignment: int = 0


@dataclass(frozen=True)
class Foreign:
    """What only Numba knows: its type."""

    type: Any

    def __str__(self) -> str:
        return str(self.type)


Description: TypeAlias = (
    Scalar | RegisterFile | Elements | TensorMap | Constant | Group | Object | Struct | Array | Foreign
)


def described(ty: types.Type) -> Description:
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
        return Group(tuple(map(described, ty)))
    if isinstance(ty, StructRef):
        return Struct(ty.cls, tuple((name, described(t)) for name, t in ty.fields))
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
        return described(spec[1])
    if kind == "const":
        return Constant(spec[2])
    if kind == "tuple":
        return Group(tuple(map(_of_spec, spec[1])))
    return Object(spec[1], tuple(map(_of_spec, spec[2])))


def numba_type(d: Description) -> types.Type:
    """Return the Numba type of the values that a description tells of: the converse of `described`."""
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
    return d.type


def _of_constant(value: Any) -> types.Type:
    if value is None:
        return types.none
    if isinstance(value, (bool, int, str)) and type(value) in (bool, int, str):
        return types.literal(value)
    if isinstance(value, float):
        return types.float64
    return Value(("const", type(value), value))


def _spec(d: Description) -> tree.Spec:
    if isinstance(d, Object):
        return ("node", d.cls, tuple(map(_spec, d.fields)))
    if isinstance(d, Group):
        return ("tuple", tuple(map(_spec, d.items)))
    if isinstance(d, Constant):
        return ("const", type(d.value), d.value)
    if isinstance(d, RegisterFile):
        return ("leaf", Registers(d.dtype, d.count))
    if isinstance(d, Elements):
        return ("leaf", Vector(d.dtype, d.count))
    return ("leaf", TENSOR_MAP if isinstance(d, TensorMap) else numba_type(d))
