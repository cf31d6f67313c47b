# SPDX-License-Identifier: Apache-2.0
"""A grid may be of any size: blocks that have ended hold no memory, and Ctrl-C ends it, for the next to run as ever."""

from __future__ import annotations

import random
import signal
import threading
import time
import tracemalloc

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim.hardware.address_spaces import SMEM_WINDOW
from numba_cute.sim.hardware.waiting import Waiting

LARGEST = ((1 << 31) - 1, 65535, 65535)


@cuda.jit
def first(x):
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(x, 0, 1)


@cuda.jit
def spins(x):
    while x[0] == 0:
        x[1] += cute.size(cute.make_layout(1))


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("kernel, grid", [(first, LARGEST), (spins, 1)], ids=["the largest grid", "a loop without end"])
def test_an_interrupt_ends_it_within_a_second(kernel, grid, seed, checks):
    x = np.zeros(2, np.int32)
    cute.simulate(kernel, checks=checks)[1, 1](np.ones(2, np.int32))  # the front end has judged it
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.2, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cute.simulate(kernel, checks=checks, seed=seed)[grid, 1](x)
    assert time.monotonic() - sent[0] < 1
    x[:] = 1
    cute.simulate(kernel, checks=checks, seed=seed)[1, 1](x)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 2), (5, 1, 3)], ids=str)
@pytest.mark.parametrize("seed", [None, 1])
def test_each_cluster_of_a_grid_comes_once(shape, seed):
    rng = None if seed is None else random.Random(seed)
    every = [(x, y, z) for z in range(shape[2]) for y in range(shape[1]) for x in range(shape[0])]
    waiting = Waiting(shape, rng)
    found = [waiting.take() for _ in range(len(waiting))]
    assert sorted(found) == sorted(every) and not waiting
    if seed is None:
        assert found == every
    else:
        random.Random(seed).shuffle(every)
        assert found == every
    waiting, picks = Waiting(shape, rng), random.Random(0)
    found = [waiting.take((0, min(1, n - 1), n - 1)[picks.randrange(3)]) for n in range(len(waiting), 0, -1)]
    assert sorted(found) == sorted(every)


def test_a_grid_too_large_to_shuffle_comes_in_another_order_once(monkeypatch):
    monkeypatch.setattr("numba_cute.sim.hardware.waiting.MOST_SHUFFLED", 999)
    waiting = Waiting((1000, 1, 1), random.Random(3))
    found = [waiting.take()[0] for _ in range(len(waiting))]
    assert found[:3] != [0, 1, 2] and sorted(found) == list(range(1000))
    assert len(Waiting(LARGEST, random.Random(3))) == LARGEST[0] * 65535**2


@cuda.jit
def reverses(x):
    room = cuda.shared.array(8, np.int32)
    lane = cuda.threadIdx.x
    room[lane] = x[8 * cuda.blockIdx.x + lane]
    cuda.syncthreads()
    x[8 * cuda.blockIdx.x + lane] = room[7 - lane]


@pytest.mark.parametrize("checks", [True, False])
def test_a_block_that_has_ended_holds_no_shared_memory(checks):
    def peak_of(blocks):
        x = np.arange(8 * blocks, dtype=np.int32)
        want = x.reshape(-1, 8)[:, ::-1].ravel()
        tracemalloc.start()
        cute.simulate(reverses, checks=checks)[blocks, 8](x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        np.testing.assert_array_equal(x, want)
        return peak

    peak_of(1)  # what a first run keeps
    assert peak_of(24) - peak_of(4) < 8 * SMEM_WINDOW  # 20 that were kept would be 20, clocks and threads are some 4
