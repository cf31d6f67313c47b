# SPDX-License-Identifier: Apache-2.0
"""What Python may stand in a user's `cute.struct`, in kernels and device functions: the language conformance test."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.dtypes import Float32, Int32
from numba_cute.pipeline import Agent, CooperativeGroup


@cute.struct
class Base:
    LIMIT = 10  # a class constant
    n: Int32
    weight: Float32 = 0.5

    def step(self, by):
        if by < 0:
            return -1
        self.n += by
        return self.n

    @property
    def room(self):
        return self.LIMIT - self.n

    @staticmethod
    def larger(a, b):
        return a if a > b else b

    def grow(self):
        return self.step(1)


@cute.struct
class Derived(Base):
    STEP = 3
    extra: Int32 = 7

    def step(self, by):  # overrides, and calls what it inherited
        self.n += self.STEP * by
        return self.larger(self.n, self.extra)


@cute.struct
class Holder:
    """Fields of every kind."""

    inner: Base
    layout: cute.Layout
    tile: tuple
    tensor: cute.Tensor
    scale: Float32
    on: cute.Boolean = False

    def put(self, i):
        m, n = self.tile
        self.on = not self.on
        self.tensor[i] = self.inner.n * m + n + cute.size(self.layout)
        return self.scale * i


@cuda.jit
def early_returns(out, n):
    c = Base(n)
    out[0] = c.step(-5)
    out[1] = c.step(2)
    if c.n > 100:
        return
    out[2] = 1


@cuda.jit
def loops(out, n):
    c = Base(0)
    for i in range(20):
        if i % 2 == 0:
            continue
        c.step(i)
        if c.n > n:
            break
    out[0] = c.n
    while True:
        c.n -= 3
        if c.n < 0:
            break
    else:
        c.n = 1000
    out[1] = c.n
    done = 0
    for _ in range(3):
        if c.step(-1) != -1:
            break
    else:
        done = 1
    out[2] = done


@cuda.jit
def chains(out, n):
    c = Base(n)
    out[0] = 1 if 0 <= c.n < c.LIMIT else 0
    out[1] = 1 if 0 < c.n < n <= c.room else 0
    out[2] = c.larger(c.n, 3) if c.n == n == 5 != c.room + 1 else -1
    out[3] = Base.larger(2, c.n)
    out[4] = Base.LIMIT


@cuda.jit
def branches(out, n):
    c = Base(n)
    if c.n > 3:
        c.n = 50
        c.weight = 2.5
    elif c.n == 3:
        c.n = 60
    else:
        c.n += 1
    while c.n > 10:
        c.n //= 2
    out[0] = c.n
    out[1] = int(c.weight * 2)


@cuda.jit(device=True)
def fresh(n, big):
    c = Base(n)
    if big:
        c.n += 100
        return c
    c.step(1)
    return c


@cuda.jit(device=True)
def both(n):
    return Base(n), Derived(n + 1)


@cuda.jit(device=True)
def outer(c, by):
    return inner(c, by) + 1


@cuda.jit(device=True)
def inner(c, by):
    c.step(by)
    return c.n


@cuda.jit
def functions(out, n):
    a, b = fresh(n, True), fresh(n, False)
    out[0], out[1] = a.n, b.n
    pair = both(n)
    pair[1].step(1)
    out[2], out[3] = pair[0].n, pair[1].n
    out[4] = outer(a, 5)
    out[5] = a.n


@cuda.jit
def tuples(out, n):
    group = (Base(n), Base(n + 1), Base(n + 2))
    for i in cute.range_constexpr(3):
        group[i].step(i)
    first, _, last = group
    last.step(10)
    out[0], out[1], out[2] = first.n, group[1].n, group[2].n


@cuda.jit
def inheritance(out, n):
    d = Derived(n)
    out[0] = d.step(1)
    out[1] = d.grow()  # the inherited method calls the override
    out[2] = d.LIMIT + d.STEP
    out[3] = d.extra
    out[4] = d.room
    out[5] = int(Derived(n, 1.5, 2).weight * 2)
    out[6] = Derived(n=4, extra=9).extra


@cuda.jit
def fields(out, n):
    tensor = cute.make_tensor(out, 8)
    h = Holder(Base(n), cute.make_layout((2, 3)), (4, 5), tensor, 0.5)
    h.put(0)
    h.inner.step(1)
    half = h.put(1)
    out[2] = int(half * 4)
    out[3] = 1 if h.on else 0
    if n > 100:
        h.scale = 9.0
    out[4] = int(h.scale * 2)


CASES = {
    "early return": (early_returns, 5, [-1, 7, 1]),
    "break, continue and else": (loops, 12, [16, -2, 1]),
    "chained comparisons": (chains, 5, [1, 0, 5, 5, 10]),
    "state changed in if (taken)": (branches, 4, [6, 5]),
    "state changed in if (not taken)": (branches, 1, [2, 1]),
    "returned from device functions": (functions, 5, [105, 6, 5, 9, 111, 110]),
    "kept in tuples": (tuples, 5, [5, 7, 19]),
    "inheritance, constants and defaults": (inheritance, 5, [8, 11, 13, 7, -1, 3, 9]),
    "fields of every kind": (fields, 5, [31, 35, 2, 0, 1]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_struct_means_what_python_means(run, case):
    kernel, n, want = CASES[case]
    out = np.zeros(8, np.int32)

    def check():
        assert out[: len(want)].tolist() == want

    run(kernel, 1, 1, [out, np.int32(n)], outputs=[out], check=check)


@cute.struct
class Worker:
    """A user's class that holds a pipeline's side and counts what it did."""

    side: pipeline.PipelineConsumer
    buffer: cute.Tensor
    seen: Int32 = 0
    missed: Int32 = 0

    def take(self, lane):
        token = self.side.try_wait()
        if not token:
            self.missed += 1
        stage = self.side.wait_and_advance(token)
        value = self.buffer[lane, stage.index]
        stage.release()
        self.seen += 1
        return value

    def total(self, count, lane):
        result = 0
        while True:
            if self.seen == count:
                return result
            result += self.take(lane)


def tokens_kernel(stages):
    @cuda.jit
    def kernel(out, count):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        group = CooperativeGroup(Agent.Thread, 32)
        pipe = pipeline.PipelineAsync.create(
            num_stages=stages, producer_group=group, consumer_group=group,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages),
        )  # fmt: skip
        values = smem.allocate_tensor(cute.Int32, cute.make_layout((32, stages)), 16)
        producer, consumer = pipe.make_participants()
        if tidx < 32:
            token = producer.try_acquire()
            for i in range(count):
                stage = producer.acquire_and_advance(token)
                values[tidx, stage.index] = 100 * i + tidx
                stage.commit()
                if i + 1 < count:  # ask for the next one while this one is used
                    token = producer.try_acquire()
            producer.tail()
        else:
            worker = Worker(consumer, values)
            lane = tidx - 32
            out[lane] = worker.total(count, lane)
            out[32 + lane] = worker.seen

    return kernel


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_tokens_cross_branches_and_a_pipeline_lives_in_a_users_struct(run, stages, count):
    out = np.zeros(64, np.int32)

    def check():
        assert out[:32].tolist() == [100 * sum(range(count)) + count * lane for lane in range(32)]
        assert (out[32:] == count).all()

    run(tokens_kernel(stages), 1, 64, [out, np.int32(count)], outputs=[out], check=check)
