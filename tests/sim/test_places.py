# SPDX-License-Identifier: Apache-2.0
"""Wherever a kernel finds a function, the simulator computes in it as compiled code does."""

import functools
import types

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from tests.native import Native


def wide(v, c):
    r = v
    if c > 100:
        r = 2.5
    return r * (1 << 61)


@cuda.jit(device=True)
def compiled(v, c):
    r = v
    if c > 100:
        r = 2.5
    return r * (1 << 61)


def by_default(v, c, f=wide):
    return f(v, c)


nested = wide  # which only functions in others name
helpers = types.ModuleType("helpers")
helpers.wide, helpers.cuda, helpers.compiled = wide, cuda, compiled
only_wide, only_compiled, only_cuda = (types.ModuleType(n) for n in ("only_wide", "only_compiled", "only_cuda"))
only_wide.wide, only_compiled.compiled, only_cuda.cuda = wide, compiled, cuda


class Plain:
    def __init__(self, k):
        self.k = k

    def wide(self, c):
        r = self.k
        if c > 100:
            r = 2.5
        return r * (1 << 61)

    @cute.jit
    def jitted(self, c):
        return wide(self.k, c)

    @staticmethod
    def static(v, c):
        return wide(v, c)

    @staticmethod
    @cute.jit
    def static_jitted(v, c):
        return wide(v, c)

    @classmethod
    def of_class(cls, v, c):
        return wide(v, c)

    @property
    def read(self):
        return wide(self.k, self.k)


class Host:
    """A field of an argument of kernels."""

    def __init__(self, f=wide):
        self.k, self.f, self.fs = cute.Int64(5), f, (f,)

    wide, jitted, static, static_jitted = (
        Plain.wide, Plain.jitted, staticmethod(Plain.static), staticmethod(Plain.static_jitted)
    )  # fmt: skip

    @classmethod
    def of_class(cls, v, c):
        return wide(v, c)


class Other(Host, types.SimpleNamespace):
    """One of a class that is not Python's alone."""


class Holder:
    """An argument of kernels."""

    def __init__(self, held):
        self.held = held


def inner(o, n, h):
    def g(v):
        return nested(v, n)

    o[0] = g(n)


def lambda_(o, n, h):
    g = lambda v: nested(v, n)  # noqa: E731
    o[0] = g(n)


def comprehension(o, n, h):
    o[0] = [nested(v, n) for v in (n, n)][0]


def of_module(o, n, h):
    o[0] = helpers.wide(n, n)


def only_of_module(o, n, h):
    o[0] = only_wide.wide(n, n)


def compiled_of_module(o, n, h):
    o[0] = only_compiled.compiled(n, n)


def cuda_of_module(o, n, h):
    o[only_cuda.cuda.threadIdx.x] = wide(n, only_cuda.cuda.blockDim.x)


def atomic(o, n, h):
    cuda.atomic.add(o, 0, wide(n, n))


def default(o, n, h):
    o[0] = by_default(n, n)


def partial(o, n, h):
    o[0] = functools.partial(wide, n)(n)


def plain(o, n, h):
    o[0] = Plain(n).wide(n)


def plain_jitted(o, n, h):
    o[0] = Plain(n).jitted(n)


def plain_static(o, n, h):
    o[0] = Plain.static(n, n) + Plain(n).static(n, n)


def plain_static_jitted(o, n, h):
    o[0] = Plain.static_jitted(n, n)


def plain_of_class(o, n, h):
    o[0] = Plain.of_class(n, n)


def plain_property(o, n, h):
    o[0] = Plain(n).read


def host(o, n, h):
    o[0] = h.held.wide(n)


def host_jitted(o, n, h):
    o[0] = h.held.jitted(n)


def host_static(o, n, h):
    o[0] = h.held.static(n, n)


def host_static_jitted(o, n, h):
    o[0] = h.held.static_jitted(n, n)


def host_of_class(o, n, h):
    o[0] = h.held.of_class(n, n)


def host_field(o, n, h):
    o[0] = h.held.f(n, n)


def host_item(o, n, h):
    o[0] = h.held.fs[0](n, n)


def argument(o, n, h):
    o[0] = h(n, n)


KERNELS = (inner, lambda_, comprehension, of_module, only_of_module, compiled_of_module, cuda_of_module, atomic,
           default, partial, plain, plain_jitted, plain_static, plain_static_jitted, plain_of_class,
           plain_property)  # fmt: skip
OF_OBJECTS = (host, host_jitted, host_static, host_static_jitted, host_of_class, host_field, host_item)
VALUE = 5 * 2.0**61
"""What an int gives that is a float where ways meet; as an int it would wrap around."""


def simulated(kernel, h):
    o = np.zeros(1)
    cute.simulate(cuda.jit(kernel))[1, 1](o, 5, h)
    return o[0]


def test_compiled_code_converts():
    given = np.zeros(1), 5, wide
    Native(cuda.jit(argument), given).run(1, *given)
    assert given[0][0] == VALUE


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_function_converts_wherever_it_is_found(kernel):
    assert simulated(kernel, Host()) == VALUE * (1 + (kernel is plain_static))


@pytest.mark.parametrize("cls", [Host, Other])
@pytest.mark.parametrize("kernel", OF_OBJECTS)
def test_one_of_an_object_of_the_host_converts(kernel, cls):
    assert simulated(kernel, Holder(cls())) == VALUE


@pytest.mark.parametrize(
    "h",
    [wide, compiled, functools.partial(wide), Host().static],
    ids=lambda h: type(h).__name__ + getattr(h, "__name__", ""),
)
def test_one_that_is_an_argument_converts(h):
    assert simulated(argument, h) == VALUE


BEYOND = """
def helper(x, i):
    x[i] = 1

def kernel(x):
    helper(x, 100)
"""
UNKNOWN = """
def helper(x, i):
    x[i] = x.no_such_attribute

def kernel(x):
    helper(x, 0)
"""


@pytest.mark.parametrize("way", ["simulator", "compiler"])
def test_reports_name_the_file_where_two_files_have_equal_functions(tmp_path, way):
    said = []
    for name in ("first.py", "second.py"):
        file, space = tmp_path / name, {}
        text = BEYOND if way == "simulator" else UNKNOWN
        file.write_text(text)
        exec(compile(text, str(file), "exec"), space)
        space["helper"] = cuda.jit(device=True)(space["helper"])
        kernel, x = cuda.jit(space["kernel"]), np.zeros(4, np.float32)
        with pytest.raises(cute.CuteError) as caught:
            if way == "simulator":
                cute.simulate(kernel)[1, 1](x)
            else:
                cute.compile(kernel, (x,), arch="sm_90a")
        said.append(str(caught.value))
    assert "first.py:3" in said[0] and "second.py:3" in said[1] and "first.py" not in said[1]
