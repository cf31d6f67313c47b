# SPDX-License-Identifier: Apache-2.0
"""cute.math: precise and approximate functions of scalars and vectors, and the instructions that they become."""

import math
import re

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack, make_fake_tensor
from numba_cute.seam import traced

from ..conftest import assert_close

erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)
# function: (reference, from, to)
UNARY = {
    "exp": (np.exp, -5, 5), "exp2": (np.exp2, -5, 5), "expm1": (np.expm1, -1, 1), "log": (np.log, 0.1, 9),
    "log2": (np.log2, 0.1, 9), "log10": (np.log10, 0.1, 9), "log1p": (np.log1p, -0.5, 2), "sqrt": (np.sqrt, 0.1, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9), "cbrt": (np.cbrt, -9, 9), "sin": (np.sin, -3, 3),
    "cos": (np.cos, -3, 3), "tan": (np.tan, -1.2, 1.2), "sinh": (np.sinh, -3, 3), "cosh": (np.cosh, -3, 3),
    "tanh": (np.tanh, -3, 3), "asin": (np.arcsin, -0.9, 0.9), "acos": (np.arccos, -0.9, 0.9),
    "atan": (np.arctan, -9, 9), "asinh": (np.arcsinh, -9, 9), "acosh": (np.arccosh, 1.1, 9),
    "atanh": (np.arctanh, -0.9, 0.9), "erf": (erf, -2, 2), "erfc": (erfc, -2, 2), "floor": (np.floor, -9, 9),
    "ceil": (np.ceil, -9, 9), "trunc": (np.trunc, -9, 9), "roundeven": (np.rint, -9, 9), "abs": (np.abs, -9, 9),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), -9, 9), "rcp": (lambda x: 1 / x, 0.1, 9),
    "neg": (np.negative, -9, 9),
}  # fmt: skip
FAST = {
    "exp": "ex2.approx.ftz", "exp2": "ex2.approx.ftz", "log": "lg2.approx.ftz", "log2": "lg2.approx.ftz",
    "log10": "lg2.approx.ftz", "sqrt": "sqrt.approx.ftz", "rsqrt": "rsqrt.approx.ftz", "sin": "sin.approx.ftz",
    "cos": "cos.approx.ftz", "tan": "sin.approx.ftz", "tanh": "tanh.approx", "rcp": "rcp.approx.ftz",
}  # fmt: skip


def kernel_of(fn):
    traced_fn = traced(fn)

    @cuda.jit
    def kernel(a, b, c):
        i, _, _ = cute.arch.thread_idx()
        c[i, None].store(traced_fn(a[i, None].load(), b[i, None].load()))

    return kernel


def over(run, fn, a, b, dtype, want, rtol, atol):
    out = np.zeros(a.shape, dtype)
    arguments = [lambda place, x=x: from_dlpack(place(x)) for x in (a, b, out)]
    run(kernel_of(fn), 1, len(a), arguments, outputs=[out],
        check=lambda: assert_close(out, want, rtol=rtol, atol=atol))  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_a_vector(run, rng, name):
    of, low, high = UNARY[name]
    a = rng.uniform(low, high, (4, 4)).astype(np.float32)
    fn = getattr(cute.math, name)
    over(run, lambda x, y: fn(x), a, a, np.float32, of(a.astype(np.float64)), 1e-6, 1e-6)


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 1e-3), (ml_dtypes.bfloat16, 2.0**-8), (np.float16, 1e-3)])
@pytest.mark.parametrize("name", FAST)
def test_approximations_are_near(run, rng, name, dtype, rtol):
    of, low, high = UNARY[name]
    a = rng.uniform(low, high, (4, 4)).astype(dtype)
    fn = getattr(cute.math, name)
    over(run, lambda x, y: fn(x, fastmath=True), a, a, dtype, of(a.astype(np.float64)), rtol, 1e-3)


def ptx_of(fn, dtype=cute.Float32):
    t = make_fake_tensor(dtype, (4, 4), (4, 1), assumed_align=16)
    compiled = cute.compile(kernel_of(fn), (t, t, t))
    assert compiled.resources.local == 0
    return compiled.ptx


@pytest.mark.parametrize("name", FAST)
def test_fastmath_is_one_instruction_for_each_element(name):
    fn = getattr(cute.math, name)
    ptx = ptx_of(lambda x, y: fn(x, fastmath=True))
    assert len(re.findall(rf"\b{re.escape(FAST[name])}\.f32", ptx)) == 4
    assert "call" not in ptx


def test_division_has_its_approximate_form():
    assert ptx_of(lambda x, y: cute.math.div(x, y, fastmath=True)).count("div.full.ftz.f32") == 4
    assert ptx_of(lambda x, y: cute.math.div(x, y)).count("div.rn.f32") == 4


