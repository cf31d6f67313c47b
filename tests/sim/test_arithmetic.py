# SPDX-License-Identifier: Apache-2.0
"""The simulator's arithmetic is Numba's: for every operator and every two types the type of the result, and the value,
to the bit."""

import builtins
import itertools
import math
import operator

import numba
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import dtypes
from numba_cute.sim.python.arithmetic import cases, compute, intrinsics
from numba_cute.sim.python.arithmetic.overloads import CONVERSIONS, TYPES, unified

from .arithmetic_oracle import (
    NUMBA,
    WITH_NUMPY,
    bits,
    compiled,
    context,
    cuda_signature,
    edge_values,
    flat,
    in_simulator,
    on_cpu,
)

BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "pow": lambda a, b: a**b,
    "lshift": lambda a, b: a << b, "rshift": lambda a, b: a >> b, "and_": lambda a, b: a & b,
    "or_": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip
UNARY = {"neg": lambda a: -a, "pos": lambda a: +a, "invert": lambda a: ~a, "not_": lambda a: not a}
Boolean, Int8, Int32, Int64 = dtypes.Boolean, dtypes.Int8, dtypes.Int32, dtypes.Int64
Uint8, Uint32, Uint64, Float32, Float64 = dtypes.Uint8, dtypes.Uint32, dtypes.Uint64, dtypes.Float32, dtypes.Float64

# ------------------------------------------------------------------ types


def described(case):
    """A signature as Numba writes it."""
    if case is None:
        return None
    result = case.result
    if isinstance(result, tuple):
        names = [str(NUMBA[t]) for t in result]
        text = f"UniTuple({names[0]} x {len(names)})" if len(set(names)) == 1 else f"Tuple({', '.join(names)})"
    else:
        text = str(NUMBA[result])
    return text, tuple(str(NUMBA[t]) for t in case.operands)


BY_VALUES = (*cases.COMPARED, "floordiv", "mod", "divmod")
"""What kernels of this library compute by their values of an unsigned integer of 64 bits and a signed one, where Numba
rounds both to float64, or divides their bits."""


def both_signs(op, a, b):
    return op in BY_VALUES and {Uint64} < {a, b} and any(t.is_integer and t.signed for t in (a, b))


@pytest.mark.parametrize("op", cases.BINARY)
def test_types_of_binary_operators_are_those_of_numbas_cuda_target(op):
    for a, b in itertools.product(TYPES, TYPES):
        if op in cases.COMPARED and both_signs(op, a, b):
            types = ("uint64", "int64") if a is dtypes.Uint64 else ("int64", "uint64")
            assert described(cases.binary(op, a, b)) == ("bool", types)
            continue
        if op in cases.COMPARED and {a, b} & {Int64, Uint64} and {a, b} & {Float32, Float64}:
            types = tuple("float64" if t.is_float else str(NUMBA[t]) for t in (a, b))
            assert described(cases.binary(op, a, b)) == ("bool", types)
            continue
        assert described(cases.binary(op, a, b)) == cuda_signature(getattr(operator, op), a, b), (a, b)


@pytest.mark.parametrize("op", cases.UNARY)
def test_types_of_unary_operators_are_those_of_numbas_cuda_target(op):
    for a in TYPES:
        assert described(cases.unary(op, a)) == cuda_signature(getattr(operator, op), a), a


@pytest.mark.parametrize("name", cases.FUNCTIONS)
def test_types_of_functions_are_those_of_numbas_cuda_target(name):
    function = math.pow if name == "math.pow" else getattr(builtins, name, None) or getattr(math, name, None)
    if function is None:
        pytest.skip(f"math.{name} is newer than this Python")
    ranges = {f"range_state_{t}": str(t) for t in (NUMBA[Int32], NUMBA[Int64], NUMBA[Uint64])}
    for count in {len(c.operands) for c in cases.FUNCTIONS[name]}:
        for types in itertools.product(TYPES, repeat=count):
            want = cuda_signature(function, *types)
            want = want and (ranges.get(want[0], want[0]), want[1])
            if name == "divmod" and both_signs(name, *types):
                want = "UniTuple(int64 x 2)", tuple("uint64" if t is Uint64 else "int64" for t in types)
            assert described(cases.function(name, *types)) == want, types


