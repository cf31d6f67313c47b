# SPDX-License-Identifier: Apache-2.0
"""Rows of A that lie on the GPUs of a group, brought while the product of those that are here is made.

A GPU's own rows come first, which are read as they lie; then those of the next GPU, and so on. One warp of each block
brings pieces of the others' rows by TMA, through shared memory, to memory of this GPU, and counts for each 128 rows
what has come; the warp that feeds the tensor cores waits for all of it.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import current, frozen, traced

from ..gemm.dense import TILE_M, at, tiles_of
from ..gemm.exchange import Exchange
from ..gemm.output import partition
from .ring import READ, READY, Ring, around, blocks_of

ROWS, BYTES = 4, 512
"""Of a piece: its rows, and the bytes of each. A box of TMA has 256 elements at most along a mode."""
SLOTS, AHEAD = 8, 5
"""Pieces that a block has in shared memory, and how many of them are on their way from other GPUs."""
BLOCK = TILE_M // ROWS
"""Pieces of those rows, one below the other, that are counted together."""


@frozen
class Gather(Exchange):
    """Other GPUs' rows as the kernel has them. rank: this GPU's number in the group. tma_own, own: how the kernel loads
    of A where it lies, (rows, K, GPUs). tma_load, there, tma_store, here: how pieces are brought from there to this
    GPU's memory, which has the same modes. layout: of pieces in shared memory, (rows, columns, slots). rows, columns:
    pieces along the modes of A. arrived: how many have come, of the launches until now, (blocks of rows, GPUs). ended:
    blocks of this launch that have brought their share. signals: of `Signals`."""

    dtype: Any
    layout: Any
    rank: Any
    tma_own: Any
    own: Any
    tma_load: Any
    there: Any
    tma_store: Any
    here: Any
    rows: Any
    columns: Any
    arrived: Any
    ended: Any
    signals: Any

    memory = SLOTS * ROWS * BYTES
    registers = 56, 224

    @property
    def brings(self) -> bool:
        """Say whether A's rows come from other GPUs."""
        return True

    def schedule(self, tiles: Any, cluster: Any, swizzle: int, along_m: bool) -> Any:
        """Make the order of the tiles, which begins with this GPU's own rows."""
        return Ring(tiles, cluster, swizzle, along_m, self.rank)

    def begin(self, smem: Any, tidx: Any) -> Bringing:
        """Reserve shared memory, and find the launch's epoch. All threads, before they meet."""
        pieces = smem.allocate_tensor(self.dtype, self.layout, 128, None, "brought")
        barriers = smem.allocate_array(cute.Int64, SLOTS, name="brought barriers")

        def initialise() -> None:
            for i in range(SLOTS):
                arch.mbarrier_init(barriers + i, 1)

        current().when(current().compare("==", tidx, 0), initialise)
        tile = (ROWS, cute.size(self.layout, mode=[1]))
        _, source = partition(self.tma_load, pieces, tiles_of(self.there, tile))
        shared, target = partition(self.tma_store, pieces, tiles_of(self.here, tile))
        return Bringing(self, shared, source, target, barriers, self.signals.epoch())


