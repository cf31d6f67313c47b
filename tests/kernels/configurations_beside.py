# SPDX-License-Identifier: Apache-2.0
"""Configurations of the kernels that stand beside products, convolutions and attention: rows of A that are copied
before, sums of parts that are added up after, blocks that a mask sees, as of `configurations.py`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.kernels.attention import blocks
from numba_cute.kernels.conv import sums
from numba_cute.kernels.conv.operands import UNIT, whole
from numba_cute.kernels.gemm import picked

from .configurations_attention import some
from .configurations_families import ALL_TARGETS, I64
from .configurations_gemm import F32, FLOATS, I32, empty
from .covering import Space

EACH = [1 << p for p in range(int(math.log2(picked.THREADS)) + 1)]
"""Threads that copy a row."""


def picked_launches(*, index: Any, each: int, whole: bool) -> list[Any]:
    """The kernel that copies rows which an index names. whole: whether its threads' vectors are the row."""
    nbytes = picked.VECTOR * picked.AHEAD * each - (0 if whole else picked.VECTOR)
    source, made = empty((300, nbytes), np.dtype(np.uint8)), empty((64, nbytes), np.dtype(np.uint8))
    work = picked.picking(source, rows := empty((64,), index), made)
    assert work.static[-1] == each
    return [(work.kernel, (source, rows, made, *work.static))]


PICKED = Space({"index": [I32, I64], "each": EACH, "whole": [False, True]}, lambda **_: True, picked_launches)


def sums_launches(*, target: str, dtype: Any, modes: int, parts: int, last: bool, channels: int, edge: bool) -> Any:
    """The kernel that adds parts up to the gradient of filters. last: whether its channels are contiguous."""
    outs, taps = 32, (3,) * modes
    shape, columns = (outs, channels, *taps), 3**modes * whole(channels, UNIT)
    inner = [whole(channels, UNIT) * 3**i for i in range(modes)][::-1]
    total = empty((outs, *taps, channels), dtype)
    total = np.moveaxis(total, -1, 1) if last else empty(shape, dtype)
    overlaps = entry.family_of(cute.target(target)) != entry.WARPS
    given = empty((parts, outs, columns), F32), total
    _, static = sums.arguments(*given, (columns, 1, *inner), columns // 3 if edge else 0, overlaps)
    return [(sums.add_up, (*given, *static))]


SUMS = Space(
    {
        "target": ALL_TARGETS, "dtype": FLOATS, "modes": [1, 2, 3], "parts": [1, 3, 4 * sums.AHEAD],
        "last": [False, True], "channels": [3, UNIT], "edge": [False, True],
    },
    lambda **_: True, sums_launches,
)  # fmt: skip


def by_a_tensor(batch, head, query, key, ends, more):
    """A mask that reads where each query's keys end."""
    return key < ends[batch, query] + more


MASKS = {"of positions": (some, ()), "of a tensor": (by_a_tensor, (np.zeros((2, 1024), I32), 3))}


def asked(*, target: str, mask: str) -> list[Any]:
    """The kernel that asks a mask which blocks it sees."""
    function, aux = MASKS[mask]
    found = empty((6, 8, 8), np.dtype(np.uint8))
    return [(blocks.make_ask(function), (found, *map(cute.Int32, (128, 128, 1024, 1024, 3)), aux))]


ASKED = Space({"target": ALL_TARGETS, "mask": list(MASKS)}, lambda **_: True, asked)

SPACES = {
    "matmul, rows copied before": lambda: PICKED, "conv, sums of parts": lambda: SUMS, "block_mask": lambda: ASKED,
}  # fmt: skip
