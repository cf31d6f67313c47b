# SPDX-License-Identifier: Apache-2.0
"""Rounds of a run that may be done any number of times: what is proved of it holds with more of them.

What `order.Order` finds next depends on how the epochs that are known of each agent compare with each other, and on
nothing else of them: it compares those of one agent, takes the greater, and adds ones that are greater than all. So two
states of a run are alike if these ranks are, and if the barriers count the same and the same signals are under way.
Steps that lead from a state to one alike lead from there to the next: done again and again, or not at all, they give
runs that end and have no conflict either; and then every order of those runs does the same.

If the threads of a run did the same steps between three such states, these are taken for a round of their loops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..ground.clocks import READS, Clock, Gather
from .order import Order

_MOST = 400
"""States of a run that are looked at."""


class Round(NamedTuple):
    """Steps that may be repeated. steps: of each thread that does any. at: how many steps each thread had done then, by
    thread."""

    steps: dict[Any, tuple[Any, ...]]
    at: dict[Any, int]


class Rounds:
    """Watches the states of an order for those that are alike. found: the round, or None."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._log: dict[Any, list[Hashable]] = defaultdict(list)
        self._seen: dict[Any, list[dict[Any, int]]] = defaultdict(list)
        self._looked = 0
        self.found: Round | None = None

    def did(self, thread: Any, step: Hashable) -> None:
        """Note a step of a thread, as its source has it."""
        if self.found is None:
            self._log[thread].append(step)

    def look(self, machine: Hashable, promised: Iterable[Any]) -> None:
        """Compare the state now with those before. machine: what the barriers count, and who has come where. promised:
        the clocks of what is under way, in an order that depends on the state alone."""
        if self.found is not None or self._looked >= _MOST:
            return
        self._looked += 1
        now = {t: len(steps) for t, steps in self._log.items()}
        before = self._seen[machine, _ranks(self._order, promised)]
        for at in reversed(range(len(before) - 1)):
            first, second = before[at], before[-1]
            one, other = self._between(first, second), self._between(second, now)
            if one and one == other:
                self.found = Round(other, now)
                self._log.clear()
                self._seen.clear()
                return
        before.append(now)

    def _between(self, start: dict[Any, int], stop: dict[Any, int]) -> dict[Any, tuple[Any, ...]]:
        return {t: tuple(self._log[t][start.get(t, 0) : n]) for t, n in stop.items() if n > start.get(t, 0)}


def _ranks(order: Order, promised: Iterable[Any]) -> Hashable:
    """Compare all epochs that matter to an order with each other, agent by agent, and return their ranks."""
    clocks: list[Clock | None] = []
    marks: list[tuple[int, int]] = []  # agents and epochs beside those of clocks
    plain: list[Hashable] = []
    for t in order.threads:
        clock = order._of[t]
        clocks.append(clock.base)
        marks.append((clock.agent, clock.epoch))
    for clock in promised:
        clocks.append(clock.base)
        marks.append((clock.agent, clock.until or 0))
        plain.append(clock.agent)
    for bar in order._barriers.values():
        for phase in (bar.older, bar.last, bar.now):
            plain.append(None if phase is None else phase.deferred)
            if phase is not None:
                clocks += [_known(phase.clock or phase.gather), _known(phase.arrivals)]
                marks.append((bar.agent, phase.number + 1))
        held = [(agent, epoch) for agent, epoch, _ in bar.now.announced]
        held += [(agent, epoch) for agent, (epoch, _) in sorted(bar.waits.items())]
        plain += [tuple(agent for agent, _ in held), len(bar.now.announced)]
        marks += held
    for key, uses in sorted(order._uses.items(), key=lambda u: str(u[0])):
        plain.append((str(key), len(uses)))
        for _, phase in uses:
            clocks += [_known(phase.clock or phase.gather)]
    for agent, (threads, knew) in order._met.items():
        plain.append((agent, len(threads), all(c.base is b and c.epoch == e for c, (b, e) in zip(threads, knew))))
    return tuple(plain), _compared(clocks, marks, order._agents)


def _known(held: Any) -> Clock | None:
    return held.freeze() if isinstance(held, Gather) else held


def _compared(clocks: list[Clock | None], marks: list[tuple[int, int]], agents: int) -> Hashable:
    """The ranks of the epochs of each agent, in clocks and marks."""
    rows: dict[int, int] = {}
    held: list[Any] = []
    for c in clocks:
        if c is not None and id(c) not in rows:
            rows[id(c)] = len(held)
            held.append(c.v[READS, :agents])
    counts: dict[int, int] = defaultdict(int)
    for agent, _ in marks:
        counts[agent] += 1
    width = max(agents, *(len(v) for v in held), *(a + 1 for a, _ in marks))
    table = np.zeros((len(held) + max(counts.values(), default=0), width), np.int64)
    for at, v in enumerate(held):
        table[at, : len(v)] = v
    counts.clear()
    for agent, epoch in marks:
        table[len(held) + counts[agent], agent] = epoch
        counts[agent] += 1
    order = np.argsort(table, axis=0, kind="stable")
    sorted_ = np.take_along_axis(table, order, 0)
    steps = np.zeros(table.shape, np.int32)
    steps[1:] = np.cumsum(sorted_[1:] != sorted_[:-1], axis=0)
    ranks = np.empty_like(steps)
    np.put_along_axis(ranks, order, steps, 0)
    of = [ranks[at].tobytes() for at in range(len(held))]
    return tuple(None if c is None else of[rows[id(c)]] for c in clocks), ranks[len(held) :].tobytes()
