# SPDX-License-Identifier: Apache-2.0
"""The check `swizzles`: shared memory that is read by another swizzle than it was written by, or as swizzled elements
of another width."""

from __future__ import annotations

import functools
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...isa.facts.canonical import swizzle_parameters
from ...layout import Swizzle
from ..ground.access import Pieces, Region, Rows
from ..ground.report import Place, SwizzleError
from ..hardware.together import NotTogether
from ..hardware.watch import Check
from .races.shadow import distinct
from .races.tiles import LEAST, Tiles

_REMEMBERED = 4
"""Addresses that a thread may compute before it uses them."""


class _Lay(NamedTuple):
    """A layout of elements in memory: the swizzle of their addresses, and the bits of one (0: any, as for those smaller
    than a byte)."""

    swizzle: Swizzle
    width: int


class _Writer(NamedTuple):
    """The layout of written data, and the writer and its place."""

    lay: _Lay
    what: str
    place: Place


class Swizzles(Check):
    """Remembers of each byte of shared memory by which swizzle of addresses TMA, or a swizzled pointer, wrote it, as
    elements of how many bits. Who reads it must find each byte where that one put it, and a swizzled view must have
    elements as wide, unless it was made of the other by recast_ptr or recast_tensor. Plain stores leave no trace, for
    addresses may be computed by hand."""

    name = "swizzles"
    summary = (
        "shared memory that TMA or a swizzled store wrote, read by another swizzle or as wider or narrower elements"
    )
    clocks = True  # operations under way are told of where threads have clocks

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._tags: dict[Any, NDArray[np.int32]] = {}  # by memory: of each byte the number of its writer, 0 of none
        self._tiles: dict[Any, Tiles] = {}  # by memory: the same of whole ranges
        self._writers: list[_Writer | None] = [None]
        self._numbers: dict[_Writer, int] = {}
        self._computed: dict[Any, dict[Any, _Lay]] = {}  # by thread: its last swizzled addresses
        """For lanes that run together, by their convoy: pairs of the lanes and an address for each."""
        self._parts: dict[Any, dict[tuple[Any, int], _Lay]] = {}  # by memory: parts of threads' swizzled tensors
        self._issued: dict[Any, _Lay] = {}  # of issues whose effect is still to come
        self._meant: dict[Any, dict[tuple[int, int], int]] = {}  # by memory, of two widths: from which address on

    def exits(self, cta: Any) -> None:
        self._tags.pop(cta.smem, None)
        self._tiles.pop(cta.smem, None)
        self._meant.pop(cta.smem, None)
        self._parts.pop(cta.smem, None)

    def forgets(self, clusters: set[Any]) -> None:
        self._computed.clear()
        self._issued.clear()

    def swizzles(self, thread: Any, swizzle: Any, address: Any, width: int) -> None:
        lay, f = _lay(swizzle, width), thread.convoy
        mine = self._computed.setdefault(thread if f is None else f, {})
        key: Any = address if f is None else (f.lanes, tuple(map(int, f.lists(address))))
        mine.pop(key, None)
        mine[key] = lay
        if len(mine) > _REMEMBERED:
            del mine[next(iter(mine))]

    def part_by_swizzle(self, thread: Any, swizzle: Any, addresses: Any, width: int) -> None:
        parts = self._parts.setdefault(thread.cta.smem, {})
        parts.update(dict.fromkeys([(thread, a) for a in addresses], _lay(swizzle, width)))

    def reinterprets(self, thread: Any, address: int, width: int, other: int) -> None:
        smem = thread.cta.smem
        meant = self._meant.setdefault(smem, {})
        address -= smem.start if address >= smem.start else 0  # of a generic pointer
        for pair in ((width, other), (other, width)):
            meant[pair] = min(address, meant.get(pair, address))

    def issues(self, m: Any, op: Any) -> None:
        for _, region, _ in op.held:
            found = self._of_threads(m, region)
            if found is not None:
                self._issued[m] = found

    def lies(self, m: Any, memory: Any, region: Any, write: bool) -> None:
        lay = None if m.lay is None else _named(*m.lay)
        issued = self._issued.get(m)
        if write:
            self._writes(m, memory, region, lay, issued)
            return
        tags = self._tags.get(memory)
        if tags is None or memory is not m.cta.smem and m.lay is None:  # a peer's, by an address of any origin
            return
        found = self._tiles[memory].writers(*region.hull) if region.nbytes >= LEAST else None
        numbers = distinct(region.get(tags)) if found is None else found
        if not any(numbers):
            return
        said = self._of_threads(m, region) if issued is None else issued
        if said is not None and not said.swizzle.bits:
            return
        reader = lay if m.lay is not None else said
        if reader is not None:
            self._compare(m, memory, region, numbers, reader)
        elif m.lay is None and (m.row is None or isinstance(region, Rows)):  # others take bytes as they lie
            self._compare(m, memory, region, numbers, _PLAIN)

    def _writes(self, m: Any, memory: Any, region: Any, lay: _Lay | None, issued: _Lay | None) -> None:
        by = issued
        if m.lay is not None:
            by = lay
        elif issued is None:
            by = self._of_threads(m, region)
        if by is None or m.lay is None and not by.swizzle.bits:
            if memory in self._tags:
                self._set(memory, region, 0)
            return
        what = m.row.name if m.row is not None else "a store"
        writer = _Writer(by, f"{what} of {m.describe()}" if self.run.reports else "", m.place)
        if writer not in self._numbers:
            self._numbers[writer] = len(self._writers)
            self._writers.append(writer)
        tags = self._tags.get(memory)
        if tags is None:
            tags = self._tags[memory] = np.zeros(memory.data.size, np.int32)
            self._tiles[memory] = Tiles()
        self._set(memory, region, self._numbers[writer])

    def _set(self, memory: Any, region: Any, number: int) -> None:
        """Remember the number of a region's writer."""
        region.set(self._tags[memory], number)
        whole = type(region) is Region and region.nbytes >= LEAST
        start, stop = region.hull
        self._tiles[memory].wrote(start, stop, number if whole else None)

    def _of_threads(self, m: Any, region: Any) -> _Lay | None:
        """By which swizzle, and for which elements, the threads computed where a region begins; None: by none that they
        told."""
        if not self._computed and not self._parts:
            return None
        if isinstance(region, Rows):
            pairs = zip(m.threads, (region.rows * region.size).tolist())
            for f, group in groupby(pairs, key=lambda pair: pair[0].convoy):
                own = list(group)
                if f is not None and not self._parts and not self._computes_any(f, {start for _, start in own}):
                    continue
                found = next((lay for t, start in own if (lay := self._of(t, start)) is not None), None)
                if found is not None:
                    return found
            return None
        if isinstance(region, Pieces):
            of_all = self._computed.get(m.threads[0].convoy, {})
            newest = next(reversed(of_all), None)
            if newest == (m.threads[0].convoy.lanes, tuple(region.starts.tolist())):
                return of_all[newest]
            lays = {self._of(t, start) for t, start in zip(m.threads, region.starts.tolist())}
            if len(lays) > 1:
                raise NotTogether("lanes have computed their addresses in different ways")
            return lays.pop()
        return self._of(m.threads[0], region.start)

    def _computes_any(self, f: Any, addresses: set[int]) -> bool:
        """Tell whether a lane of those that run together has computed one of some addresses."""
        return any(not addresses.isdisjoint(at) for _, at in self._computed.get(f, ()))

    def _of(self, thread: Any, address: int) -> _Lay | None:
        """The lay of an address as a thread computed it last, or of the part of a tensor that begins there."""
        f = thread.convoy
        if f is None:
            found = self._computed.get(thread, {}).get(address)
        else:
            last = reversed(self._computed.get(f, {}).items())
            own = ((at[lanes.index(thread.index)], lay) for (lanes, at), lay in last if thread.index in lanes)
            found = next((lay for at, lay in own if at == address), None)
        return self._parts.get(thread.cta.smem, {}).get((thread, address)) if found is None else found

    def _compare(self, m: Any, memory: Any, region: Any, numbers: set[int], reader: _Lay) -> None:
        """Compare how a region is read with how its writers, or those of a range around it, have laid it."""
        if all(w is None or w.lay == reader for w in map(self._writers.__getitem__, numbers)):
            return
        found = region.get(self._tags[memory])
        for number in sorted(distinct(found)):
            writer = self._writers[number]
            if writer is None or writer.lay == reader:
                continue
            at = _addresses(region)[found == number]
            apart = at[_permuted(at, writer.lay.swizzle) != _permuted(at, reader.swizzle)]
            if apart.size:
                self._report(m, memory, int(apart[0]), writer, reader, _FIX)
            if self._other_elements(m, memory, int(at[0]), writer.lay, reader):
                self._report(m, memory, int(at[0]), writer, reader, _FIX_WIDTH)

    def _other_elements(self, m: Any, memory: Any, address: int, writer: _Lay, reader: _Lay) -> bool:
        """Say whether a swizzled view has elements of another width than those that were written, and nobody said that
        they are meant."""
        if not writer.swizzle.bits or not reader.swizzle.bits or not writer.width or not reader.width:
            return False
        if writer.width == reader.width:
            return False
        period, pair = max(writer.swizzle.period, reader.swizzle.period), (writer.width, reader.width)
        # of a pair's other CTA an operation takes what lies where its own does
        said = (self._meant.get(smem, {}).get(pair) for smem in (memory, m.cta.smem))
        return all(first is None or address | (period - 1) < first for first in said)

    def _report(self, m: Any, memory: Any, address: int, writer: _Writer, reader: _Lay, fix: str) -> None:
        issue = f"{m.row.name} of " if m.row is not None else ""
        wide = fix is _FIX_WIDTH
        raise SwizzleError(
            f"wrong {'elements' if wide else 'swizzle'}: shared memory {memory.name(address)} is read "
            f"{_shown(reader, wide)} by {issue}{m.describe()} at {m.place}, but was written "
            f"{_shown(writer.lay, wide)}\n"
            f"  by {writer.what} at {writer.place}\n"
            f"  fix: {fix}"
        )


