# SPDX-License-Identifier: Apache-2.0
"""The machine that the bodies of the instruction table run on (isa.machine.Machine): one object for each issue."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..isa.instr import CP_ASYNC_GROUP, MBARRIER, WGMMA_GROUP, Instr
from ..isa.machine import Bytes
from .barrier import BarrierHandle
from .clocks import GMEM, INIT, READS, SMEM, Gather
from .explain import not_started
from .hazards import Access, Region, Rows
from .inflight import Groups, Op
from .memory import REGISTERS
from .report import DivergenceError, OutOfBoundsError, Place, RaceError, SimError, place_of, who
from .tmem import TensorMemoryHandle

_PEER = 24
"""shared::cluster addresses of a peer hold its rank + 1 from this bit on; a shared::cta address is one's own."""


POLLS = 64
"""Reads of one place in a row from which on a thread counts as polling."""


class Machine:
    """One issue of one row by `threads`."""

    __slots__ = ("run", "row", "threads", "lanes", "cta", "cta_rank", "unit", "deferred", "eager", "issued", "saved",
                 "op", "_place")  # fmt: skip

    def __init__(self, run: Any, row: Instr | None, threads: list[Any], unit: Any = None) -> None:
        self.run, self.row, self.threads, self.unit = run, row, threads, unit
        self.lanes = len(threads)
        self.cta = threads[0].cta
        self.cta_rank = self.cta.rank
        self.deferred = False  # the effect of an operation in flight is being done
        self.issued: Any = None  # what a deferred operation's issuers knew
        self.saved: Any = None  # shared memory as an operation has read it, whose effect is still to come
        self.op: Any = None  # the asynchronous operation that this issue began
        self.eager = False  # registers were gathered as copies, so that the effect must be done now
        self._place: Place | None = None

    @property
    def place(self) -> Place:
        """The user's line that issues this."""
        if self._place is None:
            self._place = place_of(sys._getframe(1))
        return self._place

    def describe(self) -> str:
        return who(self.threads)

    def clocks(self) -> Any:
        """What the issuing threads know (or knew when they issued what is deferred)."""
        return self.issued or [t.clock for t in self.threads]

    def acquire(self, clock: Any) -> None:
        """The threads come to know all that `clock` knows."""
        for t in self.threads:
            t.clock.base = t.clock.base.join(clock)

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
        values = [special_register(self.run, t, name.removeprefix("%")) for t in self.threads]
        return values[0] if self.lanes == 1 and self.unit is None else np.array(values)

    def block(self, ready: Callable[[], bool], why: str, on: Any = None) -> None:
        thread = self.run.thread
        bar = getattr(on, "bar", None)
        while not ready():
            if bar is not None:
                bar.waiters.append(thread)
                thread.suspend(why, on, self)
            else:
                thread.cta.cluster.polled.append(thread)
                thread.suspend(why, on, self, ready)

    def pause(self, why: str, on: Any = None) -> None:
        thread = self.run.thread
        thread.cta.cluster.pollers.append(thread)
        thread.suspend(f"{why}, again and again", on, self)

    def polls(self, address: int) -> None:
        """A plain read: of the same place again and again it is a loop that waits for others, who get their turn."""
        polls = self.run.thread.polls
        polls[1] = polls[1] + 1 if polls[0] == address else 0
        polls[0] = address
        if polls[1] >= POLLS:
            self.pause(f"a loop that reads {address:#x}")

    def barrier(self, id: int, threads: int | None, wait: bool) -> None:
        self.cta.named.arrive(self, id, threads, wait)

    def cluster_arrive(self, release: bool = True) -> None:
        self.cta.cluster.barrier.arrive(self, release)

    def cluster_wait(self) -> None:
        self.cta.cluster.barrier.wait(self)

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        return self.run.cancel_cluster()  # type: ignore[no-any-return]

    @property
    def tmem(self) -> TensorMemoryHandle:
        return TensorMemoryHandle(self)

    def set_registers(self, count: int) -> None:
        if count % 8 or not 24 <= count <= 256:
            raise SimError(f"setmaxnreg {count}: it must be a multiple of 8 in 24 to 256; at {self.place}")
        unit, cta = self.unit, self.cta
        grows = self.row is not None and "_inc" in self.row.name
        if unit.registers is not None and (count < unit.registers) == grows and count != unit.registers:
            raise SimError(
                f"setmaxnreg: {self.describe()} {'raises' if grows else 'lowers'} its registers from {unit.registers} "
                f"to {count} at {self.place}; use the other of setmaxnreg.inc and .dec"
            )
        if grows:
            others = [g for g in cta.warpgroups if g is not unit]
            held = ", ".join(f"{g.registers or cta.default_registers} each in {who(g.threads)}" for g in others)
            why = f"setmaxnreg.inc to {count} registers (of the block's {REGISTERS}; {held})"
            self.block(lambda: cta.registers_without(unit) + 128 * count <= REGISTERS, why)
        unit.registers = count

    # memory
    def _peer(self, rank: int | None) -> Any:
        if rank is None or rank == self.cta_rank:
            return self.cta
        ctas = self.cta.cluster.ctas
        if not 0 <= rank < len(ctas):
            raise OutOfBoundsError(
                f"CTA {rank} is outside the cluster, which has {len(ctas)} CTAs: {self.describe()} at {self.place}"
            )
        return ctas[rank]

    def mbar(self, address: int, cta: int | None = None) -> BarrierHandle:
        owner = self._peer(cta)
        if address not in owner.mbarriers:
            owner.smem.check(address, 8, self)
        return BarrierHandle(owner.mbarrier(address), self)

    def mapa(self, address: int, cta: int) -> int:
        rank: int = self._peer(cta).rank
        return (address & ((1 << _PEER) - 1)) | (rank + 1) << _PEER

    def owner(self, cluster_address: int) -> tuple[int, int]:
        rank = cluster_address >> _PEER
        return (rank - 1 if rank else self.cta_rank), cluster_address & ((1 << _PEER) - 1)

    def _check(self, owner: Any, region: Region, write: bool) -> None:
        """Check an access to a CTA's shared memory now; a deferred one was checked when it was issued."""
        if owner.smem.shadow is not None and not self.deferred:
            if owner is not self.cta:
                first = owner.threads[0].clock.agent
                if not all(t.base.at(INIT, first) or t.base.at(READS, first) for t in self.clocks()):
                    raise not_started(self, owner)
                owner.touched(self)
            self.run.races.check(self, owner.smem.shadow, region, write)

    def shared(self, rank: int, address: int, nbytes: int, write: bool) -> Bytes:
        """Shared memory of a CTA of the cluster, checked for this access."""
        owner = self._peer(rank)
        owner.smem.check(address, nbytes, self)
        self._check(owner, Region(address, address + nbytes), write)
        if self.run.trace is not None and not self.deferred:
            self.run.trace.accessed(self, "shared", address, nbytes, write)
        return owner.smem.data[address : address + nbytes]  # type: ignore[no-any-return]

    def read(self, address: int, nbytes: int, *, cta: int | None = None, proxy: str | None = None) -> Bytes:
        if self.saved is not None and (address, nbytes) in self.saved:
            return self.saved[address, nbytes]  # type: ignore[no-any-return]
        return self.shared(self.cta_rank if cta is None else cta, address, nbytes, False)

    def write(self, address: int, data: Bytes, *, cta: int | None = None, proxy: str | None = None) -> None:
        self.shared(self.cta_rank if cta is None else cta, address, len(data), True)[...] = data

    def read_rows(self, addresses: NDArray[np.int64], nbytes: int) -> Bytes:
        smem = self.cta.smem
        smem.check_rows(addresses, nbytes, self)
        self._check(self.cta, Rows(addresses, nbytes), False)
        return smem.data.reshape(-1, nbytes)[addresses // nbytes]  # type: ignore[no-any-return]

    def write_rows(self, addresses: NDArray[np.int64], data: Bytes) -> None:
        nbytes = data.shape[1]
        smem = self.cta.smem
        smem.check_rows(addresses, nbytes, self)
        self._check(self.cta, Rows(addresses, nbytes), True)
        smem.data.reshape(-1, nbytes)[addresses // nbytes] = data

    def _global(self, address: int, nbytes: int, write: bool) -> Bytes:
        a = self.run.memory.at(address, nbytes, self)
        if self.run.races is not None:
            a.check(self, address, nbytes, write, by=self.op.global_access if self.op else None)
        return a.data[address - a.address : address - a.address + nbytes]  # type: ignore[no-any-return]

    def read_global(self, address: int, nbytes: int) -> Bytes:
        return self._global(address, nbytes, False)

    def write_global(self, address: int, data: Bytes) -> None:
        self._global(address, len(data), True)[...] = data

    def update_global(self, address: int, nbytes: int, change: Callable[[Bytes], Bytes]) -> Bytes:
        a = self.run.memory.at(address, nbytes, self)
        if self.run.races is not None:
            a.check(self, address, nbytes, True, atomic=True)
        part = a.data[address - a.address : address - a.address + nbytes]
        old = part.copy()
        part[...] = change(old)
        return old  # type: ignore[no-any-return]

    def tensor_map(self, address: int) -> Any:
        found = self.run.maps.get(address)
        if found is None:
            raise SimError(
                f"{address:#x} is no tensor map: {self.describe()} uses it as one at {self.place}; pass the TMA atom "
                f"to the kernel as an argument"
            )
        return found.on(self)

    # asynchronous work
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
            handle.bar.senders.update(self.threads)
        kind = self.row.done_by if self.row else None
        held = [(*self._held(a, n), True) for a, n in reads or ()]
        held += [(*self._held(a, n), False) for a, n in writes or ()]
        self._place = self.place  # while the issuing frame is there
        groups = self.groups(kind) if kind not in (None, MBARRIER) else None
        op = self.op = Op(self, effect, bars, held, groups)
        if self.run.races is not None:
            self._check_held(op)
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

    def _held(self, address: Any, nbytes: int) -> tuple[Any, Region]:
        if isinstance(address, np.ndarray):
            rank = int(address[0]) >> _PEER
            return self._peer(rank - 1 if rank else None), Rows(address & ((1 << _PEER) - 1), nbytes)
        rank, at = self.owner(address)
        cta = self._peer(rank)
        cta.smem.check(at, nbytes, self)
        return cta, Region(at, at + nbytes)

    def _check_held(self, op: Op) -> None:
        """Check and remember the shared memory that an operation uses, and how its end becomes known."""
        races = self.run.races
        kind = op.groups.kind if op.groups else MBARRIER
        if op.groups is not None:
            agents, epoch = op.groups.agents, op.groups.epoch
            reading = races.add(Access(self, agents[0], agents[0] + 1, epoch, kind, None))
            op.global_access = races.add(Access(self, agents[1], agents[1] + 1, epoch, kind, None))
            by = {None: reading}
        else:
            by = {h.bar.cta: races.add(h.bar.access(self)) for h, _ in op.bars}
            reading = op.global_access = next(iter(by.values()), None)
        for cta, region, reads in op.held:
            mine = reading if reads else by.get(cta, reading)
            races.check(self, cta.smem.shadow, region, not reads, by=mine)
            if mine is not None:
                cta.touched(self, races.accesses[mine])

    def commit(self, group: str) -> None:
        self.groups(group).commit()

    def wait(self, group: str, pending: int, *, read: bool = False) -> None:
        groups = self.groups(group)
        groups.wait(pending, read)
        if self.run.races is not None:
            epoch = groups.count - pending
            agents = groups.agents[:1] if read else groups.agents
            for t in self.threads if epoch > 0 else ():
                for agent in agents:
                    t.clock.base = t.clock.base.knowing(agent, epoch)
        if group == WGMMA_GROUP and self.unit.busy:
            for key, spans in list(self.unit.busy.items()):
                self.unit.busy[key] = [s for s in spans if s.epoch > groups.count - pending]
                if not self.unit.busy[key]:
                    del self.unit.busy[key]

    def accumulate(self, registers: Any) -> Any:
        self.hold(registers, False)
        return registers

    def hold(self, registers: Any, keeps: bool) -> None:
        """Registers that a wgmma uses until its group is done; with `keeps` it only reads them."""
        slab = getattr(registers, "base", None)
        if slab is None or self.eager or self.unit is None or "registers" not in self.run.checks:
            return
        loose = self.unit.loose
        if loose is None or id(slab) in loose:
            what = "an operand's registers" if keeps else "the accumulator's registers"
            since = "" if loose is None else f" since {what} were last touched"
            raise RaceError(
                f"missing wgmma.fence: {self.row.name if self.row else ''} is issued by {self.describe()} at "
                f"{self.place}, but the warpgroup executed no wgmma.fence{since}; call it (warpgroup.fence, "
                f"wgmma_fence) before the first wgmma that uses them"
            )
        size = slab.itemsize
        start = (registers.__array_interface__["data"][0] - slab.__array_interface__["data"][0]) % slab.strides[0]
        nbytes = registers.shape[1] * registers.itemsize
        epoch = self.groups(WGMMA_GROUP).epoch
        span = Held(slab, start // size, (start + nbytes) // size, self, epoch, keeps)
        self.unit.busy.setdefault(id(slab), []).append(span)

    def fence(self, kind: str) -> None:
        if kind == "wgmma" and self.unit is not None:
            self.unit.fenced()
        if kind.startswith("acq_rel."):
            self.run.events += 1
        if self.run.races is None:
            return
        if kind.startswith("acq_rel.") and self.lanes > 1:  # a barrier of the warp
            self.meet()
            return
        for t in self.threads:
            if kind.startswith("acq_rel."):
                fence_threads(t, kind.removeprefix("acq_rel."))
            for row in _FENCES.get(kind, ()):
                t.clock.fence(row)

    def meet(self) -> None:
        """A barrier among the issuing threads."""
        gather = Gather(self.threads[0].clock.base)
        gather.add([t.clock for t in self.threads])
        self.acquire(gather.freeze())


_FENCES = {
    "proxy.async": (SMEM, GMEM),
    "proxy.async.shared": (SMEM,),
    "proxy.async.global": (GMEM,),
    "mbarrier_init": (INIT,),
}
SCOPES = ("cta", "cluster", "gpu", "sys")


def fence_threads(t: Any, scope: str) -> None:
    """A fence.acq_rel of one thread: what its atomics read before is now known, and they publish all until now."""
    wide = SCOPES.index(scope)
    c = t.clock
    for other, cta, clock in c.pending:
        if cta is t.cta or min(wide, other) > 0:
            c.base = c.base.join(clock)
    c.pending.clear()
    c.published = (wide, t.cta, c.snapshot())


class Held(NamedTuple):
    """Registers [start, end) of a slab that the wgmma of issue `by` uses until its group, number `epoch`, is waited
    for; with `keeps` it only reads them."""

    slab: Any
    start: int
    end: int
    by: Machine
    epoch: int
    keeps: bool


def special_register(run: Any, t: Any, name: str) -> int:
    """One special register of one thread (PTX ISA, "Special Registers")."""
    name, _, axis = name.partition(".")
    d = "xyz".index(axis) if axis in ("x", "y", "z") else 0
    cta = t.cta
    shape = run.cluster_shape
    if name in _BY_AXIS:
        return int(_BY_AXIS[name](run, t)[d])
    fixed = {
        "laneid": t.lane, "warpid": t.index // 32, "nwarpid": len(cta.warps), "smid": cta.rank,
        "nsmid": cta.cluster.size,
        "cluster_ctarank": cta.rank, "cluster_nctarank": shape[0] * shape[1] * shape[2],
        "dynamic_smem_size": cta.smem.dynamic, "total_smem_size": cta.smem.dynamic + cta.smem.static,
        "lanemask_lt": (1 << t.lane) - 1, "lanemask_eq": 1 << t.lane, "clock": run.tick() & 0xFFFFFFFF,
    }  # fmt: skip
    if name in fixed:
        return int(fixed[name])
    if name == "clock64":
        return run.tick()  # type: ignore[no-any-return]
    if name == "globaltimer":
        return time.time_ns()
    raise SimError(f"special register {name!r}: the simulator has {', '.join([*_BY_AXIS, *fixed])}")


_BY_AXIS: dict[str, Callable[[Any, Any], tuple[int, ...]]] = {
    "tid": lambda run, t: t.tid,
    "ntid": lambda run, t: run.block,
    "ctaid": lambda run, t: t.cta.index,
    "nctaid": lambda run, t: run.grid,
    "clusterid": lambda run, t: t.cta.cluster.coord,
    "nclusterid": lambda run, t: tuple(g // c for g, c in zip(run.grid, run.cluster_shape)),
    "cluster_ctaid": lambda run, t: tuple(i % c for i, c in zip(t.cta.index, run.cluster_shape)),
    "cluster_nctaid": lambda run, t: run.cluster_shape,
}
