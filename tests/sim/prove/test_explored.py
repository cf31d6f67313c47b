# SPDX-License-Identifier: Apache-2.0
"""The reduction of orders that `explore` runs by finds what a search of all states finds."""

import re

import numpy as np
import pytest

from numba_cute.sim import DeadlockError, simulate

from . import simulated, test_prove
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


def test_the_simulator_finds_each_random_program_that_hangs_in_some_order():
    counts, missed = simulated.judged(range(150))
    assert not missed and counts["right"] > 10 and counts["wrong"] > 2 and not counts["too large"]


@pytest.mark.slow
def test_the_simulator_finds_each_of_thousands_of_random_programs_that_hang_in_some_order():
    counts, missed = simulated.judged(range(12_000))
    assert not missed and counts["wrong"] > 200


def explored(kernel, **options):
    launch = simulate(kernel, checks=False).explore(**options)[1, 128, 0, test_prove.SMEM]
    return launch(np.zeros(4, np.int32))


@pytest.mark.parametrize(
    ("kernel", "orders"),
    [(test_prove.right, 1), (test_prove.skips_a_phase, 2), (test_prove.bytes_come_late, 3), (test_prove.draws, 24)],
)
def test_all_orders_that_differ_are_run_and_counted(kernel, orders):
    found = explored(kernel)
    assert found.all and found.differ == orders
    says = f"all {orders} orders that differ were run" if orders > 1 else "no order differs from the one that was run"
    assert str(found).startswith(says)
    assert orders == 1 or not explored(kernel, most=1).all


@pytest.mark.parametrize("kernel", [test_prove.two_producers, test_prove.never_released, test_prove.one_name_for_two])
def test_an_order_that_hangs_is_told_with_the_two_steps_and_can_be_seen_again(kernel):
    with pytest.raises(DeadlockError, match=r"in this order: .*test_prove.py:\d+") as caught:
        explored(kernel)
    assert "comes before:" in str(caught.value)
    choices = eval(re.search(r"choices=(\{.*?\})", str(caught.value))[1])
    with pytest.raises(DeadlockError):
        explored(kernel, choices=choices)


def test_what_the_orders_do_not_vary_is_listed():
    found = explored(test_prove.reads_a_clock, most=5)
    assert not found.all and any(text.startswith("clocks, at ") for text in found.assumptions)