def _lay(swizzle: Swizzle, width: int) -> _Lay:
    return _Lay(swizzle, width if width >= 8 else 0)


_PLAIN = _Lay(Swizzle(0, 4, 3), 0)
_FIX = (
    "read and write it by tensors of one swizzle: the same get_tensor(layout.outer, swizzle=layout.inner); if the "
    "bytes are meant as they lie, say so: cute.recast_ptr(ptr, reinterpret=True)"
)
_FIX_WIDTH = (
    "read and write it by tensors of one element type; if the bits are meant, make the one tensor of the other: "
    "cute.recast_tensor(tensor, dtype)"
)


def _shown(lay: _Lay, wide: bool) -> str:
    by = f"by the swizzle {lay.swizzle}" if lay.swizzle.bits else "without a swizzle"
    return f"as elements of {lay.width} bits {by}" if wide else by


def _addresses(region: Any) -> Any:
    """The address of each byte of a region of shared memory."""
    if isinstance(region, Pieces):
        return (region.starts[:, None] + np.arange(region.size)).ravel()
    if isinstance(region, Rows):
        return (region.rows[:, None] * region.size + np.arange(region.size)).ravel()
    return np.arange(region.start, region.stop)


@functools.cache
def _named(name: int | str, width: int) -> _Lay | None:
    found = swizzle_parameters(name)
    return None if found is None else _lay(Swizzle(*found), width)


def _permuted(addresses: Any, swizzle: Swizzle) -> Any:
    y = addresses & swizzle.y_mask
    return addresses ^ (y >> swizzle.shift if swizzle.shift >= 0 else y << -swizzle.shift)
