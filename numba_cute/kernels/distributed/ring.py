# SPDX-License-Identifier: Apache-2.0
"""The order of the tiles of a product whose rows belong to the GPUs of a group, and what their kernels say to each
other: signals, whose values are epochs. A launch's epoch stands on the device, so that a CUDA graph replays."""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.seam import current, frozen, quotient, remainder, traced

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


@frozen
class Turns(utils.PersistentTileSchedulerParams):
    """Tiles whose batch is the owner of their rows, in an order that spreads what is sent over time. At each place
    (m, n) come the other GPUs' tiles, the next GPU's first, and then the own tile of the place `behind` places before:
    the others send their parts in the same order, so these have arrived. rank: this GPU's."""

    rank: Any = 0
    behind: Any = 0

    def decode(self, index: Any) -> tuple[Any, Any, Any]:
        """Return the place (m, n, owner) of the `index`-th piece of work."""
        b = current()
        m, n, world = self.problem_shape_ncluster_mnl
        places, others = m * n, world - 1
        behind = cute.min(self.behind, places)
        later = index - behind * others  # than those of other GPUs that come alone
        alone = later - (places - behind) * world  # of those of this GPU that come alone
        first = b.compare("<", later, 0)
        number, together = b.select(first, index, later), b.select(first, others, world)
        place, hop = quotient(cute.max(number, 0), together), remainder(cute.max(number, 0), together)
        own = b.compare(">=", alone, 0) | b.compare("==", hop, others)
        place = b.select(first, place, b.select(own, cute.min(place, places - behind), place + behind))
        index = b.select(own, others, hop) * places + place + cute.max(alone, 0)
        m, n, hop = utils.PersistentTileSchedulerParams.decode(self, index)
        return m, n, around(around(hop + 1, world) + self.rank, world)


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


@cute.struct
class Telling:
    """A block's part in an exchange that writes to other GPUs' memory. of: the exchange. epoch: the launch's."""

    of: Any
    epoch: Any

    def talk(self):
        """Tell the other GPUs that this launch has begun, and count it. A whole warp."""
        block, blocks = blocks_of()
        if arch.lane_idx() == 0:
            if block == 0:
                for hop in cute.range(1, self.of.signals.world, unroll=1):
                    self.of.signals.put(self.of.peer(hop), READY, self.epoch)
            self.of.signals.advance(blocks)

    def await_room(self):
        """Wait until all GPUs have begun this launch: what they added up in the one before is read. A whole warp."""
        if arch.lane_idx() == 0:
            for hop in cute.range(1, self.of.signals.world, unroll=1):
                self.of.signals.wait(self.of.peer(hop), READY, self.epoch)
        arch.sync_warp()
