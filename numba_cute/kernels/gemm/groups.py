# SPDX-License-Identifier: Apache-2.0
"""The schedule of a grouped GEMM: groups of rows, one after the other, whose ends only the device knows; how warps of a
CTA tell each other of its tiles, and how rows that end anywhere are stored."""

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import traced

from ..attention.schedule import draw, tile_drawn

TOGETHER = 8  # tiles of a group along M that are done side by side, so that they share B in L2
WARP = 32

__all__ = ["GroupedTiles", "hear", "ragged_rows", "tell"]


@traced
def tiles_of(begin, end, rows, columns):
    """Count the tiles of a group: those along M, each of so many rows, times those along N."""
    return cute.max(cute.Int32(0), end - begin + (rows - 1)) // rows * columns


@traced
def is_small(begin, end, rows):
    """Count the group's last tile, 1 or 0, if it has half of its rows or fewer."""
    left = cute.max(cute.Int32(0), end - begin) % rows
    return cute.min(left, cute.Int32(1)) * cute.max(cute.Int32(0), cute.min(rows // 2 + 1 - left, cute.Int32(1)))


@traced
def place(index, tiles_m, columns):
    """Return where the `index`-th tile of a group lies, (m, n), of `tiles_m` by `columns`."""
    together = cute.Int32(TOGETHER * columns)
    first = cute.Int32(index // together * TOGETHER)
    within, side = cute.Int32(index % together), cute.min(cute.Int32(tiles_m - first), cute.Int32(TOGETHER))
    return first + within % side, within // side


@traced
def columns_of(slab, columns, wide):
    """Count the tiles along N of a slab. columns: all. wide: of each slab but perhaps the last, None: there is one."""
    return columns if wide is None else cute.min(cute.Int32(columns - slab * wide), cute.Int32(wide))


@traced
def up_to_lane(x):
    """Sum a number over the lanes up to this one. The whole warp."""
    lane = arch.lane_idx()
    for step in (1, 2, 4, 8, 16):
        before = arch.shuffle_sync_up(x, step)
        x = x + cute.min(lane // step, cute.Int32(1)) * before  # nothing comes to the first lanes
    return x


@traced
def fewest(total, ctas):
    """Count the CTAs that do `total` tiles in no more rounds than `ctas` do."""
    rounds = cute.max(cute.ceil_div(total, ctas), cute.Int32(1))
    return cute.max(cute.ceil_div(total, rounds), cute.Int32(1))


@cute.struct
class GroupedTiles:
    """The tiles that a CTA, or a cluster, does: the `index`-th of all, counted over all groups, and every `step`-th
    from there. Those of a slab of columns, of all groups, come before those of the next.

    Where there are tiles of half the rows or fewer, which take less, CTAs draw tiles from a counter when they are done.

    ends: the row after the last one of each group (groups,), Int32. rows: of a tile. columns: tiles along N. counter:
    an Int32 that is 0, of tiles that are drawn, or None. wide: tiles along N of a slab, a number or None: there is one.
    What `find` finds: `group`, its first row `begin` and the one after its last, `end`, and the tile's place in it, `m`
    and `n`.
    """

    ends: Any
    rows: Any
    columns: cute.Int32
    index: cute.Int32
    step: cute.Int32
    group: cute.Int32 = cute.Int32(0)
    begin: cute.Int32 = cute.Int32(0)
    end: cute.Int32 = cute.Int32(0)
    m: cute.Int32 = cute.Int32(0)
    n: cute.Int32 = cute.Int32(0)
    before: cute.Int32 = cute.Int32(0)  # the tiles of the groups before this one
    after: cute.Int32 = cute.Int32(0)  # and with it
    first: cute.Int32 = cute.Int32(0)  # the group that lane 0 looks at, each counted once for each slab
    seen: cute.Int32 = cute.Int32(0)  # the tiles of the groups before that
    counter: Any = None  # that tiles are drawn from, if some take less than others
    total: cute.Int32 = cute.Int32(0)
    draws: cute.Int32 = cute.Int32(0)
    wide: Any = None
    slab: cute.Int32 = cute.Int32(0)

    @property
    def groups(self):
        """Count the groups, each once for each slab."""
        count = cute.size(self.ends)
        return count if self.wide is None else count * cute.ceil_div(self.columns, self.wide)

    def find(self):
        """Find the tile to do now, and return whether there is one. The whole warp, whose lanes look at 32 groups at
        once."""
        while self.index >= self.after:
            if self.first >= self.groups:
                return False
            self.look()
        columns = columns_of(self.slab, self.columns, self.wide)
        self.m, self.n = place(self.index - self.before, (self.after - self.before) // columns, columns)
        if cute.const_expr(self.wide is not None):
            self.n += self.slab * self.wide
        return True

    def of_lane(self):
        """Give the first row, the one after the last, and the tiles of this lane's group among the next 32: (0, 0, 0)
        of none."""
        mine, slab = cute.Int32(self.first + arch.lane_idx()), cute.Int32(0)
        begin, end = cute.Int32(0), cute.Int32(0)
        if mine < self.groups:
            if cute.const_expr(self.wide is not None):
                slab, mine = mine // cute.size(self.ends), mine % cute.size(self.ends)
            end = self.ends[mine]
            if mine > 0:
                begin = self.ends[mine - 1]
        return begin, end, tiles_of(begin, end, self.rows, columns_of(slab, self.columns, self.wide))

    def look(self):
        """Look for the tile among the next 32 groups."""
        begin, end, tiles = self.of_lane()
        upto = up_to_lane(tiles)
        past = arch.popc(arch.vote_ballot_sync(self.seen + upto <= self.index))
        if past < WARP:
            self.group = self.first + past
            if cute.const_expr(self.wide is not None):
                self.slab, self.group = self.group // cute.size(self.ends), self.group % cute.size(self.ends)
            self.begin, self.end = arch.shuffle_sync(begin, past), arch.shuffle_sync(end, past)
            self.after = self.seen + arch.shuffle_sync(upto, past)
            self.before = self.after - arch.shuffle_sync(tiles, past)
        else:
            self.seen += arch.shuffle_sync(upto, WARP - 1)
            self.first += WARP

    def spread(self):
        """Decide who does which tiles. Where all take as long, CTAs that would spare no round are left out: idle SMs
        leave power to the others. Otherwise all draw. The whole warp, at first."""
        total, small = cute.Int32(0), cute.Int32(0)
        while self.first < self.groups:
            begin, end, tiles = self.of_lane()
            total += tiles
            small += is_small(begin, end, self.rows)
            self.first += WARP
        self.first = cute.Int32(0)
        self.total = cute.Int32(arch.warp_reduction_sum(total))
        if cute.const_expr(self.counter is not None):
            self.draws = cute.Int32(arch.warp_reduction_max(small))
        if self.draws == 0:
            self.step = fewest(self.total, self.step)
            if self.index >= self.step:
                self.index = self.total

    def advance(self):
        """Go on to the next tile. The whole warp."""
        if cute.const_expr(self.counter is not None):
            if self.draws > 0:
                self.index = tile_drawn(draw(self.counter), self.counter, self.total, self.step)
            else:
                self.index += self.step
        else:
            self.index += self.step


@cute.jit
def tell(teller, places, group, end, row, n):
    """Tell the other warps of a tile. The whole warp."""
    slot = teller.acquire_and_advance()
    if arch.lane_idx() == 0:
        places[0, slot.index] = group
        places[1, slot.index] = end
        places[2, slot.index] = row
        places[3, slot.index] = n
    slot.commit()  # each lane arrives, after what it has written


@cute.jit
def hear(told, places):
    """Wait for a tile: its group, below 0 after the last one, its group's end, its first row, and its place along N."""
    slot = told.wait_and_advance()
    place = cute.make_rmem_tensor(4, cute.Int32)
    cute.autovec_copy(places[None, slot.index], place)
    slot.release()
    return place[0], place[1], place[2], place[3]


def ragged_rows(c, rows):
    """View C (M, N) so that a box of `rows` rows may end at any row: (rows, N, M + 1), with two modes along M.

    The element (r, n, y) is C[r + y - rows, n]. A box that begins at (rows - left, n, row + left) holds the `left` rows
    from `row` on, and what is beyond them lies outside of mode 0.
    """
    m, n = c.shape
    step = c.stride[0]
    return cute.make_tensor(c.iterator + -(rows * step), cute.make_layout((rows, n, m + 1), stride=(step, 1, step)))
