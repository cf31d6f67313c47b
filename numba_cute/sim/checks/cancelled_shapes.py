# SPDX-License-Identifier: Apache-2.0
"""The check `cancelled_shapes`: clusters that are cancelled in a launch of clusters of two shapes."""

from __future__ import annotations

from typing import Any

from ..ground.report import SimError
from ..hardware.watch import Check


class CancelledShapes(Check):
    """Reports clusterlaunchcontrol.try_cancel in a launch with fallback_cluster. Without it one of the shape of the
    cluster that asks is cancelled."""

    name = "cancelled_shapes"
    summary = "clusterlaunchcontrol in a launch of clusters of two shapes, of which CUDA does not say which it cancels"

    def asks_for_cluster(self, m: Any) -> None:
        if m.run.fallback is not None:
            raise SimError(
                f"clusterlaunchcontrol in a launch with fallback_cluster, by {m.describe()} at {m.place}: CUDA does "
                "not say which of its clusters it cancels, preferred or regular; launch with cluster= alone"
            )
