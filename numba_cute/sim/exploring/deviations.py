# SPDX-License-Identifier: Apache-2.0
"""Trying many orders of the steps between barriers: all that differ from the usual one in a few places."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ..ground.report import SimError


def explore(run: Callable[[dict[int, int]], Any], most: int, deviations: int) -> int:
    """Run `run(choices)` for every set of at most `deviations` choices, fewest first, and at most `most` times. Gives
    how many runs there were; the first error comes out, with the choices that lead to it.

    run: gives the launch's options, a dict of step to number of ready warps, in the order that the choices make.
    """
    todo: deque[dict[int, int]] = deque([{}])
    runs = 0
    while todo and runs < most:
        choices = todo.popleft()
        try:
            options = run(choices)
        except SimError as e:
            e.args = (f"{e.args[0]}\n  to see this again: .explore(choices={choices})[grid, block](...)", *e.args[1:])
            raise
        runs += 1
        if len(choices) < deviations:
            first = max(choices, default=-1) + 1
            for step in sorted(s for s in options if s >= first):
                todo.extend({**choices, step: at} for at in range(1, options[step]))
    return runs
