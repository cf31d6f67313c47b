# SPDX-License-Identifier: Apache-2.0
"""`math` and NumPy as kernels see them: functions of numbers, by Numba's types. What the GPU computes by libdevice is
computed in float64 here, and rounded."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ....dtypes import Boolean, DType, Float16, Float32, Float64, Int32, from_numpy
from ....seam import CuteError
from ....seam.source.language import no_module_attribute, no_ufunc
from . import cases
from .compute import convert, float_power, remainder, rounder
from .functions import passing, type_of, whole_of
from .lanes import Lanes
from .number import CLASSES, Number, from_python, leaf_type
from .operators import cast, type_of_class, value_of


def _safe(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math`, with IEEE's results where Python raises."""

    def call(*xs: float) -> Any:
        try:
            return f(*xs)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return float(_safe(math.gamma)(x))


def _log_gamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _ldexp(x: float, n: int) -> float:
    try:
        return math.ldexp(x, n)
    except OverflowError:
        return math.copysign(math.inf, x)


def _remainder(x: float, y: float) -> float:
    return math.nan if y == 0 or math.isinf(x) else math.remainder(x, y)


_NUMPY_NAMES = {
    **{n: n for n in ("cosh", "degrees", "expm1", "log1p", "radians", "sinh", "tanh", "tan", "sin", "cos", "ceil",
                      "floor", "sqrt", "log", "log2", "log10", "exp", "exp2", "fabs", "trunc", "hypot", "copysign",
                      "nextafter", "isnan", "isinf", "isfinite", "modf")},
    **{n: "arc" + n[1:] for n in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2")},
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{n: getattr(np, name) for n, name in _NUMPY_NAMES.items()},
    "erf": math.erf, "erfc": math.erfc, "gamma": _gamma, "lgamma": _log_gamma, "ldexp": _ldexp, "frexp": math.frexp,
    "fmod": remainder, "remainder": _remainder, "math.pow": float_power,
}  # fmt: skip


def _nextafter(dtype: DType, x: float, y: float) -> float:
    return float(np.nextafter(dtype.numpy(x), dtype.numpy(y)))


def _typed(result: DType | tuple[DType, ...], value: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_typed, result, value))
    if result.is_float:
        return CLASSES[result].make(rounder(result)(float(value)))
    return CLASSES[result].make(value.item() if isinstance(value, np.generic) else value)


_WHOLE = ("floor", "ceil", "trunc")


def _of_math(name: str, python: Any) -> Callable[..., Any]:
    """A function of `math` on numbers."""
    f = _FUNCTIONS[name]

    def call(*args: Any) -> Any:
        types = [type_of_class(type(a)) for a in args]
        case = cases.function(name, *types) if None not in types else None
        if case is None:
            return python(*args)
        if name in _WHOLE and (whole := whole_of(args[0])) is not None:
            return whole
        values = [convert(value_of(a), t, want) for a, t, want in zip(args, types, case.operands)]  # type: ignore[arg-type]
        if name == "nextafter":
            return _typed(case.result, _nextafter(case.operands[0], *values))
        with np.errstate(all="ignore"):
            out = f(*(float(v) if w is not Int32 else v for v, w in zip(values, case.operands)))
        return _typed(case.result, out)

    return _at_once(name, f, passing(call))


def _at_once(name: str, f: Any, each: Callable[..., Any]) -> Callable[..., Any]:
    """`each`, a function of numbers, done at once where they are floats of lanes."""
    if not isinstance(f, np.ufunc) or f.nout != 1 or name in (*_WHOLE, "nextafter"):
        return each

    @functools.wraps(each)
    def call(*args: Any) -> Any:
        types = [a.dtype if type(a) is Lanes else type_of_class(type(a)) for a in args]
        lanes = [a for a in args if type(a) is Lanes]
        if not lanes or not all(t in (Float32, Float64) for t in types):
            return each(*args)
        case = cases.function(name, *types)
        if case is None or tuple(types) != tuple(case.operands) or case.result not in (Float32, Float64):
            return each(*args)
        with np.errstate(all="ignore"):
            out = f(*(a.array(np.float64) if type(a) is Lanes else float(value_of(a)) for a in args))
            out = out.astype(case.result.numpy)
        return each(*args) if np.isnan(out).any() else lanes[0].convoy.of_array(case.result, out)

    return call


# ------------------------------------------------------------------ NumPy

