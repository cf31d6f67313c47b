# SPDX-License-Identifier: Apache-2.0
import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute


@pytest.fixture
def run_sim():
    """Run a kernel with one block in the simulator."""

    def run(kernel, threads, *args, blocks=1):
        cute.simulate(kernel)[blocks, threads](*args)

    return run


@pytest.fixture
def aligned():
    """An array of normal random numbers, its address a multiple of 128 bytes."""
    rng = np.random.default_rng(20240601)

    def make(shape, dtype=ml_dtypes.bfloat16, fill=None):
        count, size = int(np.prod(shape)), np.dtype(dtype).itemsize
        raw = np.zeros(count * size + 128, np.uint8)
        start = -raw.ctypes.data % 128
        array = raw[start : start + count * size].view(dtype).reshape(shape)
        array[...] = rng.standard_normal(shape).astype(dtype) if fill is None else fill
        return array

    return make
