# SPDX-License-Identifier: Apache-2.0
"""Whether the threads of a launch may run together (see `lanes`)."""

from __future__ import annotations

import sys
from typing import Any

from ..seam import CuteError
from ..seam.hooks.recording import recording
from .ground.report import in_library
from .ground.user_errors import innermost
from .hardware.schedule import orders_lanes
from .hardware.together import NotTogether
from .orders import PROOFS, PROVES


def may_share(s: Any, block: tuple[int, int, int], seed: int | None, deviations: Any) -> bool:
    """Tell whether the lanes of a warp may run together (see `convoy`): nothing is to be counted of each lane's
    steps, the order is one of warps, and nobody looks on (a debugger wants a number to be a number)."""
    looked_at = s.trace is not None or recording() is not None or sys.gettrace() is not None or _debugged()
    told = looked_at or to_be_proved(s)
    return not told and not orders_lanes(seed) and deviations is None and block[0] * block[1] * block[2] > 1


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
