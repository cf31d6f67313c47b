# SPDX-License-Identifier: Apache-2.0
"""What checks say of lanes that ran together is word for word what they say of lanes alone."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim import launch, simulate


def _tile(x, n=32):
    return cute.make_tensor(x, cute.make_layout(n))


def _shared():
    return cute.arch.alloc_smem(cute.Float32, 64)


def _reads_a_neighbours(x, out):
    t, s = cuda.threadIdx.x, cute.make_tensor(_shared(), cute.make_layout(64))
    s[t] = _tile(x)[t]
    _tile(out)[t] = s[t ^ 1]


def _overwrites_what_others_read(x, out):
    t, s = cuda.threadIdx.x, cute.make_tensor(_shared(), cute.make_layout(64))
    s[t] = _tile(x)[t]
    cuda.syncthreads()
    _tile(out)[t] = s[t // 2]
    s[t] = 0.0


def _beyond_the_shape(x, out):
    t = cuda.threadIdx.x
    _tile(out)[t] = _tile(x, 31)[t]


def _writes_one_place(x, out):
    t = cuda.threadIdx.x
    _tile(out)[t // 31] = _tile(x)[t]


def _nobody_wrote_it(x, out):
    t, s = cuda.threadIdx.x, cute.make_tensor(_shared(), cute.make_layout(64))
    s[t] = _tile(x)[t]
    cuda.syncthreads()
    _tile(out)[t] = s[t + 1]


def _registers_that_nobody_wrote(x, out):
    t, r = cuda.threadIdx.x, cute.make_rmem_tensor(cute.make_layout(2), cute.Float32)
    r[0] = _tile(x)[t]
    _tile(out)[t] = r[t // 31]


def _outside_of_memory(x, out):
    t = cuda.threadIdx.x
    _tile(out, 64)[t + t // 31] = _tile(x)[t]


def _misses_a_fence_of_the_warp(x, out):
    t = cuda.threadIdx.x
    _tile(out)[t] = _tile(x)[t]
    _tile(x)[31 - t] = 0.0


WRONG = [_reads_a_neighbours, _overwrites_what_others_read, _beyond_the_shape, _writes_one_place, _nobody_wrote_it,
         _registers_that_nobody_wrote, _outside_of_memory, _misses_a_fence_of_the_warp]  # fmt: skip


@pytest.mark.parametrize("kernel", WRONG, ids=lambda k: k.__name__[1:])
def test_reports_of_lanes_that_ran_together_are_those_of_lanes_alone(monkeypatch, kernel):
    x, out = np.ones((2, 32), np.float32)

    def said():
        with pytest.raises(cute.CuteError) as caught:
            simulate(kernel)[1, 32, 0, 256](x, out)
        return str(caught.value)

    ways = []
    once = launch.Simulated._once
    monkeypatch.setattr(launch.Simulated, "_once", lambda self, *a, **k: (ways.append(a[-1]), once(self, *a, **k))[1])
    together = said()
    monkeypatch.setattr(launch, "why_alone", lambda *_: "a test")
    assert said() == together
    assert ways == [True, False, False]


def test_lanes_that_write_the_same_to_one_place_do_so_in_turn():
    def kernel(x, out):
        t = cuda.threadIdx.x
        _tile(out)[t // 2] = _tile(x)[t // 2]

    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    assert simulate(kernel, checks=("-same_values",)).once((1, 1, 1), (32, 1, 1), 0, [(x, out)], None).shared
    np.testing.assert_array_equal(out[:16], x[:16])
