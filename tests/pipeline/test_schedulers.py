# SPDX-License-Identifier: Apache-2.0
"""Tile schedulers in kernels: every tile is done once, by one cluster."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.seam import CuteError

from .scheduler_kernels import clc_kernel, counter_kernel, endless, grouped, in_groups

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

    grid = utils.ClcDynamicPersistentTileScheduler.get_grid_shape(params)
    run(clc_kernel(shape), grid, 64, [out, params], inouts=[out], check=check, arch="sm_100a")


@cuda.jit
def by_states(out, params):
    """As public kernels write it: one warp asks, in a state of its own, and follows in another."""
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    responses = smem.allocate_array(cute.Int32, 4, 16)
    pipe = pipeline.PipelineClcFetchAsync.create(
        num_stages=1, producer_group=CooperativeGroup(Agent.Thread), tx_count=16,
        consumer_group=CooperativeGroup(Agent.Thread, 64), barrier_storage=smem.allocate_array(cute.Int64, 2),
    )  # fmt: skip
    scheduler = utils.ClcDynamicPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), responses)
    asked = pipeline.make_pipeline_state(pipeline.PipelineUserType.ProducerConsumer, 1)
    followed = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        if tidx < 32:
            pipe.producer_acquire(asked)
            scheduler.advance_to_next_work(pipe.producer_get_barrier(asked))
            asked.advance()
        if tidx == 32:
            row, column, layer = work.tile_idx
            cuda.atomic.add(out, (row, column, layer), 1)
        pipe.consumer_wait(followed)
        work = scheduler.get_current_work()
        pipe.consumer_release(followed)
        followed.advance()
    if tidx < 32:
        pipe.producer_tail(asked)


def test_a_warp_that_asks_and_follows_has_a_state_for_each(run):
    params = utils.ClcDynamicPersistentTileSchedulerParams((4, 3, 1), (1, 1, 1))
    out = np.zeros((4, 3, 1), np.int32)

    def check():
        assert (out == 1).all()

    run(by_states, params.get_grid_shape(), 64, [out, params], inouts=[out], check=check, arch="sm_100a")


def test_a_response_at_no_multiple_of_16_bytes_is_refused():
    @cuda.jit
    def kernel():
        smem = utils.SmemAllocator()
        bar, answer = smem.allocate_array(cute.Int64, 1), smem.allocate_array(cute.Int64, 3, 16)
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, 16)
        arch.issue_clc_query(bar, answer + 1, multicast=False)

    with pytest.raises(CuteError, match="try_cancel: addr is .*: it must be a multiple of 16 bytes"):
        cute.simulate(kernel, arch="sm_100a")[2, 1]()


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


@pytest.mark.parametrize("case", SIZES)
@pytest.mark.parametrize(("blocks", "more"), [(1, 0), (3, 0), (4, 5)])
def test_a_schedule_of_groups_gives_each_tile_its_group(run, case, blocks, more):
    """more: clusters of the schedule beyond those of all groups, where the host does not know the sizes."""
    sizes = np.array(SIZES[case], np.int32)
    params = utils.PersistentTileSchedulerParams((1, 1, utils.total_clusters(sizes, (128, 64, 32)) + more), (1, 1, 1))
    out = np.zeros((len(sizes), 8, 8), np.int32)
    want = np.zeros_like(out)
    for g, (m, n, k, _) in enumerate(sizes):
        want[g, : -(-m // 128), : -(-n // 64)] = -(-k // 32)

    def check():
        np.testing.assert_array_equal(out, want)

    grid = utils.StaticPersistentGroupTileScheduler.get_grid_shape(params, blocks)
    run(in_groups, grid, 1, [out, sizes, params, np.int32(len(sizes))], inouts=[out], check=check)


def test_a_runtime_schedule_goes_on_beyond_the_problem(run):
    params = utils.PersistentTileSchedulerParams((3, 2, 1), (1, 1, 1))
    out = np.zeros((2, 6, 4), np.int32)

    def check():
        at = np.arange(6) * 2 + np.arange(2)[:, None]
        np.testing.assert_array_equal(out, np.stack([at // 2, at % 2, at % 3, at // 3], axis=-1))

    run(endless, (1, 1, 2), 1, [out, params, np.int32(6)], outputs=[out], check=check)
