# SPDX-License-Identifier: Apache-2.0
"""`x.set(…)` as a statement sets the variable `x` where `x` is an atom, as it changes the atom in the CuTe DSL."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import warp
from tests.native import Native

ACCUMULATE = warp.Field.ACCUMULATE
TILED = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))


@cute.struct
class Box:
    value: cute.Int32

    def set(self, value):
        self.value = value
        return 100


@cuda.jit(device=True)
def within(mma, value):
    mma.set(ACCUMULATE, value)
    return mma.get(ACCUMULATE)


@cuda.jit
def sets(out, mma, n):
    mma.set(ACCUMULATE, False)
    out[0] = mma.get(ACCUMULATE)
    out[1] = within(mma, True)
    out[2] = mma.get(ACCUMULATE)  # of the caller's variable
    for _ in range(n):
        out[3] += mma.get(ACCUMULATE)
        mma.set(ACCUMULATE, True)
    first = mma.set(ACCUMULATE, False)  # no statement
    out[4] = 10 * mma.get(ACCUMULATE) + first.get(ACCUMULATE)
    if n > 2:
        mma.set(ACCUMULATE, n == 3 if n > 2 else True)
    else:
        mma.set(field=ACCUMULATE, value=n != 1)
    out[5] = mma.get(ACCUMULATE)
    other = mma
    other.set(ACCUMULATE, n > 100)
    out[6] = other.get(ACCUMULATE)
    for _ in cute.range_constexpr(2):
        other.set(ACCUMULATE, True)
        other.set(ACCUMULATE, not other.get(ACCUMULATE))
    out[7] = other.get(ACCUMULATE)
    box = Box(3)
    box.set(5)
    out[8] = box.value


@pytest.mark.parametrize("n, last", [(1, 0), (2, 1), (3, 1), (6, 0)])
def test_a_set_in_a_statement_sets_its_variable(n, last):
    expected = [0, 1, 0, n - 1, 10, last, 0, 0, 5]
    out = np.zeros(9, np.int32)
    cute.simulate(sets)[1, 1](out, TILED, n)
    assert out.tolist() == expected
    compiled = np.zeros(9, np.int32)
    Native(sets, (compiled, TILED, n)).run(1, compiled, TILED, n)
    assert compiled.tolist() == expected


def test_its_value_is_static_where_it_is_written_so():
    @cuda.jit
    def kernel(out, mma):
        mma.set(ACCUMULATE, False)
        out[0] = 1 if cute.const_expr(mma.get(ACCUMULATE)) else 2

    out = np.zeros(1, np.int32)
    cute.simulate(kernel)[1, 1](out, TILED)
    assert out[0] == 2
    cute.compile(kernel, out, TILED)


def test_a_field_that_there_is_not_is_refused():
    @cuda.jit
    def kernel(mma):
        mma.set(warp.Field.METADATA, False)

    for run in (lambda: cute.simulate(kernel)[1, 1](TILED), lambda: cute.compile(kernel, TILED)):
        with pytest.raises(cute.CuteError, match="METADATA"):
            run()
