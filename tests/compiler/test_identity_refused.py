# SPDX-License-Identifier: Apache-2.0
"""Objects of kernels that could not be the ones that Python would have are refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError
from tests.compiler.test_identity import Both, Fixed, Holder, Plain, Struct, made_or_given

AGAIN = r"makes an object in each round of a loop, and {} may still be .*that of an earlier round"


def buffers(out, n):
    cur = cute.make_rmem_tensor(2, cute.Float32)
    cur.fill(1.0)
    for _i in range(n):
        nxt = cute.make_rmem_tensor(2, cute.Float32)
        nxt.fill(cur[0] + cur[1])
        cur = nxt
    out[0] = cur[0]


def kept(out, n):
    best = Struct(0)
    for i in range(n):
        c = Struct(i)
        if i == 2:
            best = c
    out[0] = best.n


def kept_of_a_call(out, n):
    best = Struct(0)
    for i in range(n):
        c = made_or_given(best, i)
        if i == 2:
            best = c
    out[0] = best.n


def asked_which(out, n):
    a = Fixed(0, True)
    for i in range(n):
        c = Fixed(i, True)
        out[i] = c is a
        a = c


@cute.jit
def which(a, b):
    return a is b


def asked_which_by_a_function(out, n):
    a = Fixed(0, True)
    for i in range(n):
        c = Fixed(i, True)
        out[i] = which(c, a)
        a = c


def in_tuples(out, n):
    t = (Struct(0), Struct(1))
    while n > 0:
        t = (t[1], Struct(t[0].n + 1))
        n -= 1
    out[0] = t[0].n


def in_fields(out, n):
    h = SimpleNamespace(a=Plain(cute.Int32(0)), b=Plain(cute.Int32(1)))
    for i in range(n):
        p = Plain(i)
        h.b = h.a
        h.a = p
    out[0] = h.b.n


def kept_of_a_field(out, n):
    h, last = Both(Struct(0), Struct(1)), Struct(0)
    for i in range(n):
        out[i] = last.n
        last = h.a
        h.a = Struct(i)


def of_either(out, n):
    g, h = Both(Struct(0), Struct(1)), Both(Struct(0), Struct(1))
    for i in range(n):
        x = g if i % 2 else h
        x.a = Struct(i)
    out[0] = g.a.n + h.a.n


def puts(h, p):
    h.a = p


def puts_by_an_if(h, p):
    if p.n > 100:
        p.n = 1
    puts(h, p)


def put_by_a_function(put):
    def program(out, n):
        h = SimpleNamespace(a=Plain(cute.Int32(0)))
        for i in range(n):
            p = Plain(i)
            if i == 1:
                put(h, p)
        out[0] = h.a.n

    program.__name__ = put.__name__
    return program


LIVES_ON = {
    buffers: "cur",
    kept: "best",
    kept_of_a_call: "best",
    asked_which: "a",
    asked_which_by_a_function: "a",
    in_tuples: "a value",
    in_fields: "h",
    kept_of_a_field: "last",
    of_either: "[gh]",
}
LIVES_ON |= {put_by_a_function(put): "h" for put in (puts, puts_by_an_if)}


@pytest.mark.parametrize("program", LIVES_ON, ids=lambda p: p.__name__)
def test_an_object_that_lives_on_is_not_made_again(program):
    with pytest.raises(CuteError, match=AGAIN.format(LIVES_ON[program])):
        cute.compile(cuda.jit(program), (np.zeros(1, np.int32), np.int32(3)), arch="sm_90a")


@cute.jit
def leaves(h, n):
    h.first = Plain(n)


def leaves_by_an_if(h, n):
    if n > 3:
        h.first = Plain(n)


@pytest.mark.parametrize("function", [leaves, leaves_by_an_if], ids=["jitted", "plain"])
def test_an_object_does_not_outlive_its_frame(function):
    @cuda.jit
    def kernel(out, n):
        x = Plain(cute.Int32(n))
        h = Holder(x, (x, x))
        function(h, n)
        out[0] = h.first.n

    with pytest.raises(CuteError, match="is stored in one that the caller has, and is gone when the function returns"):
        cute.compile(kernel, (np.zeros(1, np.int32), np.int32(3)), arch="sm_90a")


def test_what_never_changes_has_no_identity():
    @cuda.jit
    def kernel(out, x):
        t, u = cute.make_tensor(x, cute.make_layout(4)), cute.make_tensor(x, cute.make_layout(4))
        out[0] = t is u

    with pytest.raises(CuteError, match="a kernel knows what they hold, not which they are"):
        cute.compile(kernel, (np.zeros(1, np.int32), np.zeros(4, np.int32)), arch="sm_90a")


def test_a_field_keeps_the_type_of_its_object():
    @cuda.jit
    def kernel(out, n):
        h = Holder(Plain(cute.Int32(n)), None)
        h.first = Plain(cute.Float32(n))
        out[0] = h.first.n

    with pytest.raises(
        CuteError, match=r"Holder.first holds a Plain \(n: int\d\d\) and cannot hold a Plain \(n: float32\)"
    ):
        cute.compile(kernel, (np.zeros(1, np.int32), np.int32(3)), arch="sm_90a")
