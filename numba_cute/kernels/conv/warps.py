# SPDX-License-Identifier: Apache-2.0
"""The operands of a convolution where the tensor cores are a warp's: images, of which threads gather the im2col matrix.

The GEMM is the one of `gemm/warps.py`: its rows are output pixels, its columns output channels, and K counts the
channels of each tap, the taps along W first, without gaps. A vector is some channels of one tap of one pixel. Of the
two, a thread keeps what is the same for all tiles of K (where its pixels' windows begin, or its taps), and computes the
other for each tile; a vector outside of the image is copied with no bytes, which makes zeros of it.
"""

from __future__ import annotations

import math
from typing import Any

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.nvgpu import cpasync
from numba_cute.seam import current, quotient, remainder, static, traced
from numba_cute.seam.ground.records import dataclass
from numba_cute.tilelang.cpasync import cp_async_shared_global

from ..gemm.cuts import Warps
from ..gemm.operands import Source, tensor_of, view
from ..gemm.warps import VECTOR, Copies, store_vector
from ..gemm.warps_plan import RATE, START, copies, cuts
from .operands import Walk, whole

OUTSIDE = -(1 << 30)  # a coordinate that is in no image, whatever is added to it of a tap


# ---------------------------------------------------------------- in the kernel


@traced
def in_modes(index: Any, divisors: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Give the image, and the coordinates in it, of the `index`-th pixel. divisors: by the extents, outermost first."""
    coordinates: tuple[Any, ...] = ()
    for divisor in reversed(divisors):
        index, own = divisor.divmod(index)
        coordinates = (own, *coordinates)
    return index, coordinates


@traced
def apart(steps: tuple[Any, ...], strides: tuple[Any, ...]) -> Any:
    """Give how many elements away something is in an image, an Int64. steps, strides: along each mode, all of 32 bits
    (`check_strides`), so that a multiplication is one instruction."""
    away = cute.Int64(0)
    for step, stride in zip(steps, strides):
        away = away + cute.Int64(cute.Int32(step)) * cute.Int64(cute.Int32(stride))
    return away


@static
class Gather:
    """Copy the im2col matrix of images. copies: of a matrix with tiles like its own. taps: of the filter.
    channels: that K counts of each tap, whole vectors. own: those of an image, of which the last vector may be a part.
    out: divisors by the output's extents. stride, before, dilation: as of `Walk`, of numbers known at run time."""

    copies: Copies
    taps: tuple[int, ...]
    channels: int
    own: int
    out: tuple[Any, ...]
    stride: tuple[Any, ...]
    before: tuple[Any, ...]
    dilation: tuple[Any, ...]

    def pixel(self, images: Any, index: Any, count: Any) -> tuple[Any, tuple[Any, ...], Any]:
        """Give where the window of an output pixel begins, in elements and in coordinates, and the bytes of a whole
        vector. count: how many there are."""
        image, place = in_modes(cute.Int32(index), self.out)
        begin = tuple(p * s - b for p, s, b in zip(place, self.stride, self.before))
        away = cute.Int64(image) * images.stride[0] + apart(begin, images.stride[1:])
        b = current()
        return away, (b.select(b.compare("<", index, count), begin[0], cute.Int32(OUTSIDE)), *begin[1:]), VECTOR

    def tap(self, images: Any, index: Any, count: Any) -> tuple[Any, tuple[Any, ...], Any]:
        """Give how far from there the vector at place `index` of K is, in elements and in coordinates, and how many
        bytes of it are an image's. count: K."""
        index = cute.Int32(index)
        left: Any = quotient(index, self.channels)
        steps: tuple[Any, ...] = ()
        for taps, dilation in zip(reversed(self.taps), reversed(self.dilation)):
            steps, left = (remainder(left, taps) * dilation, *steps), quotient(left, taps)
        channel, b = remainder(index, self.channels), current()
        away = apart(steps, images.stride[1:]) + cute.Int64(channel)
        nbytes: Any = VECTOR
        if self.own < self.channels:
            nbytes = cute.min(cute.Int32(VECTOR), cute.Int32(self.own - channel) * (self.copies.width // 8))
        return away, (b.select(b.compare("<", index, count), steps[0], cute.Int32(OUTSIDE)), *steps[1:]), nbytes

    def tiles(self, thread: Any, images: Any, shared: Any, place: Any, batch: Any, extents: tuple[Any, Any]) -> Any:
        """Give the tiles of the matrix along K, of a `place` along its other mode, as a thread copies them. The
        arguments: as of `Copies.tiles`."""
        stages = self.copies.copy.get_slice(thread).partition_D(shared)
        row, column = self.copies.places(thread)[0]
        first = self.copies.places(0)
        steps = tuple((int(first[i][0]), int(first[i][1])) for i in range(cute.size(first)))
        rows = tuple(dict.fromkeys(step for step, _ in steps))
        of_row = self.tap if self.copies.mode == 0 else self.pixel
        begin = place * self.copies.tile[0] + row
        fixed = tuple(of_row(images, begin + step, extents[0]) for step in rows)
        return Gathered(self, images, stages, steps, rows, fixed, column, extents[1])


@static
class Gathered:
    """The tiles of an im2col matrix along K, as a thread copies them to the ring.

    gather: says how. images: (N, …, C). shared: the thread's part of the stages. steps: how far each of its vectors is
    from the first one, along both modes of a tile. rows: those along the first mode, each once, and fixed: what is the
    same of these for all tiles. column: the first vector's, along K. depth: K."""

    gather: Gather
    images: Any
    shared: Any
    steps: tuple[tuple[int, int], ...]
    rows: tuple[int, ...]
    fixed: tuple[Any, ...]
    column: Any
    depth: Any

    def load(self, tile: Any, stage: Any) -> None:
        """Begin to copy a tile to a stage."""
        copies, images, b = self.gather.copies, self.images, current()
        of_column = self.gather.pixel if copies.mode == 0 else self.gather.tap
        begin, moving = tile * copies.tile[1] + self.column, {}
        for step in dict.fromkeys(step for _, step in self.steps):
            moving[step] = of_column(images, begin + step, self.depth)
        shared = self.shared[None, None, None, stage]
        target = cute.group_modes(shared, 1, cute.rank(shared))
        for i, (row, column) in enumerate(self.steps):
            (fixed, at, most), (away, beside, there) = self.fixed[self.rows.index(row)], moving[column]
            nbytes: Any = cute.Int32(there if copies.mode == 1 else most)
            for one, other, extent in zip(at, beside, images.shape[1:-1]):
                within = b.compare("<", cute.Uint32(one + other), cute.Uint32(extent))
                nbytes = b.select(within, nbytes, cute.Int32(0))
            source = images.iterator + (fixed + away)
            cp_async_shared_global(target[None, i], source, VECTOR, cpasync.LoadCacheMode.GLOBAL, src_size=nbytes)


@traced
def store_part(value: Any, there: Any, count: Any) -> None:
    """Store a vector of shared memory, or so many elements of it. there: a pointer, at a multiple of its bytes. count:
    how many are the result's, if an edge may lie inside of it."""
    step, b = cute.size(value), current()
    if count is None:
        store_vector(value, there)
        return
    place = cute.make_tensor(there, cute.make_layout(step))

    def put(j: Any) -> None:
        place[j] = value[j]

    b.when(b.compare(">=", count, step), lambda: store_vector(value, there))
    b.loop(0, b.select(b.compare("<", count, step), cute.Int32(count), cute.Int32(0)), put)


@static
class Scatter:
    """Store a result to pixels that do not follow each other. copies: of a matrix with pieces like its own. out:
    divisors by the extents of the pixels."""

    copies: Copies
    out: tuple[Any, ...]

    def leave(self, thread: Any, shared: Any, images: Any, place: Any, left: tuple[Any, Any]) -> None:
        """Copy this thread's vectors of a piece from shared memory. The arguments: as of `Copies.leave`."""
        b, (rows, columns) = current(), self.copies.tile
        own = self.copies.copy.get_slice(thread).partition_S(shared)
        source, places = cute.group_modes(own, 1, cute.rank(own)), self.copies.places(thread)
        for i in range(cute.size(places)):
            row, column = places[i]

            def put(i: int = i, row: Any = row, column: Any = column) -> None:
                image, at = in_modes(cute.Int32(place[0] * rows + row), self.out)
                away = cute.Int64(image) * images.stride[0] + apart(at, images.stride[1:])
                there = images.iterator + (away + cute.Int64(place[1] * columns + column))
                store_part(source[None, i], there, None if self.copies.whole else left[1] - column)

            b.when(b.compare("<", row, left[0]) & b.compare("<", column, left[1]), put)


# ---------------------------------------------------------------- on the host


def check_strides(array: Any) -> None:
    """Refuse images that lie so far apart that a step in one takes more than 32 bits."""
    far = max(abs(int(n)) for n in array.stride[1:-1])
    if far >= 1 << 31:
        raise CuteError(f"convolution: a stride of the images is {far} elements, which must be fewer than 2**31")


def divisors(extents: tuple[int, ...]) -> tuple[Any, ...]:
    """Give divisors by extents that are known at run time."""
    return tuple(cute.fast_divmod_create_divisor(cute.Int32(n)) for n in extents)


@dataclass(frozen=True)
class Image(Source):
    """The im2col matrix of images, or what it is from its other side. array: (N, D, H, W, C) with one to three of D, H,
    W, and C contiguous. walk: of the filter. mode: 1 for output pixels by K, 0 for K by output pixels."""

    array: Any
    walk: Walk
    mode: int = 1

    @property
    def channels(self) -> int:
        """The channels that K counts of each tap, whole vectors."""
        t = view(self.array)
        return whole(int(t.shape[-1]), 8 * VECTOR // int(t.element_type.width))

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The matrix's extents."""
        images, *extents, _ = self.array.shape
        both = images * math.prod(self.walk.out(tuple(extents))), math.prod(self.walk.taps) * self.channels
        return both if self.mode == 1 else both[::-1]

    def copied(self, dtype: Any, tile: tuple[int, int], threads: int) -> tuple[Any, Any]:
        """Give the images, and how threads gather tiles. See `Source.copied`."""
        check_strides(view(self.array))
        _, *extents, channels = map(int, self.array.shape)
        numbers = (self.walk.stride, self.walk.before, self.walk.dilation)
        like = copies(dtype, self.mode, tile, threads, True)
        out = divisors(self.walk.out(tuple(extents)))
        how = Gather(like, self.walk.taps, self.channels, channels, out, *(tuple(map(cute.Int32, n)) for n in numbers))
        return tensor_of(self.array, len(extents) + 1, dtype), how


@dataclass(frozen=True)
class Lattice(Source):
    """Pixels of images that do not follow each other, as a result. array: (N, D, H, W, C), C contiguous."""

    array: Any

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The matrix's extents: (pixels, C)."""
        *pixels, channels = self.array.shape
        return math.prod(pixels), channels

    def copied(self, dtype: Any, tile: tuple[int, int], threads: int) -> tuple[Any, Any]:
        """Give the images, and how threads store pieces. See `Source.copied`."""
        check_strides(view(self.array))
        _, *extents, channels = map(int, self.array.shape)
        whole_vectors = channels * int(dtype.width) % (8 * VECTOR) == 0
        how = Scatter(copies(dtype, self.mode, tile, threads, whole_vectors), divisors(tuple(extents)))
        return tensor_of(self.array, len(extents) + 1, dtype), how


def turned(walk: Walk) -> Walk:
    """Give the walk that meets the same pixels with its taps in the other order. walk: the walk."""
    far = tuple((t - 1) * d for t, d in zip(walk.taps, walk.dilation))
    before, after = (tuple(n - f for n, f in zip(around, far)) for around in (walk.before, walk.after))
    return Walk(walk.taps, walk.stride, before, after, tuple(-d for d in walk.dilation))


SUM = 0.12  # what a number takes that is added up, in products of 128 bytes of K: from the rates of an A100, unmeasured


def parts(outs: int, depth: int, pixels: int, sms: int, target: Any, cut: Warps | None = None) -> tuple[Warps, int]:
    """Choose how the gradient of filters is cut, and the tiles of pixels that a part of it sums. outs, depth: its
    extents. pixels: of the output. target: the GPU's record. cut: the Warps, if it is given."""
    best: tuple[float, Warps, int] | None = None
    for one in [cut] if cut else cuts(target):
        tiles = math.ceil(outs / one.tile[0]) * math.ceil(depth / one.tile[1])
        k_tiles = math.ceil(pixels / (one.row // 2))
        for count in range(1, min(k_tiles, math.ceil(4 * sms / tiles)) + 1):
            share = math.ceil(k_tiles / count)
            rounds = math.ceil(tiles * math.ceil(k_tiles / share) / (sms * one.ctas)) * one.ctas
            time = rounds * math.prod(one.tile) * (share * one.row / 128 + START) / RATE.get(one.tile, 1.0)
            time += SUM * outs * depth * count * (count > 1)
            if best is None or time < best[0]:
                best = time, one, share
    assert best is not None
    return best[1:]
