# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of kernels have that measure launches on several sets of buffers in turns."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from numba_cute.testing import Comparison, Pace, compare

from .harness import Figure

L2_TIMES_TWO = 120e6  # bytes: two times the H200's L2


def arguments(parser: argparse.ArgumentParser, cut: str) -> None:
    """Add the options that `contest` reads, and --cuts. cut: what its numbers are, for the help."""
    parser.add_argument("--cuts", nargs="*", default=[], type=numbers, help=f"others to compare: {cut}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn", type=float, default=0.25, help="seconds of each turn")
    parser.add_argument("--warm", type=float, default=3.0, help="seconds before")


def numbers(text: str) -> tuple[int, ...]:
    """Numbers with commas between them."""
    return tuple(int(x) for x in text.split(","))


def contest(
    make: Callable[[int], Any], weigh: Callable[[Any], int],
    contenders: Callable[[list[Any]], Mapping[str, Sequence[Callable[[], Any]]]], baseline: str,
    options: argparse.Namespace,
) -> Comparison:  # fmt: skip
    """Measure launches on so many sets of buffers that none is found in L2.

    make: makes the set of a number. weigh: the bytes of a set. contenders: makes by name a launch for each set.
    baseline: the contender that the others are compared with. options: those of `arguments`.
    """
    first = make(0)
    count = max(2, math.ceil(L2_TIMES_TWO / weigh(first)))
    sets = [first] + [make(i) for i in range(1, count)]
    pace = Pace(turn=options.turn, least=options.warm, most=2 * options.warm)
    try:
        return compare(contenders(sets), baseline=baseline, rounds=options.rounds, keep_going=True, pace=pace)
    finally:
        del first, sets
        torch.cuda.empty_cache()


def figure(values: Sequence[float], unit: str, more_is_better: bool, peer: bool) -> Figure:
    """The median of what was measured, and its range. peer: whether it is another's."""
    return Figure(float(np.median(values)), unit, more_is_better, (min(values), max(values)), peer)
