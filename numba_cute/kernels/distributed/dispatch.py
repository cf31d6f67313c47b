# SPDX-License-Identifier: Apache-2.0
"""Rows of tokens that go to this GPU's experts, brought from the GPUs of a group while those that are here are
multiplied, each by its expert's matrix.

`routes.py` has found, before, which rows come and where they lie. They are brought in that order, in pieces, and
counted for each 128 rows: a tile waits for those that it reads. That kernel waited for all GPUs, so that their rows
are there.
"""

from __future__ import annotations

from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.seam import current, frozen, traced

from ..gemm.dense import TILE_M
from ..gemm.exchange import Exchange
from .bringing import BYTES, MEMORY, ROWS, SLOTS, Bringing, reserve
from .ring import around

MOST_BYTES = ROWS * BYTES
"""Of a piece: what a slot holds."""


def pieces_of(nbytes: int) -> int:
    """Count the pieces of a row of so many bytes: of multiples of 16 bytes, all alike."""
    return next(n for n in range(-(-nbytes // MOST_BYTES), nbytes + 1) if nbytes % (16 * n) == 0)


@frozen
class Dispatch(Exchange):
    """Other GPUs' rows as the kernel has them. rank: this GPU's number. there: tokens of all GPUs, (tokens, hidden,
    GPUs). here: rows that come, (capacity, hidden). pairs, topk, origins, ends, arrived, signals: as of `Routes`; topk:
    the pairs of a token. across: pieces of a row. ended: blocks of this launch that have brought their share."""

    dtype: Any
    rank: Any
    there: Any
    here: Any
    pairs: int
    topk: int
    across: int
    origins: Any
    ends: Any
    arrived: Any
    ended: Any
    signals: Any

    memory = MEMORY
    registers = 56, 224
    asks = False

    @property
    def brings(self) -> bool:
        """Say whether A's rows come from other GPUs."""
        return True

    @property
    def columns(self) -> int:
        """The elements of a piece."""
        return int(self.here.shape[1]) // self.across

    @property
    def nbytes(self) -> int:
        """The bytes of a piece."""
        return self.columns * int(self.dtype.width) // 8

    def begin(self, smem: Any, tidx: Any) -> Arriving:
        """Reserve shared memory, and find the launch's epoch. All threads, before they meet."""
        slots = cute.make_layout((self.columns, SLOTS), stride=(1, 8 * MOST_BYTES // self.dtype.width))
        shared, barriers = reserve(smem, tidx, self.dtype, slots)
        return Arriving(self, shared, barriers, self.signals.epoch())

    @traced
    def peer(self, hop: Any) -> Any:
        """Give the GPU that is so many behind this one."""
        return around(self.rank + 1 + hop, self.signals.world)

    @traced
    def total(self) -> Any:
        """Count the rows that come."""
        return self.ends[int(self.ends.shape[0]) - 1]

    @traced
    def pieces(self) -> Any:
        """Count the pieces of all rows."""
        return self.total() * self.across

    @traced
    def place_of(self, number: Any) -> Any:
        """Give the block of rows that a piece is of."""
        return number // (self.across * TILE_M)

    @traced
    def counter(self, place: Any) -> Any:
        """Give where the pieces of a block of rows are counted."""
        return self.arrived.iterator + place

    @traced
    def fetch(self, shared: Any, number: Any, slot: Any, barrier: Any) -> None:
        """Begin to bring a piece to a slot."""
        origin = self.origins[number // self.across]
        token = cute.Int32(origin % self.pairs // self.topk)
        row = self.there[token, None, origin // self.pairs]
        load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), self.dtype, num_bits_per_copy=8 * self.nbytes)
        copy = lambda: cute.copy(  # noqa: E731
            load, self._part(row, number), shared[None, slot], tma_bar_ptr=barrier
        )
        current().when(arch.elect_one(), copy)

    @traced
    def put(self, shared: Any, number: Any, slot: Any) -> None:
        """Begin to write a piece from its slot to this GPU's memory."""
        row = self.here[number // self.across, None]
        store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), self.dtype, num_bits_per_copy=8 * self.nbytes)
        copy = lambda: cute.copy(store, shared[None, slot], self._part(row, number))  # noqa: E731
        current().when(arch.elect_one(), copy)

    @traced
    def _part(self, row: Any, number: Any) -> Any:
        return cute.local_tile(row, (self.columns,), (number % self.across,))


@cute.struct
class Arriving(Bringing):
    """A block's part in it, for the warp that feeds the tensor cores too."""

    def await_tile(self, row):
        """Wait until the rows of a tile have come, and what follows its group's in the box that is loaded. A whole
        warp. row: its first."""
        total = cute.Int32(self.of.total())
        place, end = cute.Int32(row) // TILE_M, min(cute.Int32(row) + TILE_M, total)
        while place * TILE_M < end:
            rows = min(total - place * TILE_M, cute.Int32(TILE_M))
            self.await_pieces(place, rows * self.of.across)
            place += 1


@cuda.jit(launch_bounds=32)
def bring(exchange):
    """Bring all rows, for what comes after. exchange: a `Dispatch`. A warp of each block."""
    tidx, _, _ = arch.thread_idx()
    others = exchange.begin(utils.SmemAllocator(), tidx)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    others.talk()
