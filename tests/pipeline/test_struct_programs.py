# SPDX-License-Identifier: Apache-2.0
"""Programs that users write with `cute.struct`: each means what it means in Python."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import pipeline
from numba_cute.dtypes import Boolean, Float32, Int32

PROGRAMS = {}


def program(*want):
    """A kernel of (out, n) with n = 5 and what it must write."""

    def add(kernel):
        PROGRAMS[kernel.py_func.__name__] = (kernel, list(want))
        return kernel

    return add


@cute.struct
class Sum:
    n: Int32 = 0
    f: Float32 = 0.0

    def add(self, x):
        self.n += x

    @property
    def twice(self):
        return self.n * 2

    @staticmethod
    def starting(x):
        return Sum(x)

    @classmethod
    def after(cls, x):
        return cls(x + 1)

    def copied(self):
        return Sum(self.n, self.f)


@cute.struct
class Pair:
    a: Sum
    b: Sum

    def swap(self):
        kept = self.a.n
        self.a.n = self.b.n
        self.b.n = kept

    def total(self):
        return self.a.n + self.b.n


@cute.struct
class Counter:
    n: Int32

    def step(self, by=1, times=1):
        for _ in range(times):
            self.n += by
        return self

    def chain(self):
        return self.step().step(by=2).step(times=3, by=1).n


@cute.struct
class Noted(Counter):
    calls: Int32 = 0

    def step(self, by=1, times=1):
        self.calls += 1
        return super().step(by, times)


@cute.struct
class Twice(Noted):
    def step(self, by=1, times=1):
        Counter.step(self, 100)
        return super().step(by, times)


@cute.struct
class Shifted:
    raw: Int32

    @property
    def value(self):
        return self.raw + 1

    @value.setter
    def value(self, x):
        self.raw = x - 1

    @property
    def capped(self):
        if self.raw > 10:
            return 10
        return self.raw

    @property
    def size(self):
        return 4


@cute.struct
class Best:
    value: Float32
    index: Int32 = -1
    found: Boolean = False

    def see(self, i, x):
        if not self.found or x > self.value:
            self.value = x
            self.index = i
            self.found = True


@cute.struct
class View:
    layout: cute.Layout
    tensor: cute.Tensor
    base: Int32 = 0

    def at(self, i, j):
        return self.tensor[self.layout((i, j)) + self.base]


@cute.struct
class Fragment:
    values: cute.Tensor

    def clear(self):
        self.values.fill(0)

    def add(self, x):
        for i in cute.range_constexpr(4):
            self.values[i] += x * i


@cute.struct
class Optional:
    n: Int32
    bias: object = None

    def result(self):
        if self.bias is None:
            return self.n
        return self.n + self.bias


@cute.struct
class Made:
    n: Int32
    m: Int32

    def __init__(self, x):
        self.n = x
        self.m = x * 2


@cute.struct
class Vector:
    x: Int32
    y: Int32

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    def __rmul__(self, k):
        return Vector(self.x * k, self.y * k)

    def __eq__(self, other):
        return self.x == other.x and self.y == other.y

    def __lt__(self, other):
        return self.x < other.x

    def __getitem__(self, i):
        return self.x if i == 0 else self.y

    def __setitem__(self, i, value):
        if i == 0:
            self.x = value
        else:
            self.y = value

    def __len__(self):
        return 2

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __iadd__(self, other):
        self.x += other.x
        return self


@cute.struct
class Applies:
    function: object
    state: pipeline.PipelineState
    n: Int32

    def run(self, turns):
        for _ in range(turns):
            self.state.advance()
        return self.function(self.n)


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit(device=True)
def parts(p):
    return p.a, p.b, p.total()


@cuda.jit(device=True)
def find(a, n):
    for i in range(10):
        if i == n:
            return Sum(i)
        a.add(1)
    return a


@program(0, 5, 10, 6, 5, 7)
@cuda.jit
def defaults_and_factories(out, n):
    a = Sum()
    out[0] = a.n
    a = Sum.starting(n)
    out[1], out[2], out[3] = a.n, a.twice, Sum.after(n).n
    b = a.copied()
    b.add(2)
    out[4], out[5] = a.n, b.n


@program(6, 8, 7, 5, 10)
@cuda.jit
def chosen_and_swapped(out, n):
    a, b = Sum(1), Sum(2)
    if n > 3:
        c = a
    else:
        c = b
    c.add(n)
    out[0] = a.n
    d = a if n < 0 else Sum(3)
    d.add(n)
    out[1] = d.n
    e, f = Sum(n), Sum(n + 2)
    e, f = f, e
    out[2], out[3] = e.n, f.n
    total = Sum(0)
    for i in range(n):
        total = Sum(total.n + i)
    out[4] = total.n


@program(11, 6, 6, 5, 11, 9, 15)
@cuda.jit
def nested_and_in_tuples(out, n):
    group = (Sum(n), Sum(n + 1))
    total = 0
    for x in group:
        total += x.n
    out[0], out[1] = total, group[1].n
    p = Pair(Sum(n), Sum(n + 1))
    p.swap()
    a, b, both = parts(p)
    out[2], out[3], out[4] = a.n, b.n, both
    p.a = Sum(9)
    out[5] = p.a.n
    group[0].f += 1.5
    group[0].f *= 10
    out[6] = int(group[0].f)


@program(11, 7, 1, 107, 1)
@cuda.jit
def inherited_with_super(out, n):
    out[0] = Counter(n).chain()
    d = Noted(n)
    d.step(2)
    out[1], out[2] = d.n, d.calls
    t = Twice(n)
    t.step(2)
    out[3], out[4] = t.n, t.calls


@program(6, 9, 8, 8, 10, 6)
@cuda.jit
def properties_with_setters_and_branches(out, n):
    s = Shifted(n)
    out[0] = s.value
    s.value = 9
    out[1], out[2], out[3] = s.value, s.raw, s.capped
    s.raw = 99
    out[4] = s.capped
    total = 0
    for i in cute.range_constexpr(s.size):  # what is static stays so
        total += i
    out[5] = total


@program(3, 5, 8, 5, 10)
@cuda.jit
def branches_on_fields(out, n):
    best = Best(0.0)
    for i in range(n):
        best.see(i, -abs(i - 3.0))
    out[0] = best.index
    out[1], out[2] = Optional(n).result(), Optional(n, 3).result()
    m = Made(n)
    out[3], out[4] = m.n, m.m


@program(12, 0, 5, 10, 15)
@cuda.jit
def layouts_tensors_and_registers(out, n):
    for i in range(8):
        out[i] = 10 + i
    out[0] = View(cute.make_layout((2, 4)), cute.make_tensor(out, 8)).at(0, 1)
    f = Fragment(cute.make_rmem_tensor(4, cute.Int32))
    f.clear()
    f.add(n)
    for i in cute.range_constexpr(4):
        out[1 + i] = f.values[i]


@program(15, 18, 1, 15, 77, 2, -15, 16)
@cuda.jit
def operators(out, n):
    a = 2 * Vector(n, 1) * 1 + Vector(n, 16)
    out[0], out[1] = a.x, a.y
    out[2] = 1 if a == Vector(15, 18) and Vector(1, 1) < a else 0
    out[3] = a[0]
    a[1] = 77
    out[4], out[5], out[6] = a[1], len(a), (-a).x
    a += Vector(1, 1)
    out[7] = a.x


@program(5, 5, 25, 2, 5, 3, 15)
@cuda.jit
def functions_and_loops(out, n):
    a = Sum(0)
    b = find(a, n)
    out[0], out[1] = a.n, b.n
    op = Applies(square, pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 3), n)
    out[2] = op.run(n)
    out[3], out[4] = op.state.index, op.state.count
    i = 0
    c = Sum(0)
    while True:
        j = 0
        while j < 10:
            if j == n:
                break
            c.add(1)
            j += 1
        i += 1
        if i == 3:
            break
    out[5], out[6] = i, c.n


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_means_what_python_means(run, name):
    kernel, want = PROGRAMS[name]
    out = np.zeros(8, np.int32)

    def check():
        assert out[: len(want)].tolist() == want

    run(kernel, 1, 1, [out, np.int32(5)], outputs=[out], check=check)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_expected_values_are_pythons_own(name):
    """The same source, run as plain Python outside of any kernel, where nothing needs a GPU's registers."""
    if name in ("layouts_tensors_and_registers", "functions_and_loops"):
        pytest.skip("registers and pipelines exist in kernels alone")
    kernel, want = PROGRAMS[name]
    space = dict(kernel.py_func.__globals__)
    for key, value in list(space.items()):
        space[key] = getattr(value, "py_func", value)
    out = [0] * 8
    type(kernel.py_func)(kernel.py_func.__code__, space)(out, 5)
    assert out[: len(want)] == want


def test_a_property_without_a_setter_cannot_be_assigned():
    @cuda.jit
    def kernel(out):
        s = Sum(1)
        s.twice = 3
        out[0] = s.n

    with pytest.raises(cute.CuteError, match="twice is a property without a setter"):
        cute.compile(kernel, (np.zeros(1, np.int32),))


def test_a_struct_is_no_argument_of_a_kernel():
    @cuda.jit
    def kernel(out, s):
        out[0] = s.n

    with pytest.raises(cute.CuteError, match="Sum is held by reference and cannot be a kernel's argument"):
        cute.compile(kernel, (np.zeros(1, np.int32), Sum(1)))
