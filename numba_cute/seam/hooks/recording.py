# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline: kernels tell them while one is recorded (`cute.timeline`).

Nothing is recorded, and nothing compiled, while `recording()` is None."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

PUSH, POP, MARK = 0, 1, 2
KINDS = ("push", "pop", "mark")

NAMES: dict[str, int] = {"": 0}
"""The numbers of names, by which compiled code writes them; those of all kernels."""


class Event(NamedTuple):
    """Something that a warp told. clock: the SM's cycles, or in the simulator the instructions that all threads have
    issued. time: nanoseconds of the GPU's timer (the simulator's clock again). sm: which one ran it. block: x, y, z.
    warp: within the block. kind: "push", "pop" or "mark". name: what it was told with ("" of a pop). payload: an
    integer, or None. kernel: whose event it is."""

    clock: int
    time: int
    sm: int
    block: tuple[int, int, int]
    warp: int
    kind: str
    name: str
    payload: int | None
    kernel: str


class Recorder:
    """The events of the launches that run while it is active. most: of a warp. blocks: the first so many are recorded.
    clock: what `Event.clock` counts. lost: events for which a warp had no more room."""

    def __init__(self, most: int, blocks: int) -> None:
        self.most, self.blocks = most, blocks
        self.clock = "cycles"
        self.lost = 0
        self.events: list[Event] = []
        self._lanes: dict[Any, list[tuple[int, Event]]] = {}

    def told(self, launch: int, lane: int, event: Event) -> None:
        """Note an event of one lane, in the simulator: a warp tells what its lowest lane does. launch: its number."""
        self.clock = "instructions"
        self._lanes.setdefault((launch, event.block, event.warp), []).append((lane, event))

    def settle(self) -> None:
        """Make events of warps of those that their lanes told."""
        for told in self._lanes.values():
            found = of_a_warp(told)
            self.events += found[: self.most]
            self.lost += len(found[self.most :])
        self._lanes.clear()
        self.events.sort(key=lambda e: e.clock)


def of_a_warp(told: list[tuple[int, Event]]) -> list[Event]:
    """Return a warp's events of those that its lanes told, in that order: what several lanes do together is one, of the
    lowest. Lanes do the same if it is the same name for as many times, and a range ends where it began."""
    lowest: dict[Any, tuple[int, Event]] = {}
    counts: dict[Any, int] = {}
    begun: dict[int, list[Any]] = {}
    for lane, event in told:
        stack = begun.setdefault(lane, [])
        if event.kind == "pop":
            key: Any = ("pop", stack.pop() if stack else None)
        else:
            nth = counts[lane, event.kind, event.name] = counts.get((lane, event.kind, event.name), 0) + 1
            key = (event.kind, event.name, nth)
            if event.kind == "push":
                stack.append(key)
        if key not in lowest or lane < lowest[key][0]:
            lowest[key] = lane, event
    return sorted((event for _, event in lowest.values()), key=lambda e: e.clock)


class _Active(threading.local):
    def __init__(self) -> None:
        self.recorders: list[Recorder] = []


_active = _Active()
ACTIVE = ctypes.c_int64(0)
"""The number of recorders of all threads: launches in machine code look at it."""


def recording() -> Recorder | None:
    """Return what records launches now, if anything does."""
    return _active.recorders[-1] if _active.recorders else None


@contextmanager
def recorded(recorder: Recorder) -> Iterator[Recorder]:
    """Record what is launched meanwhile, and compile what kernels tell."""
    _active.recorders.append(recorder)
    ACTIVE.value += 1
    try:
        yield recorder
    finally:
        ACTIVE.value -= 1
        _active.recorders.pop()


def number_of(name: str) -> int:
    """Return the number of a name."""
    return NAMES.setdefault(name, len(NAMES))