@pytest.mark.parametrize("name", intrinsics.CASES)
def test_types_of_intrinsics_are_those_of_numbas_cuda_target(name):
    for t in WITH_NUMPY:
        count = len(intrinsics.CASES[name][0].operands)
        found = intrinsics.choose(intrinsics.CASES[name], (t,) * count)
        assert described(found) == cuda_signature(getattr(cuda, name), *(t,) * count), t


def test_conversions_and_unified_types_are_numbas():
    for a, b in itertools.product(TYPES, TYPES):
        found = context().can_convert(NUMBA[a], NUMBA[b])
        assert CONVERSIONS.get((a, b)) == (None if found is None else int(found) - 1), (a, b)
        if dtypes.BFloat16 not in (a, b):
            assert NUMBA[unified(a, b)] == context().unify_pairs(NUMBA[a], NUMBA[b]), (a, b)


# ------------------------------------------------------------------ values


def compare_values(op, a, b):
    """All pairs of edge values of two types."""
    found = compute.binary_operation(op, a, b)
    if found is None:
        return
    result, compute_it = found
    oracle = compiled(BINARY[op])
    for x, y in itertools.product(edge_values(a), edge_values(b)):
        if op in ("lshift", "rshift") and not 0 <= y < 64 or op == "pow" and not (a.is_float or -3 < y < 64):
            continue  # what LLVM leaves open, or Numba raises
        if op == "pow" and not b.is_float and (abs(y) > 0x10000 or x == 0 and y < 0):
            continue  # by libm's pow, or raised
        got = compute_it(x, y)
        try:
            want = oracle(a.numpy(x), b.numpy(y))
        except ZeroDivisionError:  # one over a power that is not a number above 0 any more: a GPU has no errors
            assert (op, a.is_float, y < 0, math.isinf(got)) == ("pow", True, True, True), (a, b, x, y)
            continue
        if op in ("floordiv", "mod") and (both_signs(op, a, b) or {a, b} == {dtypes.Boolean, Uint64}):
            want = compute.wrapped(getattr(operator, op)(x, y), result) if y else 0
        if op == "pow" and b.is_float:
            assert got == pytest.approx(want, rel=1e-6, nan_ok=True), (x, y)
        else:
            assert bits(got) == bits(want), (a, b, x, y)


FEW = [(Int8, Int32), (Uint32, Uint32), (Uint64, Int64), (Int64, Uint8), (Boolean, Boolean), (Int32, Float32),
       (Float32, Float32), (Float32, Boolean), (Float64, Int64), (Float32, Float64)]  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
def test_values_of_binary_operators(op):
    for a, b in FEW:
        compare_values(op, a, b)


@pytest.mark.slow
@pytest.mark.parametrize("op", BINARY)
def test_values_of_binary_operators_of_every_two_types(op):
    for a, b in itertools.product(WITH_NUMPY, WITH_NUMPY):
        compare_values(op, a, b)


@pytest.mark.parametrize("op", UNARY)
def test_values_of_unary_operators(op):
    oracle = compiled(UNARY[op])
    for a in WITH_NUMPY:
        found = compute.unary_operation(op, a)
        for x in edge_values(a) if found is not None else ():
            assert bits(found[1](x)) == bits(oracle(a.numpy(x))), (a, x)


def test_integer_powers_are_exact():
    def power(out, x):
        cute.const_expr(True)
        out[0], out[1] = x[0] ** 3, x[0] ** x[1]

    ptx, _ = cuda.compile_ptx(power, (numba.int64[::1], numba.int64[::1]), cc=(9, 0))
    assert "cvt.rn.f64" not in ptx
    out = np.zeros(2, np.int64)
    cute.simulate(cuda.jit(power))[1, 1](out, np.array([300001, 3], np.int64))
    assert out.tolist() == [300001**3] * 2


@pytest.mark.parametrize("half", [dtypes.Float16, dtypes.BFloat16])
def test_halves_are_rounded_once(half):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 200)).astype(half.numpy)
    for name in ("add", "sub", "mul", "truediv"):
        result, f = compute.binary_operation(name, half, half)
        exact = getattr(operator, name)(x.astype(np.float64), y.astype(np.float64))
        assert result is half
        want = dtypes.converted(exact, half).astype(np.float64).tolist()
        assert [f(float(a), float(b)) for a, b in zip(x, y)] == want


