# SPDX-License-Identifier: Apache-2.0
"""A kernel that is a method sets fields of its object: in Python, the simulator and compiled code."""

import hashlib
import linecache
import textwrap

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.seam.marks.host_objects import snapshot
from tests.native import Native

CLASS = """
import numba_cute as cute
{helpers}

class Base:
    fixed = 11

    def __init__(self):
        self.n, self.tile = 3, (4, 8)

    def area(self):
        return self.m * 2 + self.n

    def doubled(self, x):
        return x + self.n

    @property
    def whole(self):
        return self.n * 100

class Own(Base):
    DECORATOR
    def kernel(self, o, n, m):
{lines}
"""


def made(lines, decorator, helpers=""):
    """An object whose kernel has these lines."""
    text = CLASS.format(lines=textwrap.indent(lines, " " * 8), helpers=helpers).replace("DECORATOR", decorator)
    name = f"<own fields {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"__name__": "own_fields"}
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return space["Own"]()


def results(lines, helpers="", n=5, m=3):
    """What Python, the simulator and compiled code write."""
    outs = [np.full(12, -77, np.int64) for _ in range(3)]
    made(lines, "", helpers).kernel(outs[0], n, m)
    obj = made(lines, "@cute.kernel", helpers)
    cute.simulate(obj.kernel)[1, 1](outs[1], n, m)
    own = snapshot(obj)
    Native(type(obj).kernel, (own, outs[2], n, m)).run(1, own, outs[2], n, m)
    assert obj.n == 3 and not hasattr(obj, "m")  # the launch leaves the host's object as it is
    return [out[out != -77].tolist() for out in outs]


PROGRAMS = {
    "a new field": "self.m = n + m\no[0] = self.m",
    "a field of the launch": "o[0] = self.n\nself.n = 8\no[1] = self.n",
    "it is static": "self.m = self.tile[0] * 2\nfor i in cute.range_constexpr(self.m):\n    o[i] = i + n",
    "a method sees it": "self.m = n\no[0] = self.area()\nself.n = m\no[1] = self.area() + self.doubled(x=2)",
    "a property does not": "self.m = 3\no[0] = self.fixed + self.n",
    "a function sees it": "self.m = n\no[0] = read(self)\nself.m += 2\no[1] = read(self)",
    "under a condition": "if n > 2:\n    self.n = n\no[0] = self.n + self.doubled(1)",
    "on two ways": "if n > 20:\n    self.m = 1\nelse:\n    self.m = 2\no[0] = self.m",
    "in a loop": "for i in range(n):\n    self.n += i\no[0] = self.n",
    "a method in a loop": "self.m = 0\nfor i in range(n):\n    self.m = self.area() % 99\no[0] = self.m",
    "several at once": "self.m, (self.n, k) = n, (m, 7)\no[0] = self.m * 100 + self.n * 10 + k",
    "one after the other": "self.m = self.k = n\no[0] = self.m + self.k",
    "with an annotation": "self.m: int = n\no[0] = self.m",
    "a class's field": "o[0] = self.fixed\nself.fixed = n\no[1] = self.fixed",
    "a target of a loop": "for self.n in range(n):\n    o[self.n] = m",
    "a tuple": "self.tile = (n, *self.tile)\no[0] = self.tile[0] + len(self.tile)",
    "in a comprehension": "self.m = n\nt = [self.m + i for i in (1, 2)]\no[0] = t[0] * t[1]",
    "a closure": "self.m = n\n\ndef f(x):\n    return x + self.m + self.area()\n\no[0] = f(m)",
    "its variable's name is taken": "self__m = 4\nself.m = n\no[0] = self.m + self__m",
}


@pytest.mark.parametrize("lines", PROGRAMS.values(), ids=PROGRAMS)
def test_a_kernel_sets_its_objects_fields(lines):
    python, simulated, compiled = results(lines, "def read(x):\n    return x.m + x.n")
    assert simulated == python and compiled == python


REFUSED = {
    "a property": ("self.whole = 3\no[0] = 1", "by a property"),
    "a method that is kept": ("f = self.doubled\nself.n = n\no[0] = f(1)", "is a method that is kept"),
    "not set": ("if n > 100:\n    self.m = n\no[0] = self.m", "self. that is not set|has no value"),
    "by a method": ("o[0] = change(self)", "in what it calls return the value"),
    "another name": ("x = self\nx.n = n\no[0] = self.n", "in what it calls return the value"),
}


@pytest.mark.parametrize("lines, said", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_set_is_refused(lines, said):
    helpers = "def change(x):\n    x.n = 4\n    return x.n"
    for run in (
        lambda k: cute.simulate(k)[1, 1](np.zeros(4, np.int64), 5, 3),
        lambda k: cute.compile(k, (np.zeros(4, np.int64), 5, 3), arch="sm_90a"),
    ):
        with pytest.raises(CuteError, match=said):
            run(made(lines, "@cute.kernel", helpers).kernel)


class Storing:
    """A kernel whose object holds what the kernel makes."""

    @cute.kernel
    def kernel(self, out):
        self.smem = cute.utils.SmemAllocator()
        self.buffer = cute.make_tensor(self.smem.allocate_array(cute.Int32, 4), 4)
        self.buffer[0] = 5
        out[0] = self.buffer[0] + self.size()

    def size(self):
        return cute.size(self.buffer)


def test_a_field_may_be_a_tensor_or_an_allocator():
    out = np.zeros(1, np.int64)
    cute.simulate(Storing().kernel)[1, 1](out)
    assert out[0] == 9
    assert cute.compile(Storing().kernel, (out,), arch="sm_90a").resources.dynamic_shared == 16
