# SPDX-License-Identifier: Apache-2.0
"""CTAs that wait for one which finds no room on the GPU beside them never go on; those that wait for none do."""

import numpy as np
import pytest
from numba import cuda

from numba_cute import CuteError
from numba_cute.sim import DeadlockError, simulate
from numba_cute.sim.hardware.machine import Machine


def meets(count):
    """Each block waits until all have come, by polling."""
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(count, 0, 1)
        while cuda.atomic.add(count, 0, 0) < cuda.gridDim.x:
            pass


def counts(count):
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(count, 0, 1)


@pytest.mark.parametrize(("sms", "blocks", "threads"), [(2, 5, 1024), (1, 33, 32), (1, 3, 1024)])
def test_blocks_that_wait_for_one_that_has_no_room_are_a_deadlock(sms, blocks, threads):
    with pytest.raises(DeadlockError, match=rf"no known GPU of sm_90a holds more than {blocks - 1} CTAs") as caught:
        simulate(meets, sms=sms)[blocks, threads](np.zeros(1, np.int32))
    assert f"on each of the {sms} SMs" in str(caught.value) and "the others start when one of these ends" in str(
        caught.value
    )
    count = np.zeros(1, np.int32)
    simulate(meets, sms=sms)[blocks - 1, threads](count)
    simulate(counts, sms=sms)[blocks, threads](count)
    assert count[0] == 2 * blocks - 1


def test_the_largest_gpu_that_is_known_has_room_for_what_it_holds():
    with pytest.raises(DeadlockError, match="holds more than 132 CTAs"):
        simulate(meets, checks=False)[133, 32, 0, 200 * 1024](np.zeros(1, np.int32))


def test_blocks_that_poll_soon_stand_aside_for_others(monkeypatch):
    polls, pause = [], Machine.pause
    monkeypatch.setattr(Machine, "pause", lambda m, why, on=None: (polls.append(why), pause(m, why, on)))
    simulate(meets)[8, 32](np.zeros(1, np.int32))
    assert 8 <= len(polls) < 1000


@pytest.mark.parametrize("sms", [0, -1, "two"])
def test_sms_is_a_number_from_one_on(sms):
    with pytest.raises(CuteError, match="give the number of SMs"):
        simulate(meets, sms=sms)
