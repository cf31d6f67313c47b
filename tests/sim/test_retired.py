# SPDX-License-Identifier: Apache-2.0
"""Blocks that have ended are forgotten as lanes run together: memory stays flat, and what is found stays the same."""

import gc
import re
import tracemalloc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam.ground import collecting
from numba_cute.sim import SimError, launch, simulate
from numba_cute.sim.hardware import retired
from numba_cute.sim.hardware.grid import Run
from numba_cute.sim.hardware.threads import Thread

LANES, STEPS, BLOCKS = 32, 3, 4
KINDS = ("load", "load", "store", "add", "add_cta", "release", "acquire", "load_one", "nothing", "store_one")


def performs(program, data, flags, out):
    """Each block does its row of `program`: pairs of what and where."""
    t, b = cuda.threadIdx.x, cuda.blockIdx.x
    for k in range(STEPS):
        kind, at = program[b, k, 0], program[b, k, 1]
        if kind < 2:
            out[b, t] += data[at * 16 + t]
        elif kind == 2:
            data[at * 16 + t] = b + k
        elif kind == 3:
            arch.atomic_add(data.iterator + at * 16 + t, 1, sem="relaxed", scope="gpu")
        elif kind == 4:
            arch.atomic_add(data.iterator + at * 16 + t, 1, sem="relaxed", scope="cta")
        elif kind == 5:
            cuda.syncwarp()
            if t == 0:
                arch.atomic_add(flags.iterator + at % 2, 1, sem="release", scope="gpu")
        elif kind == 6:
            if t == 0:
                out[b, LANES] = arch.load(flags.iterator + at % 2, cute.Int32, sem="acquire", scope="gpu")
            cuda.syncwarp()
        elif kind == 7:
            out[b, t] += data[at * 16]
        elif kind == 9:
            if t == at:
                data[at * 16] = k


def outcome(program, shares):
    """What a run together, or lane by lane, leaves and says."""
    data, flags, out = np.arange(128, dtype=np.int32), np.zeros(2, np.int32), np.zeros((BLOCKS, LANES + 1), np.int32)
    simulated = simulate(performs)
    own = [cute.runtime.from_dlpack(a) for a in (program, data, flags, out)]
    try:
        ran = simulated.once(*simulated.configured((BLOCKS, LANES)), [tuple(own)], None)
    except SimError as e:
        return re.sub("0x[0-9a-f]+", "", str(e)), data.tolist(), out.tolist(), True
    return None, data.tolist(), out.tolist(), ran.shared or not shares


@pytest.fixture
def forgets_each_block(monkeypatch):
    monkeypatch.setattr(retired, "FORGET", 1)
    monkeypatch.setattr(retired, "BYTES", 1 << 40)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_of_blocks_is_the_same(monkeypatch, forgets_each_block, seed):
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(12):
        kinds = rng.permutation(len(KINDS))[: rng.integers(2, 5)]
        program = np.zeros((BLOCKS, STEPS, 2), np.int32)
        program[..., 0] = rng.choice(kinds, (BLOCKS, STEPS))
        program[..., 1] = rng.integers(0, 5, (BLOCKS, STEPS))
        together = outcome(program, True)
        with monkeypatch.context() as m:
            m.setattr(launch, "why_alone", lambda *_: "a test")
            alone = outcome(program, False)
        assert together[:3] == alone[:3], program.tolist()
        assert together[3], program.tolist()
        found += alone[0] is not None
    assert 0 < found < 12


@cuda.jit
def scaled(x, weights, out):
    i = cuda.grid(1)
    out[i] = x[i] * weights[cuda.threadIdx.x]


def test_memory_is_flat_in_the_number_of_blocks(monkeypatch):
    monkeypatch.setattr(retired, "FORGET", 256)
    monkeypatch.setattr(launch, "uses_library", lambda _: True)
    peaks = {}
    for blocks in (32, 128):
        x = np.ones(blocks * 64, np.float32)
        tracemalloc.start()
        simulate(scaled)[blocks, 64](x, np.ones(64, np.float32), x * 0)
        peaks[blocks] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[128] - peaks[32] < 96 * 64 * 256  # the arrays and their shadow: a thread alone takes 2 KiB


def test_no_thread_is_left_without_the_collector(monkeypatch, forgets_each_block):
    monkeypatch.setattr(launch, "uses_library", lambda _: True)
    gc.collect()
    gc.disable()
    try:
        alive = []
        for blocks in (4, 40):
            x = np.ones(blocks * 32, np.float32)
            before = sum(type(o) is Thread for o in gc.get_objects())
            simulate(scaled)[blocks, 32](x, np.ones(32, np.float32), x * 0)
            alive.append(sum(type(o) is Thread for o in gc.get_objects()) - before)
    finally:
        gc.enable()
    assert alive[1] - alive[0] < 64


# ---------------------------------------------------------------- what a launch leaves


def by_shared_memory(x):
    t, part = cuda.threadIdx.x, cuda.shared.array((2, LANES), np.float32)
    part[1, t] = x[cuda.blockIdx.x, t]
    arch.sync_threads()
    x[cuda.blockIdx.x, t] = part[1, LANES - 1 - t]


def by_rows(x):
    row = x[cuda.blockIdx.x]
    if cuda.threadIdx.x % 2:
        row[cuda.threadIdx.x] += 1


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("kernel", [by_shared_memory, by_rows])
def test_a_launch_that_has_ended_is_garbage_with_all_that_it_held(kernel, seed, monkeypatch):
    made, begin = [], Run.__init__

    def noted(self, *args, **named):
        made.append(weakref.ref(self))
        begin(self, *args, **named)

    monkeypatch.setattr(Run, "__init__", noted)
    for _ in range(3):
        simulate(cuda.jit(kernel), seed=seed)[2, LANES](np.zeros((2, LANES), np.float32))
    gc.collect()
    assert len(made) >= 3 and sum(ref() is not None for ref in made) <= 1


def test_simulations_look_for_garbage_when_they_have_taken_long_enough(monkeypatch):
    now, looked = iter(np.arange(0, 1e6, 1.0)), []
    told = SimpleNamespace(collect=lambda: looked.append(1), isenabled=lambda: len(looked) < 2)
    monkeypatch.setattr(collecting, "gc", told)
    monkeypatch.setattr(collecting, "perf_counter", lambda: next(now))
    paced = collecting._Pace()
    paced.took = 0.2  # a look takes one second, as each simulation, from then on
    for expected in [0] * 6 + [1] * 31 + [2] * 100:  # and is off after two
        with paced():
            pass
        assert len(looked) == expected
