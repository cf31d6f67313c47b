# SPDX-License-Identifier: Apache-2.0
"""List who signals each mbarrier and who waits there, as a run had it: `Proof.table`."""

from __future__ import annotations

import re
from typing import Any

from ..ground.report import Place, count, ranges, who
from .order import Step


class Use:
    """How one mbarrier was used. expected: its arrivals a phase. phases: how many completed. bytes: what they waited
    for. steps: what was done to it and where, with the threads that did it."""

    def __init__(self, bar: Any) -> None:
        self.name, self.expected = str(bar), bar.expected
        self.phases = 0
        self.bytes: set[int] = set()
        self.steps: dict[tuple[str, Place], dict[Any, None]] = {}

    def add(self, step: Step) -> None:
        """A step of a thread."""
        self.steps.setdefault((step.how, step.place), {})[step.thread] = None

    def completes(self, announced: int) -> None:
        """A phase, for which so many bytes were announced."""
        self.phases += 1
        self.bytes.add(announced)

    def told(self) -> tuple[str, ...]:
        """The lines of this barrier, but its name: those of a pipeline's stages are alike."""
        held = [count(self.expected, "arrival")]
        if self.bytes - {0}:
            held.append(f"{' or '.join(map(str, sorted(self.bytes - {0})))} bytes")
        lines = [f"{' and '.join(held)} a phase"]
        for (how, place), threads in self.steps.items():
            if how != "initialises it":
                lines.append(f"{who(list(threads))} {how} at {place.short}")
        return tuple(lines)


def table(uses: list[Use]) -> str:
    """All barriers of a cluster, those that are used alike together."""
    alike: dict[tuple[str, ...], list[Use]] = {}
    for use in uses:
        alike.setdefault(use.told(), []).append(use)
    lines = []
    for (first, *rest), some in alike.items():
        phases = sorted({u.phases for u in some})
        times = count(phases[-1], "phase") if len(phases) == 1 else f"{phases[0]} to {phases[-1]} phases"
        lines.append(f"{_names([u.name for u in some])}: {first}, {times}")
        lines += [f"    {line}" for line in rest]
    return "\n".join(lines) or "no mbarrier"


def _names(names: list[str]) -> str:
    """`mbarrier full[0] (0x400)` and the like, the stages of one array together."""
    found = [re.fullmatch(r"(.*)\[(\d+)\] \(.*\)", n) for n in names]
    heads = {f[1] for f in found if f is not None}
    if len(names) > 1 and None not in found and len(heads) == 1:
        return f"{heads.pop()}[{ranges(int(f[2]) for f in found if f is not None)}]"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
