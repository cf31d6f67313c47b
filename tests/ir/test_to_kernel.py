# SPDX-License-Identifier: Apache-2.0
"""Kernels written in the IR: each operation of xDSL's dialects in the simulator, and as it is compiled, on this
machine's processor; the results are compared with NumPy."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import numba_cute as cute

pytest.importorskip("xdsl")

from numba_cute import ir
from numba_cute.ir.to_kernel import to_kernel, to_python

from .. import native

TARGET = "sm_80"
NUMPY = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "ui32": np.uint32,
}  # fmt: skip


def kernel_of(source, name=None):
    return to_kernel(ir.parse(source, "test.mlir"), name)


def python_of(source):
    return to_python(ir.parse(source, "test.mlir"))


THREAD = '%t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index'


def both(kernel, threads, outputs, *inputs):
    """Run in the simulator and compiled on this processor; gives the outputs of each."""
    out = []
    for run in ("simulator", "compiled"):
        held = [o.copy() for o in outputs]
        if run == "simulator":
            cute.simulate(kernel)[1, threads](*inputs, *held)
        else:
            native.Native(kernel, (*inputs, *held)).run(threads, *inputs, *held)
        out.append((run, held))
    return out


def operations(inputs, results, lines):
    """A kernel of one operation a line: %a, %b, … are the inputs of types `inputs`, and %r0, %r1, … go to one array of
    `results`' types each."""
    names = [*"abc"][: len(inputs)]
    params = [f"%{n}s: memref<?x{t}>" for n, t in zip(names, inputs)]
    params += [f"%o{i}: memref<?x{t}>" for i, t in enumerate(results)]
    body = [THREAD]
    body += [f"%{n} = memref.load %{n}s[%t] : memref<?x{t}>" for n, t in zip(names, inputs)]
    body += lines
    body += [f"memref.store %r{i}, %o{i}[%t] : memref<?x{t}>" for i, t in enumerate(results)]
    text = "\n  ".join(body)
    return f"func.func @operations({', '.join(params)}) attributes {{cute.kernel}} {{\n  {text}\n  func.return\n}}\n"


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


# Control flow

LOOPS = f"""
func.func @loops(%n: i32, %o: memref<?xi32>) attributes {{cute.kernel}} {{
  {THREAD}
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %start = arith.index_cast %t : index to i32
  %a, %b = scf.for %i = %start to %n step %c3 iter_args(%x = %c0, %y = %c1) -> (i32, i32) : i32 {{
    %sum = arith.addi %x, %i : i32
    %more = scf.for %j = %c0 to %i step %c1 iter_args(%z = %sum) -> (i32) : i32 {{
      %next = arith.addi %z, %j : i32
      scf.yield %next : i32
    }}
    scf.yield %y, %more : i32, i32
  }}
  %collatz, %steps = scf.while (%v = %n, %count = %a) : (i32, i32) -> (i32, i32) {{
    %go = arith.cmpi sgt, %v, %c1 : i32
    %twice = arith.muli %count, %c3 : i32
    scf.condition(%go) %v, %twice : i32, i32
  }} do {{
  ^bb0(%v: i32, %w: i32):
    %odd = arith.andi %v, %c1 : i32
    %is_odd = arith.cmpi eq, %odd, %c1 : i32
    %after = scf.if %is_odd -> (i32) {{
      %up = arith.muli %v, %c3 : i32
      %up1 = arith.addi %up, %c1 : i32
      scf.yield %up1 : i32
    }} else {{
      %down = arith.shrsi %v, %c1 : i32
      scf.yield %down : i32
    }}
    scf.yield %after, %w : i32, i32
  }}
  %all = arith.addi %steps, %b : i32
  %with = arith.xori %all, %collatz : i32
  memref.store %with, %o[%t] : memref<?xi32>
  func.return
}}
"""


def loops(n, start):
    x, y = 0, 1
    for i in range(start, n, 3):
        x, y = y, x + i + sum(range(i))
    a, b = x, y
    v, count = n, a
    while True:
        count *= 3
        if not v > 1:
            break
        v = v * 3 + 1 if v & 1 else v >> 1
    return np.int64((count + b) ^ v).astype(np.int32)


