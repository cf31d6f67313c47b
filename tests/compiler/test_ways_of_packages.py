# SPDX-License-Identifier: Apache-2.0
"""What Quack's kernels are written with: each is Python's in the simulator, and compiles."""

from __future__ import annotations

import enum
import functools
import math
import operator
from typing import Any

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError
from tests.compiler.test_files_of_the_dsl import both

NETWORKS = {2: [[(0, 1)]], 4: [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]]}


class Mode(enum.IntEnum):
    ADD = 0
    MUL = 1


class Divisor:
    """An object of the host that says what operators of numbers do with it."""

    def __init__(self, by: Any) -> None:
        self.by = by

    def __rdivmod__(self, x: Any) -> Any:
        return x // self.by, x % self.by


class Job:
    """An object with what a kernel asks: a float, a member, a divisor."""

    def __init__(self, by: Any) -> None:
        self.scale, self.mode, self.by = 2.0, Mode.MUL, Divisor(by)

    @cute.kernel
    def kernel(self, x: cute.Tensor):
        from math import floor as down

        one = cute.const_expr(1.0)
        if cute.const_expr(self.scale != 0.0):
            x[0] = x[0] * self.scale + one
        if cute.const_expr(self.mode in [Mode.ADD, Mode.MUL] and self.mode == Mode.MUL):
            x[1] = down(x[1])
        q, r = divmod(cute.Int32(cute.arch.thread_idx()[0] + 7), self.by)
        x[2] = q
        x[3] = r


def test_floats_members_imports_and_own_operators():
    x = np.array([1.5, 1.5, 0, 0], np.float32)
    both(Job(cute.Int32(3)).kernel, from_dlpack(x))
    assert x.tolist() == [4.0, 1.0, 2.0, 1.0]


@cute.jit
def swap(t: Any, i: Any, j: Any) -> None:
    a, b = t[i], t[j]
    t[i] = min(a, b)
    t[j] = max(a, b)


@cute.jit
def sort(t: Any, n: cute.Constexpr) -> None:
    for level in NETWORKS[n]:
        for i, j in level:
            swap(t, i, j)


@cute.jit
def reduced(x: Any, op: Any, negated: cute.Constexpr = False) -> Any:
    named = {}
    if cute.const_expr(negated):
        named["negated"] = True
    return combined(x, op, **named)


def combined(x: Any, op: Any, negated: bool = False) -> Any:
    found = functools.reduce(op, (x[i] for i in range(cute.size(x))))
    return -found if negated else found


@cute.jit
def picked(table: Any, key: cute.Constexpr) -> Any:
    return table[key] + table.get("more", 1)


def test_dictionaries_of_the_host_and_that_are_handed_on_and_arguments_by_name():
    @cute.kernel
    def k(x: cute.Tensor):
        t = cute.make_rmem_tensor(4, cute.Float32)
        t.store(x.load())
        sort(t, 4)
        x[0] = reduced(t, operator.add, True)
        x[1] = picked({"a": x[1], "b": 5}, "b")
        x[2] = t[0]
        x[3] = t[3]

    x = np.array([3, 1, 4, 2], np.float32)
    both(k, from_dlpack(x))
    assert x.tolist() == [-10, 6, 1, 4]


class Many:
    """An object of more arguments than Python passes one by one."""

    def __init__(self, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q):  # noqa: E741
        self.sum, self.first, self.last = b + c + d + e + f + g + h + i + j + k + l + m + n + o + p, a, q


@pytest.mark.parametrize("static", [False, True])
def test_many_named_arguments_one_of_which_branches(static):
    @cute.kernel
    def k(x: cute.Tensor, first: cute.Constexpr):
        n = x[0]
        made = Many(
            a=n if cute.const_expr(first) else 2 * n, b=1, c=1, d=1, e=1, f=1, g=1, h=1, i=1, j=1, k=1, l=1, m=1, n=1,
            o=1, p=1, q=n if n > 3 else cute.Int32(16),
        )  # fmt: skip
        x[1], x[2], x[3] = made.first, made.sum, made.last

    for n, last in ((3, 16), (5, 5)):
        x = np.array([n, 0, 0, 0], np.int32)
        both(k, from_dlpack(x), static)
        assert x.tolist() == [n, n if static else 2 * n, 15, last]


def test_many_named_arguments_beside_an_import_in_the_function():
    @cute.kernel
    def k(x: cute.Tensor):
        from math import ceil

        n, few = x[0], {"a": 1, "b": 2}
        made = Many(a=n, b=1, c=1, d=1, e=1, f=1, g=1, h=1, i=1, j=1, k=1, l=1, m=1, n=1, o=1, p=1, q=few["b"])
        x[1] = made.first + made.sum + made.last + ceil(0.5)

    x = np.array([4, 0], np.int32)
    both(k, from_dlpack(x))
    assert x.tolist() == [4, 4 + 15 + 2 + 1]


def test_vectors_are_changed_in_place_and_recast_registers_are_set():
    @cute.kernel
    def k(x: cute.Tensor, bits: cute.Tensor):
        y = x.load()
        y *= y
        y += 1.0
        z = 2
        z *= y
        x.store(z)
        r = cute.make_rmem_tensor((2, 2), cute.Float32)
        r.fill(1.0)
        whole = cute.recast_tensor(r, cute.Int32)
        for i in cute.range_constexpr(int(math.log2(cute.size(r)))):
            whole[i] = whole[i] | 1
        bits.store(whole.load().reshape(4))

    x, bits = np.arange(4, dtype=np.float32), np.zeros(4, np.int32)
    both(k, from_dlpack(x), from_dlpack(bits))
    assert x.tolist() == [2, 4, 10, 20]
    assert bits.tolist() == [0x3F800001] * 2 + [0x3F800000] * 2


