# SPDX-License-Identifier: Apache-2.0
"""Each operation of `arith` and `math` in the simulator, and as it is compiled, on this machine's processor; the
results are compared with NumPy."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import numba_cute as cute

pytest.importorskip("xdsl")

from .written import NUMPY, TARGET, both, kernel_of, operations


def check(inputs, arrays, cases, **tolerance):
    """cases: (operation with its operands, the type of its result, what is wanted)."""
    results = [t for _, t, _ in cases]
    lines = [f"%r{i} = {line}" for i, (line, _, _) in enumerate(cases)]
    kernel = kernel_of(operations(inputs, results, lines))
    count = len(arrays[0])
    outputs = [np.zeros(count, NUMPY[t]) for t in results]
    for run, got in both(kernel, count, outputs, *arrays):
        for (line, _, want), values in zip(cases, got):
            np.testing.assert_allclose(
                values.astype(np.float64) if values.dtype == np.float16 else values, want, err_msg=f"{run}: {line}",
                **{"rtol": 0, "atol": 0, **tolerance},
            )  # fmt: skip
    cute.compile(kernel, (*arrays, *outputs), arch=TARGET)


def pairs(values):
    return tuple(np.ascontiguousarray(x) for x in np.array([(a, b) for a in values for b in values]).T)


def integers(t):
    dtype = NUMPY[t]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = pairs([low, low + 1, -7, -3, -1, 0, 1, 2, 5, 7, high - 1, high])
    return a.astype(dtype), b.astype(dtype)


def by(f, a, b, dtype):
    """`f` of Python's ints, wrapped to a type."""
    bits = np.iinfo(dtype).bits
    out = [int(f(int(x), int(y))) & ((1 << bits) - 1) for x, y in zip(a, b)]
    return np.array(out, dtype=np.uint64).astype(f"uint{bits}").view(dtype)


def usually(*names, others):
    """Parameters of which all but the first ones are tested when slow tests are."""
    return [*names, *(pytest.param(n, marks=pytest.mark.slow) for n in others)]


INTEGERS = usually("i32", others=("i8", "i16", "i64", "index"))
FLOATS = usually("f32", others=("f64", "f16"))


