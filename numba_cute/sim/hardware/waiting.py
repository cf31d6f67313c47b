# SPDX-License-Identifier: Apache-2.0
"""The clusters of a grid that have not started: of 2**63 of them too none is made before its turn."""

from __future__ import annotations

import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Iterator

MOST_SHUFFLED = 1 << 20
"""The largest number of clusters that are shuffled; more come with a random stride, from a random one on."""


class Waiting:
    """The coordinates of clusters, x fastest, or with `rng` in a random order."""

    def __init__(self, shape: tuple[int, int, int], rng: random.Random | None = None) -> None:
        self._shape = shape
        self._next, self._end = 0, math.prod(shape)
        self._passed: deque[int] = deque()  # those before `_next` that have not started either
        self._place = (lambda i: i) if rng is None else _shuffled(self._end, rng)

    def __len__(self) -> int:
        return len(self._passed) + self._end - self._next

    def take(self, at: int = 0) -> tuple[int, int, int]:
        """Take the cluster number `at` of those that wait: near the first, or the last."""
        if at == len(self) - 1 and self._next < self._end:
            self._end -= 1
            return self._coordinates(self._end)
        while len(self._passed) <= at:
            self._passed.append(self._next)
            self._next += 1
        found = self._passed[at]
        del self._passed[at]
        return self._coordinates(found)

    def _coordinates(self, number: int) -> tuple[int, int, int]:
        rest, x = divmod(self._place(number), self._shape[0])
        z, y = divmod(rest, self._shape[1])
        return x, y, z


def _shuffled(count: int, rng: random.Random) -> Callable[[int], int]:
    """A random order of so many numbers."""
    if count <= MOST_SHUFFLED:
        order = list(range(count))
        rng.shuffle(order)
        return order.__getitem__
    first, stride = rng.randrange(count), rng.randrange(1, count)
    while math.gcd(stride, count) > 1:
        stride = rng.randrange(1, count)
    return lambda i: (first + i * stride) % count


def parts(place: tuple[int, ...], by: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the places of the clusters that stand for one at `place`: so many along each axis, x first."""
    for at in itertools.product(*map(range, reversed(by))):
        yield tuple(c * n + i for c, n, i in zip(place, by, reversed(at)))
