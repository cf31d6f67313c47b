# SPDX-License-Identifier: Apache-2.0
"""One access to memory: who made it and when, by vector clocks, and which bytes it touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...isa.form.instr import CP_ASYNC_GROUP
from .clocks import SMEM, Clock, Standing, ThreadClock, alike, distinct_bases
from .ordering import together

Ids = NDArray[np.int32]
Brought = list[tuple[int, bytes]]
"""The bytes that a copy has brought to shared memory, with their places: nothing before it is complete."""


def all_true(flags: Any) -> bool:
    """Tell whether all are true, faster than `all` does for few."""
    return bool(np.count_nonzero(flags) == flags.size)


class Access:
    """One access as the shadow remembers it: by threads [lo, hi) at their epochs, or by what completes asynchronous
    work (then `group` says which kind: "mbarrier", "bulk_group", …, and `on` which barrier)."""

    __slots__ = ("cluster", "unit", "lo", "hi", "epoch", "row", "threads", "place", "atomic", "wrote", "constant",
                 "group", "on", "number", "as_one", "copies", "_asked")  # fmt: skip

    def __init__(self, m: Any, lo: int, hi: int, epoch: Any, group: str | None, on: Any, atomic: Any = None) -> None:
        self.cluster, self.unit, self.row = m.cta.cluster, m.unit, m.row
        self.threads, self.place = m.threads, m.place
        self.lo, self.hi, self.epoch, self.group, self.on, self.atomic = lo, hi, epoch, group, on, atomic
        self.wrote = False  # an atomic that changes memory, or what wrote before one
        self.constant = False  # a read through the read-only cache
        self._asked: tuple[Any, ...] = (None, 0, [])
        self.number = 0  # in the order in which accesses were noted
        self.copies: Brought | None = [] if group == CP_ASYNC_GROUP else None  # of a cp.async
        self.as_one = group is None and m.unit is not None and bool(m.row.alike)
        """True if a warp did it as one, at one address that all its lanes gave: each lane did, in its program order."""

    def known(self, t: ThreadClock, row: int) -> bool:
        """Tell whether the thread knows of the access, for the purpose of `row`."""
        if self.as_one and self.lo <= t.agent < self.hi:
            return True
        if isinstance(self.epoch, int):
            return t.knows(row, self.lo, self.epoch)
        unknown = self._unknown(t.base, row)
        if self.lo <= t.agent < self.hi:
            return unknown in ([], [t.agent]) and t.knows(row, t.agent, int(self.epoch[t.agent - self.lo]))
        return not unknown

    def _unknown(self, clock: Clock, row: int) -> list[int]:
        """The threads of whose access a clock of their cluster does not know; kept for the next who asks the same."""
        if self._asked[0] is not clock or self._asked[1] != row:
            known = clock.v[row, self.lo : self.hi]
            known = np.pad(known, (0, self.hi - self.lo - len(known)))
            self._asked = clock, row, (np.flatnonzero(known < self.epoch) + self.lo).tolist()
        return self._asked[2]  # type: ignore[no-any-return]

    def known_by(self, clocks: Sequence[ThreadClock], row: int) -> bool:
        """Tell whether all these threads know of the access, for the purpose of `row`."""
        if row < SMEM and len(clocks) > 1 and all(self.within(base, row) for base in distinct_bases(clocks)):
            return True  # their own accesses among them
        return all(self.known(t, row) for t in self.to_ask(clocks))

    def to_ask(self, clocks: Sequence[ThreadClock]) -> Iterable[ThreadClock]:
        """Those of some threads, in their order, that may give other answers than the one before."""
        bases = clocks.now().bases if type(clocks) is Standing else [t.base for t in clocks]
        if clocks.alike if type(clocks) is Standing else alike(bases):
            if self.hi <= clocks[0].agent or clocks[-1].agent < self.lo:
                return clocks[:1]
            return [t for i, t in enumerate(clocks) if not i or self._has(t) or self._has(clocks[i - 1])]
        begins = [0, *(i for i in range(1, len(bases)) if bases[i] is not bases[i - 1])]
        ends = [*begins[1:], len(bases)]
        return chain.from_iterable(self.to_ask(clocks[a:b]) for a, b in zip(begins, ends))

    def _has(self, t: ThreadClock) -> bool:
        return self.lo <= t.agent < self.hi

    def within(self, clock: Clock, row: int) -> bool:
        """Tell whether the clock, of any cluster, knows of the access, for the purpose of `row`."""
        v = clock.v if clock.cluster is self.cluster else clock.others.get(self.cluster)
        if isinstance(self.epoch, int) and self.hi - self.lo == 1:
            return v is not None and self.hi <= v.shape[1] and bool(v[row, self.lo] >= self.epoch)
        return v is not None and self.hi <= v.shape[1] and bool((v[row, self.lo : self.hi] >= self.epoch).all())

    def same_phase(self) -> bool:
        """Tell whether the phase that a copy completes has still to complete."""
        return bool(self.on.phase < self.epoch)

    def one_step(self, atomic: Any, m: Any) -> bool:
        """Tell whether this and an atomic of `m`, with that scope, are atomic for each other: no race."""
        return atomic and self.atomic and together(atomic, self.atomic, m.cta, self.threads[0].cta)


class Region:
    """Part of one memory: its shadow's elements can be read and set."""

    __slots__ = ("start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop

    @property
    def nbytes(self) -> int:
        return self.stop - self.start

    def get(self, shadow: Ids) -> Ids:
        return shadow[self.start : self.stop]

    def set(self, shadow: Ids, value: Any) -> None:
        shadow[self.start : self.stop] = value

    def address(self, at: int) -> int:
        """The address of the `at`-th byte of the region."""
        return self.start + at

    @property
    def hull(self) -> tuple[int, int]:
        """Its first byte, and the first behind it."""
        return self.start, self.stop


class Rows(Region):
    """Pieces of the same size: `size` bytes at each of `addresses`, which are multiples of `size`."""

    __slots__ = ("rows", "size", "aligned", "lasting", "_hull")

    def __init__(self, addresses: NDArray[np.int64], size: int) -> None:
        self.rows, self.size = addresses // size, size
        self.aligned = all_true(self.rows * size == addresses)
        self.lasting = False  # whether the same accesses come with the same object
        self._hull: tuple[int, int] | None = None

    @property
    def nbytes(self) -> int:
        return self.rows.size * self.size

    def part(self, start: int, stop: int) -> Rows:
        """Some of the pieces."""
        return Rows(self.rows[start:stop] * self.size, self.size)

    @property
    def apart(self) -> bool:
        """Say whether no two of them are the same."""
        rows = np.sort(self.rows)
        return all_true(rows[1:] != rows[:-1])

    def put(self, shadow: Ids, of_rows: Ids) -> None:
        """Set each piece to a value of its own."""
        shadow.reshape(-1, self.size)[self.rows] = of_rows[:, None]

    def get(self, shadow: Ids) -> Ids:
        return shadow.reshape(-1, self.size).take(self.rows, 0).ravel()

    def set(self, shadow: Ids, value: Any) -> None:
        if isinstance(value, np.ndarray):
            shadow.reshape(-1, self.size)[self.rows] = value.reshape(-1, self.size)
            return
        row: Any = np.full(self.size, value, shadow.dtype).view(f"V{self.size * shadow.itemsize}")
        shadow.view(row.dtype).put(self.rows, row)  # faster than by an index

    def address(self, at: int) -> int:
        return int(self.rows[at // self.size]) * self.size + at % self.size

    @property
    def hull(self) -> tuple[int, int]:
        if self._hull is None:
            self._hull = int(self.rows.min()) * self.size, (int(self.rows.max()) + 1) * self.size
        return self._hull


_ROWS: dict[tuple[int, int], tuple[Any, Rows]] = {}


def rows_of(addresses: NDArray[np.int64], size: int) -> Rows:
    """Give the rows at addresses: the same for the same array, if nobody can write to it."""
    if addresses.flags.writeable:
        return Rows(addresses, size)
    found = _ROWS.get((id(addresses), size))
    if found is None:
        if len(_ROWS) >= 8192:
            _ROWS.clear()
        found = _ROWS[id(addresses), size] = addresses, Rows(addresses, size)
        found[1].lasting = True
    return found[1]


class Pieces(Region):
    """Pieces of the same size, one for each thread that accesses them: `size` bytes at each of `starts`, which may be
    the same or overlap."""

    __slots__ = ("starts", "size", "apart", "_index")

    def __init__(self, starts: NDArray[np.int64], size: int) -> None:
        self.starts, self.size = starts, size
        self.start = int(starts[0])
        gaps = starts[1:] - starts[:-1]
        self._index: Any
        if all_true(gaps == size):  # one after the other, as mostly
            self._index, self.apart = slice(self.start, self.start + size * len(starts)), True
        else:
            self._index = starts[:, None] + np.arange(size)
            self.apart = all_true(gaps >= size) or all_true(np.diff(np.sort(starts)) >= size)

    @property
    def nbytes(self) -> int:
        return len(self.starts) * self.size

    def rows(self, memory: NDArray[Any]) -> Any:
        """A thread's piece in each row."""
        return memory[self._index].reshape(-1, self.size)

    def put(self, memory: NDArray[Any], rows: Any) -> None:
        """Set the threads' pieces. rows: one for each, or a value for all."""
        if isinstance(self._index, slice) and isinstance(rows, np.ndarray):
            memory[self._index].reshape(-1, self.size)[...] = rows
        else:
            memory[self._index] = rows

    def some(self, start: int, stop: int) -> Pieces:
        """The pieces of some threads."""
        return Pieces(self.starts[start:stop], self.size)

    def one(self, at: int) -> Region:
        """The piece of one thread."""
        start = int(self.starts[at])
        return Region(start, start + self.size)

    @property
    def hull(self) -> tuple[int, int]:
        if isinstance(self._index, slice):
            return self._index.start, self._index.stop
        return int(self.starts.min()), int(self.starts.max()) + self.size

    def get(self, shadow: Ids) -> Ids:
        found: Ids = self.rows(shadow).ravel()
        return found

    def set(self, shadow: Ids, value: Any) -> None:
        self.put(shadow, value.reshape(-1, self.size) if isinstance(value, np.ndarray) else value)

    def address(self, at: int) -> int:
        return int(self.starts[at // self.size]) + at % self.size


class Box(Region):
    """A box of elements in memory: the byte strides of an array of `shape`, outermost first, from `start` on."""

    __slots__ = ("shape", "strides")

    def __init__(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        self.start = start
        self.shape, self.strides = (*shape, itemsize), (*strides, 1)
        self.stop = start + int(np.prod(self.shape))  # so that there are so many bytes, wherever they lie

    def _view(self, shadow: Ids) -> Ids:
        return np.lib.stride_tricks.as_strided(
            shadow[self.start :], self.shape, [shadow.itemsize * s for s in self.strides]
        )

    def get(self, shadow: Ids) -> Ids:
        return self._view(shadow).ravel()

    def set(self, shadow: Ids, value: Any) -> None:
        self._view(shadow)[...] = value.reshape(self.shape) if isinstance(value, np.ndarray) else value

    def address(self, at: int) -> int:
        return self.start + sum(int(i) * s for i, s in zip(np.unravel_index(at, self.shape), self.strides))

    @property
    def hull(self) -> tuple[int, int]:
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides)]
        return self.start + sum(min(0, r) for r in reach), self.start + sum(max(0, r) for r in reach) + 1
