# SPDX-License-Identifier: Apache-2.0
"""Shared memory as copies and multiplies use it: whole ranges that one access wrote, and patterns of rows that are read
again and again. Where no report is to name bytes (`Run.reports`), the shadow looks at these in place of its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ground.access import Region, Rows

LEAST = 1024
"""The bytes of a range or pattern from which on it is looked at as a whole."""
MOST = 256
"""Patterns of a memory that are remembered apart from its bytes."""


class Pattern:
    """A region that was read, of which [start, stop) has not been written since. readers: the set of who read it."""

    __slots__ = ("region", "start", "stop", "readers")

    start: int
    stop: int

    def __init__(self, region: Any) -> None:
        self.region, self.readers = region, 0
        self.start, self.stop = region.hull

    def meets(self, start: int, stop: int) -> bool:
        """Tell whether some of it lies in a range."""
        return self.start < stop and start < self.stop

    def around(self, start: int, stop: int) -> bool:
        """Tell whether it goes on at both sides of a range."""
        return self.start < start and stop < self.stop

    def part(self) -> Region:
        """Give what has not been written since."""
        r = self.region
        if (self.start, self.stop) == r.hull:
            return r  # type: ignore[no-any-return]
        if not isinstance(r, Rows):
            return Region(self.start, self.stop)
        first = r.rows * r.size
        return Rows(first[(first + r.size > self.start) & (first < self.stop)], r.size)


class Tiles:
    """written: ranges [start, stop) that one access each has written last. patterns: what was read since, by region,
    as far as the bytes' readers do not say so."""

    __slots__ = ("written", "patterns")

    def __init__(self) -> None:
        self.written: list[tuple[int, int, int]] = []
        self.patterns: dict[Any, Pattern] = {}

    def writers(self, start: int, stop: int) -> set[int] | None:
        """Return the last writers of a range; None if they are not known for all of it."""
        found, missing = set(), stop - start
        for first, last, who in self.written:
            if first < stop and start < last:
                found.add(who)
                missing -= min(last, stop) - max(first, start)
        return found if not missing else None

    def wrote(self, start: int, stop: int, who: int | None = None) -> None:
        """Somebody has written in a range; `who`: one access all of it."""
        if any(first < stop and start < last for first, last, _ in self.written):
            self.written = [t for t in self.written if t[1] <= start or stop <= t[0]]
        if who is not None:
            self.written.append((start, stop, who))

    def within(self, start: int, stop: int) -> Iterator[Pattern]:
        """Give the patterns that meet a range."""
        return (p for p in self.patterns.values() if p.meets(start, stop))

    def pattern(self, key: Any, region: Region) -> Pattern:
        """Give the pattern of a region that is read; what was read of it before is taken for read now."""
        found = self.patterns.setdefault(key, Pattern(region))
        found.start, found.stop = region.hull
        return found

    def overwritten(self, start: int, stop: int) -> None:
        """A range is written in one, so that whoever read it is known to whoever comes after that. No pattern is
        `around` it."""
        for key, p in [*self.patterns.items()]:
            if p.meets(start, stop):
                if p.start < start:
                    p.stop = start
                elif stop < p.stop:
                    p.start = stop
                else:
                    del self.patterns[key]
