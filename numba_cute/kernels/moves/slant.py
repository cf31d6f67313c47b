# SPDX-License-Identifier: Apache-2.0
"""Tiles whose rows and columns change places, and begin anywhere: turn.py's for odd extents.

A row's vector of 16 bytes that begins anywhere is the five words that it touches, shifted. So squares are read, and so
vectors are read of shared memory, for rows of y, whose own vectors are written whole. Where a row of y's does not begin
or end with one, and at the ends of x's memory, elements are moved alone.
"""

from __future__ import annotations

import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.kernels import entry, tuning
from numba_cute.kernels.moves.places import VECTOR, Moved, divisor, modes, spread
from numba_cute.kernels.moves.turn import Squares, begun, in_order, mirrored, sides
from numba_cute.seam import traced

__all__ = ["slant", "work"]

WORD = 4  # bytes
NUMBERS = {1: cute.Uint8, 2: cute.Uint16, 4: cute.Uint32}
"""By the bytes of an element, the numbers as which it is moved alone."""


@traced
def memory_of(t: Any, kind: Any) -> tuple[Any, Any]:
    """Give the memory of `t` from the start of its first word on, as numbers of a kind, and which byte of that word is
    `t`'s first."""
    first = cute.make_tensor(t).iterator.toint()
    beside = cute.Int32(first % WORD)
    pointer = cute.make_ptr(kind, first - first % WORD, cute.AddressSpace.gmem, WORD)
    return cute.make_tensor(pointer, cute.make_layout(cute.Int64(1 << 40))), beside


@traced
def shifted(words: Any, into: Any, byte: Any) -> None:
    """Write to `into` the four words that begin with a byte of the first of five."""
    for n in range(4):
        into[n] = arch.prmt(words[n], words[n + 1], 0x3210 + 0x1111 * byte)


@cuda.jit
def slant(x_memory, y_memory, sizes, grid, x_columns, y_rows, squares):
    """y = x in tiles of rows, contiguous in x, and columns, contiguous in y, which begin anywhere.

    sizes: elements from x's first to its last, rows, columns. The others as of `turn`, all strides in elements.
    """
    tidx, _, _ = arch.thread_idx()
    width, side, number = squares.width, squares.side, NUMBERS[squares.width]
    count, rows, columns = sizes
    xw, beside = memory_of(x_memory, cute.Uint32)
    xn, _ = memory_of(x_memory, number)
    y_first = cute.make_tensor(y_memory).iterator.toint()
    y_beside = cute.Int32(y_first % VECTOR)
    to = cute.make_ptr(number, y_first - y_first % VECTOR, cute.AddressSpace.gmem, VECTOR)
    yn = cute.make_tensor(to, cute.make_layout((side, cute.Int64(1 << 40))))
    row, column, in_x, in_y = begun(arch.block_idx()[0], grid)
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(number, cute.make_layout(squares.rows * squares.columns), VECTOR, None, "tile")
    words = cute.recast_tensor(s, cute.Uint32)

    p, q = cute.Int32(tidx) % squares.across, cute.Int32(tidx) // squares.across
    i, j = row + p * side, column + q * side
    held = cute.make_rmem_tensor((side, side), number)
    as_words = cute.recast_tensor(held, cute.Uint32)
    if i + side > rows or j + side > columns:
        as_words.fill(0)
    if i < rows and j < columns:
        for k in cute.range_constexpr(side):
            if j + k < columns:
                element = spread(j + k, x_columns) + (in_x + i)
                at = element * width + beside
                word, byte = at // WORD, cute.Int32(at % WORD)
                last = word + 4 if width == WORD or byte == 0 else word + 5  # the word after those that are read
                if word * WORD >= beside and last * WORD <= count * width + beside and i + side <= rows:
                    found = cute.make_rmem_tensor(5, cute.Uint32)
                    for n in cute.range_constexpr(4):
                        found[n] = xw[word + n]
                    found[4] = cute.Uint32(0)
                    if last > word + 4:
                        found[4] = xw[word + 4]
                    shifted(found, as_words[None, k], byte)
                else:
                    for e in range(side):
                        if i + e < rows:
                            held[e, k] = xn[at // width + e]
        mirrored(as_words, width)
        for k in cute.range_constexpr(side):
            place = ((p * side + k) * squares.down + (q ^ p % 8)) * 4
            cute.autovec_copy(as_words[None, k], cute.local_tile(words, (4,), (place // 4,)))
    arch.sync_threads()

    there = min(cute.Int32(columns - column), cute.Int32(squares.columns))
    slots = squares.down + 1
    for index in range(tidx, squares.rows * slots, squares.threads):
        r, m = cute.Int32(index) // slots, cute.Int32(index) % slots
        if row + r < rows:
            element = spread(row + r, y_rows) + (in_y + column) + y_beside // width
            first = cute.Int32((-element) % side) + (m - 1) * side  # of the row, which a vector of y begins with
            flip, target = r // side % 8, (element + first) // side
            if first >= 0 and first + side <= there:
                found, piece = cute.make_rmem_tensor(5, cute.Uint32), cute.make_rmem_tensor(4, cute.Uint32)
                word, byte = first * width // WORD, first * width % WORD
                for n in cute.range_constexpr(4):
                    found[n] = words[(r * squares.down + ((word + n) // 4 ^ flip)) * 4 + (word + n) % 4]
                found[4] = cute.Uint32(0)
                if byte > 0:
                    found[4] = words[(r * squares.down + ((word + 4) // 4 ^ flip)) * 4 + (word + 4) % 4]
                shifted(found, piece, byte)
                cute.autovec_copy(cute.recast_tensor(piece, number), yn[None, target])
            else:
                for e in range(side):
                    c = first + e
                    if c >= 0 and c < there:
                        yn[e, target] = s[(r * squares.down + (c // side ^ flip)) * side + c % side]


def work(of: Moved) -> entry.Work | None:
    """Plan `slant`; None if extents do not suit it. Of a GPU it knows the tile, by the bytes of an element
    (`slanted`)."""
    if of.in_x()[0] == 0:
        return None
    squares = tuning.numbers("permute").slanted.get(of.width)
    found = sides(of, Squares(of.width, *squares)) if squares else None
    return None if found is None else work_of(of, Squares(of.width, *squares), *found)


def work_of(of: Moved, tile: Squares, rows: list[int], columns: list[int]) -> entry.Work:
    """Give the work of a tile. rows, columns: the modes that they are of."""
    across, down = -(-of.size(rows) // tile.rows), -(-of.size(columns) // tile.columns)
    steps = [  # as they lie in y
        (tile.columns, down, (0, tile.columns, 0, 0)),
        (of.y[rows[0]] * tile.rows, across, (tile.rows, 0, 0, 0)),
        *((of.y[m], n, (0, 0, of.x[m], of.y[m])) for m, n in enumerate(of.shape) if m not in (*rows, *columns)),
    ]
    kinds = (cute.Int32, cute.Int32, cute.Int64, cute.Int64)
    return entry.Work(
        slant,
        grid=math.prod(n for _, n, _ in steps),
        block=tile.threads,
        static=(
            (cute.Int64(of.reach), cute.Int32(of.size(rows)), cute.Int32(of.size(columns))),
            tuple((divisor(n), tuple(k(s) for k, s in zip(kinds, step))) for _, n, step in in_order(steps)),
            modes([of.shape[m] for m in columns], [of.x[m] for m in columns]),
            modes([of.shape[m] for m in rows], [of.y[m] for m in rows]),
            tile,
        ),
    )
