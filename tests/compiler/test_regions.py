# SPDX-License-Identifier: Apache-2.0
"""Structs that traced code makes, and changes under run-time conditions and in loops: what is set there stays set."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.seam import current, struct, traced
from tests.native import Native


@struct
class Pair:
    a: cute.Int32
    b: cute.Int32 = 7
    name: object = None


@struct
class Outer:
    inner: Pair
    n: cute.Int32


@struct
class Started:
    a: cute.Int32
    b: cute.Int32

    @traced
    def __init__(self, n):
        self.a = n
        current().when(current().compare(">", n, 2), lambda: setattr(self, "a", 5))
        self.b = 1


@traced
def conditional(n):
    p = Pair(1)
    b = current()

    def then():
        p.a = p.a + 10

        def deeper():
            p.b = n

        b.when(b.compare("<", n, 5), deeper)

    b.when(b.compare(">", n, 2), then)
    return p.a, p.b


@traced
def repeated(n):
    p, total = Pair(0), Pair(0, 0)

    def body(i):
        q = Pair(i)
        q.a = q.a + 1
        total.a = total.a + q.a * p.b
        p.b = p.b + 1
        current().when(current().compare("==", i, 1), lambda: setattr(q, "b", 100))
        total.b = total.b + q.b

    current().loop(0, n, body)
    return total.a, total.b


@traced
def shared(n):
    apart = Pair(n)
    o = Outer(apart, 3)
    inner = o.inner
    current().when(current().compare(">", n, 2), lambda: setattr(inner, "a", 40))
    current().when(current().compare(">", n, 3), lambda: setattr(apart, "a", 50))
    current().loop(0, n, lambda i: setattr(o, "n", o.n + o.inner.a))
    return o.inner.a, o.n


@traced
def whole(n):
    """The object itself leaves, and changes on in the kernel."""
    p = Pair(n, name="p")
    current().when(current().compare(">", n, 2), lambda: setattr(p, "a", -1))
    return p


@cuda.jit
def changing(n, out):
    out[0], out[1] = conditional(n)
    out[2], out[3] = repeated(n)
    out[4], out[5] = shared(n)
    p = whole(n)
    p.a = p.a + 1
    out[6], out[7] = p.a, p.b


def wanted(n):
    a, b = (11, n if n < 5 else 7) if n > 2 else (1, 7)
    total = sum((i + 1) * (7 + i) for i in range(n)), sum(100 if i == 1 else 7 for i in range(n))
    inner = 50 if n > 3 else 40 if n > 2 else n
    return [a, b, *total, inner, 3 + n * inner, (-1 if n > 2 else n) + 1, 7]


@pytest.mark.parametrize("n", [0, 2, 3, 6])
def test_what_traced_code_changes_stays_changed(run, n):
    out = np.zeros(8, np.int32)
    run(
        changing, 1, 1, [np.int32(n), out], outputs=[out],
        check=lambda: np.testing.assert_array_equal(out, wanted(n)),
    )  # fmt: skip


@pytest.mark.parametrize("n", [0, 2, 3, 6])
def test_and_the_compiled_code_computes_it(n):
    out = np.zeros(8, np.int32)
    Native(changing, (np.int32(n), out)).run(1, np.int32(n), out)
    np.testing.assert_array_equal(out, wanted(n))


@traced
def begun(n):
    return Started(n).a


@traced
def static_field(n):
    p = Pair(n, name="p")
    current().when(current().compare(">", n, 2), lambda: setattr(p, "name", "q"))
    return p.a


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (begun, r"Started\.a is set inside of a `when` or `loop` of traced code"),
        (static_field, r"Pair\.name was made as .* and cannot become"),
    ],
    ids=["not whole", "static"],
)
def test_what_cannot_stay_is_refused(function, why):
    @cuda.jit
    def kernel(n, out):
        out[0] = function(n)

    with pytest.raises(CuteError, match=why):
        cute.compile(kernel, (np.int32(3), np.zeros(1, np.int32)), arch="sm_90a")
