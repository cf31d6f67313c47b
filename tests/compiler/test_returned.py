# SPDX-License-Identifier: Apache-2.0
"""Functions that give back their arguments: the caller has the same object then, as in Python."""

import numpy as np

import numba_cute as cute
from numba_cute.seam import struct
from tests.native import Native


@struct
class Counter:
    n: cute.Int32


@cute.jit
def step(counter, by):
    while counter.n < by:
        counter.n += by
    return counter, by * 2


@cute.jit
def twice(counter, by, values):
    counter, other = step(counter, by)
    if other > 6:
        counter, by = step(counter, other)
    return by, values, counter


def results(kernel, *args):
    outs = [np.zeros(8, np.float32) for _ in range(2)]
    cute.simulate(kernel)[1, 1](outs[0], *args)
    Native(kernel, (outs[1], *args)).run(1, outs[1], *args)
    assert cute.compile(kernel, (outs[0], *args)).resources.local == 0
    np.testing.assert_array_equal(*outs)
    return outs[0].tolist()


def test_what_a_function_gives_back_is_the_callers_own_object():
    @cute.kernel
    def kernel(out, k):
        first = Counter(0)
        second, _ = step(first, k)
        second.n += 100
        out[0], out[1] = first.n, second.n
        values = cute.make_rmem_tensor(2, cute.Float32)
        values.fill(1.0)
        if k > 3:
            by, values, second = twice(second, k, values)
            values[0] = by
        else:
            second.n += 7
        out[2], out[3], out[4] = first.n, second.n, values[0]

    assert results(kernel, 4)[:5] == [104, 104, 104, 104, 16]
    assert results(kernel, 3)[:5] == [103, 103, 110, 110, 1]


class Methods:
    def __init__(self, by):
        self.by = by

    @cute.jit
    def advance(self, counter, sums):
        for i in range(self.by):
            counter.n += i
            sums, counter = self.add(sums, counter)
        return counter, self.by, sums

    @cute.jit
    def add(self, sums, counter):
        sums[0] += counter.n
        return sums, counter

    @cute.kernel
    def kernel(self, out: cute.Tensor, k: cute.Int32):
        counter, sums = Counter(0), cute.make_rmem_tensor(1, cute.Float32)
        sums.fill(0.0)
        for i in range(k):
            if i > 1:
                counter, by, sums = self.advance(counter, sums)
        out[0], out[1] = counter.n, sums[0]

    @cute.jit
    def __call__(self, out, k):
        self.kernel(out, k).launch(grid=1, block=1)


def test_so_do_methods_that_call_others():
    out = np.zeros(2, np.float32)
    cute.simulate(Methods(3))(out, 4)
    assert out.tolist() == [6, 0 + 1 + 3 + 3 + 4 + 6]
    (made,) = cute.compile(Methods(3), out, 4).kernels
    assert made.resources.local == 0


def test_what_is_another_object_stays_another():
    @cute.jit
    def maybe(a, b, k):
        if k > 0:
            a = b
        return a, b

    @cute.kernel
    def kernel(out, k):
        a, b = Counter(1), Counter(2)
        c, d = maybe(a, b, k)
        d.n += 10
        out[0], out[1], out[2], out[3] = a.n, b.n, c.n, d.n

    out = results(kernel, 0)
    assert out[:4] == [1, 12, 1, 12]
