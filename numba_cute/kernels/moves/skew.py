# SPDX-License-Identifier: Apache-2.0
"""Tiles whose rows and columns change places where rows begin anywhere.

y is written in vectors of 16 bytes that begin where y's memory has them, so that each row of y has its tile a few
elements further: a block has of all of them the same vectors. What these need of x it copies to shared memory in words
of 4 bytes (of 8, elements of 8 bytes), as they lie; the few columns of rows beside the tile come with it. From there a
thread gathers a vector, element by element. Its lanes have vectors that follow each other in y, which are as many rows
apart as a vector has elements: such rows begin alike in memory, and the groups of them are an odd number of words
apart, so that no two lanes meet in a bank. A warp has the columns of y that begin alike: one address for each element
of a vector, and steps from there.
"""

from __future__ import annotations

import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, nvgpu, utils
from numba_cute.kernels import entry, tuning
from numba_cute.kernels.moves.places import VECTOR, Moved, divisor
from numba_cute.kernels.moves.turn import begun
from numba_cute.seam import static, traced
from numba_cute.tilelang.cpasync import cp_async_shared_global

__all__ = ["WARPS", "Tile", "skew", "work"]

WARPS = 8
BANKS = 32


@static
class Tile:
    """A tile of `skew`. width: bytes of an element. along: vectors of a row of y. across: how many vectors' worth of
    rows of y."""

    width: int
    along: int
    across: int

    @property
    def side(self) -> int:
        """Elements of a vector."""
        return VECTOR // self.width

    @property
    def rows(self) -> int:
        """Elements of a row of y in the tile."""
        return self.along * self.side

    @property
    def columns(self) -> int:
        """Rows of y in the tile: elements of one of x's."""
        return self.across * self.side

    @property
    def word(self) -> int:
        """Bytes that are copied at once."""
        return max(4, self.width)

    @property
    def of_word(self) -> int:
        """Elements of a word."""
        return self.word // self.width

    @property
    def words(self) -> int:
        """Words that a row of x touches in the tile, at most."""
        return self.columns // self.of_word + (self.of_word > 1)

    @property
    def group(self) -> int:
        """Words of as many rows of x as a vector has elements; one more than a multiple of the banks."""
        return -(-(self.side * self.words - 1) // BANKS) * BANKS + 1

    @property
    def places(self) -> int:
        """Elements that shared memory has room for."""
        return (self.along + 1) * self.group * self.of_word

    @property
    def alike(self) -> int:
        """Rows of y that begin alike in memory, of which a warp has some at once."""
        return min(self.side, WARPS)

    @property
    def steps(self) -> int:
        """Vectors of a thread, of rows of y that begin alike."""
        return self.across * self.along // 32 * self.alike // WARPS

    @property
    def series(self) -> int:
        """Elements of shared memory from one of a warp's rows of x to the next that begins like it."""
        return max(1, WARPS // self.side) * self.group * self.of_word

    @property
    def number(self) -> Any:
        """The type of a number as wide as an element."""
        return {1: cute.Uint8, 2: cute.Uint16, 4: cute.Uint32, 8: cute.Uint64}[self.width]

    def step(self, n: int) -> int:
        """Which of the rows of y that begin alike a thread's vector `n` is in, from its first on."""
        inner = self.along // 4
        return n % inner + 8 * (n // inner)


@traced
def memory(address: Any, tile: Tile, count: int = 1, align: int | None = None) -> cute.Tensor:
    """Give the `count` elements of global memory at an address."""
    pointer = cute.make_ptr(tile.number, address, cute.AddressSpace.gmem, align or tile.width)
    return cute.make_tensor(pointer, cute.make_layout(count))


@traced
def place_of(r: Any, tile: Tile) -> Any:
    """Find where row r of a tile begins in shared memory, in elements."""
    r = cute.Uint32(r)
    return cute.Int32(r // tile.side * (tile.group * tile.of_word) + r % tile.side * (tile.words * tile.of_word))


@traced
def rows_of(warp: Any, c: int, begin: Any, rows: Any, tile: Tile) -> tuple[Any, Any, Any]:
    """Find the rows of x that a warp copies for a tile, `c` of as many as it has series of such: (the row that has the
    first place in shared memory, the warp's first, where the tile's end)."""
    zero = cute.Int32(begin) - tile.side
    first = cute.max(zero + 1, 0) + (warp + c * WARPS)
    return zero, first, cute.min(zero + tile.side + tile.rows, rows)


@traced
def row_of(i: Any, at: Any, count: Any, tile: Tile) -> tuple[Any, Any, Any]:
    """Find row i of x in the tile: where its first word lies in memory, which element of it the first is, and how many
    words it touches. at: (address of the tile in row 0, bytes from row to row). count: elements of a row in it."""
    first = at[0] + cute.Int64(i) * at[1]
    beside = cute.Int32(first & (tile.word - 1))
    words = cute.Int32(cute.Uint32(beside + count * tile.width + (tile.word - 1)) // tile.word)
    return first - cute.Int64(beside), beside // tile.width, words


@traced
def reaches_beyond(at: Any, ends: Any, count: Any, rows: Any, tile: Tile) -> Any:
    """Say whether a word that the tile has of the first row of x, or of the last, may reach beyond x's memory. ends:
    where that begins and ends."""
    if tile.of_word == 1:
        return cute.Boolean(False)
    room, last = cute.Int64(tile.word - 1), at[0] + cute.Int64(rows - 1) * at[1] + cute.Int64(count) * tile.width
    return (at[0] - room < ends[0]) | (last + room > ends[1])


@traced
def copy_word(target: Any, source: Any, n: int, tile: Tile) -> None:
    """Begin to copy a word to shared memory, number n from such addresses on."""
    pointer = cute.make_ptr(tile.number, target + n * tile.word, cute.AddressSpace.smem, tile.word)
    there = memory(source + cute.Int64(n * tile.word), tile, tile.of_word, tile.word)
    cp_async_shared_global(pointer, there, tile.word, nvgpu.LoadCacheMode.ALWAYS)


@traced
def gathers(
    warp: Any, lane: Any, c: int, begin: Any, column: Any, at: Any, steps: Any, y_first: Any, s: Any, tile: Tile
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Find a thread's vectors of the rows of y that begin alike, `c` of as many as it has such: (the first's row of y,
    counted from the tile's, the row of x of its first element, where its elements lie in shared memory)."""
    side = tile.side
    part = warp // tile.alike * tile.steps
    inner = tile.along // 4
    ahead = part % inner + part // inner * 8 + lane // tile.along * inner
    j = c * tile.alike + warp % tile.alike + ahead * side
    q = lane % tile.along
    shift = cute.Int32((y_first // tile.width + cute.Int64(column + j) * steps[1]) & (side - 1))
    i, places = begin + q * side - shift, []
    for k in range(side):
        beside = cute.Int32((at[0] + cute.Int64(i + k) * at[1]) & (tile.word - 1)) // tile.width
        place = place_of(q * side + side + k - shift, tile) + beside + j
        places.append(cute.Int32((s.iterator + place).toint()))
    return j, i, tuple(places)


@traced
def gathered(places: Any, k: int, ahead: Any, tile: Tile) -> Any:
    """Give element k of a vector. ahead: how many rows of y it is from a thread's first."""
    pointer = cute.make_ptr(tile.number, places[k] + ahead * tile.width, cute.AddressSpace.smem, tile.width)
    return cute.make_tensor(pointer, cute.make_layout(1))[0]


@traced
def vector_of_y(y: Any, ahead: Any, step: Any, tile: Tile) -> cute.Tensor:
    """Give a thread's vector so many rows of y from its first. y: where that is. step: from row to row, in elements."""
    return memory(y + cute.Int64(ahead) * (step * tile.width), tile, tile.side, VECTOR)


@traced
def there(i: Any, k: int, rows: Any) -> Any:
    """Say whether there is element i + k of a row of y."""
    return (i + k >= 0) & (i + k < rows)


@traced
def ahead_of(n: Any, tile: Tile) -> Any:
    """Say how many rows of y a thread's vector n is from its first."""
    return tile.step(n) * tile.side


@cuda.jit(launch_bounds=32 * WARPS)
def skew(x_memory, y_memory, sizes, steps, grid, tile):
    """y = x in tiles of y's rows, contiguous in y, and columns, contiguous in x.

    sizes: elements of a row of y, and of x; of x's memory. steps: from row to row of x, and of y, in elements. grid: as
    of `begun`, of a tile's first vector in y's rows, in elements, and its first column.
    """
    tidx, _, _ = arch.thread_idx()
    warp, lane = cute.Int32(tidx // 32), cute.Int32(tidx % 32)
    begin, column, in_x, in_y = begun(arch.block_idx()[0], grid)
    width, side = tile.width, tile.side
    count = cute.min(cute.Int32(tile.columns), sizes[1] - column)
    x_first = cute.make_tensor(x_memory).iterator.toint()
    y_first = cute.make_tensor(y_memory).iterator.toint() + in_y * width
    at = (x_first + (in_x + cute.Int64(column)) * width, steps[0] * width)
    beyond = reaches_beyond(at, (x_first, x_first + sizes[2] * width), count, sizes[0], tile)
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(tile.number, cute.make_layout(tile.places), VECTOR, None, "tile")

    for c in cute.range_constexpr(side // tile.alike):
        zero, own, end = rows_of(warp, c, begin, sizes[0], tile)
        source, beside, words = row_of(own, at, count, tile)
        place, own_word = place_of(own - zero, tile), lane * tile.word
        target, own_source = cute.Int32((s.iterator + place).toint() + own_word), source + own_word
        while own < end:
            if beyond and (own == 0 or own == sizes[0] - 1):  # by elements
                for e in cute.range(lane, count, 32, unroll=1):
                    s[place + beside + e] = memory(own_source - own_word, tile, tile.columns + tile.of_word)[beside + e]
            else:
                for n in cute.range_constexpr(0, tile.words, 32):
                    if lane + n < words:
                        copy_word(target, own_source, n, tile)
            own = cute.Int32(own + max(side, WARPS))
            own_source += at[1] * max(side, WARPS)
            place = cute.Int32(place + tile.series)
            target = cute.Int32(target + tile.series * width)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()

    for c in cute.range_constexpr(side // tile.alike):
        j, i, places = gathers(warp, lane, c, begin, column, at, steps, y_first, s, tile)
        left = cute.Int32(count - j)
        y = y_first + (cute.Int64(column + j) * steps[1] + cute.Int64(i)) * width
        if i >= 0 and cute.Int32(i + side) <= sizes[0]:
            for n in cute.range_constexpr(tile.steps):
                if left > ahead_of(n, tile):
                    piece = cute.make_rmem_tensor(side, tile.number)
                    for k in cute.range_constexpr(side):
                        piece[k] = gathered(places, k, ahead_of(n, tile), tile)
                    cute.autovec_copy(piece, vector_of_y(y, ahead_of(n, tile), steps[1], tile))
        else:
            for k in cute.range_constexpr(side):
                if there(i, k, sizes[0]):
                    for n in cute.range(tile.steps, unroll=1):
                        ahead = ahead_of(n, tile)
                        if left > ahead:
                            vector_of_y(y, ahead, steps[1], tile)[k] = gathered(places, k, ahead, tile)


def work(of: Moved) -> entry.Work | None:
    """Plan `skew`; None if extents or strides do not suit it.

    Of a GPU it knows: `skewed`, tiles by the bytes of an element, the larger first; `used`, how much of the tiles there
    must be."""
    inner = of.in_x()[0]
    if inner == 0 or of.x[inner] != 1 or min(of.x) < 0 or of.x[0] * of.width < 4:
        return None
    known = tuning.numbers("permute")
    for along, across in known.skewed.get(of.width, ()):
        tile = Tile(of.width, along, across)
        full = _tiles(of.shape[0] + tile.side - 1, tile.rows) * tile.rows
        full *= _tiles(of.shape[inner], tile.columns) * tile.columns
        if of.shape[0] * of.shape[inner] >= known.used * full:
            return _work(of, tile, inner)
    return None


def _tiles(n: int, tile: int) -> int:
    return -(-n // tile)


def _work(of: Moved, tile: Tile, inner: int) -> entry.Work:
    rows, columns = of.shape[0], of.shape[inner]
    # Blocks follow each other as their tiles do in y: what is written together meets in the L2 cache.
    steps = [
        (1, _tiles(rows + tile.side - 1, tile.rows), (tile.rows, 0, 0, 0)),
        (of.y[inner], _tiles(columns, tile.columns), (0, tile.columns, 0, 0)),
        *((of.y[m], n, (0, 0, of.x[m], of.y[m])) for m, n in enumerate(of.shape) if m not in (0, inner)),
    ]
    kinds = (cute.Int32, cute.Int32, cute.Int64, cute.Int64)
    return entry.Work(
        skew,
        grid=math.prod(n for _, n, _ in steps),
        block=32 * WARPS,
        static=(
            (cute.Int32(rows), cute.Int32(columns), cute.Int64(of.reach)),
            (cute.Int64(of.x[0]), cute.Int64(of.y[inner])),
            tuple(
                (divisor(n), tuple(k(s) for k, s in zip(kinds, step)))
                for _, n, step in sorted(steps, key=lambda s: s[0])
            ),
            tile,
        ),
    )
