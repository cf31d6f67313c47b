# SPDX-License-Identifier: Apache-2.0
"""Tensor memory as instructions use it; what is ordered there is checked in `tmem_hazards`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...isa.form.instr import TCGEN05_GROUP, TCGEN05_LOADS, TCGEN05_STORES
from ..ground.clocks import FULL, GMEM, READS, SMEM, TENSOR
from ..ground.report import OutOfBoundsError, SimError

LANES, COLUMNS = 128, 512
GRAIN = 32
"""Columns of the least allocation."""


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


class Pipe(NamedTuple):
    """The order of a matrix unit's operation with those before and after it. what: "mma", "cp" or "shift". accumulator:
    the place it writes, the shape and the kind. after_shift: True for a copy that waits for a shift."""

    what: str
    accumulator: Any
    after_shift: bool


class TensorMemory:
    """The tensor memory of one CTA. owners: for each 32 columns where their allocation begins, or None. taken: the
    address and the columns of each allocation so far, and who made it."""

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.data: NDArray[np.uint32] = np.full((LANES, COLUMNS), 0xFFFFFFFF, np.uint32)
        self.owners: list[int | None] = [None] * (COLUMNS // GRAIN)
        self.relinquished: str = ""  # by whom, and where
        self.allocated: dict[int, str] = {}  # by whom, and where, each allocation was made
        self.taken: list[tuple[int, int, str]] = []
        self.warp: Any = None  # which allocates
        self.in_use: set[int] = set()  # allocations that were freed too early, which no check reports: they last

    def room(self, columns: int, peer: TensorMemory | None = None) -> int | None:
        """The first free place of so many columns, aligned to them; of a pair, in both CTAs: the first to allocate
        takes it for both."""
        n, nth = columns // GRAIN, len(self.taken)
        if peer is not None and nth < len(peer.taken):
            return peer.taken[nth][0]
        for at in range(0, len(self.owners), n):
            if self._free(at, n) and (peer is None or peer._free(at, n)):
                return at * GRAIN
        return None

    def _free(self, at: int, n: int) -> bool:
        return all(o is None for o in self.owners[at : at + n])


class TensorMemoryHandle:
    """Tensor memory as one issue of an instruction sees it (isa.machine.TensorMemory)."""

    __slots__ = ("machine", "memory")

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.memory = memory_of(machine.cta)

    def _where(self) -> str:
        return f"{self.machine.describe()} at {self.machine.place}"

    # allocation
    def _peer(self) -> Any:
        """The other CTA of the pair that allocates together, or None."""
        m = self.machine
        return m.cta.cluster.ctas[m.cta_rank ^ 1] if (m.case or {}).get("cta_group") == 2 else None

    def alloc(self, columns: int) -> int:
        t, m, peer = self.memory, self.machine, self._peer()
        other = None if peer is None else memory_of(peer)
        self._may_allocate(columns, peer, other)
        m.block(lambda: t.room(columns, other) is not None, f"tcgen05.alloc of {columns} columns")
        at = t.room(columns, other)
        assert at is not None
        if other is None or len(t.taken) >= len(other.taken):
            for each in (t, *(() if other is None else (other,))):
                each.owners[at // GRAIN : (at + columns) // GRAIN] = [at] * (columns // GRAIN)
                each.data[:, at : at + columns] = 0xFFFFFFFF
        t.allocated[at] = self._where()
        t.taken.append((at, columns, self._where()))
        t.warp = m.unit
        for tell in m.run.watch.allocates:
            tell(m, m.cta, Patch(0, LANES, at, columns), peer)
        return at

    def _may_allocate(self, columns: int, peer: Any, other: TensorMemory | None) -> None:
        """PTX ISA, "tcgen05.alloc": how many columns, in which order, by whom."""
        t, m = self.memory, self.machine
        if columns not in (32, 64, 128, 256, 512):
            raise SimError(f"tcgen05.alloc: {columns} columns is not a power of two of 32 to 512; {self._where()}")
        if t.relinquished:
            raise SimError(
                f"tcgen05.alloc: {self._where()}, but this CTA has given up its permit to allocate "
                f"(tcgen05.relinquish_alloc_permit by {t.relinquished}); allocate first, relinquish after"
            )
        if t.warp is not None and t.warp is not m.unit:
            raise SimError(
                f"tcgen05.alloc: {self._where()}, but another warp of this CTA has allocated before, {t.taken[-1][2]}: "
                f"one warp makes all allocations of a CTA"
            )
        if t.taken and columns > t.taken[-1][1]:
            raise SimError(
                f"tcgen05.alloc: {columns} columns by {self._where()}, but {t.taken[-1][1]} were allocated before, by "
                f"{t.taken[-1][2]}: no allocation of a CTA may be larger than one before it; allocate the largest first"
            )
        if peer is None or other is None:
            return
        if not peer.live:
            raise SimError(
                f"tcgen05.alloc: {self._where()} with cta_group 2, but its peer, CTA {peer.rank}, has exited: one warp "
                f"of each of the two allocates; keep it alive until both have freed"
            )
        if len(t.taken) < len(other.taken) and other.taken[len(t.taken)][1] != columns:
            _, theirs, where = other.taken[len(t.taken)]
            raise SimError(
                f"tcgen05.alloc: {columns} columns by {self._where()} with cta_group 2, but CTA {peer.rank} allocates "
                f"{theirs}, by {where}: the two allocate together, as many columns"
            )

    def dealloc(self, address: int, columns: int) -> None:
        t, m = self.memory, self.machine
        held = [i * GRAIN for i, o in enumerate(t.owners) if o == address]
        if not held or len(held) * GRAIN != columns:
            there = f"{len(held) * GRAIN} columns were allocated there" if held else "nothing is allocated there"
            raise SimError(f"tcgen05.dealloc: {columns} columns at {address:#x}, but {there}; {self._where()}")
        for tell in m.run.watch.frees:
            tell(m, m.cta, Patch(0, LANES, address, columns), self._peer())
        for at in held if address not in t.in_use else ():
            t.owners[at // GRAIN] = None
        del t.allocated[address]
        m.run.events += 1

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
        if column + columns > COLUMNS or None in t.owners[column // GRAIN : -(-(column + columns) // GRAIN)]:
            have = ", ".join(f"{at} to {at + t.owners.count(at) * GRAIN - 1}" for at in sorted(t.allocated))
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
        what: str = "mma", after_shift: bool = False,
    ) -> None:  # fmt: skip
        m = self.machine
        parts = parts or [(c, 0, LANES, columns) for c in ctas]
        writes = [self._part(lane, rows, column, n, c, "written") for c, lane, rows, n in parts]
        read = [self._part(lane, rows, at, n, c, "read") for at, n in uses for c, lane, rows, _ in parts]
        read += [self._part(lane, rows, at, n, c, "read") for c, lane, rows, at, n in sources]
        m.later(effect, reads=reads)
        pipe = Pipe(what, (column, tuple(parts), (m.case or {}).get("kind")), after_shift)
        for tell in m.run.watch.multiplies:
            tell(m, [(t.cta, patch) for t, patch in read], [(t.cta, patch) for t, patch in writes], accumulates, pipe)

    def commit(self, bars: list[Any]) -> None:
        m = self.machine
        for b in bars:
            b.live("names it", asynchronous=True)
            m.promise(b.bar)
            for tell in m.run.watch.commits:
                tell(m, b.bar)
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

    def wait_loads_of(self, thread: Any) -> None:
        """Wait where a thread first uses what was loaded: the others of its warp may not have come there yet."""
        self._wait(TCGEN05_LOADS, [thread])

    def wait_stores(self) -> None:
        self._wait(TCGEN05_STORES)

    def _wait(self, group: str, threads: Any = None) -> None:
        m = self.machine
        waits = m.unit.groups.get(group) if m.run.clocks else None
        if waits is not None:
            for t in m.threads if threads is None else threads:
                t.clock.base = t.clock.base.knowing(waits.agent, waits.epoch, (READS, FULL))
            waits.epoch += 1


def memory_of(cta: Any) -> TensorMemory:
    """A CTA's tensor memory, made when it is first used."""
    if cta.tmem is None:
        cta.tmem = TensorMemory(cta)
    return cta.tmem  # type: ignore[no-any-return]