def test_loops_and_branches():
    kernel = kernel_of(LOOPS)
    for run, (got,) in both(kernel, 8, [np.zeros(8, np.int32)], np.int32(11)):
        np.testing.assert_array_equal(got, [loops(11, t) for t in range(8)], err_msg=run)
    cute.compile(kernel, (np.int32(11), np.zeros(8, np.int32)), arch=TARGET)


def test_python_of_loops():
    lines = [line.strip() for line in python_of(LOOPS).splitlines()]
    assert "for i in range(start, n, Int32(3)):" in lines
    assert "for j in range(i):" in lines
    assert "while True:" in lines and "if not go:" in lines


NARROW = f"""
func.func @narrow(%o: memref<?xi64>) attributes {{cute.kernel}} {{
  {THREAD}
  %c0 = arith.constant 0 : i8
  %c1 = arith.constant 1 : i8
  %c100 = arith.constant 100 : i8
  %r = scf.for %i = %c0 to %c100 step %c1 iter_args(%s = %c0) -> (i8) : i8 {{
    %n = arith.addi %s, %i : i8
    scf.yield %n : i8
  }}
  %z = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = arith.constant 5 : index
  %k = scf.for %i = %z to %m step %one iter_args(%s = %t) -> (index) {{
    %n = arith.muli %s, %i : index
    %n1 = arith.addi %n, %t : index
    scf.yield %n1 : index
  }}
  %w = arith.extsi %r : i8 to i64
  %x = arith.index_cast %k : index to i64
  %y = arith.addi %w, %x : i64
  memref.store %y, %o[%t] : memref<?xi64>
  func.return
}}
"""


def test_counters_of_other_widths():
    want = []
    for t in range(4):
        s = t
        for i in range(5):
            s = s * i + t
        want.append(int(np.int64(sum(range(100))).astype(np.int8)) + s)
    for run, (got,) in both(kernel_of(NARROW), 4, [np.zeros(4, np.int64)]):
        np.testing.assert_array_equal(got, want, err_msg=run)


SWITCH = f"""
func.func @switch(%o: memref<?xi32>) attributes {{cute.kernel}} {{
  {THREAD}
  %c2 = arith.constant 2 : i32
  %one = arith.constant 1 : index
  %r = scf.index_switch %t -> i32
  case 1 {{
    %x = arith.constant 10 : i32
    scf.yield %x : i32
  }}
  case 3 {{
    %x = arith.muli %c2, %c2 : i32
    scf.yield %x : i32
  }}
  default {{
    scf.yield %c2 : i32
  }}
  %e = scf.execute_region -> (i32) {{
    %y = arith.addi %r, %c2 : i32
    scf.yield %y : i32
  }}
  %even = arith.andi %t, %one : index
  %is_odd = arith.cmpi eq, %even, %one : index

  scf.if %is_odd {{
    memref.store %e, %o[%t] : memref<?xi32>
  }}
  func.return
}}
"""


def test_switch_region_and_branch_without_results():
    for run, (got,) in both(kernel_of(SWITCH), 4, [np.zeros(4, np.int32)]):
        np.testing.assert_array_equal(got, [0, 12, 0, 6], err_msg=run)


def index_op(name, dim=None):
    return f'"gpu.{name}"() {f"<{{dimension = #gpu<dim {dim}>}}> " if dim else ""}: () -> index'


