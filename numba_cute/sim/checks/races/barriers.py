# SPDX-License-Identifier: Apache-2.0
"""Barriers in order: whoever ends them knows of all users (`initialised` asks for the beginning)."""

from __future__ import annotations

from typing import Any

from ...ground.access import Region
from ...ground.clocks import READS, distinct_bases
from ...ground.report import BarrierError, DivergenceError, Place, who
from ...hardware.barrier import Rally
from ...hardware.together import of_threads, standing_of
from ...hardware.watch import Check
from .shadow import History


class BarrierUse(Check):
    """The events of barriers, of the check `races`."""

    history: History

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._users: dict[Any, dict[tuple[int, int], tuple[list[Any], list[int], Place, str]]] = {}
        """By mbarrier, and by the first agent and the number of those together: who used it last, when, where, how."""
        self._lines: dict[Any, tuple[Rally, Any, Place]] = {}
        """By warp: its last `syncthreads`, and which thread came first, and where."""

    def forgets(self, clusters: set[Any]) -> None:
        self._users.clear()
        self._lines.clear()

    # mbarriers
    def begins_barrier(self, m: Any, bar: Any) -> None:
        self._users[bar] = {}
        self.history.add(bar.born)
        self.history.check(m, bar.cta.smem, Region(bar.address, bar.address + 8), True, by=bar.born)

    def ends_barrier(self, m: Any, bar: Any) -> None:
        users = self._users.pop(bar).values()
        for t, epoch, place, how in [(t, e, *use) for threads, at, *use in users for t, e in zip(threads, at)]:
            if not all(c.knows(READS, t.clock.agent, epoch) for c in m.clocks()):
                raise BarrierError(
                    f"{bar}: invalidated, but nothing orders that after {who([t])} {how} at {place}; let all that use "
                    f"it meet first (cuda.syncthreads()); {m.describe()} at {m.place}"
                )
        self.history.check(m, bar.cta.smem, Region(bar.address, bar.address + 8), True)

    def arrives(self, m: Any, bar: Any) -> None:
        self._uses(m, bar, "arrives")

    def sees_phase(self, m: Any, bar: Any) -> None:
        asked = self.run.reports and bar.phase and not m.deferred  # doubts are words of reports
        knew = [b for b in distinct_bases(m.clocks()) if b.at(READS, bar.agent) >= bar.phase] if asked else ()
        for t in m.threads if self.run.reports else ():
            t.doubt = self._known_before(m, bar, t) if t.clock.base in knew else None
        self._uses(m, bar, "waits")

    def gives_up(self, m: Any, bar: Any) -> None:
        text = f"the test of {bar} at {m.place} gave False, as it may at any time: ask again until it gives True"
        m.run.thread.doubt = bar, text

    @staticmethod
    def _known_before(m: Any, bar: Any, t: Any) -> Any:
        """Note of a thread that waits for a phase of which it knows already."""
        return bar, (
            f"{who([t])} passed the wait for {bar} at {m.place} by phase {bar.phase - 1}, of which it knew already: if "
            f"it means the next one, its state was not advanced, or the parity is wrong"
        )

    def _uses(self, m: Any, bar: Any, how: str) -> None:
        if not m.deferred:
            epochs = standing_of(m.threads).epochs if m.lanes > 1 else [m.threads[0].clock.epoch]
            self._users[bar][m.threads[0].clock.agent, m.lanes] = m.threads, epochs, m.place, how

    # named barriers
    def arrives_named(self, m: Any, barriers: Any, rally: Rally, waits: bool) -> None:
        """Report those who do not know that the use before has ended: both could become one.

        Who has arrived without waiting may wait for the same use, which counts them twice (PTX ISA, "barrier": it ends
        when that many have arrived): had it ended before, in another order, they would not know.
        """
        last = barriers.last.get(rally.id)
        if rally.arrived and not waits and any(t in rally.who for t in m.threads):
            before, how = rally, "has arrived there already, and that use has not ended"
        elif last is not None and not all(base.at(READS, last[1]) >= last[2] for base in distinct_bases(m.clocks())):
            before, how = last[0], "does not know that the use before has ended, so that in another order both mix"
        else:
            return
        name = "syncthreads (named barrier 0)" if rally.expected is None else f"named barrier {rally.id}"
        raise BarrierError(
            f"{name}: {m.describe()} arrives at {m.place}, but {how}\n"
            f"  that use: {who(before.who)} for {before.expected or 'all'} threads, at {before.places[0]}\n"
            f"  fix: give each purpose a barrier id of its own, or let whoever arrives wait first for something that "
            f"those of the use before signal after it"
        )

    def syncs_threads(self, m: Any) -> None:
        """`syncthreads` is an instruction of whole warps: lanes must not come to it at different places."""
        rally = m.cta.named.meeting(0, None)
        for first in of_threads(m.threads, _firsts):
            self._comes_to(m, rally, first)

    def _comes_to(self, m: Any, rally: Rally, thread: Any) -> None:
        warp, place = thread.warp, m.line
        found, first, at = self._lines.get(warp, (None, None, place))
        if found is not rally:
            self._lines[warp] = rally, thread, place
        elif (at.file, at.line) != (place.file, place.line):
            raise DivergenceError(
                f"divergent warp: {m.describe()} comes to syncthreads at {place}\n"
                f"  but {who([first])} of the same warp is at another one, at {at}\n"
                f"  fix: move syncthreads out of the branch, so that all lanes of a warp execute the same one"
            )


def _firsts(threads: list[Any]) -> list[Any]:
    """The first thread of each warp."""
    return list({t.warp: t for t in reversed(threads)}.values())
