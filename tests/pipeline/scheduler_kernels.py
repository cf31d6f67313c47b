# SPDX-License-Identifier: Apache-2.0
"""Kernels that follow a tile schedule: each adds 1 for each tile that it is given."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.utils import ClcDynamicPersistentTileScheduler, DynamicPersistentTileScheduler

ONE = CooperativeGroup(Agent.Thread)


@cuda.jit
def visit(out, params):
    """A static schedule. The tile gets the number of those that its block did before, plus 1."""
    scheduler = utils.StaticPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, layer = work.tile_idx
        if m < out.shape[0] and n < out.shape[1]:
            cuda.atomic.add(out, (m, n, layer), 1)
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@cuda.jit
def endless(out, params, steps):
    """Two runtime schedules, which never end."""
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


@cuda.jit
def grouped(out, sizes, params, groups):
    """A schedule over groups of different sizes; a tile gets its K tiles."""
    helper = utils.GroupedGemmTileSchedulerHelper(groups, params, (128, 64, 32), utils.create_initial_search_state())
    scheduler = utils.StaticPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        found = helper.delinearize_z(work.tile_idx, sizes)
        out[found.group_idx, found.cta_tile_idx_m, found.cta_tile_idx_n] += found.cta_tile_count_k
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@cuda.jit
def in_groups(out, sizes, params, groups):
    """A schedule that knows groups; a tile gets its K tiles."""
    scheduler = utils.StaticPersistentGroupTileScheduler.create(
        params, arch.block_idx(), arch.grid_dim(), (128, 64, 32), utils.create_initial_search_state(), groups, sizes
    )
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        found = work.group_search_result
        out[found.group_idx, found.cta_tile_idx_m, found.cta_tile_idx_n] += found.cta_tile_count_k
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


def clc_kernel(shape, stages=2, warps=2):
    """Warp 0 of CTA 0 asks for clusters that have not started; all warps follow."""
    m, n = shape
    layout = cute.make_layout((1, m, n, 1))

    @cute.cluster_shape(m, n)
    @cuda.jit
    def kernel(out, params):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        responses = smem.allocate_array(cute.Int32, 4 * stages, 16)
        pipe = pipeline.PipelineClcFetchAsync.create(
            num_stages=stages, producer_group=ONE, consumer_group=CooperativeGroup(Agent.Thread, 32 * warps * m * n),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), cta_layout_vmnk=layout,
        )  # fmt: skip
        producer, consumer = pipe.make_participants()
        scheduler = ClcDynamicPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), responses)
        asks = arch.block_idx_in_cluster() == 0 and tidx < 32
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            if asks:
                ahead = producer.acquire_and_advance()
                scheduler.advance_to_next_work(ahead.barrier, ahead.index)
            row, column, layer = work.tile_idx
            if tidx == 32 * warps - 1 and row < out.shape[0] and column < out.shape[1]:
                cuda.atomic.add(out, (row, column, layer), 1)
            stage = consumer.wait_and_advance()
            work = scheduler.get_current_work(stage.index)
            stage.release()
        if asks:
            producer.tail()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    return kernel


def counter_kernel(shape, stages=2, warps=2):
    """The same with a counter in global memory, which Hopper can run."""
    m, n = shape
    layout = cute.make_layout((1, m, n, 1))

    @cute.cluster_shape(m, n)
    @cuda.jit
    def kernel(out, params, counter):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        responses = smem.allocate_array(cute.Int32, 4 * stages, 16)
        pipe = pipeline.PipelineClcFetchAsync.create(
            num_stages=stages, producer_group=ONE, consumer_group=CooperativeGroup(Agent.ThreadBlockCluster),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), cta_layout_vmnk=layout,
        )  # fmt: skip
        producer, consumer = pipe.make_participants()
        scheduler = DynamicPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), responses, counter)
        asks = arch.block_idx_in_cluster() == 0 and tidx < 32
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            if asks:
                ahead = producer.acquire_and_advance()
                scheduler.advance_to_next_work(ahead.barrier, ahead.index)
            row, column, layer = work.tile_idx
            if tidx == 32 * warps - 1 and row < out.shape[0] and column < out.shape[1]:
                cuda.atomic.add(out, (row, column, layer), 1)
            stage = consumer.wait_and_advance()
            work = scheduler.get_current_work(stage.index)
            stage.release()
        if asks:
            producer.tail()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    return kernel
