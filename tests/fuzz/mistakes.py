# SPDX-License-Identifier: Apache-2.0
"""Plain kernels that Numba refuses, or takes in its own way: with this library imported it must do no other."""

from __future__ import annotations

import textwrap

BEFORE = """
import math
from collections import namedtuple

import numpy as np
from numba import cuda

N = 16
ITEMS = [1, 2, 3]
TABLE = {"a": 1}
Point = namedtuple("Point", "x y")


class Plain:
    pass


@cuda.jit(device=True)
def grow(x):
    if x > 0:
        return (x, grow(x - 1))
    return x


@cuda.jit
def kernel(o, r, a, n, m):
"""

BODIES = {
    "a list of numbers": "l = [1, 2, 3]\no[0, 0] = l[n % 3]",
    "a list that grows": "l = []\nl.append(n)\no[0, 0] = l[0]",
    "a global list": "o[0, 0] = ITEMS[n % 3]",
    "a list as a shape": "s = cuda.shared.array([4, 4], np.int32)\no[0, 0] = s[0, 0]",
    "a list as a shape of globals": "s = cuda.shared.array(ITEMS, np.int32)\no[0, 0] = s[0, 0, 0]",
    "a dict": "d = {}\nd[1] = 2\no[0, 0] = d[1]",
    "a global dict": "o[0, 0] = TABLE['a']",
    "an unknown name": "o[0, 0] = unknown + 1",
    "an unknown attribute": "o[0, 0] = a.unknown",
    "an unknown attribute of a module": "o[0, 0] = math.unknown(1.0)",
    "a string and a number": "o[0, 0] = 'x' + 1",
    "an array and a tuple": "o[0, 0] = a + (1, 2)",
    "a call of a number": "o[0, 0] = n(3)",
    "an index that is a float": "o[0, 0] = a[1.5]",
    "an object's own class": "o[0, 0] = Plain()",
    "types that do not unify": "x = 1\nif n > 3:\n    x = (1, 2)\no[0, 0] = x",
    "recursion whose type grows": "o[0, 0] = grow(n)[0]",
    "an f-string": "s = f'{n}'\no[0, 0] = len(s)",
    "a set": "s = {1, 2}\no[0, 0] = len(s)",
    "division of literals by zero": "o[0, 0] = 1 // 0",
    "a shift that is too wide": "o[0, 0] = 1 << 70",
    "a literal that is too wide": "o[0, 0] = 1 << 64",
    "a namedtuple": "p = Point(n, 2)\no[0, 0] = p.x + p.y",
    "tuples of tuples": "t = ((1, 2), (3, 4))\no[0, 0] = t[n % 2][m % 2]",
    "a sum of tuples": "t = (1, 2) + (n,)\no[0, 0] = t[2]",
    "len of a tuple": "t = (1, 2, n)\no[0, 0] = len(t)",
    "a comprehension": "t = sum([i for i in range(3)])\no[0, 0] = t",
    "a generator": "t = sum(i for i in range(3))\no[0, 0] = t",
    "a loop over a tuple": "for x in (1, 2, 3):\n    o[0, 0] += x",
    "a halving loop": "t = N // 2\nwhile t > 0:\n    o[0, 0] += t\n    t //= 2",
    "a constant that a branch changes": "s = 4\nif n > 2:\n    s = 5\nfor i in range(s):\n    o[0, 0] += i",
    "a slice": "b = a[1:n]\no[0, 0] = b[0]",
    "a with statement": "with n:\n    o[0, 0] = 1",
    "a try": "try:\n    o[0, 0] = 1\nexcept Exception:\n    o[0, 0] = 2",
    "a class attribute that is set": "n.x = 3",
    "a raise": "if n > 3:\n    raise ValueError('x')\no[0, 0] = 1",
    "an assert": "assert n > 3\no[0, 0] = 1",
    "a shared array of a run-time size": "s = cuda.shared.array(n, np.int32)\no[0, 0] = s[0]",
    "None and a number": "x = None\nif n > 2:\n    x = 3\nif x is not None:\n    o[0, 0] = x",
    "super": "o[0, 0] = super().x",
}

MISTAKES = {name: BEFORE + textwrap.indent(body, "    ") + "\n" for name, body in BODIES.items()}
