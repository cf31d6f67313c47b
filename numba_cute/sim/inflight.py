# SPDX-License-Identifier: Apache-2.0
"""Asynchronous work that is under way: copies that complete barriers, and commit groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .barrier import BarrierHandle, MBarrier
from .hazards import Region


class Op:
    """One operation in flight. held: (CTA, region, reads) in use until it ends."""

    __slots__ = ("machine", "effect", "bars", "phases", "held", "group", "done")

    def __init__(
        self, machine: Any, effect: Callable[[], None], bars: list[tuple[BarrierHandle, int]],
        held: list[tuple[Any, Region, bool]], group: str | None,
    ) -> None:  # fmt: skip
        self.machine, self.effect, self.bars, self.held, self.group = machine, effect, bars, held, group
        self.phases = [h.bar.phase for h, _ in bars]
        self.done = False
        for cta, region, reads in held:
            cta.smem.shadow.hold(region, reads)

    def describe(self) -> str:
        return f"{self.machine.row.name} issued by {self.machine.describe()} at {self.machine.place}"

    def complete(self) -> None:
        if self.done:
            return
        self.done = True
        m = self.machine
        m.deferred = True
        m.run.events += 1
        for cta, region, reads in self.held:
            cta.smem.shadow.release(region, reads)
        self.effect()
        for cta, region, reads in self.held:
            if not reads:
                cta.smem.shadow.async_write(region)
        for handle, nbytes in self.bars:
            handle.complete_tx(nbytes)


class Groups:
    """The commit groups of one kind of one issuer (a thread, or a warpgroup for wgmma), oldest first."""

    __slots__ = ("open", "committed")

    def __init__(self) -> None:
        self.open: list[Op] = []
        self.committed: deque[list[Op]] = deque()

    def commit(self) -> None:
        self.committed.append(self.open)
        self.open = []

    def wait(self, pending: int) -> None:
        """Complete the oldest groups until `pending` are left. Operations of a group complete in order."""
        while len(self.committed) > pending:
            self.complete_oldest()

    def complete_oldest(self) -> None:
        for op in self.committed.popleft():
            op.complete()

    def complete_all(self) -> None:
        self.wait(0)
        for op in self.open:
            op.complete()
        self.open = []

    def __iter__(self) -> Iterator[Op]:
        for group in self.committed:
            yield from group
        yield from self.open


class InFlight:
    """All of a cluster's asynchronous work."""

    def __init__(self) -> None:
        self.copies: list[Op] = []  # completed by mbarriers
        self.groups: list[Groups] = []

    def new_groups(self) -> Groups:
        groups = Groups()
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

    def user_of(self, cta: Any, address: int, reads: bool) -> Op | None:
        """The operation in flight that reads (or writes) shared memory at `address`."""
        for op in [*self.copies, *(op for g in self.groups for op in g)]:
            for held_cta, region, held_reads in op.held:
                if op.done or held_cta is not cta or held_reads != reads:
                    continue
                words = region.index
                word = address // 4
                if (words.start <= word < words.stop) if isinstance(words, slice) else (word in words):
                    return op
        return None

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
