# SPDX-License-Identifier: Apache-2.0
"""What attention's backward kernels need for options: scores bent by a function, with its derivative, windows, and tiles
of sequences of their own lengths."""

import math

from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import cpasync

from ..derivative import Dual, dual, slots_of
from . import masks

TILE = 64  # keys, or queries, of a tile


@cute.seam.traced
def bent(score, s, batch, head, query, key, aux):
    """What a function makes of a scaled score, and the derivative by it."""
    made = score(dual(s, "s"), batch, head, query, key, *aux)
    found = slots_of(made).get("s", 0.0)
    return made.value if isinstance(made, Dual) else made, cute.Float32(found)


@cuda.jit
def sequence(cu, used, batch, rows):
    """Where sequence `batch` begins, how many rows it has, and which batch of the array it is: of all as many `rows`, or
    where `cu` and `used` say."""
    first, of = cute.Int32(0), cute.Int32(batch)
    if cute.const_expr(cu is not None):
        first = cute.Int32(cu[batch])
        rows = cute.Int32(cu[batch + 1] - first)
        of = cute.Int32(0)
    if cute.const_expr(used is not None):
        rows = cute.Int32(used[batch])
    return first, cute.Int32(rows), of


@cuda.jit
def rows_at(coords, tile, first, rows, width, head, batch):
    """The coordinates of a tile of a sequence, (TILE, width, 1): none beyond its `rows`. first: where it begins. coords:
    (TILE, columns, rows, heads, batches), as `gradients.ragged` makes them."""
    left = cute.Int32(max(0, min(TILE, rows - tile * TILE)))
    there = cute.domain_offset(
        (TILE - left, 0, first + min(tile * TILE, rows) + left), coords[None, None, None, head, batch]
    )
    return cute.local_tile(there, (TILE, width), (0, None, 0))


@cuda.jit
def load_rows(tma, coords, shared, tile, first, rows, width, head, batch, barrier):
    """Load a tile of a sequence to shared memory, with zeros for what is not its."""
    to, of = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2),
        cute.group_modes(rows_at(coords, tile, first, rows, width, head, batch), 0, 2),
    )  # fmt: skip
    cute.copy(tma, of[None, 0], to, tma_bar_ptr=barrier)


@cuda.jit
def stream_rows(tma, coords, shared, stage, tile, first, rows, width, cluster, rank, head, batch, barrier, share):
    """Load this CTA's part of a tile of a sequence, for all, to a stage."""
    to, of = cpasync.tma_partition(
        tma, rank, cute.make_layout(cluster), cute.group_modes(shared, 0, 2),
        cute.group_modes(rows_at(coords, tile, first, rows, width, head, batch), 0, 2),
    )  # fmt: skip
    cute.copy(tma, of[None, 0], to[None, stage], tma_bar_ptr=barrier, mcast_mask=share)


@cuda.jit
def hide(rS, key, query, keys, shift, behind, causal, left):
    """Mask this thread's two rows of S^T: `key`, and the eighth after. query: of its first column; it has two of each 8.
    shift, behind: a query sees the keys up to shift after it, and from behind after it. causal, left: whether these
    count."""
    for r in cute.range_constexpr(2):
        seen = cute.Uint32(0xFFFFFFFF)
        if key + 8 * r >= keys:
            seen = cute.Uint32(0)
        if causal:
            seen &= ~masks.before(key + 8 * r - shift - query, 0)
        if left:
            seen &= masks.before(key + 8 * r - behind + 1 - query, 0)
        for j in cute.range_constexpr(TILE // 4):
            if seen & (1 << j) == 0:
                rS[j // 2 * 4 + 2 * r + j % 2] = -math.inf
