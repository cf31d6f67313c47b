# SPDX-License-Identifier: Apache-2.0
"""Tensor memory as instructions use it; what is ordered there is checked in `tmem_hazards`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...isa.form.instr import TCGEN05_GROUP, TCGEN05_LOADS, TCGEN05_STORES
from ..ground.clocks import FULL, GMEM, READS, SMEM, TENSOR
from ..ground.report import OutOfBoundsError, SimError

LANES, COLUMNS = 128, 512
_GRAIN = 32  # columns; the least allocation


class Patch:
    """Some lanes and columns."""

    __slots__ = ("lane", "lanes", "column", "columns")

    def __init__(self, lane: int, lanes: int, column: int, columns: int) -> None:
        self.lane, self.lanes, self.column, self.columns = lane, lanes, column, columns

    @property
    def index(self) -> tuple[slice, slice]:
        return slice(self.lane, self.lane + self.lanes), slice(self.column, self.column + self.columns)

    def __str__(self) -> str:
        return (
            f"lanes {self.lane} to {self.lane + self.lanes - 1}, columns {self.column} to "
            f"{self.column + self.columns - 1}"
        )


class TensorMemory:
    """The tensor memory of one CTA. owners: for each 32 columns where their allocation begins, or None."""

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.data: NDArray[np.uint32] = np.full((LANES, COLUMNS), 0xFFFFFFFF, np.uint32)
        self.owners: list[int | None] = [None] * (COLUMNS // _GRAIN)
        self.relinquished: str = ""  # by whom, and where
        self.allocated: dict[int, str] = {}  # by whom, and where, each allocation was made
        self.pair: int | None = None  # the cta_group of the first tcgen05 instruction that has one

    def room(self, columns: int) -> int | None:
        """The first free place of so many columns, aligned to them."""
        n = columns // _GRAIN
        for at in range(0, len(self.owners), n):
            if all(o is None for o in self.owners[at : at + n]):
                return at * _GRAIN
        return None


class TensorMemoryHandle:
    """Tensor memory as one issue of an instruction sees it (isa.machine.TensorMemory)."""

    __slots__ = ("machine", "memory")

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.memory = memory_of(machine.cta)

    def _where(self) -> str:
        return f"{self.machine.describe()} at {self.machine.place}"

    # allocation
    def alloc(self, columns: int) -> int:
        if columns not in (32, 64, 128, 256, 512):
            raise SimError(f"tcgen05.alloc: {columns} columns is no power of two of 32 to 512; {self._where()}")
        t, m = self.memory, self.machine
        if t.relinquished:
            raise SimError(
                f"tcgen05.alloc: {self._where()}, but this CTA has given up its permit to allocate "
                f"(tcgen05.relinquish_alloc_permit by {t.relinquished}); allocate first, relinquish after"
            )
        m.block(lambda: t.room(columns) is not None, f"tcgen05.alloc of {columns} columns")
        at = t.room(columns)
        assert at is not None
        t.owners[at // _GRAIN : (at + columns) // _GRAIN] = [at] * (columns // _GRAIN)
        t.allocated[at] = self._where()
        t.data[:, at : at + columns] = 0xFFFFFFFF
        for tell in m.run.watch.allocates:
            tell(m.cta, Patch(0, LANES, at, columns))
        return at

    def dealloc(self, address: int, columns: int) -> None:
        t, m = self.memory, self.machine
        held = [i * _GRAIN for i, o in enumerate(t.owners) if o == address]
        if not held or len(held) * _GRAIN != columns:
            there = f"{len(held) * _GRAIN} columns were allocated there" if held else "nothing is allocated there"
            raise SimError(f"tcgen05.dealloc: {columns} columns at {address:#x}, but {there}; {self._where()}")
        for tell in m.run.watch.frees:
            tell(m, m.cta, Patch(0, LANES, address, columns))
        for at in held:
            t.owners[at // _GRAIN] = None
        del t.allocated[address]

    def relinquish(self) -> None:
        self.memory.relinquished = self._where()

    # accesses
    def read(self, lane: int, lanes: int, column: int, columns: int, cta: int | None = None) -> NDArray[np.uint32]:
        t, patch = self._part(lane, lanes, column, columns, cta, "read")
        self._tell(t, patch, False)
        return t.data[patch.index].copy()

    def write(self, lane: int, column: int, values: NDArray[np.uint32], cta: int | None = None) -> None:
        t, patch = self._part(lane, values.shape[0], column, values.shape[1], cta, "written")
        self._tell(t, patch, True)
        t.data[patch.index] = values

    def _tell(self, t: TensorMemory, patch: Patch, write: bool) -> None:
        if not self.machine.deferred:
            for tell in self.machine.run.watch.accesses_tensor_memory:
                tell(self.machine, t.cta, patch, write)

    def _part(
        self, lane: int, lanes: int, column: int, columns: int, cta: int | None, verb: str
    ) -> tuple[TensorMemory, Patch]:
        m = self.machine
        t = self.memory if cta is None else memory_of(m.cta.cluster.ctas[cta])
        if column + columns > COLUMNS or None in t.owners[column // _GRAIN : -(-(column + columns) // _GRAIN)]:
            have = ", ".join(f"{at} to {at + t.owners.count(at) * _GRAIN - 1}" for at in sorted(t.allocated))
            raise OutOfBoundsError(
                f"tensor memory: columns {column} to {column + columns - 1} are {verb} by "
                f"{m.row.name if m.row else ''} of {self._where()}, but "
                + (f"only columns {have} are allocated" if have else "none are allocated")
                + " (tcgen05.alloc)"
            )
        return t, Patch(lane, lanes, column, columns)

    # the matrix unit
    def multiply(
        self, effect: Callable[[], None], reads: list[tuple[Any, int]], column: int, columns: int, ctas: list[int],
        *, accumulates: bool = True, uses: Sequence[tuple[int, int]] = (),
        parts: Sequence[tuple[int, int, int, int]] = (), sources: Sequence[tuple[int, int, int, int, int]] = (),
    ) -> None:  # fmt: skip
        m = self.machine
        parts = parts or [(c, 0, LANES, columns) for c in ctas]
        writes = [self._part(lane, rows, column, n, c, "written") for c, lane, rows, n in parts]
        read = [self._part(lane, rows, at, n, c, "read") for at, n in uses for c, lane, rows, _ in parts]
        read += [self._part(lane, rows, at, n, c, "read") for c, lane, rows, at, n in sources]
        m.later(effect, reads=reads)
        for tell in m.run.watch.multiplies:
            tell(m, [(t.cta, patch) for t, patch in read], [(t.cta, patch) for t, patch in writes], accumulates)

    def commit(self, bars: list[Any]) -> None:
        m = self.machine
        for b in bars:
            b.live("names it", asynchronous=True)
            b.bar.will_send(m.threads)
        groups = m.groups(TCGEN05_GROUP)
        epoch = groups.epoch
        groups.commit()

        def effect() -> None:
            while groups.committed and groups.committed[0].epoch <= epoch:
                groups.complete_oldest()
            for b in bars:
                if b.bar.near is not None:
                    for agent in groups.agents:
                        b.bar.near.know(agent, epoch, (READS, FULL, SMEM, GMEM, TENSOR))
                b.arrive()

        m.later(effect)

    def fence_before(self) -> None:
        if self.machine.run.clocks:
            for t in self.machine.threads:
                t.clock.fence(TENSOR)

    def fence_after(self) -> None:
        if self.machine.run.clocks:
            for t in self.machine.threads:
                t.clock.after = t.clock.base

    def wait_loads(self) -> None:
        for tell in self.machine.run.watch.waited_for_loads:
            tell(self.machine)
        self._wait(TCGEN05_LOADS)

    def wait_stores(self) -> None:
        self._wait(TCGEN05_STORES)

    def _wait(self, group: str) -> None:
        m = self.machine
        waits = m.unit.groups.get(group) if m.run.clocks else None
        if waits is not None:
            for t in m.threads:
                t.clock.base = t.clock.base.knowing(waits.agent, waits.epoch, (READS, FULL))
            waits.epoch += 1


def memory_of(cta: Any) -> TensorMemory:
    """A CTA's tensor memory, made when it is first used."""
    if cta.tmem is None:
        cta.tmem = TensorMemory(cta)
    return cta.tmem  # type: ignore[no-any-return]


def check_freed(cta: Any) -> None:
    """An error if the kernel ended without giving back what it allocated."""
    if cta.tmem is not None and cta.tmem.allocated:
        t = cta.tmem
        at, where = next(iter(t.allocated.items()))
        raise SimError(
            f"tensor memory: the kernel ended with {t.owners.count(at) * _GRAIN} columns of CTA {cta.rank} still "
            f"allocated\n  they were allocated at {at:#x} by {where}\n"
            f"  fix: that warp calls tcgen05.dealloc, after all have done with them"
        )


def one_group(m: Any, group: int) -> None:
    """All tcgen05 instructions of a kernel are of the same .cta_group: ptxas takes no other kernel."""
    if m.run.cta_group is None:
        m.run.cta_group = group, m.row.name, m.place
    first, other, place = m.run.cta_group
    if first != group:
        raise SimError(
            f"{m.row.name} of {m.describe()} at {m.place} has cta_group {group}, but {other} at {place} has cta_group "
            f"{first}: all tcgen05 instructions of a kernel must have the same"
        )
