# SPDX-License-Identifier: Apache-2.0
"""See arrays as attention's backward kernels take them."""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute.runtime import from_dlpack

from .. import entry
from .plan import view


def flat(array: Any) -> Any:
    """A tensor of one mode over an array of consecutive elements."""
    t = from_dlpack(array, assumed_align=16)
    return cute.make_tensor(t.iterator, cute.make_layout((cute.Int32(cute.size(t.layout)),), stride=(1,)))


def strides(array: Any) -> tuple[Any, ...]:
    """The strides of (batch, rows, heads) in elements."""
    return tuple(cute.Int64(s) for s in entry.strides(array)[:3])


def covering(made: Any, rows: int) -> tuple[Any, Any]:
    """A TMA atom, and its coordinates over whole tiles: TMA leaves out what lies beyond the array."""
    atom, coords = made
    shape = (cute.Int32(rows), *coords.shape[1:])
    return atom, cute.make_tensor(coords.iterator, cute.make_layout(shape, stride=coords.stride))


def ragged(array: Any, tile: int) -> Any:
    """View (batch, rows, heads, d) so that a box may end at any row: (tile, d, rows + 1, heads, batch), with two modes
    for rows. The element (r, c, y, …) is of row r + y - tile: a box that begins at r = tile - n and y = row + n holds n
    rows from `row` on, and is loaded with zeros behind them."""
    t = view(array, 16)
    (batch, rows, heads, d), (outer, step, head, one) = t.layout.shape, t.layout.stride
    return cute.make_tensor(
        t.iterator + -(tile * step),
        cute.make_layout((tile, d, rows + 1, heads, batch), stride=(step, one, step, head, outer)),
    )
