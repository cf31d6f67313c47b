# SPDX-License-Identifier: Apache-2.0
"""Tile schedulers in kernels: every tile is done once, by one cluster."""

import numpy as np
import pytest

from numba_cute import utils

from .scheduler_kernels import clc_kernel, counter_kernel, endless, grouped

TILES = [((5, 3, 1), 1, True), ((2, 5, 2), 2, False), ((1, 1, 1), 4, True)]
SLOW = pytest.mark.slow
SHAPES = [(2, 1), *(pytest.param(s, marks=SLOW) for s in ((1, 1), (2, 2)))]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("tiles", "group", "along_m"), TILES)
def test_a_cluster_launch_control_schedule_does_each_tile_once(run, shape, tiles, group, along_m):
    params = utils.ClcDynamicPersistentTileSchedulerParams(tiles, (*shape, 1), group, along_m)
    out = np.zeros(tiles, np.int32)

    def check():
        assert (out == 1).all()

    run(clc_kernel(shape), params.get_grid_shape(), 64, [out, params], inouts=[out], check=check, arch="sm_100a")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("tiles", "group", "along_m"), TILES)
def test_a_counter_schedule_does_each_tile_once(run, shape, tiles, group, along_m):
    params = utils.PersistentTileSchedulerParams(tiles, (*shape, 1), group, along_m)
    grid = params.get_grid_shape(3)
    out, counter = np.zeros(tiles, np.int32), np.zeros(1, np.int32)

    def check():
        assert (out == 1).all()

    run(counter_kernel(shape), grid, 64, [out, params, counter], inouts=[out, counter], check=check, cluster=shape)


SIZES = {
    "mixed": [(128, 64, 32, 1), (300, 200, 65, 1), (1, 1, 1, 1), (129, 64, 96, 1)],
    "with empty groups": [(0, 64, 32, 1), (256, 128, 64, 1), (0, 0, 0, 1), (128, 64, 32, 1), (0, 1, 1, 1)],
    "one": [(640, 64, 32, 1)],
}


@pytest.mark.parametrize("case", SIZES)
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_grouped_schedule_finds_the_group_and_tile_of_each_cluster(run, case, blocks):
    sizes = np.array(SIZES[case], np.int32)
    total = utils.total_clusters(sizes, (128, 64, 32))
    params = utils.PersistentTileSchedulerParams((1, 1, total), (1, 1, 1))
    out = np.zeros((len(sizes), 8, 8), np.int32)
    want = np.zeros_like(out)
    for g, (m, n, k, _) in enumerate(sizes):
        want[g, : -(-m // 128), : -(-n // 64)] = -(-k // 32)

    def check():
        np.testing.assert_array_equal(out, want)

    run(
        grouped, params.get_grid_shape(blocks), 1, [out, sizes, params, np.int32(len(sizes))], inouts=[out], check=check
    )


def test_a_runtime_schedule_goes_on_beyond_the_problem(run):
    params = utils.PersistentTileSchedulerParams((3, 2, 1), (1, 1, 1))
    out = np.zeros((2, 6, 4), np.int32)

    def check():
        at = np.arange(6) * 2 + np.arange(2)[:, None]
        np.testing.assert_array_equal(out, np.stack([at // 2, at % 2, at % 3, at // 3], axis=-1))

    run(endless, (1, 1, 2), 1, [out, params, np.int32(6)], outputs=[out], check=check)
