# SPDX-License-Identifier: Apache-2.0
"""A thread that goes round a loop in which nothing changes is a DeadlockError; one that goes on is left alone."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim import DeadlockError, simulate
from numba_cute.sim.hardware import stuck


@pytest.fixture
def soon(monkeypatch):
    for name, value in (("IDLE", 0.1), ("LOOKS", 30), ("RETURNS", 5)):
        monkeypatch.setattr(stuck, name, value)


def skips(mended):
    @cuda.jit
    def kernel(out, tiles):
        tile = cuda.blockIdx.x
        while tile < tiles:
            if tile % 2 == 1:
                if mended:
                    tile += 1
                continue
            out[tile] = tile
            tile += 1

    return kernel


def test_a_skipped_tile_that_never_advances_is_a_deadlock(soon):
    out = np.zeros(8, np.int32)
    with pytest.raises(DeadlockError, match=r"(?s)no progress in kernel kernel: thread 0 .*while tile < tiles.*fix: "):
        simulate(skips(False))[1, 1](out, 8)
    simulate(skips(True))[1, 1](out, 8)
    np.testing.assert_array_equal(out[::2], [0, 2, 4, 6])


def test_a_state_that_is_not_advanced_is_a_deadlock(soon):
    def kernel(out):
        state = cute.pipeline.make_pipeline_state(cute.pipeline.PipelineUserType.Producer, 2)
        while state.count < 4:
            pass
        out[0] = state.count

    with pytest.raises(DeadlockError, match="no progress in kernel kernel"):
        simulate(kernel)[1, 1](np.zeros(1))


@pytest.mark.parametrize("where", ["variable", "shared", "global", "object"])
def test_a_loop_that_goes_on_for_long_is_none(soon, where):
    """Of what changes: each kind is seen where nothing else of the machine changes."""

    def kernel(out):
        if where == "object":
            state = cute.pipeline.make_pipeline_state(cute.pipeline.PipelineUserType.Producer, 2)
            while state.count < 4000:
                state.advance()
        count = 0
        while where == "variable" and count < 40000:
            count += 1
        held = cuda.shared.array(1, np.int32)
        held[0] = 0
        while where == "shared" and held[0] < 4000:
            held[0] += 1
        while where == "global" and out[0] < 4000:
            out[0] += 1

    simulate(kernel)[1, 1](np.zeros(1, np.int32))
