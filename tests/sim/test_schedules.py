# SPDX-License-Identifier: Apache-2.0
"""Orders of threads: seeds permute and replay, priorities and exploration find what the usual order hides."""

import re

import numpy as np
import pytest
from numba import cuda

from numba_cute.isa.rows import mbarrier
from numba_cute.sim import DeadlockError, OutOfBoundsError, SimError, simulate
from numba_cute.sim.hardware import grid

BAR = 1024


def order(out):
    """Which warp came first, second, …"""
    if cuda.threadIdx.x % 32 == 0:
        out[cuda.atomic.add(out, 8, 1)] = cuda.threadIdx.x // 32


def order_of(**options):
    out = np.zeros(9, np.int32)
    simulate(order, **options)[1, 256](out)
    return tuple(out[:8])


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_the_same_seed_gives_the_same_order(seed):
    assert order_of(seed=seed) == order_of(seed=seed)
    assert sorted(order_of(seed=seed)) == list(range(8))


def test_seeds_give_different_orders():
    assert order_of() == tuple(range(8))
    assert len({order_of(seed=s) for s in range(10)}) > 8


def late_signal(out):
    """Warp 1 looks once whether warp 0 has signalled, and waits for ever if it has not."""
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_init(BAR, 1)
    cuda.syncthreads()
    if t == 0:
        cuda.atomic.add(out, 0, 1)
    if t == 32 and cuda.atomic.add(out, 0, 0) == 0:
        mbarrier.mbarrier_wait_parity(BAR, 0)


def test_exploration_finds_an_order_that_hangs_and_replays_it():
    launch = [1, 64, 0, 4096]
    simulate(late_signal)[tuple(launch)](np.zeros(1, np.int32))  # the usual order goes well
    with pytest.raises(DeadlockError, match=r"to see this again: .explore\(choices=") as caught:
        simulate(late_signal).explore()[tuple(launch)](np.zeros(1, np.int32))
    choices = eval(re.search(r"choices=(\{.*?\})", str(caught.value))[1])
    with pytest.raises(DeadlockError):
        simulate(late_signal).explore(choices=choices)[tuple(launch)](np.zeros(1, np.int32))


def counts_while_it_spins(out):
    """Each turn of the loop changes memory, but nobody will ever raise the flag."""
    if cuda.threadIdx.x == 0:
        while cuda.atomic.add(out, 0, 0) == 0:
            cuda.atomic.add(out, 1, 1)


def test_a_spin_without_progress_is_reported(monkeypatch):
    monkeypatch.setattr(grid, "BUSY_TURNS", 500)
    with pytest.raises(DeadlockError, match="an atomic that changes nothing, again and again"):
        simulate(counts_while_it_spins)[1, 64](np.zeros(2, np.int32))


def split_arrival(out):
    """Warps 1 and 2 take a number each; only if warp 2 comes first is the barrier one arrival short."""
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_init(BAR, 2)
    cuda.syncthreads()
    if t in (32, 64):
        place = cuda.atomic.add(out, 0, 1)
        if t == 32 or place == 1:
            mbarrier.mbarrier_arrive(BAR)
    if t == 96:
        mbarrier.mbarrier_wait_parity(BAR, 0)


def three_turns(out):
    """Hangs only if warps 3, 2, 1 draw in just that order: two places at which the usual order is left."""
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_init(BAR, 1)
    cuda.syncthreads()
    if t in (32, 64, 96):
        place = cuda.atomic.add(out, 0, 1)
        cuda.atomic.add(out, 1, place * (t // 32))
        if place == 2 and cuda.atomic.add(out, 1, 0) == 4 and t == 32:
            mbarrier.mbarrier_wait_parity(BAR, 0)


@pytest.mark.parametrize("kernel", [split_arrival, three_turns])
def test_exploration_finds_planted_orders_that_the_usual_one_hides(kernel):
    simulate(kernel)[1, 128, 0, 4096](np.zeros(2, np.int32))
    with pytest.raises(DeadlockError, match="choices="):
        simulate(kernel).explore()[1, 128, 0, 4096](np.zeros(2, np.int32))


def test_exploration_of_a_right_kernel_ends():
    def kernel(out):
        if cuda.threadIdx.x % 32 == 0:
            cuda.atomic.add(out, 0, 1)
        cuda.syncthreads()

    out = np.zeros(1, np.int32)
    assert 10 < simulate(kernel).explore(most=50)[1, 128](out) <= 50
    assert out[0] == 0, "it runs on copies"


def later_block_first(flag, out):
    """Out of bounds only if block 1 comes before block 0."""
    if cuda.threadIdx.x == 0 and cuda.atomic.add(flag, 0, 1) == 0 and cuda.blockIdx.x == 1:
        out[1] = 0


def between_two_atomics(flag, out):
    """Out of bounds only if warp 1 comes first, and goes on first after its fence."""
    t = cuda.threadIdx.x
    if t == 0:
        cuda.atomic.add(flag, 0, 1)
    if t == 32:
        cuda.atomic.add(flag, 0, 1)
        cuda.threadfence()
        if cuda.atomic.add(flag, 0, 0) == 1:
            out[1] = 0


@pytest.mark.parametrize(("kernel", "blocks"), [(later_block_first, 3), (between_two_atomics, 1)])
def test_the_order_of_blocks_and_what_happens_at_a_fence_vary(kernel, blocks):
    def arguments():
        return np.zeros(1, np.int32), np.zeros(1, np.int32)

    def goes_wrong(seed):
        try:
            simulate(kernel, seed=seed)[blocks, 64](*arguments())
        except OutOfBoundsError:
            return True
        return False

    assert not goes_wrong(None)
    assert any(goes_wrong(seed) for seed in range(20))
    with pytest.raises(OutOfBoundsError, match="choices=") as caught:
        simulate(kernel).explore()[blocks, 64](*arguments())
    choices = eval(re.search(r"choices=(\{.*?\})", str(caught.value))[1])
    with pytest.raises(OutOfBoundsError):
        simulate(kernel).explore(choices=choices)[blocks, 64](*arguments())


def test_an_error_names_the_seed_that_replays_it():
    with pytest.raises(SimError, match=r"to see this again: cute.simulate\(kernel, seed=7\)"):
        simulate(lambda: mbarrier.mbarrier_arrive(BAR), seed=7)[1, 32, 0, 4096]()
