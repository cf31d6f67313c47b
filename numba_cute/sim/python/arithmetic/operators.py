# SPDX-License-Identifier: Apache-2.0
"""Numba's operators, which stand for Python's in the code of kernels (see `jitted`).

A plain int or bool is what Numba calls a literal: static, and what is computed of such alone is so too. Every other
number has its type. Operands that are not numbers (tuples, tensors, vectors, what is undefined, a user's structs) have
Python's operators.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....dtypes import Boolean, DType, Float64, Int64, from_numpy
from ....seam import CuteError
from ....seam.ground.naming import type_name
from ....seam.source.language import NO_KEY, no_operator
from . import at_once
from .cases import HALVES
from .compute import binary_operation, converter, limits, unary_operation, wrapped
from .lanes import Lanes
from .number import CLASSES, FALSE, TRUE, Number, elements, leaf_type, wide

Binary = Callable[[Any, Any], Any]
Unary = Callable[[Any], Any]

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
FOLDED = ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and_", "or_", "xor", "pow", *COMPARISONS)
"""Operators that are static for static operands."""
_LOW, _HIGH = limits(Int64)
_STATIC = (int, bool)
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
            "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "lt": "<", "le": "<=", "gt": ">",
            "ge": ">=", "eq": "==", "ne": "!=", "neg": "-", "pos": "+", "invert": "~", "not_": "not "}  # fmt: skip


class _TypesOfClasses(dict[type, "DType | None"]):
    def __missing__(self, kind: type) -> DType | None:
        found = self[kind] = _type_of_class(kind)
        return found


type_of_class = _TypesOfClasses().__getitem__
"""The type of a class's numbers: Python's, NumPy's, or `Number`'s. None if they are none."""


def _type_of_class(kind: type) -> DType | None:
    plain = {int: Int64, float: Float64, bool: Boolean}.get(kind)
    if plain is not None:
        return plain
    if issubclass(kind, Number):
        return kind.dtype
    if issubclass(kind, np.generic):
        try:
            return leaf_type(from_numpy(np.dtype(kind)))
        except (TypeError, KeyError):
            return None
    return None


def value_of(x: Any) -> Any:
    """The Python number of any number."""
    if isinstance(x, Number):
        return x.value
    return elements(np.asarray(x).reshape(1))[0] if isinstance(x, np.generic) else x


def _refused(op: str, *types: DType) -> CuteError:
    return CuteError(no_operator(SYMBOLS[op], [type_name(t.name) for t in types]))


# ------------------------------------------------------------------ two operands


class _Table(dict[tuple[type, type], Binary]):
    """By the operands' classes, what computes an operator."""

    def __init__(self, op: str, python: Binary) -> None:
        super().__init__()
        self.op, self.python = op, python

    def __missing__(self, key: tuple[type, type]) -> Binary:
        found = self[key] = _found(self.op, self.python, *key)
        return found


def _found(op: str, python: Binary, a: type, b: type) -> Binary:
    if a is Lanes or b is Lanes:
        other = b if a is Lanes else a
        return _lanes_binary(op) if other is Lanes or type_of_class(other) is not None else python
    if a is b and a in (tuple, list) and op in COMPARISONS:
        return _TUPLES[op]
    x, y = type_of_class(a), type_of_class(b)
    if op == "mod" and a is str and not issubclass(b, dict):  # by a dict pytest says why an assertion is false
        raise CuteError(no_operator("%", [type_name(t.__name__) for t in (a, b)]))
    if x is None or y is None:
        return _of_complex(python) if complex in (a, b) and (x or y) is not None else python
    operation = binary_operation(op, x, y)
    if operation is None:
        raise _refused(op, x, y)
    result, f = operation
    if a in _STATIC and b in _STATIC and op in FOLDED:
        return folded_integers(op, python)
    return typed_operator(op, f, result, a, b)


def _of_complex(python: Binary) -> Binary:
    """Make a function that computes an operator of a complex number and a real one, in double precision as Numba
    does."""
    return lambda a, b: python(value_of(a), value_of(b))


def folded_integers(op: str, python: Binary) -> Binary:
    """Static of static, as Python has it; what 64 bits do not hold is refused."""
    operation = binary_operation(op, Int64, Int64)
    assert operation is not None
    f = operation[1]
    if op in COMPARISONS:
        return lambda a, b: bool(f(a, b))

    def call(a: Any, b: Any) -> Any:
        if op in ("lshift", "pow") and type(b) is int and b > 64 and abs(a) > 1:
            raise CuteError(f"{a} {SYMBOLS[op]} {b}: an int of more than 64 bits, which kernels do not have")
        try:
            out = python(a, b)
        except (ArithmeticError, ValueError) as e:
            raise CuteError(f"this raises {type(e).__name__}: {e}") from None
        if type(out) is float:  # of a negative exponent, which only run time knew
            return int(f(a, b))
        return out if _LOW <= out <= _HIGH else wide(out)

    return call


