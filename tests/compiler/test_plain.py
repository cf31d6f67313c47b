# SPDX-License-Identifier: Apache-2.0
"""Objects and functions of the user's without a mark of this library, in kernels: namespaces, dataclasses, classes,
functions, closures. The simulator runs them as Python does; compiled code must give the same."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

import numba_cute as cute
from tests.native import Native


def results(kernel, *args, count=8):
    """What a kernel writes, which the simulator and compiled code must agree on."""
    outs = [np.zeros(count, np.float32) for _ in range(2)]
    cute.simulate(kernel)[1, 1](outs[0], *args)
    Native(kernel, (outs[1], *args)).run(1, outs[1], *args)
    assert cute.compile(kernel, (outs[0], *args)).resources.local == 0
    np.testing.assert_array_equal(*outs)
    return outs[0].tolist()


# ------------------------------------------------------------------ objects


@cute.jit
def advance(p, by):
    p.total[0] += p.n * by
    p.n += by


def test_a_namespace_groups_what_functions_take_and_set():
    @cute.kernel
    def kernel(out, k):
        total = cute.make_rmem_tensor(1, cute.Float32)
        total.fill(0.0)
        shape = SimpleNamespace(m=4, inner=SimpleNamespace(k=2))
        p = SimpleNamespace(total=total, n=0, shape=shape)
        p.n = 1
        for i in range(k):
            advance(p, i)
        regs = cute.make_rmem_tensor((p.shape.m, shape.inner.k), cute.Float32)
        regs.fill(1.0)
        out[0], out[1], out[2] = total[0], p.n, cute.size(regs)

    assert results(kernel, 4)[:3] == [1 * 0 + 1 * 1 + 2 * 2 + 4 * 3, 7, 8]


def test_an_object_in_an_object_is_the_same_one():
    @cute.kernel
    def kernel(out, k):
        inner = SimpleNamespace(n=0)
        first, second = SimpleNamespace(inner=inner), SimpleNamespace(inner=inner)
        inner.n = k
        first.inner.n += 1
        out[0], out[1], out[2] = inner.n, first.inner.n, second.inner.n

    assert results(kernel, 4)[:3] == [5, 5, 5]


@dataclasses.dataclass
class Point:
    x: object
    y: object = 2

    @property
    def norm(self):
        return self.x * self.x + self.y * self.y

    def scaled(self, by):
        return Point(self.x * by, self.y * by)


class Walker:
    """A class whose constructor and methods are Python: one that branches at run time, and one that Numba must see."""

    step = 2

    def __init__(self, limit, *, start=0):
        self.limit, self.at = limit, start
        self._done = False

    @property
    def done(self):
        return self._done

    def advance(self):
        self.at += self.step
        if self.at >= self.limit:
            self._done = True

    @cute.jit
    def sum_to_end(self):
        total = 0
        while not self.done:
            total += self.at
            self.advance()
        return total

    @staticmethod
    def twice(x):
        return x * 2


def make_walker(limit):
    return Walker(limit, start=1)


def test_a_kernel_makes_objects_of_plain_classes():
    @cute.kernel
    def kernel(out, k):
        p = Point(k)
        out[0], out[1] = p.norm, p.scaled(3).norm
        out[2] = cute.size(cute.make_layout(Point(3, 4).norm))
        q = Point(y=1, x=k)
        q.y = k
        out[3] = q.norm

    assert results(kernel, 4)[:4] == [20, 180, 25, 32]


def test_methods_of_plain_objects_change_them():
    @cute.kernel
    def kernel(out, k):
        w = make_walker(k)
        out[0] = w.sum_to_end()
        out[1], out[2], out[3] = w.at, w.done, w.twice(w.limit)

    assert results(kernel, 8)[:4] == [1 + 3 + 5 + 7, 9, 1, 16]


def test_fields_may_be_set_by_functions():
    @cute.jit
    def sets(p, k):
        p.n = k

    @cute.kernel
    def kernel(out, k):
        p = SimpleNamespace(n=0)
        sets(p, k)
        out[0] = p.n

    assert results(kernel, 7)[0] == 7


def test_what_cannot_be_is_refused():
    def compiled(kernel):
        cute.compile(kernel, (np.zeros(8, np.float32), 3))

    @cute.kernel
    def text(out, k):
        p = SimpleNamespace(n="a")
        p.n = k

    with pytest.raises(cute.CuteError, match=r"SimpleNamespace.n is static .* run-time value"):
        compiled(text)

    @cute.kernel
    def no_field(out, k):
        out[0] = SimpleNamespace(n=k).m

    with pytest.raises(cute.CuteError, match="SimpleNamespace has no attribute 'm'"):
        compiled(no_field)

    @cute.kernel
    def missing(out, k):
        out[0] = Point().x

    with pytest.raises(cute.CuteError, match="Point.*missing a required argument: 'x'"):
        compiled(missing)


# ------------------------------------------------------------------ functions


def shape_of(x):
    return tuple(2 * s for s in x.shape)


def reduced(value, op):
    return op(op(value, 1), 3)


def largest(x, other, *, scale=1):
    best = x
    if other > best:
        best = other
    return best * scale


def total(**named):
    return sum(named.values()) + len(named)


def test_plain_functions_are_followed_or_compiled():
    @cute.kernel
    def kernel(out, k):
        x = cute.make_rmem_tensor((2, 1), cute.Float32)
        regs = cute.make_rmem_tensor(shape_of(x), cute.Float32)
        out[0] = cute.size(regs)
        out[1] = largest(k, k + 2)
        out[2] = largest(k, 9, scale=2)
        out[3] = total(a=k, b=2)
        out[4] = add(k)

    def add(k):
        return reduced(k, lambda x, y: x + y)

    assert results(kernel, 4)[:5] == [8, 6, 18, 8, 8]


@cute.jit
def clamped(x, limit: cute.Int32, change=lambda x, y: (y, x)):
    low, high = change(x, limit)
    while low > high:
        low -= 1
    return low


@cute.jit
def offset(x, *, by=1, loc=None, ip=None):
    while x < 0:
        x += by
    return x


def around(x, limit):
    return clamped(x, limit) + clamped(limit, change=lambda x, y: (x, y), limit=x) * 100


def test_followed_functions_call_compiled_ones():
    @cute.kernel
    def kernel(out, k):
        out[0] = around(k, 3)
        out[1] = around(2, k)
        out[2] = offset(-k, by=2, loc=None)

    assert results(kernel, 7)[:3] == [303, 202, 1]


class Kernels:
    """Kernels and helpers as methods, with plain ones among them."""

    def __init__(self, tile):
        self.tile = tile

    @cute.kernel
    def kernel(self, out: cute.Tensor, scale: cute.Float32, n: cute.Int32):
        acc = self.accumulator()
        self.fill(acc, n)
        for i in cute.range_constexpr(self.tile):
            out[i] = self.quad(acc[i], lambda x, y: x + y) * scale
        out[self.tile] = self.count(n)

    def accumulator(self):
        return cute.make_rmem_tensor((self.tile,), cute.Float32)

    @cute.jit
    def fill(self, acc, n):
        for i in cute.range_constexpr(cute.size(acc)):
            acc[i] = i if i < n else 0

    def quad(self, value, op: object):
        return self.pair(self.pair(value, op), op)

    @staticmethod
    def pair(value, op):
        return op(value, value)

    def count(self, n):
        steps = 0
        while n > 0:
            n //= 2
            steps += 1
        return steps

    @cute.jit
    def __call__(self, out, scale: cute.Float32, n):
        self.kernel(out, scale * math.log2(4), n).launch(grid=1, block=1)


def test_plain_methods_of_a_kernels_object():
    out = np.zeros(8, np.float32)
    cute.simulate(Kernels(4))(out, 0.5, 3)
    assert out.tolist() == [0, 4, 8, 0, 2, 0, 0, 0]
    (made,) = cute.compile(Kernels(4), out, 0.5, 3).kernels
    assert made.resources.local == 0 and ".f64" not in made.ptx


def test_numbers_are_what_a_kernels_annotations_say():
    @cute.kernel
    def kernel(out: cute.Tensor, scale: cute.Float32, n: "cute.Int32", free):
        out[0] = out[0] * scale + scale
        out[1] = n

    made = cute.compile(kernel, (np.zeros(2, np.float32), 0.5, 3, 4))
    assert ".f64" not in made.ptx
    assert cute.simulate(kernel)[1, 1](np.zeros(2, np.float32), 0.5, 3, 4) is None


class Tiles:
    """What a host makes for a kernel's scheduler."""

    def __init__(self, persistent, shape):
        self.persistent, self.shape = persistent, shape

    def count(self):
        return self.shape[0] * self.shape[1]


