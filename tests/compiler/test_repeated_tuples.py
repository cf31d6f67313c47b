# SPDX-License-Identifier: Apache-2.0
"""A static number times a tuple repeats it, as in Python: in Python, the simulator and compiled code."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from tests.compiler.three_ways import compiled, results

HEAD = "import numba_cute as cute\nTWICE, L = 2, cute.make_layout((2, 2))"
PROGRAMS = {
    "a literal": "t = 2 * (n, m)\no[0] = t[2]\no[1] = t[3]\no[2] = len(t)",
    "a literal behind": "t = (n, m) * 3\no[0] = t[4]\no[2] = len(t)",
    "a global": "t = TWICE * (n, 4)\no[0] = t[2] * t[3]",
    "what a layout knows": "t = (7, *(cute.size(L) * (n, 4)))\no[0] = len(t)\no[1] = t[7]",
    "computed": "k = 1\nt = (k + 1) * (n, k)\no[0] = len(t)\no[1] = t[2]",
    "items of many kinds": "t = 2 * (n, 2.5, None, L, (m, 3))\no[0] = t[5] + t[9][0]\no[1] = 1 if t[7] is None else 2",
    "in place": "t = (n, 4)\nt *= 3\no[0] = len(t)\no[1] = t[4]",
    "none and fewer": "o[0] = len(0 * (n,)) + len((n, None) * -2)",
    "a truth value": "o[0] = len(True * (n, m)) * 10 + len((n,) * False)",
    "static items stay static": "t = 2 * (2, 3)\nfor i in cute.range_constexpr(t[3]):\n    o[i] = n",
    "unpacked": "a, b, c, d = 2 * (n, m)\no[0] = a * b + c * d",
    "named": "x = (n, m)\ny = TWICE * x\nz = x * TWICE\no[0] = y[0] + z[3]",
}


@pytest.mark.parametrize("lines", PROGRAMS.values(), ids=PROGRAMS)
def test_a_tuple_is_repeated(lines):
    python, simulated, machine = results(HEAD, lines)
    assert simulated == python and machine == python


@cute.kernel
def by_run_time(out, n):
    t = n * (1, 2)
    out[0] = t[0]


def test_a_run_time_number_repeats_no_tuple():
    with pytest.raises(CuteError, match="a tuple times a number that is known only at run time"):
        cute.simulate(by_run_time)[1, 1](np.zeros(2, np.int64), 3)
    with pytest.raises(CuteError, match="a tuple times a number that is known only at run time"):
        cute.compile(by_run_time, (np.zeros(2, np.int64), 3), arch="sm_90a")


def test_what_repeats_a_tuple_is_an_integer():
    with pytest.raises(CuteError, match="no such operator"):
        compiled(HEAD, "t = 2.5 * (n, m)\no[0] = t[0]")
