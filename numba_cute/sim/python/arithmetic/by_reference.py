# SPDX-License-Identifier: Apache-2.0
"""Operators and Python's functions by the CuTe DSL's rule (`promotion`): what stands for Python's in code of files that
import `cutlass`. Python's own numbers, floats too, are static there, and what is computed of such alone is so."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .... import promotion
from ....dtypes import Boolean, DType, Float32, Float64, Int32, Int64
from ....seam import CuteError
from ....seam.ground.naming import type_name
from ....seam.source.language import no_function, no_operator
from .compute import converter, limits, on_operands, quotient, remainder, rounder, wrapped
from .functions import python_functions as numbas, type_of
from .lanes import Lanes
from .modules import replaced
from .number import CLASSES
from .operators import (
    BINARY as NUMBAS,
    COMPARISONS,
    FOLDED,
    SYMBOLS,
    UNARY as NUMBAS_UNARY,
    cast,
    folded_integers,
    of_lanes,
    type_of_class,
    typed_operator,
    value_of,
)
from .undefined import Undefined

Binary = Callable[[Any, Any], Any]
_STATIC = frozenset((int, bool, float))


class Operand(NamedTuple):
    """An operand: its type by the rule, and the one that its value has, which a number of Python's has whole."""

    dtype: DType
    held: DType


_LITERALS = {int: Operand(Int32, Int64), float: Operand(Float32, Float64), bool: Operand(Boolean, Boolean)}


def _operand(x: Any) -> Operand | None:
    """Return the operand that a number is; None of anything else."""
    kind = type(x)
    if kind is int:
        return Operand(promotion.literal(x), Int64)
    if kind is Lanes:
        return Operand(x.dtype or Int32, x.dtype or Int64)
    return _of_class(kind)  # type: ignore[arg-type]


@functools.cache
def _of_class(kind: type) -> Operand | None:
    if kind in _LITERALS:
        return _LITERALS[kind]
    found = type_of_class(kind)
    return None if found is None else Operand(found, found)


@functools.cache
def operation(op: str, a: Operand, b: Operand, of_python: bool = False) -> tuple[DType, Binary]:
    """Return the type that an operator gives for two operands, and what computes it on their values. CuteError: there
    is none."""
    case = promotion.binary(op, a.dtype, b.dtype, of_python)
    if case is None:
        raise CuteError(no_operator(SYMBOLS[op], [type_name(t.dtype.name) for t in (a, b)]))
    compute = _on_operands(op, case)
    first, second = (converter(t.held, to) or _itself for t, to in zip((a, b), case.operands))
    return case.result, lambda x, y: compute(first(x), second(y))


def _on_operands(op: str, case: promotion.Promoted) -> Binary:
    meet, result = case.operands[0], case.result
    if op == "truediv" and not meet.is_float:
        near, real = rounder(Float32), converter(meet, Float32) or _itself
        return lambda x, y: near(quotient(real(x), real(y)))
    if op in ("floordiv", "mod") and meet.is_float:
        return _float_division(op, meet)
    if op in ("floordiv", "mod"):
        low = -(1 << meet.width - 1)
        f: Binary = lambda x, y: 0 if meet.signed and (x, y) == (low, -1) else promotion.quotient(op, x, y)  # noqa: E731
    else:
        f = on_operands(op, case.operands, Boolean if op in COMPARISONS else meet)
    if result is Boolean and meet is not Boolean and op not in COMPARISONS:
        return lambda x, y: bool(f(x, y))
    if result.is_integer and meet.is_integer:
        return lambda x, y: wrapped(f(x, y), result)
    return f


def _float_division(op: str, meet: DType) -> Binary:
    near = rounder(meet)
    if op == "mod":
        return lambda x, y: near(remainder(x, y))

    def floor(x: float, y: float) -> float:
        found = near(quotient(x, y))
        return math.copysign(float(math.floor(found)), found) if math.isfinite(found) else found

    return floor


def _itself(x: Any) -> Any:
    return x


# ------------------------------------------------------------------ operators


def _binary(op: str, python: Binary, numbas_own: Binary) -> Binary:
    table: dict[tuple[type, type], Binary] = {}
    fold, raising = folded_integers(op, python) if op in FOLDED else None, _raising(python)

    def static(a: Any, b: Any) -> Any:
        whole = fold is not None and float not in (type(a), type(b)) and (op != "pow" or b >= 0)
        return fold(a, b) if whole and fold is not None else raising(a, b)

    def call(a: Any, b: Any) -> Any:
        key = type(a), type(b)
        found = table.get(key)
        if found is None:
            found = table[key] = static if set(key) <= _STATIC else _found(op, numbas_own, *key)
        return found(a, b)

    return call


