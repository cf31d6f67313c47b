# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this library."""

from __future__ import annotations

import platform
import traceback


class CuteError(Exception):
    """The one exception of this library: what was asked, the value, the rule, and the remedy."""


class RunTimeCondition(CuteError):
    """What is known only at run time was asked for its value while a kernel is compiled."""


class InternalError(CuteError):
    """This library failed at what it should do: a fault of its own, which no argument explains. Please report it."""


for _cls in (CuteError, RunTimeCondition, InternalError):
    _cls.__module__ = "numba_cute"  # tracebacks name them as users import them


def internal_error(what: str, cause: BaseException) -> InternalError:
    """Return the error for an exception that this library's own code raised by mistake.

    what: the call or the kernel that it happened in. cause: the exception, whose innermost place is told.
    """
    frames = traceback.extract_tb(cause.__traceback__)
    place = f", {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return InternalError(
        f"{what}: {type(cause).__name__}: {cause}{place}: this is a fault of numba-cute, please report it with this "
        f"text and its traceback ({_versions()})"
    )


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
