# SPDX-License-Identifier: Apache-2.0
"""The check `converged`: one lane of a warp that tells of what all its lanes have done."""

from __future__ import annotations

from ..hardware.watch import Check
from .races import Races


class Converged(Check):
    """Has `races` tell lanes of a warp apart where one releases a stage of a pipeline for all: they must have met.
    Without it they meet there, as where a warp's lanes run together."""

    name = "converged"
    summary = "a lane of a warp that releases a stage of a pipeline for lanes that it has not met"
    needs = (Races,)

    def tells_lanes_apart(self) -> None:
        """Do nothing: it is asked whether the check is on."""