def check_freed(cta: Any) -> None:
    """An error if a CTA ended without giving back what it allocated."""
    if cta.tmem is not None and cta.tmem.allocated:
        t = cta.tmem
        at, where = next(iter(t.allocated.items()))
        raise SimError(
            f"tensor memory: the kernel ended with {t.owners.count(at) * GRAIN} columns of CTA {cta.rank} still "
            f"allocated\n  they were allocated at {at:#x} by {where}\n"
            f"  fix: that warp calls tcgen05.dealloc, after all have done with them"
        )


def check_pair(run: Any, cta: Any) -> None:
    """An error if a CTA has allocated with cta_group 2, and its peer has not."""
    if run.cta_group is None or run.cta_group[0] != 2 or cta.tmem is None:
        return
    peer = cta.cluster.ctas[cta.rank ^ 1]
    theirs = 0 if peer.tmem is None else len(peer.tmem.taken)
    if len(cta.tmem.taken) > theirs:
        raise SimError(
            f"tcgen05.alloc with cta_group 2: by {cta.tmem.taken[theirs][2]}, but CTA {peer.rank} ended without it: "
            f"one warp of each CTA of the pair allocates, and frees"
        )


def one_group(m: Any, group: int) -> None:
    """All tcgen05 instructions of a kernel are of the same .cta_group: ptxas takes no other kernel."""
    if m.run.cta_group is None:
        if group == 2 and m.cta.cluster.size % 2:
            raise SimError(
                f"{m.row.name} of {m.describe()} at {m.place} has cta_group 2, but the cluster's size is "
                f"{m.cta.cluster.size}: it is for pairs of CTAs (ranks 2i and 2i + 1); launch with an even cluster"
            )
        m.run.cta_group = group, m.row.name, m.place
    first, other, place = m.run.cta_group
    if first != group:
        raise SimError(
            f"{m.row.name} of {m.describe()} at {m.place} has cta_group {group}, but {other} at {place} has cta_group "
            f"{first}: all tcgen05 instructions of a kernel must have the same"
        )
