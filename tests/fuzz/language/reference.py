# SPDX-License-Identifier: Apache-2.0
"""Python itself as the reference: numbers that compute as Numba types them, and the few names of `cute` that a program
of the language uses, each as plain Python.

A number of a type of its own is an int or a float of Python that knows its type. Which type an operation has is asked
of numba-cuda's own typing; its value is Python's, cut to that type. Nothing here is shared with the simulator.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.descriptor import cuda_target

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
CUTE = {t: t.capitalize() for t in (*INTEGERS, *FLOATS)}


class Undefined(Exception):
    """The operation has no one meaning on a GPU: a division by zero, a shift by more bits than there are, or what
    docs/language.md says so of: a run-time range of steps of 0, and a name that has no value on the way that is run."""


@cache
def _typed(operation: Any, kinds: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the types that Numba casts the operands to, and the result's."""
    context = cuda_target.typing_context
    context.refresh()
    found = context.resolve_function_type(operation, tuple(getattr(types, k) for k in kinds), {})
    if found is None:
        raise TypeError(f"{operation.__name__} of {kinds}")
    return tuple(map(str, found.args)), str(found.return_type)


def kind(value: Any) -> str | None:
    """Return the type of a number, None for what is not a number."""
    own = getattr(value, "numba_type", None)
    if own is not None:
        return str(own)
    return {bool: "bool_", int: "int64", float: "float64"}.get(type(value))


def number(type_: str, value: Any) -> Any:
    """Return `value` as a number of that type, cut to it."""
    if type_ in ("bool", "boolean", "bool_"):
        return bool(value)
    if type_ in FLOATS:
        return Real(type_, float(np.float32(value)) if type_ == "float32" else float(value))
    if isinstance(value, float) and not math.isfinite(value):
        raise Undefined(f"{type_} of {value}")
    return Integer(type_, int(np.array(int(value) & (1 << 64) - 1, np.uint64).astype(type_)))


def _compute(operation: Any, *operands: Any) -> Any:
    kinds = tuple(map(kind, operands))
    if None in kinds:
        return NotImplemented
    casts, result = _typed(operation, kinds)  # type: ignore[arg-type]
    values = [number(c, v) for c, v in zip(casts, operands)]
    plain = [float(v) if isinstance(v, float) else int(v) for v in values]
    if operation in (operator.lshift, operator.rshift) and not 0 <= plain[1] < 64:
        raise Undefined(f"a shift by {plain[1]}")
    try:
        value = operation(*plain)
        return number(result, value if len(plain) > 1 else number(casts[0], value))  # Numba negates, then widens
    except ZeroDivisionError:
        raise Undefined("a division by zero") from None


def _forward(operation: Any) -> Callable[..., Any]:
    return lambda self, *others: _compute(operation, self, *others)


def _backward(operation: Any) -> Callable[..., Any]:
    return lambda self, other: _compute(operation, other, self)


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BITS = ("and_", "or_", "xor", "lshift", "rshift")
UNARY = ("neg", "pos", "abs")


def _arithmetic(cls: Any) -> Any:
    """Give a class of numbers Numba's operators; comparisons are Python's."""
    names = (*BINARY, *BITS) if issubclass(cls, int) else BINARY
    for name in names:
        slot, operation = name.strip("_"), getattr(operator, name)
        setattr(cls, f"__{slot}__", _forward(operation))
        setattr(cls, f"__r{slot}__", _backward(operation))
    for name in (*UNARY, *(["invert"] if issubclass(cls, int) else [])):
        operation = abs if name == "abs" else getattr(operator, name)
        setattr(cls, f"__{name}__", _forward(operation))
    return cls


@_arithmetic
class Integer(int):
    """An int of one of Numba's types."""

    numba_type: str

    def __new__(cls, type_: str, value: int) -> Any:
        self = super().__new__(cls, value)
        self.numba_type = type_
        return self