@pytest.mark.parametrize("t", INTEGERS)
def test_integers(t):
    a, b = integers(t)
    dtype = NUMPY[t]
    bits = np.iinfo(dtype).bits
    mask = (1 << bits) - 1
    safe = (b != 0) & ~((b == -1) & (a == a.min()))  # where division is defined
    a, b = a[safe], b[safe]

    def unsigned(f):
        return lambda x, y: f(x & mask, y & mask)

    def towards_zero(x, y):
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    wanted = {
        "addi": lambda x, y: x + y, "subi": lambda x, y: x - y, "muli": lambda x, y: x * y,
        "divsi": towards_zero, "remsi": lambda x, y: x - towards_zero(x, y) * y,
        "divui": unsigned(lambda x, y: x // y), "remui": unsigned(lambda x, y: x % y),
        "floordivsi": lambda x, y: x // y, "ceildivsi": lambda x, y: -(-x // y),
        "ceildivui": unsigned(lambda x, y: -(-x // y)), "andi": lambda x, y: x & y, "ori": lambda x, y: x | y,
        "xori": lambda x, y: x ^ y, "minsi": min, "maxsi": max, "minui": unsigned(min), "maxui": unsigned(max),
    }  # fmt: skip
    cases = [(f"arith.{op} %a, %b : {t}", t, by(f, a, b, dtype)) for op, f in wanted.items()]
    u = f"uint{bits}"
    compared = {
        "eq": a == b, "ne": a != b, "slt": a < b, "sle": a <= b, "sgt": a > b, "sge": a >= b,
        "ult": a.view(u) < b.view(u), "ule": a.view(u) <= b.view(u), "ugt": a.view(u) > b.view(u),
        "uge": a.view(u) >= b.view(u),
    }  # fmt: skip
    cases += [(f"arith.cmpi {p}, %a, %b : {t}", "i1", want) for p, want in compared.items()]
    check([t, t], (a, b), cases)


@pytest.mark.parametrize("t", INTEGERS)
def test_shifts_and_bits(t):
    dtype = NUMPY[t]
    bits = np.iinfo(dtype).bits
    values = integers(t)[0][::12]
    a = np.repeat(values, 4)
    b = np.tile(np.array([0, 1, bits // 2, bits - 1], dtype), len(values))
    mask = (1 << bits) - 1

    def count(f):
        return by(lambda x, y: f(f"{x & mask:0{bits}b}"), a, b, dtype)

    cases = [
        (f"arith.shli %a, %b : {t}", t, by(lambda x, y: x << y, a, b, dtype)),
        (f"arith.shrsi %a, %b : {t}", t, by(lambda x, y: x >> y, a, b, dtype)),
        (f"arith.shrui %a, %b : {t}", t, by(lambda x, y: (x & mask) >> y, a, b, dtype)),
    ]
    check([t, t], (a, b), cases)
    counts = [
        (f"math.ctlz %a : {t}", t, count(lambda s: len(s) - len(s.lstrip("0")))),
        (f"math.cttz %a : {t}", t, count(lambda s: len(s) - len(s.rstrip("0")))),
        (f"math.ctpop %a : {t}", t, count(lambda s: s.count("1"))),
    ]
    in_simulator_and_assembled([t, t], (a, b), counts)


def in_simulator_and_assembled(inputs, arrays, cases):
    """The same as `check` of operations that only a GPU can run: the compiled kernel is assembled."""
    results = [t for _, t, _ in cases]
    kernel = kernel_of(operations(inputs, results, [f"%r{i} = {line}" for i, (line, _, _) in enumerate(cases)]))
    outputs = [np.zeros(len(arrays[0]), NUMPY[t]) for t in results]
    cute.simulate(kernel)[1, len(arrays[0])](*arrays, *outputs)
    for (line, _, want), got in zip(cases, outputs):
        np.testing.assert_array_equal(got, want, err_msg=line)
    cute.compile(kernel, (*arrays, *outputs), arch=TARGET)


@pytest.mark.parametrize("t", INTEGERS[:-1])
def test_two_results(t):
    a, b = integers(t)
    dtype = NUMPY[t]
    bits = np.iinfo(dtype).bits
    mask = (1 << bits) - 1
    source = operations([t, t], [t, "i1", t, t, t, t], [
        f"%r0, %r1 = arith.addui_extended %a, %b : {t}, i1",
        f"%r2, %r3 = arith.mulsi_extended %a, %b : {t}",
        f"%r4, %r5 = arith.mului_extended %a, %b : {t}",
    ])  # fmt: skip
    kernel = kernel_of(source)
    outputs = [np.zeros(len(a), np.bool_ if i == 1 else dtype) for i in range(6)]
    cute.simulate(kernel)[1, 144](a, b, *outputs)
    wanted = [
        by(lambda x, y: x + y, a, b, dtype),
        np.array([(int(x) & mask) + (int(y) & mask) > mask for x, y in zip(a, b)]),
        by(lambda x, y: x * y, a, b, dtype), by(lambda x, y: (x * y) >> bits, a, b, dtype),
        by(lambda x, y: x * y, a, b, dtype), by(lambda x, y: ((x & mask) * (y & mask)) >> bits, a, b, dtype),
    ]  # fmt: skip
    for got, want in zip(outputs, wanted):
        np.testing.assert_array_equal(got, want)
    cute.compile(kernel, (a, b, *outputs), arch=TARGET)


def test_bools():
    a, b = pairs([False, True])
    cases = [
        ("arith.addi %a, %b : i1", a ^ b), ("arith.subi %a, %b : i1", a ^ b), ("arith.muli %a, %b : i1", a & b),
        ("arith.andi %a, %b : i1", a & b), ("arith.ori %a, %b : i1", a | b), ("arith.xori %a, %b : i1", a ^ b),
        ("arith.minui %a, %b : i1", a & b), ("arith.maxui %a, %b : i1", a | b),
        ("arith.minsi %a, %b : i1", a | b), ("arith.maxsi %a, %b : i1", a & b),
        ("arith.cmpi eq, %a, %b : i1", a == b), ("arith.cmpi ne, %a, %b : i1", a != b),
        ("arith.cmpi ult, %a, %b : i1", a < b), ("arith.cmpi uge, %a, %b : i1", a >= b),
        ("arith.cmpi slt, %a, %b : i1", a > b), ("arith.cmpi sge, %a, %b : i1", a <= b),
        ("arith.cmpi ule, %a, %b : i1", a <= b), ("arith.cmpi ugt, %a, %b : i1", a > b),
        ("arith.cmpi sle, %a, %b : i1", a >= b), ("arith.cmpi sgt, %a, %b : i1", a < b),
        ("arith.select %a, %b, %a : i1", np.where(a, b, a)),
    ]  # fmt: skip
    check(["i1", "i1"], (a, b), [(line, "i1", want) for line, want in cases])


@pytest.mark.parametrize("t", FLOATS)
def test_floats(t):
    dtype = NUMPY[t]
    values = [-np.inf, -2.5, -1.0, -0.0, 0.0, 0.75, 3.0, np.inf, np.nan]
    a, b = (x.astype(dtype) for x in pairs(values))
    nan = np.isnan(a) | np.isnan(b)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = [
            (f"arith.addf %a, %b : {t}", a + b), (f"arith.subf %a, %b : {t}", a - b),
            (f"arith.mulf %a, %b : {t}", a * b), (f"arith.divf %a, %b : {t}", a / b), (f"arith.negf %a : {t}", -a),
            (f"arith.select %c, %a, %b : {t}", np.where(a < b, a, b)),
        ]  # fmt: skip
    compared = {
        "false": a != a + 1 if False else np.zeros(len(a), bool), "true": np.ones(len(a), bool),
        "oeq": a == b, "ogt": a > b, "oge": a >= b, "olt": a < b, "ole": a <= b, "one": (a < b) | (a > b),
        "ord": ~nan, "ueq": (a == b) | nan, "ugt": (a > b) | nan, "uge": (a >= b) | nan, "ult": (a < b) | nan,
        "ule": (a <= b) | nan, "une": (a != b) | nan, "uno": nan,
    }  # fmt: skip
    cases = [(line, t, want) for line, want in cases]
    cases += [(f"arith.cmpf {p}, %a, %b : {t}", "i1", want) for p, want in compared.items()]
    lines = [f"%c = arith.cmpf olt, %a, %b : {t}"] + [f"%r{i} = {line}" for i, (line, _, _) in enumerate(cases)]
    kernel = kernel_of(operations([t, t], [r for _, r, _ in cases], lines))
    outputs = [np.zeros(len(a), NUMPY[r]) for _, r, _ in cases]
    runs = [("simulator", outputs)]
    if t == "f16":  # whose arithmetic only a GPU has
        cute.simulate(kernel)[1, len(a)](a, b, *outputs)
    else:
        runs = both(kernel, len(a), outputs, a, b)
    for run, got in runs:
        for (line, _, want), values in zip(cases, got):
            np.testing.assert_array_equal(values, want, err_msg=f"{run}: {line}")
    cute.compile(kernel, (a, b, *outputs), arch=TARGET)


@pytest.mark.parametrize("t", FLOATS)
def test_extremes(t):
    dtype = NUMPY[t]
    a, b = (x.astype(dtype) for x in pairs([-np.inf, -2.5, 0.0, 0.75, np.inf, np.nan]))
    cases = [
        (f"arith.maximumf %a, %b : {t}", t, np.maximum(a, b)), (f"arith.minimumf %a, %b : {t}", t, np.minimum(a, b)),
        (f"arith.maxnumf %a, %b : {t}", t, np.fmax(a, b)), (f"arith.minnumf %a, %b : {t}", t, np.fmin(a, b)),
    ]  # fmt: skip
    in_simulator_and_assembled([t, t], (a, b), cases)


CASTS = [
    ("i32", "arith.trunci %a : i32 to i8", "i8", lambda a: a.astype(np.int8)),
    ("i32", "arith.trunci %a : i32 to i1", "i1", lambda a: a & 1 == 1),
    ("i32", "arith.extsi %a : i32 to i64", "i64", lambda a: a.astype(np.int64)),
    ("i32", "arith.extui %a : i32 to i64", "i64", lambda a: a.view(np.uint32).astype(np.int64)),
    ("i1", "arith.extsi %a : i1 to i32", "i32", lambda a: -a.astype(np.int32)),
    ("i1", "arith.extui %a : i1 to i32", "i32", lambda a: a.astype(np.int32)),
    ("i32", "arith.index_cast %a : i32 to index", "index", lambda a: a.astype(np.int64)),
    ("index", "arith.index_cast %a : index to i32", "i32", lambda a: a.astype(np.int32)),
    ("i32", "arith.sitofp %a : i32 to f32", "f32", lambda a: a.astype(np.float32)),
    ("i32", "arith.uitofp %a : i32 to f64", "f64", lambda a: a.view(np.uint32).astype(np.float64)),
    ("i1", "arith.sitofp %a : i1 to f32", "f32", lambda a: -a.astype(np.float32)),
    ("i1", "arith.uitofp %a : i1 to f32", "f32", lambda a: a.astype(np.float32)),
    ("f32", "arith.fptosi %a : f32 to i32", "i32", lambda a: a.astype(np.int32)),
    ("f32", "arith.fptoui %a : f32 to i32", "i32", lambda a: a.astype(np.int64).astype(np.uint32).view(np.int32)),
    ("f32", "arith.extf %a : f32 to f64", "f64", lambda a: a.astype(np.float64)),
    ("f64", "arith.truncf %a : f64 to f32", "f32", lambda a: a.astype(np.float32)),
    ("f64", "arith.truncf %a : f64 to f16", "f16", lambda a: a.astype(np.float16)),
    ("f32", "arith.bitcast %a : f32 to i32", "i32", lambda a: a.view(np.int32)),
    ("i32", "arith.bitcast %a : i32 to f32", "f32", lambda a: a.view(np.float32)),
    ("i32", "arith.bitcast %a : i32 to ui32", "ui32", lambda a: a.view(np.uint32)),
    ("f64", "arith.bitcast %a : f64 to i64", "i64", lambda a: a.view(np.int64)),
]  # fmt: skip
VALUES = {
    "i1": [False, True], "i32": [-(1 << 31), -5, 0, 7, 1077936128, (1 << 31) - 1],
    "index": [-(1 << 40) - 3, -1, 0, 9, 1 << 33], "f32": [0.0, 1.5, 2.75, 1000.25], "f64": [-1e30, -0.1, 0.0, 0.3],
}  # fmt: skip


@pytest.mark.parametrize("t", list(VALUES))
def test_casts(t):
    a = np.array(VALUES[t], NUMPY[t])
    with np.errstate(over="ignore"):
        cases = [(line, r, want(a)) for of, line, r, want in CASTS if of == t]
    in_simulator_and_assembled([t], (a,), cases)
    if t != "f32":  # libdevice converts those to integers
        check([t], (a,), [c for c in cases if c[1] != "f16"])


MATH = {
    "absf": np.abs, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "erf": np.vectorize(math.erf), "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "round": lambda x: np.floor(x + 0.5), "roundeven": np.round, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "cbrt": np.cbrt, "acos": lambda x: np.arccos(x / 8), "asin": lambda x: np.arcsin(x / 8), "atan": np.arctan,
    "acosh": lambda x: np.arccosh(x + 1), "asinh": np.arcsinh, "atanh": lambda x: np.arctanh(x / 8),
}  # fmt: skip
ARGUMENT = {"acos": "%e", "asin": "%e", "atanh": "%e", "acosh": "%g"}


@pytest.mark.parametrize("t", FLOATS[:2])
def test_functions(t):
    dtype = NUMPY[t]
    a = np.array([0.25, 0.5, 1.5, 2.5, 7.0], dtype)
    b = np.array([1.0, -2.0, 0.5, 3.0, 0.125], dtype)
    lines = [
        f"%eighth = arith.constant 0.125 : {t}", f"%one = arith.constant 1.0 : {t}",
        f"%e = arith.mulf %a, %eighth : {t}", f"%g = arith.addf %a, %one : {t}",
        "%n = arith.constant 3 : i32",
    ]  # fmt: skip
    cases = [(f"math.{name} {ARGUMENT.get(name, '%a')} : {t}", f(a)) for name, f in MATH.items()]
    cases += [
        (f"math.atan2 %a, %b : {t}", np.arctan2(a, b)), (f"math.copysign %a, %b : {t}", np.copysign(a, b)),
        (f"math.powf %a, %b : {t}", np.power(a, b)), (f"math.fma %a, %b, %a : {t}", a * b + a),
        (f"math.fpowi %a, %n : {t}, i32", a**3), (f"math.exp %a fastmath<fast> : {t}", np.exp(a)),
    ]  # fmt: skip
    lines += [f"%r{i} = {line}" for i, (line, _) in enumerate(cases)]
    kernel = kernel_of(operations([t, t], [t] * len(cases), lines))
    outputs = [np.zeros(len(a), dtype) for _ in cases]
    cute.simulate(kernel)[1, len(a)](a, b, *outputs)
    for (line, want), got in zip(cases, outputs):
        np.testing.assert_allclose(got, want, rtol=1e-5 if t == "f32" else 1e-12, err_msg=line)
    ptx = cute.compile(kernel, (a, b, *outputs), arch=TARGET).ptx
    assert ("ex2.approx" in ptx) or t == "f64"


def test_powers_and_magnitudes_of_integers():
    a, b = (x.astype(np.int32) for x in pairs([-3, -2, -1, 0, 1, 2, 5, 31]))
    a, b = a[(a != 0) | (b >= 0)], b[(a != 0) | (b >= 0)]

    def power(x, y):
        return x**y if y >= 0 else {1: 1, -1: 1 - 2 * (y & 1)}.get(x, 0)

    check(["i32", "i32"], (a, b), [
        ("math.absi %a : i32", "i32", np.abs(a)), ("math.ipowi %a, %b : i32", "i32", by(power, a, b, np.int32)),
    ])  # fmt: skip


def test_constants():
    lines = [
        "%c = arith.constant -7 : i32", "%d = arith.constant 4294967295 : i32", "%e = arith.constant 3 : i8",
        "%f = arith.constant 2.5 : f32", "%g = arith.constant true", "%h = arith.constant -3 : i64",
        "%i = arith.constant 0x7FF0000000000000 : f64", "%p = ub.poison : i32", "%q = arith.muli %p, %d : i32",
        "%r0 = arith.addi %a, %c : i32", "%r1 = arith.addi %a, %d : i32", "%r2 = arith.muli %e, %e : i8",
        "%r3 = arith.mulf %f, %f : f32", "%r4 = arith.xori %g, %g : i1", "%r5 = arith.subi %h, %h : i64",
        "%r6 = arith.negf %i : f64", "%r7 = arith.divsi %c, %d : i32", "%r8 = arith.floordivsi %c, %a : i32",
        "%r9 = arith.select %g, %c, %a : i32",
    ]  # fmt: skip
    a = np.array([2, 3], np.int32)
    types = ["i32", "i32", "i8", "f32", "i1", "i64", "f64", "i32", "i32", "i32"]
    wanted = [a - 7, a - 1, [9, 9], [6.25, 6.25], [False] * 2, [0, 0], [-np.inf] * 2, [7, 7], -7 // a, [-7, -7]]
    kernel = kernel_of(operations(["i32"], types, lines))
    for run, got in both(kernel, 2, [np.zeros(2, NUMPY[t]) for t in types], a):
        for i, (values, want) in enumerate(zip(got, wanted)):
            np.testing.assert_array_equal(values, want, err_msg=f"{run}: %r{i}")
