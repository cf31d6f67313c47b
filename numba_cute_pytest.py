# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: `--cute-sim-seeds N` runs each simulated launch that names no seed in N further orders, and
`--cute-sim-prove` has each one proved.

pytest loads it in every run of an environment that has numba-cute, whatever is tested there. So it is a module of its
own, beside the package, and imports nothing of it until a test runs with the option.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def _number(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(f"{text} is no number of orders")
    return value


def pytest_addoption(parser: Any) -> None:
    parser.getgroup("numba-cute").addoption(
        "--cute-sim-seeds",
        type=_number,
        default=0,
        metavar="N",
        help="simulate each launch in N further orders of its threads and copies (seeds 0 to N-1), from the same "
        "memory; a failure names the seed",
    )
    parser.getgroup("numba-cute").addoption(
        "--cute-sim-prove",
        action="store_true",
        help="a simulated launch fails if another order of its threads and copies could do something else",
    )


def pytest_configure(config: Any) -> None:
    seeds = config.getoption("cute_sim_seeds")
    if seeds:
        config.pluginmanager.register(_FurtherOrders(seeds))
    if config.getoption("cute_sim_prove"):
        config.pluginmanager.register(_Proved())


class _Proved:
    """Has the launches of each test, of its fixtures too, proved."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        from numba_cute.sim.orders import PROVES

        token = PROVES.set(True)
        yield
        PROVES.reset(token)


class _FurtherOrders:
    """Gives the launches of each test, of its fixtures too, their further seeds."""

    def __init__(self, seeds: int) -> None:
        self.seeds = tuple(range(seeds))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        from numba_cute.sim.launch import FURTHER_SEEDS

        token = FURTHER_SEEDS.set(self.seeds)
        yield
        FURTHER_SEEDS.reset(token)
