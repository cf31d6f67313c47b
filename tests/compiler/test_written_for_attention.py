# SPDX-License-Identifier: Apache-2.0
"""What attention kernels are written with: in Python, the simulator and compiled code alike."""

import pytest

from tests.compiler.three_ways import results

HEAD = """
from functools import partial
from types import SimpleNamespace
import numba_cute as cute

THRESHOLD = 8.0

class Counter:
    def __init__(self, n):
        self.n = n
    def clone(self):
        return Counter(self.n)
    def advance(self):
        self.n += 1

def step(k, counters):
    a, b, c, d = counters
    if k > 1:
        a.advance()
        d.advance()
    return a, b, d

class Masks:
    @staticmethod
    def apply(out, at, index):
        if at > 0:
            out[at] = index(at)

def loop(kind, counted, sums, width):
    for i in range(counted):
        sums = (sums[0] + width, sums[1] * 2)
    return sums

def inner(p, q, k):
    found = 0
    while found < k:
        found += p.added * q.scale + p.n
    return found

def outer(p, q, k):
    if k > 100:
        return 0
    p.added = k + 3
    q.scale = p.added * 10
    return inner(p, q, k)

def rows(n, width):
    if n > 0:
        size = int(THRESHOLD) + int(2.5) + width
        return len([i for i in cute.range_constexpr(size)])
    return 0
"""
PROGRAMS = {
    "floats of the source are compared": (
        "limit = 3 if cute.const_expr(THRESHOLD > 0.0) else cute.nothing\n"
        "if cute.const_expr(not THRESHOLD < 8):\n    limit += 1\no[0] = limit"
    ),
    "a range that is to be unrolled and is not static": (
        "for i in cute.range(m, n + 3, 2, unroll_full=True):\n"
        "    for j in cute.range(2, unroll_full=True):\n        o[i + j] = (5, 7)[j] * i"
    ),
    "objects in tuples that go round a loop": (
        "a, b, d = Counter(n), Counter(n + 1), Counter(n + 2)\n"
        "for i in range(n):\n    r = b.clone()\n    a, b, d = step(n, (a, b, None, d))\n"
        "    a, _, d = step(n, (a, None, r, d))\n    o[i] = r.n\no[6] = a.n\no[7] = d.n"
    ),
    "a lambda in a loop, handed to a class's function": (
        "t = 3\nwhile t < 6:\n    Masks.apply(o, t, lambda i: i * 100 + t)\n    t += 1"
    ),
    "a partial that is traced for some arguments and compiled for others": (
        "def loops(kind, counted, sums, width):\n    return loop(kind, counted, sums, width)\n"
        "f = partial(loops, width=m)\nsums = f(True, 0, (n, 1))\nsums = f(False, n, sums)\no[0], o[1] = sums"
    ),
    "fields that a function adds": "o[0] = outer(SimpleNamespace(n=n), SimpleNamespace(m=m), n)",
    "integers of floats of the source": "o[0] = rows(n, 4)\no[1] = rows(n, 8)",
}


@pytest.mark.parametrize("lines", PROGRAMS.values(), ids=PROGRAMS)
def test_it_does_the_same_as_python(lines):
    python, simulated, compiled = results(HEAD, lines)
    assert simulated == python and compiled == python
