# SPDX-License-Identifier: Apache-2.0
"""The check `warpgroups`: setmaxnreg by warps that are no whole warpgroup."""

from __future__ import annotations

from typing import Any

from ..ground.report import no_warpgroup
from ..hardware.watch import Check


class Warpgroups(Check):
    """Reports threads that share out registers where their block has no four warps for a warpgroup of theirs."""

    name = "warpgroups"
    summary = "setmaxnreg in the last warps of a block whose threads are no multiple of 128"

    def lacks_warpgroup(self, thread: Any, what: str) -> None:
        raise no_warpgroup(thread, what)
