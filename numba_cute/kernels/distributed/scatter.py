# SPDX-License-Identifier: Apache-2.0
"""Sums over the GPUs of a group, each of which has a part of K: every tile of a GPU's product goes by TMA to the memory
of the GPU that owns its rows, as it is made, and the owner adds the parts up, in the order of the GPUs, so that every
run gives the same.

Rows of others come first, those of the next GPU before all, and a GPU's own rows last: their parts are there then.
Where all GPUs want all sums, either every tile goes to each of them (one shot), or the owner writes its sums to all
(two shots).
"""

from __future__ import annotations

import math
from typing import Any

import numba_cute as cute
from numba_cute import arch, pipeline
from numba_cute.seam import frozen, traced

from ..gemm.exchange import Exchange
from ..gemm.output import ROWS
from .ring import READY, SLOTS, Ring, around, blocks_of

VECTOR = 16  # bytes
TOGETHER = 8
"""Vectors of a part that a thread has on their way."""


@frozen
class Scatter(Exchange):
    """The sums over GPUs as the kernel has them. rank: this GPU's number in the group. parts: of the rows that are
    added up here, (rows, N, GPUs). tile_n: columns of a tile. everywhere: whether every tile goes to all GPUs, which
    all add up all rows. shared: memory of all GPUs for all sums, (rows, N, owners, GPUs), where each puts its own for
    all; or None. signals: of `Signals`. The sums go to (rows, N), or with `shared` to (rows, N, owners)."""

    rank: Any
    parts: Any
    tile_n: int
    everywhere: bool
    shared: Any
    signals: Any

    @property
    def sends(self) -> bool:
        """Say whether C's pieces go to other GPUs."""
        return True

    def schedule(self, tiles: Any, cluster: Any, swizzle: int, along_m: bool) -> Any:
        """Make the order of the tiles, which begins with the next GPU's rows."""
        if self.everywhere:
            return Exchange.schedule(self, tiles, cluster, swizzle, along_m)
        return Ring(tiles, cluster, swizzle, along_m, cute.Int32((int(self.rank) + 1) % self.signals.world))

    def begin(self, smem: Any, tidx: Any) -> Sending:
        """Find the launch's epoch. All threads, before they meet."""
        return Sending(self, self.signals.epoch())

    @property
    def units(self) -> Any:
        """Give how many times 64 rows, and how many tiles of columns, are added up here."""
        rows, n = (cute.Int32(x) for x in self.parts.shape[:2])
        return (rows + (ROWS - 1)) // ROWS, (n + (self.tile_n - 1)) // self.tile_n

    def slot(self, row: Any, column: Any) -> Any:
        """Give the slot of signals of a unit's parts."""
        return SLOTS + row * self.units[1] + column

    def shared_slot(self, row: Any, column: Any) -> Any:
        """Give the slot of signals of a unit's sums."""
        rows, columns = self.units
        return self.slot(row, column) + rows * columns


