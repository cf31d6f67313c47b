# SPDX-License-Identifier: Apache-2.0
"""`Backend.elementwise` on NumPy arrays: functions are computed in float64 and rounded, so that a GPU's results differ
from these by its own few ulp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import DType, Float32, Float64

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
    "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh, "fma": lambda a, b, c: a * b + c,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}  # fmt: skip


def computed_in(dtype: DType) -> DType:
    """The type in which elements of `dtype` are computed."""
    return Float32 if dtype.is_float and dtype.width < 32 else dtype


def compute(op: str, dtype: DType, operands: list[Any]) -> Any:
    """The operation on arrays (or scalars) of `computed_in(dtype)`."""
    with np.errstate(all="ignore"):
        if op == "floordiv":
            return np.floor(operands[0] / operands[1]) if dtype.is_float else np.floor_divide(*operands)
        if op in EXACT:
            return EXACT[op](*operands)
        wide = [np.asarray(x, Float64.numpy) for x in operands]
        return ROUNDED[op](*wide).astype(computed_in(dtype).numpy)
