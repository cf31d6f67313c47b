# SPDX-License-Identifier: Apache-2.0
"""The operands of a convolution that is a GEMM: images, whose rows of the im2col matrix TMA makes, and filters.

The GEMM's rows are output pixels, its columns output channels, and K counts the channels of each tap of the filter, the
taps along W first. A K tile is of one tap: of its channels there are whole tiles, which TMA fills up with zeros.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.seam.ground.records import dataclass

from ..gemm.operands import Source, load_op, tensor_of

UNIT = 64  # channels of 16 bits that TMA loads together


@dataclass(frozen=True)
class Walk:
    """The way of a filter over images: of each number as many as there are spatial modes, outermost (D, or H) first.

    taps: the filter's extents. stride: between output pixels. before, after: zeros around the image, fewer than none
    where they leave out some of it. dilation: between taps."""

    taps: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]

    def out(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """Give the extents of the output. extents: of the image."""
        reach = [d * (t - 1) + 1 for t, d in zip(self.taps, self.dilation)]
        around = zip(extents, self.before, self.after, reach, self.stride)
        return tuple((n + lo + up - r) // s + 1 for n, lo, up, r, s in around)


@dataclass(frozen=True)
class Image(Source):
    """The im2col matrix of images. array: (N, D, H, W, C) with one to three of D, H, W, and C contiguous. walk: of the
    filter. tile_k: channels of a K tile."""

    array: Any
    walk: Walk
    tile_k: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The matrix's extents: (output pixels, K)."""
        images, *extents, channels = self.array.shape
        pixels = images * math.prod(self.walk.out(tuple(extents)))
        return pixels, math.prod(self.walk.taps) * whole(channels, self.tile_k)

    def loads(
        self, dtype: Any, smem: Any, tile: tuple[int, int], ctas: int, rows: int, together: int = 1
    ) -> tuple[Any, Any]:  # fmt: skip
        """Give the TMA atom that loads tiles of the im2col matrix, and its coordinates. See `Source.loads`."""
        op = load_op(ctas, together, im2col=True)
        atom, columns = walked(op, self.array, dtype, smem, tile, self.walk, ctas)
        return atom, over(columns, rows, *in_tiles(columns.shape[1], columns.stride[1], tile[1]))


@dataclass(frozen=True)
class Filter(Source):
    """Filters as a matrix. array: (output channels, taps, C), C contiguous. tile_k: channels of a K tile."""

    array: Any
    tile_k: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The matrix's extents: (output channels, K)."""
        outs, taps, channels = self.array.shape
        return outs, taps * whole(channels, self.tile_k)

    def loads(
        self, dtype: Any, smem: Any, tile: tuple[int, int], ctas: int, rows: int, together: int = 1
    ) -> tuple[Any, Any]:  # fmt: skip
        """Give the TMA atom that loads tiles of the filters, and its coordinates. See `Source.loads`."""
        t = tensor_of(self.array, 2, dtype)
        lay = cute.select(t.layout, mode=[0, 2, 1])
        op = load_op(ctas, together)
        atom, there = cpasync.make_tiled_tma_atom(op, cute.make_tensor(t.iterator, lay), smem, tile, ctas)
        _, taps, channels = self.array.shape
        there = cute.make_tensor(there.iterator, cute.group_modes(there.layout, 1, 3))
        return atom, over(there, rows, *in_tiles((channels, taps), there.stride[1], tile[1]))


@dataclass(frozen=True)
class Turned(Source):
    """Filters as seen from their other side: of each channel the outputs of each tap, the last tap first.

    array: (outputs, taps along D, H, W, C), C contiguous. taps, last, step: how many taps are taken along each mode,
    the last one, and how far it is to the one before. tile_k: outputs of a K tile."""

    array: Any
    taps: tuple[int, ...]
    last: tuple[int, ...]
    step: tuple[int, ...]
    tile_k: int
    mode = 0

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The matrix's extents: (C, K)."""
        outs, *_, channels = self.array.shape
        return channels, math.prod(self.taps) * whole(outs, self.tile_k)

    def loads(
        self, dtype: Any, smem: Any, tile: tuple[int, int], ctas: int, rows: int, together: int = 1
    ) -> tuple[Any, Any]:  # fmt: skip
        """Give the TMA atom that loads tiles of the filters, and its coordinates. See `Source.loads`."""
        last = len(self.array.shape) - 1
        t = tensor_of(self.array, last, dtype)
        order = cute.select(t.layout, mode=[last, 0, *reversed(range(1, last))])
        op = load_op(ctas, together)
        atom, there = cpasync.make_tiled_tma_atom(op, cute.make_tensor(t.iterator, order), smem, tile, ctas)
        there = cute.domain_offset((0, 0, *self.last[::-1]), there)
        back = tuple(s * -n for s, n in zip(there.stride[2:], self.step[::-1]))
        along_k = in_tiles((self.array.shape[0], *self.taps[::-1]), (there.stride[1], *back), tile[1])
        return atom, over(there, rows, *along_k)


