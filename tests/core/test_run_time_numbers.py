# SPDX-License-Identifier: Apache-2.0
"""Run-time numbers round, shift and compare as Python's, in library code too; and what cannot is refused."""

import math

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim import simulate

from ..compiler import three_ways
from ..native import Native

DIVIDENDS = (-200, -129, -64, -63, -1, 0, 1, 63, 64, 65, 1000)


def results(kernel, *args, size=8, engine="both"):
    """What a kernel writes, in both engines."""
    found = []
    for simulated in (True, False):
        if engine == ("compiled" if simulated else "simulated"):
            continue
        out = np.full(size, -77.0)
        if simulated:
            simulate(kernel)[1, 1](out, *args)
        else:
            Native(kernel, (out, *args)).run(1, out, *args)
        found.append(out.tolist())
    return found


@cuda.jit
def divisions(out, n, m):
    x = cute.Int32(n)
    out[0] = cute.ceil_div(x, 64)
    out[1] = cute.round_up(x, 64)
    out[2] = cute.shape_div(x, 64)
    out[3] = cute.ceil_div(x, 7)
    out[4] = cute.round_up(x, m)
    out[5] = cute.shape_div(x, m)
    out[6] = helper(x)
    out[7] = cute.ceil_div(cute.Int32(n - 200), 64)


def helper(x):
    return (x // 16) * 1000 + x % 16 + (x >> 2)


def test_division_of_negative_run_time_numbers_rounds_as_pythons():
    for n in DIVIDENDS:

        def up(b, n=n):
            return -(-n // b)

        want = [up(64), up(64) * 64, up(64), up(7), up(5) * 5, up(5), helper(n), -((200 - n) // 64)]
        assert results(divisions, np.int32(n), np.int32(5)) == [want, want], n


@cuda.jit
def compared(out, n, m):
    x, y = cute.Int32(n), cute.Int32(m)
    out[0] = same_number(x, y)
    out[1] = same_number(x, 3)
    out[2] = x == 3
    out[3] = not_same(x, y)


def same_number(a, b):
    return a == b


def not_same(a, b):
    return a != b


def test_equality_of_run_time_numbers_compares_them():
    assert [r[:4] for r in results(compared, np.int32(3), np.int32(3))] == [[1, 1, 1, 0]] * 2
    assert [r[:4] for r in results(compared, np.int32(3), np.int32(4))] == [[0, 1, 1, 1]] * 2


@cuda.jit
def negative_index(out, n, m):
    out[0] = cute.crd2idx(cute.Int32(n), cute.make_layout((4, 8), stride=(8, 1)))


def test_a_negative_coordinate_in_a_layouts_division_is_refused_by_the_simulator():
    with pytest.raises(cute.CuteError, match=r"(?s)-3 // 4: a coordinate, .*is negative.*in kernel negative_index"):
        results(negative_index, np.int32(-3), np.int32(0), engine="simulated")
    assert results(negative_index, np.int32(9), np.int32(0), engine="simulated")[0][0] == 8 + 2


def test_a_run_time_divisor_of_what_is_rounded_up_is_positive():
    with pytest.raises(cute.CuteError, match="choose a divisor of at least 1"):
        results(divisions, np.int32(3), np.int32(0), engine="simulated")


@cuda.jit
def stepped(out, n, step):
    count = 0
    for _ in range(0, n, step):
        count += 1
    out[0], out[1] = count, cute.const_expr(5)


@cuda.jit
def not_stepped(out, n, step):
    for _ in range(0, n, 0):
        out[0] = cute.const_expr(5)


def test_range_of_step_zero_is_refused_or_has_no_rounds():
    for engine in ("simulated", "compiled"):
        with pytest.raises(cute.CuteError, match="(?s)range: its step is 0.*in kernel not_stepped"):
            results(not_stepped, np.int32(3), np.int32(0), engine=engine)
    with pytest.raises(cute.CuteError, match="range: its step is 0"):
        results(stepped, np.int32(3), np.int32(0), engine="simulated")
    assert results(stepped, np.int32(3), np.int32(0), engine="compiled")[0][:2] == [0, 5]
    for n, step in ((7, 2), (-7, -3), (7, -1)):
        want = [len(range(0, n, step)), 5]
        assert [r[:2] for r in results(stepped, np.int32(n), np.int32(step))] == [want] * 2


@cuda.jit
def texts(out, n):
    out[0], out[1], out[2] = float("-inf"), float("1e5"), float("nan") + cute.const_expr(0)


def test_float_of_a_text():
    for found in results(texts, np.int32(1)):
        assert found[:2] == [-math.inf, 1e5] and math.isnan(found[2])


@pytest.mark.parametrize("engine", ["simulated", "compiled"])
def test_what_neither_engine_has(engine):
    def exponential(out, n):
        out[0] = np.exp(n) + cute.const_expr(0)

    def no_number(out, n):
        out[0] = float("abc") + cute.const_expr(0)

    def of_bool(out, n):
        out[0] = float(n > 2) + cute.const_expr(0)

    for kernel, words in ((exponential, "np.exp: kernels have no such function.*math.exp"),
                          (no_number, "could not convert string to float: 'abc'"),
                          (of_bool, "float.bool.: kernels have no such function")):  # fmt: skip
        with pytest.raises(cute.CuteError, match=f"(?s){words}.*in kernel"):
            results(cuda.jit(kernel), np.int32(3), engine=engine)


@pytest.mark.parametrize("kind", ["Int64", "Uint64"])
def test_integers_that_no_double_holds_compare_with_constants_by_their_values(kind):
    lines = f"""
x = cute.{kind}(2**53 + n - 4)
for i in range(2):
    y = x + i
    o[i] = (1 if y == EDGE else 0) + (2 if y > EDGE else 0) + (4 if y <= 9007199254740992.0 else 0)
    o[2 + i] = (1 if EDGE < y else 0) + (2 if EDGE >= y else 0) + (4 if y < 2.0**63 else 0) + (8 if y != EDGE else 0)
"""
    python, simulated, compiled = three_ways.results("import numba_cute as cute\nEDGE = 2.0**53", lines)
    assert simulated == python and compiled == python


def test_the_extreme_of_an_unsigned_number_and_zero():
    lines = "x = cute.Uint64(n)\no[0] = min(x, 0) + max(0, x) * 100"
    python, simulated, compiled = three_ways.results("import numba_cute as cute", lines)
    assert simulated == python and compiled == python


@cuda.jit
def addresses(out):
    p = cute.arch.alloc_smem(cute.Float32, 8)
    for at in cute.range_constexpr(2):
        out[at] = (p + at).toint().ir_value() - p.toint().to(cute.Int32)


def test_addresses_are_run_time_numbers():
    """However far a pointer was moved."""
    out = np.zeros(2, np.int32)
    simulate(addresses)[1, 1](out)
    assert out.tolist() == [0, 4]
    cute.compile(addresses, (out,), arch="sm_90")
