# SPDX-License-Identifier: Apache-2.0
"""A tx_count that does not fit the copies of a stage is refused while the kernel is compiled, with the arithmetic."""

import re
import warnings

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.pipeline import Agent, CooperativeGroup, PipelineUserType
from numba_cute.runtime import from_dlpack
from numba_cute.sim import SimError

TILE, STAGES = 64, 2
BYTES = TILE * 4
ONE = CooperativeGroup(Agent.Thread)


@pytest.fixture(scope="module")
def atoms():
    """(TMA atom and coordinates of A, of B)"""
    x = np.arange(4 * TILE, dtype=np.float32)
    load = cpasync.CopyBulkTensorTileG2SOp()
    made = [cpasync.make_tiled_tma_atom(load, from_dlpack(x), cute.make_layout(TILE), (TILE,)) for _ in "ab"]
    return [*made[0], *made[1]]


@cuda.jit(device=True)
def partitions(tma, buffers, tensor):
    tiles = cute.local_tile(tensor, (TILE,), (None,))
    return cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(buffers, 0, 1), cute.group_modes(tiles, 0, 1)
    )


class Loader:
    """An object that holds a pipeline and a participant, and loads with them."""

    def __init__(self, pipe, producer):
        self.pipe = pipe
        self.producer = producer


def kernel(body, tx_count, form="device function"):
    """A kernel whose producer warp does `body(pipe, producer, tma_a, from_a, to_a, tma_b, from_b, to_b, n)`."""
    body = cuda.jit(device=True)(body) if form == "device function" else body
    method = form == "method"

    class Loads(Loader):
        def run(self, *others):
            body(self.pipe, self.producer, *others)

    @cuda.jit
    def run(tma_a, a, tma_b, b, n):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 128)
        s_b = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 128)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES, producer_group=ONE, consumer_group=ONE, tx_count=tx_count,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES), name="loads",
        )  # fmt: skip
        to_a, from_a = partitions(tma_a, s_a, a)
        to_b, from_b = partitions(tma_b, s_b, b)
        producer, consumer = pipe.make_participants()
        if tidx < 32:
            if cute.const_expr(method):
                Loads(pipe, producer).run(tma_a, from_a, to_a, tma_b, from_b, to_b, n)
            else:
                body(pipe, producer, tma_a, from_a, to_a, tma_b, from_b, to_b, n)
        else:
            for _ in range(n):
                stage = consumer.wait_and_advance()
                stage.release()

    return run


def both(pipe, producer, tma_a, from_a, to_a, tma_b, from_b, to_b, n):
    for i in range(n):
        stage = producer.acquire_and_advance()
        cute.copy(tma_a, from_a[None, i], to_a[None, stage.index], tma_bar_ptr=stage.barrier)
        cute.copy(tma_b, from_b[None, i], to_b[None, stage.index], tma_bar_ptr=stage.barrier)
        stage.commit()
    producer.tail()


def one(pipe, producer, tma_a, from_a, to_a, tma_b, from_b, to_b, n):
    for i in range(n):
        stage = producer.acquire()
        bar = stage.barrier
        cute.copy(tma_a, from_a[None, i], to_a[None, stage.index], tma_bar_ptr=bar)
        producer.advance()
    producer.tail()


def states(pipe, producer, tma_a, from_a, to_a, tma_b, from_b, to_b, n):
    state = pipeline.make_pipeline_state(PipelineUserType.Producer, STAGES)
    for i in range(n):
        pipe.producer_acquire(state)
        bar = pipe.producer_get_barrier(state)
        cute.copy(tma_a, from_a[None, i], to_a[None, state.index], tma_bar_ptr=bar)
        cute.copy(tma_b, from_b[None, i], to_b[None, state.index], tma_bar_ptr=pipe.producer_get_barrier(state))
        pipe.producer_commit(state)
        state.advance()
    pipe.producer_tail(state)


def sometimes(pipe, producer, tma_a, from_a, to_a, tma_b, from_b, to_b, n):
    """What is not known: B is copied twice or not at all, but over two stages it comes right."""
    for i in range(n):
        stage = producer.acquire_and_advance()
        cute.copy(tma_a, from_a[None, i], to_a[None, stage.index], tma_bar_ptr=stage.barrier)
        if i >= 0:
            cute.copy(tma_b, from_b[None, i], to_b[None, stage.index], tma_bar_ptr=stage.barrier)
    producer.tail()


