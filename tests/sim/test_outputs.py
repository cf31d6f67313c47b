# SPDX-License-Identifier: Apache-2.0
"""Elements of an output that nobody wrote are told."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from numba_cute.sim import UninitializedReadError, simulate


def half(x, out):
    t = cuda.threadIdx.x
    if t < 16:
        out[t] = x[t]


def whole(x, out):
    t = cuda.threadIdx.x
    out[t] = x[t]


@pytest.mark.parametrize("made", [np.asarray, from_dlpack], ids=["array", "tensor"])
@pytest.mark.parametrize("outputs", ["out", ("out",)], ids=str)
def test_elements_that_nobody_wrote_are_told(made, outputs):
    x, memory = np.ones(32, np.float32), np.zeros(64, np.float32)
    with pytest.raises(UninitializedReadError, match=r"16 of 32 elements were never written, out\[16\] first .*16-31"):
        simulate(half, outputs=outputs)[1, 32](x, made(memory[:32]))
    simulate(whole, outputs=outputs)[1, 32](x, made(memory[:32]))


def test_a_view_with_steps_has_its_own_elements_alone():
    x, memory = np.ones(32, np.float32), np.zeros((32, 2), np.float32)
    simulate(whole, outputs="out")[1, 32](x, memory[:, 1])
    with pytest.raises(UninitializedReadError, match=r"1 of 33 elements were never written, out\[32\] first"):
        simulate(whole, outputs="out")[1, 32](x, np.zeros((33, 3), np.int16)[:, 2])


def test_a_name_that_is_no_parameter_is_refused():
    with pytest.raises(cute.CuteError, match="outputs 'y' is not a parameter of the kernel, which has x, out"):
        simulate(half, outputs="y")
    with pytest.raises(cute.CuteError, match="outputs needs the check `races`"):
        simulate(half, outputs="out", checks=False)
