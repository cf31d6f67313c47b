# SPDX-License-Identifier: Apache-2.0
"""The operations of xDSL's `arith` and `math` as Python.

Numba adds two int32 to an int64, so every result whose type is another than Numba's own is cast. Flags (`overflow`,
`fastmath`) are permissions: `fastmath` is passed to the functions of `cute.math`, and otherwise unused.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, math, ub
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import SSAValue

from ... import math as cute_math
from ...dtypes import Boolean, DType, Float32, Int64, Uint64
from ...tensor import ssa
from ..library.types import description_of
from . import numbers, unset
from .numbers import UNSIGNED
from .writer import Literal, Writer, writes


@writes(arith.ConstantOp)
def constant(w: Writer, op: arith.ConstantOp) -> None:
    """A constant is written where it is used."""
    dtype = w.dtype(op.result)
    if isinstance(op.value, FloatAttr):
        w.values[op.result] = Literal(op.value.value.data, dtype)
    elif isinstance(op.value, IntegerAttr):
        value = op.value.value.data
        if dtype is Boolean:
            w.values[op.result] = Literal(bool(value), dtype)
        else:  # the bits of a signless integer, as a signed one
            low = value & ((1 << dtype.width) - 1)
            signed = low - (1 << dtype.width) if dtype.signed and low >> (dtype.width - 1) else low
            w.values[op.result] = Literal(signed, dtype)
    else:
        w.refuse(op, "it is not a constant number")


@writes(ub.PoisonOp)
def poison(w: Writer, op: ub.PoisonOp) -> None:
    """A value that nothing may depend on: a variable that is not assigned, or one of zeros where it is handed on. Of
    numbers that are computed with, zero."""
    dtype = numbers.number_of(op.result.type)
    if dtype is None and unset.handed_on(op.result):
        made = unset.blank(description_of(op.result.type))
        if made is not None:
            return w.line(f"{w.variable(op.result)} = {w.names.of(made, 'unset')}()")
    value = None if dtype is None else 0.0 if dtype.is_float else False if dtype is Boolean else 0
    w.values[op.result] = Literal(value, dtype or Boolean, poison=True)
    return None


# Integers

_OPERATORS: dict[Any, str] = {
    arith.AddiOp: "+", arith.SubiOp: "-", arith.MuliOp: "*", arith.FloorDivSIOp: "//", arith.AndIOp: "&",
    arith.OrIOp: "|", arith.XOrIOp: "^", arith.ShLIOp: "<<", arith.ShRSIOp: ">>",
}  # fmt: skip
_OF_BOOLS: dict[Any, str] = {
    arith.AddiOp: "^", arith.SubiOp: "^", arith.MuliOp: "&", arith.AndIOp: "&", arith.OrIOp: "|", arith.XOrIOp: "^",
    arith.MinUIOp: "&", arith.MaxUIOp: "|", arith.MinSIOp: "|", arith.MaxSIOp: "&",
}  # fmt: skip
"""Operators on one bit, which is -1 if it is signed."""


def _natural(w: Writer, dtype: DType, *operands: SSAValue) -> DType | None:
    """The type that Numba gives an operator's result, if it is an operator of numbers known at run time."""
    return dtype if any(w.constant(x) is None for x in operands) else None


def _of_bools(w: Writer, op: Any) -> bool:
    """Write an operation of bools, if it is one."""
    if w.dtype(op.result) is not Boolean:
        return False
    symbol = _OF_BOOLS.get(type(op))
    if symbol is None:
        w.refuse(op, "there is none of i1; extend the operands first")
    w.set(op.result, f"{w.typed(op.lhs)} {symbol} {w.typed(op.rhs)}", Boolean)
    return True


@writes(*_OPERATORS)
def integers(w: Writer, op: Any) -> None:
    """An operator of signed integers."""
    if not _of_bools(w, op):
        text = f"{w.use(op.lhs)} {_OPERATORS[type(op)]} {w.use(op.rhs)}"
        w.set(op.result, text, _natural(w, Int64, op.lhs, op.rhs))


_UNSIGNED_OPERATORS: dict[Any, str] = {arith.DivUIOp: "//", arith.RemUIOp: "%", arith.ShRUIOp: ">>"}


def _unsigned(w: Writer, value: SSAValue) -> str:
    return w.cast(w.use(value), UNSIGNED[w.dtype(value).width])


@writes(*_UNSIGNED_OPERATORS)
def unsigned_integers(w: Writer, op: Any) -> None:
    """An operator of integers whose bits are taken as those of unsigned ones."""
    if not _of_bools(w, op):
        w.set(op.result, f"{_unsigned(w, op.lhs)} {_UNSIGNED_OPERATORS[type(op)]} {_unsigned(w, op.rhs)}", Uint64)