def either(pipe, producer, tma_a, from_a, to_a, tma_b, from_b, to_b, n):
    """One of two copies, whichever way it goes."""
    for i in range(n):
        stage = producer.acquire_and_advance()
        if i % 2 == 0:
            cute.copy(tma_a, from_a[None, i], to_a[None, stage.index], tma_bar_ptr=stage.barrier)
        else:
            cute.copy(tma_b, from_b[None, i], to_b[None, stage.index], tma_bar_ptr=stage.barrier)
    producer.tail()


def by_type(pipe, producer, tma_a, from_a, to_a, tma_b, from_b, to_b, n):
    """The ways that a question of types leaves out are gone, but what is left are blocks one after the other."""
    for i in range(n):
        stage = producer.acquire_and_advance()
        if isinstance(n, int):
            cute.copy(tma_a, from_a[None, i], to_a[None, stage.index], tma_bar_ptr=stage.barrier)
        stage.commit()
    producer.tail()


RIGHT = [
    (both, 2 * BYTES),
    (one, BYTES),
    (states, 2 * BYTES),
    (sometimes, 2 * BYTES),
    (either, BYTES),
    (by_type, BYTES),
]
WRONG = [
    (both, BYTES, r"'loads': tx_count is 256 bytes, but the copies in lines \d+, \d+ into .* deliver 256 \+ 256 = 512"),
    (both, 3 * BYTES, r"tx_count is 768 bytes, .* deliver 256 \+ 256 = 512 bytes: tx_count=512"),
    (one, 2 * BYTES, r"tx_count is 512 bytes, but the copy in line \d+ into the stage .* delivers 256 bytes"),
    (states, BYTES, r"tx_count is 256 bytes, .* deliver 256 \+ 256 = 512"),
    (by_type, 2 * BYTES, r"tx_count is 512 bytes, but the copy in line \d+ into the stage .* delivers 256 bytes"),
]


@pytest.mark.parametrize(("body", "tx_count"), RIGHT, ids=lambda x: getattr(x, "__name__", str(x)))
def test_what_fits_is_compiled_and_runs(run, atoms, body, tx_count):
    if run.name == "gpu":
        pytest.skip("the atoms name host memory; the matrix runs such kernels on GPUs")
    run(kernel(body, tx_count), 1, 64, [*atoms, np.int32(3)])


@pytest.mark.parametrize(("body", "tx_count", "says"), WRONG, ids=lambda x: getattr(x, "__name__", None))
@pytest.mark.parametrize(
    "form",
    [
        "device function",
        pytest.param("plain function", marks=pytest.mark.slow),
        pytest.param("method", marks=pytest.mark.slow),
    ],
)
def test_what_does_not_fit_is_refused(atoms, body, tx_count, says, form):
    with pytest.raises(cute.CuteError) as e:
        cute.compile(kernel(body, tx_count, form), (*atoms, np.int32(3)))
    assert re.search(says, str(e.value)), str(e.value)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["plain function", "method"])
@pytest.mark.parametrize(("body", "tx_count"), RIGHT, ids=lambda x: getattr(x, "__name__", str(x)))
def test_what_fits_is_compiled_in_each_form(atoms, body, tx_count, form):
    assert not [n for n in cute.compile(kernel(body, tx_count, form), (*atoms, np.int32(3))).notes if "wrong" in n]


@pytest.mark.parametrize(("body", "tx_count", "says"), WRONG, ids=lambda x: getattr(x, "__name__", None))
def test_the_simulator_counts_every_byte(atoms, body, tx_count, says):
    with warnings.catch_warnings(), pytest.raises(SimError, match="bytes"):
        warnings.simplefilter("ignore")
        cute.simulate(kernel(body, tx_count).py_func)[1, 64](*atoms, np.int32(3))


@pytest.mark.parametrize(("body", "tx_count", "says"), WRONG, ids=lambda x: getattr(x, "__name__", None))
def test_a_kernel_with_a_wrong_count_is_not_simulated(atoms, body, tx_count, says):
    with pytest.raises(cute.CuteError, match=says):
        cute.simulate(kernel(body, tx_count))[1, 64](*atoms, np.int32(3))


def test_what_is_not_known_while_compiling_is_left_to_the_simulator(atoms):
    wrong = kernel(sometimes, BYTES)
    cute.compile(wrong, (*atoms, np.int32(3)))
    with pytest.raises(SimError, match="bytes"):
        cute.simulate(wrong)[1, 64](*atoms, np.int32(3))