@dataclass(frozen=True)
class Lattice(Source):
    """Pixels of images that do not follow each other, as a result. array: (N, D, H, W, C), C contiguous."""

    array: Any

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The matrix's extents: (pixels, C)."""
        *pixels, channels = self.array.shape
        return math.prod(pixels), channels

    def stores(self, dtype: Any, smem: Any, tile: tuple[int, int], extents: tuple[int, int]) -> tuple[Any, Any]:
        """Give the TMA atom that stores tiles of pixels, and its coordinates. See `Source.stores`."""
        op, modes = cpasync.CopyBulkTensorIm2ColS2GOp(), len(self.array.shape) - 2
        atom, columns = walked(op, self.array, dtype, smem, tile, alone(modes))
        return atom, over(columns, extents[0], (extents[1], *columns.shape[1][1:]), columns.stride[1])


def alone(modes: int) -> Walk:
    """Give the walk of a filter that takes each pixel once. modes: how many are spatial."""
    one, none = (1,) * modes, (0,) * modes
    return Walk(one, one, none, none, one)


def walked(op: Any, array: Any, dtype: Any, smem: Any, tile: tuple[int, int], walk: Walk, ctas: int = 1) -> Any:
    """Give the TMA atom that copies tiles of the im2col matrix of images, and its coordinates. op: the operation.
    array: (N, D, H, W, C). dtype, smem, tile, ctas: as of `Source.loads`."""
    modes = len(array.shape) - 1
    t = tensor_of(array, modes, dtype)
    lay = cute.group_modes(cute.select(t.layout, mode=[*reversed(range(modes)), modes]), 0, modes)
    upper = tuple(up - (n - 1) * d for up, n, d in zip(walk.after, walk.taps, walk.dilation))
    lower = tuple(-n for n in walk.before)
    geometry = (lower, upper, walk.before, walk.after, walk.stride, (0,) * len(walk.taps), walk.dilation)
    along_whd: list[Any] = [*(x[::-1] for x in geometry), ctas]
    return cpasync.make_im2col_tma_atom(op, cute.make_tensor(t.iterator, lay), smem, tile, *along_whd)


@dataclass(frozen=True)
class Part:
    """The pixels of a gradient of images, every so manyth along each mode, that the same taps reach.

    first: the first one's place. extents: how many. walk: over the gradients of the output; None where no tap reaches
    them. last, step: of the taps, as of `Turned`."""

    first: tuple[int, ...]
    extents: tuple[int, ...]
    walk: Walk | None
    last: tuple[int, ...]
    step: tuple[int, ...]


def parts_of(walk: Walk, extents: tuple[int, ...], out: tuple[int, ...]) -> list[Part]:
    """Cut the gradient of images into convolutions of the output's gradient, each with stride 1. walk: of the forward
    convolution. extents: of the images. out: of the output."""
    found = []
    for first in itertools.product(*(range(min(s, n)) for s, n in zip(walk.stride, extents))):
        each = zip(first, walk.taps, walk.stride, walk.before, walk.dilation, extents, out)
        modes = [_along(*given) for given in each]
        many, taps, before, after, dilation, last, step = zip(*modes)
        there = Walk(taps, (1,) * len(taps), before, after, dilation) if min(taps) else None
        found.append(Part(first, many, there, last, step))
    return found


