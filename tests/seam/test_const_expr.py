# SPDX-License-Identifier: Apache-2.0
"""`const_expr` takes what is static, and refuses what holds anything that is known only at run time: the simulator and
the compiler in the same words."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.seam import CuteError, frozen


@frozen
class Problem:
    layout: object
    depth: int


@cuda.jit
def of_a_number(n, out):
    out[0] = cute.const_expr(n)


@cuda.jit
def of_a_tuple(n, out):
    out[0] = cute.const_expr((1, (2, n)))[0]


@cuda.jit
def of_a_layout(n, out):
    out[0] = cute.size(cute.const_expr(cute.make_layout((n, 4))))


@cuda.jit
def of_a_stride(n, out):
    if cute.const_expr(cute.make_layout((2, 4), stride=(n, 1))):
        out[0] = 1


@cuda.jit
def of_an_object(n, out):
    out[0] = cute.const_expr(Problem(cute.make_layout((n, 4)), 3)).depth


@cuda.jit
def of_a_tensor(n, out):
    out[0] = cute.const_expr(cute.make_tensor(out, n))[0]


@cuda.jit
def of_an_element(n, out):
    if cute.const_expr(out[0] == 0):
        out[0] = 1


REFUSED = [of_a_number, of_a_tuple, of_a_layout, of_a_stride, of_an_object, of_a_tensor, of_an_element]


@cuda.jit
def of_what_is_static(n, out):
    problem = cute.const_expr(Problem(cute.make_layout((2, 4)), 3))
    if cute.const_expr(cute.size(problem.layout) == 8 and problem.depth == 3):
        out[0] = cute.const_expr((1, (2, 3)))[1][1]


def simulated(kernel):
    out = np.zeros(2, np.int64)
    cute.simulate(kernel)[1, 1](3, out)
    return out


def compiled(kernel):
    cute.compile(kernel, (3, np.zeros(2, np.int64)), arch="sm_90a")


@pytest.mark.parametrize("engine", [simulated, compiled])
@pytest.mark.parametrize("kernel", REFUSED, ids=lambda k: k.py_func.__name__)
def test_what_holds_run_time_values_is_no_constant(kernel, engine):
    with pytest.raises(CuteError, match=r"const_expr\(.*\): the value is known only at run time"):
        engine(kernel)


def test_what_is_static_is_itself():
    assert simulated(of_what_is_static)[0] == 3
    compiled(of_what_is_static)
