# SPDX-License-Identifier: Apache-2.0
"""The machine that the bodies of the instruction table run on (isa.machine.Machine): one object for each issue."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..isa.instr import ASYNC, CP_ASYNC_GROUP, MBARRIER, WGMMA_GROUP, Instr
from ..isa.machine import Bytes
from .barrier import BarrierHandle
from .hazards import Region
from .inflight import Groups, Op
from .report import DivergenceError, OutOfBoundsError, Place, SimError, place_of, who

_PEER = 24
"""shared::cluster addresses of a peer hold its rank + 1 from this bit on; a shared::cta address is one's own."""


class Machine:
    """One issue of one row by `threads`."""

    __slots__ = ("run", "row", "threads", "lanes", "cta", "cta_rank", "unit", "deferred", "eager", "_place")

    def __init__(self, run: Any, row: Instr | None, threads: list[Any], unit: Any = None) -> None:
        self.run, self.row, self.threads, self.unit = run, row, threads, unit
        self.lanes = len(threads)
        self.cta = threads[0].cta
        self.cta_rank = self.cta.rank
        self.deferred = False  # the effect of an operation in flight is being done
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

    def acquire(self) -> None:
        """The threads have synchronised with others."""
        now = self.run.tick()
        for t in self.threads:
            t.acquired = now

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
        self.acquire()

    def pause(self, why: str, on: Any = None) -> None:
        thread = self.run.thread
        thread.cta.cluster.pollers.append(thread)
        thread.suspend(f"{why}, again and again", on, self)

    def barrier(self, id: int, threads: int | None, wait: bool) -> None:
        self.cta.named.arrive(self, id, threads, wait)

    def cluster_arrive(self, release: bool = True) -> None:
        self.cta.cluster.barrier.arrive(self)

    def cluster_wait(self) -> None:
        self.cta.cluster.barrier.wait(self)

    def set_registers(self, count: int) -> None:
        if count % 8 or not 24 <= count <= 256:
            raise SimError(f"setmaxnreg {count}: it must be a multiple of 8 in 24 to 256; at {self.place}")
        for t in self.threads:
            t.registers = count

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

    def _is_async(self, proxy: str | None) -> bool:
        return (proxy or (self.row.proxy if self.row else None)) == ASYNC

    def read(self, address: int, nbytes: int, *, cta: int | None = None, proxy: str | None = None) -> Bytes:
        smem = self._peer(cta).smem
        smem.check(address, nbytes, self)
        if not self.deferred:
            region = Region(address, nbytes)
            smem.shadow.generic_read(region, self)
            if self._is_async(proxy):
                smem.shadow.async_read(region, self)
        return smem.data[address : address + nbytes]  # type: ignore[no-any-return]

    def write(self, address: int, data: Bytes, *, cta: int | None = None, proxy: str | None = None) -> None:
        smem = self._peer(cta).smem
        smem.check(address, len(data), self)
        if not self.deferred:
            region = Region(address, len(data))
            if self._is_async(proxy):
                smem.shadow.exclusive(region, self)
                smem.shadow.async_write(region)
            else:
                smem.shadow.generic_write(region, self)
        smem.data[address : address + len(data)] = data

    def read_rows(self, addresses: NDArray[np.int64], nbytes: int) -> Bytes:
        smem = self.cta.smem
        smem.check_rows(addresses, nbytes, self)
        if not self.deferred:
            region = Region(addresses, nbytes)
            smem.shadow.generic_read(region, self)
            if self._is_async(None):
                smem.shadow.async_read(region, self)
        return smem.data.reshape(-1, nbytes)[addresses // nbytes]  # type: ignore[no-any-return]

    def write_rows(self, addresses: NDArray[np.int64], data: Bytes) -> None:
        nbytes = data.shape[1]
        smem = self.cta.smem
        smem.check_rows(addresses, nbytes, self)
        smem.shadow.generic_write(Region(addresses, nbytes), self)
        smem.data.reshape(-1, nbytes)[addresses // nbytes] = data

    def read_global(self, address: int, nbytes: int) -> Bytes:
        return self.run.memory.view(address, nbytes, self)  # type: ignore[no-any-return]

    def write_global(self, address: int, data: Bytes) -> None:
        self.run.memory.view(address, len(data), self)[...] = data

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
            found = holder.groups[kind] = self.cta.cluster.inflight.new_groups()
        return found  # type: ignore[no-any-return]

    def later(
        self, effect: Callable[[], None], *, bars: list[tuple[Any, int]] | None = None,
        reads: list[tuple[Any, int]] | None = None, writes: list[tuple[Any, int]] | None = None,
    ) -> None:  # fmt: skip
        held = [self._held(a, n, True) for a, n in reads or ()] + [self._held(a, n, False) for a, n in writes or ()]
        for cta, region, reading in held:
            if reading:
                cta.smem.shadow.generic_read(region, self)
                if self._is_async(None):
                    cta.smem.shadow.async_read(region, self)
            else:
                cta.smem.shadow.exclusive(region, self)
        for handle, _ in bars or ():
            handle.live("names it")
        kind = self.row.done_by if self.row else None
        place = self.place  # while the issuing frame is there
        group = kind if kind is not None and kind != MBARRIER else None
        op = Op(self, effect, bars or [], held, group)
        self._place = place
        inflight = self.cta.cluster.inflight
        if kind == MBARRIER:
            inflight.copies.append(op)
        elif kind is not None:
            groups = self.groups(kind)
            if self.eager:
                groups.complete_all()
            groups.open.append(op)
        if kind is None or self.eager or (self.run.mode == "eager" and kind != CP_ASYNC_GROUP):
            if kind == MBARRIER:
                inflight.copies.remove(op)
            op.complete()

    def _held(self, address: Any, nbytes: int, reads: bool) -> tuple[Any, Region, bool]:
        if isinstance(address, np.ndarray):
            rank = int(address[0]) >> _PEER
            cta = self._peer(rank - 1 if rank else None)
            return cta, Region(address & ((1 << _PEER) - 1), nbytes), reads
        rank, at = self.owner(address)
        cta = self._peer(rank)
        cta.smem.check(at, nbytes, self)
        return cta, Region(at, nbytes), reads

    def commit(self, group: str) -> None:
        self.groups(group).commit()

    def wait(self, group: str, pending: int, *, read: bool = False) -> None:
        groups = self.groups(group)
        groups.wait(pending)
        if group == WGMMA_GROUP and self.unit.busy:
            live = list(groups)
            for key, spans in list(self.unit.busy.items()):
                self.unit.busy[key] = [s for s in spans if s[3].machine_of(live)]
                if not self.unit.busy[key]:
                    del self.unit.busy[key]

    def accumulate(self, registers: Any) -> Any:
        if isinstance(registers, np.ndarray) and registers.base is not None and not self.eager and self.unit:
            slab = registers.base
            size = slab.itemsize
            start = (registers.__array_interface__["data"][0] - slab.__array_interface__["data"][0]) % slab.strides[0]
            nbytes = registers.shape[1] * registers.itemsize
            span = (slab, start // size, (start + nbytes) // size, Pending(self))
            self.unit.busy.setdefault(id(slab), []).append(span)
        return registers

    def fence(self, kind: str) -> None:
        if kind == "proxy.async":
            now = self.run.tick()
            for t in self.threads:
                t.fence = now
                self.run.acquired_fence = max(self.run.acquired_fence, t.acquired)
        elif kind.startswith("acq_rel."):
            self.acquire()


class Pending:
    """Whether the issue that took registers is still in flight."""

    __slots__ = ("machine",)

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def machine_of(self, live: list[Op]) -> bool:
        return any(op.machine is self.machine for op in live)


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
