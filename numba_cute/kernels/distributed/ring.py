# SPDX-License-Identifier: Apache-2.0
"""The order of the tiles of a product whose rows belong to the GPUs of a group, and what their kernels say to each
other: signals, whose values are epochs. A launch's epoch stands on the device, so that a CUDA graph replays."""

from __future__ import annotations

from typing import Any

from numba_cute import arch, utils
from numba_cute.seam import current, frozen, traced

READY, READ, SLOTS = 0, 1, 2
"""Slots of the signals: a GPU has begun a launch, all before which is done; it has read what others gave it to read.
What follows is an exchange's own."""


@frozen
class Ring(utils.PersistentTileSchedulerParams):
    """Tiles in their order, of batches that begin elsewhere. start: which batch is done before the others; the last one
    is followed by 0."""

    start: Any = 0

    def decode(self, index: Any) -> tuple[Any, Any, Any]:
        """Return the place (m, n, batch) of the `index`-th piece of work."""
        m, n, batch = utils.PersistentTileSchedulerParams.decode(self, index)
        return m, n, around(batch + self.start, self.problem_shape_ntile_mnl[2])


@traced
def around(number: Any, count: Any) -> Any:
    """Give a number less than twice the count as one that is less than it: GPUs stand in a ring."""
    b = current()
    return b.select(b.compare("<", number, count), number, number - count)


@traced
def blocks_of() -> tuple[Any, Any]:
    """Give this block's number, and how many blocks there are."""
    (x, y, z), (across, along, depth) = arch.block_idx(), arch.grid_dim()
    return (z * along + y) * across + x, across * along * depth
