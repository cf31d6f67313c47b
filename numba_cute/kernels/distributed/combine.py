# SPDX-License-Identifier: Apache-2.0
"""Rows of results that go back to the GPUs of their tokens as soon as they are made, and are added up there: of a token
those of its choices, each times its weight, in their order, so that every run gives the same.

Warps that have made rows store them over NVLink, each where its pair of token and choice has its place. The rows of a
token are made by any experts, at any time: they are added up when all GPUs have sent theirs, by all threads that
multiplied.
"""

from __future__ import annotations

import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline
from numba_cute.seam import current, frozen, quotient, remainder, traced

from ..gemm.exchange import Exchange
from ..gemm.indexed import BEYOND, VECTOR, Rows
from .ring import Telling, around, blocks_of
from .routes import SENT, WARP, WRONG
from .sums import vector_at

THREADS = 256
"""Threads of a block that multiply, and add up."""
TOGETHER, MOST = 16, 4
"""Vectors that a thread has on their way, of all of a token's choices, about; and of one choice, at most."""
MEET = 3  # a barrier of theirs; the pieces of C have 1 and 2


@frozen
class Returned(Rows):
    """Rows of all GPUs' pairs, by `origins` (the index). matrix: (pairs, columns, GPUs)."""

    @traced
    def number(self, row: Any) -> Any:
        """Give the number of a row of the product among all GPUs' pairs, or BEYOND."""
        b = current()
        there = self.index[cute.min(cute.Int32(row), cute.Int32(self.extent - 1))]
        return b.select(b.compare("<", row, self.extent), cute.Int32(there), cute.Int32(BEYOND))

    @traced
    def part(self, begin: Any, end: Any) -> Returned:
        """Give those of the product's rows from `begin` up to `end`, which are counted from 0."""
        index = cute.domain_offset((begin,), self.index)
        return Returned(self.matrix, index, cute.Int32(end - begin), self.vector)

    @traced
    def at(self, number: Any, column: Any, batch: Any, count: int) -> Any:
        """Give `count` elements of a row, as a tensor whose memory begins at a multiple of them."""
        pairs = int(self.matrix.shape[0])
        return vector_at(self.matrix, count, remainder(number, pairs), column, quotient(number, pairs))

    @traced
    def store(self, shared: Any, row: Any, column: Any, batch: Any, lane: Any) -> None:
        """Write a piece, (rows, columns) in shared memory, of no more rows than a warp has lanes, without what is
        beyond the edges. row, column: its first. A whole warp, whose lanes look at a row each, all at once."""
        b, n = current(), self.vector
        rows, columns = (int(cute.size(shared, mode=[i])) for i in range(2))
        along = columns // n  # lanes of a row
        own = self.number(cute.Int32(row) + lane % rows)
        across = lane % along
        inside = b.compare("<", cute.Int32(column) + across * n, self.matrix.shape[1])
        for i in range(0, rows, WARP // along):
            down = i + lane // along
            number = arch.shuffle_sync(own, down)
            value = cute.local_tile(shared, (1, n), (down, across))
            value = cute.make_tensor(value.iterator, cute.make_layout(n))

            def put(value: Any = value, number: Any = number) -> None:
                cute.autovec_copy(value, self.at(number, cute.Int32(column) + across * n, batch, n))

            b.when(b.compare(">=", number, 0) & inside, put)


@frozen
class Combine(Exchange):
    """The sums over a token's choices as the kernel has them. rank: this GPU's number. parts: of all GPUs, (pairs, N,
    GPUs). topk: pairs of a token. chosen: as of `Routes`. ended: blocks of this launch that have sent all. signals: of
    `Signals`."""

    rank: Any
    parts: Any
    topk: int
    chosen: Any
    ended: Any
    signals: Any

    @property
    def sends(self) -> bool:
        """Say whether C's pieces go to other GPUs."""
        return True

    @property
    def together(self) -> int:
        """Count the vectors of a choice that a thread has on their way."""
        return max(1, min(MOST, TOGETHER // self.topk))

    def begin(self, smem: Any, tidx: Any) -> Returning:
        """Find the launch's epoch. All threads, before they meet."""
        return Returning(self, self.signals.epoch())

    @traced
    def peer(self, hop: Any) -> Any:
        """Give the GPU that is so many before this one in the ring."""
        return around(self.rank + hop, self.signals.world)


@cute.struct
class Returning(Telling):
    """A block's part in it."""

    def add_up(self, totals, thread):
        """Say that this block has sent all, wait until all GPUs have, and add up this block's share. All threads that
        multiply. totals: the sums, (tokens, N), and the weights, (tokens, topk). thread: which one of them."""
        sums, weights = totals
        meet = pipeline.NamedBarrier(MEET, THREADS)
        block, blocks = blocks_of()
        meet.arrive_and_wait()
        if thread == 0:
            self.sent(blocks)
        arch.sync_warp()
        self.await_all(thread)
        meet.arrive_and_wait()
        vector = 8 * VECTOR // sums.element_type.width
        across = cute.Int32(sums.shape[1] // vector)
        each = (across + (self.of.together - 1)) // self.of.together
        every = cute.Int32(sums.shape[0]) * each
        for i in range(cute.Int32(block * THREADS) + thread, every, cute.Int32(blocks * THREADS)):
            self.add_vectors(sums, weights, i // each, i % each, each, across)

    def sent(self, blocks):
        """Say that this block has sent all; the last one of so many says it to all GPUs. One thread."""
        if arch.atomic_add(self.of.ended.iterator, 1, sem="acq_rel", scope="sys") == blocks - 1:
            self.of.ended[0] = 0
            for hop in range(self.of.signals.world):
                self.of.signals.put(self.of.peer(hop), SENT, self.epoch)

    def await_all(self, thread):
        """Wait until all GPUs have sent all, each thread for one of them."""
        if thread < self.of.signals.world:
            self.of.signals.wait(thread, SENT, self.epoch)

    def add_vectors(self, sums, weights, token, first, step, across):
        """Add up some vectors of a token's, `step` apart, of which there are `across`."""
        dtype = sums.element_type
        vector = 8 * VECTOR // dtype.width
        values = cute.make_rmem_tensor((vector, self.of.together, self.of.topk), dtype)
        shares = cute.make_rmem_tensor(self.of.topk, cute.Float32)
        values.fill(0.0)
        for j in cute.range_constexpr(self.of.topk):
            pair = cute.Int32(token * self.of.topk + j)
            expert = self.of.chosen[pair]
            shares[j] = cute.Float32(weights[token, j])
            if expert >= 0:
                for i in cute.range_constexpr(self.of.together):
                    at = cute.Int32(first + i * step)
                    if at < across:
                        there = vector_at(self.of.parts, vector, pair, at * vector, self.of.rank)
                        cute.autovec_copy(there, values[None, i, j])
            else:
                shares[j] = cute.Float32(math.nan) if expert == WRONG else cute.Float32(0.0)
        for i in cute.range_constexpr(self.of.together):
            at = cute.Int32(first + i * step)
            total = cute.make_rmem_tensor(vector, cute.Float32)
            made = cute.make_rmem_tensor(vector, dtype)
            total.fill(0.0)
            for j in cute.range_constexpr(self.of.topk):
                total.store(total.load() + shares[j] * values[None, i, j].load().to(cute.Float32))
            made.store(total.load().to(dtype))
            if at < across:
                cute.autovec_copy(made, vector_at(sums, vector, token, at * vector))


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
        there = back.at(back.number(row), column, 0, vector)
        cute.autovec_copy(vector_at(rows, vector, row, column), there)
    others.add_up(totals, cute.Int32(tidx))
