# SPDX-License-Identifier: Apache-2.0
"""A producer's tail waits for every stage, whoever releases last, and leaves its state at the stage filled last."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, pipeline, seam, utils
from numba_cute.pipeline import Agent, CooperativeGroup, PipelineUserType
from numba_cute.runtime import from_dlpack
from numba_cute.sim import DeadlockError

from .hopper_kernels import WORDS, copy_word

KINDS = ("Async", "CpAsync", "TmaAsync", "TmaUmma", "AsyncUmma", "UmmaAsync", "TmaMultiConsumersAsync", "ClcFetchAsync")
WARP = CooperativeGroup(Agent.Warp)


class Host:
    """The part of a backend that states and tails need, on ints. leads: whether this CTA is the first of its pair."""

    def __init__(self, leads=True):
        self.leads = leads

    def select(self, cond, a, b):
        return a if cond else b

    def compare(self, op, a, b):
        return a == b

    def cast(self, value, dtype):
        return value

    def when(self, cond, then):
        if cond:
            then()

    def issue(self, instr, statics, operands):
        return 0 if self.leads else 1  # the rank in the cluster


def tail(kind, stages, rounds, leads=True, **fields):
    """(the stages and phases that are waited for, where the state was, where it ends)"""
    waits = []
    barriers = SimpleNamespace(wait=lambda index, phase: waits.append((index, phase)))
    cls = getattr(pipeline, f"Pipeline{kind}")
    pipe = object.__new__(cls)
    for name, value in {"num_stages": stages, "sync_object_empty": barriers, "cta_group": 1, **fields}.items():
        object.__setattr__(pipe, name, value)
    with seam.running(Host(leads)):
        state = pipeline.make_pipeline_state(PipelineUserType.Producer, stages)
        for _ in range(rounds):
            state.advance()
        before = state.index, state.count
        pipe.producer_tail(state)
    return waits, before, (state.index, state.count)


@pytest.mark.parametrize("rounds", [0, 1, 3, 5, 8])
@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_is_waited_for_in_its_own_phase(kind, stages, rounds):
    waits, (index, count), after = tail(kind, stages, rounds)
    turns = [rounds + i for i in range(stages)]  # the fillings that would come next: each waits for the one before
    assert waits == [(turn % stages, 1 ^ turn // stages & 1) for turn in turns]
    assert after == ((index + stages - 1) % stages, count + stages - 1)


@pytest.mark.parametrize("leads", [True, False])
def test_of_a_pair_only_the_cta_that_multiplies_waits_for_results_to_be_read(leads):
    waits, _, _ = tail("UmmaAsync", 3, 4, leads, cta_group=2)
    assert len(waits) == (3 if leads else 0)


def reuse_kernel(kind, order):
    """Stages are released in an order of the consumers' own; after its tail the producer writes over all of them."""
    stages = len(order)
    create = getattr(pipeline, f"Pipeline{kind}").create
    one = CooperativeGroup(Agent.Thread)
    tma = {"tx_count": 4 * WORDS, "producer_group": one, "consumer_group": one}
    threads = {"producer_group": WARP, "consumer_group": WARP}
    sides = tma if kind == "TmaAsync" else threads

    @seam.traced
    def make():
        return create(num_stages=stages, name="tiles", **sides)

    @seam.traced
    def fill(stage, dst, src, tidx):
        b, bulk = seam.current(), isa.cp_async_bulk_g2s
        if kind == "TmaAsync":
            to, from_, bar = dst.iterator.address, src.iterator.address, stage.barrier.address
            b.when(isa.elect_sync(), lambda: bulk(to, from_, 4 * WORDS, bar))
        else:
            b.loop(0, WORDS // 32, lambda i: copy(dst, src, tidx + 32 * i))

    @seam.traced
    def copy(dst, src, word):
        if kind == "CpAsync":
            copy_word(dst, src, word)
        else:
            dst[word] = src[word]

    @cuda.jit
    def kernel(source, out):
        tidx, _, _ = arch.thread_idx()
        values = utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout((WORDS, stages)), 128)
        pipe = make()
        if tidx < 32:
            producer = pipe.make_producer()
            for i in range(stages):
                stage = producer.acquire_and_advance()
                fill(stage, values[None, stage.index], source[i, None], tidx)
                stage.commit()
            producer.tail()
            for i in range(stages):
                for w in range(tidx, WORDS, 32):
                    values[w, i] = -1
        else:
            state = pipeline.make_pipeline_state(PipelineUserType.Consumer, stages)
            for _ in range(stages):
                pipe.consumer_wait(state)
                state.advance()
            for i in cute.range_constexpr(stages):
                at = order[i]
                for w in range(tidx - 32, WORDS, 32):
                    out[at, w] = values[WORDS - 1 - w, at]
                arch.sync_warp()
                pipe.consumer_release(pipeline.PipelineState(stages, i, at, 0))

    return kernel


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("kind", ["Async", "CpAsync", "TmaAsync"])
def test_after_the_tail_no_stage_is_in_use_though_the_last_was_released_first(run, rng, kind, order):
    source = rng.integers(-1000, 1000, (3, WORDS), dtype=np.int32)
    out = np.zeros_like(source)
    args = [lambda place: from_dlpack(place(source)), out]
    check = lambda: np.testing.assert_array_equal(out, source[:, ::-1])  # noqa: E731
    run(reuse_kernel(kind, order), 1, 64, args, outputs=[out], check=check)


def test_a_stage_that_is_never_released_is_a_deadlock_in_the_tail(rng):
    source = rng.integers(-1000, 1000, (3, WORDS), dtype=np.int32)

    @cuda.jit
    def kernel(source):
        pipe = pipeline.PipelineAsync.create(num_stages=3, producer_group=WARP, consumer_group=WARP, name="tiles")
        producer, consumer = pipe.make_participants()
        if arch.thread_idx()[0] < 32:
            for _ in range(3):
                producer.acquire_and_advance().commit()
            producer.tail()
        else:
            consumer.wait_and_advance()
            for _ in range(2):
                consumer.wait_and_advance().release()

    with pytest.raises(DeadlockError, match=r"tiles\.empty\[0\]"):
        cute.simulate(kernel)[1, 64](source)
