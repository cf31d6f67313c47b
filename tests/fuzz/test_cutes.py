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

from . import numbers
from .build import THREADS, arguments, kernel_of, with_tensor
from .choices import Drawn, Seeded
from .cutes import CuteWriter
from .numbers import NumberWriter
from .plain import Writer

COUNT = int(os.environ.get("CUTE_FUZZ", "6"))


def assert_one_result(source: str, args: Any = arguments, outputs: int = 2) -> None:
    """The simulator and the compiled code write the same, to the bit, to the first `outputs` of the arguments."""
    kernel = kernel_of(source)
    want, got = args(), args()
    cute.simulate(kernel, checks=False)[1, THREADS](*want)
    Native(kernel, got).run(THREADS, *got)
    for w, g in zip(want[:outputs], got[:outputs]):
        np.testing.assert_array_equal(g.view(f"u{g.itemsize}"), w.view(f"u{w.itemsize}"), err_msg=source)


def with_a_tensor() -> tuple[Any, ...]:
    return with_tensor(arguments())


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_kernel_of_this_library_gives_what_the_simulator_gives(seed):
    assert_one_result(CuteWriter(Seeded(seed)).source(), with_a_tensor)


@pytest.mark.parametrize("seed", range(0, COUNT, 4))
def test_a_plain_kernel_gives_what_the_simulator_gives(seed):
    assert_one_result(Writer(Seeded(seed)).source())


@pytest.mark.parametrize("seed", range(0, COUNT, 2))
def test_arithmetic_in_all_types_of_numbers_gives_what_the_simulator_gives(seed):
    assert_one_result(NumberWriter(Seeded(seed)).source(), numbers.arguments, numbers.OUTPUTS)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_arithmetic_is_found_that_the_engines_do_differently(data):
    """The same, with hypothesis to choose and to shrink what it finds."""
    assert_one_result(NumberWriter(Drawn(data.draw), statements=4).source(), numbers.arguments, numbers.OUTPUTS)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_kernel_is_found_that_the_engines_see_differently(data):
    """The same, with hypothesis to choose and to shrink what it finds."""
    assert_one_result(CuteWriter(Drawn(data.draw), statements=5, depth=2).source(), with_a_tensor)
