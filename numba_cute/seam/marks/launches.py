# SPDX-License-Identifier: Apache-2.0
"""Launches that somebody else makes than the GPU: the simulator, a debugger, what only compiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from .constexpr import LAUNCHER, Launcher

__all__ = ["LAUNCHES", "launching"]


@dataclasses.dataclass
class Launches:
    """Holds what the compiler does here. taken: have each launch ask `LAUNCHER` while the context lasts."""

    taken: Callable[[], AbstractContextManager[Any]] = nullcontext


LAUNCHES = Launches()


@contextmanager
def launching(launcher: Launcher) -> Iterator[None]:
    """Have a function make the launches of this thread: `kernel[grid, block](…)`, `cute.launch`, `.launch(…)` alike.

    launcher: is given the kernel, its arguments, and the configuration by name."""
    token = LAUNCHER.set(launcher)
    try:
        with LAUNCHES.taken():
            yield
    finally:
        LAUNCHER.reset(token)
