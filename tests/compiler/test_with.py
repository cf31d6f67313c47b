# SPDX-License-Identifier: Apache-2.0
"""`with cute.arch.elect_one():` is `if`, wherever it stands; any other `with` is refused."""

import contextlib

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.arch import elect_one

STEP = 3


@cute.jit
def counted(out, at):
    with elect_one():
        out[at] += STEP
        return 1
    return 0


class Counting:
    def __init__(self, first):
        self.first = first

    @cute.jit
    def within(self, out, more=2):
        with cute.arch.elect_one():
            out[self.first] += more

    @cute.kernel
    def kernel(self, out):
        tidx, _, _ = cute.arch.thread_idx()
        if tidx // 32 == 1:
            for _ in range(2):
                with cute.arch.elect_one():
                    out[0] += 1
                    if tidx > 100:
                        break
                self.within(out)
            elected = counted(out, 2)
            with cute.arch.elect_one():
                assert elected == 1


@cute.kernel
def of_a_class(out, kind: cute.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    if tidx // 32 == 0:
        kind(tidx // 32).within(out, more=4)


def test_in_methods_of_a_class_that_is_an_argument():
    out = np.zeros(1, np.int32)
    cute.simulate(of_a_class)[1, 64](out, Counting)
    assert out[0] == 4
    assert cute.compile(of_a_class, (out, Counting), arch="sm_90a").ptx


def closing_over(scale):
    @cuda.jit
    def kernel(out):
        with cute.arch.elect_one():
            out[0] = scale
        for i in range(scale):
            with elect_one():
                if i == 4:
                    continue
                out[1] = i + 2

    return kernel


def test_it_is_an_if():
    out = np.zeros(3, np.int32)
    kernel = Counting(1).kernel
    cute.simulate(kernel)[1, 64](out)
    assert out.tolist() == [2, 4, 3]
    assert cute.compile(kernel, out).ptx.count("elect.sync") >= 3
    for scale in (5, 7):
        cute.simulate(closing_over(scale))[1, 32](out)
        assert out[:2].tolist() == [scale, 5 if scale == 5 else 8]
        assert "elect.sync" in cute.compile(closing_over(scale), out).ptx


@cuda.jit
def named(out):
    lane = cute.arch.lane_idx()
    for i in range(2):
        with elect_one() as e:
            out[i] = lane + 1 if e else -1
    out[2 + lane] = 5 if e else 6


def test_it_gives_what_was_asked():
    out = np.zeros(34, np.int32)
    cute.simulate(named)[1, 32](out)
    assert out.tolist() == [1, 1, 5, *[6] * 31]
    assert cute.compile(named, out).ptx.count("elect.sync") >= 1


def test_any_other_is_refused():
    @cuda.jit
    def kernel(out):
        cute.arch.thread_idx()
        with contextlib.nullcontext():
            out[0] = 1

    space = {"cute": cute}
    exec("def kernel(out):\n    with cute.arch.elect_one():\n        out[0] = 1\n", space)
    out = np.zeros(1, np.int32)
    for wrong, said in (
        (kernel, r"`with contextlib.nullcontext\(\):` in a kernel: a kernel has no context managers"),
        (cuda.jit(space["kernel"]), "are read from the source, which is not there"),
    ):
        with pytest.raises(cute.CuteError, match=said):
            cute.simulate(wrong)[1, 32](out)
        with pytest.raises(cute.CuteError, match=said):
            cute.compile(wrong, out)
