# SPDX-License-Identifier: Apache-2.0
"""Register files: packed words, conversions and memory, without local memory."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam


@seam.frozen
class Registers:
    file: object
    dtype: object
    count: object

    def __getitem__(self, i):
        return seam.current().read(seam.Regs(self.file, self.dtype, i, 1))

    def __setitem__(self, i, value):
        seam.current().write(seam.Regs(self.file, self.dtype, i, 1), value)

    def load(self):
        return seam.current().vector(self.all)

    def store(self, vector):
        seam.current().unvector(vector, self.all)

    @property
    def all(self):
        return seam.Regs(self.file, self.dtype, 0, self.count)


@seam.traced
def registers(dtype, count):
    return Registers(seam.current().registers(dtype, count), dtype, count)


@seam.traced
def converted(source, dtype):
    out = registers(dtype, source.count)
    out.store(seam.current().convert(source.load(), source.dtype, dtype, source.count))
    return out


DTYPES = (cute.Float32, cute.Float16, cute.BFloat16, cute.Int32, cute.Int16, cute.Int8, cute.Uint8)


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_values_go_through_packed_registers(run, rng, dtype):
    @cuda.jit
    def kernel(source, out):
        wide = registers(cute.Float32, 8)
        for i in cute.range_constexpr(8):
            wide[i] = source[cuda.threadIdx.x, i]
        narrow = converted(wide, dtype)
        back = converted(narrow, cute.Float32)
        back[5] = back[5] + back[0]
        for i in cute.range_constexpr(8):
            out[cuda.threadIdx.x, i] = back[i]

    source = rng.uniform(0, 100, (32, 8)).astype(np.float32)
    out = np.zeros((32, 8), np.float32)
    want = (source.astype(dtype.numpy) if dtype.is_float else np.trunc(source)).astype(np.float32)
    want[:, 5] += want[:, 0]
    run(kernel, 1, 32, (source, out), outputs=[out], check=lambda: np.testing.assert_array_equal(out, want))
