# SPDX-License-Identifier: Apache-2.0
"""Pipelines are followed into device functions; what cannot be followed is let through."""

import functools
import itertools

import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup, PipelineUserType

from .test_notes import STAGES, notes


def device_sides(wrong, deeper):
    """What produces and what consumes as device functions, which are given the pipeline and a state. deeper: what
    produces gives them on to another one."""

    @cuda.jit(device=True)
    def fill(pipe, state, values, tidx):
        for i in range(7):
            pipe.producer_acquire(state)
            values[tidx, state.index] = i
            if wrong != "no commit":
                pipe.producer_commit(state)
            if wrong == "commits twice":
                pipe.producer_commit(state)
            if wrong != "stays":
                state.advance()

    @cute.jit
    def fill_deeper(pipe, state, values, tidx):
        fill(pipe, state, tidx=tidx, values=values)

    @cute.jit
    def take(pipe, state, values, tidx, out):
        for _ in range(7):
            pipe.consumer_wait(state)
            out[tidx] += values[tidx, state.index]
            pipe.consumer_release(state)
            if wrong == "reads late":
                out[tidx] += values[tidx, state.index]
            state.advance()

    return fill_deeper if deeper else fill, take


def hand_sides(wrong):
    """The same, which are given a participant."""

    @cuda.jit(device=True)
    def fill_next(side, values, tidx):
        for i in range(7):
            stage = side.acquire_and_advance()
            values[tidx, stage.index] = i
            if wrong != "no commit":
                stage.commit()
        if wrong == "no commit":
            side.tail()

    @cute.jit
    def take_next(side, values, tidx, out):
        for _ in range(7):
            stage = side.wait_and_advance()
            out[tidx] += values[tidx, stage.index]
            stage.release()
            if wrong == "reads late":
                out[tidx] += values[tidx, stage.index]

    return fill_next, take_next


def divided(wrong, hands, deeper):
    """A kernel with each side in a device function. hands: which is given a participant."""
    produce, consume = hand_sides(wrong) if hands else device_sides(wrong, deeper)
    fills = CooperativeGroup(Agent.Thread, 64 if wrong == "too few" else 32)

    def kernel(out, _seven):
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineAsync.create(
            num_stages=STAGES, name="n", barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
            producer_group=fills, consumer_group=CooperativeGroup(Agent.Thread, 64),
        )  # fmt: skip
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((128, STAGES)), 16)
        if cute.const_expr(hands):
            producer, consumer = pipe.make_participants()
            if warp == 0:
                produce(producer, values, tidx)
            elif warp < 3 and wrong != "no consumer":
                consume(consumer, values, tidx, out=out)
        else:
            state = pipeline.make_pipeline_state(PipelineUserType.Producer, STAGES)
            use = pipeline.make_pipeline_state(PipelineUserType.Consumer, STAGES)
            if warp == 0:
                produce(pipe, state, values, tidx)
                pipe.producer_tail(state)
            elif warp < 3 and wrong != "no consumer":
                consume(pipe, use, values, tidx, out)

    return kernel


IN_FUNCTIONS = {  # of each mistake: the words, the line's source
    "no consumer": ("and no consumer", "acquire"),
    "no commit": ("nothing commits a stage (acquire in line", "acquire"),
    "too few": ("after 64 arrivals (producer_group), and no more than 32 threads come to commit", "commit("),
    "reads late": ("is read in line", "release("),
    "commits twice": ("is given back once more", "pipe.producer_commit(state)"),
    "stays": ("nothing advances the state between them", "pipe.producer_acquire(state)"),
}


QUICK = (("", False, True), ("no consumer", False, True), ("commits twice", False, True), ("no commit", True, False))


@pytest.mark.parametrize(
    "wrong, hands, deeper",
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in itertools.product(["", *IN_FUNCTIONS], (False, True), (False, True))
        if not case[1] or case[0] in ("", "no consumer", "no commit", "too few", "reads late") and not case[2]
    ],
)
def test_a_pipeline_is_followed_into_device_functions(wrong, hands, deeper):
    found = notes(divided(wrong, hands, deeper))
    assert len(found) == bool(wrong), found
    for note in found:
        words, source = IN_FUNCTIONS[wrong]
        assert words in note and source in note.splitlines()[-1]


def take(pipe, state, values, tidx, out):
    for _ in range(7):
        pipe.consumer_wait(state)
        out[tidx] += values[tidx, state.index]
        pipe.consumer_release(state)
        state.advance()


def take_again(pipe, state, values, tidx, out, left):
    """Call itself."""
    if left > 0:
        pipe.consumer_wait(state)
        out[tidx] += values[tidx, state.index]
        pipe.consumer_release(state)
        state.advance()
        take_again(pipe, state, values, tidx, out, left - 1)


class Holder:
    def __init__(self, pipe):
        self.pipe = pipe


HIDDEN = ("partial", "closure", "barrier", "field")


@pytest.mark.parametrize("how", [h if h == "field" else pytest.param(h, marks=pytest.mark.slow) for h in HIDDEN])
def test_what_is_not_followed_is_let_through(how):
    one = CooperativeGroup(Agent.Thread, 32)

    def kernel(out, seven):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        words = smem.allocate_array(cute.Int64, 4 * STAGES)
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((128, STAGES)), 16)
        pipe, other = (
            pipeline.PipelineAsync.create(
                num_stages=STAGES, name="n", barrier_storage=words + 2 * STAGES * i, producer_group=one,
                consumer_group=one,
            )
            for i in range(2)
        )  # fmt: skip
        use = pipeline.make_pipeline_state(PipelineUserType.Consumer, STAGES)
        fill = pipeline.make_pipeline_state(PipelineUserType.Producer, STAGES)
        holder = Holder(pipe)
        if tidx < 32:
            for _ in range(7):
                holder.pipe.producer_acquire(fill)
                holder.pipe.producer_commit(fill)
                fill.advance()
                if how == "field":
                    holder.pipe = other
        else:
            if how == "partial":
                functools.partial(take, pipe, use)(values, tidx, out)
                functools.partial(take, other, use)(values, tidx, out)
            elif how == "closure":

                def taken(p):
                    p.consumer_wait(use)
                    p.consumer_release(use)

                taken(pipe)
                taken(other)
            elif how == "barrier":
                pipe.sync_object_full.wait(0, 0)
                other.sync_object_full.wait(0, 0)
            else:
                take(pipe, use, values, tidx, out)
                take(other, use, values, tidx, out)

    assert notes(kernel) == ()
