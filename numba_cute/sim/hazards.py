# SPDX-License-Identifier: Apache-2.0
"""Shadow of one CTA's shared memory: who wrote each word with the generic proxy, and what copies are using it.

Two rules are checked, by words of four bytes. (1) What the async proxy reads (TMA stores, wgmma) must have been
fenced: each thread that wrote it with the generic proxy must execute fence.proxy.async after the write, or another
thread must, after it has synchronised with the writer (PTX ISA, "Proxies" and "Causality order"). (2) What an
unfinished copy or wgmma still reads must not be written, and what it has still to write must not be touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .report import RaceError

WORD = 4
_SHIFT = 20  # a stamp is the time of the write, and below it the writer's number in the cluster


class Region:
    """Shared memory of one CTA: one run of bytes, or many pieces of the same size."""

    __slots__ = ("address", "nbytes", "index")

    def __init__(self, address: Any, nbytes: int) -> None:
        self.address, self.nbytes = address, nbytes
        if isinstance(address, np.ndarray):
            first = address.astype(np.int64) // WORD
            words = max(1, nbytes // WORD)
            self.index: Any = (first[:, None] + np.arange(words)).ravel()
        else:
            self.index = slice(address // WORD, (address + nbytes + WORD - 1) // WORD)

    def at(self, word: int) -> int:
        """The address of the `word`-th word of the region."""
        if isinstance(self.index, slice):
            return int(self.index.start + word) * WORD
        return int(self.index[word]) * WORD


class Shadow:
    """The shadow of `nbytes` of shared memory of one CTA."""

    def __init__(self, nbytes: int, cta: Any) -> None:
        words = nbytes // WORD
        self.cta = cta
        self.written: NDArray[np.int64] = np.zeros(words, np.int64)
        self.reading: NDArray[np.int16] = np.zeros(words, np.int16)
        self.writing: NDArray[np.int16] = np.zeros(words, np.int16)
        self.busy = 0  # operations in flight that use this memory

    # generic proxy
    def generic_read(self, region: Region, machine: Any) -> None:
        if self.busy and self.writing[region.index].any():
            self._in_flight(region, self.writing, "read", machine)

    def generic_write(self, region: Region, machine: Any) -> None:
        if self.busy:
            self.exclusive(region, machine)
        run = machine.run
        self.written[region.index] = run.tick() << _SHIFT | run.remember(machine)

    def exclusive(self, region: Region, machine: Any) -> None:
        """Report a write to memory that something in flight uses."""
        for held in (self.reading, self.writing):
            if held[region.index].any():
                self._in_flight(region, held, "written", machine)

    def _in_flight(self, region: Region, held: NDArray[np.int16], verb: str, machine: Any) -> None:
        address = region.at(int(np.flatnonzero(held[region.index])[0]))
        reads = held is self.reading
        op = machine.run.cluster.inflight.user_of(self.cta, address, reads)
        mend = "wait until it has read it" if reads else "wait on the barrier that it completes"
        if op is not None and op.group is not None:
            mend = {"wgmma_group": "wgmma.wait_group", "bulk_group": "cp.async.bulk.wait_group"}.get(op.group, mend)
            mend = f"commit it and wait with {mend} before this line"
        state = "still reads" if reads else "has still to write"
        raise RaceError(
            f"race: shared memory {self.cta.name(address)} is {verb} by {machine.describe()} at {machine.place}\n"
            f"  but {op.describe() if op else 'an operation in flight'} {state} it; {mend}"
        )

    # async proxy
    def async_write(self, region: Region) -> None:
        self.written[region.index] = 0

    def async_read(self, region: Region, machine: Any) -> None:
        """Check rule (1) for a read that `machine` issues now."""
        stamps = self.written[region.index]
        latest = int(stamps.max(initial=0))
        if latest == 0:
            return
        run = machine.run
        if latest >> _SHIFT <= run.acquired_fence:
            return
        for stamp in np.unique(stamps[stamps >> _SHIFT > run.acquired_fence]).tolist():
            writer, place = run.recall(stamp & ((1 << _SHIFT) - 1))
            if stamp >> _SHIFT > writer.fence:
                address = region.at(int(np.flatnonzero(stamps == stamp)[0]))
                raise RaceError(
                    f"missing fence.proxy.async: shared memory {self.cta.name(address)} is read through the async "
                    f"proxy by {machine.row.name}, issued by {machine.describe()} at {machine.place}\n"
                    f"  but thread {writer.index} of CTA {writer.cta.rank} wrote it with the generic proxy at {place}\n"
                    f"  and executed no fence.proxy.async since; each writing thread must execute it (for example "
                    f"cute.arch.fence_proxy_async) after its writes and before the barrier"
                )

    def hold(self, region: Region, reads: bool) -> None:
        self.busy += 1
        (self.reading if reads else self.writing)[region.index] += 1

    def release(self, region: Region, reads: bool) -> None:
        self.busy -= 1
        (self.reading if reads else self.writing)[region.index] -= 1