_FUNCTIONS: dict[Any, Any] = {
    arith.DivSIOp: numbers.divsi, arith.RemSIOp: numbers.remsi, arith.CeilDivSIOp: numbers.ceildiv,
    arith.MinSIOp: cute_math.min, arith.MaxSIOp: cute_math.max,
}  # fmt: skip


@writes(*_FUNCTIONS)
def functions_of_integers(w: Writer, op: Any) -> None:
    """An operation of signed integers that Python has no operator for."""
    if not _of_bools(w, op):
        name = _function(w, _FUNCTIONS[type(op)])
        w.set(op.result, f"{name}({w.typed(op.lhs)}, {w.typed(op.rhs)})", w.dtype(op.result))


_UNSIGNED_FUNCTIONS: dict[Any, Any] = {
    arith.CeilDivUIOp: numbers.ceildiv, arith.MinUIOp: cute_math.min, arith.MaxUIOp: cute_math.max,
}  # fmt: skip


@writes(*_UNSIGNED_FUNCTIONS)
def functions_of_unsigned_integers(w: Writer, op: Any) -> None:
    """The same of unsigned ones."""
    if not _of_bools(w, op):
        name = _function(w, _UNSIGNED_FUNCTIONS[type(op)])
        w.set(op.result, f"{name}({_unsigned(w, op.lhs)}, {_unsigned(w, op.rhs)})")


def _function(w: Writer, function: Any) -> str:
    return w.names.of(function, function.__name__)


@writes(arith.AddUIExtendedOp)
def add_extended(w: Writer, op: arith.AddUIExtendedOp) -> None:
    """A sum, and whether it is less than an operand: whether it overflowed."""
    if w.dtype(op.sum) is Boolean:
        a, b = w.typed(op.lhs), w.typed(op.rhs)
        w.set(op.overflow, f"{a} & {b}", Boolean)
        return w.set(op.sum, f"{a} ^ {b}", Boolean)
    w.set(op.sum, f"{w.use(op.lhs)} + {w.use(op.rhs)}", _natural(w, Int64, op.lhs, op.rhs))
    return w.set(op.overflow, f"{_unsigned(w, op.sum)} < {_unsigned(w, op.lhs)}", Boolean)


@writes(arith.MulSIExtendedOp, arith.MulUIExtendedOp)
def mul_extended(w: Writer, op: Any) -> None:
    """The two halves of a product."""
    if w.dtype(op.low) is Boolean:
        w.refuse(op, "there is none of i1; extend the operands first")
    w.set(op.low, f"{w.use(op.lhs)} * {w.use(op.rhs)}", _natural(w, Int64, op.lhs, op.rhs))
    signed = isinstance(op, arith.MulSIExtendedOp)
    high = f"{_function(w, numbers.mul_high)}({w.typed(op.lhs)}, {w.typed(op.rhs)}, {signed})"
    w.set(op.high, high, w.dtype(op.high))


_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@writes(arith.CmpiOp)
def compare_integers(w: Writer, op: arith.CmpiOp) -> None:
    """A comparison of integers."""
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    kind, name = ("s", predicate) if predicate in ("eq", "ne") else (predicate[0], predicate[1:])
    if w.dtype(op.lhs) is Boolean:  # True is -1 where it is signed
        name = _SWAPPED[name] if kind == "s" and name in _SWAPPED else name
        w.set(op.result, f"{w.typed(op.lhs)} {_COMPARISONS[name]} {w.typed(op.rhs)}", Boolean)
    elif kind == "u":
        w.set(op.result, f"{_unsigned(w, op.lhs)} {_COMPARISONS[name]} {_unsigned(w, op.rhs)}", Boolean)
    else:
        text = f"{w.use(op.lhs)} {_COMPARISONS[name]} {w.use(op.rhs)}"
        w.set(op.result, text, _natural(w, Boolean, op.lhs, op.rhs))


# Floats

_OF_FLOATS: dict[Any, str] = {arith.AddfOp: "+", arith.SubfOp: "-", arith.MulfOp: "*", arith.DivfOp: "/"}


@writes(*_OF_FLOATS)
def floats(w: Writer, op: Any) -> None:
    """An operator of floats."""
    text = f"{_wide(w, op.lhs)} {_OF_FLOATS[type(op)]} {_wide(w, op.rhs)}"
    w.set(op.result, text, _widened(w.dtype(op.result)))


