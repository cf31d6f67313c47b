# SPDX-License-Identifier: Apache-2.0
"""Rows of results that go back to the GPUs of their tokens as soon as they are made, and are added up there: of a token
those of its choices, each times its weight, in their order, so that every run gives the same.

Warps that have made rows store them over NVLink, each where its pair of token and choice has its place. The rows of a
token are made by any experts, at any time: so columns are made slab by slab. What all GPUs have sent of a slab is added
up while the next one is made, by two warps of each block that multiply nothing; the last slab by those that multiplied.
"""

from __future__ import annotations

import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import current, frozen, quotient, remainder, traced

from ..gemm.exchange import Exchange
from ..gemm.indexed import VECTOR
from ..gemm.output import WARP_ROWS
from .ring import Telling, around, blocks_of
from .routes import NOWHERE, SENT, WARP, WRONG
from .sums import THREADS, vector_at

WARPS, EARLY = 8, 2
"""Warps of a block that multiply; and that add up while these multiply."""
AT_ONCE, MOST, CHOICES = 16, 4, 8
"""Vectors that a thread has on their way, of all of a token's choices, about; of one choice, at most; and choices, at
most."""


@frozen
class Returned:
    """Rows of the product as they go to the GPUs of their tokens. parts: as of `Combine`. origins: as of `Routes`."""

    parts: Any
    origins: Any

    @traced
    def address(self, row: Any, end: Any) -> Any:
        """Give where a row goes, as an Int64: 0 of one that is not before `end`."""
        b, pairs = current(), int(self.parts.shape[0])
        origin = self.origins[cute.min(cute.Int32(row), cute.Int32(end - 1))]
        there = vector_at(self.parts, VECTOR, remainder(origin, pairs), 0, quotient(origin, pairs))
        return b.select(b.compare("<", row, end), cute.Int64(there.iterator.toint()), cute.Int64(0))

    @traced
    def part(self, begin: Any, end: Any) -> RowsOfWarp:
        """Give those that a warp makes of a warpgroup's rows from `begin` on, before `end`. Each lane looks at one,
        long before it is stored."""
        row = cute.Int32(begin + arch.warp_idx() % 4 * WARP_ROWS + arch.lane_idx() % WARP_ROWS)
        return RowsOfWarp(self.parts.element_type, int(self.parts.shape[1]), self.address(row, end))


