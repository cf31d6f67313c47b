# SPDX-License-Identifier: Apache-2.0
"""Each pipeline that Hopper has, over stages, producers, consumers, clusters and uneven counts with zero among them."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack

from . import hopper_kernels as kernels
from .hopper_kernels import WORDS

COUNTS = np.array([3, 0, 1, 6], np.int32)
SLOW = pytest.mark.slow
WARPS = [(1, 1), (2, 1), *(pytest.param(p, c, marks=SLOW) for p, c in ((1, 4), (4, 3), (3, 2)))]
STAGES = [1, 2, *(pytest.param(s, marks=SLOW) for s in (3, 4, 5, 6, 7)), 8]
SHAPES = [(1, 1), (2, 1), (2, 2), *(pytest.param(s, marks=SLOW) for s in ((1, 2), (4, 1), (4, 2)))]


def tensor(array):
    return lambda place: from_dlpack(place(array))


def rounds(counts=COUNTS):
    """Which rounds of (blocks, most) are done at all."""
    return np.arange(counts.max()) < counts[:, None]


def data(rng, *shape):
    return rng.integers(-1000, 1000, shape, dtype=np.int32)


def simple(rng):
    """(source, out, wanted where it is written)"""
    source = data(rng, len(COUNTS), COUNTS.max(), WORDS)
    return source, np.zeros_like(source), source[..., ::-1] + 1


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize(("producers", "consumers"), WARPS)
@pytest.mark.parametrize("make", [kernels.async_kernel, kernels.cp_async_kernel])
def test_threads_fill_stages_for_threads(run, rng, make, stages, producers, consumers):
    source, out, want = simple(rng)

    def check():
        np.testing.assert_array_equal(out[rounds()], want[rounds()])

    args = [tensor(source), out, COUNTS]
    block = 32 * (producers + consumers)
    run(make(stages, producers, consumers), (1, 1, len(COUNTS)), block, args, outputs=[out], check=check)


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("producers", [1, 4])
def test_threads_fill_stages_that_tma_stores(run, rng, stages, producers):
    source, out, want = simple(rng)

    def check():
        np.testing.assert_array_equal(out[rounds()], want[rounds()])

    args = [source, tensor(out), COUNTS]
    kernel = kernels.store_kernel(stages, producers)
    run(kernel, (1, 1, len(COUNTS)), 32 * producers, args, outputs=[out], check=check)


@pytest.mark.parametrize("stages", [1, 3])
def test_a_block_fills_stages_of_its_peer(run, rng, stages):
    source, out, want = simple(rng)

    def check():
        np.testing.assert_array_equal(out[rounds()], want[rounds()])

    run(kernels.peer_kernel(stages), (2, 1, len(COUNTS)), 32, [source, out, COUNTS], outputs=[out], check=check)


def multicast(rng, shape):
    m, n = shape
    blocks, most = len(COUNTS), COUNTS.max()
    a, b = data(rng, blocks, m, most, WORDS), data(rng, blocks, n, most, WORDS)
    want = a[:, :, None] + b[:, None, :, :, ::-1]
    return a, b, np.zeros_like(want), want


@pytest.mark.parametrize("stages", [2, *(pytest.param(s, marks=SLOW) for s in (1, 4, 8))])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("consumers", "per_arrival"), [(1, 32), pytest.param(2, 32, marks=SLOW), (4, 128)])
def test_multicast_copies_reach_every_block_of_a_cluster(run, rng, stages, shape, consumers, per_arrival):
    a, b, out, want = multicast(rng, shape)

    def check():
        done = np.moveaxis(out, 3, 1)[rounds()], np.moveaxis(want, 3, 1)[rounds()]
        np.testing.assert_array_equal(*done)

    args = [tensor(a), tensor(b), out, COUNTS]
    kernel = kernels.tma_kernel(stages, consumers, shape, per_arrival)
    run(kernel, (*shape, len(COUNTS)), 32 * (consumers + 1), args, outputs=[out], check=check, cluster=shape)


@pytest.mark.parametrize(("count", "some"), [(1, 1), (6, 3), (5, 1)])
def test_a_thread_that_drops_out_is_waited_for_no_more(run, count, some):
    out = np.zeros(64, np.int32)

    def check():
        assert out.tolist() == [count] * 32 + [some] * 32

    run(kernels.drop_kernel(2), 1, 64, [out, np.int32(count), np.int32(some)], outputs=[out], check=check)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=SLOW) for s in range(2, 50))])
def test_any_order_of_threads_and_copies_gives_the_same_result(seed, rng):
    """All checks of the simulator are on."""
    counts = np.array([3, 0, 4], np.int32)
    source, most = data(rng, 3, 4, WORDS), counts.max()
    for make in (kernels.async_kernel, kernels.cp_async_kernel):
        out = np.zeros_like(source)
        cute.simulate(make(2, 2, 1), seed=seed)[(1, 1, 3), 96](from_dlpack(source), out, counts)
        np.testing.assert_array_equal(out[rounds(counts)], source[..., ::-1][rounds(counts)] + 1)
    out = np.zeros_like(source)
    cute.simulate(kernels.store_kernel(2, 2), seed=seed)[(1, 1, 3), 64](source, from_dlpack(out), counts)
    np.testing.assert_array_equal(out[rounds(counts)], source[..., ::-1][rounds(counts)] + 1)
    a, b = data(rng, 3, 2, most, WORDS), data(rng, 3, 2, most, WORDS)
    sums = np.zeros((3, 2, 2, most, WORDS), np.int32)
    kernel = kernels.tma_kernel(2, 1, (2, 2))
    cute.simulate(kernel, seed=seed)[(2, 2, 3), 64](from_dlpack(a), from_dlpack(b), sums, counts)
    want = a[:, :, None] + b[:, None, :, :, ::-1]
    np.testing.assert_array_equal(np.moveaxis(sums, 3, 1)[rounds(counts)], np.moveaxis(want, 3, 1)[rounds(counts)])
