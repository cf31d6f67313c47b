# SPDX-License-Identifier: Apache-2.0
"""Numbers of a kernel as operations: of `arith` where one does what Numba does, of `numba` elsewhere."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from ...compiler.inspection.inference import OPERATORS
from ...dtypes import Boolean, DType, Float64, Int64, Uint64
from ...typed.descriptions import Constant, Description, Scalar
from .calls import pattern_of
from .foreign import NumbaBinary
from .operations import CastOp, make
from .types import type_of

Emit = Callable[[Operation], Any]
"""Appends an operation, and gives its result."""
SPELLED: dict[Any, str] = {function: name for name, function in OPERATORS.items()}
"""Python's operators as the IR writes them."""


def constant(value: Any, dtype: DType, emit: Emit) -> SSAValue:
    """Give a number that is known as a value of this type."""
    ty: Any = type_of(Scalar(dtype))
    if dtype.is_float:
        return _of(emit(arith.ConstantOp(FloatAttr(float(value), ty))))
    if dtype.kind == "uint":
        return _of(emit(make(CastOp, *pattern_of([int(value)]), ty)))
    return _of(emit(arith.ConstantOp.from_int_and_width(int(value), ty, truncate_bits=True)))


def _of(found: Any) -> SSAValue:
    assert isinstance(found, SSAValue)
    return found


def number_of(d: Description) -> DType:
    """Return the type that a number of this description is computed with."""
    if isinstance(d, Scalar):
        return d.dtype
    assert isinstance(d, Constant)
    if isinstance(d.value, bool):
        return Boolean
    if isinstance(d.value, float):
        return Float64
    return Int64 if -(2**63) <= d.value < 2**63 else Uint64


# ---------------------------------------------------------------- casts


def _is_plain(d: Scalar) -> bool:
    """Say whether `arith` has numbers of this type: signless integers, Booleans, IEEE floats and bfloat16."""
    return d.divisor == 1 and d.dtype.kind != "uint" and (not d.dtype.is_float or d.dtype.width >= 16)


def cast(value: SSAValue, of: Scalar, to: Scalar, emit: Emit) -> SSAValue:
    """Convert a number as Numba does."""
    if of == to:
        return value
    ty = type_of(to)
    if not (_is_plain(of) and _is_plain(to)):
        return _of(emit(make(CastOp, *pattern_of([value]), ty)))
    a, b = of.dtype, to.dtype
    if b is Boolean:
        return truth(value, of, emit)
    made = _conversion(a, b)
    if made is None:
        return _of(emit(make(CastOp, *pattern_of([value]), ty)))
    return _of(emit(made(value, ty)))


def _conversion(a: DType, b: DType) -> Any:
    """Find the operation of `arith` that converts numbers of one type to another."""
    if a is Boolean:
        return None if b.is_float else arith.ExtUIOp
    if a.is_float and b.is_float:
        return None if a.width == b.width else arith.ExtFOp if b.width > a.width else arith.TruncFOp
    if a.is_float:
        return arith.FPToSIOp
    if b.is_float:
        return arith.SIToFPOp
    return arith.ExtSIOp if b.width > a.width else arith.TruncIOp


def truth(value: SSAValue, of: Scalar, emit: Emit) -> SSAValue:
    """Say whether a number is not zero."""
    if of.dtype is Boolean:
        return value
    if not _is_plain(of):
        return _of(emit(make(CastOp, *pattern_of([value]), type_of(Scalar(Boolean)))))
    zero = constant(0, of.dtype, emit)
    if of.dtype.is_float:
        return _of(emit(arith.CmpfOp(value, zero, "une")))
    return _of(emit(arith.CmpiOp(value, zero, "ne")))


def negated(value: SSAValue, emit: Emit) -> SSAValue:
    """Give the contrary of a Boolean."""
    return _of(emit(arith.XOrIOp(value, constant(1, Boolean, emit))))


# ---------------------------------------------------------------- operators

_INTEGERS: dict[Any, Any] = {
    operator.add: arith.AddiOp, operator.sub: arith.SubiOp, operator.mul: arith.MuliOp, operator.and_: arith.AndIOp,
    operator.or_: arith.OrIOp, operator.xor: arith.XOrIOp, operator.lshift: arith.ShLIOp,
    operator.rshift: arith.ShRSIOp, operator.floordiv: arith.FloorDivSIOp,
}  # fmt: skip
_FLOATS: dict[Any, Any] = {
    operator.add: arith.AddfOp, operator.sub: arith.SubfOp, operator.mul: arith.MulfOp, operator.truediv: arith.DivfOp,
}  # fmt: skip
_LOGIC = {operator.and_: arith.AndIOp, operator.or_: arith.OrIOp, operator.xor: arith.XOrIOp}
_INTEGER_TESTS: dict[Any, str] = {
    operator.lt: "slt", operator.le: "sle", operator.gt: "sgt", operator.ge: "sge", operator.eq: "eq",
    operator.ne: "ne",
}  # fmt: skip
_FLOAT_TESTS: dict[Any, str] = {
    operator.lt: "olt", operator.le: "ole", operator.gt: "ogt", operator.ge: "oge", operator.eq: "oeq",
    operator.ne: "une",
}  # fmt: skip


def apply(function: Any, values: Sequence[SSAValue], wanted: Sequence[DType], given: DType, emit: Emit) -> SSAValue:
    """Apply a Python operator to numbers, that have the types which it wants."""
    made = _arith(function, values, wanted, given, emit)
    if made is None:
        made = make(NumbaBinary, *pattern_of([SPELLED[function], *values]), type_of(Scalar(given)))
    return made if isinstance(made, SSAValue) else _of(emit(made))


def _arith(function: Any, values: Any, wanted: Sequence[DType], given: DType, emit: Emit) -> Any:
    """Make the operation of `arith` that an operator is; None if there is none."""
    dtype = wanted[0]
    if any(d != dtype for d in wanted) or not _is_plain(Scalar(dtype)):
        return None
    if function is operator.pos:
        return cast(values[0], Scalar(dtype), Scalar(given), emit)
    if function is operator.not_:
        return negated(truth(values[0], Scalar(dtype), emit), emit)
    if dtype.is_float and function in _FLOAT_TESTS:
        return arith.CmpfOp(values[0], values[1], _FLOAT_TESTS[function])
    if dtype is Boolean:
        if function in (operator.eq, operator.ne):
            return arith.CmpiOp(values[0], values[1], _INTEGER_TESTS[function])
        return _LOGIC[function](*values) if function in _LOGIC and given is Boolean else None
    if function in _INTEGER_TESTS:
        return arith.CmpiOp(values[0], values[1], _INTEGER_TESTS[function])
    if given != dtype:
        return None
    if function is operator.neg:
        if dtype.is_float:
            return arith.NegfOp(*values)
        return arith.SubiOp(constant(0, dtype, emit), *values)
    if function is operator.invert:
        return arith.XOrIOp(values[0], constant(-1, dtype, emit))
    table = _FLOATS if dtype.is_float else _INTEGERS
    return table[function](*values) if function in table else None
