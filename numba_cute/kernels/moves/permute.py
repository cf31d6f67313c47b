# SPDX-License-Identifier: Apache-2.0
"""Permute a tensor's modes, at the speed of memory: `permute(x, order)` is `x.permute(order).contiguous()`.

The layout algebra says what a permutation is: the strides of x, in the order of the result's modes, coalesced. What is
left of it decides how it is done.

- One mode: a copy. The innermost mode is the same in both: vectors move, each to its place (`gather`).
- Another mode is innermost: a tile of both goes by way of shared memory, read along x's innermost mode and written
  along the result's, with vectors of up to 16 bytes on both sides (`turn`). The chunks of a row in shared memory are
  exchanged with each other, by the row's number, so that neither side meets a bank twice.
- x's innermost mode is too short for a tile: each thread gathers the elements of one vector of the result (`gather`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.kernels import entry
from numba_cute.seam import CuteError

if TYPE_CHECKING:
    import torch

__all__ = ["permute", "transpose"]

VECTOR = 16  # bytes
IN_FLIGHT = 4  # vectors of a thread that are on their way from memory
LEAST = 16  # elements of x's innermost mode that make a tile worth while
TURNING, GATHERING = 256, 256  # threads


@dataclass(frozen=True)
class Tile:
    """How `turn` cuts. rows, columns: a tile's extents along x's innermost mode, and along the result's. read, write:
    elements that move at once on either side. chunk: those of 16 bytes. flight: what a thread reads before it waits."""

    rows: int
    columns: int
    read: int
    write: int
    chunk: int
    flight: int


@dataclass(frozen=True)
class Piece:
    """What a thread of `gather` moves at once: so many elements, that are neighbours in x too (`whole`) or not."""

    elements: int
    whole: bool


def memory(t, shape, strides, elements):
    """The memory of `t` with another layout. It begins at a multiple of so many elements."""
    t = cute.make_tensor(t)
    at = cute.make_ptr(t.element_type, t.iterator.toint(), cute.AddressSpace.gmem, elements * t.element_type.width // 8)
    return cute.make_tensor(at, cute.make_layout(shape, stride=strides))


def exchanged(c, column, chunk):
    """Where chunk c of a column stands in shared memory: so columns that are read together lie in different banks."""
    return c ^ column // chunk % 8


@cuda.jit(launch_bounds=TURNING)
def turn(x_memory, y_memory, shape, x_strides, y_strides, tile: cute.Constexpr):
    """y = x, each with modes (x's innermost, the result's innermost, (others)); of both, all strides but the 1.

    A block does a tile of the first two modes.
    """
    tidx, _, _ = arch.thread_idx()
    x = memory(x_memory, shape, (1, *cute.assume(x_strides, tile.read)), tile.read)
    y = memory(
        y_memory, shape, (cute.assume(y_strides[0], tile.write), 1, cute.assume(y_strides[1], tile.write)), tile.write
    )
    block, dtype, chunk = arch.block_idx()[0], x.element_type, tile.chunk
    along_x, along_y = cute.ceil_div(shape[0], tile.rows), cute.ceil_div(shape[1], tile.columns)
    at, other = (block % along_x, block // along_x % along_y), block // along_x // along_y
    gx = cute.local_tile(x[None, None, other], (tile.rows, tile.columns), at)
    gy = cute.local_tile(y[None, None, other], (tile.rows, tile.columns), at)
    rows, columns = shape[0] - at[0] * tile.rows, shape[1] - at[1] * tile.columns  # that there are

    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(dtype, cute.make_layout((chunk, tile.rows // chunk, tile.columns)), VECTOR, None, "tile")

    # In: neighbouring threads read neighbouring parts of chunks; each step is some columns further.
    part, c, j = cute.idx2crd(tidx, (chunk // tile.read, tile.rows // chunk, TURNING * tile.read // tile.rows))
    i, further = c * (chunk // tile.read) + part, TURNING * tile.read // tile.rows
    for start in cute.range_constexpr(0, tile.columns // further, tile.flight):
        held = cute.make_rmem_tensor((tile.read, tile.flight), dtype)
        held.fill(0)
        for n in cute.range_constexpr(tile.flight):
            column = j + (start + n) * further
            if i * tile.read < rows and column < columns:
                cute.autovec_copy(cute.local_tile(gx, (tile.read, 1), (i, column)), held[None, n])
        for n in cute.range_constexpr(tile.flight):
            column = j + (start + n) * further
            line = s[None, exchanged(c, column, chunk), column]
            cute.autovec_copy(held[None, n], cute.local_tile(line, (tile.read,), (part,)))
    arch.sync_threads()

    # Out: 8 threads write neighbouring vectors; each step is some rows, or 8 vectors, further.
    w, i = cute.idx2crd(tidx, (8, TURNING // 8))
    of_chunk, c = cute.idx2crd(i, (chunk, TURNING // 8 // chunk))
    for right in cute.range_constexpr(0, tile.columns // tile.write, 8):
        j = (right + w) * tile.write
        for down in cute.range_constexpr(0, tile.rows, TURNING // 8):
            line = cute.local_tile(
                s[of_chunk, exchanged(c + down // chunk, j, chunk), None], (tile.write,), (right + w,)
            )
            piece = cute.make_rmem_tensor(tile.write, dtype)
            piece.store(line.load())
            if i + down < rows and j < columns:
                cute.autovec_copy(piece, cute.local_tile(gy, (1, tile.write), (i + down, right + w)))


@cuda.jit(launch_bounds=GATHERING)
def gather(x_memory, y_memory, shape, x_strides, inner, pieces, piece: cute.Constexpr):
    """y = x in pieces of the result's innermost mode. shape, x_strides: of the pieces. inner: the stride inside of one.
    pieces: how many there are."""
    tidx, _, _ = arch.thread_idx()
    size = piece.elements
    if cute.const_expr(piece.whole):
        x = memory(x_memory, (size, shape), (1, cute.assume(x_strides, size)), size)
    else:
        x = memory(x_memory, (size, shape), (inner, x_strides), 1)
    y = memory(y_memory, (size, pieces), (1, size), size)
    held = cute.make_rmem_tensor((size, IN_FLIGHT), x.element_type)
    first = arch.block_idx()[0] * (GATHERING * IN_FLIGHT) + tidx
    for n in cute.range_constexpr(IN_FLIGHT):
        if first + n * GATHERING < pieces:
            cute.autovec_copy(x[None, first + n * GATHERING], held[None, n])
    for n in cute.range_constexpr(IN_FLIGHT):
        if first + n * GATHERING < pieces:
            cute.autovec_copy(held[None, n], y[None, first + n * GATHERING])


def plan(x: Any, y: Any, order: Sequence[int]) -> entry.Work:
    """Plan y = x.permute(order).

    x: an array of torch's or NumPy's, of any strides. y: the result, contiguous. order: the mode of x that each mode of
    y is.
    """
    back, steps_of = order[::-1], entry.strides(x)  # mode 0 is the result's innermost
    of_x = cute.coalesce(cute.make_layout(tuple(x.shape[m] for m in back), stride=tuple(steps_of[m] for m in back)))
    shape, steps = cute.flatten_to_tuple(of_x.shape), cute.flatten_to_tuple(of_x.stride)
    dtype = entry.element_type(x)
    most = 8 * VECTOR // dtype.width
    inner = next((m for m, (n, s) in enumerate(zip(shape, steps)) if s == 1 and n > 1), None)
    if inner and shape[inner] >= LEAST and shape[0] >= LEAST:
        return turning(x, y, shape, steps, inner, most)
    whole = steps[0] == 1
    elements = widest(most, [shape[0], *(steps[1:] if whole else ())], x if whole else y, y)
    inside = (shape[0] // elements, *shape[1:])
    return entry.Work(
        gather,
        grid=-(-math.prod(inside) // (GATHERING * IN_FLIGHT)),
        block=GATHERING,
        static=(
            tuple(map(cute.Int32, inside)), tuple(map(cute.Int64, (steps[0] * elements, *steps[1:]))),
            cute.Int64(steps[0]), cute.Int32(math.prod(inside)), Piece(elements, whole),
        ),
    )  # fmt: skip


def turning(x: Any, y: Any, extents: Any, strides: Any, inner: int, most: int) -> entry.Work:
    """Plan `turn` for a coalesced layout, whose mode `inner` is x's innermost. most: elements of a vector."""
    others = [m for m in range(1, len(extents)) if m != inner] or [len(extents)]
    shape, steps = (*extents, 1), (*strides, 0)
    compact = [math.prod(shape[:m]) for m in range(len(shape))]  # y's strides
    read = widest(most, [shape[inner], steps[0], *(steps[m] for m in others)], x)
    write = widest(most, [shape[0]], y)
    size = ROWS[most] * COLUMNS[most]
    tile = Tile(ROWS[most], COLUMNS[most], read, write, most, min(IN_FLIGHT, size // read // TURNING))
    tiles = -(-shape[inner] // tile.rows) * -(-shape[0] // tile.columns) * math.prod(shape[m] for m in others)

    def numbers(kind: Any, of: Any, first: Any) -> Any:
        return (*first, tuple(kind(of[m]) for m in others))

    return entry.Work(
        turn,
        grid=tiles,
        block=TURNING,
        static=(
            numbers(cute.Int32, shape, (cute.Int32(shape[inner]), cute.Int32(shape[0]))),
            numbers(cute.Int64, steps, (cute.Int64(steps[0]),)),
            numbers(cute.Int64, compact, (cute.Int64(compact[inner]),)),
            tile,
        ),
    )


ROWS = {16: 128, 8: 64, 4: 64, 2: 32}
COLUMNS = {16: 128, 8: 128, 4: 64, 2: 64}
"""A tile's extents, by the elements of a vector."""


def widest(most: int, numbers: Sequence[int], *arrays: Any) -> int:
    """How many elements, a power of two and at most `most`, divide all of `numbers`; 1, if an array is not aligned."""
    return math.gcd(most, *numbers) if all(map(entry.aligned, arrays)) else 1


def result(x: torch.Tensor, order: list[int]) -> torch.Tensor:
    """Give the tensor that x, permuted, is written to."""
    entry.check("permute", "x", x, last=False)
    if sorted(order) != list(range(len(x.shape))):
        raise CuteError(
            f"permute: order is {tuple(order)}, and x has {len(x.shape)} modes; "
            f"name each of 0 to {len(x.shape) - 1} once"
        )
    return x.new_empty([x.shape[m] for m in order])


PERMUTE = entry.Operator("numba_cute::permute", plan, result)


def permute(x: torch.Tensor, order: Sequence[int], *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Copy x with its modes in another order, contiguous.

    x: a tensor on the GPU, of any strides. order: for each mode of the result, the mode of x that it is. out: where to
    write it. Raises CuteError for an order that is none.
    """
    modes = len(x.shape)
    return PERMUTE(x, tuple(m + modes if m < 0 else m for m in order), into=(out,))


def transpose(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Copy x with its last two modes exchanged, contiguous.

    x: a tensor on the GPU of two modes or more, of any strides. out: where to write it.
    """
    entry.check("transpose", "x", x, least_rank=2, last=False)
    modes = len(x.shape)
    return permute(x, (*range(modes - 2), modes - 1, modes - 2), out=out)