@cute.struct
class Sending:
    """A block's part in it."""

    of: Any
    epoch: Any

    @traced
    def first_of(self, owner: Any) -> Any:
        """Give the first GPU that a tile goes to."""
        return 0 if self.of.everywhere else owner

    @traced
    def end_of(self, owner: Any) -> Any:
        """Give the GPU after the last one that a tile goes to."""
        return self.of.signals.world if self.of.everywhere else owner + 1

    def await_room(self):
        """Wait until all GPUs have begun this launch: what they added up in the one before is read. A whole warp."""
        if arch.lane_idx() == 0:
            for hop in range(1, self.of.signals.world):
                self.of.signals.wait(around(self.of.rank + hop, self.of.signals.world), READY, self.epoch)
        arch.sync_warp()
        arch.fence_proxy("async")

    def sent(self, unit):
        """Say that all pieces of a unit have arrived. The warp that stored them. unit: its row and column, counted in
        units, and whose rows these are."""
        row, column, owner = unit
        arch.cp_async_bulk_wait_group(0)
        if row < self.of.units[0] and arch.elect_one():
            for there in range(self.first_of(owner), self.end_of(owner)):
                self.of.signals.put(there, self.of.slot(row, column), self.epoch)

    def talk(self):
        """Tell the other GPUs that this launch has begun, and count it. A whole warp."""
        block, blocks = blocks_of()
        if arch.lane_idx() == 0:
            if block == 0:
                for hop in range(1, self.of.signals.world):
                    self.of.signals.put(around(self.of.rank + hop, self.of.signals.world), READY, self.epoch)
            self.of.signals.advance(blocks)

    def add_up(self, totals, thread):
        """Add up this block's share of the units. All threads that multiply. totals: where the sums go. thread: which
        one of them."""
        group, (block, blocks) = thread // 128, blocks_of()
        meet = pipeline.NamedBarrier(1 + group, 128)
        rows, columns = self.of.units
        for unit in range(cute.Int32(2 * block + group), rows * columns, cute.Int32(2 * blocks)):
            row, column = unit // columns, unit % columns
            self.await_parts(row, column, thread % 128)
            meet.arrive_and_wait()
            self.add_unit(totals, row, column, thread % 128)
            if cute.const_expr(self.of.shared is not None):
                meet.arrive_and_wait()
                if thread % 128 == 0:
                    for hop in range(self.of.signals.world):
                        there = around(self.of.rank + hop, self.of.signals.world)
                        self.of.signals.put(there, self.of.shared_slot(row, column), self.epoch)
        if cute.const_expr(self.of.shared is not None):
            every = rows * columns * self.of.signals.world
            for unit in range(cute.Int32(2 * block + group), every, cute.Int32(2 * blocks)):
                owner = around(self.of.rank + unit // (rows * columns), self.of.signals.world)
                row, column = unit // columns % rows, unit % columns
                self.await_sums(row, column, owner, thread % 128)
                meet.arrive_and_wait()
                self.copy_unit(totals, row, column, owner, thread % 128)

    def await_parts(self, row, column, thread):
        """Wait until all parts of a unit are there. A warpgroup, each warp for some of the GPUs."""
        if thread % 32 == 0:
            for source in range(thread // 32, self.of.signals.world, 4):
                self.of.signals.wait(source, self.of.slot(row, column), self.epoch)

    def await_sums(self, row, column, owner, thread):
        """Wait until the sums of a unit are there. A warpgroup."""
        if thread == 0:
            self.of.signals.wait(owner, self.of.shared_slot(row, column), self.epoch)

    def add_unit(self, totals, row, column, thread):
        """Add up the parts of a unit, which are there. A warpgroup. thread: which one of it."""
        dtype = totals.element_type
        vector, each, together = vectors_of(self.of.parts.element_type, self.of.tile_n)
        rows, n = cute.Int32(self.of.parts.shape[0]), cute.Int32(self.of.parts.shape[1])
        values = cute.make_rmem_tensor((vector, together), self.of.parts.element_type)
        sums = cute.make_rmem_tensor((vector, together), cute.Float32)
        made = cute.make_rmem_tensor((vector, together), dtype)
        for first in range(0, each, together):
            sums.fill(0.0)
            for source in cute.range(self.of.signals.world, unroll=2):
                for i in cute.range_constexpr(together):
                    m, at = place(thread + 128 * (first + i), self.of.tile_n, row, column, vector)
                    m, at = min(m, rows - 1), min(at, n - vector)  # what is beyond is read from elsewhere, and left out
                    cute.autovec_copy(vector_at(self.of.parts, vector, m, at, source), values[None, i])
                sums.store(sums.load() + values.load().to(cute.Float32))
            made.store(sums.load().to(dtype))
            for i in cute.range_constexpr(together):
                m, at = place(thread + 128 * (first + i), self.of.tile_n, row, column, vector)
                if m < rows and at < n:
                    if cute.const_expr(self.of.shared is None):
                        cute.autovec_copy(made[None, i], vector_at(totals, vector, m, at))
                    else:
                        for there in range(self.of.signals.world):
                            there = vector_at(self.of.shared, vector, m, at, self.of.rank, there)
                            cute.autovec_copy(made[None, i], there)

    def copy_unit(self, totals, row, column, owner, thread):
        """Bring the sums of a unit, which are there, to where they go. A warpgroup. thread: which one of it."""
        dtype = totals.element_type
        vector, each, together = vectors_of(dtype, self.of.tile_n)
        rows, n = cute.Int32(self.of.parts.shape[0]), cute.Int32(self.of.parts.shape[1])
        values = cute.make_rmem_tensor((vector, together), dtype)
        for first in range(0, each, together):
            for i in cute.range_constexpr(together):
                m, at = place(thread + 128 * (first + i), self.of.tile_n, row, column, vector)
                m, at = min(m, rows - 1), min(at, n - vector)
                cute.autovec_copy(vector_at(self.of.shared, vector, m, at, owner, self.of.rank), values[None, i])
            for i in cute.range_constexpr(together):
                m, at = place(thread + 128 * (first + i), self.of.tile_n, row, column, vector)
                if m < rows and at < n:
                    cute.autovec_copy(values[None, i], vector_at(totals, vector, m, at, owner))


@traced
def vectors_of(dtype: Any, tile_n: int) -> tuple[int, int, int]:
    """Give how many elements a thread copies at once, how often of a unit, and how often before it goes on."""
    vector = 8 * VECTOR // dtype.width
    each = ROWS * tile_n // vector // 128
    return vector, each, math.gcd(TOGETHER, each)


@traced
def place(number: Any, tile_n: int, row: Any, column: Any, vector: int) -> tuple[Any, Any]:
    """Give where a vector of a unit is, by its number. row, column: of the unit."""
    across = tile_n // vector
    return cute.Int32(ROWS * row + number // across), cute.Int32(tile_n * column + number % across * vector)


@traced
def vector_at(tensor: Any, count: int, row: Any, column: Any, *more: Any) -> Any:
    """Give `count` elements of a row, as a tensor whose memory begins at a multiple of them."""
    offset = cute.Int64(column)
    for place, step in zip((row, *more), (tensor.stride[0], *tensor.stride[2:])):
        offset = offset + cute.Int64(place) * cute.Int64(step)
    dtype = tensor.element_type
    place = (tensor.iterator + offset).toint()
    return cute.make_tensor(
        cute.make_ptr(dtype, place, cute.AddressSpace.gmem, count * dtype.width // 8), cute.make_layout(count)
    )
