# SPDX-License-Identifier: Apache-2.0
"""What a pipeline costs: its machine code against the same kernel with bare instructions, counted."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, pipeline, seam, utils
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack

STAGES, WORDS, WARPS = 4, 256, 4
BYTES = 4 * WORDS
FULL_AT = STAGES * BYTES
EMPTY_AT = FULL_AT + 8 * STAGES


@seam.traced
def copy_in(dst, src, i, bar):
    source = src.iterator.address + dtypes.Uint64(i) * BYTES
    seam.current().when(isa.elect_sync(), lambda: isa.cp_async_bulk_g2s(dst, source, BYTES, bar))


@seam.traced
def load(address):
    return seam.current().load(dtypes.Int32, "smem", address, 1, 4)[0]


@seam.traced
def base():
    seam.current().smem_needs(EMPTY_AT + 8 * STAGES)
    return dtypes.Int32(seam.current().smem_base())


@seam.traced
def init(start, tidx):
    def barriers():
        for s in range(STAGES):
            isa.mbarrier_init(start + FULL_AT + 8 * s, 1)
        for s in range(STAGES):
            isa.mbarrier_init(start + EMPTY_AT + 8 * s, WARPS)

    b = seam.current()
    all_three = isa.sreg(register="tid.x") | isa.sreg(register="tid.y") | isa.sreg(register="tid.z")
    b.when(b.compare("==", all_three, 0), barriers)
    isa.fence_mbarrier_init()
    pipeline.sync()


@seam.traced
def wait(bar, phase):
    isa.mbarrier_wait_parity(bar, phase)


@seam.traced
def expect(bar):
    seam.current().when(isa.elect_sync(), lambda: isa.mbarrier_arrive_expect_tx(bar, BYTES))


@seam.traced
def release(bar, tidx):
    b = seam.current()
    b.when(b.compare("==", dtypes.Int32(tidx) % 32, 0), lambda: isa.mbarrier_arrive(bar))


@seam.traced
def following(index, phase):
    """The next stage: a person would write a compare and two selects."""
    b = seam.current()
    wraps = b.compare("==", index + 1, STAGES)
    return b.select(wraps, 0, index + 1), b.select(wraps, phase ^ 1, phase)


@cuda.jit
def raw(source, out, count):
    tidx, _, _ = arch.thread_idx()
    start = base()
    init(start, tidx)
    index, phase = cute.Int32(0), cute.Int32(0)
    if tidx >= 32 * WARPS:
        phase = cute.Int32(1)
        for i in range(count):
            wait(start + EMPTY_AT + 8 * index, phase)
            expect(start + FULL_AT + 8 * index)
            copy_in(start + BYTES * index, source, i, start + FULL_AT + 8 * index)
            index, phase = following(index, phase)
        wait(start + EMPTY_AT + 8 * index, phase)
        for _ in cute.range_constexpr(STAGES - 1):
            index, phase = following(index, phase)
            wait(start + EMPTY_AT + 8 * index, phase)
    else:
        total = 0
        for _ in range(count):
            wait(start + FULL_AT + 8 * index, phase)
            total += load(start + BYTES * index + 4 * tidx)
            arch.sync_warp()
            release(start + EMPTY_AT + 8 * index, tidx)
            index, phase = following(index, phase)
        out[tidx] = total


@seam.traced
def parts():
    """(the pipeline, the start of the stages)"""
    smem = utils.SmemAllocator()
    buffers = smem.allocate(STAGES * BYTES, 128)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES, producer_group=CooperativeGroup(Agent.Thread),
        consumer_group=CooperativeGroup(Agent.Thread, WARPS), tx_count=BYTES,
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
    )  # fmt: skip
    return pipe, dtypes.Int32(buffers.address)


@cuda.jit
def plain(source, out, count):
    """Through states."""
    tidx, _, _ = arch.thread_idx()
    pipe, start = parts()
    if tidx >= 32 * WARPS:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
        for i in range(count):
            pipe.producer_acquire(state)
            copy_in(start + BYTES * state.index, source, i, pipe.producer_get_barrier(state).address)
            pipe.producer_commit(state)
            state.advance()
        pipe.producer_tail(state)
    else:
        state, total = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES), 0
        for _ in range(count):
            pipe.consumer_wait(state)
            total += load(start + BYTES * state.index + 4 * tidx)
            arch.sync_warp()
            pipe.consumer_release(state)
            state.advance()
        out[tidx] = total


@cuda.jit
def handles(source, out, count):
    """Through participants and handles."""
    tidx, _, _ = arch.thread_idx()
    pipe, start = parts()
    producer, consumer = pipe.make_participants()
    if tidx >= 32 * WARPS:
        for i in range(count):
            stage = producer.acquire_and_advance()
            copy_in(start + BYTES * stage.index, source, i, stage.barrier.address)
            stage.commit()
        producer.tail()
    else:
        total = 0
        for _ in range(count):
            stage = consumer.wait_and_advance()
            total += load(start + BYTES * stage.index + 4 * tidx)
            arch.sync_warp()
            stage.release()
        out[tidx] = total


@cute.struct
class Mainloop:
    producer: pipeline.PipelineProducer
    consumer: pipeline.PipelineConsumer
    start: cute.Int32
    total: cute.Int32 = 0

    def fill(self, source, i):
        stage = self.producer.acquire_and_advance()
        copy_in(self.start + BYTES * stage.index, source, i, stage.barrier.address)
        stage.commit()

    def use(self, tidx):
        stage = self.consumer.wait_and_advance()
        self.total += load(self.start + BYTES * stage.index + 4 * tidx)
        arch.sync_warp()
        stage.release()


@cuda.jit(device=True, forceinline=True)
def fill_all(loop, source, count):
    for i in range(count):
        loop.fill(source, i)
    loop.producer.tail()


@cuda.jit(device=True, forceinline=True)
def use_all(loop, count, tidx):
    for _ in range(count):
        loop.use(tidx)
    return loop.total


@cuda.jit(device=True, forceinline=True)
def work(loop, source, out, count, tidx):
    if tidx >= 32 * WARPS:
        fill_all(loop, source, count)
    else:
        out[tidx] = use_all(loop, count, tidx)


@cuda.jit
def nested(source, out, count):
    """In a user's struct, through two device functions."""
    tidx, _, _ = arch.thread_idx()
    pipe, start = parts()
    producer, consumer = pipe.make_participants()
    loop = Mainloop(producer, consumer, start)
    work(loop, source, out, count, tidx)


