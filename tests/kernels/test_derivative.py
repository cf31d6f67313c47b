# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions that kernels trace: each operation's, in a kernel, against differences in float64."""

import math

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels import derivative
from numba_cute.kernels.derivative import Dual, Hanging, dual

SMALL, LARGE = np.array([0.3, -0.6, 0.45, 0.9], np.float32), np.array([1.3, 2.5, 4.0, 1.7], np.float32)
M, FAST = cute.math, {"fastmath": True}
# What is differentiated, of Float32; the same of numbers; where.
FUNCTIONS = {
    "add": (lambda x: x + 2.0 * x, lambda x: 3 * x, SMALL),
    "sub": (lambda x: 1.0 - x - x * x, lambda x: 1 - x - x * x, SMALL),
    "mul": (lambda x: x * x * 3.0, lambda x: 3 * x * x, SMALL),
    "div": (lambda x: x / (x + 2.0) + 1.0 / x, lambda x: x / (x + 2) + 1 / x, SMALL),
    "div_full": (lambda x: M.div(x + 1.0, x, **FAST), lambda x: (x + 1) / x, SMALL),
    "fma": (lambda x: M.fma(x, x, x), lambda x: x * x + x, SMALL),
    "neg": (lambda x: -x, lambda x: -x, SMALL),
    "abs": (lambda x: abs(x), abs, SMALL),
    "max": (lambda x: M.max(x * x, x), lambda x: max(x * x, x), SMALL),
    "min": (lambda x: M.min(x * x, 0.25), lambda x: min(x * x, 0.25), SMALL),
    "exp": (M.exp, math.exp, SMALL),
    "exp2": (M.exp2, lambda x: 2**x, SMALL),
    "ex2_approx": (lambda x: M.exp(x, **FAST) + M.exp2(x, **FAST), lambda x: math.exp(x) + 2**x, SMALL),
    "expm1": (M.expm1, math.expm1, SMALL),
    "log": (M.log, math.log, LARGE),
    "log2": (M.log2, math.log2, LARGE),
    "lg2_approx": (lambda x: M.log(x, **FAST), math.log, LARGE),
    "log10": (M.log10, math.log10, LARGE),
    "log1p": (M.log1p, math.log1p, SMALL),
    "sqrt": (M.sqrt, math.sqrt, LARGE),
    "sqrt_approx": (lambda x: M.sqrt(x, **FAST), math.sqrt, LARGE),
    "rsqrt": (M.rsqrt, lambda x: x**-0.5, LARGE),
    "rsqrt_approx": (lambda x: M.rsqrt(x, **FAST), lambda x: x**-0.5, LARGE),
    "rcp_approx": (lambda x: M.rcp(x, **FAST), lambda x: 1 / x, SMALL),
    "cbrt": (M.cbrt, lambda x: x ** (1 / 3), LARGE),
    "sin": (M.sin, math.sin, SMALL),
    "sin_approx": (lambda x: M.sin(x, **FAST), math.sin, SMALL),
    "cos": (M.cos, math.cos, SMALL),
    "cos_approx": (lambda x: M.cos(x, **FAST), math.cos, SMALL),
    "tan": (M.tan, math.tan, SMALL),
    "tanh": (M.tanh, math.tanh, SMALL),
    "tanh_approx": (lambda x: M.tanh(x, **FAST), math.tanh, SMALL),
    "sinh": (M.sinh, math.sinh, SMALL),
    "cosh": (M.cosh, math.cosh, SMALL),
    "asin": (M.asin, math.asin, SMALL),
    "acos": (M.acos, math.acos, SMALL),
    "atan": (M.atan, math.atan, SMALL),
    "asinh": (M.asinh, math.asinh, SMALL),
    "acosh": (M.acosh, math.acosh, LARGE),
    "atanh": (M.atanh, math.atanh, SMALL),
    "atan2": (lambda x: M.atan2(x, x * x + 1.0), lambda x: math.atan2(x, x * x + 1), SMALL),
    "erf": (M.erf, math.erf, SMALL),
    "erfc": (M.erfc, math.erfc, SMALL),
    "pow": (lambda x: M.pow(x, 2.5) + M.pow(x, x), lambda x: x**2.5 + x**x, LARGE),
    "floor": (lambda x: M.floor(x) + x, lambda x: math.floor(x) + x, SMALL),
    "ceil": (lambda x: M.ceil(x) * x, lambda x: math.ceil(x) * x, SMALL),
    "trunc": (lambda x: M.trunc(x) + x, lambda x: math.trunc(x) + x, SMALL),
    "round": (lambda x: M.round(x) * x, lambda x: round(x) * x, SMALL),
    "roundeven": (lambda x: M.roundeven(x) * x, lambda x: round(x) * x, SMALL),
    "where": (lambda x: cute.where(x > 0.0, x * x, 3.0), lambda x: x * x if x > 0 else 3, SMALL),
    "powers": (lambda x: x**5 + x**2, lambda x: x**5 + x**2, SMALL),
    "clamp": (lambda x: M.clamp(x * x, 0.1, 0.5), lambda x: min(max(x * x, 0.1), 0.5), SMALL),
}


@cute.seam.traced
def derivatives_of(given, out):
    """Differentiate each function at its places, rows of four."""
    for i, (function, *_) in enumerate(FUNCTIONS.values()):
        x = given[i, None].load()
        out[i, None].store(function(dual(x, "x")).slots["x"] + 0.0 * x)


@cuda.jit
def derivatives(given, out):
    derivatives_of(given, out)


@pytest.mark.slow
def test_the_derivative_of_each_operation_is_that_of_differences():
    assert set(derivative._RULES) <= set(FUNCTIONS)
    given = np.stack([at for *_, at in FUNCTIONS.values()])
    out = np.full_like(given, np.nan)
    cute.simulate(derivatives)[1, 1](*(cute.runtime.from_dlpack(x) for x in (given, out)))
    for got, (name, (_, f, at)) in zip(out, FUNCTIONS.items(), strict=True):
        want = [(f(float(x) + 1e-5) - f(float(x) - 1e-5)) / 2e-5 for x in at]
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-4, err_msg=name)


def test_what_a_derivative_hangs_on_is_known_on_the_host():
    x, v = dual(Hanging("x"), "x"), Dual(Hanging("v"), {"v": 1.0})
    assert (x + v).slots == {"x": 1.0, "v": 1.0} and (2.0 * x - 3.0).slots == {"x": 2.0}
    assert Hanging.of((x * v).slots["x"]) == {"v"} and Hanging.of(cute.math.tanh(x + v).slots["v"]) == {"x", "v"}
    assert Hanging.of(cute.where(x < 0.0, 0.0, v * x).slots["x"]) == {"x", "v"}


def test_what_has_no_derivative_is_refused():
    x = dual(Hanging("x"), "x")
    with pytest.raises(CuteError, match="'copysign' has no derivative here"):
        cute.math.copysign(x, 1.0)
    with pytest.raises(CuteError, match=r"branches on a value: choose with cute.where"):
        bool(x > 0.0)
    with pytest.raises(CuteError, match="followed in Float32"):
        x.to(cute.Float16)
