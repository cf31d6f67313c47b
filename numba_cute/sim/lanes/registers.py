# SPDX-License-Identifier: Apache-2.0
"""Registers of lanes that run together: files and vectors of which each lane has its own."""

from __future__ import annotations

from typing import Any

from ...dtypes import from_numpy
from ...seam import Leaf


class LaneVector(Leaf):
    """A vector of registers (`Backend.vector`) for each lane: an array (lanes, count)."""

    __slots__ = ("convoy", "lanes", "_array")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, convoy: Any, array: Any, lanes: Any = None) -> None:
        self.convoy, self._array, self.lanes = convoy, array, lanes or convoy.lanes

    @property
    def array(self) -> Any:
        if self.lanes is not self.convoy.lanes:
            self._array = self._array[self.convoy.positions(self.lanes)]
            self.lanes = self.convoy.lanes
        return self._array

    def held(self) -> LaneVector:
        return LaneVector(self.convoy, self._array, self.lanes)

    def __len__(self) -> int:
        return int(self._array.shape[1])

    def __getitem__(self, at: int) -> Any:
        """One element of each lane."""
        array = self.array
        return self.convoy.of_array(from_numpy(array.dtype), array[:, at])


class Apart:
    """Of which each lane has one of its own."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def of(self, thread: Any) -> Any:
        """The one of a thread."""
        raise NotImplementedError


class LaneFile(Apart):
    """A register file of each lane: the rows of the slab `base` from the thread of index `first` on."""

    __slots__ = ("base", "first")

    def __init__(self, slab: Any, first: int) -> None:
        self.base, self.first = slab, first

    def rows(self, convoy: Any) -> Any:
        """What selects the lanes' rows: a slice where they lie side by side."""
        threads = convoy.threads
        low, high = threads[0].index - self.first, threads[-1].index - self.first
        if high - low + 1 == len(threads):
            return slice(low, high + 1)
        return [t.index - self.first for t in threads]

    def of(self, thread: Any) -> Any:
        """The file of one thread."""
        return self.base[thread.index - self.first]
