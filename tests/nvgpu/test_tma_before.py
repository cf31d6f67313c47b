# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that begin before their array: two modes for its rows let a box end at any of them."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

ROWS, COLUMNS, LAYOUT = 8, 16, cute.make_layout((8, 16), stride=(16, 1))


@cuda.jit
def store_rows(other, tma, coordinates, row, left):
    tidx, _, _ = arch.thread_idx()
    s = utils.SmemAllocator().allocate_tensor(cute.Float32, LAYOUT, 128)
    for i in range(tidx, ROWS * COLUMNS, 32):
        s[i // COLUMNS, i % COLUMNS] = i
    if other[0, 0] > 0:
        s[0, 0] = 1
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_warp()
    place = cute.domain_offset((ROWS - left, 0, row + left), coordinates)
    g = cute.local_tile(place, (ROWS, COLUMNS), (0, 0, 0))
    src, dst = cpasync.tma_partition(tma, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    cute.copy(tma, src, dst)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


def boxes_of(x):
    """The atom and coordinates (ROWS, columns, rows + 1) whose box (ROWS - left, _, row + left) holds `left` rows."""
    t = from_dlpack(x, assumed_align=16)
    layout = cute.make_layout((ROWS, x.shape[1], x.shape[0] + 1), stride=(x.shape[1], 1, x.shape[1]))
    view = cute.make_tensor(t.iterator + -ROWS * x.shape[1], layout)
    return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), view, LAYOUT, (ROWS, COLUMNS))


@pytest.mark.parametrize(("row", "left"), [(0, 1), (3, 5), (12, 8), (19, 1), (7, 0)])
def test_a_box_writes_the_rows_that_are_left(row, left):
    memory = np.full((60, COLUMNS), -1, np.float32)
    other, x = memory[:40], memory[40:]  # the map begins among the other's rows
    cute.simulate(store_rows)[1, 32](other, *boxes_of(x), row, left)
    want = np.full((20, COLUMNS), -1, np.float32)
    want[row : row + left] = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)[:left]
    assert (x == want).all() and (other == -1).all()


def test_a_box_that_lies_before_the_array_is_told():
    x, other = np.zeros((20, COLUMNS), np.float32), np.zeros((1, COLUMNS), np.float32)
    with pytest.raises(cute.sim.SimError, match="before the start of|outside"):
        cute.simulate(store_rows)[1, 32](other, *boxes_of(x), -ROWS, ROWS)