class Scheduler:
    def __init__(self, tiles, start):
        self._tiles, self._at, self._first = tiles, start, True

    def valid(self):
        return self._at < self._tiles.count() if self._tiles.persistent else self._first

    def advance(self, *, by=1, loc=None):
        if self._tiles.persistent:
            self._at += by
        self._first = False


@pytest.mark.parametrize("persistent, shape", [(True, (2, cute.Int32(3))), (False, (2, 3))])
def test_a_plain_object_is_an_argument(persistent, shape):
    @cute.kernel
    def kernel(out: cute.Tensor, tiles: Tiles, block: cute.Int32):
        scheduler = Scheduler(tiles, block)
        steps = 0
        while scheduler.valid():
            steps += 1
            scheduler.advance(by=2)
        out[0] = steps
        out[1] = tiles.count()

    out = np.zeros(2, np.float32)
    args = out, Tiles(persistent, shape), 1
    cute.simulate(kernel)[1, 1](*args)
    assert out.tolist() == [3 if persistent else 1, 6]
    assert cute.compile(kernel, args).resources.local == 0


class Numbers:
    """Functions that compute with what is known at run time: as Numba does, traced or not, by whatever way they are
    found."""

    factor = 3

    def of(a, b):
        return a // b - a % b * 2, (a == b) + (a != 3), a / b

    @staticmethod
    def wide(a, b):
        return (a * b + 1) >> 32

    @cute.jit
    def chosen(a, b):
        if a < b:
            return Numbers.wide(a, b)
        return a // b

    def scaled(self, x):
        return x * 0.1 + self.factor


