# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of kernels have that measure launches on several sets of buffers in turns."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from numba_cute.testing import Comparison, Pace, compare

from .harness import Figure, Result

L2_TIMES_TWO = 120e6  # bytes: two times the H200's L2
SHORT = Pace(turn=0.02, least=0.05, most=0.3)
Calls = dict[str, Callable[[], Any]]


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


def random(*shape: int) -> Any:
    """Draw a tensor of bf16 on the GPU."""
    return torch.randn(shape, device="cuda").bfloat16()


def close(got: Any, want: Any) -> None:
    """Assert that a result is another's, but for what bf16 rounds."""
    off = float((got.double() - want.double()).norm() / want.double().norm())
    assert off < 2**-6, f"off by {off:.3g}"


def case_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that `cases` reads."""
    parser.add_argument("--cases", nargs="+", default=[""], help="parts of names; all by default")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so many")


def cases(
    known: Mapping[str, Callable[[], Calls]], measured: Callable[[str, Calls], dict[str, Figure]],
    options: argparse.Namespace,
) -> Result:  # fmt: skip
    """Measure the cases that were asked for, each with random numbers of its own, and print what each shows.

    known: by name, what makes a case's calls. measured: gives the figures of a case.
    """
    figures, begin = {}, time.monotonic()
    for name, make in known.items():
        if any(part in name for part in options.cases) and time.monotonic() - begin < options.seconds:
            torch.manual_seed(0)
            now = measured(name, make())
            print(*(f"{n} {f.value:.4g} {f.unit}" for n, f in now.items()), sep="\n", flush=True)
            figures |= now
            torch.cuda.empty_cache()
    return Result(figures)


def beside(name: str, calls: Calls, peer: str) -> dict[str, Figure]:
    """Measure a case's calls in turns: the time of each, and how often it fits the peer's. Says which failed."""
    found, figures = compare(calls, baseline=peer, rounds=5, pace=SHORT, keep_going=True), {}
    for who in calls:
        if who in found.failed:
            print(f"{name}, {who}: {found.failed[who]}", flush=True)
            continue
        figures[f"{name}, {who}"] = Figure(found[who].median, "us", False, peer=who == peer)
        if who != peer:
            speed, interval = found.speed(who)
            figures[f"{name}, {who}, speed"] = Figure(speed, f"of {peer}", True, (interval.low, interval.high))
    return figures
