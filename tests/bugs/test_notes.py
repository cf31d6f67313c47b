# SPDX-License-Identifier: Apache-2.0
"""Likely mistakes with pipelines are noted while a kernel is compiled, at the line; the right twin has none."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup, PipelineUserType
from numba_cute.runtime import from_dlpack
from numba_cute.seam import frozen, traced
from numba_cute.seam.hooks.engines import COMPILER

STAGES = 2
KINDS = {  # of each: the arrivals of its producers, and of its consumers
    "Async": (32, 64),
    "CpAsync": (32, 64),
    "TmaAsync": (1, 2),
    "TmaUmma": (1, 1),
    "UmmaAsync": (1, 64),
    "AsyncUmma": (32, 1),
}


def counted(kind, wrong):
    """Both sides, and how the producer's state begins."""
    produce, consume = KINDS[kind]
    produce += 32 * ("too few produce" in wrong)
    consume = 1 if "too many consume" in wrong else consume + 64 * ("too few consume" in wrong)
    begins = PipelineUserType.Consumer if "producer begins wrong" in wrong else PipelineUserType.Producer
    return CooperativeGroup(Agent.Thread, produce), CooperativeGroup(Agent.Thread, consume), begins


def roles(wrong):
    """What produces and what consumes, as plain functions."""

    def produce(pipe, state, values, tidx, rounds):
        for i in range(rounds):
            pipe.producer_acquire(state)
            if "commits first" not in wrong:
                values[tidx, state.index] = i
            if "no commit" not in wrong:
                pipe.producer_commit(state)
            if "commits first" in wrong:
                values[tidx, state.index] = i
            if "commits twice" in wrong:
                pipe.producer_commit(state)
            if "producer stays" not in wrong:
                state.advance()
        pipe.producer_tail(state)

    def consume(pipe, state, values, tidx, rounds, out):
        for _ in range(rounds):
            if "releases first" in wrong:
                pipe.consumer_release(state)
            if "no wait" not in wrong:
                pipe.consumer_wait(state)
            if "reads late" not in wrong:
                out[tidx] += values[tidx, state.index]
            if "releases first" not in wrong:
                pipe.consumer_release(state)
            if "reads late" in wrong:
                out[tidx] += values[tidx, state.index]
            if "releases twice" in wrong:
                pipe.consumer_release(state)
            if "consumer stays" not in wrong:
                state.advance()

    return produce, consume


class Side:
    """A pipeline, the state of one side."""

    def __init__(self, pipe, state, values):
        self.pipe = pipe
        self.state = state
        self.values = values


def sides(wrong):
    """The same as methods of objects, which hold the pipeline and the state."""

    class Producer(Side):
        def run(self, tidx, rounds):
            for i in range(rounds):
                self.pipe.producer_acquire(self.state)
                if "commits first" not in wrong:
                    self.values[tidx, self.state.index] = i
                if "no commit" not in wrong:
                    self.pipe.producer_commit(self.state)
                if "commits first" in wrong:
                    self.values[tidx, self.state.index] = i
                if "commits twice" in wrong:
                    self.pipe.producer_commit(self.state)
                if "producer stays" not in wrong:
                    self.state.advance()
            self.pipe.producer_tail(self.state)

    class Consumer(Side):
        def run(self, tidx, rounds, out):
            for _ in range(rounds):
                if "releases first" in wrong:
                    self.pipe.consumer_release(self.state)
                if "no wait" not in wrong:
                    self.pipe.consumer_wait(self.state)
                if "reads late" not in wrong:
                    out[tidx] += self.take(tidx)
                if "releases first" not in wrong:
                    self.pipe.consumer_release(self.state)
                if "reads late" in wrong:
                    out[tidx] += self.values[tidx, self.state.index]
                if "releases twice" in wrong:
                    self.pipe.consumer_release(self.state)
                if "consumer stays" not in wrong:
                    self.state.advance()

        def take(self, tidx):
            return self.values[tidx, self.state.index]

    return Producer, Consumer


@dataclass
class Both:
    producer: Side
    consumer: Side


FORMS = ("inline", "function", "compiled function", "method", "compiled method")
"""Where the roles are: those that are compiled have a loop of which only the kernel knows the rounds, the others are
run by Python while the kernel is typed."""