@frozen
class RowsOfWarp:
    """Rows that a warp has made. dtype: of their elements. columns: how many. address: of this lane's row, or 0."""

    dtype: Any
    columns: int
    address: Any

    @traced
    def store(self, shared: Any, row: Any, column: Any, batch: Any, lane: Any) -> None:
        """Write a piece, (rows, columns) in shared memory, without what is beyond the edges. column: its first. A whole
        warp."""
        b, n = current(), 8 * VECTOR // self.dtype.width
        rows, columns = (int(cute.size(shared, mode=[i])) for i in range(2))
        along = columns // n  # lanes of a row
        across = lane % along
        at = cute.Int32(column) + across * n
        inside = b.compare("<", at, self.columns)
        low, high = cute.Int32(self.address), cute.Int32(self.address >> 32)
        values = cute.make_rmem_tensor((n, rows * along // WARP), self.dtype)
        for i in range(rows * along // WARP):
            value = cute.local_tile(shared, (1, n), (i * (WARP // along) + lane // along, across))
            cute.autovec_copy(cute.make_tensor(value.iterator, cute.make_layout(n)), values[None, i])
        for i in range(rows * along // WARP):
            down = i * (WARP // along) + lane // along
            above, below = cute.Int64(arch.shuffle_sync(high, down)), cute.Uint32(arch.shuffle_sync(low, down))
            address = (above << 32) | cute.Int64(below)

            def put(i: int = i, address: Any = address) -> None:
                cute.autovec_copy(values[None, i], row_at(self.dtype, address, at, n))

            b.when(b.compare("!=", address, 0) & inside, put)


@traced
def row_at(dtype: Any, address: Any, column: Any, count: int) -> Any:
    """Give `count` elements of a row whose address is given, as a tensor."""
    place = address + cute.Int64(column) * (dtype.width // 8)
    return cute.make_tensor(cute.make_ptr(dtype, place, cute.AddressSpace.gmem, VECTOR), cute.make_layout(count))


@frozen
class Combine(Exchange):
    """The sums over a token's choices as the kernel has them. rank: this GPU's number. parts: of all GPUs, (pairs, N,
    GPUs). topk: pairs of a token. chosen: as of `Routes`. ended: of each slab, warps of this launch that have sent all.
    signals: of `Signals`. slab: columns of a slab, the same on all GPUs."""

    rank: Any
    parts: Any
    topk: int
    chosen: Any
    ended: Any
    signals: Any
    slab: int

    registers = 88, 208  # each vector on its way takes 4

    @property
    def sends(self) -> bool:
        """Say whether C's pieces go to other GPUs."""
        return True

    @property
    def wide(self) -> int:
        """Count the columns of a slab."""
        return self.slab

    @property
    def slabs(self) -> int:
        """Count the slabs."""
        return -(-int(self.parts.shape[1]) // self.wide)

    def begin(self, smem: Any, tidx: Any) -> Returning:
        """Find the launch's epoch. All threads, before they meet."""
        return Returning(self, self.signals.epoch(), cute.Int32(0))

    @traced
    def peer(self, hop: Any) -> Any:
        """Give the GPU that is so many before this one in the ring."""
        return around(self.rank + hop, self.signals.world)


@cute.struct
class Returning(Telling):
    """A block's part in it. passed: slabs of which this warp has said that it has sent all."""

    passed: Any

    def sent_before(self, slab):
        """Say that this warp has sent all of the slabs before one. A whole warp."""
        if self.passed < slab:
            arch.sync_warp()
            own = cute.Int32(self.passed + arch.lane_idx())
            if own < slab:
                self.sent(own)
            self.passed = cute.Int32(slab)

    def sent(self, slab):
        """Say that a warp has sent all of a slab; the last one of all blocks says it to all GPUs. One thread."""
        _, blocks = blocks_of()
        if arch.atomic_add(self.of.ended.iterator + slab, 1, sem="acq_rel", scope="sys") == blocks * WARPS - 1:
            self.of.ended[slab] = 0
            for hop in cute.range(self.of.signals.world, unroll=1):
                self.of.signals.put(self.of.peer(hop), SENT + slab, self.epoch)

    def await_all(self, slab):
        """Wait until all GPUs have sent all of a slab. A whole warp, each lane for one of them."""
        if arch.lane_idx() < self.of.signals.world:
            self.of.signals.wait(arch.lane_idx(), SENT + slab, self.epoch)
        arch.sync_warp()

    def add_early(self, totals, warp):
        """Add up this block's share of all slabs but the last, each when it is there. A warp that multiplies nothing.
        totals: as of `add_up`. warp: which of `EARLY`."""
        block, blocks = blocks_of()
        for slab in cute.range(self.of.slabs - 1, unroll=1):
            self.add_slab(totals, cute.Int32(slab), cute.Int32(block * EARLY + warp), blocks * EARLY)

    def add_up(self, totals, warp):
        """Say that all of this warp's rows are sent, and add up this block's share of the last slab. A warp that has
        multiplied. totals: the sums, (tokens, N), and the weights, (tokens, topk). warp: which of `WARPS`."""
        block, blocks = blocks_of()
        slabs = cute.Int32(self.of.slabs)
        self.sent_before(slabs)
        self.add_slab(totals, slabs - 1, cute.Int32(block * WARPS + warp), blocks * WARPS)

    def add_slab(self, totals, slab, warp, warps):
        """Wait for a slab, and add up a warp's share. warp, warps: which one it is, of how many."""
        sums, _ = totals
        vector = 8 * VECTOR // sums.element_type.width
        together = max(1, min(MOST, AT_ONCE // self.of.topk))
        across = cute.Int32(min(self.of.wide, cute.Int32(sums.shape[1] - slab * self.of.wide))) // vector
        each = (across + (WARP * together - 1)) // (WARP * together)
        self.await_all(slab)
        for i in range(warp, cute.Int32(sums.shape[0]) * each, warps):
            first = cute.Int32(i % each * (WARP * together) + arch.lane_idx())
            begin = slab * (self.of.wide // vector)
            self.add_vectors(totals, cute.Int32(i // each), begin + first, begin + across, together)

    def add_vectors(self, totals, token, first, end, together):
        """Add up some vectors of a token's: of each lane `first` and those WARP apart, before `end`. A whole warp, of
        which each lane looks at one of the choices, for all."""
        sums, weights = totals
        dtype, topk = sums.element_type, self.of.topk
        vector = 8 * VECTOR // dtype.width
        count = -(-topk // -(-topk // CHOICES))
        values = cute.make_rmem_tensor((vector, together, count), dtype)
        total = cute.make_rmem_tensor((vector, together), cute.Float32)
        total.fill(0.0)
        for choice in cute.range(0, topk, count, unroll=1):
            values.fill(0.0)
            own = cute.Int32(choice + arch.lane_idx())
            expert, share = cute.Int32(NOWHERE), cute.Float32(0.0)
            if own < topk:
                expert = self.of.chosen[token * topk + own]
                if expert >= 0:
                    share = cute.Float32(weights[token, own])
                elif expert == WRONG:
                    share = cute.Float32(math.nan)
            pair = cute.Int32(token * topk + choice)
            there = vector_at(self.of.parts, vector, pair, first * vector, self.of.rank)
            layout = cute.make_layout(values.shape, stride=(1, WARP * vector, self.of.parts.stride[0]))
            there = cute.make_tensor(there.iterator, layout)
            for j in cute.range_constexpr(count):
                if arch.shuffle_sync(expert, j) >= 0:
                    for i in cute.range_constexpr(together):
                        if first + i * WARP < end:
                            cute.autovec_copy(there[None, i, j], values[None, i, j])
            for j in cute.range_constexpr(count):
                times = arch.shuffle_sync(share, j)
                for i in cute.range_constexpr(together):
                    sum = total[None, i].load() + times * values[None, i, j].load().to(cute.Float32)
                    total[None, i].store(sum)
        made = cute.make_rmem_tensor((vector, together), dtype)
        made.store(total.load().to(dtype))
        for i in cute.range_constexpr(together):
            at = cute.Int32(first + i * WARP)
            if at < end:
                cute.autovec_copy(made[None, i], vector_at(sums, vector, token, at * vector))


@cuda.jit(launch_bounds=(THREADS, 2))
def send_back(exchange, back, rows, ends, totals):
    """Send rows back to their tokens, and add these up. exchange: a `Combine`. back: `Returned`. rows: (capacity, N).
    ends: as of `Routes`. totals: as of `Returning.add_up`."""
    tidx, _, _ = arch.thread_idx()
    block, blocks = blocks_of()
    others = exchange.begin(None, tidx)
    arch.sync_threads()  # all have the epoch
    if tidx < 32:
        others.talk()
    others.await_room()
    vector = 8 * VECTOR // rows.element_type.width
    across = cute.Int32(rows.shape[1] // vector)
    every = ends[ends.shape[0] - 1] * across
    for i in range(cute.Int32(block * THREADS + tidx), every, cute.Int32(blocks * THREADS)):
        row, column = i // across, i % across * vector
        there = row_at(rows.element_type, back.address(row, row + 1), column, vector)
        cute.autovec_copy(vector_at(rows, vector, row, column), there)
    others.add_up(totals, cute.Int32(tidx // 32))
