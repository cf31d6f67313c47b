# SPDX-License-Identifier: Apache-2.0
"""Partials that the host made, as globals, closure variables and fields: in Python, the simulator and compiled code."""

import functools

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.seam.marks.host_objects import snapshot
from tests.compiler.three_ways import results
from tests.native import Native

HEAD = """
from functools import partial
from numba import cuda
import numba_cute as cute

def plain(x, y=1, k=1):
    if x > 1000:
        return x
    return x * k + y

def op(x, kind: str, k=1, *, loc=None, ip=None):
    return x * k + len(kind)

class Tool:
    def __init__(self, n):
        self.n = n

def of_tool(tool, x):
    return x + tool.n

three = partial(plain, k=3)
first = partial(plain, 7)
inner = partial(three, y=100)
kind = partial(op, kind="any")
pair = partial(lambda a, b, c: a * 100 + b * 10 + c, 1, 2)
"""
PROGRAMS = {
    "named": "o[0] = three(n)\no[1] = three(n, 5)",
    "by place": "o[0] = first(n) + first(y=n, k=m)",
    "of a partial": "o[0] = inner(n, k=2)",
    "a text": "o[0] = kind(n) + kind(m, k=2)",
    "of a lambda": "o[0] = pair(n)",
    "handed on": "def f(g, x):\n    return g(x)\no[0] = f(three, n)",
    "overridden": "o[0] = three(n, k=n)",
}


@pytest.mark.parametrize("lines", PROGRAMS.values(), ids=PROGRAMS)
def test_a_partial_of_the_host_is_called(lines):
    python, simulated, compiled = results(HEAD, lines)
    assert simulated == python and compiled == python


@cute.jit
def jitted(x, k=1):
    if x > 100:
        return x
    return x * k


@cuda.jit(device=True)
def device(x, k=1):
    return x // k


@cute.dsl_user_op
def operation(x, kind: str, *, loc=None, ip=None):
    return x + len(kind)


JITTED, DEVICE = functools.partial(jitted, k=3), functools.partial(device, k=2)
OPERATION = functools.partial(operation, kind="any")


class Holding:
    """A kernel whose object holds partials."""

    def __init__(self):
        self.number, self.halve = functools.partial(jitted, k=10), DEVICE

    @cute.kernel
    def kernel(self, out, n):
        out[0] = JITTED(n)
        out[1] = DEVICE(n)
        out[2] = OPERATION(n)
        out[3] = self.number(n) + self.halve(n)


def test_partials_of_device_functions_are_called():
    out = np.zeros(4, np.int64)
    cute.simulate(Holding().kernel)[1, 1](out, -7)
    assert out.tolist() == [-21, -4, -4, -74]
    out[:] = 0
    own = snapshot(Holding())
    Native(Holding.kernel, (own, out, -7)).run(1, own, out, -7)
    assert out.tolist() == [-21, -4, -4, -74]
    assert cute.compile(Holding().kernel, (out, -7), arch="sm_90a").resources.local == 0
