# SPDX-License-Identifier: Apache-2.0
"""Tiles whose rows and columns change places, in vectors of 16 bytes on both sides.

Both x and y are vectors of 16 bytes here: their strides count these. A thread loads a square of as many vectors as one
has elements, transposes it in registers with byte permutes, and leaves it in shared memory, from where vectors go out
along the columns. Row i's vector q lies there in place q ^ (i's square) of 8, so that neither side meets a bank twice.
"""

from __future__ import annotations

import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.kernels import entry, tuning
from numba_cute.kernels.moves.places import VECTOR, Moved, divisor, modes, spread
from numba_cute.seam import frozen, traced

__all__ = ["Squares", "turn", "work"]


@frozen
class Squares:
    """A tile of `turn`. width: bytes of an element. across, down: squares along x's innermost mode, and along y's.
    times: squares of a thread, one below the other."""

    width: int
    across: int
    down: int
    times: int

    @property
    def side(self) -> int:
        """Elements of a square's side, and of a vector."""
        return VECTOR // self.width

    @property
    def rows(self) -> int:
        """Elements of a tile along x's innermost mode."""
        return self.across * self.side

    @property
    def columns(self) -> int:
        """Elements of a tile along y's innermost mode."""
        return self.down * self.side

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.across * self.down // self.times


def _pairs(words: list[Any], first: int, second: int, low: int, high: int) -> tuple[Any, Any]:
    """Two words of the lower, and of the upper parts of words `first` and `second`."""
    a, b = words[first], words[second]
    return arch.prmt(a, b, low), arch.prmt(a, b, high)


