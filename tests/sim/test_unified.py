# SPDX-License-Identifier: Apache-2.0
"""A variable has one type, as in Numba, which unifies those of the ways that meet: in loops, branches, conditional
expressions and returns."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim import launch, simulate
from tests.native import Native

from .arithmetic_oracle import bits, flat, in_simulator, on_cpu

F32 = np.float32


def loop_widens(x, y):
    for _ in range(3):
        before = x * x
        x = x + y
    return x, before


def loop_sums_from_a_literal(x, y):
    total = 0
    for i in range(5):
        total += x / (i + 1)
    return total, total // 1


def while_loop_widens(x, y):
    n = 0
    while n < 3:
        n += 1
        if n == 2:
            x = x * 0.5
        y = x * x
    return x, y


def loops_within_loops(x, y):
    a = x
    for i in range(2):
        for j in range(2):
            b = a * a
            if j == i:
                a = a + y
    return a, b


def branch(x, y):
    if x > 1:
        z = x
    else:
        z = y
    return z * z, z / 3


def calls_with_a_choice_among_their_arguments(x, y):
    z = np.float64((x if x > 1 else y) // 1)
    w = max(y, (1 if z > 2 else 2)) if y > 0 else x
    return z * w, w * w


def three_branches(x, y):
    z = 7
    if x > 100:
        z = y
    elif x > 2:
        z = x
    return z, z * z


def conditional(x, y):
    z = x if x > 1 else y
    return z * z, (y if x > 1 else 3) / 7


def conditional_operands(x, y):
    return (x if y > 2 else 1.5) * x, (x or y) * x, (x and y) * y


def early_return(x, y):
    if x > 2:
        return x
    return y


def early_returns_of_pairs(x, y):
    if x > 2:
        return x, y
    if y > 5:
        return y, x
    return 1, 2.5


def pairs(x, y):
    p = (x, 1)
    for _ in range(2):
        a, b = p
        c = a * a, b * b
        p = (p[1], y)
    return p, c


def swaps(x, y):
    for _ in range(3):
        x, y = y, x
    return x * x, y * y


def breaks(x, y):
    z = x
    for i in range(5):
        if i == 3:
            break
        z = z * y
        if i == 1:
            continue
        z = z - 1
    else:
        z = 2.5
    return z


def closure(x, y):
    def chosen(a):
        if a > 2:
            return x
        return y

    z = chosen(x)
    return z * z, chosen(1) * 3


def narrow_then_wide(x, y):
    z = np.int8(3)
    for _ in range(4):
        z = z * z
    w = np.uint32(7)
    if x > 2:
        w = x
    return z, w * w


def unsigned_and_signed(x, y):
    u = np.uint64(1)
    for _ in range(3):
        v = u * u
        u = u + 1
    return u, v


def truth(x, y):
    z = True
    if x > 2:
        z = y
    b = x > 1
    for _ in range(2):
        b = b + 1
    return z, -z, b


def set_anew(x, y):
    """Each assignment is another variable where none meet."""
    z = x
    a = z * z
    z = y
    b = z * z
    z = 2.5
    return a, b, z


FUNCTIONS = [
    calls_with_a_choice_among_their_arguments, loop_widens, loop_sums_from_a_literal, while_loop_widens,
    loops_within_loops, branch, three_branches, conditional, conditional_operands, early_return,
    early_returns_of_pairs, pairs, swaps, breaks, closure, narrow_then_wide, unsigned_and_signed, truth,
    set_anew,
]  # fmt: skip
PAIRS = [(np.int32(7), F32(0.1)), (np.uint32(4000000001), np.int8(-3)), (F32(1.1), 0.3), (np.uint64(2**63 + 1), 3),
         (3, 4.5), (np.int16(300), np.uint16(9)), (np.uint32(70000), np.int32(-5)), (np.uint64(5), np.uint32(2)),
         (F32(16777217), np.int64(2**53 + 1)), (np.int64(2**53 + 1), F32(3))]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: "-".join(type(x).__name__ for x in p))
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_variables_have_the_type_that_numba_gives_them(function, pair):
    _, want = on_cpu(function, *pair)
    _, got = in_simulator(function, *pair, judged=True)
    for g, w in zip(flat(got), flat(want), strict=True):
        assert bits(g) == bits(w)


# ------------------------------------------------------------------ kernels, as compiled for this processor


@cuda.jit(device=True)
def either(a, b):
    if a > 2:
        return a
    return b


@cuda.jit(device=True)
def scaled(a, by=0.1, times=2):
    for _ in range(times):
        a = a * by
    return a


@cuda.jit
def elements(out, f, i):
    t = cuda.threadIdx.x
    total, most = 0, i[t]
    for k in range(4):
        total += f[(t + k) % 32] / 3
        if total > 1:
            most = f[t]
    out[t, 0] = total * total
    out[t, 1] = most / 3
    out[t, 2] = most * most


@cuda.jit
def device_functions(out, f, i):
    t = cuda.threadIdx.x
    x = either(f[t], i[t])
    out[t, 0] = x * x
    out[t, 1] = either(i[t], f[t]) / 3
    out[t, 2] = scaled(f[t]) + scaled(i[t], f[t], times=1)


@cuda.jit
def lanes_that_part(out, f, i):
    t = cuda.threadIdx.x
    x = f[t]
    if t % 3 == 0:
        x = i[t]
    elif t > 20:
        x = 0.1
    out[t, 0] = x * x
    while 0 < x < 100:
        x = x + abs(i[t]) + 1
        if t > 5:
            break
    out[t, 1] = x * x
    out[t, 2] = i[t] if t & 1 else f[t]


@cuda.jit
def unrolled(out, f, i):
    """Every iteration of an unrolled loop has types of its own."""
    t = cuda.threadIdx.x
    x = f[t]
    for k in cute.range_constexpr(3):
        y = x * x
        out[t, k] = y
        x = y + 1.5 if k == 1 else y


@cuda.jit
def static_branches(out, f, i):
    """A branch that is left out when compiled has no part in the type."""
    t = cuda.threadIdx.x
    if cute.const_expr(DEPTH == 8):
        x = f[t]
    else:
        x = 0.5
    out[t, 0] = x * x
    y = f[t]
    for k in cute.range_constexpr(2):
        if cute.const_expr(k == 5):
            y = 1.5
    out[t, 1] = y * y
    out[t, 2] = y / 3


@cuda.jit
def library(out, f, i):
    t = cuda.threadIdx.x
    tensor = cute.make_tensor(f, cute.make_layout((8, 4)))
    x = cute.Int32(7)
    for k in range(3):
        x = tensor[t % 8, k] + x
    out[t, 0] = x * x
    regs = cute.make_rmem_tensor(2, cute.Float32)
    regs[0] = f[t]
    regs[1] = 0.1
    y = regs[0] if t > 3 else 2
    out[t, 1] = y * y
    counter = Counter(3, 0.3)
    out[t, 2] = counter.bumped(t) * counter.total()


@cute.struct
class Counter:
    n: cute.Int32
    x: cute.Float32

    def bumped(self, by):
        if by > 5:
            return self.x * self.x
        return self.n

    def total(self):
        total = self.n
        for _ in range(2):
            total = total + self.x * self.x
        return total


DEPTH = 8
KERNELS = [elements, device_functions, lanes_that_part, unrolled, static_branches, library]


@pytest.mark.parametrize("way", ["checks", "one by one", "together"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.py_func.__name__)
def test_kernels_compute_in_the_types_that_the_compiler_gives_variables(monkeypatch, kernel, way):
    rng = np.random.default_rng(0)
    f, i = rng.standard_normal(32).astype(F32), rng.integers(-5, 9, 32).astype(np.int32)
    want, got = np.full((32, 3), -1.0), np.full((32, 3), -1.0)
    Native(kernel, (want, f, i)).run(32, want, f, i)
    if way == "one by one":
        monkeypatch.setattr(launch, "why_alone", lambda *_: "a test")
    else:
        monkeypatch.setattr(launch, "uses_library", lambda _: True)
    done = simulate(kernel, checks=way != "together").once((1, 1, 1), (32, 1, 1), 0, [(got, f, i)], None)
    assert done.shared is (way != "one by one")
    np.testing.assert_array_equal(got, want)


@cuda.jit
def exchanged(out, i):
    """What meets other threads, or lies in shared memory, has a type too."""
    t = cuda.threadIdx.x
    shared, local = cuda.shared.array(32, np.int64), cuda.local.array((2, 2), np.int64)
    shared[t], local[1, 0] = i[t], i[t]
    cuda.syncthreads()
    x, y, z, old = cuda.shfl_sync(-1, i[t], 0), shared[t], local[1, 0], cuda.atomic.add(i, 32, 0)
    if t > 32:
        x = y = z = old = 0.5
    out[0, t], out[1, t], out[2, t], out[3, t] = x * x, y * y, z * z, old * old
    votes = cuda.ballot_sync(-1, t < 31)
    if t > 32:
        votes = 0.5
    out[4, t] = votes * (1 << 33)


@pytest.mark.parametrize("way", ["checks", "one by one", "together"])
def test_what_threads_exchange_has_a_type(monkeypatch, way):
    if way == "one by one":
        monkeypatch.setattr(launch, "why_alone", lambda *_: "a test")
    else:
        monkeypatch.setattr(launch, "uses_library", lambda _: True)
    out, given = np.zeros((5, 32)), np.full(33, 1 << 40)
    done = simulate(exchanged, checks=way != "together").once((1, 1, 1), (32, 1, 1), 0, [(out, given)], None)
    assert done.shared is (way != "one by one")
    np.testing.assert_array_equal(out[:4], 2.0**80)
    np.testing.assert_array_equal(out[4], float(2**31 - 1) * 2.0**33)
