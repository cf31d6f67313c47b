# SPDX-License-Identifier: Apache-2.0
"""Objects that a loop or a branch sets first: by way of the IR they are the same kernels, in both engines."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import pipeline

pytest.importorskip("xdsl")

from numba_cute import ir
from numba_cute.ir.from_kernels.module import from_kernel

from .test_from_kernel import read_back

PRODUCER = pipeline.PipelineUserType.Producer


@cuda.jit
def in_a_for(out, n):
    for i in range(n):
        if i == 1:
            state = pipeline.make_pipeline_state(PRODUCER, 4)
        if i >= 1:
            state.advance()
            out[i] = state.index


@cuda.jit
def in_a_while(out, n):
    i = 0
    while i < n:
        if i == 1:
            state = pipeline.make_pipeline_state(PRODUCER, 4)
        elif i > 1:
            state.advance()
            out[i] = state.index
        i += 1
    if n > 2:
        out[0] = state.count


@cuda.jit
def in_two_loops(out, n):
    for j in range(3):
        for i in range(n):
            if i + j == 2:
                state = pipeline.make_pipeline_state(PRODUCER, 4)
            if i + j > 2:
                state.advance()
    if n > 2:
        out[0] = state.count


@cuda.jit
def in_a_loop_that_breaks(out, n):
    for j in range(3):
        if n > 3:
            if out[j] > 0:
                break
            state = pipeline.make_pipeline_state(PRODUCER, 4)
            if out[j] < -7:
                continue
            state.advance()
        out[j] = j
    if n > 3:
        out[7] = state.count


@cuda.jit
def registers(out, n):
    i = 0
    while True:
        if i > n:
            break
        if i == 0:
            t = cute.make_rmem_tensor(4, cute.Int32)
            t.fill(3)
        if i > 2:
            t[i % 4] += 1
        i += 1
    if n > 2:
        out[0] = t[3]


@cuda.jit
def layouts(out, n):
    for i in range(n):
        if i == 1:
            a, b = cute.make_layout((4, n)), cute.make_layout((n, 4))
        if i > 1:
            a, b = cute.make_layout((4, n + b(0))), cute.make_layout((n + i, 4))
            out[i] = a(7) + b(5)


@cuda.jit
def vectors(out, n):
    for i in range(n):
        if i == 1:
            v = cute.full(4, i, cute.Int32)
        if i > 1:
            v = v + i
            out[i] = v[2]


@cute.struct
class Place:
    at: cute.Int64
    state: pipeline.PipelineState


@cuda.jit
def structs_in_structs(out, n):
    for i in range(n):
        if i == 1:
            place = Place(n, pipeline.make_pipeline_state(PRODUCER, 3))
        if i > 1:
            place.at += i
            place.state.advance()
            out[i] = place.at + place.state.index


KERNELS = (in_a_for, registers, in_a_while, in_two_loops, layouts, vectors, structs_in_structs)
USUAL = 2


@pytest.mark.parametrize(
    "kernel",
    [*KERNELS[:USUAL], *(pytest.param(k, marks=pytest.mark.slow) for k in KERNELS[USUAL:])],
    ids=[k.py_func.__name__ for k in KERNELS],
)
def test_what_a_loop_or_a_branch_sets_first(kernel):
    args = np.full(8, -1), 7
    again = ir.to_kernel(read_back(from_kernel(kernel, args, "sm_80")))
    for n in (7, 2):
        want, got = np.full(8, -1), np.full(8, -1)
        cute.simulate(kernel)[1, 1](want, n)
        cute.simulate(again)[1, 1](got, n)
        np.testing.assert_array_equal(got, want)
    cute.compile(again, args, arch="sm_80")


def test_an_object_that_two_ways_out_of_a_loop_carry_is_refused():
    """The module keeps the object of the round before for the way on which it is not made again."""
    args = np.full(8, -1), 7
    again = ir.to_kernel(read_back(from_kernel(in_a_loop_that_breaks, args, "sm_80")))
    for run in (lambda: cute.simulate(again)[1, 1](*args), lambda: cute.compile(again, args, arch="sm_80")):
        with pytest.raises(cute.CuteError, match="may still be that of an earlier round .*Make two before the loop"):
            run()
