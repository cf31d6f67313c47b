# SPDX-License-Identifier: Apache-2.0
"""The ways to run that a test names for itself."""

import pytest
from numba import cuda

NEEDS_GPU = (pytest.mark.gpu, pytest.mark.skipif(not cuda.is_available(), reason="needs a GPU"))
SIMULATOR_AND_GPU = ("simulator", pytest.param("gpu", marks=NEEDS_GPU))
