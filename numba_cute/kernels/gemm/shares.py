# SPDX-License-Identifier: Apache-2.0
"""The order of a GEMM's tiles, of which several clusters share some: all, where there are few, or those of the last
round, which would else keep few of the SMs busy. Each that shares a tile has a part of K."""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import utils
from numba_cute.seam import current, frozen, quotient, remainder, traced


@frozen
class Shares(utils.PersistentTileSchedulerParams):
    """Tiles in their order, the last of them several times over. whole: how many clusters' tiles come before these.
    splits: how many clusters share each of these; the layer of a tile says which of its shares it is (`share_of`).
    apart: the shares are not added up: each is of a matrix of the result, a tile that is not shared of the first.
    first: K tiles of the first of a tile's shares, where it is longer than the others; as many clusters as there are
    tiles have one of these each, and those after them the others, in turn."""

    whole: Any = 0
    splits: Any = 1
    apart: bool = False
    first: Any = None

    @property
    def tiles(self) -> Any:
        """The number of clusters' tiles."""
        m, n, batch = self.problem_shape_ncluster_mnl
        return m * n * batch

    @property
    def all_shared(self) -> bool:
        """Say whether all tiles are shared, which is static: then each cluster has one piece of work."""
        return cute.is_static(self.whole)

    @property
    def num_clusters(self) -> Any:
        """The number of pieces of work."""
        return self.whole + (self.tiles - self.whole) * self.splits

    def decode(self, index: Any) -> tuple[Any, Any, Any]:
        """Return the place (m, n, layer) of the `index`-th piece of work."""
        if self.first is not None:
            m, n, _ = utils.PersistentTileSchedulerParams.decode(self, remainder(index, self.tiles))
            return m, n, quotient(index, self.tiles)
        tiles, beyond = self._parted(index)
        share = remainder(beyond, self.splits)
        if not self.all_shared:
            b = current()
            share = b.select(b.compare("<", index, self.whole), self.splits, share)
        tile = tiles + quotient(beyond, self.splits)
        m, n, batch = utils.PersistentTileSchedulerParams.decode(self, tile)
        return m, n, batch * (self.splits + 1) + share

    def place(self, index: Any) -> Any:
        """Return which of the tiles that are shared the `index`-th piece of work belongs to; 0 for none of them."""
        if self.first is not None:
            return remainder(index, self.tiles)
        return quotient(self._parted(index)[1], self.splits)

    def _parted(self, index: Any) -> tuple[Any, Any]:
        """Return of the pieces of work before the `index`-th how many are whole tiles, and how many others. Neither is
        negative: a rounded division of what may be, of which one result is chosen then, took registers through the
        loop over tiles."""
        if self.all_shared:
            return 0, index
        b = current()
        alone = b.compare("<", index, self.whole)
        tiles = b.select(alone, index, self.whole)
        return tiles, index - tiles


@traced
def apart_of(schedule):
    """Return a schedule whose shares go into a matrix each, None of another."""
    return schedule if getattr(schedule, "apart", False) else None


@traced
def steps_of(schedule, block, grid):
    """Return the grid by which a cluster goes from one piece of work to its next. block, grid: as of the kernel."""
    if getattr(schedule, "first", None) is None:
        return grid
    b, tiles = current(), schedule.tiles
    return grid[0], grid[1], b.select(b.compare("<", block[2], tiles), 2 * tiles, grid[2] - tiles)


@traced
def share_of(layer, splits, apart=None):
    """Return a layer's batch and share: below `splits` one of so many, and `splits` of a tile that is not shared.
    apart: of `apart_of`; the shares are that schedule's then, and the batch is the result's."""
    if apart is not None:
        return layer % apart.splits, layer
    return (layer, 0) if splits == 1 else (layer // (splits + 1), layer % (splits + 1))


@traced
def part_of_k(k_tiles, share, splits, part, parts, schedule=None):
    """Return the first K tile of a share's part, and the first that is not. share, splits: as of `share_of`. part,
    parts: of a share. schedule: a Shares whose shares are `apart`, or the first one longer; any other."""
    first, end = part * k_tiles // parts, (part + 1) * k_tiles // parts
    b, longer, apart = current(), getattr(schedule, "first", None), apart_of(schedule)
    if longer is not None:
        others, rest = schedule.splits - 1, k_tiles - longer
        begin, stop = longer + (share - 1) * rest // others, longer + share * rest // others
        longest = b.compare("==", share, 0)
        return b.select(longest, 0, begin), b.select(longest, longer, stop)
    if apart is not None:
        splits = apart.splits
    elif splits == 1:
        return (0, k_tiles) if parts == 1 else (first, end)
    index, count = share * parts + part, splits * parts
    alone = b.compare("==", share, splits)
    begin, stop = index * k_tiles // count, (index + 1) * k_tiles // count
    return b.select(alone, first, begin), b.select(alone, end, stop)
