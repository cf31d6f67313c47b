# SPDX-License-Identifier: Apache-2.0
"""Rows of A that lie on the GPUs of a group, brought while the product of those that are here is made.

A GPU's own rows come first, which are read as they lie; then those of the next GPU, and so on. Pieces of the others'
rows are brought, and counted for each 128 rows.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute.seam import frozen, quotient, traced

from ..gemm.dense import TILE_M, at, tiles_of
from ..gemm.output import partition
from .bringing import Bringing, Brings, reserve
from .ring import Ring, around


@frozen
class Gather(Brings):
    """Other GPUs' rows as the kernel has them. rank: this GPU's number in the group. tma_own, own: how the kernel loads
    of A where it lies, (rows, K, GPUs). tma_load, there, tma_store, here: how pieces are brought from there to this
    GPU's memory, which has the same modes. slots: of the pieces. rows, columns, each: pieces along the modes of A, and
    of a GPU, the last two divisors. arrived: how many have come, of the launches until now, a number for each block of
    rows. ended: blocks of this launch that have brought their share. signals: of `Signals`."""

    rank: Any
    tma_own: Any
    own: Any
    tma_load: Any
    there: Any
    tma_store: Any
    here: Any
    rows: Any
    columns: Any
    each: Any
    arrived: Any
    ended: Any
    signals: Any

    asks = True

    def schedule(self, tiles: Any, cluster: Any, swizzle: int, along_m: bool) -> Any:
        """Make the order of the tiles, which begins with this GPU's own rows."""
        return Ring(tiles, cluster, swizzle, along_m, self.rank)

    def begin(self, smem: Any, tidx: Any) -> Rows:
        """Reserve shared memory, and find the launch's epoch. All threads, before they meet."""
        pieces, barriers = reserve(smem, tidx, self.dtype, self.slots)
        tile = self.slots.tile(self.dtype)
        _, source = partition(self.tma_load, pieces, tiles_of(self.there, tile))
        shared, target = partition(self.tma_store, pieces, tiles_of(self.here, tile))
        return Rows(self, (shared, source, target), barriers, self.signals.epoch())

    @traced
    def peer(self, hop: Any) -> Any:
        """Give the GPU that is so many behind this one."""
        return around(self.rank + 1 + hop, self.signals.world)

    @traced
    def pieces(self) -> Any:
        """Count the pieces of all others."""
        return self.each.divisor * (self.signals.world - 1)

    @traced
    def hop_of(self, number: Any) -> Any:
        """Say how many behind this GPU the one is that has a piece."""
        return number // self.each

    @property
    def block(self) -> int:
        """Count the pieces, one below the other, that are counted together."""
        return TILE_M // self.slots.rows

    @traced
    def place_of(self, number: Any) -> Any:
        """Give the block of rows, of the GPUs behind this one, that a piece is of."""
        hop, rest = self.each.divmod(number)
        return cute.Int32(hop * self.blocks() + quotient(rest // self.columns, self.block))

    @traced
    def blocks(self) -> Any:
        """Count a GPU's blocks of rows."""
        return quotient(self.rows + (self.block - 1), self.block)

    @traced
    def counter(self, place: Any) -> Any:
        """Give where the pieces of a block of rows are counted."""
        return self.arrived.iterator + place

    @traced
    def fetch(self, parts: Any, number: Any, slot: Any, barrier: Any) -> None:
        """Begin to bring a piece to a slot."""
        shared, source, _ = parts
        cute.copy(self.tma_load, self._at(source, number), shared[None, slot], tma_bar_ptr=barrier)

    @traced
    def put(self, parts: Any, number: Any, slot: Any) -> None:
        """Begin to write a piece from its slot to this GPU's memory."""
        shared, _, target = parts
        cute.copy(self.tma_store, shared[None, slot], self._at(target, number))

    @traced
    def _at(self, pieces: Any, number: Any) -> Any:
        hop, rest = self.each.divmod(number)
        return at(pieces, *self.columns.divmod(rest), self.peer(hop))


@cute.struct
class Rows(Bringing):
    """A block's part in it, for the warp that feeds the tensor cores too."""

    def await_rows(self, m, source):
        """Wait until A's rows of a tile have come. A whole warp, before it loads them. m: the tile's place along M."""
        block = self.of.block
        if source != self.of.rank and m * block < self.of.rows:  # a cluster's last tile may have none
            hop = source - self.of.rank - 1
            if hop < 0:
                hop += self.of.signals.world
            pieces = min(self.of.rows - m * block, block) * self.of.columns.divisor
            self.await_pieces(cute.Int32(hop * self.of.blocks() + m), cute.Int32(pieces))