@traced
def mirrored(square: cute.Tensor, width: int) -> None:
    """Transpose a square of elements of `width` bytes in registers, in place. square: (4 words, side) of Uint32."""
    side = VECTOR // width
    words = [[square[i, k] for i in range(4)] for k in range(side)]
    step = max(1, 4 // width)  # elements of a word
    for halving in (1, 2) if width == 1 else (1,) if width == 2 else ():
        # Among `step` rows, exchange the elements of words: first neighbours, then pairs of them.
        low, high = {(2, 1): (0x5410, 0x7632), (1, 1): (0x5140, 0x7362), (1, 2): (0x5410, 0x7632)}[width, halving]
        for top in range(0, side, step):
            for i in range(4):
                column = [words[top + n][i] for n in range(step)]
                if halving == 1:
                    made = [_pairs(column, n, n + 1, low, high) for n in range(0, step, 2)]
                    column = [w for pair in made for w in pair]
                else:
                    made = [_pairs(column, n, n + 2, low, high) for n in range(2)]
                    column = [w for pair in made for w in pair]
                for n in range(step):
                    words[top + n][i] = column[n]
    # Now word (i, k) holds, of `step` rows, one column: it is word k // step of row i * step + k % step.
    whole = width // 4 or 1  # words of an element
    for k in range(side):
        for i in range(4):
            if width < 4:
                square[k // step, i * step + k % step] = words[k][i]
            else:
                square[k * whole + i % whole, i // whole] = words[k][i]


@traced
def vectors(t: Any, count: Any) -> cute.Tensor:
    """Give the memory of `t`, which begins at a multiple of 16 bytes, as (4 words, count)."""
    pointer = cute.make_ptr(cute.Uint32, cute.make_tensor(t).iterator.toint(), cute.AddressSpace.gmem, VECTOR)
    return cute.make_tensor(pointer, cute.make_layout((4, count)))


@traced
def begun(block: Any, grid: Any) -> tuple[Any, Any, Any, Any]:
    """Find the first row and column of a block's tile, and where its other modes are in x and in y. grid: a divisor by
    the blocks along each mode, and how far each step of it is, in these four."""
    left, at = cute.Int32(block), (cute.Int32(0), cute.Int32(0), cute.Int64(0), cute.Int64(0))
    for blocks, steps in grid:
        left, c = blocks.divmod(left)
        at = tuple(a + (c if n < 2 else cute.Int64(c)) * s for n, (a, s) in enumerate(zip(at, steps)))
    return at


@traced
def square(tidx: Any, t: int, tile: Any, sizes: Any, x_columns: Any, squares: Squares) -> Any:
    """Find a thread's square `t`: its first vector in x, the step to the next, the place in shared memory of its first
    row, and whether it is there."""
    row, column, in_x, _ = tile
    p, q = cute.Int32(tidx) % squares.across, cute.Int32(tidx) // squares.across
    q = q + t * (squares.down // squares.times)
    i, j = row + p * squares.side, column + q * squares.side
    at = spread(j, x_columns) + (in_x + cute.Int64(i // squares.side))
    return at, x_columns[1][0], p * (squares.side * squares.down) + (q ^ p % 8), (i < sizes[2]) & (j < sizes[3])


@traced
def line(tidx: Any, n: int, tile: Any, sizes: Any, y_rows: Any, squares: Squares) -> Any:
    """Find a thread's vector `n` of the columns: its number in y, its place in shared memory, whether it is there."""
    row, column, _, in_y = tile
    q, i = cute.Int32(tidx) % squares.down, cute.Int32(tidx) // squares.down
    i = i + n * (squares.threads // squares.down)
    j = column + q * squares.side
    at = spread(row + i, y_rows) + (in_y + cute.Int64(j // squares.side))
    return at, i * squares.down + (q ^ i // squares.side % 8), (row + i < sizes[2]) & (j < sizes[3])


@cuda.jit
def turn(x_memory, y_memory, sizes, grid, x_columns, y_rows, squares):
    """y = x in tiles of rows, contiguous in x, and columns, contiguous in y.

    sizes: vectors of x and y in memory, rows, columns. grid: as of `begun`. x_columns: where columns lie in x, as
    `spread` takes it. y_rows: the same of rows in y.
    """
    tidx, _, _ = arch.thread_idx()
    side = squares.side
    x, y = vectors(x_memory, sizes[0]), vectors(y_memory, sizes[1])
    tile = begun(arch.block_idx()[0], grid)
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Uint32, cute.make_layout((4, squares.rows * squares.down)), VECTOR, None, "tile")

    held = cute.make_rmem_tensor((4, side, squares.times), cute.Uint32)
    for t in cute.range_constexpr(squares.times):
        at, step, _, there = square(tidx, t, tile, sizes, x_columns, squares)
        if there:
            for k in cute.range_constexpr(side):
                cute.autovec_copy(x[None, at + k * step], held[None, k, t])
    for t in cute.range_constexpr(squares.times):
        _, _, place, there = square(tidx, t, tile, sizes, x_columns, squares)
        if there:
            mirrored(held[None, None, t], squares.width)
            for k in cute.range_constexpr(side):
                cute.autovec_copy(held[None, k, t], s[None, place + k * squares.down])
    arch.sync_threads()

    for n in cute.range_constexpr(side * squares.times):
        at, place, there = line(tidx, n, tile, sizes, y_rows, squares)
        if there:
            piece = cute.make_rmem_tensor(4, cute.Uint32)
            cute.autovec_copy(s[None, place], piece)
            cute.autovec_copy(piece, y[None, at])


def _rounded(n: int, tile: int) -> int:
    return -(-n // tile) * tile


def _sides(of: Moved, tile: Squares) -> tuple[list[int], list[int]] | None:
    """Find the modes that are a tile's rows and its columns: as many, from the innermost of x and of y on, as lie
    together there and are wanted for a tile. None if there are none."""
    inner = of.in_x()[0]
    columns, rows = [0], [inner]
    while of.size(columns) < tile.columns and columns[-1] + 1 not in (inner, len(of.shape)):
        columns.append(columns[-1] + 1)
    while of.size(rows) < tile.rows:
        following = [m for m in of.in_x() if of.x[m] == of.size(rows) and m not in (*columns, *rows)]
        if not following:
            break
        rows.append(following[0])
    full = _rounded(of.size(rows), tile.rows) * _rounded(of.size(columns), tile.columns)
    return (rows, columns) if of.size(rows) * of.size(columns) >= tuning.numbers("permute").used * full else None


def work(of: Moved) -> entry.Work | None:
    """Plan `turn`; None if extents, strides or alignment do not suit it.

    Of a GPU it knows: `tiles`, by the bytes of an element, the larger first; `used`, how much of the tiles there must
    be."""
    inner, side = of.in_x()[0], of.vector
    apart = [s for m, s in enumerate(of.x) if m != inner]
    if (
        inner == 0
        or not (of.x_aligned and of.y_aligned)
        or any(n % side for n in (of.shape[0], of.shape[inner], *apart))
    ):
        return None
    for squares in tuning.numbers("permute").tiles.get(of.width, ()):
        tile = Squares(of.width, *squares)
        sides = _sides(of, tile)
        if sides is not None:
            return _work(of, tile, *sides)
    return None


def _work(of: Moved, tile: Squares, rows: list[int], columns: list[int]) -> entry.Work:
    def placed(some: list[int], strides: tuple[int, ...]) -> Any:
        return modes([of.shape[m] for m in some], [strides[m] // tile.side for m in some])

    # Blocks follow each other as their tiles do in y: what is written together meets in the L2 cache.
    across, down = -(-of.size(rows) // tile.rows), -(-of.size(columns) // tile.columns)
    steps = [
        (tile.columns, down, (0, tile.columns, 0, 0)),
        (of.y[rows[0]] * tile.rows, across, (tile.rows, 0, 0, 0)),
        *((of.y[m], n, (0, 0, of.x[m] // tile.side, of.y[m] // tile.side)) for m, n in enumerate(of.shape)
          if m not in (*rows, *columns)),
    ]  # fmt: skip
    kinds = (cute.Int32, cute.Int32, cute.Int64, cute.Int64)
    reach, count = (of.reach - 1) // tile.side + 1, math.prod(of.shape) // tile.side
    return entry.Work(
        turn,
        grid=math.prod(n for _, n, _ in steps),
        block=tile.threads,
        static=(
            (cute.Int64(reach), cute.Int64(count), cute.Int32(of.size(rows)), cute.Int32(of.size(columns))),
            tuple((divisor(n), tuple(k(s) for k, s in zip(kinds, step))) for _, n, step in _in_order(steps)),
            placed(columns, of.x),
            placed(rows, of.y),
            tile,
        ),
    )


def _in_order(steps: list[Any]) -> list[Any]:
    return sorted(steps, key=lambda s: s[0])
