# SPDX-License-Identifier: Apache-2.0
"""Bugs in kernels that use cute.pipeline: acquire, commit, wait, release, tail, groups, bytes, states."""

import numpy as np

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.pipeline import Agent, CooperativeGroup, PipelineUserType
from numba_cute.runtime import from_dlpack
from numba_cute.sim import DeadlockError, RaceError, SimError, SimWarning
from numba_cute.sim.checks.boxes import Boxes
from numba_cute.sim.checks.converged import Converged
from numba_cute.sim.checks.exits import ExitStores
from numba_cute.sim.checks.initialised import Initialised
from numba_cute.sim.checks.phases import Phases
from numba_cute.sim.checks.races import Races

from .zoo import bug

TILE, STAGES, ROUNDS = 64, 2, 5
THREAD = Agent.Thread


def arguments():
    x = np.arange(ROUNDS * TILE, dtype=np.float32)
    load = cpasync.CopyBulkTensorTileG2SOp()
    atom, source = cpasync.make_tiled_tma_atom(load, from_dlpack(x), cute.make_layout(TILE), (TILE,))
    return atom, source, np.zeros_like(x)


def tma(*wrong, consumers=2, tx=TILE * 4, state=PipelineUserType.Producer):
    """Warp 0 fetches tiles, two warps double them."""

    def kernel(atom, source, out):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        buffers = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 128)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES, tx_count=tx, name="tiles",
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES), defer_sync=True,
            producer_group=CooperativeGroup(THREAD), consumer_group=CooperativeGroup(THREAD, consumers),
        )  # fmt: skip
        if "no sync" not in wrong:
            pipeline.pipeline_init_arrive()
            pipeline.pipeline_init_wait()
        tiles = cute.local_tile(source, (TILE,), (None,))
        to_smem, from_gmem = cpasync.tma_partition(
            atom, 0, cute.make_layout(1), cute.group_modes(buffers, 0, 1), cute.group_modes(tiles, 0, 1)
        )
        if tidx < 32:
            fill = pipeline.make_pipeline_state(state, STAGES)
            for i in range(ROUNDS):
                if "acquire" not in wrong:
                    pipe.producer_acquire(fill)
                else:
                    pipe.sync_object_full.arrive(fill.index)
                bar = pipe.producer_get_barrier(fill)
                at = 0 if "stage" in wrong else fill.index
                tile = i * TILE + ROUNDS if "outside" in wrong else i
                cute.copy(atom, from_gmem[None, tile], to_smem[None, at], tma_bar_ptr=bar)
                if "twice" in wrong:
                    cute.copy(atom, from_gmem[None, i], to_smem[None, at], tma_bar_ptr=bar)
                if "advance" not in wrong:
                    fill.advance()
            if "tail" not in wrong:
                pipe.producer_tail(fill)
        else:
            use = pipeline.make_pipeline_state(PipelineUserType.Consumer, STAGES)
            rounds = ROUNDS - 1 if "one round less" in wrong else ROUNDS
            for i in range(rounds):
                if "wait" not in wrong:
                    pipe.consumer_wait(use)
                if "early" in wrong:
                    pipe.consumer_release(use)
                for j in range(tidx - 32, TILE, 64):
                    out[i * TILE + j] = 2 * buffers[j, use.index]
                if "sync_warp" not in wrong:
                    arch.sync_warp()
                if "release" not in wrong and "early" not in wrong:
                    pipe.consumer_release(use)
                if "released twice" in wrong:
                    pipe.consumer_release(use)
                if "consumer does not advance" not in wrong:
                    use.advance()

    return kernel


def tma_bug(error, *words, **more):
    return bug(error, *words, threads=96, arguments=arguments, **more)


@tma_bug(
    SimError, "tiles.full|tiles.empty", "has still to write it|is written by|too few bytes|more arrivals", "copy|arrive"
)
def producer_that_never_acquires(mended):
    return tma() if mended else tma("acquire")


@tma_bug(
    RaceError, "has still to write it|is read by|read it at", "wait on the barrier|nothing orders", "tiles.full|copy"
)
def consumer_that_never_waits(mended):
    return tma() if mended else tma("wait")


@tma_bug(DeadlockError, "tiles.empty[", "2 of 2 arrivals missing", "nobody ever arrived")
def consumer_that_never_releases(mended):
    return tma() if mended else tma("release")


@tma_bug(RaceError, "is written by cp_async|is read by", "copy", "put a barrier|nothing orders|before the copy|wait on")
def stage_released_before_it_is_read(mended):
    return tma() if mended else tma("early")


