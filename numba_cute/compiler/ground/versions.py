# SPDX-License-Identifier: Apache-2.0
"""Say which numba-cuda this package is written for, and refuse another in words that say what to do."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import version

from ...seam import CuteError

WRITTEN_FOR = ("0.30.4",)
"""The versions of numba-cuda of whose code patches.py has digests."""
TESTED = "https://numba-cute.github.io/numba-cute/tested_versions/"


def installed() -> str:
    """Give the version of numba-cuda that is installed."""
    return version("numba-cuda")


def _number(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


def _what_to_do(found: str) -> str:
    other = f"pip install numba-cuda=={WRITTEN_FOR[-1]}"
    if found in WRITTEN_FOR:
        return (
            "that is the one here, so something has changed it: a library that was imported before numba_cute, or a "
            f"file of it ({other} --force-reinstall --no-deps)"
        )
    if _number(found) > max(map(_number, WRITTEN_FOR)):
        return f"{other}, or a newer numba-cute, if there is one: pip install -U numba-cute ({TESTED})"
    return f"{other} ({TESTED})"


def refused(differs: str, leans: str) -> CuteError:
    """Make the error of a numba-cuda that is not as it was. differs: what of it, as a sentence. leans: what this
    package does with that, as a part of one."""
    found, known = installed(), ", ".join(WRITTEN_FOR)
    return CuteError(
        f"numba-cuda {found}: {differs}. numba-cute, which {leans}, is written for numba-cuda {known}: "
        f"{_what_to_do(found)}"
    )


def check() -> None:
    """Import all that is taken of numba-cuda. CuteError: something of it is not there."""
    try:
        importlib.import_module(".numba_cuda", __package__)
    except ImportError as e:
        raise refused(str(e).partition(" (")[0], "takes its names from one file (compiler/ground/numba_cuda.py)") from e
