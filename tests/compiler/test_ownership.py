# SPDX-License-Identifier: Apache-2.0
"""Whose a function is: only what has to do with this library is compiled as its own."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types
from numba.cuda.dispatcher import _Kernel
from numba.cuda.typing.typeof import typeof

import numba_cute as cute
from numba_cute import Int32, size
from numba_cute.compiler.ground.ownership import names_of, owns
from numba_cute.compiler.host.kernel import CuteKernel

INT = (types.int64,)
LAYOUT = cute.make_layout(4)
NESTED = (1, (2, LAYOUT))
TABLE = {"layout": LAYOUT}
mine, others = ModuleType("mine"), ModuleType("others")
mine.tools, others.tools = cute, math


@cute.struct
class Counter:
    n: Int32


@cuda.jit(device=True)
def plain_helper(x):
    return x + 1


@cuda.jit(device=True)
def cute_helper(x):
    return LAYOUT(x)


@cuda.jit(device=True)
def through_another(x):
    return cute_helper(x)


@cuda.jit(device=True)
def plain_root(x):
    return math.sqrt(x)


mine.helper, others.helper = through_another, plain_helper


@cuda.jit(device=True)
def recursive(x):
    return recursive(x - 1) if x > 0 else x


class Constants:
    layout = LAYOUT
    count = 4


def closed(value):
    def kernel(x):
        return value

    return kernel


def with_inner():
    def kernel(x):
        def inner(y):
            return LAYOUT(y)

        return inner(x)

    return kernel


OURS = {
    "a module": lambda x: cute.size(x),
    "a function": lambda x: size(x),
    "a type of elements": lambda x: Int32(x),
    "an object": lambda x: LAYOUT(x),
    "an object in tuples": lambda x: NESTED[0],
    "an object in a dict": lambda x: TABLE["layout"],
    "a struct": lambda x: Counter(x),
    "a device function of this library": lambda x: cute_helper(x),
    "one that calls such a one": lambda x: through_another(x),
    "one in a module": lambda x: mine.helper(x),
    "this library in a module": lambda x: mine.tools.size(x),
    "an object in a class": lambda x: Constants.layout,
    "an object in a closure": closed(LAYOUT),
    "a device function in a closure": closed(cute_helper),
    "an inner function": with_inner(),
    "a cluster": cute.cluster_shape(2)(lambda x: x),
}
PLAIN = {
    "numbers": lambda x: x + 1,
    "modules": lambda x: math.sqrt(x) + np.float32(1),
    "an attribute that is also a name of this library": lambda x: x.size + x.LAYOUT,
    "a plain device function": lambda x: plain_helper(x),
    "one that calls itself": lambda x: recursive(x),
    "one in a module that has more": lambda x: others.helper(x) + others.tools.pi,
    "a number in a class": lambda x: Constants.count,
    "a number in a closure": closed(3),
    "a class of its own": lambda x: Constants,
    "a module that what it calls names too": lambda x: math.sqrt(x) + plain_root(x),
}


@pytest.mark.parametrize("name", OURS)
def test_a_function_that_names_something_of_this_library_is_its_own(name):
    assert owns(OURS[name], INT)


@pytest.mark.parametrize("name", PLAIN)
def test_a_function_that_names_nothing_of_this_library_is_plain(name):
    assert not owns(PLAIN[name], INT)


@pytest.mark.parametrize(
    "ty, ours",
    [
        (types.int32, False),
        (types.UniTuple(types.int32, 2), False),
        (types.float32[::1], False),
        (types.Omitted(3), False),
        (typeof(LAYOUT), True),
        (types.Tuple((types.int32, typeof(LAYOUT))), True),
        (types.Omitted(LAYOUT), True),
        (types.Dispatcher(cute_helper), True),
        (types.Dispatcher(plain_helper), False),
        (types.Optional(typeof(LAYOUT)), True),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, types.Type) else str(x),
)
def test_an_argument_of_this_library_makes_a_function_its_own(ty, ours):
    assert owns(lambda x: x, (ty,)) is ours


@pytest.mark.parametrize("fn, cls", [(PLAIN["numbers"], _Kernel), (OURS["an object"], CuteKernel)])
def test_a_kernel_is_made_of_its_owners_class(fn, cls):
    assert type(_Kernel.__new__(_Kernel, fn, INT)) is cls


def test_nothing_is_reached_through_what_a_tool_put_into_code():
    """pytest has each `assert` call its own module, of which all would be looked at in each call that is traced."""

    def asserts(x):
        assert x == size(4)

    assert any(name.startswith("@") for name in asserts.__code__.co_names)
    assert names_of(asserts.__code__)[0] == {"size", "AssertionError"}
