# SPDX-License-Identifier: Apache-2.0
"""The signals and the waits of each mbarrier, with arrivals and bytes: `Proof.barriers`."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ...seam.ground.drawing import LINE, Drawing, Picture, wide
from ..ground.report import count, ranges
from .recording import Record
from .roles import Roles


@dataclasses.dataclass(frozen=True)
class Barrier:
    """The stages of a pipeline's barrier, or one barrier by itself, in all CTAs. counts: arrivals and bytes a phase,
    and how many phases. signals, waits: who does it, how and where."""

    name: str
    counts: str
    signals: tuple[str, ...]
    waits: tuple[str, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class Barriers(Picture):
    """The threads that signal each mbarrier and those that wait there. barriers: each a `Barrier`."""

    barriers: tuple[Barrier, ...]

    def __str__(self) -> str:
        lines = []
        for b in self.barriers:
            lines.append(f"{b.name}: {b.counts}")
            lines += [f"    {line}" for line in (*b.signals, *b.waits)]
        return "\n".join(lines) or "no mbarrier"

    def drawn(self) -> Drawing:
        """Draw a row for each: who signals it, the barrier, who waits."""
        d, y = Drawing(), 14.0
        signals = max((wide(t) for b in self.barriers for t in b.signals), default=0.0)
        across = max((wide(t) for b in self.barriers for t in (b.name, b.counts)), default=0.0) + 16
        middle = 10 + signals + 40
        for b in self.barriers:
            height = max(2 * LINE + 8, LINE * max(len(b.signals), len(b.waits)) + 4)
            d.box(middle, y, across, height)
            d.text(middle + 8, y + LINE, b.name, "strong")
            d.text(middle + 8, y + 2 * LINE, b.counts, "faint")
            for n, text in enumerate(b.signals):
                d.text(10 + signals - wide(text), y + LINE * (n + 1), text)
                d.line(f"M{16 + signals:.1f} {y + LINE * (n + 1) - 4:.1f}H{middle - 2:.1f}", arrow=True)
            right = middle + across
            for n, text in enumerate(b.waits):
                d.line(f"M{right + 2:.1f} {y + LINE * (n + 1) - 4:.1f}H{right + 34:.1f}", arrow=True)
                d.text(right + 40, y + LINE * (n + 1), text)
            y += height + 14
        d.text(10, y + 6, "left: who signals; right: who waits", "faint")
        return d


def barriers(record: Record, roles: Roles) -> Barriers:
    """The barriers of a record, each once for all its stages and CTAs."""
    of = {warp: role.name for role in roles.roles for warp in role.warps}
    uses: dict[str, dict[tuple[str, str], dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
    for u in record.uses:
        if u.how != "initialises":
            places = uses[u.barrier][of[u.thread[0], u.thread[1] // 32], u.how]
            places[u.place] = places.get(u.place, False) or u.thread[0] != u.cta
    made = []
    for name in dict.fromkeys(name for name, _, _ in record.barriers):
        phases = {stage: p for (of_name, _, stage), p in record.barriers.items() if of_name == name}
        counted = [p for (of_name, _, _), p in record.barriers.items() if of_name == name and p]  # others: not used
        told: dict[bool, list[str]] = {True: [], False: []}
        for (role, how), places in uses[name].items():
            far = ", for other CTAs too" if any(places.values()) else ""
            told[how == "waits"].append(f"{role} {how} ({_places(places)}{far})")
        shown = name + (f"[{ranges(phases)}]" if len(phases) > 1 else "")
        made.append(Barrier(shown, _counts(counted), tuple(told[False]), tuple(told[True])))
    return Barriers(tuple(made))


def _places(places: Iterable[str]) -> str:
    """Places, with the file where it changes."""
    told, last = [], ""
    for place in places:
        file, colon, rest = place.partition(":")
        told.append(colon + rest if file == last else place)
        last = file
    return ", ".join(told)


def _counts(phases: list[Any]) -> str:
    """Arrivals and bytes of phases, and how many there are of a barrier."""
    arrivals = sorted({a for some in phases for a, _ in some})
    sizes = sorted({n for some in phases for _, n in some} - {0})
    many = sorted({len(some) for some in phases}) or [0]
    held = [f"{' or '.join(map(str, arrivals))} arrival{'' if arrivals == [1] else 's'}"] if arrivals else []
    held += [f"{' or '.join(map(str, sizes))} bytes"] if sizes else []
    times = count(many[-1], "phase") if len(many) == 1 else f"{many[0]} to {many[-1]} phases"
    return f"{' and '.join(held)} a phase, {times}" if held else "no phase completes"
