# SPDX-License-Identifier: Apache-2.0
"""Persistence: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils

TILE, BLOCKS = 8, 3


@cuda.jit
def fill(out, who, schedule):
    """Each block writes its number into its tiles, and counts them."""
    tidx, _, _ = arch.thread_idx()
    _, _, block = arch.block_idx()  # the scheduler's grids count blocks in z
    scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, _ = work.tile_idx
        tile = cute.local_tile(out, (TILE, TILE), (m, n))
        for i in range(tidx, TILE * TILE, 32):
            tile[i] = i + 100 * (m * 4 + n)
        if tidx == 0:
            who[m, n] = block
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


rows, columns = 2, 4  # tiles
schedule = utils.PersistentTileSchedulerParams((rows, columns, 1), (1, 1, 1))
grid = utils.StaticPersistentTileScheduler.get_grid_shape(schedule, BLOCKS)
print("grid", grid)

out = np.zeros((rows * TILE, columns * TILE), np.int32)
who = np.full((rows, columns), -1, np.int32)
cute.simulate(fill)[grid, 32](cute.runtime.from_dlpack(out), who, schedule)
print(who)


for m in range(rows):
    for n in range(columns):
        tile = out[m * TILE : (m + 1) * TILE, n * TILE : (n + 1) * TILE]
        np.testing.assert_array_equal(tile.T.reshape(-1), np.arange(TILE * TILE) + 100 * (m * 4 + n))


grouped = utils.PersistentTileSchedulerParams((4, 4, 1), (1, 1, 1), swizzle_size=2)
order = np.zeros((4, 4), np.int32)


@cuda.jit
def number(order, schedule):
    scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    count = 0
    while work.is_valid_tile:
        m, n, _ = work.tile_idx
        order[m, n] = count
        count += 1
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


cute.simulate(number)[1, 1](order, grouped)
print(order)
