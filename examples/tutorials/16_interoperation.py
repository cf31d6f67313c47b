# SPDX-License-Identifier: Apache-2.0
"""Arrays of torch, CuPy and JAX: the script of docs/tutorials."""

import ml_dtypes
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack

x = np.arange(12, dtype=np.float32).reshape(3, 4)
print(from_dlpack(x))
print(from_dlpack(x.T))


half = x.astype(ml_dtypes.bfloat16)
print(from_dlpack(half).element_type, from_dlpack(half.astype(ml_dtypes.float8_e4m3fn)).element_type)


class Foreign:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@cuda.jit
def add_rows(a, out):
    i = cuda.threadIdx.x
    total = cute.Float32(0)
    for j in range(a.shape[1]):
        total += a[i, j]
    out[i] = total


out = np.zeros(3, np.float32)
cute.simulate(add_rows)[1, 3](from_dlpack(Foreign(x)), out)
np.testing.assert_array_equal(out, x.sum(1))
print(out)


x.flags.writeable = False


@cuda.jit
def clear(a):
    a[0, 0] = 0


try:
    cute.simulate(clear)[1, 1](from_dlpack(x))
except cute.CuteError as error:
    print(type(error).__name__)
x.flags.writeable = True


print(from_dlpack(x).mark_layout_dynamic())
