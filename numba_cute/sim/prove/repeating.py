# SPDX-License-Identifier: Apache-2.0
"""A prover that looks for rounds of the kernel's loops too: `simulate(kernel).prove(rounds=True)`."""

from __future__ import annotations

from typing import Any

from ..ground.report import Place
from .prover import Prover
from .rounds import Round, Rounds


class Repeating(Prover):
    """Follows the first cluster that comes step by step. round: what its threads do again and again, or None."""

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.round: Round | None = None
        self._cluster: Any = None
        self._rounds: Rounds | None = None

    def _did(self, threads: Any, *step: Any) -> None:
        cluster = threads[0].cta.cluster
        if self._cluster is None:
            self._cluster, self._rounds = cluster, Rounds(self._of(cluster))
        if self._rounds is not None and cluster is self._cluster:
            for t in threads:
                self._rounds.did(t, step)

    def _at(self, m: Any, bar: Any, what: str, *more: Any) -> None:
        self._did(m.threads, what, bar.cta.rank, bar.address, m.place, *more)

    # mbarriers
    def begins_barrier(self, m: Any, bar: Any) -> None:
        super().begins_barrier(m, bar)
        self._at(m, bar, "initialises")

    def promises(self, m: Any, bar: Any) -> None:
        super().promises(m, bar)
        self._at(m, bar, "issues", m.row and m.row.name)

    def announces(self, m: Any, bar: Any) -> None:
        super().announces(m, bar)
        if not m.deferred:
            self._at(m, bar, "announces", bar.announced)

    def arrives(self, m: Any, bar: Any) -> None:
        super().arrives(m, bar)
        if not m.deferred:
            self._at(m, bar, "arrives", bar.arrivals[-1][2])

    def delivers(self, m: Any, bar: Any) -> None:
        super().delivers(m, bar)
        if not m.deferred:
            self._at(m, bar, "delivers", bar.delivered)

    def sees_phase(self, m: Any, bar: Any) -> None:
        super().sees_phase(m, bar)
        self._at(m, bar, "waits")

    def completes_phase(self, bar: Any, by: str) -> None:
        self._look(bar.cta.cluster)
        super().completes_phase(bar, by)

    def _look(self, cluster: Any) -> None:
        """Look for a round where the cluster is that which is followed."""
        if self._rounds is not None and cluster is self._cluster and not self.assumed:
            self._rounds.look(self._counted(), [clock for held in self._promised.values() for _, clock in held])

    def _counted(self) -> Any:
        """Return the cluster's state: the counts of its barriers, the threads that have come to each, and the work
        under way."""
        cluster = self._cluster
        bars = [
            (b.live, b.expected, b.pending, b.tx, b.phase & 1, b.announced, b.delivered)
            for cta in cluster.ctas for b in cta.mbarriers.values()
        ]  # fmt: skip
        named = [
            (id, rally.expected, frozenset(t.index for t in rally.who))
            for cta in cluster.ctas for id, rally in sorted(cta.named.open.items())
        ]  # fmt: skip
        away = [t.cluster_phase is None for t in cluster.threads]
        flying = [
            (b.cta.rank, b.address, step.how, step.place, step.thread.cta.rank, step.thread.index)
            for (_, b), held in self._promised.items() for step, _ in held
        ]  # fmt: skip
        return tuple(bars), tuple(named), tuple(away), len(cluster.live), tuple(flying)

    # other barriers
    def arrives_named(self, m: Any, barriers: Any, rally: Any, waits: bool) -> None:
        last = rally.arrived + len(m.threads) >= (rally.expected or len(m.cta.threads))
        if last and not m.cta.mbarriers:  # where there are some, their phases tell rounds
            self._look(m.cta.cluster)
        super().arrives_named(m, barriers, rally, waits)
        self._did(m.threads, "arrives", rally.id, rally.expected, waits, m.place)

    def leaves_named(self, m: Any, barriers: Any, rally: Any) -> None:
        super().leaves_named(m, barriers, rally)
        self._did(m.threads, "leaves", rally.id, m.place)

    def arrives_cluster(self, m: Any, phase: int) -> None:
        super().arrives_cluster(m, phase)
        self._did(m.threads, "arrives at the cluster's", m.place)

    def leaves_cluster(self, m: Any, phase: int) -> None:
        super().leaves_cluster(m, phase)
        self._did(m.threads, "leaves the cluster's", m.place)

    def meets(self, threads: Any) -> None:
        super().meets(threads)
        self._did(threads, "meets", len(threads))

    def ends(self, cluster: Any) -> None:
        if cluster is self._cluster and self._rounds is not None:
            self.round, self._rounds = self._rounds.found, None
        super().ends(cluster)

    @property
    def places(self) -> list[Place]:
        """The lines of the round."""
        steps = () if self.round is None else self.round.steps.values()
        return list(dict.fromkeys(x for some in steps for step in some for x in step if isinstance(x, Place)))
