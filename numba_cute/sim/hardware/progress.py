# SPDX-License-Identifier: Apache-2.0
"""Polling: a thread that reads the same place again and again waits for others, or goes on by itself."""

from __future__ import annotations

from types import FrameType
from typing import Any

import numpy as np

from ..ground.report import in_library
from ..python.arithmetic.number import Number, plain

_NUMBERS = (Number, int, float, complex, np.generic, str, type(None))
_MOST = 1 << 14


def goes_on(thread: Any, frame: FrameType | None, held: bytes = b"") -> bool:
    """Tell whether a thread pauses in a state in which it has not paused before: the place in its code, the numbers in
    its variables, and what it reads (`held`). A loop that waits comes back to the same state; one that counts, and
    happens to read the same element each time, does not."""
    state = []
    while frame is not None:
        if not in_library(frame.f_code):
            numbers = [(k, plain(v)) for k, v in frame.f_locals.items() if isinstance(v, _NUMBERS)]
            state.append((frame.f_code, frame.f_lasti, tuple(numbers)))
        frame = frame.f_back
    seen: set[int] = thread.states
    key = hash((held, *state))
    if key in seen:
        return False
    if len(seen) >= _MOST:
        seen.clear()
    seen.add(key)
    return True


def held_at(m: Any, address: Any) -> bytes:
    """Return the bytes at a place that a thread reads again and again: if they change, the thread may be counting
    there."""
    if not isinstance(address, int):
        return b""
    a = m.run.memory.find(address)
    data, at = (m.cta.smem.data, address) if a is None else (a.data, address - a.address)
    return bytes(data[at : at + 4]) if 0 <= at < data.size else b""
