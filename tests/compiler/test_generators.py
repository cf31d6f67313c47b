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


@cuda.jit(device=True)
def asked(xs, n):
    assert all(x is not None for x in xs)
    if n > 3 and any(x > 1 for x in xs):
        return 1
    return 0 if cute.const_expr(any(x is None for x in xs)) else 2


@cuda.jit
def kernel(a):
    a[4] = asked((a[1], a[2]), a[3])
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
    a = np.array([0, 1, 2, n, 0], np.int32)
    expected = of_a_branch.py_func((1, 2), n)
    cute.simulate(kernel)[1, 1](a)
    assert a[0] == expected and a[4] == asked.py_func((1, 2), n)
    assert cute.compile(kernel, a, arch="sm_80").ptx


@cuda.jit
def leaves_out(a):
    a[0] = any(cute.arch.shuffle_sync(x, 0) > 1 for x in (a[1], a[2]))


@pytest.mark.parametrize("kernel, at", [(holds, "found = "), (leaves_out, r"any\(")])
def test_another_is_refused_at_its_line(kernel, at):
    with pytest.raises(CuteError, match=rf"(?s)generator.*{at}"):
        cute.compile(kernel, np.zeros(4, np.int32), arch="sm_80")
