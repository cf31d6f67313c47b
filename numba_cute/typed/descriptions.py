# SPDX-License-Identifier: Apache-2.0
"""Descriptions: what a kernel knows of a value, without Numba's types."""

from __future__ import annotations

from typing import Any, TypeAlias

from .. import dtypes
from ..seam import CuteError
from ..seam.ground.naming import shown
from ..seam.ground.records import dataclass


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
            raise CuteError(f"{shown(self.value)} is not part of a type: it may change; give a tuple")


@dataclass(frozen=True)
class Group:
    """A tuple."""

    items: tuple[Description, ...]


@dataclass(frozen=True)
class Object:
    """An instance of a `frozen` class. fields: in the class's order, those that kernels hold."""

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
    """A type that only Numba knows."""

    type: Any

    def __str__(self) -> str:
        return str(self.type)


Description: TypeAlias = (
    Scalar | RegisterFile | Elements | TensorMap | Constant | Group | Object | Struct | Array | Foreign
)
