# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests that call entries on tensors of the CPU."""

import pytest

import numba_cute as cute


@pytest.fixture
def simulated():
    """Run the entries in the simulator, on the same random numbers each time."""
    import torch

    torch.manual_seed(0)
    with cute.simulation(checks=False, sms=4):
        yield
