# SPDX-License-Identifier: Apache-2.0
"""Reports of kernels that waited in vain for another rank: words of memory that a kernel writes and the host reads,
also after a failure that ends all use of the GPU.

A kernel that gives up writes who did not come, and traps. What the host sees of that is an "unspecified launch
failure", at whichever call is next, of any library. So a thread looks at the words while the process lives, and prints
what they say; whoever asks, and a launch of this library that fails, gets it as an error.
"""

from __future__ import annotations

import atexit
import sys
import threading
from typing import Any

from ..ground.error import PeerError
from .driver import DRIVER

WORDS = 4
"""Of a report: rank + 1 and slot (16 bits each), what the flag was, what it was to be, and the block; 0 at first."""
_PER_PAGE = 64
_EVERY = 0.05
"""Seconds between two looks at the reports."""


class Watch:
    """One report, and what is known of it. words: its memory. limit: seconds that the kernel waits. name: what the
    signals are for. kernels: the names of those that were launched with it."""

    def __init__(self, words: Any, limit: float, name: str) -> None:
        self.words, self.limit, self.name = words, limit, name
        self.kernels: dict[str, None] = {}
        self.told = False

    def error(self) -> PeerError | None:
        """Return the error that the report says; None while there is none."""
        who, seen, wanted, block = (int(w) for w in self.words)
        if not who:
            return None
        rank, slot = (who >> 16) - 1, who & 0xFFFF
        kernel = ", ".join(self.kernels) or self.name
        said = (
            f"rank {rank} did not come: block {block} of kernel {kernel} waited {self.limit:g} s for its signal in "
            f"slot {slot} of {self.name!r}, which is {seen} and was to be {wanted}. Rank {rank} ended, hangs, or did "
            "not launch this kernel; see what it printed. This process's GPU context is lost: end it"
        )
        return PeerError(rank, slot, self.limit, kernel, said)


_PAGES: list[Any] = []
_WATCHES: list[Watch] = []
"""All reports. Their words are never given to another, for a kernel may write after its signals are forgotten."""
_LOCK = threading.Lock()


def watch(limit: float, name: str) -> Watch | None:
    """Return a new report, which is looked at from now on; None where no driver has memory for it."""
    with _LOCK:
        used = len(_WATCHES) % _PER_PAGE
        if used == 0:
            page = DRIVER.pinned(_PER_PAGE * WORDS)
            if page is None:
                return None
            _PAGES.append(page.reshape(_PER_PAGE, WORDS))
        made = Watch(_PAGES[-1][used], limit, name)
        _WATCHES.append(made)
        if len(_WATCHES) == 1:
            threading.Thread(target=_look, name="numba_cute peers", daemon=True).start()
            atexit.register(_tell)
    return made


def launched(args: Any, kernel: str) -> None:
    """Note the name of a kernel that is launched with reports among its arguments."""
    if _WATCHES:
        for a in args:
            _note(a, kernel)


def _note(x: Any, kernel: str) -> None:
    """Note it of what an argument holds: the fields of a frozen object, and a tuple's items, hold nothing that holds
    them; what is remembered of an object may."""
    if isinstance(x, tuple):
        for y in x:
            _note(y, kernel)
    elif hasattr(type(x), "__cute_frozen__"):
        found = getattr(x, "_cute_watch", None)
        if found is not None:
            found.kernels[kernel] = None
        for name in type(x).__dataclass_fields__:
            _note(vars(x).get(name), kernel)


def found() -> PeerError | None:
    """Return the first error that any report says."""
    return next((e for w in list(_WATCHES) if (e := w.error()) is not None), None)


def _tell() -> None:
    """Print the errors that no one printed."""
    for one in list(_WATCHES):
        error = None if one.told else one.error()
        if error is not None:
            one.told = True
            print(f"numba_cute.PeerError: {error}", file=sys.stderr, flush=True)


def _look() -> None:
    waits = threading.Event()
    while not waits.wait(_EVERY):
        _tell()