def _found(op: str, numbas_own: Binary, a: type, b: type) -> Binary:
    """Return what computes an operator on operands of these classes, of which one is static at most."""
    of_python = bool in (a, b)

    def each(x: Any, y: Any) -> Any:
        first, second = _operand(x), _operand(y)
        if first is None or second is None:
            return numbas_own(x, y)
        found = operation(op, first, second, of_python)
        if Lanes in (a, b):
            return of_lanes(op, found, x, y, first.held, second.held)
        return CLASSES[found[0]].make(found[1](value_of(x), value_of(y)))

    if Lanes in (a, b):
        return each
    first, second = _of_class(a), _of_class(b)
    if first is None or second is None:
        return numbas_own
    result, f = operation(op, first, second, of_python)
    typed = typed_operator(op, f, result, a, b)
    if a is int:
        return lambda x, y: typed(x, y) if _LOW <= x <= _HIGH else each(x, y)
    if b is int:
        return lambda x, y: typed(x, y) if _LOW <= y <= _HIGH else each(x, y)
    return typed


_LOW, _HIGH = limits(Int32)


def _raising(python: Binary) -> Binary:
    def call(a: Any, b: Any) -> Any:
        try:
            return python(a, b)
        except (ArithmeticError, ValueError) as e:
            raise CuteError(f"this raises {type(e).__name__}: {e}") from None

    return call


BINARY: dict[str, Binary] = {op: _binary(op, getattr(operator, op), NUMBAS[op]) for op in promotion.BINARY}
"""By the name of the function of `operator`."""


def _inplace(op: str, python: Any) -> Binary:
    plain = BINARY[op]

    def call(a: Any, b: Any) -> Any:
        return plain(a, b) if _operand(a) is not None and _operand(b) is not None else python(a, b)

    return call


INPLACE: dict[str, Binary] = {
    op: _inplace(op, getattr(operator, f"i{op.rstrip('_')}")) for op in promotion.BINARY if op not in COMPARISONS
}


def _unary(op: str) -> Callable[[Any], Any]:
    numbas_own, python = NUMBAS_UNARY[op], getattr(operator, op)

    def call(a: Any) -> Any:
        if type(a) is float:
            return python(a)
        operand = _operand(a) if type(a) not in _STATIC else None
        if operand is None or op == "not_":
            return numbas_own(a)
        x = operand.dtype
        result = promotion.unary(op, x)
        if result is None:
            raise CuteError(no_operator(SYMBOLS[op], [type_name(x.name)]))
        if x is Boolean and op == "invert":
            return numbas_own(a)
        f: Callable[[Any], Any] = python if result.is_float else lambda v: wrapped(python(v), result)
        return a.map(result, f) if type(a) is Lanes else CLASSES[result].make(f(value_of(a)))

    return call


UNARY = {op: _unary(op) for op in (*promotion.UNARY, "not_")}

# ------------------------------------------------------------------ functions


def _static_first(f: Callable[..., Any], python: Callable[..., Any]) -> Callable[..., Any]:
    """Return what computes as Python of Python's numbers, of which one is a float, and as `f` of others."""

    def call(*args: Any, **named: Any) -> Any:
        if not named and args and all(type(a) in _STATIC for a in args) and any(type(a) is float for a in args):
            try:
                return python(*args)
            except (ArithmeticError, ValueError) as e:
                raise CuteError(f"this raises {type(e).__name__}: {e}") from None
        return f(*args, **named)

    return call


def _met(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `min`, `max` or `range` with its numbers in the type in which they meet."""

    def call(*args: Any, **named: Any) -> Any:
        values = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        if named or any(type(v) is Undefined for v in values) or all(type(v) in _STATIC for v in values):
            return f(*args, **named)
        operands = [_operand(v) for v in values]
        types = [o.dtype for o in operands if o is not None]
        if len(types) < len(values) or not types:
            return f(*args, **named)
        meet = promotion.meeting(*types)
        if meet is None:
            raise CuteError(no_function(name, [type_name(t.name) for t in types]))
        return f(*(cast(v, meet) for v in values)) if name != "range" or meet is Int32 else f(*args)

    return call


def python_functions() -> dict[str, Any]:
    """Return the replacements of Python's builtins."""
    space = numbas()
    for name in ("abs", "round", "pow"):
        space[name] = _static_first(space[name], getattr(builtins, name))
    space["pow"] = _static_first(lambda a, b, *more: BINARY["pow"](a, b) if not more else pow(a, b, *more), pow)
    for name in ("min", "max"):
        space[name] = _static_first(_met(name, space[name]), getattr(builtins, name))
    space["range"] = _met("range", space["range"])
    space["sum"] = _sum
    space |= {kind.__name__: type_of(kind, True) for kind in (int, float, bool)}
    return space


def _sum(items: Any, start: Any = 0) -> Any:
    for x in items:
        start = BINARY["add"](start, x)
    return start


def of_module(value: Any, of_math: bool) -> Any:
    """Return what stands for a member of `math` or NumPy: of Python's numbers functions of `math` are Python's."""
    if isinstance(value, float) and not isinstance(value, np.generic):
        return value
    found = replaced(value, of_math)
    if not (of_math and callable(value)):
        return found

    def call(*args: Any) -> Any:
        if args and all(type(a) in _STATIC for a in args):
            try:
                return value(*args)
            except (ArithmeticError, ValueError) as e:
                raise CuteError(f"this raises {type(e).__name__}: {e}") from None
        return found(*args)

    return call
