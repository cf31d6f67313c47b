# SPDX-License-Identifier: Apache-2.0
"""Static numbers as types say them; floats that a kernel is given as static arguments: its code holds each as a
constant, as it does a global."""

from __future__ import annotations

import struct
from typing import Any

from ... import promotion
from ...dtypes import DType
from ..emit.leaves import dtype_of, scalar_type
from ..ground import llvmlite as llvm
from ..ground.builder import Builder, Target
from ..ground.numba_cuda import ir, lowering_registry, models, register_model, typeof_impl, types


class GivenFloat(types.Type):
    """The type of one float: 0.0 and -0.0 are two, and each NaN is one of its own. A parameter of it is not read."""

    def __init__(self, value: float) -> None:
        self.bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
        super().__init__(name=f"float {value.hex()} {self.bits & (1 << 64) - 1:x}")

    @property
    def key(self) -> Any:
        return self.bits

    def __unliteral__(self) -> types.Type:
        return types.float64

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Any:
        return typingctx.can_convert(types.float64, other)

    @property
    def value(self) -> float:
        """The number."""
        return struct.unpack("<d", struct.pack("<q", self.bits))[0]  # type: ignore[no-any-return]


class StaticFloat:
    """A float of the source that is given to a parameter which is static. value: it."""

    def __init__(self, value: float) -> None:
        self.value = value


@typeof_impl.register(StaticFloat)
def _of_static_float(obj: StaticFloat, c: Any) -> GivenFloat:
    return GivenFloat(obj.value)


@lowering_registry.lower_constant(GivenFloat)
def _constant(context: Target, builder: Builder, ty: GivenFloat, obj: Any) -> Any:
    return context.get_constant(types.float64, ty.value)


@register_model(GivenFloat)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, llvm.DoubleType())


def is_static(ty: Any) -> bool:
    """Say whether a type says a number."""
    return isinstance(ty, _STATIC)


def value_of(ty: Any) -> Any:
    """Return the number that a type says."""
    return ty.value if isinstance(ty, GivenFloat) else ty.literal_value


def type_of(value: Any) -> Any:
    """Return the type that says a number."""
    return GivenFloat(value) if isinstance(value, float) else types.literal(value)


def is_number(ty: Any) -> bool:
    """Say whether a type is of numbers."""
    return isinstance(ty, _NUMBERS) or is_static(ty)


def kind_of_number(ty: Any) -> DType:
    """Return the element type of a number: of a static one the CuTe DSL's (`promotion.literal`)."""
    return promotion.literal(value_of(ty)) if is_static(ty) else dtype_of(ty)


def number_type(ty: Any) -> Any:
    """Return the type that a number has at run time: of a static one the reference's."""
    return scalar_type(kind_of_number(ty)) if is_static(ty) else types.unliteral(ty)


_STATIC = (types.IntegerLiteral, types.BooleanLiteral, GivenFloat)
_NUMBERS = (types.Integer, types.Float, types.Boolean)


def put_in(func_ir: Any, args: Any) -> None:
    """Put the numbers of such arguments into a function's IR. args: its arguments' types, maybe too few."""
    given = {i: t for i, t in enumerate(args) if isinstance(t, GivenFloat)}
    for block in func_ir.blocks.values() if given else ():
        for inst in block.find_insts(ir.Assign):
            if isinstance(inst.value, ir.Arg) and inst.value.index in given:
                inst.value = ir.Const(given[inst.value.index].value, inst.loc)
