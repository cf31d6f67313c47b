# SPDX-License-Identifier: Apache-2.0
"""The check `swizzles`: shared memory that is read by another swizzle than it was written by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...isa.facts.canonical import swizzle_parameters
from ...layout import Swizzle
from ..ground.access import Rows
from ..ground.report import SwizzleError
from ..hardware.watch import Check

_REMEMBERED = 4
"""Addresses that a thread may compute before it uses them."""
_PLAIN = Swizzle(0, 4, 3)


class _Writer(NamedTuple):
    """By which swizzle something was written, and what wrote it."""

    swizzle: Swizzle
    by: str


class Swizzles(Check):
    """Remembers of each byte of shared memory by which swizzle of addresses TMA, or a swizzled pointer, wrote it. Who
    reads it must find each byte where that one put it. Plain stores leave no trace, for addresses may be computed by
    hand."""

    name = "swizzles"
    summary = "shared memory that TMA or a swizzled store wrote, read by another swizzle"
    clocks = True  # operations under way are told of where threads have clocks

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._tags: dict[Any, NDArray[np.int32]] = {}  # by memory: of each byte the number of its writer, 0 of none
        self._writers: list[_Writer | None] = [None]
        self._numbers: dict[_Writer, int] = {}
        self._computed: dict[Any, dict[int, Swizzle]] = {}  # by thread: its last swizzled addresses
        self._issued: dict[Any, Swizzle] = {}  # of issues whose effect is still to come

    def exits(self, cta: Any) -> None:
        self._tags.pop(cta.smem, None)

    def swizzles(self, thread: Any, swizzle: Any, address: int) -> None:
        mine = self._computed.setdefault(thread, {})
        mine.pop(address, None)
        mine[address] = swizzle
        if len(mine) > _REMEMBERED:
            del mine[next(iter(mine))]

    def issues(self, m: Any, op: Any) -> None:
        for _, region, _ in op.held:
            found = self._of_threads(m, region)
            if found is not None:
                self._issued[m] = found

    def lies(self, m: Any, memory: Any, region: Any, write: bool, swizzle: int | str | None) -> None:
        issued = self._issued.get(m)
        if write:
            self._writes(m, memory, region, swizzle, issued)
            return
        tags = self._tags.get(memory)
        if tags is None or memory is not m.cta.smem and swizzle is None:  # a peer's, by an address of any origin
            return
        found = region.get(tags)
        if not found.any():
            return
        said = self._of_threads(m, region) if issued is None else issued
        if said is not None and not said.bits:
            return
        reader = _named(swizzle) if swizzle is not None else said
        if reader is not None:
            self._compare(m, memory, region, found, reader)
        elif swizzle is None and (m.row is None or isinstance(region, Rows)):  # others take bytes as they lie
            self._compare(m, memory, region, found, _PLAIN)

    def _writes(self, m: Any, memory: Any, region: Any, swizzle: int | str | None, issued: Swizzle | None) -> None:
        by = issued
        if swizzle is not None:
            by = _named(swizzle)
        elif issued is None:
            by = self._of_threads(m, region)
        if by is None or swizzle is None and not by.bits:
            if memory in self._tags:
                region.set(self._tags[memory], 0)
            return
        what = m.row.name if m.row is not None else "a store"
        writer = _Writer(by, f"{what} of {m.describe()} at {m.place}")
        if writer not in self._numbers:
            self._numbers[writer] = len(self._writers)
            self._writers.append(writer)
        tags = self._tags.get(memory)
        if tags is None:
            tags = self._tags[memory] = np.zeros(memory.data.size, np.int32)
        region.set(tags, self._numbers[writer])

    def _of_threads(self, m: Any, region: Any) -> Swizzle | None:
        """By which swizzle the threads computed where a region begins; None: by none that they told."""
        if isinstance(region, Rows):
            starts: Any = region.rows * region.size
            for thread, start in zip(m.threads, starts.tolist()):
                found = self._computed.get(thread, {}).get(start)
                if found is not None:
                    return found
            return None
        return self._computed.get(m.threads[0], {}).get(region.start)

    def _compare(self, m: Any, memory: Any, region: Any, found: Any, reader: Swizzle) -> None:
        for number in np.unique(found).tolist():
            writer = self._writers[number]
            if writer is None or writer.swizzle == reader:
                continue
            at = _addresses(region)[found == number]
            apart = at[_permuted(at, writer.swizzle) != _permuted(at, reader)]
            if apart.size:
                self._report(m, memory, int(apart[0]), writer, reader)

    def _report(self, m: Any, memory: Any, address: int, writer: _Writer, reader: Swizzle) -> None:
        issue = f"{m.row.name} of " if m.row is not None else ""
        how = f"by the swizzle {reader}" if reader.bits else "without a swizzle"
        wrote = f"by the swizzle {writer.swizzle}" if writer.swizzle.bits else "without a swizzle"
        raise SwizzleError(
            f"wrong swizzle: shared memory {memory.name(address)} is read {how} by {issue}{m.describe()} at {m.place}, "
            f"but was written {wrote}\n"
            f"  by {writer.by}\n"
            f"  fix: read and write it by tensors of one swizzle: the same get_tensor(layout.outer, "
            f"swizzle=layout.inner); if the bytes are meant as they lie, say so: cute.recast_ptr(ptr, reinterpret=True)"
        )


def _addresses(region: Any) -> Any:
    """The address of each byte of a region of shared memory."""
    if isinstance(region, Rows):
        return (region.rows[:, None] * region.size + np.arange(region.size)).ravel()
    return np.arange(region.start, region.stop)


def _named(name: int | str) -> Swizzle | None:
    found = swizzle_parameters(name)
    return None if found is None else Swizzle(*found)


def _permuted(addresses: Any, swizzle: Swizzle) -> Any:
    y = addresses & swizzle.y_mask
    return addresses ^ (y >> swizzle.shift if swizzle.shift >= 0 else y << -swizzle.shift)
