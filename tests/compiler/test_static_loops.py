# SPDX-License-Identifier: Apache-2.0
"""Loops over tuples of static numbers: what the loop's variable is stands in each copy of the body."""

from enum import IntEnum

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from tests.native import Native

WIDTHS = (1, 4)
MANY = tuple(range(100))


@cute.jit
def filled(width):
    registers = cute.make_rmem_tensor(width, cute.Int32)
    registers.fill(width)
    return registers[width - 1] + cute.size(registers)


@cuda.jit
def literal(out):
    for k in (1, 4):
        out[k] = filled(k)


@cuda.jit
def named_with_index_and_break(out):
    for i, k in enumerate(WIDTHS):
        if k == 4 and out.shape[0] > 100:
            break
        out[k] = cute.size(cute.make_rmem_tensor((k, i + 1), cute.Int32))


@cuda.jit
def others(out):
    n = 0
    for k in MANY:  # many: at run time
        n += k
    for k in (2.5, 3.5):
        n += int(k)
    for a, b in zip((1, 2), [3, 4]):
        n += cute.size(cute.make_rmem_tensor((a, b), cute.Int32))
    for k in reversed(WIDTHS):
        n = n * 2 + filled(k)
    for k in (True, False):
        if cute.const_expr(k):
            n += 1
    for k in (out.shape[0], 4):  # one is known at run time alone
        n += k
    out[0] = n


@pytest.mark.parametrize(
    "kernel, want",
    [
        (literal, [0, 2, 0, 0, 8]), (named_with_index_and_break, [0, 1, 0, 0, 8]),
        (others, [4 * (4950 + 5 + 11) + 2 * 8 + 2 + 1 + 8 + 4]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_a_loop_over_static_numbers_is_copied(kernel, want):
    out = np.zeros(8, np.int32)
    cute.simulate(kernel)[1, 1](out)
    assert out[: len(want)].tolist() == want
    assert cute.compile(kernel, out).resources.local == 0 or kernel is others


class Color(IntEnum):
    RED = 3
    BLUE = 4


def mixed(a, b, c, n):
    return a + b + c + n


@cuda.jit
def members_before_sizes(out):
    """Members that a call is given become statements of their own: three, as many as each size has."""
    small, large = cute.make_layout((2, 2)), cute.make_layout((2, 3))
    out[0] = mixed(Color.RED, Color.BLUE, Color.RED, out.shape[0])
    n = cute.size(large)
    rounds = cute.size(small)
    out[1] = n
    for i in cute.range_constexpr(rounds):
        out[2] += i


def test_numbers_after_a_call_that_is_given_members_are_their_own():
    want, got = np.zeros(8, np.int32), np.zeros(8, np.int32)
    cute.simulate(members_before_sizes)[1, 1](want)
    Native(members_before_sizes, (got,)).run(1, got)
    assert got.tolist() == want.tolist() == [18, 6, 6, 0, 0, 0, 0, 0]


@cuda.jit
def before_a_number(out):
    cute.range_constexpr(4)
    out[0] = 1


@cuda.jit
def before_an_endless_loop(out):
    cute.range_constexpr(4)
    while True:
        pass


@pytest.mark.parametrize("kernel", (before_a_number, before_an_endless_loop), ids=lambda k: k.py_func.__name__)
def test_range_constexpr_is_for_loops_alone(kernel):
    with pytest.raises(cute.CuteError, match="(?s)use it as `for i in range_constexpr.*    cute.range_constexpr"):
        cute.compile(kernel, np.zeros(1))
