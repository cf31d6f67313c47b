# SPDX-License-Identifier: Apache-2.0
"""The check `warpgroups`: setmaxnreg by warps that are no whole warpgroup, or that do not execute the same one."""

from __future__ import annotations

from typing import Any

from ..ground.report import SimError, no_warpgroup
from ..hardware.watch import Check


class Warpgroups(Check):
    """Has the four warps of a warpgroup execute setmaxnreg together, and reports those of a block that has no four for
    a warpgroup of theirs. Without it each warp executes its own."""

    name = "warpgroups"
    summary = (
        "setmaxnreg that not all warps of a warpgroup execute, or in the last warps of a block whose threads are no "
        "multiple of 128"
    )

    def lacks_warpgroup(self, thread: Any, what: str) -> SimError:
        return no_warpgroup(thread, what)
