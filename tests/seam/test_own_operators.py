# SPDX-License-Identifier: Apache-2.0
"""Numbers, texts and tuples of classes whose operators are their own are refused: a kernel would not ask them."""

import enum
from collections import namedtuple
from typing import NamedTuple

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError


def no(self, *_):
    return False


class Named(NamedTuple):
    n: object

    def __bool__(self):
        return self.n > 5


class Pair(namedtuple("Pair", "x y")):
    __eq__ = no
    __hash__ = tuple.__hash__


Int, Text, Plain = (type("Of", (base,), {"__module__": __name__, "__len__": no}) for base in (int, str, tuple))
Of64 = type("Of64", (np.int64,), {"__module__": __name__, "__add__": no})


class Kind(enum.IntEnum):
    A = 2

    def __int__(self):
        return 33


class Shown(NamedTuple):
    """One that is shown otherwise, and has a method."""

    n: object

    def __repr__(self):
        return "shown"

    def twice(self):
        return self.n + self.n


VALUES = {"named": Named(3), "pair": Pair(1, 2), "int": Int(2), "text": Text("a"), "tuple": Plain((1, 2)),
          "NumPy's": Of64(3), "in a tuple": (1, Int(2))}  # fmt: skip
OWN = "with its own __.*, which a kernel would not ask: give the method another name"


def of_a_global(name):
    space = {"cute": cute, "x": VALUES[name]}
    exec("def kernel(out, n):\n    out[0] = 1 if x else cute.size(cute.make_layout(1))\n", space)
    return space["kernel"], ()


def of_an_argument(name):
    return (lambda out, n, x: cute.size(cute.make_layout(1))), (VALUES[name],)


def made_in_the_kernel(out, n):
    out[0] = 1 if Named(n) else cute.size(cute.make_layout(1))


def member(out, n):
    out[0] = Kind.A + cute.size(cute.make_layout(1))


def refused(function, *more):
    for run in (lambda *a: cute.compile(cuda.jit(function), a, arch="sm_90a"), cute.simulate(cuda.jit(function))[1, 1]):
        with pytest.raises(CuteError, match=OWN):
            run(np.zeros(1), 3, *more)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("place", [of_a_global, of_an_argument])
def test_one_with_operators_of_its_own_is_refused(place, name):
    function, more = place(name)
    refused(function, *more)


@pytest.mark.parametrize("function", [made_in_the_kernel, member])
def test_so_are_their_classes(function):
    refused(function)


def test_other_methods_are_called():
    @cuda.jit
    def kernel(out, n):
        out[0] = Shown(n).twice() + cute.size(cute.make_layout(1))

    out = np.zeros(1)
    cute.simulate(kernel)[1, 1](out, 3)
    assert out[0] == 7