_SAME = ("floor", "ceil", "trunc", "absolute", "negative", "square", "sign", "positive", "conjugate", "reciprocal")
"""Functions of one number, in its own type."""
_LOGIC = ("isnan", "isinf", "isfinite", "signbit", "logical_not", "logical_and", "logical_or", "logical_xor", "equal",
          "not_equal", "less", "less_equal", "greater", "greater_equal")  # fmt: skip
_FLOATING = ("true_divide", "divide", "arctan2", "hypot", "copysign", "logaddexp", "logaddexp2", "nextafter", "ldexp")
"""Functions of two numbers, as floats."""


def _floating(t: DType) -> DType:
    """The floats in which NumPy's functions, as Numba has them, compute a type."""
    if t.is_float:
        return Float64 if t is Float64 else Float32
    return Float32 if t.width <= 8 or t.width == 16 else Float64


def _meet(a: DType, b: DType) -> DType:
    """The type in which two operands of a ufunc meet: of a float and an integer the float's."""
    if a.is_float != b.is_float:
        return _floating(a if a.is_float else b)
    if a.is_float:
        return _floating(a if a.width >= b.width else b)
    return leaf_type(from_numpy(np.promote_types(a.numpy, b.numpy)))


def _ufunc_type(name: str, types: list[DType]) -> tuple[DType, DType]:
    """(the result's type, the one in which it is computed)."""
    operand = functools.reduce(_meet, types) if len(types) > 1 else types[0]
    if len(types) == 1 and operand is Float16:
        operand = Float32
    if name in _LOGIC:
        return Boolean, operand
    if operand.is_float or name in _SAME or len(types) > 1 and name not in _FLOATING:
        return operand, operand
    return _floating(operand), _floating(operand)


_UFUNCS = frozenset((
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "bitwise_and", "bitwise_or",
    "bitwise_xor", "conjugate", "cos", "cosh", "deg2rad", "degrees", "divide", "equal", "fmax", "fmin", "greater",
    "greater_equal", "hypot", "invert", "isnan", "left_shift", "less", "less_equal", "log", "log10", "log2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "not_equal", "rad2deg", "radians",
    "right_shift", "sin", "sinh", "tan", "tanh",
))  # fmt: skip
"""Those that Numba has for CUDA."""


def _of_ufunc(f: Any) -> Callable[..., Any]:
    """A ufunc on numbers."""

    def call(*args: Any, **kwargs: Any) -> Any:
        types = [type_of_class(type(a)) for a in args]
        if None in types or kwargs or not isinstance(f, np.ufunc):
            return f(*args, **kwargs)
        if f.__name__ not in _UFUNCS:
            raise CuteError(no_ufunc(f.__name__))
        result, operand = _ufunc_type(f.__name__, types)  # type: ignore[arg-type]
        values = [operand.numpy(value_of(cast(a, operand))) for a in args]
        with np.errstate(all="ignore"):
            return cast(from_python(f(*values)), result)

    return passing(call)


_HOSTS = ("random", "linalg", "fft")
"""Modules of NumPy's of which Numba has nothing in kernels."""


class _Hosts:
    """A module that kernels cannot use."""

    def __init__(self, real: ModuleType) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        raise CuteError(no_module_attribute(self._real.__name__, name))


class Module:
    """`math` or NumPy: functions and types of numbers as kernels have them; the rest as it is."""

    def __init__(self, real: ModuleType, replace: Any) -> None:
        self._real, self._replace = real, replace

    def __getattr__(self, name: str) -> Any:
        if name in _HOSTS:
            return _Hosts(getattr(self._real, name))
        found = self._replace(getattr(self._real, name), self._real is math)
        setattr(self, name, found)
        return found


def replaced(value: Any, of_math: bool) -> Any:
    """Return the replacement of a member of `math` or NumPy."""
    if isinstance(value, float):
        return from_python(value)
    if isinstance(value, type) and issubclass(value, np.generic):
        return type_of(value)  # type: ignore[arg-type]
    if of_math and callable(value):
        name = "math.pow" if value is math.pow else value.__name__
        return _of_math(name, value) if name in _FUNCTIONS else passing(_plain(value))
    return _of_ufunc(value) if isinstance(value, np.ufunc) else value


def _plain(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Numba does not have, on Python's numbers; what is computed of static ints is static."""

    def of(*args: Any) -> Any:
        given = f(*(a.value if isinstance(a, Number) else a for a in args))
        return given if type(given) is int and all(type(a) is int for a in args) else from_python(given)

    return of