def test_threads():
    names = [
        ("thread_id", "x"), ("thread_id", "y"), ("thread_id", "z"), ("block_id", "x"), ("block_dim", "x"),
        ("block_dim", "y"), ("grid_dim", "x"), ("global_id", "x"), ("lane_id", None), ("subgroup_id", None),
        ("subgroup_size", None), ("num_subgroups", None),
    ]  # fmt: skip
    body = [f"%v{i} = {index_op(*n)}" for i, n in enumerate(names)]
    body += ["%m = arith.muli %v1, %v4 : index", "%l = arith.addi %m, %v0 : index"]
    body += ["%k = arith.muli %v4, %v5 : index", "%b = arith.muli %v3, %k : index", "%g = arith.addi %l, %b : index"]
    body += [f"memref.store %v{i}, %o{i}[%g] : memref<?xindex>" for i in range(len(names))]
    body += ['"gpu.barrier"() : () -> ()']
    params = ", ".join(f"%o{i}: memref<?xindex>" for i in range(len(names)))
    text = "\n  ".join(body)
    kernel = kernel_of(f"func.func @threads({params}) attributes {{cute.kernel}} {{\n  {text}\n  func.return\n}}\n")
    outputs = [np.zeros(96, np.int64) for _ in names]
    cute.simulate(kernel)[2, (16, 3)](*outputs)
    i = np.arange(96)
    x, y, block = i % 16, i % 48 // 16, i // 48
    linear = i % 48
    full = np.ones(96, int)
    wanted = [x, y, 0 * i, block, 16 * full, 3 * full, 2 * full, block * 16 + x, linear % 32, linear // 32,
              32 * full, 2 * full]  # fmt: skip
    for name, got, want in zip(names, outputs, wanted):
        np.testing.assert_array_equal(got, want, err_msg=str(name))
    ptx = cute.compile(kernel, tuple(outputs), arch=TARGET).ptx
    assert "bar.sync" in ptx


FUNCTIONS = f"""
builtin.module {{
  func.func private @twice(%x: i32) -> i32 {{
    %y = arith.addi %x, %x : i32
    func.return %y : i32
  }}
  func.func private @both(%x: i32, %y: i32) -> (i32, i32) {{
    %z = func.call @twice(%x) : (i32) -> i32
    %d = arith.subi %z, %y : i32
    func.return %z, %d : i32, i32
  }}
  func.func private @put(%o: memref<?xi32>, %i: index, %x: i32) {{
    memref.store %x, %o[%i] : memref<?xi32>
    func.return
  }}
  func.func @kernel(%o: memref<?xi32>)
      attributes {{cute.kernel, cute.launch_bounds = [128, 2], cute.max_registers = 40}} {{
    {THREAD}
    %x = arith.index_cast %t : index to i32
    %c = arith.constant 3 : i32
    %a, %b = func.call @both(%x, %c) : (i32, i32) -> (i32, i32)
    %s = arith.muli %a, %b : i32
    func.call @put(%o, %t, %s) : (memref<?xi32>, index, i32) -> ()
    func.return
  }}
}}
"""


def test_device_functions():
    kernel = kernel_of(FUNCTIONS)
    for run, (got,) in both(kernel, 8, [np.zeros(8, np.int32)]):
        np.testing.assert_array_equal(got, [2 * t * (2 * t - 3) for t in range(8)], err_msg=run)


def test_options():
    kernel = kernel_of(FUNCTIONS)
    assert kernel.targetoptions["launch_bounds"] == (128, 2)
    assert kernel.targetoptions["max_registers"] == 40
    compiled = cute.compile(kernel, (np.zeros(8, np.int32),), arch=TARGET)
    assert ".maxntid 128" in compiled.ptx and ".minnctapersm 2" in compiled.ptx
    assert compiled.resources.registers <= 40


def test_cluster_shape():
    source = FUNCTIONS.replace("cute.max_registers = 40", "cute.cluster = [2, 1, 1]")
    compiled = cute.compile(kernel_of(source), (np.zeros(8, np.int32),), arch="sm_90a")
    assert ".reqnctapercluster 2, 1, 1" in compiled.ptx


# Errors


def test_errors_have_the_line_of_the_text():
    source = f"func.func @k(%x: memref<?xi32>) {{\n  {THREAD}\n  %v = memref.load %x[%t] : memref<?xi32>\n"
    source += "  memref.store %v, %x[%t] : memref<?xi32>\n  func.return\n}\n"
    kernel = kernel_of(source)
    with pytest.raises(cute.sim.SimError, match=r"test\.mlir:3.*`%v = memref\.load"):
        cute.simulate(kernel)[1, 32](np.zeros(8, np.int32))


def test_lines_of_the_text_in_line_information():
    source = LOOPS.replace("{cute.kernel}", "{cute.kernel, cute.lineinfo = true}")
    ptx = cute.compile(kernel_of(source), (np.int32(11), np.zeros(8, np.int32)), arch=TARGET).ptx
    line = 1 + source.splitlines().index("      %next = arith.addi %z, %j : i32")
    assert 'test.mlir"' in ptx
    assert f".loc\t1 {line} " in ptx


