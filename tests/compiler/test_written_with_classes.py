# SPDX-License-Identifier: Apache-2.0
"""What files that are written with many classes do in kernels: subclasses of this library's, dictionaries of `self`,
classes as arguments, closures over tensors, functions that call themselves with other static arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import pipeline, utils
from numba_cute.pipeline import PipelineAsync as Ours


def elect(method, self, state, one):
    if one:
        cute.arch.sync_warp()
        with cute.arch.elect_one():
            method(self, state, loc=None, ip=None)
    else:
        method(self, state)


class ByIndex:
    @cute.dsl_user_op
    def wait(self, index, phase, *, loc=None, ip=None):
        self.consumer_wait(pipeline.PipelineState(stages=0, count=cute.Int32(0), index=index, phase=phase))


@dataclass(frozen=True)
class Elected(ByIndex, Ours):
    _one: bool = False

    @staticmethod
    def create(*args, one=False, **named):
        made = Ours.create(*args, **named)
        object.__setattr__(made, "__class__", Elected)
        object.__setattr__(made, "_one", one)
        return made

    @cute.dsl_user_op
    def producer_commit(self, state, *, loc=None, ip=None):
        elect(Ours.producer_commit, self, state, self._one)


@cuda.jit
def elected_commit(out):
    tidx = cute.arch.thread_idx()[0]
    group = partial(pipeline.CooperativeGroup, pipeline.Agent.Thread)
    p = Elected.create(num_stages=2, producer_group=group(1), consumer_group=group(32), one=True)
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
    numbers = cute.make_tensor(cute.arch.alloc_smem(cute.Int32, 32), cute.make_layout(32))
    if tidx < 32:
        p.producer_acquire(state)
        numbers[tidx] = tidx
        p.producer_commit(state)
    else:
        p.wait(0, 0)
        out[tidx - 32] = numbers[63 - tidx]


def test_a_frozen_dataclass_below_a_pipeline(run):
    out = np.zeros(32, np.int32)
    run(elected_commit, 1, 64, [out], outputs=[out], check=lambda: (out == 31 - np.arange(32)).all(), arch="sm_90a")


class Tile(utils.WorkTileInfo):
    """One that says more."""

    @property
    def row(self):
        return self.tile_idx[0]


class Tiles:
    def __init__(self, first, last):
        self.at, self.last = first, last

    @staticmethod
    def create(last):
        return Tiles(cute.arch.thread_idx()[0], last)

    def work(self):
        return Tile((self.at, 0, 0), self.at < self.last)

    def advance(self):
        self.at += 4
        return self.work()


class Sums:
    def __init__(self):
        self.step = {"row": 2, "column": {"kind": cute.Int32, "n": 3}}

    @cute.kernel
    def kernel(self, out: cute.Tensor, last: cute.Int32, kind: cute.Constexpr[Callable]):
        tiles = kind.create(last)
        work = tiles.work()
        total = cute.Int32(0)
        while work.is_valid_tile:
            total += work.row * self.step["row"] + self.step["column"]["n"]
            work = tiles.advance()
        if cute.const_expr("row" in self.step and "other" not in self.step):
            total += self.step["column"].items()[1][1] * len(self.step) + self.step.get("none", 100)
        out[cute.arch.thread_idx()[0]] = total

    @cute.jit
    def __call__(self, out, last):
        self.kernel(out, last, Tiles).launch(grid=1, block=4)


def test_a_subclass_that_adds_methods_and_a_dictionary_and_a_class_as_argument():
    out = np.zeros(4, np.int32)
    t = cute.runtime.from_dlpack(out)
    cute.simulate(Sums(), arch="sm_90a")(t, cute.Int32(10))
    expected = [sum(2 * n + 3 for n in range(i, 10, 4)) + 106 for i in range(4)]
    assert out.tolist() == expected
    assert cute.compile(Sums(), t, cute.Int32(10), arch="sm_90a").kernels[0].resources.spill_stores == 0


def copying(source, target):
    def copy(i, **where):
        target[where["to"]] = source[i]

    return copy


def doubled(copy, target):
    def twice(i):
        copy(i, to=i)
        target[i] = target[i] * 2

    return twice


@cuda.jit
def by_closures(source, target):
    twice = doubled(copying(source, target), target)
    for i in range(cute.size(source)):
        twice(i)


@cute.jit
def add(a, b, n: cute.Constexpr[int], turned: cute.Constexpr[bool]):
    if cute.const_expr(turned):
        add(b, a, n, turned=False)
    elif cute.const_expr(n > 0):
        a[n] = b[n] + n
        add(a, b, n - 1, False)


@cuda.jit
def by_itself(source, target):
    add(source, target, 3, True)


@pytest.mark.parametrize("kernel, expected", [(by_closures, [2, 4, 6, 8]), (by_itself, [0, 3, 5, 7])])
def test_closures_and_functions_that_call_themselves(kernel, expected):
    source, target = np.arange(1, 5, dtype=np.int32), np.zeros(4, np.int32)
    tensors = [cute.runtime.from_dlpack(x) for x in (source, target)]
    cute.simulate(kernel)[1, 1](*tensors)
    assert target.tolist() == expected
    assert cute.compile(kernel, tensors).resources.spill_stores == 0


@dataclass
class Scaled:
    by: cute.Int32
    threshold: cute.Constexpr[float] = 0.0

    @cute.jit
    def put(self, out, at, *, more: cute.Constexpr[int] = 0, first=None):
        if cute.const_expr(self.threshold > 0.0):
            if out[at] > -self.threshold:
                out[at] += cute.Int32(self.threshold * 4) * self.by + more
        else:
            out[at] = 100
        if at > 2:
            out[at] += 1000 if cute.const_expr(first is None) else first


@cuda.jit
def by_names(source, out):
    bounded, free = Scaled(source[0], threshold=1.5), Scaled(source[0])
    for i in range(4):
        named = dict(more=7, first=source[3])
        partial(bounded.put, out, **named)(i)
    free.put(out, 1)


@cute.dsl_user_op
def kind(x):
    return 1 if isinstance(x, cute.Float32) else 2 if isinstance(x, (cute.Int32, cute.Boolean)) else 3


@cuda.jit
def by_kinds(source, out):
    out[0] = kind(cute.Float32(source[0])) * 10 + kind(source[0])
    out[1] = kind(source[0] > 3) * 10 + kind(3)
    out[2] = 5 if isinstance(source[1], cute.Int32) else 6
    out[3] = 5 if isinstance(7, cute.Int32) else 6


@pytest.mark.parametrize("kernel, expected", [(by_names, [13, 100, 13, 17]), (by_kinds, [12, 23, 5, 6])])
def test_static_floats_of_fields_named_arguments_and_element_types(kernel, expected):
    source, out = np.arange(1, 5, dtype=np.int32), np.zeros(4, np.int32)
    tensors = [cute.runtime.from_dlpack(x) for x in (source, out)]
    cute.simulate(kernel)[1, 1](*tensors)
    assert out.tolist() == expected
    assert cute.compile(kernel, tensors).resources.spill_stores == 0


def test_what_a_dictionary_lacks_is_said():
    class Asks(Sums):
        @cute.kernel
        def kernel(self, out: cute.Tensor, last: cute.Int32, kind: cute.Constexpr[Callable]):
            out[0] = self.step["rows"]

    with pytest.raises(cute.CuteError, match="key 'rows' is not in the dictionary: it has 'row', 'column'"):
        cute.simulate(Asks())(cute.runtime.from_dlpack(np.zeros(4, np.int32)), cute.Int32(1))
