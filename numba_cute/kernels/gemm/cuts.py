# SPDX-License-Identifier: Apache-2.0
"""Say how a problem is cut for GPUs beside Hopper's: what callers may give, and what a kernel is found by. Plans, which
make kernels' arguments of these, and the kernels are loaded where a GPU needs them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["OF_WARPS", "Umma", "Warps"]

TILE_M, ROW = 128, 128  # rows of C of a CTA; bytes of K in a stage
THREADS_OF_UMMA = 32 * 7
OF_WARPS = ("bfloat16", "float16", "float32", "int8")  # what mma.sync multiplies on all GPUs


class Umma(NamedTuple):
    """Say how a problem is cut for tcgen05.mma.

    tile_n: columns of a tile, whose rows are 128 of each CTA. ctas: 1, or 2 that multiply together. cluster: CTAs along
    M and N, which share operands by multicast; None for those that multiply together alone. stages, slots: tiles of
    operands, and pieces of C, in shared memory; 0 for as many as there is room for. splits: clusters that share K, and
    add their sums by global memory. tail: the tiles of the last round alone are shared, of which there are fewer than
    fit at once.
    """

    tile_n: int = 256
    ctas: int = 2
    cluster: tuple[int, int] | None = None
    stages: int = 0
    slots: int = 0
    splits: int = 1
    tail: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """CTAs of a cluster along M and N."""
        return self.cluster or (self.ctas, 1)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return THREADS_OF_UMMA

    @property
    def stage(self) -> int:
        """Bytes of a stage in a CTA."""
        return (TILE_M + self.tile_n // self.ctas) * ROW


class Warps(NamedTuple):
    """A cut of a problem for mma.sync.

    tile: rows and columns of a tile. warps: how many share it along both. row: bytes of K in a stage. stages: of the
    ring; 0 for as many as there is room for. ctas: that share an SM.
    """

    tile: tuple[int, int] = (128, 256)
    warps: tuple[int, int] = (2, 4)
    row: int = 64
    stages: int = 0
    ctas: int = 1

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        return sum(self.tile) * self.row