def makes(kind, wrong):
    """What makes the pipeline, as a plain function."""
    create = getattr(pipeline, f"Pipeline{kind}").create
    fills, uses, _ = counted(kind, wrong)
    given = {"tx_count": 16} if kind.startswith("Tma") else {}

    def make(smem):
        at = smem.allocate_array(cute.Int64, 2 * STAGES)
        return create(
            num_stages=STAGES, name="n", barrier_storage=at, producer_group=fills, consumer_group=uses, **given
        )  # fmt: skip

    return make


def using(kind, *wrong, form="inline"):
    """Warp 0 produces, warps 1 and 2 consume (of the matrix unit warp 1 alone)."""
    return inline(kind, wrong) if form == "inline" else called(kind, wrong, form)


def begun(wrong):
    """What the producer does before its loop, as a plain function."""

    def begin(pipe, state):
        for _ in range(STAGES + 1 if "prologue" in wrong else 1 if "head" in wrong or "two states" in wrong else 0):
            pipe.producer_acquire(state)
            if "prologue" not in wrong:
                pipe.producer_commit(state)
            state.advance()

    return begin


def called(kind, wrong, form):
    make, begin, (produce, consume), (Producer, Consumer) = makes(kind, wrong), begun(wrong), roles(wrong), sides(wrong)
    begins, last = counted(kind, wrong)[2], 2 if kind in ("TmaUmma", "AsyncUmma") else 3
    methods, compiled = "method" in form, "compiled" in form

    def kernel(out, seven):
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        rounds = seven if cute.const_expr(compiled) else 7
        smem = utils.SmemAllocator()
        pipe = make(smem)
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((128, STAGES)), 16)
        fill = pipeline.make_pipeline_state(begins, STAGES)
        use = pipeline.make_pipeline_state(PipelineUserType.Consumer, STAGES)
        if cute.const_expr(methods):
            both = Both(Producer(pipe, fill, values), consumer=Consumer(pipe, use, values))
        if "prologue" in wrong:
            begin(pipe, fill)
        if "unused" in wrong:
            out[tidx] = 0
        elif warp == 0 and "no producer" not in wrong:
            begin(pipe, pipeline.make_pipeline_state(begins, STAGES) if "two states" in wrong else fill)
            if cute.const_expr(methods):
                both.producer.run(tidx, rounds)
            else:
                produce(pipe, fill, values, tidx, rounds=rounds)
        elif 0 < warp < last and "no consumer" not in wrong:
            if cute.const_expr(methods):
                both.consumer.run(tidx, rounds, out)
            else:
                consume(pipe, use, values, tidx, rounds, out)

    return kernel


def inline(kind, wrong):
    make, begins, last = makes(kind, wrong), counted(kind, wrong)[2], 2 if kind in ("TmaUmma", "AsyncUmma") else 3

    def kernel(out, _seven):
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        pipe = make(smem)
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((128, STAGES)), 16)
        fill = pipeline.make_pipeline_state(begins, STAGES)
        use = pipeline.make_pipeline_state(PipelineUserType.Consumer, STAGES)
        if "prologue" in wrong:
            for _ in range(STAGES + 1):
                pipe.producer_acquire(fill)
                fill.advance()
        if "unused" in wrong:
            out[tidx] = 0
        elif warp == 0 and "no producer" not in wrong:
            if "head" in wrong or "two states" in wrong:
                head = pipeline.make_pipeline_state(begins, STAGES) if "two states" in wrong else fill
                pipe.producer_acquire(head)
                pipe.producer_commit(head)
                head.advance()
            for i in range(7):
                pipe.producer_acquire(fill)
                if "commits first" not in wrong:
                    values[tidx, fill.index] = i
                if "no commit" not in wrong:
                    pipe.producer_commit(fill)
                if "commits first" in wrong:
                    values[tidx, fill.index] = i
                if "commits twice" in wrong:
                    pipe.producer_commit(fill)
                if "producer stays" not in wrong:
                    fill.advance()
            pipe.producer_tail(fill)
        elif 0 < warp < last and "no consumer" not in wrong:
            for _ in range(7):
                if "releases first" in wrong:
                    pipe.consumer_release(use)
                if "no wait" not in wrong:
                    pipe.consumer_wait(use)
                if "reads late" not in wrong:
                    out[tidx] += values[tidx, use.index]
                if "releases first" not in wrong:
                    pipe.consumer_release(use)
                if "reads late" in wrong:
                    out[tidx] += values[tidx, use.index]
                if "releases twice" in wrong:
                    pipe.consumer_release(use)
                if "consumer stays" not in wrong:
                    use.advance()

    return kernel


