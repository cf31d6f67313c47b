# SPDX-License-Identifier: Apache-2.0
"""Rows that an index names, on Blackwell: TMA brings four rows of A at a time, or takes four to C, each by its number.

Each lane of a warp has four rows of a tile of 128, and copies these. A row that there is not is read as zeros and not
written. Of one that the index names nowhere the sums must be NaN: the threads that take them look in the index
themselves.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import CtaGroup, cpasync
from numba_cute.seam import CuteError, current, frozen, traced
from numba_cute.tilelang.cpasync import tma_load, tma_store

from .indexed import NONE, Named, by_index
from .operands import Source

FOUR = 4  # rows that one copy has
HALVES, APART = 2, 8  # of a thread's rows of a tile; between the two of a half


@frozen
class Fours:
    """Rows of a matrix, four at a time. tma: the atom that brings them, or takes them. rows: a Rows of the matrix."""

    tma: Any
    rows: Any

    def part(self, begin: Any, end: Any) -> Fours:
        """Give those of the product's rows from `begin` up to `end`, which are counted from 0; if these are none, the
        last one before, for there is no index of none."""
        last = cute.min(cute.Int32(end), cute.Int32(self.rows.extent)) - 1
        return Fours(self.tma, self.rows.part(cute.min(cute.Int32(begin), last), end))

    def of_lane(self, first: Any) -> Any:
        """Read the numbers of this lane's four rows of a tile; a row without one has the number after the last. first:
        the tile's first row."""
        numbers = cute.make_rmem_tensor(FOUR, cute.Int32)
        for i in range(FOUR):
            number = self.rows.number(cute.Int32(first) + FOUR * arch.lane_idx() + i)
            behind = cute.Int32(self.rows.matrix.shape[0])
            numbers[i] = current().select(current().compare(">=", number, 0), number, behind)
        return numbers

    def _place(self, numbers: Any, column: Any, shared: Any) -> tuple[Any, Any]:
        """Give this lane's rows in shared memory, and the coordinates for TMA. shared: the tile, or piece."""
        beyond = cute.Int32(FOUR) * arch.lane_idx() * int(cute.size(shared, mode=[1]))
        return shared.iterator + beyond, (cute.Int32(column), *(numbers[i] for i in range(FOUR)))

    def load(self, numbers: Any, column: Any, shared: Any, barrier: Any, leader: Any = None) -> None:
        """Begin to bring a tile's rows, from a column on. A whole warp. numbers: of `of_lane`. barrier: on which the
        bytes complete. leader: of a pair, the rank of the CTA whose barrier that is."""
        there, at = self._place(numbers, column, shared)
        bar = barrier if leader is None else arch.map_dsmem_ptr(barrier, leader)
        tma_load(self.tma, bar, there, at, leader is not None)

    def store(self, numbers: Any, column: Any, shared: Any) -> None:
        """Begin to take a piece's rows to columns from `column` on: each lane has a bulk group of its own to close, and
        to wait for. A whole warp, which sees what the others have put. numbers: of `of_lane`."""
        there, at = self._place(numbers, column, shared)
        tma_store(self.tma, there, at)

    def lost(self, first: Any, own: Any) -> Any:
        """Say which of this thread's rows of a tile the index names nowhere: a bit for each. first: the tile's first
        row. own: as of `Hook.place_in`, of either half."""
        found: Any = cute.Int32(0)
        for half in range(HALVES):
            row = own[0, half, 0][0]
            for i in range(2):
                number = self.rows.number(cute.Int32(first) + row + APART * i)
                bit = cute.Int32(1 << (2 * half + i))
                found = found | current().select(current().compare("==", number, NONE), bit, cute.Int32(0))
        return found


@traced
def spoil(lost: Any, half: int, sums: Any) -> None:
    """Set the sums of rows that are none to NaN. lost: of `Fours.lost`. sums: this thread's of a half, as of
    `Way.of_half`."""
    for i in range(2):

        def spoiled(i: int = i) -> None:
            for j in range(cute.size(sums)):
                if j // 2 % 2 == i:
                    sums[j] = sums.element_type(float("nan"))

        current().when(current().compare("!=", lost & (1 << (2 * half + i)), 0), spoiled)


@traced
def atom_of(tma: Any) -> Any:
    """Give the atom of TMA, of rows that an index names, or of others."""
    return tma.tma if isinstance(tma, Fours) else tma


# ---------------------------------------------------------------- on the host


class Chosen(Source):
    """Rows of A, or of C, that an index names. tensor: the matrix, of `operand`, of the product's rows. named: whose
    they are. extent: how many the product has."""

    def __init__(self, tensor: Any, named: Named, extent: int) -> None:
        self.tensor, self.named, self.extent = tensor, named, extent

    def loads(
        self, dtype: Any, smem: Any, tile: tuple[int, int], ctas: int, rows: Any = None, together: int = 1
    ) -> tuple[Fours, None]:
        """Make what brings A's rows, which needs no coordinates."""
        if ctas > 1:
            raise CuteError(
                f"gemm: A's rows are named by an index, and {ctas} CTAs would share what is gathered: give a cluster "
                "with 1 CTA along N"
            )
        return self._fours(cpasync.CopyBulkTensorGather4G2SOp(cta_group=CtaGroup(together)), smem, tile), None

    def stores(self, dtype: Any, smem: Any, tile: tuple[int, int], extents: Any = None) -> tuple[Fours, None]:
        """Make what takes rows to C, which needs no coordinates."""
        return self._fours(cpasync.CopyBulkTensorScatter4S2GOp(), smem, tile), None

    def _fours(self, op: Any, smem: Any, tile: tuple[int, int]) -> Fours:
        named = self.named._replace(step=128) if self.named.rows == 1 else self.named  # no other is as far from it
        rows = by_index(self.tensor, named, self.extent)
        four = cute.make_composed_layout(smem.inner, 0, cute.make_ordered_layout((FOUR, tile[1]), (1, 0)))
        return Fours(cpasync.make_gather4_tma_atom(op, rows.matrix, four)[0], rows)
