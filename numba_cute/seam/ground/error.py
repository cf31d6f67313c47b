# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this library, and the signals by which code that is traced stops being so."""

from __future__ import annotations

import functools
import platform
import traceback


class CuteError(Exception):
    """The one exception of this library: what was asked, the value, the rule, and the remedy.

    >>> cute.make_layout((4, 8), stride=(1,))
    Traceback (most recent call last):
        ...
    numba_cute.CuteError: stride=(1) does not match shape=(4,8): give one stride for each extent, nested in ...
    """


class NoIndex(CuteError, TypeError):
    """A number is not an integer where one is asked for. What asks as Python does catches a TypeError."""


class InternalError(CuteError):
    """This library failed at what it should do: a fault of its own, which no argument explains. Please report it.

    >>> issubclass(cute.InternalError, cute.CuteError)
    True
    """


class PeerError(CuteError):
    """Another rank did not come: a kernel waited for its signal (`utils.distributed.Signals`) as long as it may.

    rank: who did not come. slot: the signal's. limit: how long the kernel waited, in seconds. kernel: the names of the
    kernels that were launched with these signals. said: the text.

    >>> raise cute.PeerError(3, 0, 10.0, "all_gather", "signal 4 of rank 3 did not come")
    Traceback (most recent call last):
        ...
    numba_cute.PeerError: signal 4 of rank 3 did not come
    """

    def __init__(self, rank: int, slot: int, limit: float, kernel: str, said: str) -> None:
        super().__init__(said)
        self.rank, self.slot, self.limit, self.kernel = rank, slot, limit, kernel

    def __reduce__(self) -> tuple[type, tuple[int, int, float, str, str]]:
        return type(self), (self.rank, self.slot, self.limit, self.kernel, str(self))


class Signal(BaseException):
    """A signal that traced code raises if it cannot go on: the tracer decides what follows. It is no Exception, so a
    user's `except Exception` lets it pass; the tracer reports code that catches it by other means."""


class RunTimeCondition(Signal):
    """A signal that the value of something known only at run time was asked for while a kernel is compiled."""


for _cls in (CuteError, InternalError, PeerError):
    _cls.__module__ = "numba_cute"  # tracebacks name them as users import them


PLEASE_REPORT = (
    "this is a fault of numba-cute: please report it with this text and the traceback that NUMBA_CUTE_TRACEBACK=1 shows"
)
OF_THE_SYSTEM = (OSError, ImportError, Warning)
"""Exceptions that are neither an argument's fault nor the library's: of files, of what is not installed, and warnings
that the user made errors."""


def internal_error(what: str, cause: BaseException, line: tuple[str, int] | None = None) -> InternalError:
    """Return the error for an exception that this library's own code raised by mistake.

    what: the call, or the kernel, that it happened in. cause: the exception, whose place is told. line: the user's.
    """
    frames = traceback.extract_tb(cause.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    users = f"\n  called at {line[0]}:{line[1]}" if line else ""
    made = InternalError(f"{what}: {type(cause).__name__}{place}: {cause}: {PLEASE_REPORT} ({_versions()}){users}")
    made.__cause__ = cause
    return made


@functools.cache
def _versions() -> str:
    """Return the versions that a report of a fault needs."""
    from importlib import metadata  # here: few ever need it

    found = [f"Python {platform.python_version()}"]
    for package in ("numba-cute", "numba-cuda", "numba"):
        try:
            found.insert(len(found) - 1, f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:  # run from its sources
            continue
    return ", ".join(found)
