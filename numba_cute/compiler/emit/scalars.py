# SPDX-License-Identifier: Apache-2.0
"""Trace code on run-time numbers: arithmetic, conversions, comparisons."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...seam import CuteError, divisor
from ...seam.guards.messages import check_traced_operator, no_number
from ..ground import llvmlite as ir
from ..ground.builder import Builder, Target
from ..ground.numba_cuda import types
from ..ground.target import current_arch
from . import casts, convert, elementwise
from .leaves import NumberLeaf, dtype_of, joined, scalar_type
from .rounding import HALVES

_ELEMENTWISE = {"truediv": "div", "and_": "and", "or_": "or", "lshift": "shl", "rshift": "shr"}
"""By an operator's name in `operator`, its name in `Backend.elementwise`, where that differs."""

_LLVM: dict[int, Any] = {}
"""The LLVM types of types of numbers, by these types' numbers."""


class Scalars:
    """The part of a `Tracer` that is about numbers. Without a builder nothing is emitted: leaves have no values."""

    context: Target
    builder: Builder
    """Both are asked while kernels are lowered, and None while types are found."""

    def __init__(self, context: Any = None, builder: Any = None) -> None:
        self.context = context
        self.builder = builder

    @functools.cached_property
    def arch(self) -> str:
        """The target."""
        return current_arch()

    def number(self, ty: types.Type, emit: Callable[[Builder], Any]) -> NumberLeaf:
        return NumberLeaf(ty, None if self.builder is None else emit(self.builder))

    def arith(self, op: str, a: Any, b: Any) -> NumberLeaf:
        """Apply an operator of traced code, in the type in which two numbers meet. op: its name in `operator`; or udiv,
        urem (see `Leaf._natural`) or sdiv (towards zero)."""
        ty = joined(a, b)
        dtype = dtype_of(ty)
        check_traced_operator(op, dtype)
        if ty in HALVES:
            return elementwise.elementwise(self, _ELEMENTWISE.get(op, op), dtype, (a, b))  # type: ignore[no-any-return]

        def emit(bld: Builder) -> Any:
            x, y = self.ir(a, ty), self.ir(b, ty)
            if dtype.signed and dtype.is_integer and op in ("add", "sub", "mul"):
                return getattr(bld, op)(x, y, flags=("nsw",))
            return elementwise.operation(self, _ELEMENTWISE.get(op, op), dtype)(x, y)

        return self.number(ty, emit)

    def ir(self, x: Any, ty: types.Type) -> Any:
        """Make of an int, float, bool or NumberLeaf an LLVM value of this Numba type (bools as i1)."""
        if isinstance(x, NumberLeaf):  # asked first, here and elsewhere: of another class a leaf asks who asks
            if x.type is ty or x.type == ty:
                return x.ir
            return casts.cast(self, x, ty, self.llvm(ty))
        if isinstance(x, dtypes.Scalar):
            x = x.value
        llvm = self.llvm(ty)
        if ty in HALVES:
            return llvm(int(dtypes.converted(x, dtype_of(ty)).view("uint16")))
        if isinstance(x, float) and isinstance(ty, types.Integer):
            x = dtypes.number(x, dtype_of(ty))
        return llvm(float(x)) if isinstance(ty, types.Float) else llvm(int(x))

    def llvm(self, ty: types.Type) -> Any:
        """Return the LLVM type of values of a type of numbers (i1 of bools)."""
        found = _LLVM.get(ty._code)
        if found is None:
            found = ir.IntType(1) if ty == types.boolean else self.context.get_value_type(ty)
            _LLVM[ty._code] = found
        return found

    def cast(self, value: Any, dtype: dtypes.DType) -> Any:
        if not isinstance(value, (NumberLeaf, int, float, dtypes.Scalar)):
            raise CuteError(f"{dtype}({value!r}): only numbers convert to an element type")
        number = self.number(scalar_type(dtype), lambda b: self.ir(value, scalar_type(dtype)))
        is_float = type(value) is not NumberLeaf and isinstance(value, float)
        if dtype.is_integer and not is_float:  # what wraps around keeps only powers of two
            known = divisor(value)
            wraps = isinstance(value, NumberLeaf) and dtype.width < getattr(value.type, "bitwidth", 64)
            number.divisor = (known & -known if wraps else known) or 1
        if dtype.width < 8 or dtype.width == 8 and dtype.is_float:  # it travels as another type, rounded
            return self.number(
                number.type, lambda b: convert.from_memory(self, convert.in_memory(self, value, dtype), dtype)
            )
        return number

    def type_of(self, scalar: Any) -> dtypes.DType:
        if isinstance(scalar, NumberLeaf):
            return dtype_of(scalar.type)
        kinds = {bool: dtypes.Boolean, int: dtypes.Int32, float: dtypes.Float32}
        if isinstance(scalar, dtypes.Scalar):
            return scalar.dtype
        if type(scalar) not in kinds:
            raise CuteError(no_number(scalar))
        return kinds[type(scalar)]

    def compare(self, op: str, a: Any, b: Any) -> Any:
        if not isinstance(a, NumberLeaf) and not isinstance(b, NumberLeaf):
            return {"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b, ">": a > b, ">=": a >= b}[op]
        ty = joined(a, b)

        def emit(bld: Builder) -> Any:
            x, y = self.ir(a, ty), self.ir(b, ty)
            if isinstance(ty, types.Float):
                return bld.fcmp_unordered(op, x, y) if op == "!=" else bld.fcmp_ordered(op, x, y)
            signed = isinstance(ty, types.Integer) and ty.signed
            return (bld.icmp_signed if signed else bld.icmp_unsigned)(op, x, y)

        return self.number(types.boolean, emit)

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        if not isinstance(cond, NumberLeaf):
            return a if cond else b
        if not isinstance(a, NumberLeaf) and not isinstance(b, NumberLeaf):
            if a == b:
                return a
            a = self.cast(a, dtypes.Int32 if isinstance(a, int) else dtypes.Float32)
        ty = joined(a, b)
        out = self.number(ty, lambda bld: bld.select(self.ir(cond, types.boolean), self.ir(a, ty), self.ir(b, ty)))
        out.divisor = math.gcd(divisor(a), divisor(b)) or 1
        return out
