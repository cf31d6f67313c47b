# SPDX-License-Identifier: Apache-2.0
"""Threads that go round a loop in which nothing changes: no simulated clock ticks, nobody else runs, and no memory is
written. A Python thread looks at a run that does nothing else for a while; a run that goes on costs nothing."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from ...seam.ground.bytecode import jumps
from ..ground.report import DeadlockError, Place, in_library, of_block, place_of, who
from ..python.arithmetic.number import Number, plain

IDLE = 1.0
"""Seconds for which a run must have done nothing that counts before its thread is looked at."""
LOOKS, RETURNS = 100, 20
"""The number of looks at the thread then, and the number of them that must find a state seen before."""
_STATES, _VALUES = 40, 3000
"""States of one loop, and values that a state may hold; of a thread with more nothing is said."""
_PLAIN = (Number, int, float, complex, str, bytes, np.generic, type(None))


class _Watched:
    """A run that is watched, and the Python thread that it runs on."""

    def __init__(self, run: Any) -> None:
        self.run, self.on = run, threading.get_ident()
        self.mark, self.since = self.now(), time.monotonic()

    def now(self) -> tuple[Any, ...]:
        """All that changes where a run goes on."""
        r = self.run
        return r.events, r.steps, r.clock, r.noted, id(r.thread)

    def idle(self) -> bool:
        """Tell whether nothing has changed for a while."""
        now = self.now()
        if now != self.mark or self.run.thread is None:
            self.mark, self.since = now, time.monotonic()
        return time.monotonic() - self.since > IDLE


_RUNS: list[_Watched] = []
_BEGUN = threading.Event()
_WATCHERS: list[threading.Thread] = []


@contextmanager
def watched(run: Any) -> Iterator[None]:
    """End a run with a DeadlockError where a thread of it goes round a loop that changes nothing."""
    mine = _Watched(run)
    _RUNS.append(mine)
    if not _WATCHERS or not _WATCHERS[-1].is_alive():  # of a forked process there is none
        _WATCHERS.append(threading.Thread(target=_watch, name="numba_cute stuck", daemon=True))
        _WATCHERS[-1].start()
    _BEGUN.set()
    try:
        yield
    finally:
        _RUNS.remove(mine)


def _watch() -> None:
    while True:
        _BEGUN.wait()
        time.sleep(IDLE / 4)
        if not _RUNS:
            _BEGUN.clear()
            continue
        for w in list(_RUNS):
            if w.idle():
                text = _judged(w)
                if text is not None and w in _RUNS:
                    error = type("DeadlockError", (DeadlockError,), {"__init__": _says(text)})
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(w.on), ctypes.py_object(error))
                w.since = time.monotonic()


def _says(text: str) -> Any:
    def __init__(self: Any) -> None:
        DeadlockError.__init__(self, text)

    return __init__


def _judged(w: _Watched) -> str | None:
    """Say where the thread goes round, if it comes back again and again to where it was, with all as it was."""
    memory, last, returns = _memory(w.run), None, 0
    seen: set[int] = set()
    places: list[Place] = []
    for _ in range(LOOKS):
        time.sleep(0.001)
        if w.now() != w.mark or w not in _RUNS:
            return None
        frame = _innermost(w)
        state = None if frame is None else _state(frame)
        if frame is None or state is None or len(seen) > _STATES:
            return None
        if state in seen and (state != last or _jumps(w, frame)):
            returns += 1
        seen.add(state)
        last = state
        places.append(place_of(frame))
    if returns < RETURNS or _memory(w.run) != memory or w.now() != w.mark:
        return None
    t, place = w.run.thread, min(places, key=lambda p: p.line)
    return (
        f"no progress in kernel {w.run.kernel}: {who([t])}{of_block(t.cta)} goes round a loop at {place}, in "
        f"which nothing changes any more: no variable and no memory, and nobody else runs meanwhile\n"
        f"  fix: let each way through the loop change what it goes on for: a `continue` that leaves out the step to "
        f"the next tile, or a state that is not advanced, goes on for ever"
    )


def _innermost(w: _Watched) -> FrameType | None:
    """The innermost frame of the user's that runs."""
    frame = sys._current_frames().get(w.on)
    while frame is not None and in_library(frame.f_code):
        frame = frame.f_back
    return frame


def _jumps(w: _Watched, frame: FrameType) -> bool:
    """Tell whether the thread itself is at a jump back, and in no call."""
    now = sys._current_frames().get(w.on)
    return now is frame and jumps(frame)


def _state(frame: FrameType | None) -> int | None:
    """The places of the user's frames and what their variables hold, as one number; None: too much to say."""
    values: list[Any] = []
    seen: dict[int, int] = {}
    try:
        while frame is not None:
            if not in_library(frame.f_code):
                values += [id(frame.f_code), frame.f_lasti]
                for name, value in dict(frame.f_locals).items():
                    values.append(name)
                    _add(values, value, seen)
            frame = frame.f_back
    except (RuntimeError, AttributeError, KeyError, TypeError, ValueError):  # it has gone on meanwhile
        return None
    return None if len(values) > _VALUES else hash(tuple(values))


def _add(values: list[Any], value: Any, seen: dict[int, int]) -> None:
    """Add what a value holds, each object once."""
    if len(values) > _VALUES:
        return
    if isinstance(value, _PLAIN):
        values.append(repr(plain(value)) if isinstance(value, Number) else repr(value))
    elif isinstance(value, np.ndarray):
        values.append(zlib.crc32(value.tobytes()) if value.dtype != object else id(value))
    elif id(value) in seen:
        values.append(seen[id(value)])
    else:
        seen[id(value)] = len(seen)
        for part in _parts(value):
            _add(values, part, seen)


def _parts(value: Any) -> list[Any]:
    """Return the parts of an object. The simulator's own objects change with what is counted (`_Watched.now`)."""
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, type) or callable(value) or type(value).__module__.startswith(f"{__package__}."):
        return [id(value)]
    slots = [s for c in type(value).__mro__ for s in getattr(c, "__slots__", ())]
    held = [getattr(value, s, None) for s in slots if isinstance(s, str) and not s.startswith("__")]
    return [id(type(value)), *held, *getattr(value, "__dict__", {}).values()]


def _memory(run: Any) -> int:
    """A sum of all memory that a thread can write."""
    found = 0
    for cta in run.cluster.ctas if run.cluster is not None else ():
        found = zlib.crc32(cta.smem.data, found)
    for buffer in run.memory.buffers:
        found = zlib.crc32(buffer.data, found)
    return found
