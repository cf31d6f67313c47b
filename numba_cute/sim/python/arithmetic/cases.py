# SPDX-License-Identifier: Apache-2.0
"""Numba's signatures for CUDA, as data: of each operator, builtin and function of `math`."""

from __future__ import annotations

import functools
import itertools

from ....dtypes import BFloat16, Boolean, DType, Float16, Float32, Float64, Int32, Int64, Uint64
from .overloads import INTEGERS, REALS, SIGNED, UNSIGNED, Case, choose

MACHINE = (Int64, Uint64)
"""The integers that binary operators compute with."""
HALVES = (Float16, BFloat16)
COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
_ALL = (*SIGNED, *UNSIGNED, *REALS)


def _widest(*types: DType) -> DType:
    return Int64 if any(t.signed for t in types) else Uint64


def _same(types: tuple[DType, ...], count: int = 2) -> list[Case]:
    return [Case(t, (t,) * count) for t in types]


_PAIRS = [Case(_widest(a, b), (a, b)) for a, b in itertools.product(MACHINE, MACHINE)]
_ARITHMETIC = _PAIRS + _same((*REALS, *HALVES))
_LOGIC = [Case(Boolean, (Boolean, Boolean)), *_PAIRS]
_SHIFT = [Case(_widest(t), (t, by)) for types in (SIGNED, UNSIGNED) for t in types for by in (Uint64, Int64)]
_COMPARE = [Case(Boolean, (t, t)) for t in (Boolean, *SIGNED, *UNSIGNED, *REALS, *HALVES)]
_POWER = (
    _PAIRS
    + [Case(f, (f, t)) for f in REALS for t in (Int32, Int64, Uint64)]
    + _same(REALS)
)  # fmt: skip
_INVERT = [Case(Boolean, (Boolean,)), *(Case(_widest(t), (t,)) for t in (*UNSIGNED, *SIGNED))]
_SIGN = [
    *(Case(_widest(t), (t,)) for t in (*UNSIGNED, *SIGNED)), *_same(REALS, 1), Case(Int64, (Boolean,)),
    *_same(HALVES, 1),
]  # fmt: skip

BINARY: dict[str, list[Case]] = {
    **dict.fromkeys(("add", "sub", "mul"), _ARITHMETIC),
    "truediv": [Case(Float64, pair) for pair in itertools.product(MACHINE, MACHINE)] + _same((*REALS, *HALVES)),
    **dict.fromkeys(("floordiv", "mod"), _PAIRS + _same(REALS)),
    "pow": _POWER,
    **dict.fromkeys(("lshift", "rshift"), _SHIFT),
    **dict.fromkeys(("and_", "or_", "xor"), _LOGIC),
    **dict.fromkeys(COMPARED, _COMPARE),
}
"""By the name of the function of `operator`."""
_UNSAFE_FORBIDDEN = ("lshift", "rshift", "and_", "or_", "xor", "invert")

UNARY: dict[str, list[Case]] = {
    "neg": _SIGN,
    "pos": _SIGN,
    "invert": _INVERT,
    "not_": [Case(Boolean, (t,)) for t in (Boolean, *_ALL)],
}

_ONE = [Case(Float64, (Int64,)), Case(Float64, (Uint64,)), *_same(REALS, 1)]
_ONE_OR_HALF = [*_ONE, *_same((Float16,), 1)]
_TWO = [Case(Float64, (Int64, Int64)), Case(Float64, (Uint64, Uint64)), *_same(REALS)]
_TEST = [Case(Boolean, (t,)) for t in (Int64, Uint64, *REALS)]

FUNCTIONS: dict[str, list[Case]] = {
    "abs": [*_same((*SIGNED, *UNSIGNED, *REALS), 1), *_same((Float16,), 1)],
    "divmod": [Case((t, t), (t, t)) for t in (*MACHINE, *REALS)],
    "round": [
        Case(Int64, (Float32,)), Case(Int64, (Float64,)), Case(Float32, (Float32, Int64)),
        Case(Float64, (Float64, Int64)),
    ],
    "range": [Case(t, (t,) * n) for t in (Int32, Int64, Uint64) for n in (1, 2, 3)],
    **dict.fromkeys((
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "degrees", "erf", "erfc", "expm1", "gamma",
        "lgamma", "log1p", "radians", "sinh", "tanh", "tan",
    ), _ONE),
    **dict.fromkeys((
        "sin", "cos", "ceil", "floor", "sqrt", "log", "log2", "log10", "exp", "exp2", "fabs", "trunc",
    ), _ONE_OR_HALF),
    **dict.fromkeys(("atan2", "hypot"), _TWO),
    **dict.fromkeys(("copysign", "fmod", "nextafter", "remainder"), _same(REALS)),
    "math.pow": [*_same(REALS), Case(Float32, (Float32, Int32)), Case(Float64, (Float64, Int32))],
    "frexp": [Case((t, Int32), (t,)) for t in REALS],
    "ldexp": [Case(t, (t, Int32)) for t in REALS],
    "modf": [Case((t, t), (t,)) for t in (Float64, Float32)],
    **dict.fromkeys(("isnan", "isinf", "isfinite"), _TEST),
}  # fmt: skip
"""Builtins, and functions of `math` (math.pow under that name)."""


@functools.cache
def binary(op: str, a: DType, b: DType) -> Case | None:
    """The signature of an operator of two numbers; None if Numba has none."""
    if op in COMPARED and Uint64 in (a, b) and (a in SIGNED or b in SIGNED):  # as they are: Numba would round them
        return Case(Boolean, (Uint64, Int64) if a is Uint64 else (Int64, Uint64))
    if op in COMPARED and any(t in MACHINE for t in (a, b)) and any(t in REALS for t in (a, b)):
        return Case(Boolean, tuple(t if t in MACHINE else Float64 for t in (a, b)))
    return choose(BINARY[op], (a, b), op not in _UNSAFE_FORBIDDEN)


@functools.cache
def unary(op: str, a: DType) -> Case | None:
    """The signature of an operator of one number."""
    return choose(UNARY[op], (a,), op not in _UNSAFE_FORBIDDEN)


@functools.cache
def function(name: str, *types: DType) -> Case | None:
    """The signature of a builtin or a function of `math`."""
    if name == "divmod" and Uint64 in types and any(t in SIGNED for t in types):  # by their values
        return Case((Int64, Int64), tuple(t if t is Uint64 else Int64 for t in types))
    return choose(FUNCTIONS[name], types)


def integer(t: DType) -> DType:
    """The type of `int(x)`."""
    return t if t in INTEGERS else Int64


def real(t: DType) -> DType:
    """The type of `float(x)`."""
    return t if t.is_float and t is not BFloat16 else Float64
