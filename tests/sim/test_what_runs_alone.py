# SPDX-License-Identifier: Apache-2.0
"""Which kernels run lane by lane, and that lanes together may read what the host holds."""

from typing import NamedTuple

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels.gemm import launches
from numba_cute.kernels.gemm.plan import Plan
from numba_cute.sim.lanes.replayable import uses_library
from numba_cute.sim.launch import Simulated

from .test_convoys import branches, hand_over, launched, local_arrays, plain_kernels_too, tensors  # noqa: F401


def printing(out):
    print("lane", cuda.threadIdx.x)


def catching(out):
    try:
        out[cuda.threadIdx.x] = 1
    except IndexError:
        out[0] = 2


def formatting():
    cute.printf("lane %d\n", arch.lane_idx())


def test_what_prints_or_catches_runs_lane_by_lane(capsys):
    assert not launched(formatting, 1, 2, []).shared
    assert capsys.readouterr().out == "lane 0\nlane 1\n"
    assert not launched(printing, 1, 4, [np.zeros(4)]).shared
    assert capsys.readouterr().out == "".join(f"lane {t}\n" for t in range(4))
    out = np.zeros(4)
    assert not launched(catching, 1, 8, [out]).shared
    assert out.tolist() == [2, 1, 1, 1]


def test_what_changes_the_hosts_objects_runs_lane_by_lane():
    order, counts = [], []

    def helper():
        counts.append(1)

    def appends():
        order.append(cuda.threadIdx.x)
        helper()

    assert not launched(appends, 1, 40, []).shared
    assert order == list(range(40)) and len(counts) == 40


class Scale:
    def __init__(self, by):
        self.by, self.rows = by, [{"first": 3}, {"first": 5}]

    def of(self, x):
        return x * self.by + self.rows[1]["first"]


def test_what_the_host_holds_is_read_by_lanes_together(rng):
    table, named, scale = [2, [7]], {"more": 4}, Scale(3)

    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = scale.of(x[i]) * table[1][0] + named["more"] * table[0]

    x, out = rng.random(64), np.zeros(64)
    assert launched(kernel, 1, 64, [x, out]).shared
    assert (out == (x * 3 + 5) * 7 + 8).all()


class Place(NamedTuple):
    row: int
    column: int


def test_kernels_that_make_named_tuples_run_together(rng):
    def kernel(x, out):
        i = cuda.grid(1)
        at = Place(i // 8, i % 8)
        out[at.row * 8 + at.column] = x[i]

    x, out = rng.random(64), np.zeros(64)
    assert launched(kernel, 1, 64, [x, out]).shared
    assert (out == x).all()


def test_python_on_plain_numbers_runs_lane_by_lane():
    assert not uses_library(branches) and not uses_library(local_arrays)
    assert uses_library(tensors) and uses_library(hand_over)


def test_a_gemm_of_16_bits_runs_together(monkeypatch):
    """Its results leave by stmatrix, of registers that hold two elements each."""
    ways, once = [], Simulated._once
    monkeypatch.setattr(Simulated, "_once", lambda self, *args, **k: ways.append(args[-1]) or once(self, *args, **k))
    a, b, c = (np.ones(shape, cute.BFloat16.numpy) for shape in ((128, 64), (64, 64), (128, 64)))
    launches.simulate(a, b, c, cute.BFloat16, Plan(64, 1, stages=2))
    assert (c == 64).all() and ways == [True]
