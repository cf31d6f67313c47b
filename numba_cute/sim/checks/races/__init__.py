# SPDX-License-Identifier: Apache-2.0
"""The check `races`: accesses to the same memory that nothing orders, or that lack a fence between them."""

from __future__ import annotations

from typing import Any

from ....isa.facts.tensormap_bits import BYTES
from ...ground.access import Region
from ...ground.clocks import INIT, READS
from ...ground.report import RaceError, SimError
from ...python.arithmetic.undefined import OutsideMask, Undefined, number_kind
from .barriers import BarrierUse
from .explain import not_started
from .retired import Bases, Retiring
from .shadow import History
from .tensor_memory import TensorRaces, in_pipe
from .warps import Warps


class Races(BarrierUse):
    """Follows every access to memory, and what each thread knows of the others' (see `ground.clocks`)."""

    name = "races"
    summary = (
        "accesses to memory, tensor memory, barriers or tensor maps that nothing orders, or that lack a fence; values "
        "shuffled from a lane outside of the mask"
    )
    clocks = True

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.history = History(run)
        self._warps = Warps(self.history)
        self._tensor_memories: dict[Any, TensorRaces] = {}
        self._forgotten: Bases = (1, 1, 1)
        self._kinds: dict[Any, int] = {}

    # memory
    def accesses(
        self, m: Any, memory: Any, region: Region, write: bool, atomic: str | None = None, asynchronous: bool = False,
        remember: bool = True,
    ) -> None:  # fmt: skip
        if m.units is not None:
            self._warps.check_units(m, memory, region, write)
            return
        if m.unit is None and m.lanes > 1 and not m.deferred:
            self._warps.check(m, memory, region, write)
            return
        by = m.op.access if asynchronous and m.op is not None else None
        if by is not None:
            by.atomic = atomic
        self.history.check(m, memory, region, write, by=by, atomic=atomic, remember=remember)

    def exits(self, cta: Any) -> None:
        self.history.settle()

    def forgets(self, clusters: set[Any]) -> None:
        super().forgets(clusters)
        self._tensor_memories.clear()
        self.history.settle()
        shadows = [a.shadow for a in self.run.memory.buffers if a.shadow is not None]
        before = self._forgotten
        self._forgotten = Retiring(self.history, before, self._kinds).forget(shadows)
        self._warps.forget(*before[:2])
        clusters -= {a.cluster for a in self.history.accesses[1:]}

    def reads_constant(self, m: Any, memory: Any, region: Region) -> None:
        self.history.never_written(m, memory, region)

    def reaches(self, m: Any, cta: Any) -> None:
        first = cta.threads[0].clock.agent
        if not all(t.base.at(INIT, first) or t.base.at(READS, first) for t in m.clocks()):
            raise not_started(m, cta)

    def issues(self, m: Any, op: Any) -> None:
        for access in op.told:
            self.history.add(access)
        if m.map_at is not None and op.access is not None:
            a = m.run.memory.at(m.map_at, BYTES, m)
            self.history.reads(m, a, a.region(m.map_at, BYTES), op.access)
        for cta, region, reads, access in op.uses:
            self.history.check(m, cta.smem, region, not reads, by=access)

    # tensor maps
    def uses_map(self, m: Any, address: int, acquired: bytes | None, now: bytes) -> None:
        if acquired != now:
            why = "was never acquired" if acquired is None else "has changed since it was acquired"
            raise RaceError(
                f"missing tensor-map acquire: {m.describe()} uses the tensor map at {address:#x} at {m.place}, which "
                f"{why} by this block; call cpasync.fence_tma_desc_acquire on it after the change is released, and "
                f"before the copy"
            )

    def acquires_map(self, m: Any, address: int, changed: str | None) -> None:
        if changed is not None:
            raise RaceError(
                f"missing tensor-map release: {m.describe()} acquires the tensor map at {address:#x} at {m.place}, but "
                f"its change by {changed} was not released; call cpasync.fence_tma_desc_release (or "
                f"cp_fence_tma_desc_release) after the change"
            )

    # tensor memory
    def _of(self, cta: Any) -> TensorRaces:
        found = self._tensor_memories.get(cta)
        if found is None:
            found = self._tensor_memories[cta] = TensorRaces(cta)
        return found

    def allocates(self, m: Any, cta: Any, patch: Any, peer: Any) -> None:
        first = None if peer is None else peer.threads[0].clock.agent
        if first is not None and not all(t.base.at(INIT, first) or t.base.at(READS, first) for t in m.clocks()):
            raise RaceError(
                f"race: tcgen05.alloc of {m.describe()} at {m.place} with cta_group 2 takes columns of CTA {peer.rank} "
                f"too, but nothing says that this CTA has started; let the whole cluster meet first (cluster_arrive "
                f"and cluster_wait)"
            )
        self._of(cta).allocated(m, patch, None if peer is None else self._of(peer))

    def frees(self, m: Any, cta: Any, patch: Any, peer: Any) -> None:
        self._of(cta).freed(m, patch, None if peer is None else self._of(peer))

    def accesses_tensor_memory(self, m: Any, cta: Any, patch: Any, write: bool) -> None:
        if write:
            self._of(cta).store(m, patch)
        else:
            self._of(cta).load(m, patch)

    def multiplies(self, m: Any, reads: list[Any], writes: list[Any], accumulates: bool, how: Any) -> None:
        pipe = in_pipe(m, how)
        for cta, patch in reads:
            self._of(cta).pipe(m, pipe, patch, reads=True, writes=False)
        for cta, patch in writes:
            self._of(cta).pipe(m, pipe, patch, reads=accumulates, writes=True)

    # threads
    def shuffles(self, m: Any, what: str, mask: int, source: int, value: Any) -> Any:
        text = (
            f"{what}: {m.describe()} takes the value of lane {source} at {m.place}, but that lane is not in the mask "
            f"{mask:#x}, so that the value is undefined, and it is used; name the lane in the mask of all, or do not "
            f"use the result"
        )
        return Undefined(OutsideMask(text), value.kind if type(value) is Undefined else number_kind(type(value)))

    def asks_for_cluster(self, m: Any) -> None:
        refused = m.cta.cluster.refused
        if any(t.base.at(READS, agent) >= epoch for t in m.clocks() for agent, epoch in refused):
            raise SimError(
                f"clusterlaunchcontrol.try_cancel: {m.describe()} asks again at {m.place}, after it has seen a "
                f"response that none was left; leave the loop at the first such response"
            )
