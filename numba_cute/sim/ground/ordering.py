# SPDX-License-Identifier: Apache-2.0
"""The order that atomics make: an acquire learns what a release of the same location knew (PTX ISA, "Causality").

An atomic, or a fence beside it, has a scope, and orders threads only if both sides' scopes hold both threads. `Left` is
what releases left at one location, by how far they reach: to threads of a CTA, of a cluster, of a GPU, or of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .clocks import FENCED, FENCED_FOR_ALL, Clock

SCOPES = ("cta", "cluster", "gpu", "sys")
CTA, CLUSTER, GRID, SYSTEM = range(4)
_LATEST = 16  # atomics remembered for reports
REACH = {"cta": CTA, "cluster": CLUSTER, "gpu": GRID, "sys": SYSTEM}


def place(reach: int, cta: Any) -> Any:
    """Give what a thread of `cta` shares with all others within reach: its CTA, its cluster, the number of its GPU's
    rank, or None for all GPUs."""
    return (cta, cta.cluster, cta.cluster.rank, None)[reach]


def lasts(at: Any) -> bool:
    """Tell whether threads that have still to start may be at a `place`."""
    return at is None or isinstance(at, int)


def together(scope: str, other: str, cta: Any, other_cta: Any) -> bool:
    """Tell whether atomics of two scopes are one step each for the other's thread."""
    reach = min(REACH[scope], REACH[other])
    return bool(place(reach, cta) == place(reach, other_cta))


class Wait(NamedTuple):
    """A wait for a value that ends. value: the bytes that it has read. ends: says of bytes whether they end it."""

    value: Any
    ends: Callable[[Any], bool]


class Heard(NamedTuple):
    """An atomic that has read a location. far: its reach. acquires: whether it acquires by itself."""

    place: Any
    far: int
    acquires: bool


class Left:
    """The knowledge that releases left at a location.

    by: what reaches whom (see `place`): the threads of a CTA get what any scope released there, and so on.
    own: the same of each thread alone. history: the latest values there, and what reached whom with each. silent: the
    latest that wrote there without releasing all that they had done: by thread and line, what it knew, and the number
    of the next access."""

    __slots__ = ("by", "own", "history", "silent")

    def __init__(self) -> None:
        self.by: dict[Any, Clock] = {}
        self.own: dict[Any, dict[Any, Clock]] = {}
        self.history: deque[tuple[bytes, dict[Any, Clock]]] = deque(maxlen=_LATEST)
        self.silent: dict[tuple[Any, Any], tuple[Clock, int]] = {}

    def copy(self) -> Left:
        """The same, which may change."""
        made = Left()
        made.by, made.own = dict(self.by), {t: dict(own) for t, own in self.own.items()}
        made.history, made.silent = self.history.copy(), dict(self.silent)
        return made

    def add(self, thread: Any, reach: int, clock: Clock) -> None:
        own = self.own.setdefault(thread, {})
        for r in range(reach + 1):
            at = place(r, thread.cta)
            for found in (self.by, own):
                held = found.get(at)
                found[at] = clock if held is None else held.join(clock)

    def overwrite(self, thread: Any) -> None:
        """A store, which no chain of updates links to the releases of others: who reads it synchronises with what its
        own thread released there (PTX ISA, "Release and acquire patterns")."""
        own = self.own.get(thread, {})
        self.by, self.own = dict(own), {thread: own} if own else {}

    def changed(self, old: bytes, new: bytes) -> None:
        """Note a value that an atomic has written. What lay there by a plain store, or the host, tells nothing."""
        if not self.history or self.history[-1][0] != old:
            self.history.clear()
            self.history.append((old, {}))
        self.history.append((new, dict(self.by)))

    def at_first(self, wait: Wait) -> dict[Any, Clock]:
        """Return what reached whom with the first of the latest values that all end a wait: in another order of threads
        the wait ends with that one, so that it tells no more."""
        found = self.by
        for value, by in reversed(self.history if self.history and self.history[-1][0] == wait.value.tobytes() else ()):
            if not wait.ends(np.frombuffer(value, np.uint8)):
                break
            found = by
        return found


def order(
    m: Any, key: Any, sem: str, scope: str, *, reads: bool, writes: bool,
    wait: Wait | None = None,
) -> Left | None:  # fmt: skip
    """Let an atomic of machine `m` learn, and leave to be learned, what it orders at location `key`. Without an order
    of its own it is ordered by the fences of its thread: those before it publish, those after it acquire. wait: the one
    that the atomic ends."""
    if not m.run.clocks:
        return None
    t = m.threads[0]
    c, far = t.clock, REACH[scope]
    left: Left | None = m.run.left.get(key)
    if left is None:
        left = m.run.left[key] = Left()
    if reads:
        _keep(c.heard, key, (left, Heard(m.place, far, sem in ("acquire", "acq_rel"))))
    by = left.by if wait is None else left.at_first(wait)
    for reach in range(far + 1) if reads else ():
        clock = by.get(place(reach, t.cta))
        if clock is None:
            continue
        if sem in ("acquire", "acq_rel"):
            c.base = c.base.join(clock)
        else:
            held = c.pending.get(reach)
            c.pending[reach] = clock if held is None else held.join(clock)
    if not writes:
        return left
    if not reads:
        left.overwrite(t)
    if sem in ("release", "acq_rel"):
        left.add(t, far, c.snapshot())
    else:
        _keep(left.silent, (t, m.place), (c.base, m.run.noted))
    for reach, clock in published(c):
        left.add(t, min(reach, far), clock)
    return left


def _keep(found: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember the latest few."""
    found.pop(key, None)
    if len(found) >= _LATEST:
        del found[next(iter(found))]
    found[key] = value


def published(c: Any) -> list[tuple[int, Clock]]:
    """Give what fences of a thread, or ones that it knows of, have published, by how far they reach."""
    fenced = ((GRID, c.fenced(FENCED)), (SYSTEM, c.fenced(FENCED_FOR_ALL)))
    return [*c.published.items(), *((reach, clock) for reach, clock in fenced if clock is not None)]


def fence(t: Any, scope: str) -> None:
    """A fence.acq_rel of one thread: what its atomics read before is now known, and they publish all until now."""
    far, c = REACH[scope], t.clock
    for reach in [r for r in c.pending if r <= far]:
        c.base = c.base.join(c.pending.pop(reach))
    c.published = {r: clock for r, clock in c.published.items() if r > far}
    if far >= GRID:
        c.fence(FENCED, *((FENCED_FOR_ALL,) if far == SYSTEM else ()))
    else:
        c.published[far] = c.snapshot()