KERNELS = {"states": plain, "handles": handles, "nested": nested, "raw": raw}


def arguments():
    source = np.arange(9 * WORDS, dtype=np.int32)
    return source, np.zeros(32 * WARPS, np.int32), np.int32(9)


@pytest.fixture(scope="module")
def compiled():
    source, out, count = arguments()
    return {name: cute.compile(k, (from_dlpack(source), out, count)) for name, k in KERNELS.items()}


def instructions(sass):
    """What is executed: padding and the trap behind the last exit left out."""
    found = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", sass)
    return [op for op in found if op != "NOP"]


@pytest.mark.parametrize("name", ["states", "handles", "nested"])
def test_a_pipeline_costs_what_bare_instructions_cost(compiled, name):
    mine, twin = (len(instructions(compiled[k].sass)) for k in (name, "raw"))
    assert twin > 50, "the count counts"
    assert mine <= twin * 1.02, f"{mine} instructions, and {twin} without a pipeline"
    barriers = [sum(op.startswith("SYNCS") for op in instructions(compiled[k].sass)) for k in (name, "raw")]
    assert barriers[0] == barriers[1] > 2 * STAGES, "accesses to mbarriers"


@pytest.mark.parametrize("name", KERNELS)
def test_a_pipeline_needs_no_local_memory(compiled, name):
    found = compiled[name].resources
    assert (found.local, found.spill_stores, found.spill_loads) == (0, 0, 0)
    assert not [op for op in instructions(compiled[name].sass) if op.startswith(("LDL", "STL", "CALL"))]


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernels_that_are_counted_do_the_same(run, name):
    source, out, count = arguments()

    def check():
        np.testing.assert_array_equal(out, source.reshape(9, WORDS)[:, : 32 * WARPS].sum(0))

    args = [lambda place: from_dlpack(place(source)), out, count]
    run(KERNELS[name], 1, 32 * (WARPS + 1), args, outputs=[out], check=check)
