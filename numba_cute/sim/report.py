# SPDX-License-Identifier: Apache-2.0
"""What the simulator says when a kernel is wrong: the exceptions, and threads and source lines as words."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..seam import CuteError


class SimError(CuteError):
    """The kernel did something that the simulator forbids."""


class SimWarning(SimError, UserWarning):
    """The kernel did something that is probably not meant: a warning, and where warnings are errors a SimError."""


class DeadlockError(SimError):
    """No thread can go on, and nothing is in flight that could wake one."""


class RaceError(SimError):
    """Two accesses to the same memory lack an order, or a proxy fence, between them."""


class BarrierError(SimError):
    """An mbarrier, named barrier or cluster barrier was used against its rules."""


class OutOfBoundsError(SimError):
    """An access outside the memory that the kernel was given, or misaligned."""


class UninitializedReadError(SimError):
    """Shared memory was read that nobody has written."""


class DivergenceError(SimError):
    """An instruction that threads must execute together was not."""


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_library: dict[CodeType, bool] = {}


class Place(NamedTuple):
    """A line of the user's source, and the library function that it called (or "")."""

    file: str
    line: int
    function: str
    inside: str = ""
    caller: str = ""
    """Where the user's code called the function that holds the line (or "")."""

    @property
    def short(self) -> str:
        return f"{_near(self.file)}:{self.line}"

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        within = f", in {self.inside}" if self.inside else ""
        via = f", called at {_near(self.caller)}" if self.caller else ""
        return f"{self.short} ({self.function}{within}{via})" + (f": `{source}`" if source else "")


def _near(file: str) -> str:
    return os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file


NOWHERE = Place("<unknown>", 0, "?")


def place_of(frame: FrameType | None) -> Place:
    """The innermost line from `frame` outwards that is not this library's own."""
    inside = ""
    while frame is not None:
        code = frame.f_code
        if not _library(code):
            return Place(code.co_filename, frame.f_lineno, code.co_name, inside, _caller(frame.f_back))
        inside = "" if code.co_name == "__call__" else code.co_name
        frame = frame.f_back
    return NOWHERE


_ASSIGNED = re.compile(r"\s*(\w+)\s*(?::[^=]*)?=[^=]")


def assigned_name(frame: FrameType) -> str:
    """The variable that the line of a frame assigns to, or ""."""
    found = _ASSIGNED.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    return found[1] if found else ""


def _library(code: CodeType) -> bool:
    found = _is_library.get(code)
    if found is None:
        found = _is_library.setdefault(code, code.co_filename.startswith(_PACKAGE))
    return found


def _caller(frame: FrameType | None) -> str:
    """The nearest line of the user's, from `frame` outwards, inside the kernel."""
    while frame is not None:
        if not _library(frame.f_code):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def ranges(numbers: Iterable[int]) -> str:
    """`[0, 1, 2, 5]` as "0-2, 5"."""
    out: list[list[int]] = []
    for n in sorted(numbers):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def who(threads: Sequence[Any]) -> str:
    """Threads in words: "warps 4-7 (128 threads) of CTA 1"."""
    by_cta: dict[int, list[Any]] = {}
    for t in threads:
        by_cta.setdefault(t.cta.rank, []).append(t)
    words = []
    for rank, some in sorted(by_cta.items()):
        words.append(_of_one_cta(some) + (f" of CTA {rank}" if some[0].cta.cluster.size > 1 else ""))
    return " and ".join(words)


def _of_one_cta(threads: Sequence[Any]) -> str:
    if len(threads) == 1:
        return f"thread {threads[0].index} (warp {threads[0].index // 32})"
    lanes: dict[int, set[int]] = {}
    for t in threads:
        lanes.setdefault(t.index // 32, set()).add(t.lane)
    size = len(threads[0].cta.threads)
    whole = [w for w, some in lanes.items() if len(some) == min(32, size - 32 * w)]
    words = []
    if whole:
        words.append(_noun("warp", whole))
    parts: dict[tuple[int, ...], list[int]] = {}
    for w, some in sorted(lanes.items()):
        if w not in whole:
            parts.setdefault(tuple(sorted(some)), []).append(w)
    for some_lanes, warps in parts.items():
        words.append(f"{_noun('lane', some_lanes)} of {_noun('warp', warps)}")
    return f"{', '.join(words)} ({len(threads)} threads)"


def _noun(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'s' if len(numbers) > 1 else ''} {ranges(numbers)}"


def count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