def notes(kernel):
    """What the compiler's front end finds to be likely wrong."""
    given = cuda.jit(kernel), (from_dlpack(np.zeros(128, np.int32)), np.int32(7)), "sm_100a"
    COMPILER.check(*given)
    return COMPILER.likely_wrong(*given)


ALL = tuple(KINDS)
COUNTED = ("Async", "CpAsync", "UmmaAsync")  # whose consumers are threads
COMMITTED = ("Async", "CpAsync", "UmmaAsync", "AsyncUmma")
WRONG = {  # of each mistake: the pipelines with which it is made, the words, the line's source
    "unused": (ALL, "pipeline 'n' is made and never used", "create("),
    "no producer": (ALL, "has a consumer (wait in line", "consumer_wait("),
    "no consumer": (ALL, "has a producer (acquire in line", "producer_acquire("),
    "no commit": (COMMITTED, "nothing commits a stage", "producer_acquire("),
    "no wait": (ALL, "that nothing waits for", "consumer_release("),
    "too few produce": (
        COMMITTED[:2],
        "after 64 arrivals (producer_group), and no more than 32 threads",
        "producer_commit",
    ),
    "too few consume": (("Async", "CpAsync"), "after 128 arrivals (consumer_group)", "consumer_release"),
    "too many consume": (COUNTED + ("TmaAsync",), "after 1 arrival", "consumer_release"),
    "producer stays": (ALL, "nothing advances the state between them", "producer_acquire"),
    "consumer stays": (ALL, "nothing advances the state between them", "consumer_wait"),
    "commits first": (("Async",), "is written in line", "producer_commit"),
    "commits twice": (COMMITTED, "is given back once more", "producer_commit"),
    "reads late": (COUNTED, "is read in line", "consumer_release"),
    "releases first": (ALL, "stands before its consumer_wait", "consumer_release"),
    "releases twice": (ALL, "is given back once more", "consumer_release"),
    "producer begins wrong": (ALL, "is to begin as PipelineUserType.Producer", "producer_acquire"),
    "two states": (ALL, "begins at stage 0 by another state than acquire in line", "producer_acquire("),
    "prologue": (ALL, "has 2 stages, and 3 are acquired before any is released", "producer_acquire"),
}


def cases():
    """Each mistake with each pipeline in each form; of these one of each mistake, in one form after the other, is
    quick."""
    for i, (wrong, (kinds, *_)) in enumerate(WRONG.items()):
        for kind, form in itertools.product(kinds, FORMS):
            quick = kind == kinds[0] and form == FORMS[i % len(FORMS)]
            yield pytest.param(wrong, kind, form, marks=[] if quick else pytest.mark.slow)


@pytest.mark.parametrize("wrong,kind,form", [*cases()])
def test_a_mistake_is_noted_at_its_line(wrong, kind, form):
    _, words, source = WRONG[wrong]
    found = notes(using(kind, wrong, form=form))
    assert len([n for n in found if words in n]) == 1, found
    noted = next(n for n in found if words in n)
    assert noted.startswith("likely wrong: ") and source in noted.splitlines()[-1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["Async", *(pytest.param(k, marks=pytest.mark.slow) for k in ALL[1:])])
def test_the_right_twin_has_no_note(kind, form):
    assert notes(using(kind, "head", form=form)) == ()


def test_who_compiles_is_warned_and_may_refuse():
    given = cuda.jit(using("Async", "releases twice")), from_dlpack(np.zeros(128, np.int32)), np.int32(7)
    with pytest.warns(cute.MistakeWarning, match="is given back once more"):
        made = cute.compile(*given)
    assert "is given back once more" in made.notes[0]
    with pytest.raises(cute.CuteError, match="is given back once more"):
        cute.compile(*given, notes="error")


