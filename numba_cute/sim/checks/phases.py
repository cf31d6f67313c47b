# SPDX-License-Identifier: Apache-2.0
"""The check `phases`: a phase of an mbarrier that cannot be told from another, for a parity is all that is asked."""

from __future__ import annotations

from typing import Any

from ..ground.clocks import READS
from ..hardware.watch import Check


class Phases(Check):
    """Warns of phases that complete before anybody has waited for the one before, and of waits a whole phase late."""

    name = "phases"
    summary = "warns of a phase that completes before the one before was waited for, and of a wait a whole phase late"
    clocks = True

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._late: set[tuple[Any, str, int]] = set()
        """Lines that wait a phase late, by barrier."""

    def completes_phase(self, bar: Any, by: str) -> None:
        if bar.seen < bar.phase:
            bar.unseen += 1
            self.run.suspicions.append(
                f"{bar}: phase {bar.phase} completes (by {by}), but nobody has waited for phase {bar.phase - 1}: "
                f"whoever waits for it now cannot tell the two apart"
            )

    def tests_phase(self, m: Any, bar: Any, parity: int) -> None:
        """Warn if the phase that is meant, by what the thread knows, is followed by a completed one already."""
        known = min(t.base.at(READS, bar.agent) for t in m.clocks())
        meant = known - 1 if (known - 1) & 1 == parity else known
        if bar.phase > meant + 1 and (line := (bar, m.place.file, m.place.line)) not in self._late:
            self._late.add(line)
            blocks = (bar.phase - meant) % 2 == 0
            self.run.suspicions.append(
                f"{bar}: {m.describe()} waits a whole phase late at {m.place}\n"
                f"  by what it knows it means phase {meant} (parity {parity}), but {bar.phase} phases have completed, "
                f"and a parity cannot tell them apart: it "
                f"{'waits for one that has yet to come' if blocks else 'mistakes one phase for another'}\n"
                f"  fix: let nobody complete the next phase before all who wait for this one have seen it: they "
                f"arrive at a barrier (empty) that the next phase's arrivals wait for"
            )