def typed_operator(op: str, f: Binary, result: DType, a: type, b: type) -> Binary:
    """On operands of these classes, of which one is static at most."""
    if issubclass(a, np.generic) or issubclass(b, np.generic):
        make = _maker(result)
        return lambda x, y: make(f(value_of(x), value_of(y)))
    if result is Boolean:
        return _compared(f, issubclass(a, Number), issubclass(b, Number))
    if result.is_integer and op in _EXACT:
        return _wrapping(getattr(operator, op), result, issubclass(a, Number), issubclass(b, Number))
    return _made(f, CLASSES[result].make, issubclass(a, Number), issubclass(b, Number))


_EXACT = ("add", "sub", "mul", "and_", "or_", "xor")
"""Operators of integers for which Python's result is right but for wrapping around."""


def _maker(result: DType) -> Unary:
    return (lambda x: TRUE if x else FALSE) if result is Boolean else CLASSES[result].make


def _compared(f: Binary, first: bool, second: bool) -> Binary:
    """first, second: whether the operand is a `Number`, or a plain number."""
    if first and second:
        return lambda a, b: TRUE if f(a.value, b.value) else FALSE
    if first:
        return lambda a, b: TRUE if f(a.value, b) else FALSE
    return lambda a, b: TRUE if f(a, b.value if second else b) else FALSE


def _made(f: Binary, make: Unary, first: bool, second: bool) -> Binary:
    if first and second:
        return lambda a, b: make(f(a.value, b.value))
    if first:
        return lambda a, b: make(f(a.value, b))
    return lambda a, b: make(f(a, b.value if second else b))


def _wrapping(exact: Binary, result: DType, first: bool, second: bool) -> Binary:
    """Make an operator that wraps around where it must. A number that exists already is looked up here, for speed."""
    make, get, (low, high) = CLASSES[result].make, CLASSES[result].found, limits(result)

    def made(out: int) -> Any:
        return make(out if low <= out <= high else wrapped(out, result))

    if first and second:

        def call(a: Any, b: Any) -> Any:
            out = exact(a.value, b.value)
            known = get(out)
            return made(out) if known is None else known

    elif first:

        def call(a: Any, b: Any) -> Any:
            out = exact(a.value, b)
            known = get(out)
            return made(out) if known is None else known

    else:

        def call(a: Any, b: Any) -> Any:
            out = exact(a, b.value if second else b)
            known = get(out)
            return made(out) if known is None else known

    return call


def _add(table: _Table, low: int = _LOW, high: int = _HIGH) -> Binary:
    def add(a: Any, b: Any) -> Any:
        if type(a) is int and type(b) is int:
            out = a + b
            return out if low <= out <= high else wide(out)
        return table[type(a), type(b)](a, b)

    return add


def _sub(table: _Table, low: int = _LOW, high: int = _HIGH) -> Binary:
    def sub(a: Any, b: Any) -> Any:
        if type(a) is int and type(b) is int:
            out = a - b
            return out if low <= out <= high else wide(out)
        return table[type(a), type(b)](a, b)

    return sub


def _mul(table: _Table, low: int = _LOW, high: int = _HIGH) -> Binary:
    def mul(a: Any, b: Any) -> Any:
        if type(a) is int and type(b) is int:
            out = a * b
            return out if low <= out <= high else wide(out)
        return table[type(a), type(b)](a, b)

    return mul


def _binary(op: str, python: Binary) -> Binary:
    """The operator as kernels call it. The common ones are written out, for speed."""
    table = _Table(op, python)
    written = {"add": _add, "sub": _sub, "mul": _mul}.get(op)
    if written is not None:
        return written(table)
    if op in (*COMPARISONS, "and_", "or_", "xor"):

        def compare(a: Any, b: Any) -> Any:
            if type(a) is int and type(b) is int:
                return python(a, b)
            return table[type(a), type(b)](a, b)

        return compare
    return lambda a, b: table[type(a), type(b)](a, b)


_NAMES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor")
BINARY: dict[str, Binary] = {name: _binary(name, getattr(operator, name)) for name in (*_NAMES, *COMPARISONS)}
"""By the name of the function of `operator`."""
INPLACE: dict[str, Binary] = {name: _binary(name, getattr(operator, "i" + name.rstrip("_"))) for name in _NAMES}
"""The same for `+=` and its like, which objects that are not numbers may do otherwise."""


def _equal_tuples(a: tuple[Any, ...], b: tuple[Any, ...]) -> Any:
    if len(a) != len(b):
        return False
    found: Any = True
    for x, y in zip(a, b):
        same = BINARY["eq"](x, y)
        if not same:
            return same
        found = same if not isinstance(same, bool) else found
    return found


def _ordered_tuples(op: str) -> Binary:
    def call(a: tuple[Any, ...], b: tuple[Any, ...]) -> Any:
        for x, y in zip(a, b):
            if BINARY["ne"](x, y):
                return BINARY[op](x, y)
        return getattr(operator, op)(len(a), len(b))

    return call


_TUPLES: dict[str, Binary] = {
    "eq": _equal_tuples,
    "ne": lambda a, b: UNARY["not_"](_equal_tuples(a, b)),
    **{op: _ordered_tuples(op) for op in ("lt", "le", "gt", "ge")},
}


