# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: B007, F841 - what loops leave behind is the matter
"""The passes before typing on kernels of this library: each use of a name has what reaches it, whatever the paths."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import Int32
from numba_cute.seam import CuteError
from tests.native import Native

N = 16
LAYOUT = cute.make_layout((4, 2), stride=(2, 1))
PROGRAMS = {}


def program(*want):
    """A kernel of (out, n) with n = 3 and what it writes; the rest of `out` stays -1."""

    def add(kernel):
        PROGRAMS[kernel.py_func.__name__] = (kernel, list(want))
        return kernel

    return add


@program(8 + 4 + 2 + 1, 4)
@cuda.jit
def a_loop_halves_a_constant(out, n):
    t, total, rounds = N // 2, 0, 0
    while t > 0:
        total += t
        rounds += 1
        t //= 2
    out[0] = total + LAYOUT(0)
    out[1] = rounds


@program(5, LAYOUT(5))
@cuda.jit
def a_branch_sets_another_constant(out, n):
    k = 4
    if n > 2:
        k = 5
    out[0] = k
    out[1] = LAYOUT(k)


@program(4, 4)
@cuda.jit
def a_branch_sets_the_same_constant(out, n):
    k = 2
    if n > 2:
        k = 2
    i = -1
    for i in cute.range_constexpr(k * 2):
        pass
    out[0] = i + 1
    if cute.const_expr(k == 2):
        out[1] = 4


@program(7, 7)
@cuda.jit
def a_closure_sets_a_constant(out, n):
    k = 2

    def change(x):
        nonlocal k
        k = x + 4

    change(n)
    out[0] = k
    if k == 2:
        out[1] = 1
    else:
        out[1] = 7 + LAYOUT(0)


@program(1, 7, 5, 7)
@cuda.jit
def stores_through_views_stay_beside_a_closure(out, n):
    whole = cute.make_tensor(cute.make_tensor(out, cute.make_layout(4)).iterator, cute.make_layout(4))
    last = cute.make_tensor(whole.iterator + 3, cute.make_layout(1))
    regs = cute.make_rmem_tensor(4, Int32)
    view = cute.make_tensor(regs.iterator, cute.make_layout((2, 2)))

    def seven(x):
        return x + 4

    whole[0] = 1
    whole[1] = seven(n)
    view[0, 1] = 5
    out[2] = regs[2]
    last[0] = seven(n)


@program(3, 6, 12)
@cuda.jit
def a_constant_is_folded_between_its_assignments(out, n):
    k = 3
    out[0] = k + LAYOUT(0)
    k = k * 2
    out[1] = k
    k *= 2
    out[2] = k


@program(4, 5)
@cuda.jit
def a_branch_is_pruned_by_what_reaches_it(out, n):
    if n > 2:
        k = 2
        k = k * 2
        if cute.const_expr(k == 4):
            out[0] = k
        else:
            out[0] = cuda.no_such_thing
        k += 1
        if cute.const_expr(k != 5):
            out[1] = cuda.no_such_thing
        else:
            out[1] = k


@program(20, 2)
@cuda.jit
def an_unrolled_loop_carries_a_sum_and_breaks(out, n):
    total, at = 0, -1
    regs = cute.make_rmem_tensor(4, Int32)
    for i in cute.range_constexpr(4):
        regs[i] = 10 * i
    for i in cute.range_constexpr(4):
        if i == n - 1:
            total = regs[i]
            at = i
            break
    out[0] = total
    out[1] = at


@program(5, 11, 24, 51)
@cuda.jit
def an_unrolled_loop_alone_reads_what_it_carries(out, n):
    run = n + 2
    for i in cute.range_constexpr(4):
        out[i] = run
        run = 2 * run + i + 1


@program(102)
@cuda.jit
def an_unrolled_loop_returns(out, n):
    for i in cute.range_constexpr(4):
        if LAYOUT((i, 0)) == n + 1:
            out[0] = 100 + i
            return
    out[0] = -5


@program(3, 1)
@cuda.jit
def an_unrolled_loop_ends_with_else(out, n):
    for i in cute.range_constexpr(4):
        if i > n:
            out[0] = 9
            break
    else:
        out[0] = i
    for _i in cute.range_constexpr(0):
        out[1] = 9
    else:
        out[1] = LAYOUT(1) - 1


@program(1, 1, 2, 2)
@cuda.jit
def the_last_index_stays_after_an_unrolled_loop(out, n):
    j = 0
    for i in cute.range_constexpr(2):
        for j in cute.range_constexpr(1, 3):
            pass
    out[0] = i
    out[1] = LAYOUT(0) + i
    out[2] = j
    out[3] = j


@program(1 << 62, 1 << 32)
@cuda.jit
def arithmetic_is_of_64_bits(out, n):
    big = 1 << 32
    out[0] = big * (1 << 30) + LAYOUT(0)
    out[1] = big


@program(3, 2, 1)
@cuda.jit
def differences_keep_their_order(out, n):
    a, b = 5, 2
    out[0] = a - b + LAYOUT(0)
    out[1] = a // b
    out[2] = a % b


@program(2, 4)
@cuda.jit
def bounds_are_those_that_reach_the_loop(out, n):
    k = cute.size(LAYOUT, mode=[1])
    total = 0
    for _i in cute.range_constexpr(k):
        total += 1
    out[0] = total
    k = cute.size(LAYOUT, mode=[0])
    total = 0
    for _i in cute.range_constexpr(k):
        total += 1
    out[1] = total


@program(2, 4)
@cuda.jit
def bounds_within_a_branch_are_those_that_reach_the_loop(out, n):
    total = 0
    if n > 2:
        k = cute.size(LAYOUT, mode=[1])
        for _i in cute.range_constexpr(k):
            total += 1
        out[0] = total
        k = cute.size(LAYOUT, mode=[0])
        total = 0
        for _i in cute.range_constexpr(k):
            total += 1
        out[1] = total


ITEMS = (5, (7, 3))


@program(5, 7, 3, LAYOUT((1, 1)))
@cuda.jit
def global_tuples_keep_their_order(out, n):
    out[0] = ITEMS[0]
    out[1] = ITEMS[1][0]
    out[2] = ITEMS[1][1]
    out[3] = LAYOUT((ITEMS[0] % 4, ITEMS[1][n - 3] % 2))


@program(-3, 3)
@cuda.jit
def literals_that_only_types_tell_keep_their_sign(out, n):
    k = 1 - cute.size(LAYOUT, mode=[0])
    out[0] = k
    out[1] = LAYOUT((1, 1)) if cute.const_expr(k < 0) else 0


@program(5, 3)
@cuda.jit
def constant_tuples_are_indexed_at_run_time(out, n):
    t = (5, 7, 3)
    u = t
    total = 0
    for i in range(n):
        total = u[i]
    out[0] = t[n - 3] + LAYOUT(0)
    out[1] = total


@program(1, 5, 7)
@cuda.jit
def constants_decide_branches(out, n):
    if not N > 16:
        out[0] = 1 + LAYOUT(0)
    else:
        out[0] = 2
    other = not cute.const_expr(cute.size(LAYOUT) == 9)
    if other:
        out[1] = LAYOUT(6)
    else:
        out[1] = n
    if cute.const_expr(cute.rank(LAYOUT) == 2 and not N == 17 and LAYOUT is not None):  # noqa: SIM201
        out[2] = 7
    else:
        out[2] = n


@program(1, 1)
@cuda.jit
def truths_stay_truths(out, n):
    b = N > 3
    out[0] = b
    if b:
        out[1] = 1 + LAYOUT(0)


@cute.struct
class Base:
    n: Int32

    def step(self, by):
        while by > 0:
            self.n += 1
            by -= 1
        return self.n


@cute.struct
class Scaled(Base):
    extra: object

    def step(self, by):
        if self.extra is None:
            return super().step(by) * 10
        return super().step(by) * self.extra


@program(50, 21)
@cuda.jit
def methods_ask_their_bases_and_their_fields(out, n):
    out[0] = Scaled(2, None).step(n)
    out[1] = Scaled(0, 7).step(n)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("engine", ["simulator", "compiled"])
def test_a_kernel_means_what_it_means_in_python(name, engine):
    kernel, want = PROGRAMS[name]
    out = np.full(4, -1, np.int64)
    if engine == "simulator":
        cute.simulate(kernel)[1, 1](out, 3)
    else:
        Native(kernel, (out, 3)).run(1, out, 3)
    assert out[: len(want)].tolist() == want


@cuda.jit
def bounds_that_differ(out, n):
    k = 2
    if n > 2:
        k = cute.size(LAYOUT)
    for i in cute.range_constexpr(k):
        out[i] = i


@cuda.jit
def bounds_of_a_loop(out, n):
    k = cute.size(LAYOUT)
    while n > 0:
        for i in cute.range_constexpr(k):
            out[i] = i
        k += 1
        n -= 1


THINGS = (LAYOUT, cute.make_layout((2, (2, 2))))


@cuda.jit
def bounds_whose_types_come_later(out, n):
    k = cute.size(LAYOUT, mode=[1])
    while n > 0:
        for i in cute.range_constexpr(k):
            out[i] = i
        for i in cute.range_constexpr(2):
            k = cute.size(THINGS[i])
        n -= 1


@cuda.jit
def condition_that_differs(out, n):
    k = 2
    for _ in range(n):
        if cute.const_expr(k == 2):
            out[0] = 1
        k = 3


@cuda.jit
def step_of_zero(out, n):
    for i in cute.range_constexpr(0, 4, 0):
        out[i] = LAYOUT(i)


@pytest.mark.parametrize(
    "kernel, words",
    [
        (bounds_that_differ, "the same on every path to the loop"),
        (bounds_of_a_loop, "the same on every path to the loop"),
        (bounds_whose_types_come_later, "the same on every path to the loop"),
        (condition_that_differs, "known only at run time"),
        (step_of_zero, "its step is 0"),
    ],
    ids=lambda x: getattr(getattr(x, "py_func", None), "__name__", ""),
)
def test_what_differs_from_path_to_path_is_not_static(kernel, words):
    with pytest.raises(CuteError, match=words) as e:
        cute.compile(kernel, (np.zeros(4, np.int64), 3))
    assert "test_passes.py:" in str(e.value)  # the kernel's line
