# SPDX-License-Identifier: Apache-2.0
"""Keys and values that lie on the GPUs of a group, each of which has a part of the sequence, brought while attention
over those that are here is computed.

A tile of queries visits the blocks of keys of its own GPU first, which are read as they lie, then those of the GPU
before, and so on, round the ring; what no query here sees is neither brought nor read. Keys come in *chunks*, of which
each GPU has one, all of its rows, or in zigzag order two, its rows' halves. Of the *near* GPUs every query sees the
first chunk; of the *far* ones, which come after them, the queries of this GPU's second chunk see both:

    causal, in the order of the GPUs    near: those before, whose one chunk is seen    far: none
    causal, zigzag                      near: those before                             far: those after
    not causal                          near: all others, whose one chunk is seen      far: none

Pieces of K and of V are brought alike, and counted together for each block of keys of some heads: those of the heads
whose tiles are done side by side come first.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import current, frozen, quotient, traced

from ..gemm.dense import at, tiles_of
from ..gemm.output import partition
from .bringing import Bringing, Slots, reserve


@frozen
class Copies:
    """The copies that bring K, or V. tma_load, there, tma_store, here: pieces, of (rows, heads of d, batch, GPUs), from
    there to this GPU's memory. tma, blocks: how the kernel loads blocks of keys from that, whose modes are those of K,
    or V, as the kernel has them, and the GPUs."""

    tma_load: Any
    there: Any
    tma_store: Any
    here: Any
    tma: Any
    blocks: Any


@frozen
class Keys:
    """Other GPUs' keys and values as the kernel has them. rank: this GPU's number. slots: of the pieces. k, v: their
    `Copies`. tile_n: keys of a block. near: so many GPUs before this one. far: so many before those. rows: of a chunk.
    chunks: that are brought, of all GPUs, or 1. per: blocks of a chunk. down: pieces along its rows; of two chunks the
    first ends with a block. of_k, of_v: pieces along the columns of the heads that are brought together. across: of
    both. each: pieces of a chunk of a set of heads. heads: so many, of K and V. sets: of such heads. batch: how many.
    chunks, per, across, each and sets are divisors. arrived: how many pieces of a place have come, of the launches
    until now. ended: blocks of this launch that have brought their share."""

    dtype: Any
    slots: Slots
    rank: Any
    k: Any
    v: Any
    tile_n: int
    near: Any
    far: Any
    rows: Any
    chunks: Any
    per: Any
    down: Any
    of_k: Any
    of_v: Any
    across: Any
    each: Any
    heads: Any
    sets: Any
    batch: Any
    arrived: Any
    ended: Any
    signals: Any

    asks = True

    # ------------------------------------------------------------------ the walk through the blocks
    @traced
    def before(self) -> Any:
        """Count the places of blocks of other GPUs, which come after this one's: places are visited from the last."""
        return self.count() * self.per.divisor

    @traced
    def first(self, query: Any) -> Any:
        """Give the first place of a tile whose last query this is."""
        b = current()
        return b.select(b.compare("<", query, self.rows), 2 * self.far * self.per.divisor, 0)

    @traced
    def block_at(self, place: Any) -> Any:
        """Give the block of a GPU's keys at a place, and the chunk, which is negative where they are this GPU's own."""
        left, block = self.per.divmod(place)
        b, chunk = current(), self.count() - 1 - left
        there = (self.second(chunk) + 1) * self.per.divisor - 1 - block
        return cute.Int32(b.select(b.compare("<", chunk, 0), place - self.before(), there)), cute.Int32(chunk)

    @traced
    def next_of(self, place: Any, block: Any, chunk: Any, whole: Any) -> Any:
        """Give the next place, after one and its block, at which to ask what is seen: before it all blocks are seen
        whole. whole: the first block of the GPU that is not. This GPU's own come from the last on, others' from the
        first on, one GPU's after the other's."""
        b = current()
        of_own = b.select(b.compare(">", block, whole), place - 1, self.before() - 1)
        return b.select(b.compare("<", chunk, 0), of_own, place - cute.max(1, whole - block))

    @traced
    def limit(self, chunk: Any, query: Any, keys: Any) -> Any:
        """Say before which key those end that a query sees, of the GPU that a chunk is of. keys: of a GPU."""
        b = current()
        of_far = b.select(b.compare("<", query, self.rows), 0, keys)
        return cute.Int32(b.select(b.compare("<", chunk, self.near), self.rows, of_far))

    # ------------------------------------------------------------------ the chunks
    @traced
    def count(self) -> Any:
        """Count the chunks that are brought."""
        return self.near + 2 * self.far

    @traced
    def second(self, chunk: Any) -> Any:
        """Say whether a chunk is the second of its GPU: 1 or 0."""
        b, of_far = current(), chunk - self.near
        return b.select(b.compare("<", of_far, 0), 0, of_far & 1)

    @traced
    def hop(self, chunk: Any) -> Any:
        """Say of which GPU a chunk is, as of `peer`."""
        b, of_far = current(), chunk - self.near
        return b.select(b.compare("<", of_far, 0), chunk, self.near + (of_far >> 1))

    # ------------------------------------------------------------------ what is brought
    def begin(self, smem: Any, tidx: Any, shared_k: Any, shared_v: Any) -> Visited:
        """Reserve shared memory, and find the launch's epoch. All threads, before they meet. shared_k, shared_v: stages
        of blocks."""
        pieces, barriers = reserve(smem, tidx, self.dtype, self.slots)
        tile = self.slots.tile(self.dtype)
        shared, k = partition(self.k.tma_load, pieces, tiles_of(self.k.there, tile))
        _, to_k = partition(self.k.tma_store, pieces, tiles_of(self.k.here, tile))
        _, v = partition(self.v.tma_load, pieces, tiles_of(self.v.there, tile))
        _, to_v = partition(self.v.tma_store, pieces, tiles_of(self.v.here, tile))
        of_k, of_v = (
            partition(how.tma, stages, tiles_of(how.blocks, tuple(cute.size(stages, mode=[i]) for i in range(2))))
            for how, stages in ((self.k, shared_k), (self.v, shared_v))
        )
        return Visited(self, (shared, k, v, to_k, to_v), barriers, self.signals.epoch(), of_k, of_v)

    @traced
    def peer(self, hop: Any) -> Any:
        """Give the GPU that is so many and one before this one."""
        b, number = current(), self.rank - 1 - hop
        return b.select(b.compare("<", number, 0), number + self.signals.world, number)

    @traced
    def pieces(self) -> Any:
        """Count all pieces."""
        return self.batch * self.sets.divisor * self.count() * self.each.divisor

    @traced
    def hop_of(self, number: Any) -> Any:
        """Say of which GPU a piece is, as of `peer`."""
        return self.hop(number // self.each % self.chunks)

    @traced
    def place_of(self, number: Any) -> Any:
        """Give the place of a piece: a block of keys, of a chunk, of a set of heads, of the batch."""
        chunk_of, rest = self.each.divmod(number)
        return cute.Int32(chunk_of * self.per.divisor + quotient(rest // self.across, self.tall))

    @property
    def tall(self) -> int:
        """Count the pieces of a block of keys, one below the other."""
        return self.tile_n // self.slots.rows

    @traced
    def counter(self, place: Any) -> Any:
        """Give where the pieces of a place are counted."""
        return self.arrived.iterator + place

    @traced
    def fetch(self, parts: Any, number: Any, slot: Any, barrier: Any) -> None:
        """Begin to bring a piece to a slot."""
        shared, k, v, _, _ = parts

        def copy(how: Any, piece: Any) -> None:
            cute.copy(how.tma_load, piece, shared[None, slot], tma_bar_ptr=barrier)

        self._of_either(number, copy, k, v)

    @traced
    def put(self, parts: Any, number: Any, slot: Any) -> None:
        """Begin to write a piece from its slot to this GPU's memory."""
        shared, _, _, k, v = parts

        def copy(how: Any, piece: Any) -> None:
            cute.copy(how.tma_store, shared[None, slot], piece)

        self._of_either(number, copy, k, v)

    @traced
    def _of_either(self, number: Any, copy: Any, k: Any, v: Any) -> None:
        b, (chunk_of, rest) = current(), self.each.divmod(number)
        row, column = self.across.divmod(rest)
        left, chunk = self.chunks.divmod(chunk_of)
        batch, which = self.sets.divmod(left)
        row += self.second(chunk) * self.down
        there, of_v = (batch, self.peer(self.hop(chunk))), column - self.of_k
        b.when(b.compare("<", of_v, 0), lambda: copy(self.k, at(k, row, which * self.of_k + column, *there)))
        b.when(b.compare(">=", of_v, 0), lambda: copy(self.v, at(v, row, which * self.of_v + of_v, *there)))


@cute.struct
class Visited(Bringing):
    """A block's part in it, for the warp that feeds the tensor cores too. of_k, of_v: blocks of keys, and of values, in
    shared memory and where they come from."""

    of_k: Any
    of_v: Any

    def have_all(self):
        """Say whether all GPUs have all, so that nothing is waited for any more. A whole warp."""
        begun = arch.shuffle_sync(cute.Int32(self.of.signals.epoch()), 0)  # the next one, once all blocks advanced
        arch.fence_proxy("async")
        return begun != cute.Int32(self.epoch)

    def await_block(self, n, chunk, head, b):
        """Wait until a block of another GPU's keys and values has come. A whole warp. head: of K and V."""
        tall, block = self.of.tall, cute.Int32(n - self.of.second(chunk) * self.of.per.divisor)
        place = (b * self.of.sets.divisor + head // self.of.heads) * self.of.chunks.divisor + chunk
        pieces = min(self.of.down - block * tall, tall) * self.of.across.divisor
        self.await_pieces(cute.Int32(place * self.of.per.divisor + block), cute.Int32(pieces))

    def load_k(self, tma, own, n, chunk, head, b, stage):
        """Load a block of keys, which has come. A whole warp. tma, own: of this GPU's own."""
        shared, blocks = self.of_k
        target = shared[None, stage.index]
        if chunk < 0:
            cute.copy(tma, own[None, n], target, tma_bar_ptr=stage.barrier)
        else:
            source = blocks[None, n, 0, head, b, self.of.peer(self.of.hop(chunk))]
            cute.copy(self.of.k.tma, source, target, tma_bar_ptr=stage.barrier)

    def load_v(self, tma, own, n, chunk, head, b, stage):
        """Load a block of values. All as of `load_k`."""
        shared, blocks = self.of_v
        target = shared[None, stage.index]
        if chunk < 0:
            cute.copy(tma, own[None, n], target, tma_bar_ptr=stage.barrier)
        else:
            source = blocks[None, 0, n, head, b, self.of.peer(self.of.hop(chunk))]
            cute.copy(self.of.v.tma, source, target, tma_bar_ptr=stage.barrier)
