# SPDX-License-Identifier: Apache-2.0
"""Static and dynamic values in kernels: what the user wrote as constant stays constant, and the rest are registers."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam

SHAPE = (3, (4, 5))
SIZE = 7


@seam.frozen
class Pair:
    """A small immutable object with any mixture of static and run-time parts."""

    a: object
    b: object

    @property
    def total(self):
        return self.a + self.b * 10

    def at(self, i, *, extra=0):
        return i * self.b + self.a + extra

    def __getitem__(self, i):
        return (self.a, self.b)[i]

    def __add__(self, other):
        return Pair(self.a + other, self.b)

    def __len__(self):
        return 2


@seam.traced
def pair(a, b=2):
    return Pair(a, b)


@seam.traced
def second(t):
    return t[1]


class Kind(seam.StaticEnum):
    A = 1
    B = 2


@seam.traced
def code(kind):
    return 5 if kind is Kind.A else 6


@seam.traced
def is_static(x):
    return 1 if seam.is_static(x) else 0


@cuda.jit
def constants(out, n):
    out[0] = second(SHAPE)[1]
    out[1] = second((1, (2, (3, 4))))[1][1]
    out[2] = is_static(second(SHAPE)[0]) + is_static(SIZE - 2) + is_static(SHAPE[1][0] * SIZE)
    out[3] = n + 1
    out[4] = code(Kind.A) * 10 + code(Kind.B)
    for i in range(4):  # an ordinary run-time index into a global tuple still works
        out[5 + i] = SHAPE[1][i & 1]


@cuda.jit
def objects(out, n):
    p = pair(n)
    q = pair(1, b=n) + 4
    out[0] = p.total
    out[1] = q.at(3, extra=SIZE)
    out[2] = p[0] + q[1] + len(p)
    kept = (pair(1), pair(n))
    out[3] = kept[1].total + kept[0].total


@cuda.jit
def joined(out, n):
    """What is static in one branch, or at the first turn of a loop, becomes a run-time value where they meet."""
    p = pair(1)
    if n > 3:
        p = pair(4)
    out[0] = p.total
    x = 0
    while x < n:
        out[1 + x] = pair(x).total
        x += 1


@cuda.jit
def branches(out, n):
    if cute.const_expr(SHAPE[0] == 3):
        out[0] = 1
    else:
        out[0] = cuda.no_such_thing
    for i in cute.range_constexpr(SIZE - 4):
        for j in cute.range_constexpr(i):
            if j == 1:
                continue
            out[1 + i] = is_static(i) + is_static(j) + i + j
        if i == n:
            break


CASES = {
    "constants": (constants, 5, [5, 4, 3, 6, 56, 4, 5, 4, 5]),
    "objects": (objects, 5, [25, 27, 12, 46]),
    "joined": (joined, 5, [24, 20, 21, 22, 23, 24]),
    "joined_other_branch": (joined, 2, [21, 20, 21]),
    "branches": (branches, 9, [1, None, 3, 4]),
    "branches_break": (branches, 1, [1, None, 3, None]),
}


@pytest.mark.parametrize("case", CASES)
def test_values(run, case):
    kernel, n, want = CASES[case]
    out = np.zeros(16, np.int32)
    poison = np.frombuffer(b"\xa5" * 4, np.int32)[0]

    def check():
        got = [None if x == poison else int(x) for x in out[: len(want)]]
        assert got == want

    run(kernel, 1, 1, (out, np.int32(n)), outputs=[out], check=check)


def test_static_parts_take_no_instructions():
    @cuda.jit
    def kernel(out):
        out[0] = pair(SHAPE[1][0], b=SIZE).at(2, extra=1)

    body = cute.compile(kernel, "void(int32[::1])").ptx.split("\n{")[1]
    assert "mov.u32 \t%r1, 19;" in body
    assert "mul" not in body and "add" not in body


def test_a_kernel_argument_is_a_run_time_value():
    @cuda.jit
    def kernel(out, n):
        out[0] = is_static(n) + is_static(n + 1) + is_static((n, 1)) + is_static(pair(n).a)

    assert "mov.u32 \t%r1, 0;" in cute.compile(kernel, "void(int32[::1], int32)").ptx


LAYOUT = cute.make_layout((3, 4))


@cuda.jit
def typed_bounds(out, n):
    """Sizes that only types know, lists as modes, arithmetic on unrolled indices, short-circuits in arguments."""
    layout = cute.make_layout((4, (2, 3)))
    registers = cute.make_rmem_tensor(layout, cute.Int32)
    for i in cute.range_constexpr(cute.size(layout)):
        registers[i] = i * n
    for i in cute.range_constexpr(cute.size(layout, mode=[1])):
        out[i] = registers[i * 4] + is_static(i * SIZE)
    out[6] = pair(1, b=n > 3 and n < 10).b
    out[7] = LAYOUT((1, 2)) + cute.size(LAYOUT, mode=[0])


def test_typed_bounds(run):
    out = np.zeros(8, np.int32)

    def check():
        assert out.tolist() == [1, 21, 41, 61, 81, 101, 1, 10]

    run(typed_bounds, 1, 1, (out, cute.Int32(5)), outputs=[out], check=check)


@seam.traced
def scaled_sum(*terms, by=5):
    return sum(terms) * by


@seam.traced
def plus_scaled(first, *terms, by):
    return first + sum(terms) * by


@cuda.jit
def starred(out, x):
    out[0] = scaled_sum(x, x)
    out[1] = scaled_sum(x, x, by=3)
    out[2] = plus_scaled(x, x, x, by=2)
    out[3] = plus_scaled(x, by=2)
    out[4] = scaled_sum()


def test_what_follows_starred_arguments_is_given_by_name_alone(run):
    out = np.zeros(5, np.int32)

    def check():
        assert out.tolist() == [70, 42, 35, 7, 0]

    run(starred, 1, 1, (out, np.int32(7)), outputs=[out], check=check)