class Plan:
    """An object of which a host's method sets fields by name, and asks for another."""

    def __init__(self, ragged):
        self.ragged = ragged

    def prepare(self):
        self.mode = 1 if getattr(self, "ragged", False) else 2


class Manager:
    """An object that a kernel makes of what it is given."""

    def __init__(self, given):
        self.ragged = cute.const_expr(given is not None)

    def rows(self, n):
        return 1 if cute.const_expr(self.ragged) else n


@cute.jit
def swizzled(t, shift: int | None = None):
    log = int(math.log2(cute.size(t)))
    if cute.const_expr(shift is None):
        shift = log
    swizzle = cute.make_swizzle(min(2, shift), 0, min(shift, log))
    return cute.make_composed_layout(swizzle, 0, cute.make_layout(1 << log))(cute.size(t) - 1)


def test_settings_of_the_host_and_logarithms_of_sizes_are_static():
    plan = Plan(True)
    plan.prepare()

    class Kernel:
        def __init__(self):
            self.plan = plan

        def prepare(self):
            self.plan.prepare()

        @cute.kernel
        def kernel(self, x: cute.Tensor):
            x[0] = Manager(None).rows(x[0]) + self.plan.mode
            for n in (4, 8):
                x[n // 4] = swizzled(cute.make_rmem_tensor(n, cute.Float32))
            x[3] = swizzled(x, 2)

    x = np.array([5, 0, 0, 0], np.int32)
    both(Kernel().kernel, from_dlpack(x))
    assert x.tolist() == [6, 3, 7, 3]


@cute.jit
def began(x, n):
    if n > 2:
        x[3] = 1
    r = cute.make_rmem_tensor(2, cute.Int32)
    r.fill(n)
    return [x, r]


@cute.jit
def begun(x, names, n):
    return {name: began(x, n) for name in names}


@cute.jit
def counted(held, n):
    for i in range(n):
        held["a"][1][0] = held["a"][1][0] + i
    return held["a"][1][0]


def test_dicts_hold_lists():
    @cute.kernel
    def k(x: cute.Tensor):
        held = begun(x, ("a", "b"), x[0])
        held["b"][1][0] = 5
        x[1] = counted(held, x[0])
        x[2] = len(held["a"]) + held["b"][1][0]

    x = np.array([4, 0, 0, 0], np.int32)
    both(k, from_dlpack(x))
    assert x.tolist() == [4, 10, 7, 1]


def test_methods_that_a_package_adds_to_tensors(monkeypatch):
    original = cute.Tensor.__getitem__

    def getitem(self, index, *, loc=None, ip=None):
        if isinstance(index, tuple):
            index = tuple(None if isinstance(i, slice) and i == slice(None) else i for i in index)
        return original(self, index, loc=loc, ip=ip)

    def to(self, dtype):
        made = cute.make_rmem_tensor_like(self, dtype)
        made.store(self.load().to(dtype))
        return made

    monkeypatch.setattr(cute.Tensor, "__getitem__", cute.dsl_user_op(getitem))
    monkeypatch.setattr(cute.Tensor, "to", cute.dsl_user_op(to), raising=False)

    @cute.kernel
    def k(x: cute.Tensor):
        r = cute.make_rmem_tensor(2, cute.Float32)
        r.store(x[:, 1].load())
        x[0, 0] = r.to(cute.Int32)[1]

    x = np.array([[0, 1.5], [2, 3.5]], np.float32)
    both(k, from_dlpack(x))
    assert x.tolist() == [[3, 1.5], [2, 3.5]]

    @cute.kernel
    def part(x: cute.Tensor):
        x[0, 0] = x[0:1, 1].load()[0]

    with pytest.raises(CuteError, match="a slice is none"):
        both(part, from_dlpack(x))


class Advancing(cute.pipeline.PipelineState):
    """A pipeline's state with a method of the user's."""

    @cute.dsl_user_op
    def advance_iters(self, n, *, loc=None, ip=None):
        self._count += n
        reached = self._index + n
        self._phase ^= reached // self.stages
        self._index = reached % self.stages


def test_a_class_below_a_struct_and_reserved_memory():
    @cute.kernel
    def k(x: cute.Tensor):
        state = Advancing(3, cute.Int32(0), cute.Int32(0), cute.Int32(0))
        state.advance_iters(4)
        smem = cute.utils.SmemAllocator()
        own = smem.allocate_tensor(cute.Int32, 2, partition=cute.utils.SmemPartition.RESERVED)
        own[0] = state.count
        own[1] = state.index
        x[0] = own[0]
        x[1] = own[1]
        x[2] = state.phase

    x = np.zeros(3, np.int32)
    both(k, from_dlpack(x))
    assert x.tolist() == [4, 1, 1]


class Tile:
    """An object that holds integers in a tuple."""

    def __init__(self, at: Any, valid: Any) -> None:
        self.at, self.valid = at, valid


@cute.jit
def first_tile(n: Any) -> Any:
    return Tile((n, cute.Int32(0)), n > 0)


@cute.jit
def next_tile(tile: Any) -> Any:
    return Tile((tile.at[0] - 1, tile.at[1] + 2), tile.at[0] > 1)


def test_objects_meet_whose_tuples_hold_what_came_of_arithmetic():
    @cute.kernel
    def k(x: cute.Tensor):
        tile = first_tile(cute.Int32(x[0]))
        total = tile.at[0]
        while tile.valid:
            total += tile.at[1]
            tile = next_tile(tile)
        x[1] = total
        x[2] = tile.at[1]

    x = np.array([3, 0, 0], np.int32)
    both(k, from_dlpack(x))
    assert x.tolist() == [3, 3 + 0 + 2 + 4, 6]
