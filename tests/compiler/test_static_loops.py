# SPDX-License-Identifier: Apache-2.0
"""Loops over tuples of static numbers: what the loop's variable is stands in each copy of the body."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute

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
