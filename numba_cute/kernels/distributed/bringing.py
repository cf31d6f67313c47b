# SPDX-License-Identifier: Apache-2.0
"""Memory of other GPUs, brought to this one's by one warp of each block while the others multiply.

The warp brings *pieces* by TMA, through shared memory, and counts at a *place* how many of those that belong together
have come; the warp that feeds the tensor cores waits for all of them. What is brought says which pieces there are, and
copies one (`Gather`, `Keys`).
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import current, traced

from .ring import READ, READY, blocks_of

ROWS, BYTES = 4, 512
"""Of a piece: its rows, and the bytes of each. A box of TMA has 256 elements at most along a mode."""
SLOTS, AHEAD = 8, 5
"""Pieces that a block has in shared memory, and how many of them are on their way from other GPUs."""
MEMORY = SLOTS * ROWS * BYTES
"""Bytes of shared memory that these take."""


def slots_layout(dtype: Any) -> Any:
    """Give the layout of pieces in shared memory, (rows, columns, slots)."""
    columns = 8 * BYTES // dtype.width
    return cute.make_layout((ROWS, columns, SLOTS), stride=(columns, 1, ROWS * columns))


@traced
def reserve(smem: Any, tidx: Any, dtype: Any, layout: Any = None) -> tuple[Any, Any]:
    """Reserve a block's slots of pieces and their barriers. All threads, before they meet. layout: of other pieces than
    `slots_layout` has."""
    pieces = smem.allocate_tensor(dtype, slots_layout(dtype) if layout is None else layout, 128, None, "brought")
    barriers = smem.allocate_array(cute.Int64, SLOTS, name="brought barriers")

    def initialise() -> None:
        for i in range(SLOTS):
            arch.mbarrier_init(barriers + i, 1)

    current().when(current().compare("==", tidx, 0), initialise)
    return pieces, barriers


@cute.struct
class Bringing:
    """A block's part in it. of: what is brought, of which a piece has `nbytes`; it `asks` whether the GPUs have begun
    to give, and counts on from launch to launch, or a launch before it did, and made what is counted 0. parts: what its
    copies take, as it partitioned it. barriers: of the slots."""

    of: Any
    parts: Any
    barriers: Any
    epoch: Any

    def await_pieces(self, place, pieces):
        """Wait until so many pieces of a place have come in this launch. A whole warp, before it loads them."""
        if arch.lane_idx() == 0:
            want = pieces
            if cute.const_expr(self.of.asks):
                want = cute.Int32(self.epoch) * pieces  # it goes round, as what is counted does
            while arch.load(self.of.counter(place), cute.Int32, sem="acquire", scope="gpu") - want < 0:
                pass
        arch.sync_warp()
        arch.fence_proxy("async")

    def talk(self):
        """Bring this block's share of what others have; one of the blocks tells the other GPUs when they may begin to
        read here, and one ends when all have read. A whole warp."""
        block, blocks = blocks_of()
        if cute.const_expr(self.of.asks):
            if block == 0 and arch.lane_idx() == 0:
                for hop in range(self.of.signals.world - 1):
                    self.of.signals.put(self.of.peer(hop), READY, self.epoch)
        self.bring(cute.Int32(block), cute.Int32(blocks))
        if arch.lane_idx() == 0:
            if arch.atomic_add(self.of.ended.iterator, 1, sem="acq_rel", scope="sys") == blocks - 1:
                self.of.ended[0] = 0
                self.of.signals.meet(READ, self.epoch)
            self.of.signals.advance(blocks)

    def bring(self, block, blocks):
        """Bring every piece whose number is `block` behind a multiple of `blocks`. A whole warp."""
        count = (self.of.pieces() - block + blocks - 1) // blocks
        reads_of, held, held_at = cute.Int32(-1), cute.Int32(0), cute.Int32(0)
        for i in range(count + SLOTS):
            arch.cp_async_bulk_wait_group(SLOTS - AHEAD - 1)  # the piece that lay in this slot is where it belongs
            if i >= SLOTS:
                place = self.of.place_of(block + (i - SLOTS) * blocks)
                if place != held_at:
                    self.count(held_at, held)
                    held, held_at = cute.Int32(0), place
                held += 1
            if i < count:
                number = block + i * blocks
                if cute.const_expr(self.of.asks):
                    hop = self.of.hop_of(number)
                    if hop != reads_of:
                        if arch.lane_idx() == 0:
                            self.of.signals.wait(self.of.peer(hop), READY, self.epoch)
                        arch.sync_warp()
                        arch.fence_proxy("async")
                        reads_of = hop
                slot = i % SLOTS
                if arch.elect_one():
                    arch.mbarrier_arrive_and_expect_tx(self.barriers + slot, self.of.nbytes)
                arch.sync_warp()
                self.of.fetch(self.parts, number, slot, self.barriers + slot)
            if i >= AHEAD and i - AHEAD < count:
                slot = (i - AHEAD) % SLOTS
                arch.mbarrier_wait(self.barriers + slot, (i - AHEAD) // SLOTS % 2)
                self.of.put(self.parts, block + (i - AHEAD) * blocks, slot)
            arch.cp_async_bulk_commit_group()
        self.count(held_at, held)

    def count(self, place, pieces):
        """Count pieces that have come: release them to the warps that wait. A whole warp."""
        if pieces > 0 and arch.elect_one():
            arch.red(self.of.counter(place), pieces, "add", cute.Int32, sem="release", scope="gpu")
