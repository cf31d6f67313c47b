# SPDX-License-Identifier: Apache-2.0
"""The garbage collector while a kernel is compiled or simulated, and while this package is imported.

A compilation makes some 100,000 objects that live until its end. After each 700 of them Python looks for cycles among
the young, and twice in a second among all that the process holds (with torch imported, a million objects), where it
finds nothing: an eighth of a compilation's time, and of an import's. So while one runs, the young are looked at less
often. A simulation makes some objects for each thread, all of which its checks may name until its end, when they are
garbage by the megabyte, of which Python counts the objects alone.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

YOUNG = 500_000
"""The objects made after which the collector looks at the young while a kernel is compiled: of some 120 MB."""
WAITING = 1_000_000
"""The objects that compilations may leave before the collector looks for what of them is garbage."""
PACE = 30
"""The time that simulations run before the next look for garbage, in lengths of such a look."""


class _Frozen:
    """Says if the user has frozen objects. Python goes through them all to count them, so one that was seen counts for
    good."""

    def __init__(self) -> None:
        self._seen = False

    def __call__(self) -> bool:
        self._seen = self._seen or gc.get_freeze_count() > 0
        return self._seen


def _grow_old() -> None:
    """Move all objects into the oldest generation, where nothing is frozen."""
    gc.freeze()
    gc.unfreeze()


class _Seldom:
    """A context in which the collector runs seldom; contexts may lie in each other, and run in several threads. A
    threshold that the user sets meanwhile stays, and so does a collector that is off."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._before: tuple[int, int, int] | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            now = gc.get_threshold()
            if self._inside == 1 and 0 < now[0] < YOUNG:
                self._before = now
                gc.set_threshold(YOUNG, *now[1:])

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._before is not None:
                if gc.get_threshold() == (YOUNG, *self._before[1:]):
                    gc.set_threshold(*self._before)
                self._before = None


class _Aging:
    """Have what a compilation made grow old at once. At its end the collector would look through all of it, for a
    twentieth of the time, while most of it is in use. After some compilations it looks through everything instead.
    Nothing is done where the user has turned it off, or has frozen objects."""

    def __init__(self) -> None:
        self._waiting = 0

    def __call__(self) -> None:
        if frozen() or not gc.isenabled():
            return
        self._waiting += gc.get_count()[0]
        if self._waiting > WAITING:
            self._waiting = 0
            gc.collect()
        else:
            _grow_old()


class _Staying:
    """A context in which what is made stays: the collector does not look at it, now or at the end, when it would look
    through all of it once. What the user froze before stays so."""

    def __enter__(self) -> None:
        seldom.__enter__()

    def __exit__(self, *error: Any) -> None:
        if gc.isenabled() and not frozen():
            _grow_old()
        seldom.__exit__(*error)


class _Pace:
    """The time of simulations since the collector last looked through everything, and the time that this took."""

    def __init__(self) -> None:
        self.since, self.took = 0.0, 0.1  # seconds

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Count a simulation; behind it the collector looks through everything if they have taken long enough. So it
        takes a thirtieth of their time, and what they leave is that of some seconds."""
        begun = perf_counter()
        try:
            yield
        finally:
            ended = perf_counter()
            self.since += ended - begun
            if gc.isenabled() and self.since > PACE * self.took:
                gc.collect()
                self.since, self.took = 0.0, perf_counter() - ended


frozen = _Frozen()
seldom = _Seldom()
paced = _Pace()
aging = _Aging()
staying = _Staying()