CONVERTED = {
    # PTX's cvt.rzi saturates; to 8 bits there is none, so that those of 16 are cut off
    (Float64, Int8): [(300.7, 44), (-1e9, 0), (40000.0, -1), (math.nan, 0), (-1.9, -1)],
    (Float64, Uint8): [(300.7, 44), (-5.0, 0), (1e9, 255), (math.nan, 0)],
    (Float64, Int32): [(1e20, 2**31 - 1), (-1e20, -(2**31)), (math.nan, -(2**31)), (-2.7, -2)],
    (Float32, Int32): [(3e9, 2**31 - 1), (math.nan, 0)],
    (Float64, Int64): [(1e20, 2**63 - 1), (math.nan, -(2**63)), (-math.inf, -(2**63))],
    (Float64, Uint64): [(-1.0, 0), (1e30, 2**64 - 1), (math.nan, 2**63)],
    (Float32, Int64): [(math.nan, -(2**63)), (1e19, 2**63 - 1)],
    (Int64, Int8): [(200, -56), (-129, 127)],
    (Int64, Uint32): [(-1, 2**32 - 1)],
    (Int64, Float32): [((1 << 24) + 1, 16777216.0), ((1 << 62) + (1 << 38) + 1, 4611686568183201792.0)],
    (Float64, Float32): [(0.1, float(np.float32(0.1))), (1e300, math.inf)],
    (Float64, Boolean): [(0.0, False), (math.nan, True)],
    (Boolean, Float32): [(True, 1.0)],
}  # fmt: skip


@pytest.mark.parametrize("types", CONVERTED, ids=lambda t: f"{t[0]} to {t[1]}")
def test_conversions_are_those_of_the_gpu(types):
    for x, want in CONVERTED[types]:
        assert bits(compute.convert(x, *types)) == bits(want)


# ------------------------------------------------------------------ in kernels

LEAST = -(1 << 63)


def accumulated(x, y):
    total = x * 0
    for _ in range(1000):
        total = total + x / y
    return total


def wraps(x, y):
    for _ in range(50):
        x = x * 3 + y
    return x, x // 7, x % 7, x < 0


def wraps_from_a_literal(x, y):
    a = 1
    for i in range(100):
        a = a * 3 + i
    return a * x // y, a, a // 5


def compares(x, y):
    return x < y, x == y, (x, y) < (y, x), (x, 1) == (x, 1), min(x, y), max(x, y), x in (x, x)


def converts(x, y):
    return int(x), bool(x), abs(+y), round(x * 1.0), divmod(x, y), np.int8(x), np.float32(y), -x


def assigns(x, y):
    a = x
    a += y
    a *= 2
    a -= 1
    b = a / y
    b /= 3
    return a, b, not x, +y


FUNCTIONS = [accumulated, wraps, wraps_from_a_literal, compares, converts, assigns]
PAIRS = [(np.int8(100), np.int8(27)), (np.uint32(7), np.uint32(9)), (np.float32(0.1), np.float32(0.3)),
         (np.float32(2.5), np.int32(3)), (3, 4), (2.5, 7), (True, False), (np.uint8(200), np.int16(-5)),
         (np.int32(-7), 2)]  # fmt: skip


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: "-".join(type(x).__name__ for x in p))
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_give_what_numba_gives(function, pair, checks):
    _, want = on_cpu(function, *pair)
    _, got = in_simulator(function, *pair, checks=checks)
    for g, w in zip(flat(got), flat(want), strict=True):
        assert bits(g) == bits(w) or isinstance(g, (bool, int)) and g == w


@pytest.mark.parametrize("op", [op for op in BINARY if op not in ("pow", "lshift", "rshift")])
def test_operators_in_kernels_have_numbas_types(op):
    for a, b in FEW:
        if cases.binary(op, a, b) is not None:
            x, y = a.numpy(1), b.numpy(1)
            assert in_simulator(BINARY[op], x, y)[0] == on_cpu(BINARY[op], x, y)[0], (a, b)