def _along(first: int, taps: int, stride: int, before: int, dilation: int, extent: int, out: int) -> tuple[int, ...]:
    """Of one mode: how many pixels there are from `first` on, the taps that reach them, the walk over the output's
    gradient (before, after, dilation), and the last tap and the step to the one before.

    A tap of which every pixel is beside the output's gradient is left out: what a filter has there may be infinite, and
    is not to be multiplied by the zeros around it."""
    many, common = -(-(extent - first) // stride), math.gcd(dilation, stride)
    begins = {t: divmod(first + before - t * dilation, stride) for t in range(taps)}  # in the output's gradient
    reach = [t for t, (at, off) in begins.items() if off == 0 and -many < at < out]
    if not reach:
        return many, 0, 0, 0, 1, 0, 1
    begin, far = begins[reach[-1]][0], (len(reach) - 1) * (dilation // common)
    return many, len(reach), -begin, many - out + begin + far, dilation // common, reach[-1], stride // common


def whole(channels: int, tile: int) -> int:
    """Round channels up to whole tiles. channels, tile: how many."""
    return -(-channels // tile) * tile


def in_tiles(extents: tuple[Any, ...], strides: tuple[Any, ...], tile: int) -> tuple[Any, Any]:
    """Give the shape and the strides of K in whole tiles of channels: how many of these there are, and the taps, are
    known when the kernel is compiled: the warp that loads divides by both for each tile of K. extents, strides:
    channels, and modes of taps."""
    (channels, *taps), (step, *rest) = extents, strides
    count = -(-int(channels) // tile)
    return ((tile, count), *taps), ((step, step * tile), *rest)


def over(coordinates: Any, rows: int, along_k: Any, strides: Any) -> Any:
    """Give coordinates over so many rows. along_k, strides: extents and strides along K."""
    layout = cute.make_layout((cute.Int32(rows), along_k), stride=(coordinates.stride[0], strides))
    return cute.make_tensor(coordinates.iterator, layout)


def counted(channels: Any, taps: tuple[Any, Any], inner: int) -> tuple[Any, Any]:
    """Give the shape and the strides of columns: `inner` channels of each tap, then the next ones. channels: how many,
    and their stride. taps: extents and strides, along W first."""
    count, step = channels
    return (inner, *taps[0], -(-int(count) // inner)), (step, *taps[1], step * inner)


@dataclass(frozen=True)
class Columns(Source):
    """The im2col matrix from its other side, in groups of pixels: of each channel of each tap the pixels, as K.

    array, walk: as of `Image`. inner: channels that are counted of each tap before the next ones. groups: how many
    there are, all of so many pixels; None of one matrix of all."""

    array: Any
    walk: Walk
    inner: int
    groups: int | None
    mode = 0

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The matrices' extents: (groups, channels of all taps, pixels of a group), or of one the last two."""
        images, *extents, channels = self.array.shape
        pixels = images * math.prod(self.walk.out(tuple(extents)))
        columns = math.prod(self.walk.taps) * whole(channels, self.inner)
        return (columns, pixels) if self.groups is None else (self.groups, columns, pixels // self.groups)

    def loads(
        self, dtype: Any, smem: Any, tile: tuple[int, int], ctas: int, rows: int, together: int = 1
    ) -> tuple[Any, Any]:  # fmt: skip
        """Give the TMA atom that loads tiles of the matrices, and its coordinates. See `Source.loads`."""
        op = load_op(ctas, together, im2col=True)
        turned = cute.make_composed_layout(smem.inner, smem.offset, cute.select(smem.outer, mode=[1, 0]))
        atom, columns = walked(op, self.array, dtype, turned, tile[::-1], self.walk, ctas)
        pixel, (channel, *steps) = columns.stride
        _, *taps = columns.shape[1]
        along, apart = counted((self.array.shape[-1], channel), (taps, steps), self.inner)
        many = cute.Int32(self.shape[-1])
        layout = cute.make_layout((along, many), stride=(apart, pixel))
        if self.groups is not None:
            layout = cute.make_layout((along, many, cute.Int32(self.groups)), stride=(apart, pixel, pixel * many))
        return atom, cute.make_tensor(columns.iterator, layout)


@dataclass(frozen=True)
class Gradient(Source):
    """The gradient of filters as a result, of the columns of `Columns`. array: (outputs, taps along D, H, W, C), C
    contiguous. inner: as there, of whole tiles."""

    array: Any
    inner: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The matrix's extents: (outputs, channels of all taps)."""
        outs, *taps, channels = self.array.shape
        return outs, math.prod(taps) * whole(channels, self.inner)

    def stores(self, dtype: Any, smem: Any, tile: tuple[int, int], extents: tuple[int, int]) -> tuple[Any, Any]:
        """Give the TMA atom that stores tiles of the gradient, and its coordinates. See `Source.stores`."""
        last = len(self.array.shape) - 1
        t = tensor_of(self.array, last, dtype)
        lies = cute.make_tensor(t.iterator, cute.select(t.layout, mode=[0, last, *reversed(range(1, last))]))
        atom, there = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), lies, smem, tile)
        _, channel, *steps = there.stride
        return atom, over(
            there, extents[0], *counted((t.shape[-1], channel), (self.array.shape[-2:0:-1], steps), self.inner)
        )