def test_debugging():
    source = LOOPS.replace("{cute.kernel}", "{cute.kernel, cute.debug = true, cute.opt = false}")
    ptx = cute.compile(kernel_of(source), (np.int32(11), np.zeros(8, np.int32)), arch=TARGET).ptx
    assert ".target sm_80, debug" in ptx


def test_options_round_trip():
    from numba import cuda

    from numba_cute.ir.options import KERNEL, attributes_of, options_of

    given = {
        "launch_bounds": (128, 2), "max_registers": 40, "lineinfo": True, "opt": False, "fastmath": True,
        "link": ("a.cu",),
    }  # fmt: skip
    kernel = cuda.jit(**given)(lambda: None)
    attributes = attributes_of(kernel.targetoptions, (2, 1, 1))
    assert options_of(attributes, KERNEL) == {**given, "cluster": (2, 1, 1)}
    assert attributes_of(cuda.jit(lambda: None).targetoptions) == {}
    with pytest.raises(cute.CuteError, match="an option of a kernel in the IR is a bool"):
        attributes_of({"link": (object(),)})


CONSTANT = f"""
func.func @scale(%o: memref<?xi32>, %n: !cute.int<3>, %m: i32) attributes {{cute.kernel}} {{
  {THREAD}
  %c = cute.cast %n : !cute.int<3> -> i32
  %x = arith.muli %c, %m : i32
  memref.store %x, %o[%t] : memref<?xi32>
  func.return
}}
"""


def test_numbers_that_are_given():
    kernel = kernel_of(CONSTANT)
    out = np.zeros(4, np.int32)
    cute.simulate(kernel)[1, 4](out, 3, 1 << 33 | 5)  # the second is an i32
    np.testing.assert_array_equal(out, 15)
    assert ".param .u32" not in cute.compile(kernel, (out, 3, 5), arch=TARGET).ptx
    for run in (cute.simulate(kernel)[1, 4], lambda *args: cute.compile(kernel, args, arch=TARGET)):
        with pytest.raises(cute.CuteError, match="the IR says that n is 3"):
            run(out, 4, 5)


def test_gpu_modules():
    source = f"""
"gpu.module"() <{{sym_name = "m"}}> ({{
  "gpu.func"() <{{function_type = (memref<?xindex>) -> (), kernel}}> ({{
  ^bb0(%o: memref<?xindex>):
    {THREAD}
    memref.store %t, %o[%t] : memref<?xindex>
    "gpu.return"() : () -> ()
  }}) {{sym_name = "k"}} : () -> ()
}}) : () -> ()
"""
    for run, (got,) in both(kernel_of(source), 4, [np.zeros(4, np.int64)]):
        np.testing.assert_array_equal(got, range(4), err_msg=run)


NAMES = f"""
func.func private @range(%x: i32) -> i32 {{
  %lambda = arith.addi %x, %x : i32
  func.return %lambda : i32
}}
func.func @Int32(%out: memref<?xi32>) attributes {{cute.kernel}} {{
  {THREAD}
  %Int32 = arith.index_cast %t : index to i32
  %0 = func.call @range(%Int32) : (i32) -> i32
  %Int64 = arith.addi %0, %0 : i32
  %cuda = arith.constant 1 : i32
  %lo = arith.constant 0 : i32
  %hi = arith.constant 2 : i32
  %min = scf.for %cuda_1 = %lo to %hi step %cuda iter_args(%Int32_1 = %Int64) -> (i32) : i32 {{
    %in = arith.addi %Int32_1, %cuda_1 : i32
    scf.yield %in : i32
  }}
  memref.store %min, %out[%t] : memref<?xi32>
  func.return
}}
"""


def test_names_that_python_or_the_kernel_has():
    for run, (got,) in both(kernel_of(NAMES), 4, [np.zeros(4, np.int32)]):
        np.testing.assert_array_equal(got, [4 * t + 1 for t in range(4)], err_msg=run)


