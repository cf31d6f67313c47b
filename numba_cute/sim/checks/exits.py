# SPDX-License-Identifier: Apache-2.0
"""The check `exits`: a CTA that exits while a peer, or a copy, may still use its shared memory."""

from __future__ import annotations

from typing import Any

from ...isa.form.instr import BULK_GROUP, MBARRIER
from ..ground.access import Access
from ..ground.clocks import READS
from ..ground.report import RaceError, block, who
from ..hardware.watch import Check
from .races import Races


class Exits(Check):
    """Follows who uses the shared memory of each CTA: the CTA must know of it before it exits."""

    name = "exits"
    summary = "a CTA that exits while a peer, a copy to it or a commit may still use its shared memory"
    needs = (Races,)

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._touches: dict[Any, dict[int, Access]] = {}
        """By CTA and agent: the last use by a peer or a copy."""

    def reaches(self, m: Any, cta: Any) -> None:
        for t in m.threads if m.unit is None else m.threads[:1]:
            self._touched(cta, Access(m, t.clock.agent, t.clock.agent + 1, t.clock.epoch, None, None))

    def uses_barrier(self, m: Any, bar: Any, what: str, asynchronous: bool) -> None:
        if m.cta is not bar.cta and not asynchronous:
            self.reaches(m, bar.cta)

    def commits(self, m: Any, bar: Any) -> None:
        if m.cta is not bar.cta:
            self._touched(bar.cta, bar.access(m))

    def issues(self, m: Any, op: Any) -> None:
        for cta, _, _, access in op.uses:
            if access is not None and self._watches(access):
                self._touched(cta, access)

    def _watches(self, access: Access) -> bool:
        return access.group != BULK_GROUP

    def _touched(self, cta: Any, access: Access) -> None:
        if not cta.live:
            raise _may_still_touch(cta, access)
        self._touches.setdefault(cta, {})[access.lo] = access

    def exits(self, cta: Any) -> None:
        if cta not in self._touches:
            return
        clocks = {id(t.clock.base): t.clock for t in cta.threads}.values()
        for a in self._touches[cta].values():
            if not any(a.known(t, READS) for t in clocks) and not any(t.clock.agent == a.lo for t in cta.threads):
                raise _may_still_touch(cta, a)

    def forgets(self, clusters: set[Any]) -> None:
        self._touches.clear()


class ExitStores(Exits):
    """The same of bulk stores and reductions, which read it."""

    name = "exit_stores"
    summary = "a CTA that exits while a bulk store of its own may still read its shared memory"

    reaches, uses_barrier, commits = Check.reaches, Check.uses_barrier, Check.commits

    def _watches(self, access: Access) -> bool:
        return access.group == BULK_GROUP


def _may_still_touch(cta: Any, a: Any) -> RaceError:
    """A CTA that exits although `a` may still use its shared memory."""
    name = f"CTA {cta.rank} ({block(cta)})"
    if a.group is not None:
        fix = {
            BULK_GROUP: "wait with cp.async.bulk.wait_group.read 0 in the thread that issued it (producer_tail)",
            MBARRIER: f"wait on the barrier that it completes ({a.on}) before the end",
        }.get(a.group, "wait for its group before the end")
        return RaceError(
            f"exit: {name} ends, but {a.row.name} issued by {who(a.threads)} at {a.place} may still use its shared "
            f"memory; {fix}"
        )
    how = a.row.name if a.row else "an access"
    return RaceError(
        f"exit: {name} ends, but {who(a.threads)} may still access its shared memory ({how} at {a.place}); keep it "
        f"alive with cluster_arrive and cluster_wait at the end, or wait for what the peer signals (producer_tail); "
        f"cluster_arrive_relaxed (.relaxed) does not do, for it says nothing of what came before it"
    )
