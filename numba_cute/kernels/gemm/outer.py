# SPDX-License-Identifier: Apache-2.0
"""Parts that sums over the rows of groups share: the order of their tiles, and rows that end anywhere."""

from __future__ import annotations

from typing import Any

from numba import cuda

import numba_cute as cute

from .operands import tensor_of

DEPTH = 64  # rows of X and Y that a stage has


@cuda.jit
def tile_of(index, ends, tiles_m, tiles_n):
    """Give the place of the `index`-th tile: its group, the group's first row and the one after its last, m and n."""
    each = tiles_m * tiles_n
    group, within = cute.Int32(index // each), cute.Int32(index % each)
    begin = cute.Int32(0)
    if group > 0:
        begin = ends[group - 1]
    return (
        group,
        begin,
        cute.Int32(max(begin, ends[group])),
        cute.Int32(within % tiles_m),
        cute.Int32(within // tiles_m),
    )


def ragged(array: Any) -> Any:
    """View rows (rows, M), contiguous along M, so that a box may end at any row: (M, DEPTH, rows + 1), with two modes
    for rows. The element (m, r, y) is of row r + y - DEPTH: a box that begins at (m, DEPTH - left, row + left) holds
    the `left` rows from `row` on, and zeros."""
    t = tensor_of(array, 1)
    (rows, m), (step, _) = t.shape, t.stride
    return cute.make_tensor(
        t.iterator + -(DEPTH * step), cute.make_layout((m, DEPTH, rows + 1), stride=(1, step, step))
    )
