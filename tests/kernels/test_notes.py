# SPDX-License-Identifier: Apache-2.0
"""Ready-made kernels, as they are planned for usual tensors, have no note of lost speed, but for those that are named
here with the reason. (The examples', and attention's and the products' own tests, hold theirs at none too.)"""

import ml_dtypes
import numpy as np
import pytest

from benchmarks.code_kernels import OURS
from numba_cute.kernels.moves import permute
from numba_cute.kernels.rows import norm, rotary, softmax, topk

BF16, F32 = ml_dtypes.bfloat16, np.float32
ROWS, LENGTH = 64, 4096

KNOWN = {
    "softmax_backward": "stores 12 bytes and loads 12",  # two streams of a row, in 80 registers of a thread
}
"""Of a kernel, a part of the notes that it may have, with the reason beside it."""


def like(*shape, dtype=BF16):
    return np.zeros(shape, dtype)


def normed():
    x, weight, y, rstd = like(ROWS, LENGTH), like(LENGTH), like(ROWS, LENGTH), like(ROWS, dtype=F32)
    given = x, None, weight, None, y, None, None, rstd
    return norm.forward_work(*given, 1e-5, False), given


def normed_back():
    x, dy, dx, weight, line = *(like(ROWS, LENGTH) for _ in range(3)), like(LENGTH), like(ROWS, dtype=F32)
    work, groups, _ = norm.backward_works(dy, x, weight, None, dx, False)
    return work, (dy, x, weight, None, line, None, dx, like(groups, LENGTH, dtype=F32), None)


def summed_up():
    x, dx, parts, out = like(ROWS, LENGTH), like(ROWS, LENGTH), like(8, LENGTH, dtype=F32), like(LENGTH, dtype=F32)
    return norm.backward_works(x, x, None, None, dx, False)[2], (parts, out)


def taken():
    given = like(ROWS, LENGTH), like(ROWS, 8), like(ROWS, 8, dtype=np.int64)
    return topk.topk_work(*given, 8, False), given


def lost():
    given = like(ROWS, LENGTH), like(ROWS, dtype=np.int64), like(ROWS, dtype=F32), like(ROWS, dtype=F32)
    return softmax.cross_entropy_work(*given, -100), given


def turned():
    x, tables, positions = like(16, 8, 128), [like(64, 64) for _ in range(2)], like(16, dtype=np.int64)
    given = x, *tables, positions, x.copy()
    return rotary.rotary_work(*given, False, False), given


def moved(shape, order, dtype):
    x = like(*shape, dtype=dtype)
    y = np.zeros([shape[m] for m in order], dtype)
    return permute.plan(x, y, order), (x, y)


def softened():
    x, y = like(ROWS, LENGTH), like(ROWS, LENGTH)
    return softmax.softmax_work(x, y), (x, y)


def softened_back():
    given = [like(ROWS, LENGTH) for _ in range(3)]
    return softmax.softmax_backward_work(*given), given


WORKS = {
    "rmsnorm": normed,
    "rmsnorm_backward": normed_back,
    "norm_columns": summed_up,
    "topk": taken,
    "cross_entropy": lost,
    "rotary": turned,
    "softmax": softened,
    "softmax_backward": softened_back,
    "transpose": lambda: moved((512, 1024), (1, 0), BF16),
    "heads first": lambda: moved((4, 256, 8, 64), (0, 2, 1, 3), BF16),
}
QUICK = {"rotary", "norm_columns"}


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in WORKS])
def test_a_ready_made_kernel_loses_no_speed_by_its_code(name):
    work, arrays = WORKS[name]()
    lost = [n for n in work.compile(*arrays).notes if n.startswith("lost speed")]
    assert all(name in KNOWN and KNOWN[name] in n for n in lost), "\n".join(lost)


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_no_kernel_of_ours_is_likely_wrong(name):
    assert [n for n in OURS[name]().notes if n.startswith("likely wrong")] == []
