# SPDX-License-Identifier: Apache-2.0
"""`print` in a plain function of the user's that is traced: a statement of the kernel, which no trace may carry out."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ... import seam
from ...seam.ground.error import RunTimeCondition
from ...seam.ground.packages import is_library


@contextmanager
def printing_at_run_time(tracer: Any) -> Iterator[None]:
    """While a plain function runs, have its `print` and `breakpoint` say that Numba must compile it."""
    if not tracer.plain:
        yield
        return
    before = builtins.print, builtins.breakpoint
    builtins.print = _leaving(tracer, "print", before[0])
    builtins.breakpoint = _leaving(tracer, "breakpoint", before[1])
    try:
        yield
    finally:
        builtins.print, builtins.breakpoint = before


def _leaving(tracer: Any, name: str, own: Any) -> Any:
    def call(*args: Any, **named: Any) -> Any:
        if seam.current_or(None) is not tracer or is_library(sys._getframe(1).f_globals.get("__name__")):
            return own(*args, **named)
        raise seam.signalled(
            RunTimeCondition(f"{name}(…) is a statement of the kernel, and this runs while it is compiled")
        )

    return call
