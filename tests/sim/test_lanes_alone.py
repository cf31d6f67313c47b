# SPDX-License-Identifier: Apache-2.0
"""What some lanes of those that run together do alone, while the others wait for them."""

import numba
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.isa.rows import sync

from .test_convoys import Walk, both, plain_kernels_too  # noqa: F401


class Plain:
    def __init__(self, x):
        self.x = x


def alone(x, out):
    """`if`s that some lanes go into while others wait, and what must not be done so."""
    t = cuda.threadIdx.x
    parts = cuda.shared.array(64, numba.float32)
    parts[t] = x[t]
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            held = parts[t + step]
            parts[t] += held
        cuda.syncthreads()
        step //= 2
    if t > 20 and x[t] > 0.25:
        held = x[t] * 2
        if not held < 1:
            out[t] += held
        for i in range(t % 3):
            if i == t % 2:
                out[t] += i
    if x[t] < 0.9:
        n = t
        while n > 3:
            out[64 + t] += n
            n //= 2
    values, walk, plain = [x[t], x[t]], Walk(t, 0), Plain(t)
    if t % 3 == 0:
        out[128 + t] += 1
        values[1] = x[t + 1]
    if t % 5 < 2:
        out[128 + t] += 1
        walk.go(3)
    if t % 7 < 3:
        out[128 + t] += 1
        plain.x = x[t]
    held = out[128 + t]
    if t >= 40:
        held = held + 1
    if t < 32:
        out[64 + t] += cuda.shfl_xor_sync(0xFFFFFFFF, held, 5)
        cuda.syncwarp()
        if t % 4 == 1:
            mine = cute.make_rmem_tensor(cute.make_layout(2), cute.Float32)
            mine[0] = x[t]
            out[64 + t] += mine[0]
    if t % 32 < 20:
        sync.barrier_cta_sync(4, 64)
        held += 2
    elif t % 2:
        sync.barrier_cta_sync(4, 64)
    else:
        sync.barrier_cta_sync(4, 64)
        held += x[t]
    out[t] += parts[0] + held + values[0] + values[1] + walk.at + walk.steps + plain.x


def within(x, out):
    """Lanes part inside of an `if` that they are alone in, and then change an object."""
    t = cuda.threadIdx.x
    walk = Walk(t, 0)
    for i in range(t % 3, 5):
        if t < 32:
            if t % 2 == 0 and x[t] < 0.7:
                if i % 5 == 0:
                    walk.go(2)
                else:
                    cuda.atomic.max(out, 128 + t, i)
                    out[64 + t] += 1
                walk.go(1)
    out[t] = walk.at


@pytest.mark.parametrize("kernel", [alone, within])
def test_lanes_that_do_something_alone_give_the_same(both, rng, kernel):  # noqa: F811
    out = both(kernel, 1, 64, [rng.random(128).astype(np.float32), np.zeros(192, np.float32)], smem=1024)[1]
    assert out.any()
