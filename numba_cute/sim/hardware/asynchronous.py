# SPDX-License-Identifier: Apache-2.0
"""The machine's asynchronous work: what it issues, commits and waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...isa.form.instr import CP_ASYNC_GROUP, MBARRIER, WGMMA_GROUP
from ..ground.access import Region, Rows, rows_of
from ..ground.clocks import FULL, GMEM, READS, SMEM, know
from .inflight import Groups, Op

PEER = 24
"""shared::cluster addresses of a peer hold its rank + 1 from this bit on; a shared::cta address is one's own."""


class Asynchronous:
    """The part of `Machine` that begins operations which end later, or waits for them."""

    __slots__ = ()

    run: Any
    row: Any
    threads: list[Any]
    unit: Any
    lanes: int
    cta: Any
    issued: Any
    eager: bool
    op: Any
    own_clocks: Any
    fix_place: Any
    owner: Any
    peer: Any

    def groups(self, kind: str) -> Groups:
        """The commit groups of this kind that this issue belongs to."""
        holder = self.unit if kind == WGMMA_GROUP else self.threads[0]
        found = holder.groups.get(kind)
        if found is None:
            found = holder.groups[kind] = self.cta.cluster.inflight.new_groups(kind, self.cta.cluster)
        return found  # type: ignore[no-any-return]

    def later(
        self, effect: Callable[[], None], *, bars: list[tuple[Any, int]] | None = None,
        reads: list[tuple[Any, int]] | None = None, writes: list[tuple[Any, int]] | None = None,
    ) -> None:  # fmt: skip
        bars = bars or []
        for handle, _ in bars:
            handle.live("names it", asynchronous=True)
            self.promise(handle.bar)
        kind = self.row.done_by if self.row else None
        held = [(*self._held(a, n), True) for a, n in reads or ()]
        held += [(*self._held(a, n), False) for a, n in writes or ()]
        self.fix_place()
        groups = self.groups(kind) if kind not in (None, MBARRIER) else None
        op = self.op = Op(self, effect, bars, held, groups)
        if self.run.clocks:
            op.name_accesses()
            for tell in self.run.watch.issues:
                tell(self, op)
            if self.lanes == 1:
                self.issued = [self.threads[0].clock.frozen()]
        inflight = self.cta.cluster.inflight
        if groups is not None:
            if self.eager:
                groups.complete_all()
            groups.open.append(op)
        elif kind == MBARRIER:
            inflight.copies.append(op)
        if kind is None or self.eager or (self.run.mode == "eager" and kind != CP_ASYNC_GROUP):
            if kind == MBARRIER:
                inflight.copies.remove(op)
            op.complete()

    def promise(self, bar: Any) -> None:
        """Note that what these threads issue will signal an mbarrier."""
        bar.will_send(self.threads)
        for tell in self.run.watch.promises:
            tell(self, bar)

    def _held(self, address: Any, nbytes: int) -> tuple[Any, Region]:
        if isinstance(address, np.ndarray):
            rank = int(address[0]) >> PEER
            if not rank:
                return self.cta, rows_of(address, nbytes)
            return self.peer(rank - 1), Rows(address & ((1 << PEER) - 1), nbytes)
        rank, at = self.owner(address)
        cta = self.peer(rank)
        cta.smem.check(at, nbytes, self)
        return cta, Region(at, at + nbytes)

    def commit(self, group: str) -> None:
        self.groups(group).commit()

    def arrive_when_done(self, group: str, barrier: Any, counted: bool) -> None:
        groups, bar = self.groups(group), barrier.live("arrives")
        ops, epoch = list(groups), groups.mark()
        self.fix_place()
        self.promise(bar)
        if not counted:
            barrier.expect_arrival()

        def effect() -> None:
            for op in ops:
                op.complete()
            if bar.near is not None:
                for agent in groups.agents:
                    bar.near.know(agent, epoch, (READS, FULL))
            barrier.arrive(publish=False)

        inflight = self.cta.cluster.inflight
        inflight.copies.append(Op(self, effect, [], [], None))
        if self.run.mode == "eager":
            inflight.copies.pop().complete()

    def wait(self, group: str, pending: int, *, read: bool = False) -> None:
        groups = self.groups(group)
        groups.wait(pending, read)
        if self.run.clocks:
            epoch = groups.done(pending)
            agents = groups.agents[:1] if read else groups.agents
            # cp.async writes through the generic proxy: a fence must follow before the async proxy sees it
            rows = (READS, FULL) if group == CP_ASYNC_GROUP else (READS, FULL, SMEM, GMEM)
            for agent in agents if epoch > 0 else ():
                know(self.own_clocks(), agent, epoch, rows)
        for tell in self.run.watch.waited:
            tell(self, group, groups, pending)

    def accumulate(self, registers: Any) -> Any:
        self.hold(registers, False)
        return registers

    def hold(self, registers: Any, keeps: bool) -> None:
        """Registers that a wgmma uses until its group is done; with `keeps` it only reads them."""
        if not self.eager and self.unit is not None:
            for tell in self.run.watch.holds:
                tell(self, registers, keeps)
