# SPDX-License-Identifier: Apache-2.0
"""The search for `simulate(kernel).explore()`: runs in orders that differ, from the conflicts of those before on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ground.report import SimError
from . import reduction
from .recorder import Plan, Schedule, told

ACROSS = "the order of blocks of different clusters"
LOST = "orders that the simulator could not bring about"


class Search:
    """The orders of one launch. run: runs it in the order of a `Plan`, and gives its `Run`.

    assumed: what they do not vary."""

    def __init__(self, run: Callable[[Plan], Any]) -> None:
        self._run = run
        self.assumed: dict[str, None] = {}
        self._clusters: dict[Any, Any] = {}
        """The cluster of each CTA."""

    def all(self, most: int) -> reduction.Found:
        """Run the orders that differ, at most so many. An error of one says what it exchanged, and how to see it
        again."""
        return reduction.search(self._once, most, self._may)

    def _once(self, schedule: Schedule, exchanged: Any) -> list[reduction.Event]:
        plan = Plan(schedule)
        try:
            done = self._run(plan)
        except SimError as e:
            e.args = (f"{e.args[0]}{_why(plan, exchanged)}", *e.args[1:])
            raise
        if plan.left:
            self.assume(LOST)
        if done.fallback is not None:
            self.assume("the shapes of clusters")
        self._clusters.update(plan.clusters)
        return plan.finished()

    def _may(self, first: Any, second: Any) -> bool:
        """Tell whether two processes are of one cluster: of another, all runs before or after."""
        (one, *_), (other, *_) = first, second
        if self._clusters[one[0]] == self._clusters[other[0]]:
            return True
        self.assume(ACROSS)
        return False

    def assume(self, text: str) -> None:
        """Note what the orders do not vary."""
        self.assumed[text] = None


def _why(plan: Plan, exchanged: Any) -> str:
    lines = []
    if exchanged is not None:
        events, first, second = exchanged
        lines += [f"  in this order: {told(events[second])}", f"  comes before:  {told(events[first])}"]
    lines.append(f"  to see this again: .explore(choices={plan.taken})[grid, block](...)")
    return "\n" + "\n".join(lines)
