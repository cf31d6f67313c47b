# SPDX-License-Identifier: Apache-2.0
"""Tests that are marked so need a GPU."""

import pytest


@pytest.fixture(autouse=True)
def gpu_where_it_is_needed(request):
    from numba import cuda

    if request.node.get_closest_marker("gpu") and not cuda.is_available():
        pytest.skip("needs a GPU")
