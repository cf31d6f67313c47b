# SPDX-License-Identifier: Apache-2.0
"""Choose the ready thread that runs next. A thread runs until it must wait, so that an order of the steps between
barriers is all that a schedule decides; the same seed (or the same choices) gives the same run. Where lanes run
together (see `lanes`), one thread stands for them all."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any

AGAIN = 1 / 2
"""The probability, with a seed, that a thread that pauses goes on among the others, and not after them."""


OF_LANES = 8
"""One of this many seeds permutes single threads, and the others warps."""


def orders_lanes(seed: int | None) -> bool:
    """Tell whether a seed permutes single threads. Orders of warps alone are those that a GPU has most, and their lanes
    can run together."""
    return seed is not None and seed % OF_LANES == 0


class InOrder:
    """First come, first served."""

    def __init__(self, threads: Iterable[Any]) -> None:
        self.ready: deque[Any] = deque(threads)
        self.append = self.ready.append
        self.extend = self.ready.extend

    def __bool__(self) -> bool:
        return bool(self.ready)

    def next(self) -> Any:
        return self.ready.popleft()

    def again(self) -> bool:
        """Tell whether a thread that pauses may go on before all others have had their turn."""
        return False


class Shuffled(InOrder):
    """Any ready thread, by a seed."""

    def __init__(self, threads: Iterable[Any], rng: random.Random) -> None:
        super().__init__(threads)
        self.rng = rng

    def next(self) -> Any:
        ready = self.ready
        at = self.rng.randrange(len(ready))
        ready.rotate(-at)
        t = ready.popleft()
        ready.rotate(at)
        return t

    def again(self) -> bool:
        return self.rng.random() < AGAIN


class ByWarp:
    """Ready threads in one queue for each warp; `choose` says which warp goes on."""

    def __init__(self, threads: Iterable[Any]) -> None:
        self.queues: dict[Any, deque[Any]] = {}
        self.extend(threads)

    def __bool__(self) -> bool:
        return bool(self.queues)

    def append(self, t: Any) -> None:
        self.queues.setdefault(t.warp, deque()).append(t)

    def extend(self, threads: Iterable[Any]) -> None:
        for t in threads:
            self.append(t)

    def next(self) -> Any:
        warp = self.choose()
        queue = self.queues[warp]
        t = queue.popleft()
        if not queue:
            del self.queues[warp]
        return t

    def choose(self) -> Any:
        raise NotImplementedError

    def again(self) -> bool:
        raise NotImplementedError


class Priorities(ByWarp):
    """Each warp has a random priority and the highest runs; now and then one falls to the bottom. Such runs let one
    warp run far ahead of the others, which finds bugs that fair ones hide (Burckhardt et al., "A Randomized Scheduler
    with Probabilistic Guarantees of Finding Bugs", 2010)."""

    FALL = 1 / 64  # how often the warp that runs falls

    def __init__(self, threads: Iterable[Any], rng: random.Random) -> None:
        self.rng = rng
        self.priority: dict[Any, float] = {}
        self.falls = 0
        super().__init__(threads)

    def choose(self) -> Any:
        for warp in self.queues:
            if warp not in self.priority:
                self.priority[warp] = self.rng.random()
        best = max(self.queues, key=self.priority.__getitem__)
        if self.rng.random() < self.FALL:
            self.falls += 1
            self.priority[best] = -float(self.falls)
        return best

    def again(self) -> bool:
        return self.rng.random() < AGAIN


class Choices:
    """A launch's choices: the first of what is possible, but for given deviations: at step s the n-th. options: the
    steps at which there were several, and how many."""

    def __init__(self, deviations: dict[int, int]) -> None:
        self.deviations = deviations
        self.options: dict[int, int] = {}
        self.step = 0

    def among(self, several: int) -> int:
        """Choose one of several, by its number."""
        if several < 2:
            return 0
        self.options[self.step] = several
        self.step += 1
        return self.deviations.get(self.step - 1, 0) % several


class Chosen(ByWarp):
    """The warps in order, but for the deviations of the launch's choices."""

    def __init__(self, threads: Iterable[Any], choices: Choices) -> None:
        self.choices = choices
        self.last: Any = None
        super().__init__(threads)

    def again(self) -> bool:
        self.last = None  # the others come first, unless a choice says otherwise
        return True

    def choose(self) -> Any:
        if self.last in self.queues:  # a warp's own lanes go on together: an order among them decides nothing new
            return self.last
        warps = list(self.queues)
        self.last = warps[self.choices.among(len(warps))]
        return self.last


def schedule(threads: list[Any], run: Any) -> Any:
    """The order of one cluster's threads in a run: by its plan or choices, its seed (odd ones by priorities), or as
    they come."""
    if run.plan is not None:
        return run.plan.queue(threads)
    if run.choices is not None:
        return Chosen(threads, run.choices)
    if run.seed is None:
        return InOrder(threads)
    rng = random.Random(run.seed)
    return Priorities(threads, rng) if run.seed % 2 else Shuffled(threads, rng)
