# SPDX-License-Identifier: Apache-2.0
"""Tests of entries run where a GPU is."""

import pytest

from ...conftest import _need_gpu


@pytest.fixture(autouse=True)
def there(request):
    if request.node.get_closest_marker("gpu"):
        _need_gpu("sm_90a")
