# SPDX-License-Identifier: Apache-2.0
"""Kernels of this library give what the simulator gives when their compiled code runs on this machine's processor."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import numba_cute as cute
from tests.native import Native

from .build import THREADS, arguments, kernel_of, with_tensor
from .choices import Drawn, Seeded
from .cutes import CuteWriter
from .plain import Writer

COUNT = int(os.environ.get("CUTE_FUZZ", "40"))


def assert_one_result(source: str, add: Any = lambda args: args) -> None:
    """The simulator and the compiled code write the same, to the bit."""
    kernel = kernel_of(source)
    want, got = add(arguments()), add(arguments())
    cute.simulate(kernel, checks=False)[1, THREADS](*want)
    Native(kernel, got).run(THREADS, *got)
    for w, g in zip(want[:2], got[:2]):
        np.testing.assert_array_equal(g, w, err_msg=source)


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_kernel_of_this_library_gives_what_the_simulator_gives(seed):
    assert_one_result(CuteWriter(Seeded(seed)).source(), with_tensor)


@pytest.mark.parametrize("seed", range(0, COUNT, 4))
def test_a_plain_kernel_gives_what_the_simulator_gives(seed):
    assert_one_result(Writer(Seeded(seed)).source())


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_kernel_is_found_that_the_engines_see_differently(data):
    """The same, with hypothesis to choose and to shrink what it finds."""
    assert_one_result(CuteWriter(Drawn(data.draw), statements=5, depth=2).source(), with_tensor)
