# SPDX-License-Identifier: Apache-2.0
"""Runs that stay runs, and begin anywhere: the innermost mode is the same in x and in y.

A thread makes vectors of 16 bytes of y, where y's memory has them, of the two vectors of x's memory that each lies in,
by shifts. Vectors that a run of y only begins or ends in move by elements, and so does what would reach beyond x.
"""

from __future__ import annotations

import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels import entry, tuning
from numba_cute.kernels.moves.places import VECTOR, Moved, divisor
from numba_cute.seam import current, frozen, traced

__all__ = ["THREADS", "Slide", "slide", "work"]

THREADS = 256


@frozen
class Slide:
    """The static parameters of `slide`. width: bytes of an element. flight: vectors of a thread that are on their way
    at once."""

    width: int
    flight: int

    @property
    def side(self) -> int:
        """Elements of a vector."""
        return VECTOR // self.width

    @property
    def number(self) -> Any:
        """The type of a number as wide as an element."""
        return {1: cute.Uint8, 2: cute.Uint16, 4: cute.Uint32, 8: cute.Uint64}[self.width]


@traced
def memory(number: Any, address: Any, count: int, align: int) -> cute.Tensor:
    """Give the `count` numbers of global memory at an address."""
    return cute.make_tensor(cute.make_ptr(number, address, cute.AddressSpace.gmem, align), cute.make_layout(count))


@traced
def vector_at(index: Any, ends: Any, sizes: Any, rows: Any, of: Slide) -> tuple[Any, ...]:
    """Find vector `index` of those that runs of y touch: (where it is in y, where its first element is in x, which one
    of the run that is, whether it is made of two of x's, whether any of its elements are of the run). ends: where x's
    memory begins and ends, and y begins. sizes: vectors, a divisor by those of a run, elements of a run. rows: of each
    mode of which there are runs, a divisor by its extent, and strides in x and in y."""
    vectors, each, length = sizes
    left, q = each.divmod(cute.Int32(index))
    in_x, in_y, inside = cute.Int64(0), cute.Int64(0), cute.Int32(index) < vectors
    for n, (many, x_stride, y_stride) in enumerate(rows):
        left, c = many.divmod(left) if n + 1 < len(rows) else (left, left)
        in_x, in_y = in_x + cute.Int64(c) * x_stride, in_y + cute.Int64(c) * y_stride
    y = ends[2] + in_y * of.width
    beside = cute.Int32(y & (VECTOR - 1))
    first = q * of.side - beside // of.width
    x = ends[0] + (in_x + cute.Int64(first)) * of.width
    low = x - (x & (VECTOR - 1))
    whole = inside & (first >= 0) & (first + of.side <= length) & (low >= ends[0]) & (low + 2 * VECTOR <= ends[1])
    some = inside & (first < length) & (first + of.side > 0)
    return y + (q * VECTOR - beside), x, first, whole, some


@traced
def shifted(held: cute.Tensor, x: Any, of: Slide) -> cute.Tensor:
    """Give the four words of eight that begin at the byte that an address has in a vector."""
    b, made, words = current(), cute.make_rmem_tensor(4, cute.Uint32), [held[i] for i in range(8)]
    at = cute.Uint32(x & (VECTOR - 1))
    for step in (2, 1):
        there = b.compare("!=", at & (4 * step), 0)
        words = [b.select(there, words[i + step], words[i]) for i in range(len(words) - step)]
    for i in range(4):
        made[i] = words[i] if of.width >= 4 else arch.shf(words[i + 1], words[i], (at & 3) * 8, "r")
    return made


@cuda.jit(launch_bounds=THREADS)
def slide(x_memory, y_memory, sizes, reach, rows, of):
    """y = x, runs of which begin anywhere. sizes, rows: as of `vector_at`. reach: elements of x's memory."""
    tidx, _, _ = arch.thread_idx()
    x_first = cute.make_tensor(x_memory).iterator.toint()
    ends = (x_first, x_first + reach * of.width, cute.make_tensor(y_memory).iterator.toint())
    begin = cute.Int32(arch.block_idx()[0] * (THREADS * of.flight) + tidx)
    held = cute.make_rmem_tensor((4, 2, of.flight), cute.Uint32)
    for n in cute.range_constexpr(of.flight):
        _, x, _, whole, _ = vector_at(begin + n * THREADS, ends, sizes, rows, of)
        if whole:
            low = x - x % VECTOR
            cute.autovec_copy(memory(cute.Uint32, low, 4, VECTOR), held[None, 0, n])
            cute.autovec_copy(memory(cute.Uint32, low + VECTOR, 4, VECTOR), held[None, 1, n])
    for n in cute.range_constexpr(of.flight):
        y, x, first, whole, some = vector_at(begin + n * THREADS, ends, sizes, rows, of)
        if whole:
            cute.autovec_copy(shifted(held[None, None, n], x, of), memory(cute.Uint32, y, 4, VECTOR))
        elif some:
            alone = cute.make_rmem_tensor(of.side, of.number)
            for e in cute.range_constexpr(of.side):
                if first + e >= 0 and first + e < sizes[2]:
                    alone[e] = memory(of.number, x + e * of.width, 1, of.width)[0]
            for e in cute.range_constexpr(of.side):
                if first + e >= 0 and first + e < sizes[2]:
                    memory(of.number, y + e * of.width, 1, of.width)[0] = alone[e]


def work(of: Moved, order: list[int] | None = None) -> entry.Work | None:
    """Plan `slide`; None if no runs stay, or if they are short."""
    if of.width == VECTOR or of.x[0] != 1 or of.y[0] != 1 or of.shape[0] < 4 * of.vector:
        return None
    each = (of.shape[0] + 2 * of.vector - 2) // of.vector
    outer = order or [m for m in range(1, len(of.shape))]
    count = each * math.prod(of.shape[m] for m in outer)
    if count >= 1 << 31:
        return None
    own = Slide(of.width, tuning.numbers("permute").flight)
    return entry.Work(
        slide,
        grid=-(-count // (THREADS * own.flight)),
        block=THREADS,
        static=(
            (cute.Int32(count), divisor(each), cute.Int32(of.shape[0])),
            cute.Int64(of.reach),
            tuple((divisor(of.shape[m]), cute.Int64(of.x[m]), cute.Int64(of.y[m])) for m in outer),
            own,
        ),
    )
