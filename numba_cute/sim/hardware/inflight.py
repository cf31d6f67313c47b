# SPDX-License-Identifier: Apache-2.0
"""Asynchronous work that is under way: copies that complete barriers, and commit groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..ground.access import Access, Region
from .barrier import BarrierHandle, MBarrier


class Op:
    """One operation in flight. held: (CTA, region, reads) of shared memory in use until it ends. access: what it does
    to global memory, and uses: (CTA, region, reads, access) of what it does to shared memory; None stands for the
    issuing threads' own. They are known where threads keep clocks."""

    __slots__ = ("machine", "effect", "bars", "phases", "held", "groups", "done", "access", "uses", "told", "began")

    def __init__(
        self, machine: Any, effect: Callable[[], None], bars: list[tuple[BarrierHandle, int]],
        held: list[tuple[Any, Region, bool]], groups: Groups | None,
    ) -> None:  # fmt: skip
        self.machine, self.effect, self.bars, self.held, self.groups = machine, effect, bars, held, groups
        self.phases = [h.bar.phase for h, _ in bars]
        self.done = False
        self.access: Access | None = None
        self.uses: list[tuple[Any, Region, bool, Access | None]] = []
        self.told: list[Access] = []  # all of these accesses
        self.began = 0
        if machine.run.trace is not None:
            machine.run.trace.begins(self)

    def describe(self) -> str:
        return f"{self.machine.row.name} issued by {self.machine.describe()} at {self.machine.place}"

    def name_accesses(self) -> None:
        """Say how the end of each of its accesses becomes known: by its groups, or by the barriers that it signals."""
        m, each = self.machine, False
        reading: Access | None
        if self.groups is not None:
            (reads, writes), epoch, kind = self.groups.agents, self.groups.epoch, self.groups.kind
            reading, self.access = (Access(m, agent, agent + 1, epoch, kind, None) for agent in (reads, writes))
            self.told, m.brought = [reading, self.access], reading.copies
        else:
            self.told = [handle.bar.access(m) for handle, _ in self.bars]
            by = {handle.bar: access for (handle, _), access in zip(self.bars, self.told)}
            reading = self.access = next(iter(by.values()), None)
            each = len(self.bars) == sum(not reads for *_, reads in self.held)
        # each write has its own barrier (of a CTA pair's, in the other CTA)
        bars = iter(self.bars if each else ())
        for cta, region, reads in self.held:
            told = None if reads else next(bars, None)
            self.uses.append((cta, region, reads, reading if told is None else by[told[0].bar]))

    def read_sources(self) -> None:
        """Read the shared memory that the operation copies from; it writes its destination later."""
        m = self.machine
        if m.saved is None and not self.done:
            found = [(cta, r) for cta, r, reads in self.held if reads and type(r) is Region]
            for cta, r in found:
                m.lies(cta, r, False)
            m.saved = {(r.start, r.stop - r.start): cta.smem.data[r.start : r.stop].copy() for cta, r in found}

    def complete(self) -> None:
        if self.done:
            return
        self.done = True
        m = self.machine
        if m.run.trace is not None:
            m.run.trace.ends(self)
        m.deferred = True
        m.run.events += 1
        self.effect()
        for handle, nbytes in self.bars:
            handle.complete_tx(nbytes)


class Group(list[Op]):
    """The operations of a committed group. epoch: the last of its agents' epochs that it holds."""

    epoch = 0


class Groups:
    """The commit groups of one kind of one issuer (a thread, or a warpgroup for wgmma), oldest first.

    agents: whose epochs number what was issued, for what it reads and what it writes (see `clocks`). epoch: the one
    that an operation belongs to that is issued now; it ends with a commit, or when an mbarrier is to tell."""

    __slots__ = ("kind", "agents", "epoch", "ends", "open", "committed")

    def __init__(self, kind: str, agents: tuple[int, int]) -> None:
        self.kind, self.agents, self.epoch = kind, agents, 1
        self.ends: list[int] = []  # the last epoch of each group committed so far
        self.open = Group()
        self.committed: deque[Group] = deque()

    def commit(self) -> None:
        self.open.epoch = self.epoch
        self.committed.append(self.open)
        self.ends.append(self.epoch)
        self.open = Group()
        self.epoch += 1

    def mark(self) -> int:
        """End an epoch, but not the open group; gives the epoch that ended."""
        self.epoch += 1
        return self.epoch - 1

    def done(self, pending: int) -> int:
        """The last epoch that is over once at most `pending` groups are left."""
        return self.ends[-1 - pending] if len(self.ends) > pending else 0

    def wait(self, pending: int, read: bool = False) -> None:
        """Complete the oldest groups until `pending` are left (with `read`: only their reading). Operations of a
        group complete in order."""
        if read:
            for group in list(self.committed)[: max(0, len(self.committed) - pending)]:
                for op in group:
                    op.read_sources()
            return
        while len(self.committed) > pending:
            self.complete_oldest()

    def complete_oldest(self) -> None:
        for op in self.committed.popleft():
            op.complete()

    def complete_all(self) -> None:
        self.wait(0)
        for op in self.open:
            op.complete()
        self.open.clear()

    def __iter__(self) -> Iterator[Op]:
        for group in self.committed:
            yield from group
        yield from self.open


class InFlight:
    """All of a cluster's asynchronous work."""

    def __init__(self) -> None:
        self.copies: list[Op] = []  # completed by mbarriers
        self.groups: list[Groups] = []

    def new_groups(self, kind: str, cluster: Any) -> Groups:
        groups = Groups(kind, (cluster.new_agent(), cluster.new_agent()))
        self.groups.append(groups)
        return groups

    def __bool__(self) -> bool:
        return bool(self.copies)

    def credits(self, bar: MBarrier, phase: int) -> int:
        """The bytes that operations in flight, issued in `phase` of `bar`, have still to deliver to it."""
        return sum(
            nbytes for op in self.copies if not op.done
            for (h, nbytes), at in zip(op.bars, op.phases) if h.bar is bar and at == phase
        )  # fmt: skip

    def complete_copy(self, rng: Any = None) -> bool:
        """Complete one copy: the oldest, or any by `rng`."""
        if not self.copies:
            return False
        op = self.copies.pop(rng.randrange(len(self.copies)) if rng else 0)
        op.complete()
        return True

    def complete_some(self, rng: Any) -> None:
        """Complete a copy or the oldest group of an issuer, at random."""
        ready = [g for g in self.groups if g.committed]
        at = rng.randrange(len(self.copies) + len(ready)) if self.copies or ready else -1
        if at >= len(self.copies):
            ready[at - len(self.copies)].complete_oldest()
        elif at >= 0:
            self.copies.pop(at).complete()

    def flush(self) -> None:
        """Complete everything: the kernel has ended."""
        while self.complete_copy():
            pass
        for groups in self.groups:
            groups.complete_all()
