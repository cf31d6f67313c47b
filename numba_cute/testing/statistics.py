# SPDX-License-Identifier: Apache-2.0
"""The median of a few samples, and how sure one can be of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ..seam.ground.records import dataclass


@dataclass(frozen=True)
class Interval:
    """An interval that holds the true median. low, high: of the samples. confidence: with which probability, whatever
    the samples' distribution is; for few samples that is less than was asked for."""

    low: float
    high: float
    confidence: float


def median(samples: Sequence[float]) -> float:
    """Return the median of the samples."""
    return statistics.median(samples)


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the narrowest interval between two of the samples, equally far from their middle, that holds the median
    with this confidence; the widest where the samples are too few for that.

    The number of n samples that lie below the median is binomial (n, 1/2), whatever they are distributed by.
    """
    ordered, n = sorted(samples), len(samples)
    best = Interval(ordered[0], ordered[-1], 1 - 2 * 0.5**n)
    outside, whole = 0.5**n, math.lgamma(n + 1) - n * math.log(2)
    for below in range(1, (n + 1) // 2):
        outside += math.exp(whole - math.lgamma(below + 1) - math.lgamma(n - below + 1))
        if 1 - 2 * outside < confidence:
            break
        best = Interval(ordered[below], ordered[n - 1 - below], 1 - 2 * outside)
    return best
