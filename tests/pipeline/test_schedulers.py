# SPDX-License-Identifier: Apache-2.0
"""Tile schedulers in kernels: every tile is done once, by one cluster."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.utils import ClcDynamicPersistentTileScheduler, DynamicPersistentTileScheduler

STAGES = 2
ONE = CooperativeGroup(Agent.Thread)


def clc_kernel(shape):
    """Warp 0 of CTA 0 asks; all warps follow."""
    m, n = shape
    layout = cute.make_layout((1, m, n, 1))

    @cute.cluster_shape(m, n)
    @cuda.jit
    def kernel(out, params):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        responses = smem.allocate_array(cute.Int32, 4 * STAGES, 16)
        pipe = pipeline.PipelineClcFetchAsync.create(
            num_stages=STAGES,
            producer_group=ONE,
            consumer_group=CooperativeGroup(Agent.Thread, 64 * m * n),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
            cta_layout_vmnk=layout,
        )
        producer, consumer = pipe.make_participants()
        scheduler = ClcDynamicPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), responses)
        asks = arch.block_idx_in_cluster() == 0 and tidx < 32
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            if asks:
                ahead = producer.acquire_and_advance()
                scheduler.advance_to_next_work(ahead.barrier, ahead.index)
            row, column, layer = work.tile_idx
            if tidx == 32 and row < out.shape[0] and column < out.shape[1]:
                cuda.atomic.add(out, (row, column, layer), 1)
            stage = consumer.wait_and_advance()
            work = scheduler.get_current_work(stage.index)
            stage.release()
        if asks:
            producer.tail()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    return kernel


def counter_kernel(shape):
    m, n = shape
    layout = cute.make_layout((1, m, n, 1))

    @cute.cluster_shape(m, n)
    @cuda.jit
    def kernel(out, params, counter):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        responses = smem.allocate_array(cute.Int32, 4 * STAGES, 16)
        pipe = pipeline.PipelineClcFetchAsync.create(
            num_stages=STAGES,
            producer_group=ONE,
            consumer_group=CooperativeGroup(Agent.Thread, 64 * m * n),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
            cta_layout_vmnk=layout,
        )
        producer, consumer = pipe.make_participants()
        scheduler = DynamicPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), responses, counter)
        asks = arch.block_idx_in_cluster() == 0 and tidx < 32
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            if asks:
                ahead = producer.acquire_and_advance()
                scheduler.advance_to_next_work(ahead.barrier, ahead.index)
            row, column, layer = work.tile_idx
            if tidx == 32 and row < out.shape[0] and column < out.shape[1]:
                cuda.atomic.add(out, (row, column, layer), 1)
            stage = consumer.wait_and_advance()
            work = scheduler.get_current_work(stage.index)
            stage.release()
        if asks:
            producer.tail()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    return kernel


TILES = [((5, 3, 1), 1, True), ((2, 5, 2), 2, False), ((1, 1, 1), 4, True)]


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize(("tiles", "group", "along_m"), TILES)
def test_a_cluster_launch_control_schedule_does_each_tile_once(run, shape, tiles, group, along_m):
    params = utils.ClcDynamicPersistentTileSchedulerParams(tiles, (*shape, 1), group, along_m)
    out = np.zeros(tiles, np.int32)

    def check():
        assert (out == 1).all()

    if run.name == "simulator":
        cute.simulate(clc_kernel(shape), arch="sm_100a")[params.get_grid_shape(), 64](out, params)
        check()
        for seed in range(2):
            out[...] = 0
            cute.simulate(clc_kernel(shape), seed=seed, arch="sm_100a")[params.get_grid_shape(), 64](out, params)
            check()
    else:
        run(clc_kernel(shape), params.get_grid_shape(), 64, [out, params], inouts=[out], check=check, arch="sm_100a")


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize(("tiles", "group", "along_m"), TILES)
def test_a_counter_schedule_does_each_tile_once(run, shape, tiles, group, along_m):
    params = utils.PersistentTileSchedulerParams(tiles, (*shape, 1), group, along_m)
    grid = params.get_grid_shape(3)
    out, counter = np.zeros(tiles, np.int32), np.zeros(1, np.int32)

    def check():
        assert (out == 1).all()

    run(counter_kernel(shape), grid, 64, [out, params, counter], inouts=[out, counter], check=check, cluster=shape)


@cuda.jit
def grouped(out, sizes, params, groups):
    helper = utils.GroupedGemmTileSchedulerHelper(groups, params, (128, 64, 32), utils.create_initial_search_state())
    scheduler = utils.StaticPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        found = helper.delinearize_z(work.tile_idx, sizes)
        out[found.group_idx, found.cta_tile_idx_m, found.cta_tile_idx_n] += found.cta_tile_count_k
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


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


@cuda.jit
def endless(out, params, steps):
    rows = utils.StaticPersistentRuntimeTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), 1)
    columns = utils.StaticPersistentRuntimeTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), 0)
    _, _, block = arch.block_idx()
    for i in range(steps):
        m, n, _ = rows.get_current_work().tile_idx
        out[block, i, 0], out[block, i, 1] = m, n
        m, n, _ = columns.get_current_work().tile_idx
        out[block, i, 2], out[block, i, 3] = m, n
        rows.advance_to_next_work()
        columns.advance_to_next_work()


def test_a_runtime_schedule_goes_on_beyond_the_problem(run):
    params = utils.PersistentTileSchedulerParams((3, 2, 1), (1, 1, 1))
    out = np.zeros((2, 6, 4), np.int32)

    def check():
        at = np.arange(6) * 2 + np.arange(2)[:, None]
        np.testing.assert_array_equal(out, np.stack([at // 2, at % 2, at % 3, at // 3], axis=-1))

    run(endless, (1, 1, 2), 1, [out, params, np.int32(6)], outputs=[out], check=check)