@tma_bug(RaceError, "cp_async_bulk_tensor_g2s", "read it at", "lane|thread", check=Converged)
def one_lane_releases_before_the_others_have_read(mended):
    return tma() if mended else tma("sync_warp")


@tma_bug(
    SimError,
    "tiles.empty|buffers",
    "more arrivals than|nobody has waited|whole phase late|nothing orders",
    check=Phases,
)
def stage_released_twice(mended):
    return tma() if mended else tma("released twice")


@tma_bug(DeadlockError, "tiles.empty[0]", "1 of 3 arrivals missing", "initialised for (3)")
def consumer_group_that_counts_the_producers_warp(mended):
    return tma() if mended else tma(consumers=3)


@tma_bug(
    SimError, "tiles.empty|buffers", "more arrivals|is written by|nobody has waited|whole phase late", check=Phases
)
def consumer_group_of_one_for_two_warps(mended):
    return tma() if mended else tma(consumers=1)


@tma_bug(DeadlockError, "tiles.full[0]", "bytes missing", "announce the 256 bytes")
def tx_count_of_two_tiles_for_one(mended):
    return tma() if mended else tma(tx=2 * TILE * 4)


@tma_bug(SimError, "tiles.full[0]", "128 bytes too many: 128 announced (expect_tx), 256 delivered")
def tx_count_of_half_a_tile(mended):
    return tma() if mended else tma(tx=TILE * 2)


@tma_bug(SimError, "tiles.full[0]|has still to write it", "too few bytes announced|cp_async_bulk_tensor_g2s")
def tile_copied_twice_into_a_stage(mended):
    return tma() if mended else tma("twice")


@tma_bug(
    SimWarning, "all boxes that this line copies lie wholly outside", "fills shared memory with zeros", check=Boxes
)
def tiles_loaded_from_outside_of_the_tensor(mended):
    return tma() if mended else tma("outside")


@tma_bug(
    SimError, "two stages are filled in one place|is read by|read it", "cp_async_bulk_tensor_g2s|copy", check=Races
)
def every_tile_copied_into_stage_0(mended):
    return tma() if mended else tma("stage")


@tma_bug(SimError, "tiles.", "missing|too few|more arrivals|has still to write it")
def producer_that_does_not_advance(mended):
    return tma() if mended else tma("advance")


@tma_bug(SimError, "tiles.|read by|written by", "missing|nobody|more arrivals|late|nothing orders|still")
def consumer_that_does_not_advance(mended):
    return tma() if mended else tma("consumer does not advance")


@tma_bug(DeadlockError, "tiles.empty[0]", "2 of 2 arrivals missing", "cycle|nobody ever arrived")
def producer_that_starts_in_the_consumers_phase(mended):
    return tma() if mended else tma(state=PipelineUserType.Consumer)


@tma_bug(DeadlockError, "tiles.empty[", "missing", "exited")
def consumers_that_stop_one_round_early(mended):
    return tma() if mended else tma("one round less")


@tma_bug(
    SimError,
    "tiles.|barrier_storage",
    "not initialised|nothing orders that after its initialisation|fence_mbarrier_init",
    check=Initialised,
)
def pipeline_used_before_its_barriers_are_published(mended):
    return tma() if mended else tma("no sync")


def threads(*wrong, commits=32, releases=64, stages=STAGES):
    """Warp 0 writes a stage of 32 numbers, two warps read it."""

    def kernel(out):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineAsync.create(
            num_stages=stages, name="numbers", barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
            producer_group=CooperativeGroup(THREAD, commits), consumer_group=CooperativeGroup(THREAD, releases),
        )  # fmt: skip
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((32, stages)), 16)
        producer, consumer = pipe.make_participants()
        if tidx < 32:
            for i in range(ROUNDS):
                stage = producer.acquire_and_advance()
                if "commit first" in wrong:
                    stage.commit()
                values[tidx, stage.index] = 100 * i + tidx
                if "commit" not in wrong and "commit first" not in wrong and ("one lane" not in wrong or tidx == 0):
                    stage.commit()
                if "producer skips" in wrong and i == 1:
                    producer.advance()
            producer.tail()
        else:
            total = 0
            for i in range(ROUNDS):
                stage = consumer.wait_and_advance(1) if "token" in wrong else consumer.wait_and_advance()
                total += values[31 - tidx % 32, stage.index]
                if "release" not in wrong:
                    stage.release()
                if "consumer skips" in wrong and i == 1:
                    consumer.advance()
            out[tidx - 32] = total

    return kernel


