# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a simulation of any size, and the next one runs as if it had not been."""

from __future__ import annotations

import gc
import random
import signal
import threading
import time

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim.hardware.waiting import Waiting

LARGEST = ((1 << 31) - 1, 65535, 65535)


@pytest.fixture(autouse=True)
def interrupts_are_pythons():
    """A debugger that another test entered keeps a handler of its own; hypothesis's callback of the garbage collector,
    in which Python ignores exceptions, would swallow an interrupt."""
    before, callbacks = signal.signal(signal.SIGINT, signal.default_int_handler), gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks
    signal.signal(signal.SIGINT, before)


@cuda.jit
def first(x):
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(x, 0, 1)


@cuda.jit
def spins(x):
    while x[0] == 0:
        x[1] += cute.size(cute.make_layout(1))


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
