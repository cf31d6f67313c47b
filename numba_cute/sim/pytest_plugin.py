# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: `--cute-sim-seeds N` runs each simulated launch that names no seed in N further orders."""

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


@pytest.fixture(autouse=True)
def _cute_sim_seeds(request: Any) -> Iterator[None]:
    seeds = request.config.getoption("--cute-sim-seeds")
    if not seeds:
        yield
        return
    from .launch import FURTHER_SEEDS  # here: the plugin is loaded in every pytest run of whoever has the package

    token = FURTHER_SEEDS.set(tuple(range(seeds)))
    yield
    FURTHER_SEEDS.reset(token)
