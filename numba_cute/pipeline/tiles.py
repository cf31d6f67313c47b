# SPDX-License-Identifier: Apache-2.0
"""Count the tiles of K that a mainloop runs over."""

from __future__ import annotations

from typing import Any

from ..layout import ceil_div
from ..seam import CuteError, Int, current, traced

__all__ = ["compute_k_tile"]


@traced
def compute_k_tile(k: Int, tile_k: Int, *, splits: Int = 1, split: Int = 0) -> tuple[Any, Any]:
    """Compute which tiles of K a mainloop runs over: (the first, how many), each `tile_k` elements of `k`, the last
    perhaps in part. splits: the number of mainloops that share K; split: which of them, from 0 on: each has as many
    tiles as the others, but for the last ones, which may have fewer or none. Any thread; on the host too. Raises
    CuteError for a static number that is not positive, or a static `split` out of range. PTX: none, any target.

    >>> pipeline.compute_k_tile(1000, 64, splits=2, split=1)
    (8, 8)
    """
    for name, value in (("tile_k", tile_k), ("splits", splits)):
        if isinstance(value, int) and value < 1:
            raise CuteError(f"compute_k_tile: {name}={value} must be positive")
    if isinstance(k, int) and k < 0 or isinstance(split, int) and split < 0:
        raise CuteError(f"compute_k_tile: k={k!r} and split={split!r} must not be negative")
    if isinstance(split, int) and isinstance(splits, int) and split >= splits:
        raise CuteError(f"compute_k_tile: split={split} is none of the {splits} splits, 0 to {splits - 1}")
    total: Any = ceil_div(k, tile_k)
    if isinstance(splits, int) and splits == 1:
        return 0, total
    each: Any = ceil_div(total, splits)
    first = _least(split * each, total)
    return first, _least(each, total - first)


def _least(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    asked = current()
    return asked.select(asked.compare("<", a, b), a, b)
