# SPDX-License-Identifier: Apache-2.0
"""What `cutlass.torch` puts into memory, where torch is installed."""

import numpy as np
import pytest

import numba_cute as cute

torch = pytest.importorskip("torch")

from numba_cute.compat.cutlass.torch import cute_tensor_like, matrix  # noqa: E402 - it needs torch
from numba_cute.compat.runs import Run, running  # noqa: E402


@cute.kernel
def spread(x, out):
    for i in range(4):
        for j in range(8):
            out[i, j] = cute.Float32(x[i, j, 0])


@pytest.mark.parametrize("first_major", [True, False])
@pytest.mark.parametrize("ty", [cute.Int4, cute.Uint4, cute.Int8, cute.Float4E2M1FN, cute.Float8E4M3FN], ids=str)
def test_numbers_are_packed_as_elements(ty, first_major):
    from numba_cute.compat.on_cpu import on_cpu

    with running(Run("sm_100a")), on_cpu("sm_100a"):
        numbers = matrix(1, 4, 8, first_major, ty)
        made, _ = cute_tensor_like(numbers, ty, is_dynamic_layout=True, assumed_align=16)
        out = np.zeros((4, 8), np.float32)
        cute.simulate(spread, arch="sm_100a")[1, 1](made, cute.runtime.from_dlpack(out))
    np.testing.assert_array_equal(out, numbers[..., 0].numpy())