def threads_bug(error, *words, **more):
    return bug(error, *words, threads=96, arguments=lambda: (np.zeros(64, np.int32),), **more)


@threads_bug(DeadlockError, "numbers.full[0]", "32 of 32 arrivals missing", "nobody ever arrived")
def stage_that_is_never_committed(mended):
    return threads() if mended else threads("commit")


@threads_bug(DeadlockError, "numbers.full[0]", "31 of 32 arrivals missing", "thread 0 (warp 0)")
def commit_by_one_lane_of_32(mended):
    return threads() if mended else threads("one lane")


@threads_bug(RaceError, "values", "is read by|read it", "wrote it|is written by")
def commit_before_the_values_are_written(mended):
    return threads() if mended else threads("commit first")


@threads_bug(RaceError, "values", "is read by|read it", "wrote it|is written by")
def token_that_says_full_when_it_is_not(mended):
    return threads() if mended else threads("token")


@threads_bug(
    SimError,
    "values|numbers.full",
    "is read by|read it|more arrivals|nobody has waited",
    "wrote it|is written by|32",
    check=Races,
)
def producer_group_of_one_for_32_threads(mended):
    return threads() if mended else threads(commits=1)


@threads_bug(DeadlockError, "numbers.full[0]", "32 of 64 arrivals missing")
def producer_group_of_64_for_32_threads(mended):
    return threads() if mended else threads(commits=64)


@threads_bug(
    DeadlockError, "pipeline 'numbers': stage 2 was left out: warp 0", "advance a state once", "what came of it"
)
def producer_whose_state_skips_a_stage(mended):
    return threads(stages=3) if mended else threads("producer skips", stages=3)


@threads_bug(DeadlockError, "pipeline 'numbers': stage 2 was left out: warps 1-2", "advance a state once")
def consumers_whose_states_skip_a_stage(mended):
    return threads(stages=3) if mended else threads("consumer skips", stages=3)


@threads_bug(DeadlockError, "numbers.empty[0]", "64 of 64 arrivals missing")
def threads_that_never_release(mended):
    return threads() if mended else threads("release")


def stored(*wrong):
    """Four warps fill buffers, warp 0 stores them by TMA."""

    def kernel(atom, target):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        buffers = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 128)
        pipe = pipeline.PipelineTmaStore.create(num_stages=STAGES, producer_group=CooperativeGroup(THREAD, TILE))
        filled, free = pipeline.NamedBarrier(1, TILE), pipeline.NamedBarrier(2, TILE)
        tiles = cute.local_tile(target, (TILE,), (None,))
        from_smem, to_gmem = cpasync.tma_partition(
            atom, 0, cute.make_layout(1), cute.group_modes(buffers, 0, 1), cute.group_modes(tiles, 0, 1)
        )
        for i in range(ROUNDS):
            if tidx < 32 and "acquire" not in wrong:
                pipe.producer_acquire()
            if "free" not in wrong:
                free.arrive_and_wait()
            buffers[tidx, i % STAGES] = cute.Float32(i * TILE + tidx)
            if "fence" not in wrong:
                arch.fence_proxy("async.shared", space="cta")
            if "filled" not in wrong:
                filled.arrive_and_wait()
            if tidx < 32:
                tile = i + ROUNDS if "outside" in wrong else i
                cute.copy(atom, from_smem[None, i % STAGES], to_gmem[None, tile])
                if "commit" not in wrong:
                    pipe.producer_commit()
        if tidx < 32 and "tail" not in wrong:
            pipe.producer_tail()

    return kernel


def store_bug(error, *words, **more):
    def make():
        x = np.zeros(ROUNDS * TILE, np.float32)
        store = cpasync.CopyBulkTensorTileS2GOp()
        return cpasync.make_tiled_tma_atom(store, from_dlpack(x), cute.make_layout(TILE), (TILE,))

    return bug(error, *words, threads=TILE, arguments=make, **more)


@store_bug(RaceError, "still reads it", "buffers", "cp_async_bulk_tensor_s2g")
def store_pipeline_that_never_acquires(mended):
    return stored() if mended else stored("acquire")


@store_bug(RaceError, "buffers", "still reads it|is written by|is read by", "cp_async_bulk_tensor_s2g|copy")
def writers_that_do_not_wait_for_the_free_buffer(mended):
    return stored() if mended else stored("free")


@store_bug(RaceError, "missing fence.proxy.async", "buffers", "fence_proxy(")
def store_pipeline_without_a_proxy_fence(mended):
    return stored() if mended else stored("fence")


