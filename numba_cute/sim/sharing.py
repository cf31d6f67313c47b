# SPDX-License-Identifier: Apache-2.0
"""Decide whether the threads of a launch may run together (see `lanes`)."""

from __future__ import annotations

import logging
import sys
from typing import Any

from ..seam import CuteError
from ..seam.hooks.recording import recording
from .ground.report import in_library
from .ground.user_errors import innermost
from .hardware.schedule import orders_lanes
from .hardware.together import NotTogether
from .orders import PROOFS, PROVES

LOGGER = logging.getLogger("numba_cute.sim")
"""Says, at level INFO, of which launches the threads run one by one, and why: for who asks why one takes long."""


def why_alone(s: Any, block: tuple[int, int, int], seed: int | None, deviations: Any) -> str:
    """Say why the lanes of a warp do not run together (see `convoy`), whatever the kernel's code is; "" if they may:
    nothing is to be counted of each lane's steps, the order is one of warps, and nobody looks on (a debugger wants a
    number to be a number)."""
    if s.trace is not None or recording() is not None:
        return "a trace or a timeline counts the steps of each"
    if sys.gettrace() is not None or _debugged():
        return "a debugger, or what measures coverage, looks on"
    if to_be_proved(s):
        return "a proof needs the steps of each"
    if orders_lanes(seed):
        return f"seed={seed} orders single threads, as each multiple of 8 does"
    if deviations is not None:
        return "orders are explored"
    return "" if block[0] * block[1] * block[2] > 1 else "the block has one thread"


def note_of(run: Any) -> str:
    """Say in a few words why a run takes longer; "" if it does not."""
    return run.alone and f"thread by thread: {run.alone}"


def tell_alone(kernel: str, why: str) -> None:
    """Tell who listens that the threads of a launch run one by one."""
    LOGGER.info("kernel %s runs thread by thread, which takes longer: %s", kernel, why)


def _debugged() -> bool:
    """Tell whether a debugger looks on by `sys.monitoring`, which Python has from 3.12 on."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None


def to_be_proved(s: Any) -> bool:
    """Tell whether a launch is to be proved: what each lane does counts."""
    return s.proves or PROVES.get() or PROOFS.get() is not None


TOGETHER_FAILED = (
    "the lanes of a warp could not run together and ran one by one, which takes longer; the results hold, but "
    "please report the fault"
)


def is_fault(e: Exception) -> bool:
    """Tell whether what a run of lanes together raised, and a run one by one did not, is this library's own fault."""
    if isinstance(e, CuteError) and isinstance(e.__cause__, Exception):
        e = e.__cause__  # what a call of the library's ended in, and the facade put into words
    frame = innermost(e.__traceback__)
    return not isinstance(e, (CuteError, NotTogether)) and frame is not None and in_library(frame.f_code)
