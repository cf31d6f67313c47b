# SPDX-License-Identifier: Apache-2.0
"""Structs by reference: Python's meaning, in registers."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam
from numba_cute.dtypes import Int32


@cute.struct
class Counter:
    n: Int32
    limit: object
    step: Int32 = 1

    def bump(self, times=1):
        if self.n >= self.limit:
            return 0
        self.n += self.step * times
        return self.n

    def spin(self, turns):
        for i in range(turns):
            if i == 3:
                continue
            if self.bump() == 0:
                break
        return self

    @seam.traced
    def doubled(self):
        return self.n * 2

    @property
    def room(self):
        return self.limit - self.n

    def clone(self):
        return Counter(self.n, self.limit, self.step)


@cute.struct
class Nested:
    inner: Counter
    k: Int32

    def turn(self):
        self.inner.bump()
        return self.inner.n + self.k


@cuda.jit(device=True)
def bump_twice(c, q):
    c.bump()
    c.bump()
    return c.n + q


@cuda.jit(device=True)
def made(n):
    c = Counter(n, 100)
    c.bump()
    return c


@seam.traced
def two(n):
    return Counter(n, 100), Counter(n + 1, 100, 3)


@cuda.jit
def changes(out, n):
    c = Counter(n, 10)
    for i in range(4):
        c.bump()
        out[i] = c.n
    out[4] = c.room
    out[5] = c.doubled()


@cuda.jit
def passed(out, n):
    c = Counter(n, 100)
    out[0] = bump_twice(c, 1)
    out[1] = c.n  # the device function changed the caller's
    d = made(n)
    out[2] = d.spin(10).n
    out[3] = d.n
    e = d.clone()
    e.bump(5)
    out[4] = e.n - d.n


@cuda.jit
def nested(out, n):
    c = Counter(n, 100)
    o = Nested(c, 1000)
    out[0] = o.turn() + o.turn()
    out[1] = o.inner.n
    out[2] = c.n  # a struct kept in a field is the same one
    a, b = two(n)
    a.bump()
    b.bump(2)
    out[3] = a.n
    out[4] = b.n


@cuda.jit
def branched(out, n):
    c = Counter(0, 100)
    while c.n < n:
        if c.n & 1:
            c.step = 2
        c.bump()
        if c.n > 50:
            return
    out[0] = c.n
    out[1] = c.step


CASES = {
    "changes": (changes, 8, [9, 10, 10, 10, 0, 20]),
    "passed": (passed, 5, [8, 7, 15, 15, 5]),
    "nested": (nested, 5, [2013, 7, 7, 6, 12]),
    "branched": (branched, 10, [11, 2]),
}


@pytest.mark.parametrize("case", CASES)
def test_structs(run, case):
    kernel, n, want = CASES[case]
    out = np.zeros(8, np.int32)
    run(
        kernel,
        1,
        1,
        (out, np.int32(n)),
        outputs=[out],
        check=lambda: np.testing.assert_array_equal(out[: len(want)], want),
    )


def test_no_call_remains():
    ptx = cute.compile(passed, "void(int32[::1], int32)").ptx
    assert "call" not in ptx and "local" not in ptx


def test_a_struct_takes_each_field_once_and_is_a_class_of_the_users():
    @cute.struct
    class Pair:
        a: Int32
        b: Int32

    with pytest.raises(cute.CuteError, match="Pair"):
        Pair(1, 2, a=3)
    for cls in (int, dict, cute.simulate(cuda.jit(lambda x: None)), cute.make_layout(4)):
        for decorate in (cute.struct, cute.union):
            with pytest.raises(cute.CuteError, match=f"{decorate.__name__}: .* is not a class of yours"):
                decorate(cls)
