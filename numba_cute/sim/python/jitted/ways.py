# SPDX-License-Identifier: Apache-2.0
"""Find the copy that a function's code stands for as it runs: by which calls it was inlined, and in which rounds of
unrolled loops it is (`typed.meetings.Way`)."""

from __future__ import annotations

import bisect
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ....typed.meetings import Site, Way
from .bytecode import Instruction


class Origin(NamedTuple):
    """The code that was rewritten, and, in order, the offsets of its instructions now and as they were."""

    code: CodeType
    offsets: list[tuple[int, int]]

    def site(self, frame: FrameType) -> Site:
        """Return the instruction, of the code as it was written, that a frame runs."""
        at = bisect.bisect_right(self.offsets, (frame.f_lasti, sys.maxsize)) - 1  # it may lie in its caches
        return self.code, self.offsets[at][1]


ORIGINS: weakref.WeakKeyDictionary[CodeType, Origin] = weakref.WeakKeyDictionary()
"""The origins of rewritten code whose functions ask by which way they run."""


class _Rounds:
    """An iterator that counts. nth: which round its loop is in."""

    __slots__ = ("_items", "nth", "__weakref__")

    def __init__(self, items: Iterator[Any]) -> None:
        self._items, self.nth = items, -1

    def __iter__(self) -> _Rounds:
        return self

    def __next__(self) -> Any:
        value = next(self._items)
        self.nth += 1
        return value


_ROUNDS: weakref.WeakValueDictionary[tuple[int, int], _Rounds] = weakref.WeakValueDictionary()
"""The iterators of loops that run, which their frames alone hold, by the frame and where a round begins."""


def counting(offset: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what makes of a loop's iterator one that counts its rounds. offset: where a round begins."""

    def count(items: Iterator[Any]) -> Iterator[Any]:
        made = _ROUNDS[id(sys._getframe(1)), offset] = _Rounds(items)
        return made

    return count


def iterators(instructions: list[Instruction], loops: Iterable[int]) -> dict[int, int]:
    """Return the loops' offsets by the positions of the instructions that leave their iterators on the stack."""
    found = {}
    for offset in loops:
        at = next(n for n, i in enumerate(instructions) if 2 * i.offset >= offset)
        while not (instructions[at].name == "GET_ITER" or instructions[at].value == ".0"):
            at -= 1
        found[at] = offset
    return found


def running(frame: FrameType) -> Site | None:
    """Return the instruction that a frame runs; None if its code was not rewritten."""
    origin = ORIGINS.get(frame.f_code)
    return None if origin is None else origin.site(frame)


def chosen(ways: dict[Way, Any], frame: Any) -> Any:
    """Return what belongs to the way by which a frame runs, of several ways; None if it is none of them."""
    most = max(len(way.sites) for way in ways)
    standing: list[tuple[Site, int]] = []
    while frame is not None and len(standing) <= most:
        origin = ORIGINS.get(frame.f_code)
        if origin is not None:
            standing.append((origin.site(frame), id(frame)))
        frame = frame.f_back
    for way in sorted(ways, key=lambda w: (len(w.sites), len(w.rounds)), reverse=True):
        sites = tuple(site for site, _ in standing[len(way.sites) : 0 : -1])
        if sites == way.sites and all(_is_in(standing, loop, nth) for loop, nth in way.rounds):
            return ways[way]
    return None


def _is_in(standing: list[tuple[Site, int]], loop: Site, nth: int) -> bool:
    """Say whether one of the frames is in that round of a loop."""
    code, offset = loop
    found = [_ROUNDS.get((frame, offset)) for (c, _), frame in standing if c is code]
    return any(rounds is not None and rounds.nth == nth for rounds in found)