@cute.struct
class Bringing:
    """A block's part in it. shared: its slots of pieces. source, target: all pieces, where they come from and go to."""

    of: Any
    shared: Any
    source: Any
    target: Any
    barriers: Any
    epoch: Any

    @traced
    def peer(self, hop: Any) -> Any:
        """Give the GPU that is so many behind this one."""
        return around(self.of.rank + 1 + hop, self.of.signals.world)

    def await_rows(self, m, source):
        """Wait until A's rows of a tile have come. A whole warp, before it loads them. m: the tile's place along M."""
        if source != self.of.rank and m * BLOCK < self.of.rows:  # a cluster's last tile may have none
            if arch.lane_idx() == 0:
                pieces = min(self.of.rows - m * BLOCK, BLOCK) * self.of.columns
                want = cute.Int32(self.epoch) * pieces  # it goes round, as what is counted does
                while arch.load(self.counter(m, source), cute.Int32, sem="acquire", scope="gpu") - want < 0:
                    pass
            arch.sync_warp()
            arch.fence_proxy("async")

    @traced
    def counter(self, rows, source):
        """Give the place where pieces of a block of a GPU's rows are counted."""
        return cute.domain_offset((rows, source), self.of.arrived).iterator

    def talk(self):
        """Bring this block's share of the others' rows; one of the blocks tells the other GPUs when they may begin to
        read here, and one ends when all have read. A whole warp."""
        block, blocks = blocks_of()
        if block == 0 and arch.lane_idx() == 0:
            for hop in range(self.of.signals.world - 1):
                self.of.signals.put(self.peer(hop), READY, self.epoch)
        self.bring(cute.Int32(block), cute.Int32(blocks))
        if arch.lane_idx() == 0:
            if arch.atomic_add(self.of.ended.iterator, 1, sem="acq_rel", scope="sys") == blocks - 1:
                self.of.ended[0] = 0
                self.of.signals.meet(READ, self.epoch)
            self.of.signals.advance(blocks)

    def bring(self, block, blocks):
        """Bring every piece whose number is `block` behind a multiple of `blocks`. A whole warp."""
        each = self.of.rows * self.of.columns  # of a GPU
        count = (each * (self.of.signals.world - 1) - block + blocks - 1) // blocks
        reads_of, held, held_at = cute.Int32(-1), cute.Int32(0), cute.Int32(0)
        for i in range(count + SLOTS):
            arch.cp_async_bulk_wait_group(SLOTS - AHEAD - 1)  # the piece that lay in this slot is where it belongs
            if i >= SLOTS:
                before = block + (i - SLOTS) * blocks
                place = before // each * self.of.rows + before % each // self.of.columns  # of rows, of all GPUs
                rows = place // self.of.rows * ((self.of.rows + BLOCK - 1) // BLOCK) + place % self.of.rows // BLOCK
                if rows != held_at:
                    self.count(held_at, held)
                    held, held_at = cute.Int32(0), rows
                held += 1
            if i < count:
                number = block + i * blocks
                hop = number // each
                if hop != reads_of:
                    if arch.lane_idx() == 0:
                        self.of.signals.wait(self.peer(hop), READY, self.epoch)
                    arch.sync_warp()
                    arch.fence_proxy("async")
                    reads_of = hop
                slot = i % SLOTS
                if arch.elect_one():
                    arch.mbarrier_arrive_and_expect_tx(self.barriers + slot, ROWS * BYTES)
                arch.sync_warp()
                m, k = number % each // self.of.columns, number % self.of.columns
                cute.copy(
                    self.of.tma_load, at(self.source, m, k, self.peer(hop)), self.shared[None, slot],
                    tma_bar_ptr=self.barriers + slot,
                )  # fmt: skip
            if i >= AHEAD and i - AHEAD < count:
                number = block + (i - AHEAD) * blocks
                slot = (i - AHEAD) % SLOTS
                arch.mbarrier_wait(self.barriers + slot, (i - AHEAD) // SLOTS % 2)
                m, k = number % each // self.of.columns, number % self.of.columns
                cute.copy(self.of.tma_store, self.shared[None, slot], at(self.target, m, k, self.peer(number // each)))
            arch.cp_async_bulk_commit_group()
        self.count(held_at, held)

    def count(self, place, pieces):
        """Count pieces that have come: release them to the warps that wait. place: which block of rows, of the GPUs
        behind this one. A whole warp."""
        blocks = (self.of.rows + BLOCK - 1) // BLOCK
        if pieces > 0 and arch.elect_one():
            source = self.peer(place // blocks)
            arch.red(self.counter(place % blocks, source), pieces, "add", cute.Int32, sem="release", scope="gpu")
