# SPDX-License-Identifier: Apache-2.0
"""Objects of kernels are the ones that Python would have: by every name, in every holder, through every call."""

from __future__ import annotations

import dataclasses
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from tests.native import Native


@cute.struct
class Struct:
    n: cute.Int32

    def bump(self, by):
        self.n += by
        return self

    def larger(self, other):
        if self.n > other.n:
            return self
        return other


@cute.struct
class Both:
    a: Struct
    b: Struct


@cute.struct
class Fixed:
    number: cute.Int32
    valid: cute.Boolean


@dataclasses.dataclass
class Data:
    n: int

    def bump(self, by):
        self.n = self.n + by
        return self

    def larger(self, other):
        if self.n > other.n:
            return self
        return other


class Plain:
    def __init__(self, n):
        self.n = n

    def bump(self, by):
        if by > 0:
            self.n = self.n + by
        return self

    def larger(self, other):
        return self if self.n > other.n else other


class Slots:
    __slots__ = ("__inner", "n")

    def __init__(self, n, inner):
        self.n, self.__inner = n, inner

    def the_inner(self):
        return self.__inner


class MoreSlots(Slots):
    __slots__ = "more"

    def __init__(self, n, inner):
        super().__init__(n, inner)
        self.more = inner

    def grow(self, by):
        if by > 2:
            self.n = self.n + by
        return self


class Holder:
    def __init__(self, first, pair):
        self.first, self.pair = first, pair

    def get(self, k):
        if k > 3:
            return self.first
        return self.pair[0]


@cute.struct
class Outer:
    inner: Struct
    k: cute.Int32

    def the_inner(self):
        return self.inner


def namespace(n):
    return SimpleNamespace(n=n)


def bumped(x, by):
    if by > 2:
        x.n = x.n + by
    return x


@cute.jit
def one_of(a, b, k):
    while k > 10:
        k -= 1
    if k > 3:
        return a
    return b


@cute.jit
def swapped(a, b):
    return b, (a, b)


@cute.jit
def made(n):
    return Struct(n)


@cute.jit
def made_twice(n):
    x = Plain(n)
    return x, x, (x, Plain(n + 1))


@cute.jit
def holder(n):
    x = Plain(n)
    return Holder(x, (x, Plain(cute.Int32(n + 5))))


@cute.jit
def outer(n):
    o = Outer(Struct(n), 3)
    return o, o.inner


@cute.jit
def made_or_given(x, k):
    if k > 3:
        x = Struct(k)
    x.n += 1
    return x


@cute.jit
def through(x, k):
    y, _ = swapped(x, x)
    return one_of(y, x, k).bump(1)


def same(a, b):
    return a is b


def pair_of(n):
    x = Plain(n)
    return x, SimpleNamespace(x=x)


def chains(out, n):
    for cls in (Struct, Data, Plain):
        x = cls(cute.Int32(n))
        x.bump(1).bump(2).bump(3)
        out[0] = out[0] * 50 + x.n
    y = Struct(n)
    z = y.bump(1)
    z.n += 5
    out[1], out[2] = y.n, y is z


def given_back(out, n):
    a, b = Struct(n), Struct(n + 1)
    c = one_of(a, b, n)
    c.n += 10
    out[0], out[1] = a.n, b.n
    out[2], out[3] = c is a, c is not b
    d, (e, f) = swapped(a, b)
    d.n += 100
    out[4], out[5], out[6] = b.n, f.n, e is a
    a.larger(b).n += 1000
    out[7], out[8] = a.n, b.n


def bumped_slots(x, n):
    x.n += n
    return x


def namespaces(out, n):
    x, y = namespace(cute.Int32(n)), Data(cute.Int32(n))
    bumped(x, n).n = x.n + 1
    bumped(bumped(y, 3), n).bump(2)
    out[0], out[1] = x.n, y.n
    out[2] = y.larger(y) is y


def new_ones(out, n):
    a, b = made(n), made(n)
    a.n += 1
    x, y, (z, w) = made_twice(cute.Int32(n))
    y.n = y.n + 7
    out[0], out[1], out[2], out[3] = a.n, b.n, x.n, z.n
    out[4], out[5], out[6], out[7] = w.n, x is y, z is w, a is b


def holders(out, n):
    h = holder(cute.Int32(n))
    h.pair[0].n = h.pair[0].n + 2
    h.get(n).bump(10)
    out[0], out[1], out[2] = h.first.n, h.pair[0].n, h.pair[1].n
    out[3], out[4] = h.first is h.pair[0], h.first is h.pair[1]
    p = h.pair[1]
    h.first = p
    p.n = 4
    out[5], out[6] = h.first.n, h.first is p


def inner_objects(out, n):
    o, i = outer(n)
    i.n += 1
    o.the_inner().n += 10
    out[0], out[1], out[2] = o.inner.n, i.n, i is o.inner


def some_new_some_given(out, n):
    x = Struct(1)
    y = made_or_given(x, n)
    y.n += 10
    out[0], out[1], out[2] = x.n, y.n, x is y
    through(x, n).n += 5
    out[3] = x.n


def loops(out, n):
    a, b = Struct(0), Struct(1)
    for i in range(n):
        a, b = b, a
        a.n += i
        c = one_of(a, b, i)
        c.bump(2)
        fresh = made(i)
        fresh.n += 1
        out[2] += fresh.n
    out[0], out[1] = a.n, b.n