def test_a_store_through_a_view_stays_beside_a_closure():
    """Numba, which puts a closure's code where it is called, then drops stores into what nothing reads by name."""

    @cute.kernel
    def kernel(out, n):
        def twice(x):
            return 2 * x

        column = cute.make_tensor(out.iterator, cute.make_layout((2, 2)))[None, 1]
        column[1] = twice(n)

    outs = [np.zeros(4, np.int64) for _ in range(2)]
    cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(outs[0]), 3)
    Native(kernel, (cute.runtime.from_dlpack(outs[1]), 3)).run(1, cute.runtime.from_dlpack(outs[1]), 3)
    assert [o.tolist() for o in outs] == [[0, 0, 0, 6]] * 2


def test_plain_functions_compute_as_numba_does():
    def nested(a, b):
        return Numbers.of(a, b)[0] + (1 if Numbers.factor == 3 else 0) - a

    @cute.kernel
    def kernel(out, a, b, x):
        quotient, equal, ratio = Numbers.of(a, b)
        out[0], out[1], out[2] = quotient, equal, ratio
        out[3], out[4] = Numbers.wide(a, b), Numbers.chosen(a, b)
        out[5] = nested(a, b)
        out[6] = x * Numbers().scaled(x)

    for a, b in ((-20, 64), (7, 7), (3, -2), (1 << 30, 1 << 9)):
        got = results(kernel, np.int32(a), np.int32(b), np.float32(0.3))
        first = a // b - a % b * 2
        assert got[:2] == [first, (a == b) + (a != 3)]
        assert got[3:5] == [(a * b + 1) >> 32, (a * b + 1) >> 32 if a < b else a // b]
        assert got[5] == np.float32(first + 1 - a)
