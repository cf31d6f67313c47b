# SPDX-License-Identifier: Apache-2.0
"""A handle is committed and released through the pipeline that gave it, or refused."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, seam, utils
from numba_cute.pipeline import Agent, CooperativeGroup

WARP = CooperativeGroup(Agent.Warp)
RIGHT = "right"


@seam.traced
def of_one_warp(storage, name, stages):
    sides = {"producer_group": WARP, "consumer_group": WARP}
    return pipeline.PipelineAsync.create(num_stages=stages, barrier_storage=storage, name=name, **sides)


def kernel(how, names=("a", "b"), stages=(2, 2), helper=False, joined=False):
    """One warp fills two pipelines, one empties both. how: which handle goes where. helper: a plain function makes the
    pipelines. joined: two ways meet, so that the compiler does not see which is which."""
    (name_a, name_b), (stages_a, stages_b) = names, stages

    @cuda.jit
    def run(rounds):
        smem = utils.SmemAllocator()
        words = smem.allocate_array(cute.Int64, 2 * (stages_a + stages_b))
        if helper:
            a = of_one_warp(words, name_a, stages_a)
            b = of_one_warp(words + 2 * stages_a, name_b, stages_b)
        else:
            a = pipeline.PipelineAsync.create(
                num_stages=stages_a, producer_group=WARP, consumer_group=WARP, barrier_storage=words, name=name_a
            )
            b = pipeline.PipelineAsync.create(
                num_stages=stages_b, producer_group=WARP, consumer_group=WARP, name=name_b,
                barrier_storage=words + 2 * stages_a,
            )  # fmt: skip
        if joined:
            if rounds < 0:
                a, b = b, a
        producer_a, consumer_a = a.make_participants()
        producer_b, consumer_b = b.make_participants()
        if arch.thread_idx()[0] < 32:
            for _ in range(rounds):
                of_a, of_b = producer_a.acquire_and_advance(), producer_b.acquire()
                producer_b.advance()
                if how == "commit":
                    producer_b.commit(of_a)
                    producer_a.commit(of_b)
                elif how == "commit by name":
                    producer_b.commit(handle=of_a)
                    producer_a.commit(handle=of_b)
                elif how == "producer_commit":
                    other = of_b
                    a.producer_commit(other)
                    b.producer_commit(of_a)
                else:
                    producer_a.commit(of_a)
                    b.producer_commit(of_b)
            producer_a.tail()
            producer_b.tail()
        else:
            for _ in range(rounds):
                of_a, of_b = consumer_a.wait_and_advance(), consumer_b.wait_and_advance()
                if how == "release":
                    consumer_b.release(of_a)
                    consumer_a.release(of_b)
                elif how == "consumer_release":
                    a.consumer_release(of_b)
                    b.consumer_release(of_a)
                else:
                    consumer_a.release(of_a)
                    b.consumer_release(of_b)

    return run


MIXED = ("commit", "commit by name", "producer_commit", "release", "consumer_release")
OF_ANOTHER = "the handle is of pipeline '{}', and this is pipeline '{}'"


def compiled(k):
    cute.compile(k, (np.int32(3),))


def simulated(k):
    cute.simulate(k)[1, 64](np.int32(3))


def together(k):
    """The lanes of a warp as one."""
    cute.simulate(k, checks=False)[1, 64](np.int32(3))


ENGINES = [simulated, together, compiled]


def refused(engine, k):
    with pytest.raises(cute.CuteError) as e:
        engine(k)
    return str(e.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", MIXED)
def test_a_handle_of_another_pipeline_is_refused(engine, how):
    said = refused(engine, kernel(how))
    assert OF_ANOTHER.format("a", "b") in said or OF_ANOTHER.format("b", "a") in said


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", MIXED)
def test_so_is_one_of_a_pipeline_that_was_made_alike(engine, how):
    assert OF_ANOTHER.format("tiles", "tiles") + ", another of that name" in refused(
        engine, kernel(how, ("tiles", "tiles"))
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", MIXED)
def test_so_is_one_of_a_pipeline_with_other_stages(engine, how):
    assert "another of that name" in refused(engine, kernel(how, ("tiles", "tiles"), (2, 3), True))


@pytest.mark.parametrize("how", MIXED)
def test_so_is_one_of_a_pipeline_that_a_function_made(how):
    assert "another of that name" in refused(compiled, kernel(how, ("tiles", "tiles"), helper=True))


@pytest.mark.parametrize("how", MIXED)
def test_the_simulator_tells_pipelines_apart_that_are_one_type(how):
    k = kernel(how, ("tiles", "tiles"), helper=True, joined=True)
    compiled(k)  # which of the two each is is not known there: see pipeline.ownership
    for engine in (simulated, together):
        assert "another of that name" in refused(engine, k)


def odd_kernel(how):
    @cuda.jit
    def run(_):
        pipe = of_one_warp(None, "tiles", 2)
        producer, consumer = pipe.make_participants()
        if how == "commit of a consumer's":
            producer.commit(pipeline.ConsumerHandle(pipe, 0, 0, 0))
        elif how == "commit of a state":
            producer.commit(pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2))
        elif how == "producer_commit of a consumer's":
            pipe.producer_commit(pipeline.ConsumerHandle(pipe, 0, 0, 0))
        elif how == "consumer_release of a producer's":
            pipe.consumer_release(pipeline.ProducerHandle(pipe, 0, 0, 0))
        else:
            consumer.release(pipeline.ProducerHandle(pipe, 0, 0, 0))

    return run


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("commit of a consumer's", "is not a ProducerHandle"),
        ("commit of a state", "is not a ProducerHandle"),
        ("release of a producer's", "is not a ConsumerHandle"),
        ("producer_commit of a consumer's", "is a ConsumerHandle, and must be what acquire gave"),
        ("consumer_release of a producer's", "is a ProducerHandle, and must be what wait gave"),
    ],
)
def test_what_is_no_handle_of_that_side_is_refused(engine, how, says):
    assert says in refused(engine, odd_kernel(how))


@pytest.mark.parametrize("helper", [False, True])
@pytest.mark.parametrize("names", [("a", "b"), ("tiles", "tiles")])
def test_what_is_right_is_taken(run, names, helper):
    run(kernel(RIGHT, names, helper=helper), 1, 64, [np.int32(5)])


@cuda.jit
def carried(out, rounds):
    """Handles over iterations, through branches, copies and clones."""
    tidx, _, _ = arch.thread_idx()
    a = pipeline.PipelineAsync.create(num_stages=3, producer_group=WARP, consumer_group=WARP, name="tiles")
    b = pipeline.PipelineAsync.create(num_stages=3, producer_group=WARP, consumer_group=WARP, name="tiles")
    producer, consumer = a.make_participants()
    other_producer, other_consumer = b.make_participants()
    if tidx < 32:
        for i in range(rounds):
            stage = producer.acquire_and_advance()
            other = other_producer.acquire_and_advance() if i % 2 == 0 else other_producer.acquire_and_advance()
            producer.commit(stage)
            other_producer.commit(other)
        producer.tail()
        other_producer.tail()
    else:
        again, taken = consumer.clone(), 0
        previous = again.wait_and_advance()
        for i in range(rounds):
            if i > 0:
                stage = again.wait_and_advance()
                consumer.release(previous)
                previous = stage
            other = other_consumer.wait_and_advance()
            other_consumer.release(other)
            taken += 1
        a.consumer_release(previous)
        out[tidx - 32] = taken


def test_handles_may_be_carried_over_loops_and_branches(run):
    out = np.zeros(32, np.int32)

    def check():
        assert (out == 5).all()

    run(carried, 1, 64, [out, np.int32(5)], outputs=[out], check=check)