def early_returns(out, n):
    x = Struct(n)
    for i in range(10):
        if one_of(x, x, i).n > 7:
            out[0] = i
            break
        x.bump(i)
    out[1] = x.n


def closures(out, n):
    x, total = Struct(n), Plain(cute.Int32(0))

    def add(by):
        total.n = total.n + by
        return x

    add(3).n += 1
    add(4).n += 1
    out[0], out[1] = x.n, total.n


def asked_in_a_helper(out, n):
    a, b = Struct(n), Struct(n)
    c = one_of(a, b, n)
    out[0], out[1], out[2] = same(a, c), same(b, c), same(a, a)
    x, s = pair_of(cute.Int32(n))
    s.x.n = s.x.n + 1
    out[3], out[4] = x.n, s.x is x
    out[5], out[6] = a is None, a is not x


def slots(out, n):
    x = MoreSlots(cute.Int32(n), Plain(cute.Int32(1)))
    x.grow(n).more.n += 4
    y = bumped_slots(x, n)
    out[0], out[1], out[2], out[3] = x.n, x.the_inner().n, x.more is x.the_inner(), y is x


@cute.dsl_user_op
def advanced(x, y):
    made = Struct(x.n + 1)
    made.n += x.n + y.n  # what it is made of is as it was
    return made


def carried(out, n):
    work, i = Fixed(0, True), 0
    while work.valid:
        following = Fixed(work.number + 2, i < n)
        out[i] = 10 * work.number + following.number
        i += 1
        work = following


def two_back(out, n):
    a, b, best = Fixed(0, True), Fixed(1, True), Fixed(0, False)
    for i in range(n):
        c = Fixed(a.number + b.number, True)
        a = b
        b = c
        if i == 1:
            best = c
        out[i] = a.number * 100 + c.number
    out[8] = best.number


def made_for_a_field(out, n):
    """Objects that each round makes for a field, of the one that is there; where and when a field is set differs."""
    h = Both(Struct(0), Struct(1))
    for i in range(n):
        h.a = advanced(h.a, h.b)
        if i % 2 == 0:
            h.b = Struct(h.a.n + h.b.n)
        h.a.n += 1
        out[i] = h.a.n * 100 + h.b.n
    first = h.a
    h.a = Struct(7)
    out[6], out[7], out[8] = h.b.n, first.n, h.a.n


PROGRAMS = [
    chains, given_back, namespaces, new_ones, holders, inner_objects, some_new_some_given, loops, early_returns,
    closures, asked_in_a_helper, carried, two_back, slots, made_for_a_field,
]  # fmt: skip


def reference(program, n):
    """Run a program as Python does, its functions without their decorators."""
    space = {}
    for name, value in program.__globals__.items():
        fn = getattr(value, "py_func", value)
        plain = isinstance(fn, FunctionType) and fn.__module__ == __name__
        space[name] = FunctionType(fn.__code__, space, name, None, fn.__closure__) if plain else value
    for cls in (Holder,):
        space[cls.__name__] = cls
    out = [0] * 9
    FunctionType(program.__code__, space)(out, n)
    return out


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_an_object_is_the_one_that_python_has(program):
    kernel = cuda.jit(program)
    compiled = Native(kernel, (np.zeros(9, np.int32), np.int32(0)))
    for n in (2, 5):
        wanted, outs = reference(program, n), [np.zeros(9, np.int32) for _ in range(2)]
        cute.simulate(kernel)[1, 1](outs[0], np.int32(n))
        compiled.run(1, outs[1], np.int32(n))
        assert [x.tolist() for x in outs] == [wanted] * 2


def test_what_calls_give_back_stays_in_registers():
    for program in (chains, given_back, new_ones, early_returns):
        made = cute.compile(cuda.jit(program), (np.zeros(9, np.int32), np.int32(0)), arch="sm_90a")
        assert made.resources.local == 0, program.__name__


# ---------------------------------------------------------------- registers


@cute.jit
def filled(n):
    regs = cute.make_rmem_tensor(2, cute.Float32)
    regs.fill(n)
    return regs, SimpleNamespace(regs=regs)


@cute.jit
def one_of_two(a, b, k):
    return a if k > 3 else b


def test_register_tensors_are_objects():
    @cuda.jit
    def kernel(out, n):
        a, held = filled(n)
        b = cute.make_rmem_tensor(2, cute.Float32)
        b.fill(0.0)
        a[0] += 1.0
        held.regs[1] = 7.0
        c = one_of_two(a, b, n)
        c[1] += 1.0
        out[0], out[1], out[2], out[3] = a[0], a[1], b[1], c is a
        for _i in range(n):
            x = a[0]
            new = cute.make_rmem_tensor(2, cute.Float32)
            new.fill(x + 1.0)
            a = new
        out[4] = a[0]

    compiled = Native(kernel, (np.zeros(5, np.float32), np.int32(0)))
    for n, wanted in ((2, [3, 7, 1, 0, 5]), (5, [6, 8, 0, 1, 11])):
        out = np.zeros(5, np.float32)
        compiled.run(1, out, np.int32(n))
        assert out.tolist() == wanted
