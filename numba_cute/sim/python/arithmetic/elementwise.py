# SPDX-License-Identifier: Apache-2.0
"""`Backend.elementwise` on NumPy arrays: functions are computed in float64 and rounded, so that a GPU's results differ
from these by its own few ulp."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ....dtypes import DType, Float32, Float64, from_numpy
from ....isa.facts.rounding import fused
from ....seam import DIRECTED

_erf, _erfc = np.vectorize(math.erf, otypes=[np.float64]), np.vectorize(math.erfc, otypes=[np.float64])

# What is computed in the elements' own type.
EXACT: dict[str, Callable[..., Any]] = {
    "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal, ">": np.greater, ">=": np.greater_equal,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "where": np.where,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "mod": np.mod, "neg": np.negative,
    "abs": np.abs, "shl": np.left_shift, "shr": np.right_shift, "rem": np.fmod, "copysign": np.copysign,
    "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "roundeven": np.rint, "sqrt": np.sqrt,
    "min": np.fmin, "max": np.fmax,
}  # fmt: skip

# What is computed in float64.
ROUNDED: dict[str, Callable[..., Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "atan2": np.arctan2, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh, "erf": _erf,
    "erfc": _erfc, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log10": np.log10,
    "log1p": np.log1p, "log2": np.log2, "pow": np.power, "rsqrt": lambda x: 1.0 / np.sqrt(x), "sin": np.sin,
    "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,     "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}  # fmt: skip


def computed_in(dtype: DType) -> DType:
    """The type in which elements of `dtype` are computed."""
    return Float32 if dtype.is_float and dtype.width < 32 else dtype


def compute(op: str, dtype: DType, operands: list[Any]) -> Any:
    """The operation on arrays (or scalars) of `computed_in(dtype)`."""
    with np.errstate(all="ignore"):
        if op == "floordiv":
            return np.floor(operands[0] / operands[1]) if dtype.is_float else np.floor_divide(*operands)
        if op == "fma":
            return _fma(dtype, *operands)
        if op in DIRECTED:
            return _directed(op, operands, dtype)
        if op in EXACT:
            return EXACT[op](*operands)
        wide = [np.asarray(x, Float64.numpy) for x in operands]
        return ROUNDED[op](*wide).astype(computed_in(dtype).numpy)


def _fma(dtype: DType, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    if dtype.width < 64:
        return fused(a, b, c).astype(computed_in(dtype).numpy)
    return _exactly(a, b, c)


@functools.partial(np.vectorize, otypes=[np.float64])
def _exactly(a: Any, b: Any, c: Any) -> float:
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return float(a * b + c)
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    try:
        return float(exact) if exact else float(a * b + c)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _directed(op: str, operands: list[Any], dtype: DType) -> Any:
    """An operation rounded towards zero, upwards or downwards: the nearest number, moved if it is on the wrong side."""
    name, mode = op.split(".")
    nearest = np.asarray(compute(name, dtype, operands), dtype.numpy)
    arrays = np.broadcast_arrays(nearest, *operands)
    out = [_moved(name, mode, r, *xs) for r, *xs in zip(*(a.reshape(-1) for a in arrays))]
    return np.array(out, dtype.numpy).reshape(arrays[0].shape)


def _moved(name: str, mode: str, nearest: Any, *xs: Any) -> Any:
    if not all(map(np.isfinite, xs)) or np.isnan(nearest) or name == "div" and xs[1] == 0:
        return nearest
    f = [Fraction(float(x)) for x in xs]
    guess = Fraction(float(nearest)) if np.isfinite(nearest) else None
    if name == "sqrt":  # compared squared
        beyond = 1 if guess**2 > f[0] else -1 if guess**2 < f[0] else 0  # type: ignore[operator]
        negative = False
    else:
        exact = {
            "add": lambda: f[0] + f[1], "sub": lambda: f[0] - f[1], "mul": lambda: f[0] * f[1],
            "div": lambda: f[0] / f[1], "fma": lambda: f[0] * f[1] + f[2],
        }[name]()  # fmt: skip
        negative = exact < 0
        if guess is None:
            beyond = 1 if nearest > 0 else -1
        else:
            beyond = (guess > exact) - (guess < exact)
        if exact == 0 and mode == "rm" and nearest == 0 and name in ("add", "sub", "fma") and any(f):
            return -np.abs(nearest)
    down = mode == "rm" or mode == "rz" and not negative
    if beyond > 0 and down or beyond < 0 and not down:
        return np.nextafter(nearest, nearest.dtype.type(-np.inf if down else np.inf))
    return nearest


def bits_as(elements: Any, dtype: DType) -> Any:
    """The bits of elements, along the last axis, as elements of another type. Four bits each take a byte."""
    elements = np.ascontiguousarray(elements)
    wide, narrow = from_numpy(elements.dtype).width, dtype.width
    if wide == narrow or narrow == 6 or min(wide, narrow) >= 8:  # six bits too take a byte, and meet only such
        return elements.view(dtype.numpy)
    raw = elements.view(np.uint8)
    if wide == 4:
        raw = raw & 15
        return (raw[..., 0::2] | raw[..., 1::2] << 4).view(dtype.numpy)
    halves = np.stack([raw & 15, raw >> 4], -1)
    return halves.reshape(*raw.shape[:-1], -1).view(dtype.numpy)