@store_bug(RaceError, "buffers", "is read by cp_async_bulk_tensor_s2g|is written by|missing fence.proxy.async")
def store_before_all_have_written(mended):
    return stored() if mended else stored("filled")


@store_bug(RaceError, "buffers", "still reads it|may still use", "cp_async_bulk_tensor_s2g", "commit it|wait")
def store_pipeline_that_never_commits(mended):
    return stored() if mended else stored("commit")


@store_bug(RaceError, "exit: CTA 0", "cp_async_bulk_tensor_s2g", "producer_tail", check=ExitStores)
def store_pipeline_without_a_tail(mended):
    return stored() if mended else stored("tail")


def ordered(*wrong):
    """Three warps take turns to append to a list."""

    def kernel(out):
        tidx, _, _ = arch.thread_idx()
        warp = tidx // 32
        smem = utils.SmemAllocator()
        turn = pipeline.PipelineOrder.create(
            depth=1, length=3, group_id=warp, producer_group=CooperativeGroup(THREAD, 32),
            barrier_storage=smem.allocate_array(cute.Int64, 3), name="turn",
        )  # fmt: skip
        count = smem.allocate_tensor(cute.Int32, cute.make_layout(1), 16)
        if tidx == 0:
            count[0] = 0
        arch.sync_threads()
        for _ in range(2):
            if "wait" not in wrong:
                turn.wait()
            if tidx % 32 == 0:
                out[count[0]] = warp
                count[0] += 1
            if "arrive" not in wrong and ("one lane" not in wrong or tidx % 32 == 0):
                turn.arrive()

    return kernel


def order_bug(error, *words, **more):
    return bug(error, *words, threads=96, arguments=lambda: (np.zeros(8, np.int32),), **more)


@order_bug(SimError, "count", "is read by|is written by|more arrivals", check=Races)
def turn_that_is_not_waited_for(mended):
    return ordered() if mended else ordered("wait")


@order_bug(DeadlockError, "turn[", "arrivals missing", "fix:")
def turn_that_is_never_passed_on(mended):
    return ordered() if mended else ordered("arrive")


@order_bug(DeadlockError, "turn[", "31 of 32 arrivals missing")
def turn_passed_on_by_one_lane(mended):
    return ordered() if mended else ordered("one lane")


def copied(*wrong):
    """PipelineCpAsync: warp 0 copies by cp.async, warp 1 reads."""

    def kernel(x, out):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineCpAsync.create(
            num_stages=STAGES, name="copies", barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
            producer_group=CooperativeGroup(THREAD, 32), consumer_group=CooperativeGroup(THREAD, 32),
        )  # fmt: skip
        buffers = smem.allocate_tensor(cute.Float32, cute.make_layout((128, STAGES)), 128)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
        tiles = cute.zipped_divide(x, (4,))
        producer, consumer = pipe.make_participants()
        if tidx < 32:
            for i in range(4):
                stage = producer.acquire_and_advance()
                mine = cute.local_tile(buffers[None, stage.index], (4,), (tidx,))
                cute.copy(atom, tiles[None, 32 * i + tidx], mine)
                if "commit" not in wrong:
                    if "plain" in wrong:
                        arch.mbarrier_arrive(pipe.producer_get_barrier(stage))
                    else:
                        stage.commit()
            producer.tail()
        else:
            for i in range(4):
                stage = consumer.wait_and_advance()
                out[32 * i + tidx - 32] = buffers[127 - (tidx - 32), stage.index]
                if "release" not in wrong:
                    stage.release()

    return kernel


def copied_bug(error, *words):
    return bug(
        error,
        *words,
        threads=64,
        arguments=lambda: (from_dlpack(np.ones(512, np.float32), assumed_align=16), np.zeros(128, np.float32)),
    )


@copied_bug(RaceError, "buffers", "cp_async", "has still to write it|is read by")
def cp_async_stage_committed_by_a_plain_arrival(mended):
    return copied() if mended else copied("plain")


@copied_bug(DeadlockError, "copies.full[0]", "32 of 32 arrivals missing")
def cp_async_stage_that_is_never_committed(mended):
    return copied() if mended else copied("commit")


@copied_bug(DeadlockError, "copies.empty[0]", "32 of 32 arrivals missing")
def cp_async_stage_that_is_never_released(mended):
    return copied() if mended else copied("release")


@store_bug(SimWarning, "all boxes that this line copies lie wholly outside", "writes nothing", check=Boxes)
def tiles_stored_outside_of_the_tensor(mended):
    return stored() if mended else stored("outside")
