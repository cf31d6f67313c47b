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
from numba_cute.seam import current, frozen, traced

from ..gemm.exchange import Exchange
from .ring import READ, READY, blocks_of

BYTES = 512
"""Of a row of a piece. A box of TMA has 256 elements at most along a mode."""


@frozen
class Slots:
    """Say how pieces are brought. rows: of a piece. slots: pieces that a block has in shared memory. ahead: how many of
    them are on their way from other GPUs. late: how many more, whose slots are free again, may still be on their way to
    this GPU's memory."""

    rows: int = 8
    slots: int = 4
    ahead: int = 2
    late: int = 4

    @property
    def bytes(self) -> int:
        """Count those of a piece."""
        return self.rows * BYTES

    @property
    def memory(self) -> int:
        """Count the bytes of shared memory that a block's pieces take."""
        return self.slots * self.bytes

    @property
    def held(self) -> int:
        """Count the pieces of a block that are anywhere on their way, at most."""
        return self.slots + self.late

    def tile(self, dtype: Any) -> tuple[int, int]:
        """Give the rows and columns of a piece."""
        return self.rows, 8 * BYTES // dtype.width

    def layout(self, dtype: Any) -> Any:
        """Give the layout of pieces in shared memory, (rows, columns, slots)."""
        rows, columns = self.tile(dtype)
        return cute.make_layout((rows, columns, self.slots), stride=(columns, 1, rows * columns))


USUAL = Slots()


@traced
def reserve(smem: Any, tidx: Any, dtype: Any, of: Slots) -> tuple[Any, Any]:
    """Reserve a block's slots of pieces and their barriers. All threads, before they meet."""
    pieces = smem.allocate_tensor(dtype, of.layout(dtype), 128, None, "brought")
    barriers = smem.allocate_array(cute.Int64, of.slots, name="brought barriers")

    def initialise() -> None:
        for i in range(of.slots):
            arch.mbarrier_init(barriers + i, 1)

    current().when(current().compare("==", tidx, 0), initialise)
    return pieces, barriers


@frozen
class Brings(Exchange):
    """An exchange that brings A's rows, of elements `dtype`, from other GPUs, by `slots`."""

    dtype: Any
    slots: Slots

    registers = 56, 224

    @property
    def memory(self) -> int:
        """Count the bytes of shared memory that pieces take."""
        return self.slots.memory

    @property
    def brings(self) -> bool:
        """Say whether A's rows come from other GPUs."""
        return True


@cute.struct
class Bringing:
    """A block's part in it. of: what is brought. It `asks` whether the GPUs have begun to give, and counts on from
    launch to launch; or a launch before it did, and made what is counted 0. parts: what its copies take, as it
    partitioned it. barriers: of the slots."""

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
        arch.sync_warp()
        if arch.lane_idx() == 0:
            if arch.atomic_add(self.of.ended.iterator, 1, sem="acq_rel", scope="sys") == blocks - 1:
                self.of.ended[0] = 0
                self.of.signals.meet(READ, self.epoch)
            self.of.signals.advance(blocks)

    def bring(self, block, blocks):
        """Bring every piece whose number is `block` behind a multiple of `blocks`. A whole warp, which brings as much
        as its instructions let it: they must be few."""
        how = self.of.slots
        count = cute.Int32((self.of.pieces() - block + blocks - 1) // blocks)
        reads_of, held, held_at = cute.Int32(-1), cute.Int32(0), cute.Int32(0)
        for i in range(cute.Int32(0), cute.Int32(count + how.held)):
            arch.cp_async_bulk_wait_group(how.slots - how.ahead - 1, read=True)  # this slot has been read
            arch.cp_async_bulk_wait_group(how.held - how.ahead - 1)  # the piece before it is where it belongs
            if i >= how.held:
                place = self.of.place_of(cute.Int32(block + (i - how.held) * blocks))
                if place != held_at:
                    self.count(held_at, held)
                    held, held_at = cute.Int32(0), place
                held += 1
            if i < count:
                number, slot = cute.Int32(block + i * blocks), cute.Int32(i % how.slots)
                if cute.const_expr(self.of.asks):
                    hop = self.of.hop_of(number)
                    if hop != reads_of:
                        if arch.lane_idx() == 0:
                            self.of.signals.wait(self.of.peer(hop), READY, self.epoch)
                        arch.sync_warp()
                        arch.fence_proxy("async")
                        reads_of = hop
                if arch.elect_one():
                    arch.mbarrier_arrive_and_expect_tx(self.barriers + slot, how.bytes)
                arch.sync_warp()
                self.of.fetch(self.parts, number, slot, self.barriers + slot)
            if i >= how.ahead and i - how.ahead < count:
                turn = cute.Int32(i - how.ahead)
                arch.mbarrier_wait(self.barriers + turn % how.slots, turn // how.slots % 2)
                self.of.put(self.parts, cute.Int32(block + turn * blocks), turn % how.slots)
            arch.cp_async_bulk_commit_group()
        self.count(held_at, held)

    def count(self, place, pieces):
        """Count pieces that have come: release them to the warps that wait. A whole warp."""
        if pieces > 0 and arch.elect_one():
            arch.red(self.of.counter(place), pieces, "add", cute.Int32, sem="release", scope="gpu")