def contains(container: Any, x: Any) -> bool:
    """`x in container`."""
    if isinstance(container, (tuple, list, frozenset)):
        is_number = isinstance(x, (Number, Lanes, float))  # which has no identity: a NaN is in no tuple
        return any((x is y and not is_number) or bool(BINARY["eq"](x, y)) for y in container)
    if isinstance(container, (dict, set)) and isinstance(x, (Number, Lanes)):
        raise CuteError(NO_KEY)
    return x in container


def lacks(container: Any, x: Any) -> bool:
    """`x not in container`."""
    return not contains(container, x)


# ------------------------------------------------------------------ one operand


class _UnaryTable(dict[type, Unary]):
    def __init__(self, op: str) -> None:
        super().__init__()
        self.op = op

    def __missing__(self, kind: type) -> Unary:
        found = self[kind] = _found_unary(self.op, kind)
        return found


def _found_unary(op: str, kind: type) -> Unary:
    if kind is Lanes:
        return _lanes_unary(op)
    dtype = type_of_class(kind)
    if dtype is None:
        return getattr(operator, op)  # type: ignore[no-any-return]
    operation = unary_operation(op, dtype)
    if operation is None:
        raise _refused(op, dtype)
    result, f = operation
    if kind in _STATIC:
        return f
    make = CLASSES[result].make
    return lambda a: make(f(value_of(a)))


def _unary(op: str) -> Unary:
    table = _UnaryTable(op)
    return lambda a: table[type(a)](a)


UNARY: dict[str, Unary] = {name: _unary(name) for name in ("neg", "pos", "invert", "not_")}


# ------------------------------------------------------------------ lanes


def _of(x: Any) -> DType:
    """The type of an operand of lanes."""
    if type(x) is Lanes:
        return x.dtype or Int64
    return type_of_class(type(x))  # type: ignore[return-value]


def _lanes_binary(op: str) -> Binary:
    def call(a: Any, b: Any) -> Any:
        x, y = _of(a), _of(b)
        operation = binary_operation(op, x, y)
        if operation is None:
            raise _refused(op, x, y)
        return of_lanes(op, operation, a, b, x, y)

    return call


def of_lanes(op: str, operation: tuple[DType, Binary], a: Any, b: Any, x: DType, y: DType) -> Any:
    """An operator of numbers of which one differs between lanes.

    operation: what it gives, and how. x, y: their types.
    """
    result, f = operation
    lanes = a if type(a) is Lanes else b
    left, right = (v if type(v) is Lanes else value_of(v) for v in (a, b))
    found = at_once.binary(op, result, left, right, x, y)
    if found is not None:
        return lanes.convoy.of_array(result, found)
    width = len(lanes.values)
    xs = a.values if type(a) is Lanes else [left] * width
    ys = b.values if type(b) is Lanes else [right] * width
    return lanes.convoy.of(result, _each(op, f, result, xs, ys))


def _each(op: str, f: Binary, result: DType, xs: Any, ys: Any) -> list[Any]:
    """`f` of each pair."""
    if result.is_integer and op in at_once.RING:  # of addresses, mostly
        out = list(map(getattr(operator, op), xs, ys))
        low, high = limits(result)
        return out if low <= min(out) and max(out) <= high else [wrapped(v, result) for v in out]
    return list(map(f, xs, ys))


def _lanes_unary(op: str) -> Unary:
    def call(a: Any) -> Any:
        operation = unary_operation(op, _of(a))
        if operation is None:
            raise _refused(op, _of(a))
        return a.map(*operation)

    return call


# ------------------------------------------------------------------ conversions


def cast(x: Any, dtype: DType) -> Any:
    """A number as Numba casts it to a type; what is not a number stays as it is."""
    if type(x) is Lanes:
        if x.dtype is dtype:
            return x
        found = at_once.cast_lanes(x, _of(x), dtype)
        if found is not None:
            return x.convoy.of_array(dtype, found)
        return x.map(dtype, converter(_of(x), dtype) or _itself)
    return casts(dtype)[type(x)](x)


class Casts(dict[type, Unary]):
    """By a number's class, what casts it to a type; what is not a number stays as it is."""

    def __init__(self, dtype: DType) -> None:
        super().__init__()
        self.dtype = dtype

    def __missing__(self, kind: type) -> Unary:
        found = self[kind] = self._found(kind)
        return found

    def _found(self, kind: type) -> Unary:
        dtype, src = self.dtype, type_of_class(kind)
        if kind is Lanes:
            return lambda x: cast(x, dtype)
        if src is None or kind is CLASSES[dtype]:
            return _itself
        f, make = converter(src, dtype), CLASSES[dtype].make
        if issubclass(kind, Number):
            return (lambda x: make(x.value)) if f is None else lambda x: make(f(x.value))
        if issubclass(kind, np.generic):
            item = value_of if src in HALVES else kind.item
            return (lambda x: make(item(x))) if f is None else lambda x: make(f(item(x)))
        return make if f is None else lambda x: make(f(x))


@functools.cache
def casts(dtype: DType) -> Casts:
    """Return the casts of numbers to a type."""
    return Casts(dtype)


def _itself(x: Any) -> Any:
    return x
