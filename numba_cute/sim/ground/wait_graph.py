# SPDX-License-Identifier: Apache-2.0
"""The graph of a deadlock, to print and to draw: which threads wait for which (`DeadlockError.graph`)."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from ...seam.ground.drawing import LINE, Drawing, Picture, wide

NOBODY = "nobody is known to end that"


class Waiter(NamedTuple):
    """Threads, and where they are: "" where they have exited."""

    who: str
    place: str


class Awaited(NamedTuple):
    """A wait of threads: what they wait for, and what it lacks, or "". wants: the waiters, by number, that would have
    to come."""

    what: str
    lacks: str
    wants: tuple[int, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class WaitGraph(Picture):
    """The wait-for graph of a deadlock.

    waiters: threads that wait or have exited. waits: for each, in order, what it waits for, a number of `awaited`, or
    None. awaited: barriers and the like. cycle: numbers of waiters that wait for one another in a circle, or none."""

    waiters: tuple[Waiter, ...]
    waits: tuple[int | None, ...]
    awaited: tuple[Awaited, ...]
    cycle: tuple[int, ...] = ()

    def __str__(self) -> str:
        lines = []
        for n, waiter in enumerate(self.waiters):
            on = self.waits[n]
            if on is None:
                continue
            found = self.awaited[on]
            lines.append(f"{_at(waiter)}")
            lines.append(f"  waits for {', '.join(filter(None, (found.what, found.lacks)))}")
            lines += [f"    which wants {_at(self.waiters[w])}" for w in found.wants] or [f"    {NOBODY}"]
        if self.cycle:
            lines.append("cycle: " + " > ".join(self.waiters[w].who for w in (*self.cycle, self.cycle[0])))
        return "\n".join(lines)

    def drawn(self) -> Drawing:
        """Draw threads to the left and what they wait for to the right; the cycle in red."""
        d = Drawing()
        left = max((wide(t) for w in self.waiters for t in (w.who, _where(w))), default=0.0) + 16
        right = max((wide(t) for a in self.awaited for t in (a.what, a.lacks)), default=0.0) + 16
        middle, step, tall = 10 + left + 120, 3 * LINE + 14, 2 * LINE + 10
        d.text(10, 16, "who, and where", "faint")
        d.text(middle, 16, "what they wait for, and what it lacks", "faint")
        circle = {(w, self.waits[w]) for w in self.cycle}
        back = {(self.waits[w], after) for w, after in zip(self.cycle, (*self.cycle[1:], *self.cycle[:1]))}
        for n, waiter in enumerate(self.waiters):
            y = 26.0 + n * step
            d.box(10, y, left, tall, style="wrong" if n in self.cycle else "")
            d.text(18, y + LINE, waiter.who, "strong")
            d.text(18, y + 2 * LINE, _where(waiter), "faint")
        for m, found in enumerate(self.awaited):
            y = 26.0 + m * step
            d.box(middle, y, right, tall, style="wrong" if any(m == on for _, on in circle) else "")
            d.text(middle + 8, y + LINE, found.what, "strong")
            d.text(middle + 8, y + 2 * LINE, found.lacks, "faint")
            if not found.wants:
                d.text(middle + right + 10, y + LINE + 8, NOBODY, "faint")
            for w in found.wants:
                path = _curve(middle, y + tall - 8, 10 + left, 26.0 + w * step + tall - 8)
                d.line(path, "wrong" if (m, w) in back else "", "wants", dashes="5 3", arrow=True)
        for n, on in enumerate(self.waits):
            if on is not None:
                path = _curve(10 + left, 26.0 + n * step + 12, middle, 26.0 + on * step + 12)
                d.line(path, "wrong" if (n, on) in circle else "", "waits for", arrow=True)
        y = 26.0 + step * max(len(self.waiters), len(self.awaited)) + 8
        d.line(f"M10 {y:.1f}H50", arrow=True)
        d.text(58, y + 4, "waits for")
        d.line(f"M160 {y:.1f}H200", dashes="5 3", arrow=True)
        d.text(208, y + 4, "wants, to go on")
        if self.cycle:
            d.line(f"M350 {y:.1f}H390", "wrong")
            d.text(398, y + 4, "cycle: " + " > ".join(self.waiters[w].who for w in (*self.cycle, self.cycle[0])))
        return d


def _where(waiter: Waiter) -> str:
    return f"at {waiter.place}" if waiter.place else "exited"


def _at(waiter: Waiter) -> str:
    return f"{waiter.who}, {_where(waiter)}"


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    """A path from one side to the other."""
    bend = (to_x - x) / 2
    return f"M{x:.1f} {y:.1f}C{x + bend:.1f} {y:.1f} {to_x - bend:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
