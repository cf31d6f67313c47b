# SPDX-License-Identifier: Apache-2.0
"""The reduction of orders that `explore` runs by finds what a search of all states finds."""

import pytest

from .explored import judged


def test_the_reduced_search_of_random_programs_finds_what_a_search_of_all_states_does():
    counts, wrong = judged(range(300))
    assert not wrong
    assert counts["right"] > 50 and counts["wrong"] > 20
    assert counts["runs"] < 3 * (counts["right"] + counts["wrong"])


@pytest.mark.slow
def test_the_reduced_search_of_30_000_random_programs_finds_what_a_search_of_all_states_does():
    counts, wrong = judged(range(90_000))
    assert not wrong and counts["right"] + counts["wrong"] > 30_000
