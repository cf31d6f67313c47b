# SPDX-License-Identifier: Apache-2.0
"""The check `phases`: a phase of an mbarrier that cannot be told from another, for a parity is all that is asked."""

from __future__ import annotations

from typing import Any

from ..ground.clocks import READS, distinct_bases
from ..ground.report import Cause, who
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
            text = (
                f"{bar}: phase {bar.phase} completes (by {by}), but nobody has waited for phase {bar.phase - 1}: "
                f"whoever waits for it now cannot tell the two apart"
            )
            self.run.suspicions.append(Cause(f"{_known_before(bar)}{text}\n{_too_many(bar)}"))

    def tests_phase(self, m: Any, bar: Any, parity: int) -> None:
        """Warn if the phase that is meant, by what the thread knows, is followed by a completed one already."""
        known = min(base.at(READS, bar.agent) for base in distinct_bases(m.clocks()))
        meant = known - 1 if (known - 1) & 1 == parity else known
        if bar.phase > meant + 1 and (line := (bar, m.place.file, m.place.line)) not in self._late:
            self._late.add(line)
            blocks = (bar.phase - meant) % 2 == 0
            text = (
                f"{bar}: {m.describe()} waits a whole phase late at {m.place}\n"
                f"  by what it knows it means phase {meant} (parity {parity}), but {bar.phase} phases have completed, "
                f"and a parity cannot tell them apart: it "
                f"{'waits for one that has yet to come' if blocks else 'mistakes one phase for another'}\n"
                f"  fix: let nobody complete the next phase before all who wait for this one have seen it: they "
                f"arrive at a barrier (empty) that the next phase's arrivals wait for; of a pipeline, advance each "
                f"state once for each stage"
            )
            self.run.suspicions.append(Cause(text))


def _known_before(bar: Any) -> str:
    """Tell of a thread that arrived after a wait which told it nothing new, if one did."""
    told = next((t.doubt[1] for t, _, _ in bar.arrivals if t.doubt is not None), None)
    return "" if told is None else f"{told}\n  so that "


def _too_many(bar: Any) -> str:
    """Tell who arrived in the phase and the one before, and what is to be done."""
    fix = "arrive once in each phase: a commit or a release is one too many, or a state is not advanced"
    for t, first, _ in bar.arrivals:
        again = [place.short for u, place, _ in bar.arrivals if u is t]
        earlier = [place.short for u, place, _ in bar.before if u is t]
        if len(again) > 1:
            places = " and ".join(dict.fromkeys(again))
            return f"  {who([t])} arrived {len(again)} times in it, at {places}\n  fix: {fix}"
        if earlier:
            places = f"{earlier[-1]} and {first.short}"
            return f"  {who([t])} arrived in both, at {places}\n  fix: {fix}, or nobody waits between"
    now, before = ([t for t, _, _ in arrivals] for arrivals in (bar.arrivals, bar.before))
    others = f"  {who(now)} arrived in it, and {who(before)} in the one before\n" if now and before else ""
    return (
        f"{others}  fix: initialise it for all that arrive in a round, and not for {bar.expected}; or take away an "
        f"arrival that is one too many; or let whoever should wait in between do so"
    )