BINARY = {
    "atan2": (np.arctan2, lambda x, y: cute.math.atan2(x, y)),
    "pow": (np.power, lambda x, y: cute.math.pow(x, y)),
    "pow_fast": (np.power, lambda x, y: cute.math.pow(x, y, fastmath=True)),
    "rem": (np.fmod, lambda x, y: cute.math.rem(x, y)),
    "max": (np.maximum, lambda x, y: cute.math.max(x, y)),
    "min": (np.minimum, lambda x, y: cute.math.min(x, y)),
    "copysign": (lambda x, y: np.copysign(x, y - 2), lambda x, y: cute.math.copysign(x, y - 2)),
    "fma": (lambda x, y: x * y + x, lambda x, y: cute.math.fma(x, y, x)),
    "clamp": (lambda x, y: np.clip(x, 1, 2), lambda x, y: cute.math.clamp(x, 1, 2)),
    "div": (np.divide, lambda x, y: cute.math.div(x, y, fastmath=True)),
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_vectors(run, rng, name):
    of, fn = BINARY[name]
    a, b = (rng.uniform(0.5, 4, (4, 4)).astype(np.float32) for _ in range(2))
    want = of(a.astype(np.float64), b.astype(np.float64))
    over(run, fn, a, b, np.float32, want, 2e-6, 2e-6)


@pytest.mark.parametrize("name, of", [("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)])
def test_kinds_of_numbers(run, name, of):
    a = np.array([[1.0, np.nan, np.inf, -np.inf]], np.float32)
    fn = getattr(cute.math, name)
    over(run, lambda x, y: fn(x).to(cute.Float32), a, a, np.float32, of(a).astype(np.float32), 0, 0)


def test_functions_of_scalars(run, rng):
    a = rng.uniform(0.5, 4, (8,)).astype(np.float32)
    out = np.zeros((8, 4), np.float32)

    @cuda.jit
    def kernel(a, out):
        i, _, _ = cute.arch.thread_idx()
        out[i, 0] = cute.math.exp2(a[i])
        out[i, 1] = cute.math.rsqrt(a[i], fastmath=True)
        s, c = cute.math.sincos(a[i])
        out[i, 2] = s * s + c * c
        out[i, 3] = cute.math.max(a[i], 2.0)

    def check():
        wide = a.astype(np.float64)
        want = np.stack([np.exp2(wide), 1 / np.sqrt(wide), np.ones(8), np.maximum(wide, 2)], 1)
        assert_close(out, want, rtol=1e-6, atol=1e-6)

    run(kernel, 1, 8, [lambda place, x=x: from_dlpack(place(x)) for x in (a, out)], outputs=[out], check=check)


def test_float64_is_computed_precisely_whatever_fastmath_says(run, rng):
    a = rng.uniform(0.5, 4, (2, 4))
    over(run, lambda x, y: cute.math.exp(x, fastmath=True), a, a, np.float64, np.exp(a), 1e-14, 0)


def test_functions_of_floats_make_integers_float32(run):
    a = np.arange(1, 9, dtype=np.int32).reshape(2, 4)
    over(run, lambda x, y: cute.math.sqrt(x), a, a, np.float32, np.sqrt(a.astype(np.float64)), 1e-6, 0)


def test_an_integer_operation_on_floats_is_refused():
    a = np.ones((1, 4), np.float32)
    arguments = [from_dlpack(x) for x in (a, a, a.copy())]
    with pytest.raises(cute.CuteError, match="shl: Float32 elements have no bits to compute with"):
        cute.compile(kernel_of(lambda x, y: x << 1), tuple(arguments))


BOOLEAN = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a, b: -a}


@pytest.mark.parametrize("name", BOOLEAN)
def test_booleans_are_computed_as_int32(name, run):
    fn, want = getattr(cute.math, name), np.array([[BOOLEAN[name](1, 1)] * 2] * 2, np.int32)

    @cuda.jit
    def kernel(truth, out):
        a = truth[0]
        both = cute.full(2, a, cute.Boolean)
        if cute.const_expr(name == "neg"):
            out[0, 0] = out[1, 0] = fn(a)
            out[0, 1] = out[1, 1] = fn(both)[0]
        else:
            out[0, 0] = out[1, 0] = fn(a, a)
            out[0, 1] = out[1, 1] = fn(both, both)[0]

    truth, out = np.ones(1, np.bool_), np.zeros((2, 2), np.int32)
    run(kernel, 1, 1, [truth, out], outputs=[out], check=lambda: assert_close(out, want))


OPERANDS = {"fma": 3, "clamp": 3, "add": 2, "sub": 2, "mul": 2, "div": 2, "copysign": 2, "max": 2, "min": 2}


def instructions_named():
    """(function, the instructions that its docstring names) of those that are not libdevice's code."""
    for name in cute.math.__all__:
        text = " ".join((getattr(cute.math, name).__doc__ or "").partition(">>>")[0].split())
        if found := re.search(r"PTX ([\w. ]+?)(?: \(.*?\))?, any target", text):
            yield name, re.findall(r"[a-z][\w.]+", found[1].replace(" and ", " "))


@pytest.mark.slow
@pytest.mark.parametrize("name, named", [pytest.param(*found, id=found[0]) for found in instructions_named()])
def test_docstrings_name_the_instructions_that_a_number_takes(name, named):
    function, dtype = getattr(cute.math, name), np.int32 if name in ("absi", "ipowi") else np.float32
    operands = OPERANDS.get(name, 1)
    exponent = (3,) if name.endswith("powi") else ()

    @traced
    def called(x):
        return function(*(x[i] for i in range(operands)), *exponent)

    @cuda.jit
    def kernel(x, out):
        out[0] = called(x)

    x = [from_dlpack(np.zeros(4, dtype)) for _ in range(2)]
    ptx = cute.compile(kernel, x, arch="sm_80").ptx
    assert [n for n in named if not re.search(rf"^\s+{re.escape(n)}\.", ptx, re.MULTILINE)] == []
