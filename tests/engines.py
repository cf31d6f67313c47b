# SPDX-License-Identifier: Apache-2.0
"""The ways to run that a test names for itself."""

from typing import Any

import pytest
from numba import cuda

import numba_cute as cute

NEEDS_GPU = pytest.mark.skipif(not cuda.is_available(), reason="needs a GPU")
SIMULATOR_AND_GPU = ("simulator", pytest.param("gpu", marks=(pytest.mark.gpu, NEEDS_GPU)))


def on(engine: str, kernel: Any, **options: Any) -> Any:
    """Return what is launched: the kernel, or its simulation with these options."""
    return kernel if engine == "gpu" else cute.simulate(kernel, **options)
