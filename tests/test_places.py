# SPDX-License-Identifier: Apache-2.0
"""The test suite's own places: a kernel and the check that follows see one copy of an array, however it is turned."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Places


@pytest.mark.parametrize("turned_first", [False, True])
@pytest.mark.parametrize("shape", [(3, 4), (1, 6), (6, 1), (1, 1), (5,), (2, 1, 3)], ids=str)
def test_an_array_and_its_transpose_are_one_copy(shape, turned_first):
    array = np.arange(np.prod(shape)).reshape(shape)
    places = Places(np.copy)
    first, second = (array.T, array) if turned_first else (array, array.T)
    one, two = places(first), places(second)
    np.testing.assert_array_equal(one, first)
    np.testing.assert_array_equal(two, second)
    one[...] = -1
    assert (two == -1).all() and not (array == -1).any()
    assert np.shares_memory(places(array), one)
