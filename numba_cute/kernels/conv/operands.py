# SPDX-License-Identifier: Apache-2.0
"""The operands of a convolution that is a GEMM: images, whose rows of the im2col matrix TMA makes, and filters.

The GEMM's rows are output pixels, its columns output channels, and K counts the channels of each tap of the filter, the
taps along W first. A K tile is of one tap: of its channels there are whole tiles, which TMA fills up with zeros.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba_cute as cute
from numba_cute.nvgpu import cpasync

from ..gemm.operands import Source, view


@dataclass(frozen=True)
class Walk:
    """How a filter goes over images: of each number as many as there are spatial modes, outermost (D, or H) first.

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

    def loads(self, dtype: Any, smem: Any, tile: tuple[int, int], ctas: int, rows: int) -> tuple[Any, Any]:
        """Give the TMA atom that loads tiles of the im2col matrix, and its coordinates. See `Source.loads`."""
        t = cute.recast_tensor(view(self.array, 16).mark_layout_dynamic(), dtype)
        modes = len(self.array.shape) - 1
        lay = cute.group_modes(cute.select(t.layout, mode=[*reversed(range(modes)), modes]), 0, modes)
        w = self.walk
        upper = tuple(up - (n - 1) * d for up, n, d in zip(w.after, w.taps, w.dilation))
        lower = tuple(-n for n in w.before)
        geometry = (lower, upper, w.before, w.after, w.stride, (0,) * len(w.taps), w.dilation)
        op = cpasync.CopyBulkTensorIm2ColG2SOp() if ctas == 1 else cpasync.CopyBulkTensorIm2ColG2SMulticastOp()
        along_whd: list[Any] = [*(x[::-1] for x in geometry), ctas]
        image = cute.make_tensor(t.iterator, lay)
        atom, columns = cpasync.make_im2col_tma_atom(op, image, smem, tile, *along_whd)
        along_k = (whole(columns.shape[1][0], tile[1]), *columns.shape[1][1:])
        return atom, over(columns, rows, along_k)


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

    def loads(self, dtype: Any, smem: Any, tile: tuple[int, int], ctas: int, rows: int) -> tuple[Any, Any]:
        """Give the TMA atom that loads tiles of the filters, and its coordinates. See `Source.loads`."""
        t = cute.recast_tensor(view(self.array, 16).mark_layout_dynamic(leading_dim=2), dtype)
        lay = cute.select(t.layout, mode=[0, 2, 1])
        op = cpasync.CopyBulkTensorTileG2SOp() if ctas == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
        atom, there = cpasync.make_tiled_tma_atom(op, cute.make_tensor(t.iterator, lay), smem, tile, ctas)
        _, taps, channels = self.array.shape
        there = cute.make_tensor(there.iterator, cute.group_modes(there.layout, 1, 3))
        return atom, over(there, rows, (whole(channels, tile[1]), taps))


def whole(channels: int, tile: int) -> int:
    """Round channels up to whole tiles. channels, tile: how many."""
    return -(-channels // tile) * tile


def over(coordinates: Any, rows: int, along_k: tuple[int, ...]) -> Any:
    """Give coordinates over so many rows. along_k: extents along K, known when the kernel is compiled."""
    return cute.make_tensor(
        coordinates.iterator, cute.make_layout((cute.Int32(rows), along_k), stride=coordinates.stride)
    )
