# SPDX-License-Identifier: Apache-2.0
"""Experts on several simulated GPUs."""

from __future__ import annotations

import numpy as np

from numba_cute.kernels.distributed import experts_plan

from .routed import Experts


def test_a():
    extents = experts_plan.Extents(2, 20, 64, 2, 4, 80)
    it = Experts(extents, 24)
    rng = np.random.default_rng(0)
    for step in range(2):
        indices = [rng.integers(-1, 4, (20, 2)).astype(np.int32) for _ in range(2)]
        it.dispatch(indices, step)
        print("dispatched")
        it.combine(indices, step)
