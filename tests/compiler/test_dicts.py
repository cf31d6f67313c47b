# SPDX-License-Identifier: Apache-2.0
"""Dicts in kernels, their own and those of the module: as in Python, or refused."""

import pytest

import numba_cute as cute
from tests.compiler.three_ways import compiled, results

HEAD = "import numba_cute as cute"

RIGHT = {
    "dict of the module": ("""
TAGS = {"load": 3, 2: 5, (1, 2): 7, "unused": object()}
""", """
o[0] = TAGS["load"] + TAGS[2] * n
o[1] = TAGS[(1, 2)] + TAGS.get("store", 9)
o[2] = len(TAGS) + (2 in TAGS)
for k in TAGS:
    o[3] += 1"""),
    "dict 1 True": ("", """
o[0] = {1: n, True: m}[1]"""),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_all_three_give_the_same(name):
    python, simulated, native = results(HEAD + RIGHT[name][0], RIGHT[name][1])
    assert simulated == python and native == python


REFUSED = {
    "dict of the module, run-time key": ('a dict in a kernel: it is a table', """
TAGS = {5: 7}
""", """
o[0] = TAGS[n]"""),
    "dict of the module changed": ('a dict in a kernel: it is a table', """
TAGS = {5: 7}
""", """
TAGS[5] = 8
o[0] = n"""),
    "dict get": ('a dict in a kernel: it is a table', "", """
o[0] = {5: 7}.get(n, 9)"""),
    "dict item": ('a dict in a kernel', "", """
o[0] = {5: 7, 1: 2}[n]"""),
    "dict get traced": ('cannot be hashed', """
def f(v):
    return {5: 7}.get(v, 9)
""", """
o[0] = f(n)"""),
    "dict item traced": ('cannot be hashed', """
def f(v):
    return {5: 7, 1: 2}[v]
""", """
o[0] = f(n)"""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_as_in_python_is_refused(name):
    words, head, lines = REFUSED[name]
    with pytest.raises(cute.CuteError, match=words):
        compiled(HEAD + head, lines)