ASSERTS = f"""
func.func @k(%o: memref<?xindex>) attributes {{cute.kernel}} {{
  {THREAD}
  %two = arith.constant 2 : index
  %ok = arith.cmpi slt, %t, %two : index
  cf.assert %ok, "two threads at most"
  memref.store %t, %o[%t] : memref<?xindex>
  func.return
}}
"""


def test_asserts():
    kernel = kernel_of(ASSERTS)
    cute.simulate(kernel)[1, 2](np.zeros(8, np.int64))
    with pytest.raises(cute.CuteError, match=r"two threads at most[\s\S]*test\.mlir:6"):
        cute.simulate(kernel)[1, 3](np.zeros(8, np.int64))


REFUSED = {
    "vectors": ("%v = arith.constant dense<1> : vector<4xi32>", "vector<4xi32> is no type of numbers"),
    "width": ("%v = arith.constant 1 : i7", "i7 is no type of numbers"),
    "bools": ("%b = arith.constant true\n  %v = arith.divsi %b, %b : i1", "there is none of i1"),
    "function": ("func.call @nothing() : () -> ()", "no function @nothing"),
    "blocks": ("cf.br ^next\n^next:", "its body has 2 blocks"),
    "operation": ("%v = memref.alloca() : memref<4xi32>", "no operation that a kernel"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_refused(case):
    line, message = REFUSED[case]
    extra = "func.func private @nothing()\n" if case == "function" else ""
    source = f"{extra}func.func @k() attributes {{cute.kernel}} {{\n  {line}\n  func.return\n}}\n"
    with pytest.raises(cute.CuteError, match=message) as e:
        kernel_of(source)
    assert "test.mlir:" in str(e.value)


def test_which_kernel():
    two = "func.func @a() attributes {cute.kernel} {\n  func.return\n}\nfunc.func @b() attributes {cute.kernel} {\n"
    two += "  func.return\n}\n"
    assert kernel_of(two, "b").py_func.__name__ == "b"
    with pytest.raises(cute.CuteError, match="its kernels: @a, @b"):
        kernel_of(two)
    with pytest.raises(cute.CuteError, match="no kernel @c"):
        kernel_of(two, "c")
    with pytest.raises(cute.CuteError, match="its kernels: none"):
        kernel_of("func.func private @a() {\n  func.return\n}\n")


WHILE = f"""
func.func @halve(%n: i32, %o: memref<?xi32>) attributes {{cute.kernel}} {{
  {THREAD}
  %c1 = arith.constant 1 : i32
  %lo = arith.constant 0 : i32
  %r, %steps = scf.while (%v = %n, %k = %lo) : (i32, i32) -> (i32, i32) {{
    %half = arith.shrsi %v, %c1 : i32
    %more = arith.cmpi sgt, %half, %k : i32
    scf.condition(%more) %v, %k : i32, i32
  }} do {{
  ^bb0(%v: i32, %k: i32):
    %next = arith.shrsi %v, %c1 : i32
    %count = arith.addi %k, %c1 : i32
    scf.yield %next, %count : i32, i32
  }}
  %sum = arith.addi %r, %steps : i32
  memref.store %sum, %o[%t] : memref<?xi32>
  func.return
}}
"""


def test_a_test_that_is_one_expression():
    assert "    while (Int32(v >> 1)) > k:" in python_of(WHILE).splitlines()
    v, k = 1000, 0
    while v >> 1 > k:
        v, k = v >> 1, k + 1
    for run, (got,) in both(kernel_of(WHILE), 2, [np.zeros(2, np.int32)], np.int32(1000)):
        np.testing.assert_array_equal(got, v + k, err_msg=run)


POISON = f"""
func.func @k(%n: i32, %o: memref<?xi32>) attributes {{cute.kernel}} {{
  {THREAD}
  %none = ub.poison : i32
  %lo = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %last = scf.for %i = %lo to %n step %one iter_args(%x = %none) -> (i32) : i32 {{
    scf.yield %i : i32
  }}
  memref.store %last, %o[%t] : memref<?xi32>
  func.return
}}
"""


def test_a_value_that_nothing_depends_on():
    for run, (got,) in both(kernel_of(POISON), 1, [np.zeros(1, np.int32)], np.int32(5)):
        np.testing.assert_array_equal(got, 4, err_msg=run)