def _widened(dtype: DType) -> DType:
    """The type in which floats are computed. Those of 16 bits in Float32, which is rounded once: for theirs Numba calls
    functions of C++, which nothing links where there is no GPU."""
    return dtype if dtype.width >= 32 else Float32


def _wide(w: Writer, value: SSAValue) -> str:
    dtype = w.dtype(value)
    return w.typed(value) if dtype.width >= 32 else w.cast(w.typed(value), Float32)


@writes(arith.NegfOp)
def negative(w: Writer, op: arith.NegfOp) -> None:
    """The negative of a float."""
    w.set(op.result, f"-{_wide(w, op.operand)}", _widened(w.dtype(op.result)))


_EXTREMES: dict[Any, tuple[Any, bool]] = {
    arith.MaximumfOp: (cute_math.max, True), arith.MinimumfOp: (cute_math.min, True),
    arith.MaxnumfOp: (cute_math.max, False), arith.MinnumfOp: (cute_math.min, False),
}  # fmt: skip


@writes(*_EXTREMES)
def extremes(w: Writer, op: Any) -> None:
    """The greater or the lesser of two floats."""
    function, nan = _EXTREMES[type(op)]
    more = ", propagate_nan=True" if nan else ""
    w.set(op.result, f"{_function(w, function)}({w.typed(op.lhs)}, {w.typed(op.rhs)}{more})", w.dtype(op.result))


_ORDERED = {
    "oeq": "{a} == {b}", "ogt": "{a} > {b}", "oge": "{a} >= {b}", "olt": "{a} < {b}", "ole": "{a} <= {b}",
    "one": "({a} < {b}) | ({a} > {b})", "ord": "({a} == {a}) & ({b} == {b})", "une": "{a} != {b}",
    "uno": "({a} != {a}) | ({b} != {b})", "ueq": "not ({a} < {b}) | ({a} > {b})", "ugt": "not {a} <= {b}",
    "uge": "not {a} < {b}", "ult": "not {a} >= {b}", "ule": "not {a} > {b}",
}  # fmt: skip
"""Python's comparisons are false of a NaN, but for `!=`."""


@writes(arith.CmpfOp)
def compare_floats(w: Writer, op: arith.CmpfOp) -> None:
    """A comparison of floats."""
    predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
    if predicate in ("true", "false"):
        w.values[op.result] = Literal(predicate == "true", Boolean)
        return
    w.set(op.result, _ORDERED[predicate].format(a=_wide(w, op.lhs), b=_wide(w, op.rhs)), Boolean)


# Either


@writes(arith.SelectOp)
def select(w: Writer, op: arith.SelectOp) -> None:
    """One of two values: of numbers without a branch."""
    condition, yes, no = w.all((op.cond, op.lhs, op.rhs))
    if numbers.number_of(op.result.type) is not None:
        w.set(op.result, f"{w.names.of(ssa.where, 'where')}({condition}, {yes}, {no})", w.dtype(op.result))
    else:
        w.line(f"{w.variable(op.result)} = {yes} if {condition} else {no}")


@writes(arith.BitcastOp)
def bitcast(w: Writer, op: arith.BitcastOp) -> None:
    """The bits of a number as another type."""
    src, dst = w.dtype(op.input), w.dtype(op.result)
    if src.width != dst.width:
        w.refuse(op, f"{op.input.type} and {op.result.type} have {src.width} and {dst.width} bits")
    if src.is_integer and dst.is_integer or src is dst:
        w.set(op.result, w.typed(op.input), src)
    else:
        types = f"{w.dtype_name(src)}, {w.dtype_name(dst)}"
        w.set(op.result, f"{_function(w, numbers.bitcast)}({w.typed(op.input)}, {types})", dst)


@writes(arith.IndexCastOp, arith.TruncIOp, arith.ExtSIOp, arith.FPToSIOp, arith.SIToFPOp, arith.ExtFOp, arith.TruncFOp)
def cast(w: Writer, op: Any) -> None:
    """A conversion, whose integers are signed."""
    src, dst = w.dtype(op.input), w.dtype(op.result)
    text = w.use(op.input)
    if src is Boolean and not isinstance(op, arith.IndexCastOp):  # True is -1
        text = f"-{w.cast(text, Int64)}"
    if dst is Boolean and src.is_integer:  # the lowest bit
        text = f"{text} & 1"
    w.set(op.result, text)


@writes(arith.ExtUIOp, arith.FPToUIOp, arith.UIToFPOp)
def unsigned_cast(w: Writer, op: Any) -> None:
    """A conversion, whose integers are unsigned."""
    src, dst = w.dtype(op.input), w.dtype(op.result)
    if isinstance(op, arith.FPToUIOp):
        w.set(op.result, w.use(op.input) if dst is Boolean else w.cast(w.use(op.input), UNSIGNED[dst.width]))
    else:
        w.set(op.result, w.use(op.input) if src is Boolean else _unsigned(w, op.input))


