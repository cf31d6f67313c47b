# SPDX-License-Identifier: Apache-2.0
"""The Numba types of leaves: numbers with what divides them, register files, vectors, tensor maps."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes, seam
from ...isa.facts.tensormap import TensorMapRecord
from ...seam import CuteError
from ..emit.entry import TENSOR_MAP_BYTES
from ..emit.leaves import NumberLeaf, RegFile, VectorLeaf, element_ir, scalar_type, slots
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.numba_cuda import models, register_model, types
from .returns import Object


class Registers(types.Type):
    """A register file: a pointer to an array in the frame."""

    def __init__(self, dtype: dtypes.DType, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(f"registers<{count} x {dtype}>")


@register_model(Registers)
class RegistersModel(Object, models.PrimitiveModel):
    def __init__(self, dmm: Any, fe: Registers) -> None:
        self._array = ir.ArrayType(element_ir(fe.dtype), slots(fe.dtype, fe.count))
        super().__init__(dmm, fe, self._array.as_pointer())

    def object_key(self) -> Any:
        return self._array

    def contents(self) -> ir.Type:
        return self._array


class Vector(types.Type):
    """Some elements as one immutable value."""

    def __init__(self, dtype: dtypes.DType, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(f"vector<{count} x {dtype}>")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe: Vector) -> None:
        super().__init__(dmm, fe, ir.ArrayType(element_ir(fe.dtype), slots(fe.dtype, fe.count)))


class TensorMapType(types.Type):
    """A tensor map. As a kernel's parameter it is 128 bytes by value; inside, its 64-bit generic address."""

    def __init__(self) -> None:
        super().__init__("tensor_map")


TENSOR_MAP = TensorMapType()


@register_model(TensorMapType)
class TensorMapModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe: TensorMapType) -> None:
        super().__init__(dmm, fe, ir.IntType(64))

    def get_argument_type(self) -> ir.Type:
        return TENSOR_MAP_BYTES.as_pointer()

    def as_argument(self, builder: Builder, value: Any) -> Any:
        return builder.inttoptr(value, TENSOR_MAP_BYTES.as_pointer())

    def from_argument(self, builder: Builder, value: Any) -> Any:
        return builder.ptrtoint(value, ir.IntType(64))


class Multiple(types.Integer):
    """An integer type, and what is known to divide its values. Numba's own code sees the plain type (`unliteral`)."""

    def __init__(self, base: types.Integer, divisor: int) -> None:
        self.literal_type, self.divisor = base, divisor
        super().__init__(f"{base}%{divisor}", bitwidth=base.bitwidth, signed=base.signed)

    @property
    def key(self) -> Any:
        return self.literal_type, self.divisor

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if isinstance(other, Multiple) and other.literal_type == self.literal_type:
            return multiple(self.literal_type, math.gcd(self.divisor, other.divisor))
        return typingctx.unify_pairs(self.literal_type, types.unliteral(other))


register_model(Multiple)(models.IntegerModel)


def multiple(base: types.Type, divisor: int) -> types.Type:
    """Return `base`, or the type of its multiples of `divisor`."""
    return Multiple(base, divisor) if divisor > 1 and isinstance(base, types.Integer) else base


def leaf_type(leaf: seam.Leaf) -> types.Type:
    """Return the Numba type of a leaf, the compiler's own or a host one."""
    if isinstance(leaf, NumberLeaf):
        return multiple(leaf.type, leaf.divisor)
    if isinstance(leaf, RegFile):
        return Registers(leaf.dtype, leaf.count)
    if isinstance(leaf, VectorLeaf):
        return Vector(leaf.dtype, leaf.count)
    if isinstance(leaf, dtypes.Scalar):
        return multiple(scalar_type(leaf.dtype), leaf.divisor)
    if isinstance(leaf, TensorMapRecord):
        return TENSOR_MAP
    raise CuteError(f"{leaf!r} ({type(leaf).__name__}) has no form in a kernel")


def make_leaf(ty: types.Type, value: Any) -> seam.Leaf:
    """Return a leaf of this Numba type; a tensor map is seen as its 64-bit address."""
    if isinstance(ty, Registers):
        return RegFile(ty.dtype, ty.count, value)
    if isinstance(ty, Vector):
        return VectorLeaf(ty.dtype, ty.count, value)
    if isinstance(ty, TensorMapType):
        return NumberLeaf(types.uint64, value)
    return NumberLeaf(ty.literal_type, value, ty.divisor) if isinstance(ty, Multiple) else NumberLeaf(ty, value)
