# SPDX-License-Identifier: Apache-2.0
"""Branches that are known while a kernel is compiled: what is not taken need not have types."""

import enum

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


def results(kernel, *args):
    """What a kernel writes into an array, in the simulator; it is compiled too."""
    out = np.zeros(8, np.float32)
    cute.simulate(kernel)[1, 1](out, *args)
    assert cute.compile(kernel, (out, *args)).resources.local == 0
    return out.tolist()


@cuda.jit(device=True)
def by_argument(out, at, flag, limit, kind=Kind.ONE):
    previous = None
    if cute.const_expr(not flag):
        previous = cute.make_rmem_tensor(2, cute.Float32)
        previous.fill(3.0)
    if flag:
        out[at] = 1
    else:
        out[at] = previous[1]
    if cute.const_expr(limit is not None or kind == Kind.TWO):
        out[at] += 10 + (0 if limit is None else limit)
    if kind is not Kind.ONE and limit is not None:
        out[at] += limit * 100


def test_arguments_of_device_functions_decide_branches():
    @cuda.jit
    def kernel(out):
        by_argument(out, 0, True, None)
        by_argument(out, 1, False, None)
        by_argument(out, 2, False, 4)
        by_argument(out, 3, flag=True, limit=2)
        tidx, _, _ = cute.arch.thread_idx()
        out[5] = tidx

    assert results(kernel) == [1, 3, 17, 13, 0, 0, 0, 0]


@cuda.jit(device=True)
def by_type(x, out, at):
    r = cute.rank(x)
    if cute.const_expr(r == 3 and cute.size(x) == 4):
        out[at] = x[0, 0, 3]
    elif cute.const_expr(r == 2 or cute.size(x) == 7):
        for i in cute.range_constexpr(cute.size(x)):
            out[at] += x[i] if cute.const_expr(i < cute.size(x, mode=[0])) else 1
    else:
        out[at] = x.no_such_shape


def test_types_decide_branches_on_const_expr():
    @cuda.jit
    def kernel(out):
        for i in cute.range_constexpr(4):
            if cute.const_expr(i == 0):
                x = cute.make_rmem_tensor((1, 1, 4), cute.Float32)
            elif cute.const_expr(i == 1):
                x = cute.make_rmem_tensor((2, 3), cute.Float32)
            else:
                x = cute.make_rmem_tensor(7, cute.Float32)
            x.fill(2.0)
            by_type(x, out, i)

    assert results(kernel) == [2, 8, 14, 14, 0, 0, 0, 0]


def test_what_is_reached_and_wrong_is_still_refused():
    @cuda.jit
    def kernel(out, n):
        x = cute.make_rmem_tensor((2, 3), cute.Float32)
        if n:
            out[0] = x[0, 0, 0]

    with pytest.raises(cute.CuteError, match=r"3 modes(.|\n)*x\[0, 0, 0\]"):
        cute.compile(kernel, (np.zeros(8, np.float32), 3))

    @cuda.jit
    def shapes(out):
        by_type(cute.make_rmem_tensor((2, 3, 1, 1), cute.Float32), out, 0)

    with pytest.raises(cute.CuteError, match="no_such_shape"):
        cute.compile(shapes, (np.zeros(8, np.float32),))


def test_names_are_compared_by_what_they_are():
    dtype = cute.Float16

    @cuda.jit
    def kernel(out):
        if cute.const_expr(dtype == cute.Float16 and dtype != cute.Float32):
            out[0] = 1
        else:
            out.none = 3
        if cute.const_expr(dtype is None):
            out.none = 3
        tidx, _, _ = cute.arch.thread_idx()
        out[1] = tidx + 2

    assert results(kernel)[:2] == [1, 2]


def test_the_bound_of_a_loop_is_known_in_its_body():
    @cuda.jit
    def kernel(x, out):
        regs = cute.make_rmem_tensor_like(x)
        count = cute.size(regs, mode=[0])
        cute.autovec_copy(x, regs)
        for i in cute.range_constexpr(count):
            after = 0 if i + 1 == count else i + 1
            whole = regs[(None,) if after > 0 else after]  # a vector or a number
            out[i] = whole[after] if after > 0 else whole

    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    tensors = cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(out)
    cute.simulate(kernel)[1, 1](*tensors)
    assert out.tolist() == [1, 2, 3, 0]
    assert cute.compile(kernel, *tensors).resources.local == 0
