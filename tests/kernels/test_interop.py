# SPDX-License-Identifier: Apache-2.0
"""Ordinary Numba code beside CuTe in one kernel: arrays, cuda.shared.array, device functions, math, atomics."""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float32

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.runtime import from_dlpack
from tests.conftest import assert_close

ROWS, COLS = 32, 64


@cuda.jit(device=True)
def softplus(x):
    return math.log1p(math.exp(-abs(x))) + max(x, float32(0))


@cuda.jit(device=True)
def row_of(tensor, i):
    """CuTe values pass through users' device functions."""
    return tensor[i, None]


@cuda.jit
def mixed(tensor, array, out, sums, counts, scale):
    tidx, _, _ = arch.thread_idx()
    block = cuda.blockIdx.x
    tile = cute.local_tile(tensor, (ROWS, COLS), (block, 0))

    staged = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((ROWS, COLS), stride=(COLS, 1)), 16)
    partial = cuda.shared.array(COLS, float32)
    for i in range(ROWS):
        staged[i, tidx] = tile[i, tidx] * scale
    partial[tidx] = 0
    if tidx == 0:
        counts[block] = 0
    cuda.syncthreads()

    row = row_of(staged, tidx % ROWS)
    largest = row[0]
    for j in range(1, COLS):
        largest = max(largest, row[j])
    if tidx < ROWS:
        out[block * ROWS + tidx] = softplus(largest) + array[block * ROWS + tidx]
        cuda.atomic.add(partial, tidx % 2, largest)
    cuda.atomic.add(counts, block, 1)  # global
    cuda.syncthreads()
    if tidx == 0:
        sums[block] = partial[0] + partial[1] + cute.size(tile)


def test_numba_and_cute_share_a_kernel(run, rng):
    blocks, scale = 3, np.float32(0.5)
    data = rng.standard_normal((blocks * ROWS, COLS)).astype(np.float32) * 9
    array = rng.standard_normal(blocks * ROWS).astype(np.float32)
    out, sums, counts = np.zeros(blocks * ROWS, np.float32), np.zeros(blocks, np.float32), np.zeros(blocks, np.int32)

    def check():
        largest = (data.astype(np.float64) * 0.5).max(1)
        want = np.log1p(np.exp(-np.abs(largest))) + np.maximum(largest, 0) + array
        assert_close(out, want, rtol=2e-6, atol=2e-6)
        assert_close(sums, largest.reshape(blocks, ROWS).sum(1) + ROWS * COLS, rtol=1e-6)
        assert counts.tolist() == [COLS] * blocks

    run(
        mixed, blocks, COLS,
        (lambda place: from_dlpack(place(data)).mark_layout_dynamic(), array, out, sums, counts, scale),
        outputs=[out, sums, counts], check=check,
    )  # fmt: skip