class Made:
    """A pipeline that its constructor makes."""

    def __init__(self, words, consumers, cluster, given):
        self.pipe = pipeline.PipelineTmaUmma.create(
            **given, consumer_group=CooperativeGroup(Agent.Thread, consumers), barrier_storage=words,
            cta_layout_vmnk=cluster,
        )  # fmt: skip

    def fill(self, state):
        self.pipe.producer_acquire(state)

    def take(self, state):
        self.pipe.consumer_wait(state)


def made(words, consumers, cluster, given):
    return pipeline.PipelineTmaUmma.create(
        **given, consumer_group=CooperativeGroup(Agent.Thread, consumers), cta_layout_vmnk=cluster,
        barrier_storage=words,
    )  # fmt: skip


@pytest.mark.parametrize(
    "second, noted, form",
    [
        pytest.param(*case, form, marks=[] if form == "method" and case[1] else pytest.mark.slow)
        for case in (((2, 1), 1), ((1, 2), 0), (None, 0), ((1, 1), 0))
        for form in ("inline", "function", "method")
    ],
)
def test_pipelines_of_two_clusters(second, noted, form):
    cluster = cute.make_layout((1, 1, 2, 1))
    other = None if second is None else cute.make_layout((1, *second, 1))
    count = 2 if second == (1, 2) else 1
    given = {
        "num_stages": 1, "tx_count": 16, "producer_group": CooperativeGroup(Agent.Thread), "mcast_mode_mn": (1, 0),
    }  # fmt: skip

    def kernel(out, _seven):
        tidx, _, _ = arch.thread_idx()
        words = utils.SmemAllocator().allocate_array(cute.Int64, 4)
        fill = pipeline.make_pipeline_state(PipelineUserType.Producer, 1)
        use = pipeline.make_pipeline_state(PipelineUserType.Consumer, 1)
        if cute.const_expr(form == "method"):
            first, then = Made(words, 2, cluster, given), Made(words + 2, count, other, given)
            if tidx < 32:
                first.fill(fill)
                then.fill(fill)
            elif tidx < 64:
                first.take(use)
                then.take(use)
        else:
            one = made(words, 2, cluster, given)
            if cute.const_expr(form == "function"):
                two = made(words + 2, count, other, given)
            else:
                two = pipeline.PipelineTmaUmma.create(
                    **given, consumer_group=CooperativeGroup(Agent.Thread, count), cta_layout_vmnk=other,
                    barrier_storage=words + 2,
                )  # fmt: skip
            if tidx < 32:
                one.producer_acquire(fill)
                two.producer_acquire(fill)
            elif tidx < 64:
                one.consumer_wait(use)
                two.consumer_wait(use)

    found = [n for n in notes(kernel) if "is another cluster than" in n]
    assert len(found) == noted and len(notes(kernel)) == noted


@frozen
class Twins:
    """Two pipelines, in an immutable object that traced code makes."""

    first: object
    second: object

    @staticmethod
    @traced
    def create(words):
        given = {"num_stages": 1, "producer_group": CooperativeGroup(Agent.Thread, 32),
                 "consumer_group": CooperativeGroup(Agent.Thread, 32)}  # fmt: skip
        first = pipeline.PipelineAsync.create(**given, barrier_storage=words, name="first")
        second = pipeline.PipelineAsync.create(**given, barrier_storage=words + 2, name="second")
        return Twins(first, second)


@traced
def both_sides(both):
    """A participant for each side, of traced code that is given the object."""
    return both.second.make_producer(), both.second.make_consumer()


@pytest.mark.parametrize("wrong, words", [("", ""), ("second", "'second' is made and never used"),
                                          ("release", "has a consumer")])  # fmt: skip
def test_pipelines_in_an_immutable_object_are_followed(wrong, words):
    def kernel(out, _seven):
        tidx, _, _ = arch.thread_idx()
        both = Twins.create(utils.SmemAllocator().allocate_array(cute.Int64, 4))
        producer, consumer = both.first.make_participants()
        if cute.const_expr(wrong != "second"):
            fill, use = both_sides(both)
        if tidx < 32:
            producer.acquire_and_advance().commit()
            if cute.const_expr(not wrong):
                fill.acquire_and_advance().commit()
        elif tidx < 64:
            consumer.wait_and_advance().release()
            if cute.const_expr(wrong != "second"):
                use.wait_and_advance().release()

    found = notes(kernel)
    assert len(found) == bool(wrong) and all(words in n for n in found)
