# SPDX-License-Identifier: Apache-2.0
"""An array that traced code gives back, in a named tuple, a tuple, a list or as it is, keeps its elements."""

import pytest

from .three_ways import results

HEAD = """
from typing import NamedTuple, Any
import numba_cute as cute
class P(NamedTuple):
    a: Any
    t: Any
def made(o, n):
    return P(n, (o[1:], n + 1))
def same(x):
    return x
"""
WAYS = {
    "a field": "p = P(o, 2)\np.a[n - 1] = p.t\no[0] = p.a[n - 1] + p.a.shape[0]",
    "a tuple in a field": "p = P(1, (o[2:], n))\nfor i in range(n):\n    p.t[0][i] = p.t[0].shape[0] + i",
    "several": "p = P(o[:3], (o[3:6], o[6:]))\nfor x in p.t:\n    x[0] = x.shape[0]\np.a[n - 4] = 4",
    "another in each round": "p = P(0, (o, n))\nfor i in range(n):\n    p = P(i, (o[i:], n))\n    p.t[0][0] = p.a",
    "one of two": "p = P(1, (o[1:], 2))\nif n < 3:\n    p = P(2, (o[2:4], 3))\np.t[0][p.a] = p.t[0].shape[0]",
    "a function's": "p = made(o, n)\np.t[0][m] = p.t[1]\no[0] = p.t[0].shape[0]",
    "in another": "p = P(P(o[1:], 2), (P(1, (o, 5)), n))\np.a.a[m] = 4\np.t[0].t[0][m] = p.t[0].t[1]",
    "replaced": "p = P(1, (o, 2))._replace(a=(o[3:], n))\np.a[0][m] = p.t[0].shape[0]",
    "as it is": "x = same(o)\nx[m] = x.shape[0]",
}


@pytest.mark.parametrize("way", WAYS)
def test_an_array_that_is_given_back_has_its_elements(way):
    python, simulated, compiled = results(HEAD, WAYS[way])
    assert python == simulated == compiled and python
