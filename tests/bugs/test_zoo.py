# SPDX-License-Identifier: Apache-2.0
"""The bug zoo: each broken kernel is reported for what it is, in any order of threads; its mended twin is silent."""

import pytest

from . import barriers, memory, tensor_cores  # noqa: F401 - importing them fills the zoo
from .zoo import BUGS

ORDERS = [{}, {"seed": 1}, {"seed": 2}, {"seed": 3, "async_mode": "lazy"}, {"async_mode": "eager"}]


@pytest.mark.parametrize("options", ORDERS, ids=str)
@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_broken_is_reported_for_what_it_is(bug, options):
    with pytest.raises(bug.error) as caught:
        bug.run(False, **options)
    for words in bug.words:
        assert any(w in str(caught.value) for w in words.split("|")), words


@pytest.mark.parametrize("options", ORDERS, ids=str)
@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_mended_is_silent(bug, options):
    bug.run(True, **options)
