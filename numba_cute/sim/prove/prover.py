# SPDX-License-Identifier: Apache-2.0
"""Follow the synchronisation of a run for `order.Order`, and note what the run decided that another run may decide
otherwise: atomics, polled memory, clocks."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..ground.report import Place, who
from ..hardware.watch import Check
from .order import Conflict, Order, Step

ATOMICS = "the values that atomics"
TIMED = {
    "activemask": "which lanes are active together",
    "clock": "clocks",
    "clock64": "clocks",
    "globaltimer": "clocks",
    "smid": "the SM",
}
"""Special registers that differ from run to run, in words."""


class Prover(Check):
    """Follows the synchronisation of each cluster. `simulate(kernel).prove()` adds it to the checks of a run.

    conflicts: what another order could change, by clusters that are alike once. assumed: for each thing that the proof
    assumes, where the kernel does it. events: how many steps were followed."""

    name = "prove"
    summary = "whether every order of threads and copies does what this run did"
    clocks = True

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.events = 0
        self.conflicts: dict[Any, Conflict] = {}
        self.assumed: dict[str, dict[Place, None]] = defaultdict(dict)
        self._orders: dict[Any, Order] = {}
        self._promised: dict[Any, list[Any]] = defaultdict(list)
        self._taken: set[Any] = set()
        """Warps that have changed their registers, and CTAs that have allocated tensor memory."""
        self._denied: dict[Any, dict[Any, tuple[int, Place]]] = defaultdict(dict)
        """By thread and mbarrier: the phase that it was told not to be complete, and where it asked."""

    def _order(self, m: Any) -> Order:
        return self._of(m.cta.cluster)

    def _of(self, cluster: Any) -> Order:
        found = self._orders.get(cluster)
        if found is None:
            found = self._orders[cluster] = Order(cluster.threads)
        return found

    # mbarriers
    def begins_barrier(self, m: Any, bar: Any) -> None:
        self._order(m).begins(bar, str(bar), self._step(m, "initialises it"))

    def promises(self, m: Any, bar: Any) -> None:
        how = f"issues {m.row.name}" if m.row is not None else "issues a copy"
        self._promised[m, bar].append(self._order(m).promised(self._step(m, how)))

    def announces(self, m: Any, bar: Any) -> None:
        self._order(m).announces(bar, self._step(m, "announces bytes"))

    def arrives(self, m: Any, bar: Any) -> None:
        if m.deferred:
            self._order(m).signals(bar, self._promise(m, bar), True)
        else:
            self._order(m).arrives(bar, self._step(m, "arrives"))

    def delivers(self, m: Any, bar: Any) -> None:
        if m.deferred:
            self._order(m).signals(bar, self._promise(m, bar), False)
        else:
            self._order(m).delivers(bar, self._step(m, "counts bytes as delivered"))

    @staticmethod
    def _step(m: Any, how: str) -> Step:
        """A step of the thread that stands for all of an instruction's, which have met."""
        return Step(m.threads[0], m.place, how)

    def _promise(self, m: Any, bar: Any) -> Any:
        held = self._promised[m, bar]
        found = held.pop(0)
        if not held:
            del self._promised[m, bar]
        return found

    def completes_phase(self, bar: Any, by: str) -> None:
        self._of(bar.cta.cluster).completes(bar)

    def denies(self, m: Any, bar: Any) -> bool:
        """An answer that might be no, as the thread does not know it to be yes, is no: the run then shows where the
        thread waits."""
        t = m.threads[0]
        if not _asks(m) or self._order(m).knows_last(bar, t):
            return False
        if self._denied[t].get(bar, (-1, None))[0] == bar.phase - 1:
            return False  # it asks again
        self._denied[t][bar] = bar.phase - 1, m.place
        return True

    def sees_phase(self, m: Any, bar: Any) -> None:
        for t in m.threads:
            self._order(m).waits(bar, Step(t, m.place, "waits"))
            self._denied[t].pop(bar, None)

    # other barriers
    def arrives_named(self, m: Any, barriers: Any, rally: Any, waits: bool) -> None:
        if rally.expected is None:
            name = "syncthreads (named barrier 0)"
        else:
            name = f"named barrier {rally.id}"
        for t in m.threads:
            self._order(m).arrives_named((m.cta, rally.id), rally, name, Step(t, m.place, "arrives"))

    def leaves_named(self, m: Any, barriers: Any, rally: Any) -> None:
        for t in m.threads:
            self._order(m).leaves_named((m.cta, rally.id), rally, t)

    def arrives_cluster(self, m: Any, phase: int) -> None:
        for t in m.threads:
            self._order(m).arrives_named("cluster", phase, "barrier.cluster", Step(t, m.place, "arrives"))

    def leaves_cluster(self, m: Any, phase: int) -> None:
        for t in m.threads:
            self._order(m).leaves_named("cluster", phase, t)

    def meets(self, threads: Any) -> None:
        self._of(threads[0].cta.cluster).meet(threads)

    # what the run decided
    def accesses(
        self, m: Any, memory: Any, region: Any, write: bool, atomic: str | None = None, asynchronous: bool = False,
        remember: bool = True,
    ) -> None:  # fmt: skip
        if atomic is None or asynchronous or not _gives(m):
            return
        self._assume(f"{ATOMICS} give" if write else f"{ATOMICS} read", m.place)

    def polls(self, m: Any) -> None:
        self._assume("what a loop reads from memory until others have written it", m.place)

    def reads_register(self, m: Any, name: str) -> None:
        if name in TIMED:
            self._assume(TIMED[name], m.place)

    def asks_for_cluster(self, m: Any) -> None:
        self._assume("the answers of cluster launch control", m.place)

    def shares_registers(self, m: Any) -> None:
        """Warps that change their registers once each wait for no more than others give: twice, it may hang on who
        comes first."""
        self._takes(m.threads[0].warp, "that registers are there when a warp asks again", m.place)

    def allocates(self, m: Any, cta: Any, patch: Any, peer: Any) -> None:
        self._takes(cta, "that columns of tensor memory are there when a block asks again", m.place)

    def _takes(self, owner: Any, what: str, place: Place) -> None:
        """Assume `what` where a warp or a CTA takes registers or columns a second time."""
        if owner in self._taken:
            self._assume(what, place)
        self._taken.add(owner)

    def _assume(self, what: str, place: Place) -> None:
        self.assumed[what][place] = None

    def ends(self, cluster: Any) -> None:
        order = self._orders.pop(cluster, None)
        if order is None:
            return
        self.events += order.events
        self._taken.clear()
        for t in cluster.threads:
            for _, place in self._denied.pop(t, {}).values():
                self._assume("that an answer of try_wait decides only whether its thread waits", place)
        for c in order.conflicts:
            key = c.rule, _line(c.first), _line(c.second)
            self.conflicts.setdefault(key, c._replace(first=_named(c.first), second=_named(c.second)))


def _named(step: Step) -> Step:
    """The step with its thread in words: the cluster is not kept."""
    return step._replace(thread=who([step.thread]))


def _line(step: Step) -> Any:
    return step.place.file, step.place.line, step.how


def _asks(m: Any) -> bool:
    """Tell whether an instruction gives the answer to the kernel, and does not wait by itself."""
    return m.row is not None and bool(m.row.operands_in(m.case or {})[-1].writes)


def _gives(m: Any) -> bool:
    """Tell whether an atomic gives the kernel what was there."""
    return m.row is None or any(o.writes for o in m.row.operands_in(m.case or {}))
