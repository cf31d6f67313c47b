# SPDX-License-Identifier: Apache-2.0
"""The machine that the bodies of the instruction table run on (isa.machine.Machine): one object for each issue."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...isa.form.instr import RELEASE, Instr, Order
from ...isa.form.limits import check_direction, check_setmaxnreg, takes_setmaxnreg
from ...isa.form.machine import Bytes
from ..ground.access import Brought, Region, Rows, rows_of
from ..ground.clocks import GMEM, INIT, SMEM, Gather, acquire, fence_each
from ..ground.ordering import Wait, fence as fence_threads, order
from ..ground.report import NOWHERE, DivergenceError, OutOfBoundsError, Place, SimError, count, place_of, who
from .asynchronous import PEER, Asynchronous
from .barrier import BarrierHandle
from .progress import goes_on, held_at
from .special import special_register
from .tmem import TensorMemoryHandle
from .together import clocks_of, of_threads, who_waits

POLLS, STRONG_POLLS, FAST_POLLS = 64, 8, 1
"""Reads of one place in a row from which on a thread counts as polling: plain ones, those with an order, and these
where no order of threads is to be told."""
IN_TURN = 4
"""The most places, read in turn with an order, each of which may be polled."""


class Machine(Asynchronous):
    """One issue of one row by `threads`."""

    __slots__ = ("run", "row", "case", "threads", "lanes", "cta", "cta_rank", "unit", "deferred", "eager", "issued",
                 "saved", "op", "map_at", "lay", "brought", "units", "_place")  # fmt: skip

    def __init__(
        self, run: Any, row: Instr | None, threads: list[Any], unit: Any = None, case: dict[str, Any] | None = None
    ) -> None:
        self.run, self.row, self.threads, self.unit = run, row, threads, unit
        self.case, self.lanes = case, len(threads)
        self.cta = threads[0].cta
        self.cta_rank = self.cta.rank
        self.deferred = False  # the effect of an operation in flight is being done
        self.brought: Brought | None = None  # what that has written, where it is to be told
        self.issued: Any = None  # what a deferred operation's issuers knew
        self.saved: Any = None  # shared memory as an operation has read it, whose effect is still to come
        self.op: Any = None  # the asynchronous operation that this issue began
        self.eager = False  # registers were gathered as copies, so that the effect must be done now
        self.map_at: int | None = None  # the tensor map in global memory that the operation to be issued reads
        self.lay: tuple[int | str, int] | None = None  # its map's or descriptor's swizzle, and an element's bits, or 0
        self.units: list[Any] | None = None  # several warps that do it at once
        self._place: Place | None = None

    @property
    def order(self) -> Order:
        """Return the row's effect on the order of memory."""
        return Order(None, None) if self.row is None else self.row.order(self.case or {})

    @property
    def elected(self) -> int:
        """Give the lane that elect.sync names: always one, and PTX does not say which, so each seed has its own."""
        return (self.run.seed or 0) % min(32, self.lanes)

    @property
    def place(self) -> Place:
        """The user's line that issues this, for reports; NOWHERE in runs whose errors are none."""
        if self._place is None:
            self._place = place_of(sys._getframe(1)) if self.run.reports else NOWHERE
        return self._place

    @property
    def line(self) -> Place:
        """The same, for what depends on it."""
        if self._place is None or self._place is NOWHERE:
            self._place = place_of(sys._getframe(1))
        return self._place

    @property
    def key(self) -> Any:
        """Give what tells accesses of the same threads at the same time apart."""
        return self.place if self.run.reports else self.row

    def fix_place(self) -> None:
        """Remember the user's line, while the issuing frame is there."""
        self._place = self.place

    def alone(self, at: int) -> Machine:
        """One of its threads, at the same line."""
        return self.some(at, at + 1)

    def some(self, start: int, stop: int) -> Machine:
        """Some of its threads, at the same line."""
        made = Machine(self.run, self.row, self.threads[start:stop], case=self.case)
        made._place = self.place
        return made

    def by_units(self, region: Rows) -> list[tuple[Machine, Rows]]:
        """Each of its units by itself, with its part of the rows that all access."""
        units = self.units or ()
        rows = len(region.rows) // len(units)
        made = []
        for i, unit in enumerate(units):
            m = Machine(self.run, self.row, unit.threads, unit, self.case)
            m.lay, m._place = self.lay, self.place
            made.append((m, region.part(i * rows, (i + 1) * rows)))
        return made

    def describe(self) -> str:
        return who(self.threads)

    def clocks(self) -> Any:
        """Give what the issuing threads know (or knew when they issued what is deferred)."""
        return self.issued or self.own_clocks()

    def own_clocks(self) -> Any:
        """The clocks of its threads."""
        if self.lanes == 1:
            return [self.threads[0].clock]
        return of_threads(self.threads, clocks_of)

    def acquire(self, clock: Any) -> None:
        """The threads come to know all that `clock` knows."""
        acquire(self.own_clocks(), clock)

    def uniform(self, operand: Any) -> Any:
        if not isinstance(operand, np.ndarray):
            return operand
        first = operand[0]
        if not (operand == first).all():
            at = int(np.flatnonzero(operand != first)[0])
            name = self.row.name if self.row else "instruction"
            raise DivergenceError(
                f"{name}: its threads must agree on an operand, but {who(self.threads[:1])} gives {first} and "
                f"{who(self.threads[at : at + 1])} gives {operand[at]}, at {self.place}"
            )
        return first.item()

    # threads
    def sreg(self, name: str) -> Any:
        for tell in self.run.watch.reads_register:
            tell(self, name.removeprefix("%"))
        values = [special_register(self.run, t, name.removeprefix("%")) for t in self.threads]
        return values[0] if self.lanes == 1 and self.unit is None else np.array(values)

    def block(self, ready: Callable[[], bool], why: str, on: Any = None) -> None:
        bar = getattr(on, "bar", None)
        while not ready():
            thread = who_waits(self.run)
            (thread.cta.cluster.polled if bar is None else bar.waiters).append(thread)
            thread.suspend(why, on, self, ready if bar is None else None)

    def pause(self, why: str, on: Any = None, held: bytes = b"") -> None:
        thread = self.run.thread
        if thread.convoy is not None and thread.convoy.pauses(why):
            return
        thread = who_waits(self.run)
        if on is not None:
            for tell in self.run.watch.gives_up:
                tell(self, on.bar)
        if goes_on(thread, sys._getframe(1), held):
            self.run.steps += 1
        thread.cta.cluster.paused(thread)
        thread.suspend(f"{why}, again and again", on, self)

    def polls(self, address: Any, often: int = POLLS, places: int = 1) -> None:
        """A read: of the same place, or few `places` in turn, so `often` in a row it is a loop that waits for others,
        who get their turn."""
        polls = self.run.thread.polls
        before = polls.pop(address, -1)
        if len(polls) >= places:
            polls.clear()
        polls[address] = before + 1
        if before + 1 >= often:
            for tell in self.run.watch.polls:
                tell(self)
            if len(self.run.gpus) > 1 and isinstance(address, int):
                self.run.thread.polled = self.run.memory.find(address) or self.cta.smem, address
            why = f"a loop that reads {address:#x}" if isinstance(address, int) else "a loop that reads"
            self.pause(why, held=held_at(self, address))

    def barrier(self, id: int, threads: int | None, wait: bool) -> None:
        f = self.run.thread.convoy
        if f is not None and self.cta.named.overfull(id, threads, self.lanes):
            f.agree([t.warp.threads[0].index for t in f.threads])  # its warps come one by one
            self.threads, self.lanes = f.threads, len(f.threads)
        self.cta.named.arrive(self, id, threads, wait)

    def need_cluster(self, what: str) -> None:
        if not self.run.clustered:
            raise SimError(
                f"{what} in a launch that names no cluster: the GPU ends the kernel with an illegal instruction (seen "
                f"on an H200); launch with cluster=, or give the kernel @cute.cluster_shape; {self.place}"
            )

    def cluster_arrive(self) -> None:
        self.cta.cluster.barrier.arrive(self, self.order.sem == RELEASE)

    def cluster_wait(self) -> None:
        self.cta.cluster.barrier.wait(self)

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        for tell in self.run.watch.asks_for_cluster:
            tell(self)
        found = self.cta.cluster.gpu.cancel_cluster(self.cta.cluster.shape)
        if found is None and self.op is not None:
            self.cta.cluster.refused.extend(
                (h.bar.agent, phase + 1) for (h, _), phase in zip(self.op.bars, self.op.phases)
            )
        return found  # type: ignore[no-any-return]

    @property
    def tmem(self) -> TensorMemoryHandle:
        return TensorMemoryHandle(self)

    def set_registers(self, count: int, *, grows: bool) -> None:
        if count % 8 or not 24 <= count <= 256:
            raise SimError(f"setmaxnreg {count}: it must be a multiple of 8 in 24 to 256; at {self.place}")
        if not takes_setmaxnreg(self.run.bounds):
            return
        for tell in self.run.watch.shares_registers:
            tell(self)
        cta, warps = self.cta, list(dict.fromkeys(t.warp for t in self.threads))
        if grows:
            check_setmaxnreg(self.run.target, count, len(cta.threads), self.run.bounds)
        check_direction(cta.default_registers, warps[0].registers, count, grows=grows)
        if grows:
            for w in warps:
                w.wanted = count
            others = [g for g in cta.warpgroups if g is not self.threads[0].warpgroup]
            held = ", ".join(f"{cta.registers_of(g)} each in {who(g.threads)}" for g in others)
            why = f"setmaxnreg.inc to {count} registers (of the block's {cta.register_pool}; {held})"
            own = len(self.threads) * count
            self.block(lambda: cta.registers_without(warps) + own <= cta.register_pool, why)
        for w in warps:
            w.registers, w.wanted = count, None

    def depend(self, *, launches: bool) -> None:
        for tell in self.run.watch.launches_dependents if launches else self.run.watch.waits_for_grids:
            tell(self)

    # memory
    def peer(self, rank: int | None) -> Any:
        """A CTA of the cluster, or one's own."""
        if rank is None or rank == self.cta_rank:
            return self.cta
        ctas = self.cta.cluster.ctas
        if not 0 <= rank < len(ctas):
            raise OutOfBoundsError(
                f"CTA {rank} is outside the cluster, which has {len(ctas)} CTAs: {self.describe()} at {self.place}"
            )
        return ctas[rank]

    def mbar(self, address: int, cta: int | None = None) -> BarrierHandle:
        owner = self.peer(cta)
        if address not in owner.mbarriers:
            owner.smem.check(address, 8, self)
        return BarrierHandle(owner.mbarrier(address), self)

    def mapa(self, address: int, cta: int) -> int:
        rank: int = self.peer(cta).rank
        return (address & ((1 << PEER) - 1)) | (rank + 1) << PEER

    def owner(self, cluster_address: int) -> tuple[int, int]:
        rank = cluster_address >> PEER
        return (rank - 1 if rank else self.cta_rank), cluster_address & ((1 << PEER) - 1)

    def _check(self, owner: Any, region: Region, write: bool, atomic: str | None = None) -> None:
        """Check an access to a CTA's shared memory now; a deferred one was checked when it was issued."""
        if self.deferred:
            return
        if owner is not self.cta:
            for tell in self.run.watch.reaches:
                tell(self, owner)
        self.told(owner.smem, region, write, atomic)

    def told(self, memory: Any, region: Region, write: bool, atomic: str | None = None) -> None:
        """Tell of an access of the threads to a memory."""
        for tell in self.run.watch.accesses:
            tell(self, memory, region, write, atomic)

    def shared(self, rank: int, address: int, nbytes: int, write: bool) -> Bytes:
        """Shared memory of a CTA of the cluster, checked for this access."""
        owner = self.peer(rank)
        owner.smem.check(address, nbytes, self)
        region = Region(address, address + nbytes)
        self._check(owner, region, write)
        self.lies(owner, region, write)
        if self.run.trace is not None and not self.deferred:
            self.run.trace.accessed(self, "shared", address, nbytes, write)
        return owner.smem.data[address : address + nbytes]  # type: ignore[no-any-return]

    def lies(self, owner: Any, region: Region, write: bool) -> None:
        """Tell that a region of a CTA's shared memory is read or written now."""
        for tell in self.run.watch.lies:
            tell(self, owner.smem, region, write)

    def read(
        self, address: int, nbytes: int, *, cta: int | None = None, proxy: str | None = None,
        lay: tuple[int, int] | None = None,
    ) -> Bytes:  # fmt: skip
        if lay is not None:
            self.lay = lay
        if self.saved is not None and (address, nbytes) in self.saved:
            return self.saved[address, nbytes]  # type: ignore[no-any-return]
        return self.shared(self.cta_rank if cta is None else cta, address, nbytes, False)

    def write(self, address: int, data: Bytes, *, cta: int | None = None, proxy: str | None = None) -> None:
        self.shared(self.cta_rank if cta is None else cta, address, len(data), True)[...] = data
        if self.brought is not None:
            self.brought.append((address, data.tobytes()))

    def read_rows(
        self, addresses: NDArray[np.int64], nbytes: int, *, lay: tuple[int, int] | None = None
    ) -> Bytes:  # fmt: skip
        if lay is not None:
            self.lay = lay
        smem, rows = self.cta.smem, rows_of(addresses, nbytes)
        smem.check_rows(addresses, rows, self)
        self._check(self.cta, rows, False)
        self.lies(self.cta, rows, False)
        return smem.data.reshape(-1, nbytes).take(rows.rows, 0)  # type: ignore[no-any-return]

    def write_rows(self, addresses: NDArray[np.int64], data: Bytes) -> None:
        nbytes = data.shape[1]
        smem, rows = self.cta.smem, rows_of(addresses, nbytes)
        smem.check_rows(addresses, rows, self)
        self._check(self.cta, rows, True)
        self.lies(self.cta, rows, True)
        rows.set(smem.data, data)

    def _global(self, address: int, nbytes: int, write: bool) -> Bytes:
        a = self.run.memory.at(address, nbytes, self, write)
        for tell in self.run.watch.accesses:
            tell(self, a, a.region(address, nbytes), write, asynchronous=True)
        return a.data[address - a.address : address - a.address + nbytes]  # type: ignore[no-any-return]

    def read_constant(self, address: int, nbytes: int) -> Bytes:
        for tell in self.run.watch.reads_constant:
            a = self.run.memory.at(address, nbytes, self)
            tell(self, a, a.region(address, nbytes))
        return self._global(address, nbytes, False)

    def read_global(self, address: int, nbytes: int) -> Bytes:
        return self._global(address, nbytes, False)

    def write_global(self, address: int, data: Bytes) -> None:
        self._global(address, len(data), True)[...] = data

    def replace(self, address: int, nbytes: int, change: Callable[[Bytes], Bytes], *, shared: bool) -> None:
        part = self.shared(self.cta_rank, address, nbytes, True) if shared else self._global(address, nbytes, True)
        part[...] = change(part.copy())

    def update_global(self, address: int, nbytes: int, change: Callable[[Bytes], Bytes]) -> Bytes:
        a = self.run.memory.at(address, nbytes, self, True)
        for tell in self.run.watch.accesses:
            tell(self, a, a.region(address, nbytes), True, "gpu", asynchronous=True)
        part = a.data[address - a.address : address - a.address + nbytes]
        old = part.copy()
        part[...] = change(old)
        return old  # type: ignore[no-any-return]

    def atomic(
        self, address: int, nbytes: int, change: Callable[[Bytes], Bytes] | None, *, shared: bool,
        cta: int | None = None, reads: bool = True, ends: Callable[[Bytes], bool] | None = None,
    ) -> Bytes:  # fmt: skip
        if change is None:
            often = STRONG_POLLS if self.run.reports else FAST_POLLS
            self.polls(address, often, IN_TURN)  # which may let others change what is then read
        if shared:
            owner = self.peer(cta)
            owner.smem.check(address, nbytes, self)
            return self._atomic(owner, owner.smem, address, nbytes, change, reads)
        held = self.run.memory.at(address, nbytes, self, change is not None)
        return self._atomic(None, held, address, nbytes, change, reads, ends)

    def _atomic(
        self, owner: Any, memory: Any, address: int, nbytes: int, change: Callable[[Bytes], Bytes] | None, reads: bool,
        ends: Callable[[Bytes], bool] | None = None,
    ) -> Bytes:  # fmt: skip
        """Read a place, and change it, in one step. owner: the CTA whose shared memory it is in, or None."""
        sem, scope = self.order
        assert sem is not None and scope is not None
        start = 0 if owner is not None else memory.address
        region = Region(address - start, address - start + nbytes)
        if owner is not None:
            self._check(owner, region, change is not None, atomic=scope)
            if change is not None:
                self.lies(owner, region, True)
        else:
            self.told(memory, region, change is not None, scope)
        part = memory.data[address - start : address - start + nbytes]
        old: Bytes = part.copy()
        wait = None if ends is None or not ends(old) else Wait(old, ends)
        left = order(self, (owner, address), sem, scope, reads=reads, writes=change is not None, wait=wait)
        if change is None:
            return old
        if len(self.run.gpus) > 1:
            self.run.set_by[address] = self.cta.cluster.rank
        part[...] = change(old)
        if left is not None:
            left.changed(old.tobytes(), part.tobytes())
        if (part == old).all():  # nothing changed, so this may be a loop that polls
            self.threads[0].polled = memory, address
            self.pause("an atomic that changes nothing")
        else:
            self.run.events += 1
            self.cta.cluster.steps_aside(self.run.thread)
        return old

    def awaits(self, rank: int | None) -> None:
        if len(self.run.gpus) == 1:
            return
        if rank is not None and not 0 <= rank < len(self.run.gpus):
            raise OutOfBoundsError(
                f"{self.describe()} waits for rank {rank} at {self.place}, but the launch has "
                f"{count(len(self.run.gpus), 'rank')}, from 0 on"
            )
        for t in self.threads:
            t.awaits = rank

    def atomic_everywhere(
        self, address: int, nbytes: int, change: Callable[[Bytes], Bytes] | None, *, reads: bool = True
    ) -> list[Bytes]:
        places = self.run.memory.everywhere(address, nbytes, self)
        if change is None:
            self.polls(address, STRONG_POLLS if self.run.reports else FAST_POLLS, IN_TURN)
        found = [self.run.memory.at(at, nbytes, self, change is not None) for at in places]
        return [self._atomic(None, a, at, nbytes, change, reads) for at, a in zip(places, found)]

    def tensor_map(self, address: int) -> Any:
        for _ in self.run.watch.copies_box:
            self._place = self.line  # a box is copied later
        found = self.run.maps.bind(address, self)
        self.lay = found.map.stated.swizzle, found.map.stated.shared_bits
        return found

    def map_proxy(self, event: str, address: int | None) -> None:
        self.run.maps.event(event, address, self)

    def fence(self) -> None:
        self.run.events += 1
        if self.run.clocks:
            for t in self.threads:
                fence_threads(t, self.order.scope or "cta")

    def fence_proxy(self, *, shared: bool, global_: bool) -> None:
        self._fence_clocks(*((SMEM,) if shared else ()), *((GMEM,) if global_ else ()))

    def fence_barriers(self) -> None:
        self._fence_clocks(INIT)

    def _fence_clocks(self, *rows: int) -> None:
        if self.run.clocks:
            for row in rows:
                fence_each(self.own_clocks(), row)

    def fence_registers(self) -> None:
        for tell in self.run.watch.fences_wgmma:
            tell(self)

    def meet(self) -> None:
        self.run.events += 1
        if self.run.clocks:
            gather = Gather(self.threads[0].clock.base)
            gather.add(self.own_clocks())
            self.acquire(gather.freeze())
