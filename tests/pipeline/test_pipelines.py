# SPDX-License-Identifier: Apache-2.0
"""Pipelines in kernels that use them: in the simulator, through the assembler, and on the GPU."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, seam, utils
from numba_cute.nvgpu import cpasync
from numba_cute.pipeline import Agent, CooperativeGroup, PipelineUserType
from numba_cute.runtime import from_dlpack

TILE = 128


@cuda.jit
def walk(out, steps, back):
    producer = pipeline.make_pipeline_state(PipelineUserType.Producer, 3)
    consumer = pipeline.make_pipeline_state(PipelineUserType.Consumer, 1)
    for _ in range(steps):
        producer.advance()
        consumer.advance()
    ahead = producer.clone()
    ahead.advance()
    for _ in range(back):
        producer.reverse()
    out[0], out[1], out[2] = producer.index, producer.phase, producer.count
    out[3], out[4], out[5] = consumer.index, consumer.phase, consumer.count
    producer.reset_count()
    out[6], out[7] = ahead.index, producer.count


@pytest.mark.parametrize(("steps", "back"), [(0, 0), (2, 0), (3, 1), (7, 4), (7, 7)])
def test_state_counts_stages_and_flips_the_phase_on_wrapping(run, steps, back):
    out = np.zeros(8, np.int32)
    at = steps - back

    def check():
        want = [at % 3, 1 ^ (at // 3 & 1), at, 0, steps & 1, steps, (steps + 1) % 3, 0]
        assert out.tolist() == want

    run(walk, 1, 1, [out, np.int32(steps), np.int32(back)], outputs=[out], check=check)


def threads_kernel(stages):
    @cuda.jit
    def kernel(out, count):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineAsync.create(
            num_stages=stages,
            producer_group=CooperativeGroup(Agent.Thread, 32),
            consumer_group=CooperativeGroup(Agent.Thread, 64),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
        )
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((32, stages)), 16)
        producer, consumer = pipe.make_participants()
        if tidx < 32:
            for i in range(count):
                stage = producer.acquire_and_advance()
                values[tidx, stage.index] = 100 * i + tidx
                stage.commit()
            producer.tail()
        else:
            total = 0
            for _ in range(count):
                token = consumer.try_wait()
                stage = consumer.wait_and_advance(token)
                total += values[31 - tidx % 32, stage.index]
                stage.release()
            out[tidx - 32] = total

    return kernel


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_threads_produce_and_threads_consume(run, stages, count):
    out = np.zeros(64, np.int32)

    def check():
        lane = np.arange(64) % 32
        assert (out == 100 * sum(range(count)) + count * (31 - lane)).all()

    run(threads_kernel(stages), 1, 96, [out, np.int32(count)], outputs=[out], check=check)


def tma_kernel(stages):
    @cuda.jit
    def kernel(tma, source, out, rounds):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        buffers = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, stages)), 128)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=stages,
            tx_count=TILE * 4,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
            producer_group=CooperativeGroup(Agent.Thread),
            consumer_group=CooperativeGroup(Agent.Thread, 2),
        )
        producer, consumer = pipe.make_participants()
        tiles = cute.local_tile(source, (TILE,), (None,))
        to_smem, from_gmem = cpasync.tma_partition(
            tma, 0, cute.make_layout(1), cute.group_modes(buffers, 0, 1), cute.group_modes(tiles, 0, 1)
        )
        if tidx < 32:
            for i in range(rounds):
                stage = producer.acquire_and_advance()
                cute.copy(tma, from_gmem[None, i], to_smem[None, stage.index], tma_bar_ptr=stage.barrier)
                stage.commit()
            producer.tail()
        else:
            for i in range(rounds):
                stage = consumer.wait_and_advance()
                for j in range(tidx - 32, TILE, 64):
                    out[i * TILE + j] = 2 * buffers[j, stage.index]
                arch.sync_warp()
                stage.release()

    return kernel


def tma_arguments(x):
    def atom(place):
        load = cpasync.CopyBulkTensorTileG2SOp()
        return cpasync.make_tiled_tma_atom(load, from_dlpack(place(x)), cute.make_layout(TILE), (TILE,))

    return [lambda place: atom(place)[0], lambda place: atom(place)[1]]


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_tma_produces_and_warps_consume(run, rng, stages, rounds):
    x = rng.standard_normal(7 * TILE, dtype=np.float32)
    out = np.zeros_like(x)

    def check():
        np.testing.assert_array_equal(out[: rounds * TILE], 2 * x[: rounds * TILE])

    run(tma_kernel(stages), 1, 96, [*tma_arguments(x), out, np.int32(rounds)], outputs=[out], check=check)


@cuda.jit
def take_turns(out):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    word = smem.allocate_tensor(cute.Int32, cute.make_layout(32), 16)
    ping, pong = pipeline.NamedBarrier(1, 64), pipeline.NamedBarrier(2, 64)
    if tidx < 32:
        word[tidx] = tidx
        ping.arrive()
        pong.arrive_and_wait()
        out[tidx] = word[tidx]
    else:
        ping.sync()
        word[63 - tidx] += 100
        pipeline.arrive(2, 64)


def test_named_barriers_hand_over_between_warps(run):
    out = np.zeros(32, np.int32)

    def check():
        assert (out == np.arange(32) + 100).all()

    run(take_turns, 1, 64, [out], outputs=[out], check=check)


@cuda.jit
def visit(out, params):
    scheduler = utils.StaticPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, _ = work.tile_idx
        out[m, n] = scheduler.num_tiles_executed
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("tiles", "group"), [((5, 3), 1), ((4, 7), 2), ((1, 1), 4)])
def test_persistent_scheduler_gives_every_tile_to_one_block(run, tiles, group, dynamic):
    m, n = (cute.Int32(t) for t in tiles) if dynamic else tiles
    params = utils.PersistentTileSchedulerParams((m, n, 1), (1, 1, 1), group, False)
    out = np.zeros(tiles, np.int32)
    grid = params.get_grid_shape(4)

    def check():
        counts = np.bincount(out.ravel(), minlength=1)
        assert counts.sum() == out.size
        assert (counts[:-1] == grid[2]).all(), "all blocks have work in every round but the last"

    run(visit, grid, 1, [out, params], outputs=[out], check=check)


def test_consumers_that_do_not_match_the_cluster_are_refused_with_the_arithmetic(run):
    layout = cute.make_layout((1, 2, 2, 1))

    @cuda.jit
    def kernel():
        smem = utils.SmemAllocator()
        pipeline.PipelineTmaAsync.create(
            num_stages=2,
            tx_count=128,
            barrier_storage=smem.allocate_array(cute.Int64, 4),
            producer_group=CooperativeGroup(Agent.Thread),
            consumer_group=CooperativeGroup(Agent.Thread, 8),
            cta_layout_vmnk=layout,
        )

    if run.name == "gpu":
        pytest.skip("refused while it is compiled: the assembler's case")
    with pytest.raises(cute.CuteError, match="8 is not a multiple of 3 = 2 \\+ 2 - 1"):
        run(kernel, (2, 2), 32, [], cluster=(2, 2))


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_threads_and_of_copies_gives_the_same_result(seed, rng):
    x = rng.standard_normal(7 * TILE, dtype=np.float32)
    out = np.full_like(x, np.nan)
    atom, source = (make(lambda a: a) for make in tma_arguments(x))
    cute.simulate(tma_kernel(3), seed=seed)[1, 96](atom, source, out, np.int32(7))
    np.testing.assert_array_equal(out, 2 * x)
    totals = np.zeros(64, np.int32)
    cute.simulate(threads_kernel(2), seed=seed)[1, 96](totals, np.int32(5))
    assert (totals == 1000 + 5 * (31 - np.arange(64) % 32)).all()


def turns_kernel(depth, own):
    """own: whether each group keeps a state of its own, and PipelineOrder does not."""

    @cuda.jit
    def kernel(out, rounds):
        tidx, _, _ = arch.thread_idx()
        group = tidx // 32
        order = pipeline.PipelineOrder.create(
            depth=depth, length=3, group_id=group, producer_group=CooperativeGroup(Agent.Warp)
        )
        said = utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout(depth), 16)
        if tidx < depth:
            said[tidx] = 0
        cuda.syncthreads()
        state = pipeline.make_pipeline_state(PipelineUserType.Consumer, depth)
        if group == 0:
            state.phase = 1
        for i in range(rounds * depth):
            if own:
                order.wait(state)
            else:
                order.wait()
            if tidx % 32 == 0:
                section = i % depth
                out[section, said[section]] = group
                said[section] += 1
            if own:
                state = order.arrive(state)
            else:
                order.arrive()

    return kernel


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_groups_take_turns_in_each_section(run, depth, rounds, own):
    out = np.zeros((depth, 3 * rounds), np.int32)

    def check():
        assert out.tolist() == [[0, 1, 2] * rounds] * depth

    run(turns_kernel(depth, own), 1, 96, [out, np.int32(rounds)], outputs=[out], check=check)


@seam.traced
def pair_of_pipelines():
    """Two of one line of compile-time Python, and one of another."""
    sides = {"producer_group": CooperativeGroup(Agent.Warp), "consumer_group": CooperativeGroup(Agent.Warp)}
    first, second = (pipeline.PipelineAsync.create(num_stages=2, **sides) for _ in range(2))
    return first, second, pipeline.PipelineCpAsync.create(num_stages=2, **sides)


@cuda.jit
def without_storage(out, rounds):
    tidx, _, _ = arch.thread_idx()
    first, second, third = pair_of_pipelines()
    fourth = pipeline.PipelineAsync.create(
        num_stages=1, producer_group=CooperativeGroup(Agent.Warp), consumer_group=CooperativeGroup(Agent.Warp)
    )
    words = utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout(32), 16)
    producer_1, consumer_1 = first.make_participants()
    producer_2, consumer_2 = second.make_participants()
    producer_3, consumer_3 = third.make_participants()
    producer_4, consumer_4 = fourth.make_participants()
    if tidx < 32:
        for i in range(rounds):
            last = producer_4.acquire_and_advance()
            producer_1.acquire_and_advance().commit()
            producer_2.acquire_and_advance().commit()
            producer_3.acquire_and_advance().commit()
            words[tidx] = i
            last.commit()
        producer_1.tail()
        producer_2.tail()
        producer_3.tail()
        producer_4.tail()
    else:
        total = 0
        for _ in range(rounds):
            consumer_1.wait_and_advance().release()
            consumer_2.wait_and_advance().release()
            consumer_3.wait_and_advance().release()
            last = consumer_4.wait_and_advance()
            total += words[63 - tidx]
            last.release()
        out[tidx - 32] = total


def test_barriers_without_storage_are_each_pipelines_own_static_memory(run):
    out = np.zeros(32, np.int32)

    def check():
        assert (out == 0 + 1 + 2 + 3 + 4).all()

    run(without_storage, 1, 64, [out, np.int32(5)], outputs=[out], check=check)


def test_static_barriers_are_counted_as_static_memory():
    out = np.zeros(32, np.int32)
    found = cute.compile(without_storage, (out, np.int32(5))).resources
    assert found.shared >= 8 * 2 * (2 + 2 + 2 + 1)


@cuda.jit
def exchange(out, group_of_block):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    words = smem.allocate_tensor(cute.Int32, cute.make_layout(64), 16)
    words[tidx] = 10 * tidx
    if group_of_block:
        pipeline.agent_sync(Agent.ThreadBlock)
        out[tidx] = words[63 - tidx]
    else:
        pipeline.agent_sync(Agent.Warp)
        out[tidx] = words[tidx ^ 31]


@pytest.mark.parametrize("block", [False, True])
def test_agent_sync_orders_the_memory_of_a_warp_and_of_a_block(run, block):
    out = np.zeros(64, np.int32)

    def check():
        lane = np.arange(64)
        assert out.tolist() == (10 * (63 - lane if block else lane ^ 31)).tolist()

    run(exchange, 1, 64, [out, block], outputs=[out], check=check)
