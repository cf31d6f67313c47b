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
from numba_cute.seam import current, frozen, quotient, remainder, traced

from ..gemm.dense import TILE_M
from .bringing import Bringing, Brings, Slots, reserve
from .ring import around

MOST_BYTES = 4096
"""Of a piece."""


def pieces_of(nbytes: int) -> int:
    """Count the pieces of a row of so many bytes: of multiples of 16 bytes, all alike."""
    return next(n for n in range(-(-nbytes // MOST_BYTES), nbytes + 1) if nbytes % (16 * n) == 0)


@frozen
class Parts(Slots):
    """Say how parts of rows are brought. size: bytes of one, a multiple of 16. The others: as of `Slots`."""

    size: int = MOST_BYTES

    @property
    def bytes(self) -> int:
        """Count those of a piece."""
        return self.size

    def layout(self, dtype: Any) -> Any:
        """Give the layout of pieces in shared memory, (elements, slots)."""
        return cute.make_layout((8 * self.size // dtype.width, self.slots))


def parts_of(nbytes: int) -> Parts:
    """Choose how parts of rows of so many bytes are brought."""
    return Parts(1, 4, 2, 6, nbytes // pieces_of(nbytes))


@frozen
class Dispatch(Brings):
    """Other GPUs' rows as the kernel has them. rank: this GPU's number. slots: of the pieces. there: tokens of all
    GPUs, (tokens, hidden, GPUs). here: rows that come, (capacity, hidden). pairs, origins, ends, arrived, signals: as
    of `Routes`; topk: the pairs of a token. across: pieces of a row. ended: blocks of this launch that have brought
    their share."""

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

    asks = False

    def begin(self, smem: Any, tidx: Any) -> Arriving:
        """Reserve shared memory, and find the launch's epoch. All threads, before they meet."""
        shared, barriers = reserve(smem, tidx, self.dtype, self.slots)
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
        return cute.Int32(quotient(number, self.across * TILE_M))

    @traced
    def counter(self, place: Any) -> Any:
        """Give where the pieces of a block of rows are counted."""
        return self.arrived.iterator + place

    @traced
    def fetch(self, shared: Any, number: Any, slot: Any, barrier: Any) -> None:
        """Begin to bring a piece to a slot."""
        origin = self.origins[quotient(number, self.across)]
        source = quotient(origin, self.pairs)
        row = self.there[quotient(origin - source * self.pairs, self.topk), None, source]
        load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), self.dtype, num_bits_per_copy=8 * self.slots.bytes)
        copy = lambda: cute.copy(  # noqa: E731
            load, self._part(row, number), shared[None, slot], tma_bar_ptr=barrier
        )
        current().when(arch.elect_one(), copy)

    @traced
    def put(self, shared: Any, number: Any, slot: Any) -> None:
        """Begin to write a piece from its slot to this GPU's memory."""
        row = self.here[quotient(number, self.across), None]
        store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), self.dtype, num_bits_per_copy=8 * self.slots.bytes)
        copy = lambda: cute.copy(store, shared[None, slot], self._part(row, number))  # noqa: E731
        current().when(arch.elect_one(), copy)

    @traced
    def _part(self, row: Any, number: Any) -> Any:
        return cute.local_tile(row, (int(row.shape[0]) // self.across,), (remainder(number, self.across),))


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