@pytest.mark.parametrize(
    ("function", "args", "want"),
    [
        (lambda x: 1 / x, (0,), math.inf), (lambda x: x / 0, (0.0,), math.nan), (lambda x: 1 // x, (0,), 0),
        (lambda x: 7 % x, (0,), 0), (lambda x: x // 0.0, (-1.0,), -math.inf), (lambda x: x % 0.0, (1.0,), math.nan),
        (lambda x: math.log(x), (0,), -math.inf), (lambda x: math.exp(x), (1000,), math.inf),
        (lambda x: math.sqrt(x), (-1.0,), math.nan), (lambda x: math.log(x), (-1.0,), math.nan),
        (lambda x: int(x), (math.nan,), -(2**63)), (lambda x: int(x), (1e20,), 2**63 - 1),
        (lambda x: x**-1, (2,), 0), (lambda x: x**-1, (2.0,), 0.5), (lambda x: 1 << x, (70,), 0),
        (lambda x: x >> 70, (-5,), -1), (lambda x: 2.0**x, (2000.0,), math.inf), (lambda x: 0.0**x, (-1.0,), math.inf),
        (lambda x: math.pow(x, 0.5), (-8.0,), math.nan), (lambda x: math.fmod(x, 0.0), (1.0,), math.nan),
        (lambda x: math.acos(x), (2.0,), math.nan), (lambda x: x * x, (1e200,), math.inf),
        (lambda x: abs(LEAST) + x, (np.int8(0),), -(2**63)), (lambda x: x - (-LEAST), (np.int8(0),), -(2**63)),
        (lambda x: abs(x), (np.int8(-128),), -128), (lambda x: -x, (np.int8(-128),), -128),
        (lambda x: -x, (np.uint8(1),), 255), (lambda x: ~x, (np.uint8(1),), 254),
        (lambda x: x - 1, (np.uint32(0),), -1),
        (lambda x: x - x - np.uint32(1), (np.uint32(0),), 2**64 - 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("checks", [True, False])
def test_nothing_raises_that_a_gpu_computes(function, args, want, checks):
    _, got = in_simulator(function, *args, checks=checks)
    assert bits(got) == bits(want)


@pytest.mark.parametrize("t", [np.float32, np.float64, np.int32, np.uint8], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "floor", "ceil", "trunc", "log", "fabs", "atan", "isnan"])
def test_functions_of_math_keep_float32_and_make_float64_of_integers_but_those_that_round(name, t):
    function = getattr(math, name)
    (dtype,), got = in_simulator(lambda x: function(x), t(3))
    want = cuda_signature(function, dtypes.from_numpy(t))[0]
    if name in ("floor", "ceil", "trunc") and issubclass(t, np.integer):
        want = "uint64" if t is np.uint8 else "int64"
    assert str(NUMBA[dtype]) == want
    assert float(got) == pytest.approx(float(function(3.0)), rel=1e-6)


@pytest.mark.parametrize("name", ["sin", "tanh", "isnan", "log", "radians", "logical_not"])
@pytest.mark.parametrize(
    "t", [np.float32, np.float64, np.int16, np.int32, np.uint8, np.int64], ids=lambda t: t.__name__
)
def test_functions_of_numpy_have_numbas_types(name, t):
    (dtype,), got = in_simulator(lambda x: getattr(np, name)(x), t(3))
    assert str(NUMBA[dtype]) == cuda_signature(getattr(np, name), dtypes.from_numpy(t))[0]
    assert float(got) == pytest.approx(float(getattr(np, name)(t(3))), rel=1e-3)


@pytest.mark.parametrize("name", ["maximum", "fmin", "true_divide", "arctan2", "hypot", "greater"])
@pytest.mark.parametrize(
    "types",
    [(np.float32, np.float32), (np.float32, np.int64), (np.int32, np.int32), (np.int8, np.uint8),
     (np.uint64, np.int64)],
    ids=lambda p: "-".join(t.__name__ for t in p),
)  # fmt: skip
def test_functions_of_numpy_of_two_numbers_have_numbas_types(name, types):
    (dtype,), _ = in_simulator(lambda x, y: getattr(np, name)(x, y), types[0](3), types[1](2))
    assert str(NUMBA[dtype]) == cuda_signature(getattr(np, name), *map(dtypes.from_numpy, types))[0]


@pytest.mark.parametrize("name", ["sqrt", "exp", "floor", "add", "multiply"])
def test_functions_of_numpy_that_kernels_lack_are_refused(name):
    args = (2.0,) * getattr(np, name).nin
    with pytest.raises(cute.CuteError, match=f"np.{name}: kernels have no such function of numbers"):
        in_simulator(lambda *x: getattr(np, name)(*x), *args)


@pytest.mark.parametrize("t", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64])
def test_indices_of_a_range_have_its_type(t):
    def indices(n):
        for i in range(n):
            last = i
        return last

    (dtype,), got = in_simulator(indices, t(5))
    assert got == 4 and dtype is {np.int64: Int64}.get(t, Uint64 if t().dtype.kind == "u" else Int32)
