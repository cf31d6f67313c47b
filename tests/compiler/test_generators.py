# SPDX-License-Identifier: Apache-2.0
"""Generators that a call takes whole, in functions that Numba compiles."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.seam import CuteError

K = 5


@cuda.jit(device=True)
def of_a_branch(xs, n, *, kind="named"):
    s = 0
    if n > 3:
        s = sum(x * 2 for x in xs) + max(i * n for i in range(3))
    return s + tuple(x + K for x in xs)[0] + list(x for x in xs if True)[1]


@cuda.jit
def kernel(a):
    a[0] = of_a_branch((a[1], a[2]), cute.Int32(a[3]), kind="other")


@cuda.jit(device=True)
def held(xs, n):
    found = (x for x in xs)
    return sum(found) if n > 3 else 0


@cuda.jit
def holds(a):
    a[0] = held((a[1], a[2]), cute.Int32(a[3]))


@pytest.mark.parametrize("n", [3, 4])
def test_such_a_generator_is_a_list(n):
    a = np.array([0, 1, 2, n], np.int32)
    expected = of_a_branch.py_func((1, 2), n)
    cute.simulate(kernel)[1, 1](a)
    assert a[0] == expected
    assert cute.compile(kernel, a, arch="sm_80").ptx


def test_another_is_refused_at_its_line():
    with pytest.raises(CuteError, match=r"(?s)generator.*found = "):
        cute.compile(holds, np.zeros(4, np.int32), arch="sm_80")