# Functions

_MATH: dict[Any, str] = {
    math.AbsFOp: "abs", math.AcosOp: "acos", math.AcoshOp: "acosh", math.AsinOp: "asin", math.AsinhOp: "asinh",
    math.AtanOp: "atan", math.Atan2Op: "atan2", math.AtanhOp: "atanh", math.CbrtOp: "cbrt", math.CeilOp: "ceil",
    math.CopySignOp: "copysign", math.CosOp: "cos", math.CoshOp: "cosh", math.ErfOp: "erf", math.ExpOp: "exp",
    math.Exp2Op: "exp2", math.ExpM1Op: "expm1", math.FloorOp: "floor", math.FmaOp: "fma", math.LogOp: "log",
    math.Log10Op: "log10", math.Log1pOp: "log1p", math.Log2Op: "log2", math.PowFOp: "pow", math.RoundOp: "round",
    math.RoundEvenOp: "roundeven", math.RsqrtOp: "rsqrt", math.SinOp: "sin", math.SinhOp: "sinh",
    math.SqrtOp: "sqrt", math.TanOp: "tan", math.TanhOp: "tanh", math.TruncOp: "trunc", math.AbsIOp: "absi",
}  # fmt: skip
_APPROXIMATE = ("exp", "exp2", "log", "log2", "log10", "rsqrt", "sin", "cos", "tan", "tanh", "sqrt", "pow")
"""Those of which there is an approximate instruction, which `fastmath` asks for."""


@writes(*_MATH)
def mathematics(w: Writer, op: Any) -> None:
    """A function of `cute.math`."""
    name = _MATH[type(op)]
    if w.dtype(op.results[0]) is Boolean:
        w.refuse(op, "there is none of i1; extend the operand first")
    flags = getattr(op, "fastmath", None)
    fast = flags is not None and name in _APPROXIMATE and {"afn", "fast"} & {f.value for f in flags.data}
    args = ", ".join(w.all(op.operands)) + (", fastmath=True" if fast else "")
    w.set(op.results[0], f"{w.names.of(cute_math, 'math')}.{name}({args})", w.dtype(op.results[0]))


_COUNTS: dict[Any, Any] = {
    math.CountLeadingZerosOp: numbers.ctlz, math.CountTrailingZerosOp: numbers.cttz, math.CtPopOp: numbers.ctpop,
}  # fmt: skip


@writes(*_COUNTS)
def counts(w: Writer, op: Any) -> None:
    """A count of bits."""
    dtype = w.dtype(op.results[0])
    if dtype is Boolean:
        w.refuse(op, "there is none of i1; extend the operand first")
    w.set(op.results[0], f"{_function(w, _COUNTS[type(op)])}({w.typed(op.operands[0])})", dtype)


@writes(math.FPowIOp)
def power(w: Writer, op: Any) -> None:
    """A float to the power of an integer."""
    dtype = w.dtype(op.result)
    base = _wide(w, op.lhs)
    w.set(op.result, f"{base} ** {w.typed(op.rhs)}", dtype if dtype.width >= 32 else None)


@writes(math.IPowIOp)
def power_of_integer(w: Writer, op: Any) -> None:
    """An integer to the power of one, by squares; 1 over it, rounded towards zero, where the exponent is negative."""
    dtype = w.dtype(op.result)
    if dtype is Boolean:
        w.refuse(op, "there is none of i1; extend the operands first")
    base, exponent, result = w.temporary("base"), w.temporary("exponent"), w.variable(op.result)
    w.line(f"{base} = {w.typed(op.lhs)}")
    w.line(f"{exponent} = {w.typed(op.rhs)}")
    w.line(f"{result} = {w.cast('1', dtype)}")
    with w.indented(f"if {exponent} < 0:"):
        w.line(f"{exponent} = {w.cast(f'{exponent} & 1', dtype)}")
        with w.indented(f"if ({base} != 1) & ({base} != -1):"):
            w.line(f"{result} = {w.cast('0', dtype)}")
    with w.indented(f"while {exponent} > 0:"):
        with w.indented(f"if {exponent} & 1:"):
            w.line(f"{result} = {w.cast(f'{result} * {base}', dtype)}")
        w.line(f"{base} = {w.cast(f'{base} * {base}', dtype)}")
        w.line(f"{exponent} = {w.cast(f'{exponent} >> 1', dtype)}")
