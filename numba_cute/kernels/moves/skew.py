# SPDX-License-Identifier: Apache-2.0
"""Tiles whose rows and columns change places where rows begin anywhere.

y is written in sectors of 32 bytes as y's memory has them, so that each row of y has its tile a few elements further: a
block has of all of them the same sectors. What these need of x is loaded in the vectors of 16 bytes that rows of x
touch, and goes to shared memory in words of 4 bytes (of 8, elements of 8 bytes), as they lie; the few columns beside
the tile come with it. From there a thread gathers a vector, element by element.

No two lanes meet in a bank. Those that gather have vectors that follow each other in y, which are as many rows of x
apart as a vector has elements: such rows begin alike in memory, and lie an odd number of words apart. Those that store
have eight vectors each of four rows, which are an odd number of words apart too. A warp has rows of y that begin alike:
one address for each element of a vector, and steps from there.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.kernels import entry, tuning
from numba_cute.kernels.moves.places import VECTOR, Moved, bring, divisor
from numba_cute.kernels.moves.turn import begun
from numba_cute.seam import CuteError, current, frozen, traced

__all__ = ["Tile", "kernel_of", "work"]

ACROSS, DOWN = 8, 4  # lanes along a row of x that load, and rows
SECTOR = 32


@frozen
class Tile:
    """A tile of `skew`. width: bytes of an element. along: vectors of a row of y. across: vectors that a row of x
    touches in the tile, at most, of which it fills one less. warps: of a block."""

    width: int
    along: int
    across: int
    warps: int = 8

    def __post_init__(self) -> None:
        columns, parts = self.across * self.side // self.sector, self.warps // self.alike
        if columns * self.along % (32 * parts) or columns % (self.inner * 32 // self.along) and self.along < 32:
            raise CuteError(f"permute: {self}: warps cannot share these vectors evenly: give more across, or along")

    @property
    def side(self) -> int:
        """Elements of a vector."""
        return VECTOR // self.width

    @property
    def sector(self) -> int:
        """Elements of a sector."""
        return SECTOR // self.width

    @property
    def rows(self) -> int:
        """Elements of a row of y in the tile."""
        return self.along * self.side

    @property
    def columns(self) -> int:
        """Rows of y in the tile: elements of one of x's."""
        return (self.across - 1) * self.side

    @property
    def loads(self) -> int:
        """Vectors of a column of x's that a thread loads: of the tile's rows, and those before."""
        return -(-(self.rows + self.sector) // (DOWN * self.warps))

    @property
    def of_word(self) -> int:
        """Elements of a word."""
        return max(1, 4 // self.width)

    @property
    def words(self) -> int:
        """Words of a vector."""
        return self.side // self.of_word

    @property
    def pitch(self) -> int:
        """Elements of shared memory from row to row: an odd number of words."""
        return (self.across * self.words + 1) * self.of_word

    @property
    def group(self) -> int:
        """Elements of shared memory from a row to the next that begins like it: an odd number of words."""
        return self.side * self.pitch + self.of_word

    @property
    def places(self) -> int:
        """Elements that shared memory has room for."""
        return (self.along + self.sector // self.side) * self.group

    @property
    def alike(self) -> int:
        """Kinds of rows of y, by where in a sector they begin, of which warps have one each at a time."""
        return min(self.sector, self.warps)

    @property
    def steps(self) -> int:
        """Vectors of a thread in rows of y that begin alike."""
        return self.across * self.side // self.sector * self.along // 32 * self.alike // self.warps

    @property
    def number(self) -> Any:
        """The type of a number as wide as an element."""
        return {1: cute.Uint8, 2: cute.Uint16, 4: cute.Uint32, 8: cute.Uint64}[self.width]

    @property
    def number_of_word(self) -> Any:
        """The type of a word."""
        return {1: cute.Uint32, 2: cute.Uint32, 4: cute.Uint32, 8: cute.Uint64}[self.width]

    @property
    def inner(self) -> int:
        """Of the rows of y that begin alike, those that follow each other in a thread: so far apart do its neighbours
        begin that have vectors of others, that these lie in other banks."""
        return self.along * self.of_word // self.sector

    def ahead(self, n: Any) -> Any:
        """Say how many rows of y a thread's vector `n` is from its first."""
        return (n % self.inner + n // self.inner * (32 // self.along * self.inner)) * self.sector


@traced
def memory(number: Any, address: Any, count: int, align: int) -> cute.Tensor:
    """Give the `count` numbers of global memory at an address."""
    return cute.make_tensor(cute.make_ptr(number, address, cute.AddressSpace.gmem, align), cute.make_layout(count))


@traced
def place_of(r: Any, tile: Tile) -> Any:
    """Find where row r of a tile begins in shared memory, in elements."""
    r = cute.Uint32(r)
    return cute.Int32(r // tile.side * tile.group + r % tile.side * tile.pitch)


@traced
def beside(i: Any, at: Any, tile: Tile) -> Any:
    """Say which element of its vector row i of x begins with in the tile. at: (address of the tile in row 0, bytes from
    row to row)."""
    start, step = (cute.Int32(n & (VECTOR - 1)) for n in at)
    return ((start + cute.Int32(i) * step) & (VECTOR - 1)) // tile.width


@traced
def loads_of(tidx: Any, zero: Any, at: Any, count: Any, s: Any, tile: Tile) -> tuple[Any, Any, Any, Any]:
    """Find what a thread loads, first of all: its row of x, where its first vector lies, its place in shared memory,
    and how many vectors the row touches from it on. zero: the row that has the first place. at: as of `beside`. count:
    elements of a row in the tile."""
    r, v = cute.Int32(tidx) // ACROSS, cute.Int32(tidx) % ACROSS
    i = zero + r
    first = beside(i, at, tile)
    source = at[0] + cute.Int64(i) * at[1] + (v * VECTOR - first * tile.width)
    vectors = cute.Int32(cute.Uint32(first + count + (tile.side - 1)) // tile.side)
    return i, source, cute.Int32((s.iterator + (place_of(r, tile) + v * tile.side)).toint()), vectors - v


@traced
def reaches_beyond(at: Any, ends: Any, count: Any, rows: Any, tile: Tile) -> Any:
    """Say whether a vector that the tile has of the first row of x, or of the last, may reach beyond x's memory. ends:
    where that begins and ends."""
    room, last = cute.Int64(VECTOR), at[0] + cute.Int64(rows - 1) * at[1] + cute.Int64(count) * tile.width
    return (at[0] - room < ends[0]) | (last + room > ends[1])


@traced
def rows_of(begin: Any, rows: Any, beyond: Any, tile: Tile) -> tuple[Any, Any, Any]:
    """Find the rows of x that a tile has: (the one that has the first place in shared memory, the first that is loaded,
    how many are). beyond: leaves out x's first row and its last."""
    b = current()
    zero, out = cute.Int32(begin) - tile.sector, b.select(beyond, cute.Int32(1), cute.Int32(0))
    first = cute.max(zero, out)
    return zero, first, cute.max(cute.min(zero + tile.sector + tile.rows, rows - out) - first, 0)


@traced
def among(i: Any, first: Any, k: Any, count: Any) -> Any:
    """Say whether row i + k is one of so many, from the first on."""
    return cute.Uint32(i - first + k) < cute.Uint32(count)


@traced
def vector_of_x(source: Any, step: Any, down: Any, across: int, tile: Tile) -> cute.Tensor:
    """Give the vector of x so many rows and vectors from a thread's first. step: from row to row, in bytes."""
    return memory(tile.number_of_word, source + (step * cute.Int64(down) + across * VECTOR), tile.words, VECTOR)


@traced
def put(held: cute.Tensor, target: Any, tile: Tile) -> None:
    """Leave a vector in shared memory, by words. target: the address there."""
    words = cute.make_ptr(tile.number_of_word, target, cute.AddressSpace.smem, tile.of_word * tile.width)
    there = cute.make_tensor(words, cute.make_layout(tile.words))
    for w in range(tile.words):
        there[w] = held[w]


@traced
def gathers(
    warp: Any, lane: Any, c: int, begin: Any, column: Any, at: Any, steps: Any, y_first: Any, s: Any, tile: Tile
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Find a thread's vectors of rows of y that begin alike, `c` of as many kinds as it has of such: (the row of y of
    the first, counted from the tile's, the row of x of its first element, where its elements lie in shared memory)."""
    side, sector = tile.side, tile.sector
    q = lane % tile.along
    j = (
        c * tile.alike
        + warp % tile.alike
        + tile.ahead(warp // tile.alike * tile.steps)
        + lane // tile.along * (tile.inner * sector)
    )
    shift = cute.Int32((y_first // tile.width + cute.Int64(column + j) * steps[1]) & (sector - 1))
    i, places = begin + q * side - shift, []
    for k in range(side):
        place = place_of(q * side + sector + k - shift, tile) + beside(i + k, at, tile) + j
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
    return memory(tile.number, y + cute.Int64(ahead) * (step * tile.width), tile.side, VECTOR)


@cute.jit
def load(tidx, kept, at, count, s, tile):
    """Bring the tile's vectors of x to shared memory. kept: as `rows_of` gives it. at: as of `beside`. count: elements
    of a row of x in the tile."""
    zero, own, rows = kept
    i, source, target, vectors = loads_of(tidx, zero, at, count, s, tile)
    down = DOWN * tile.warps  # rows from load to load
    apart = down // tile.side * tile.group * tile.width  # and bytes
    last = among(tidx // ACROSS, 0, (tile.loads - 1) * down, tile.rows + tile.sector)
    whole = own == zero and rows == tile.rows + tile.sector
    held = cute.make_rmem_tensor((tile.words, tile.loads, tile.across // ACROSS), tile.number_of_word)
    for c in cute.range_constexpr(0, tile.across, ACROSS):
        if whole and vectors > c:
            for n in cute.range_constexpr(tile.loads):
                if n + 1 < tile.loads or last:
                    bring(vector_of_x(source, at[1], n * down, c, tile), held[None, n, c // ACROSS])
    for c in cute.range_constexpr(0, tile.across, ACROSS):
        if whole and vectors > c:
            for n in cute.range_constexpr(tile.loads):
                if n + 1 < tile.loads or last:
                    put(held[None, n, c // ACROSS], target + (n * apart + c * VECTOR), tile)
        elif vectors > c:
            for n in cute.range(tile.loads, unroll=1):
                if among(i, own, n * down, rows):
                    one = cute.make_rmem_tensor(tile.words, tile.number_of_word)
                    bring(vector_of_x(source, at[1], n * down, c, tile), one)
                    put(one, target + (n * apart + c * VECTOR), tile)


@cute.jit
def load_alone(tidx, zero, rows, at, count, s, tile):
    """Bring x's first row and its last, of so many, to shared memory by elements, if the tile has them."""
    for row in (cute.Int32(0), cute.Int32(rows - 1)):
        if among(row, zero, 0, tile.rows + tile.sector):
            place = place_of(row - zero, tile) + beside(row, at, tile)
            for e in cute.range(tidx, count, 32 * tile.warps, unroll=1):
                one = at[0] + at[1] * row + e * tile.width
                s[place + e] = memory(tile.number, one, 1, tile.width)[0]


@cute.jit
def store(vectors, rows, left, y, step, tile):
    """Write a thread's vectors of rows of y that begin alike. vectors: the row of x of their first element, and where
    the elements of the first vector lie in shared memory. rows: elements of a row of y. left: rows of y that the tile
    has from the thread's first on. y: where the first vector is. step: from row to row of y."""
    i, places = vectors
    if i >= 0 and cute.Int32(i + tile.side) <= rows:
        for n in cute.range_constexpr(tile.steps):
            if left > tile.ahead(n):
                piece = cute.make_rmem_tensor(tile.side, tile.number)
                for k in cute.range_constexpr(tile.side):
                    piece[k] = gathered(places, k, tile.ahead(n), tile)
                cute.autovec_copy(piece, vector_of_y(y, tile.ahead(n), step, tile))
    else:
        for k in cute.range_constexpr(tile.side):
            if among(i, 0, k, rows):
                for n in cute.range(tile.steps, unroll=1):
                    ahead = tile.ahead(n)
                    if left > ahead:
                        vector_of_y(y, ahead, step, tile)[k] = gathered(places, k, ahead, tile)


def skew(x_memory, y_memory, sizes, steps, grid, tile):
    """y = x in tiles of y's rows, contiguous in y, and columns, contiguous in x.

    sizes: elements of a row of y, and of x; of x's memory. steps: from row to row of x, and of y, in elements. grid: as
    of `begun`, of a tile's first sector in y's rows, in elements, and its first column.
    """
    tidx, _, _ = arch.thread_idx()
    warp, lane = cute.Int32(tidx // 32), cute.Int32(tidx % 32)
    begin, column, in_x, in_y = begun(arch.block_idx()[0], grid)
    count = cute.min(cute.Int32(tile.columns), sizes[1] - column)
    x_first = cute.make_tensor(x_memory).iterator.toint()
    y_first = cute.make_tensor(y_memory).iterator.toint() + in_y * tile.width
    at = (x_first + (in_x + cute.Int64(column)) * tile.width, steps[0] * tile.width)
    beyond = reaches_beyond(at, (x_first, x_first + sizes[2] * tile.width), count, sizes[0], tile)
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(tile.number, cute.make_layout(tile.places), VECTOR, None, "tile")

    kept = rows_of(begin, sizes[0], beyond, tile)
    load(tidx, kept, at, count, s, tile)
    if beyond:
        load_alone(tidx, kept[0], sizes[0], at, count, s, tile)
    arch.sync_threads()
    for c in cute.range_constexpr(tile.sector // tile.alike):
        j, i, places = gathers(warp, lane, c, begin, column, at, steps, y_first, s, tile)
        y = y_first + (cute.Int64(column + j) * steps[1] + cute.Int64(i)) * tile.width
        store((i, places), sizes[0], cute.Int32(count - j), y, steps[1], tile)


@functools.cache
def kernel_of(warps: int) -> Any:
    """Give the kernel for blocks of so many warps, by which registers are dealt out."""
    return cuda.jit(launch_bounds=32 * warps)(skew)


def work(of: Moved) -> entry.Work | None:
    """Plan `skew`; None if extents or strides do not suit it, or if boxes are as fast.

    Of a GPU it knows: `skewed`, tiles by the bytes of an element, the larger first, and their warps; `used`, how much
    of the tiles there must be."""
    inner = of.in_x()[0]
    if inner == 0 or of.x[inner] != 1 or min(of.x) < 0 or of.x[0] * of.width < VECTOR:
        return None
    if of.width > 1 and of.y_aligned and of.shape[0] % of.vector == 0:  # boxes write whole vectors too
        return None
    known = tuning.numbers("permute")
    for numbers in known.skewed.get(of.width, ()):
        tile = Tile(of.width, *numbers)
        full = _tiles(of.shape[0] + tile.sector - 1, tile.rows) * tile.rows
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
        (1, _tiles(rows + tile.sector - 1, tile.rows), (tile.rows, 0, 0, 0)),
        (of.y[inner], _tiles(columns, tile.columns), (0, tile.columns, 0, 0)),
        *((of.y[m], n, (0, 0, of.x[m], of.y[m])) for m, n in enumerate(of.shape) if m not in (0, inner)),
    ]
    kinds = (cute.Int32, cute.Int32, cute.Int64, cute.Int64)
    return entry.Work(
        kernel_of(tile.warps),
        grid=math.prod(n for _, n, _ in steps),
        block=32 * tile.warps,
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