@_arithmetic
class Real(float):
    """A float of one of Numba's types."""

    numba_type: str

    def __new__(cls, type_: str, value: float) -> Any:
        self = super().__new__(cls, value)
        self.numba_type = type_
        return self


class DType:
    """An element type: called, it gives a number of it."""

    def __init__(self, type_: str) -> None:
        self.type_ = type_

    def __call__(self, value: Any) -> Any:
        return number(self.type_, value)

    def __repr__(self) -> str:
        return CUTE[self.type_]


class Array:
    """An array whose elements are numbers of its type, indexed by ints and tuples of ints."""

    def __init__(self, values: Any, type_: str) -> None:
        self.values, self.type_ = values, type_

    def __getitem__(self, index: Any) -> Any:
        return number(self.type_, self.values[index].item())

    def __setitem__(self, index: Any, value: Any) -> None:
        self.values[index] = number(self.type_, value)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def fill(self, value: Any) -> None:
        self.values.fill(number(self.type_, value))


def range_of(*args: Any, **_: Any) -> range:
    """Return a range; of run-time steps of 0 compiled code has no round."""
    if len(args) == 3 and isinstance(args[2], Integer) and args[2] == 0:
        raise Undefined("a step of 0")
    return range(*args)


def _extreme(python: Callable[..., Any]) -> Callable[..., Any]:
    """Return `min` or `max`. Of two floats it is PTX's: of a NaN the other one, and -0.0 is less than 0.0."""

    def call(*args: Any, **named: Any) -> Any:
        if len(args) == 2 and not named and all(isinstance(x, float) for x in args):
            if any(map(math.isnan, args)):
                args = args[::-1] if math.isnan(args[0]) else args
                return number(_typed(operator.add, tuple(map(kind, args)))[1], args[0])  # type: ignore[arg-type]
            named["key"] = lambda x: (x, math.copysign(1.0, x))
        return python(*args, **named)

    return call


def make_rmem_tensor(shape: Any, dtype: DType) -> Array:
    return Array(np.zeros(shape, dtype.type_), dtype.type_)


def struct(cls: Any) -> Any:
    """Return a class of run-time values: a constructor of its annotated fields, which keep their types."""
    fields: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        fields.update(base.__dict__.get("__annotations__", {}))
    defaults = {k: getattr(cls, k) for k in fields if hasattr(cls, k)}

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        given = dict(zip(fields, args)) | named
        if len(args) > len(fields) or set(given) - set(fields) or set(fields) - set(given) - set(defaults):
            raise TypeError(f"{cls.__name__}: {list(given)} for {list(fields)}")
        for name in fields:
            setattr(self, name, given[name] if name in given else defaults[name])

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if name not in fields:
            raise AttributeError(name)
        wanted = fields[name]
        object.__setattr__(self, name, wanted(value) if isinstance(wanted, DType) else value)

    if "__init__" not in cls.__dict__:
        cls.__init__ = __init__
    if "__setattr__" not in cls.__dict__:
        cls.__setattr__ = __setattr__
    return cls


def ceil_div(a: Any, b: Any) -> Any:
    return a // b + (a % b != 0)


def _jit(function: Any = None, **_: Any) -> Any:
    return (lambda f: f) if function is None else function


CUDA = SimpleNamespace(jit=_jit, threadIdx=SimpleNamespace(x=0))
NUMPY = SimpleNamespace(**{t: DType(t) for t in (*INTEGERS, *FLOATS)})
PURE = SimpleNamespace(
    **{name: DType(t) for t, name in CUTE.items()},
    struct=struct,
    jit=_jit,
    range_constexpr=range,
    range=range_of,
    const_expr=lambda value: value,
    make_rmem_tensor=make_rmem_tensor,
    ceil_div=ceil_div,
)
NAMES = {
    "cuda": CUDA, "np": NUMPY, "cute": PURE, "range": range_of, "min": _extreme(min), "max": _extreme(max),
}  # fmt: skip
"""What stands for `cuda`, `np`, `cute` and some builtins when Python runs a program."""
