# SPDX-License-Identifier: Apache-2.0
"""Lanes together store what lanes one by one do, in kernels made at random (see `lanes`)."""

import pytest

from numba_cute.sim import launch

from . import lanes


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_lanes_that_part_and_meet_store_what_they_do_one_by_one(seed, monkeypatch):
    monkeypatch.setattr(launch, "uses_library", lambda _: True)
    found, shared = lanes.differences(seed)
    assert found == [] and shared
