# SPDX-License-Identifier: Apache-2.0
"""f64 mma, whose accumulator ptxas loses unless it is hidden from it (isa/rows/mma.py, `_OPAQUE`)."""

from __future__ import annotations

import re

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack

from .test_warp_mma import multiply, small, tensor

F64 = cute.Float64
SHAPES = [(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("keep", [False, True])
def test_a_run_time_flag_decides_whether_it_adds(run, rng, shape, keep):
    m, n, k = shape
    a, b, c = small(rng, (m, k), F64), small(rng, (n, k), F64), small(rng, (m, n), F64) + 10
    d = np.empty((m, n), np.float64)

    def check():
        np.testing.assert_array_equal(d, a @ b.T + keep * c)

    tiled = cute.make_tiled_mma(warp.MmaF64Op(shape))
    args = [tiled, keep, *(tensor(x, F64) for x in (a, b, c, d))]
    run(multiply, 1, 32, args, outputs=[d], check=check, arch="sm_90")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_assembler_loads_the_whole_accumulator(shape):
    """Of what it keeps or replaces by zero; without the mend it loads two of the four."""
    m, n, k = shape
    arrays = [from_dlpack(np.zeros(s)) for s in ((m, k), (n, k), (m, n), (m, n))]
    compiled = cute.compile(multiply, (cute.make_tiled_mma(warp.MmaF64Op(shape)), True, *arrays), arch="sm_90a")
    loads = sum(int(w or 64) for w in re.findall(r"LDG\.E(?:\.(64|128))?", compiled.sass)) // 64
    assert loads == (m * k + n * k + m * n) // 32
