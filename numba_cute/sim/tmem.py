# SPDX-License-Identifier: Apache-2.0
"""Tensor memory and the order of the multiplies that write it (PTX ISA, "TensorCore 5th Generation")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..isa.instr import TCGEN05_GROUP
from .report import OutOfBoundsError, RaceError, SimError

LANES, COLUMNS = 128, 512
_GRAIN = 32  # columns; the least allocation


class TensorMemory:
    """The tensor memory of one CTA. owners: for each 32 columns where their allocation begins, or None."""

    def __init__(self) -> None:
        self.data: NDArray[np.uint32] = np.full((LANES, COLUMNS), 0xFFFFFFFF, np.uint32)
        self.owners: list[int | None] = [None] * (COLUMNS // _GRAIN)
        self.relinquished = False
        self.busy: list[tuple[Any, int, int]] = []  # multiplies in flight: (operation, first column, columns)

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

    def alloc(self, columns: int) -> int:
        if columns not in (32, 64, 128, 256, 512):
            raise SimError(f"tcgen05.alloc: {columns} columns is no power of two of 32 to 512; {self._where()}")
        t = self.memory
        if t.relinquished:
            raise SimError(f"tcgen05.alloc: {self._where()}, but this CTA relinquished its permit to allocate")
        self.machine.block(lambda: t.room(columns) is not None, f"tcgen05.alloc of {columns} columns")
        at = t.room(columns)
        assert at is not None
        t.owners[at // _GRAIN : (at + columns) // _GRAIN] = [at] * (columns // _GRAIN)
        return at

    def dealloc(self, address: int, columns: int) -> None:
        t = self.memory
        held = [i * _GRAIN for i, o in enumerate(t.owners) if o == address]
        if not held or len(held) * _GRAIN != columns:
            raise SimError(
                f"tcgen05.dealloc: {columns} columns at {address:#x} were not allocated as such (there are "
                f"{len(held) * _GRAIN}); {self._where()}"
            )
        for op, first, count in t.busy:
            if not op.done and first < address + columns and address < first + count:
                raise RaceError(
                    f"race: tensor memory is freed by {self._where()}\n  but {op.describe()} still writes it"
                )
        for at in held:
            t.owners[at // _GRAIN] = None

    def relinquish(self) -> None:
        self.memory.relinquished = True

    def read(self, lane: int, lanes: int, column: int, columns: int, cta: int | None = None) -> NDArray[np.uint32]:
        part = self._part(lane, lanes, column, columns, cta, "read")
        return part.copy()

    def write(self, lane: int, column: int, values: NDArray[np.uint32], cta: int | None = None) -> None:
        self._part(lane, values.shape[0], column, values.shape[1], cta, "written")[...] = values

    def _part(self, lane: int, lanes: int, column: int, columns: int, cta: int | None, verb: str) -> Any:
        m = self.machine
        t = self.memory if cta is None else memory_of(m.cta.cluster.ctas[cta])
        blocks = t.owners[column // _GRAIN : -(-(column + columns) // _GRAIN)]
        if column + columns > COLUMNS or None in blocks:
            raise OutOfBoundsError(
                f"tensor memory: columns {column} to {column + columns - 1} are {verb} by {self._where()}, and not all "
                f"are allocated (tcgen05.alloc)"
            )
        if not m.deferred:
            t.busy = [b for b in t.busy if not b[0].done]
            for op, first, count in t.busy:
                if first < column + columns and column < first + count:
                    raise RaceError(
                        f"race: tensor memory, columns {column} to {column + columns - 1}, is {verb} by {self._where()}"
                        f"\n  but {op.describe()} still writes it; commit it to an mbarrier (tcgen05.commit) and wait "
                        f"for that first"
                    )
        return t.data[lane : lane + lanes, column : column + columns]

    def multiply(
        self, effect: Callable[[], None], reads: list[tuple[Any, int]], column: int, columns: int, ctas: list[int]
    ) -> None:
        m = self.machine
        m.later(effect, reads=reads)
        for c in ctas:
            memory_of(m.cta.cluster.ctas[c]).busy.append((m.op, column, columns))

    def commit(self, bars: list[Any]) -> None:
        m = self.machine
        for b in bars:
            b.live("names it", asynchronous=True)
        groups = m.groups(TCGEN05_GROUP)
        epoch = groups.epoch
        groups.commit()

        def effect() -> None:
            while groups.committed and groups.count - len(groups.committed) < epoch:
                groups.complete_oldest()
            for clock in m.issued or ():
                for agent in groups.agents:
                    clock.base = clock.base.knowing(agent, epoch)
            for b in bars:
                b.arrive()

        m.later(effect)


def memory_of(cta: Any) -> TensorMemory:
    """A CTA's tensor memory, made when it is first used."""
    if cta.tmem is None:
        cta.tmem = TensorMemory()
    return cta.tmem  # type: ignore[no-any-return]


def check_freed(cta: Any) -> None:
    """An error if the kernel ended without giving back what it allocated."""
    if cta.tmem is not None and any(o is not None for o in cta.tmem.owners):
        columns = sum(o is not None for o in cta.tmem.owners) * _GRAIN
        raise SimError(
            f"tensor memory: the kernel ended with {columns} columns of CTA {cta.rank} still allocated; the warp that "
            f"allocated them calls tcgen05.dealloc after all have done with them"
        )
